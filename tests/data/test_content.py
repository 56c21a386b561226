import numpy as np
import pytest
from scipy import sparse

from rankwright.data.content import content_digest, content_order, content_sample
from rankwright.data.ranking_data import RankingData

RNG = np.random.default_rng(0)
X, Y, QID = RNG.normal(size=(60, 4)).round(1), RNG.integers(0, 3, 60), np.repeat(np.arange(6), 10)


def make(X=X, y=Y, qid=QID, **more):
    return RankingData.from_arrays(X, y, qid=qid, **more)


def in_order(data):
    order, queries = content_order(data)
    return data.X[order], data.y[order], data.qid[queries]


def test_shuffling_the_rows_changes_neither_order_nor_digest():
    rows = RNG.permutation(60)
    shuffled = make(X[rows], Y[rows], QID[rows])
    for a, b in zip(in_order(make()), in_order(shuffled), strict=True):
        assert (a == b).all()
    assert content_digest(make()) == content_digest(shuffled)


def test_rows_come_query_after_query():
    rows, queries = content_order(make())
    assert (make().query_of_row()[rows] == np.repeat(queries, 10)).all()
    assert sorted(queries.tolist()) == list(range(6))


def test_renaming_queries_changes_nothing():
    assert content_digest(make()) == content_digest(make(qid=QID + 100))


def changed_feature():
    other = X.copy()
    other[3, 2] += 1e-9
    return make(other)


def swapped_values():
    other = X.copy()
    other[[3, 4], 2] = X[4, 2], X[3, 2]
    return make(other)


@pytest.mark.parametrize(
    "other",
    [
        changed_feature(),
        swapped_values(),
        make(y=Y + (np.arange(60) == 5)),
        make(qid=np.repeat(np.arange(5), 12)),
        make(query_weight=np.arange(6) + 1),
        make(sample_weight=np.arange(60) + 1),
    ],
)
def test_any_other_change_is_seen(other):
    assert content_digest(other) != content_digest(make())


def test_sparse_and_dense_data_are_the_same_content():
    thin = make(sparse.csr_array(np.where(X > 0, X, 0.0)))
    dense = make(np.where(X > 0, X, 0.0))
    assert (content_order(thin)[0] == content_order(dense)[0]).all()
    assert content_digest(thin) == content_digest(dense)


def sampled(data, count, **more):
    rows = content_sample(data, count, **more)
    assert (np.diff(rows) > 0).all()
    return sorted(map(tuple, np.column_stack([data.y, data.X])[rows].tolist()))


def test_a_sample_holds_the_same_whatever_the_order_of_the_rows():
    rows = RNG.permutation(60)
    for count in (1, 20, 60):
        assert len(sampled(make(), count)) == count
        assert sampled(make(), count) == sampled(make(X[rows], Y[rows], QID[rows]), count)
    assert sampled(make(), 20) != sampled(make(), 20, seed=1)


def test_rows_that_are_all_alike_are_drawn_one_by_one():
    alike = make(np.where(np.arange(60)[:, None] < 40, 1.0, X), np.zeros(60))
    share = [(np.array(sampled(alike, 30, seed=seed))[:, 1] == 1.0).mean() for seed in range(20)]
    assert 0.5 < np.mean(share) < 0.85  # two in three
    assert len(set(share)) > 1
