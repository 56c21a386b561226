import numpy as np
import pytest
from scipy import sparse

from rankwright.data.content import content_digest, content_order
from rankwright.data.ranking_data import RankingData

RNG = np.random.default_rng(0)
X, Y, QID = RNG.normal(size=(60, 4)).round(1), RNG.integers(0, 3, 60), np.repeat(np.arange(6), 10)


def make(X=X, y=Y, qid=QID, **more):
    return RankingData.from_arrays(X, y, qid=qid, **more)


def in_order(data):
    order = content_order(data)
    return data.X[order], data.y[order]


def test_shuffling_the_rows_of_each_query_changes_neither_order_nor_digest():
    rows = np.concatenate([RNG.permutation(10) + 10 * q for q in range(6)])
    shuffled = make(X[rows], Y[rows], QID[rows])
    for a, b in zip(in_order(make()), in_order(shuffled), strict=True):
        assert (a == b).all()
    assert content_digest(make()) == content_digest(shuffled)


def test_the_order_stays_within_queries():
    assert (make().query_of_row()[content_order(make())] == QID).all()


def test_renaming_queries_changes_nothing():
    assert content_digest(make()) == content_digest(make(qid=QID + 100))


def changed_feature():
    other = X.copy()
    other[3, 2] += 1e-9
    return make(other)


@pytest.mark.parametrize(
    "other",
    [
        changed_feature(),
        make(y=Y + (np.arange(60) == 5)),
        make(qid=np.repeat(np.arange(5), 12)),
        make(query_weight=np.arange(6) + 1),
        make(sample_weight=np.arange(60) + 1),
    ],
)
def test_any_other_change_is_seen(other):
    assert content_digest(other) != content_digest(make())


def test_sparse_data_has_an_order_and_a_digest_of_its_own():
    thin = make(sparse.csr_array(X))
    assert sorted(content_order(thin).tolist()) == list(range(60))
    assert content_digest(thin) == content_digest(make(sparse.csr_array(X)))
