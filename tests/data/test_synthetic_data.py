"""Synthetic data: sizes, prefixes, threads, and the claim that its utility ranks best."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rankwright.data.synthetic_data import (
    SHAPES,
    Shape,
    descriptions,
    synthetic,
    synthetic_with_truth,
)
from rankwright.errors import UsageError

SMALL = Shape("small", 300, 6_000, 20, (0.6, 0.25, 0.1, 0.05), shortest=3, longest=60)


def pairs_in_order(data, scores):
    """Share of the pairs of unequal grades that the scores put in order; a tie counts half."""
    right = pairs = 0.0
    for start, end in pairwise(data.indptr.tolist()):
        s, y = scores[start:end], data.y[start:end]
        better = y[:, None] > y
        right += (np.sign(s[:, None] - s)[better] + 1).sum() / 2
        pairs += better.sum()
    return right / pairs


@pytest.mark.parametrize(
    ("name", "queries", "documents", "features"),
    [
        ("ohsumed", 106, 16_140, 45),
        ("mq2007", 1_692, 69_623, 46),
        ("mq2008", 784, 15_211, 46),
    ],
)
def test_presets_have_the_size_of_the_real_sets(name, queries, documents, features):
    data = synthetic(name)
    assert (data.n_queries, data.n_documents, data.n_features) == (queries, documents, features)
    assert data.X.dtype == np.float32
    shape = SHAPES[name]
    assert shape.shortest <= data.sizes.min() < data.sizes.max() <= shape.longest


def test_grades_have_the_real_sets_shares():
    data = synthetic("mq2007")
    shares = np.bincount(data.y.astype(int)) / data.n_documents
    np.testing.assert_allclose(shares, np.array([51_632, 14_128, 3_863]) / 69_623, atol=0.02)


def test_mq2008_has_about_as_many_queries_without_a_relevant_document_as_the_real_one():
    data = synthetic("mq2008")
    empty = (np.maximum.reduceat(data.y, data.indptr[:-1]) == 0).mean()
    assert abs(empty - 220 / 784) < 0.05


@pytest.mark.parametrize("shape", [SMALL, replace(SMALL, name="hosts", hosts=50)])
@pytest.mark.parametrize("fewer", [1, 100, 299])
def test_a_larger_set_begins_with_the_smaller_one(shape, fewer):
    large, small = (
        synthetic_with_truth(shape, queries=700),
        synthetic_with_truth(shape, queries=fewer),
    )
    n = small.data.n_documents
    assert small.data.n_queries == fewer
    np.testing.assert_array_equal(small.data.indptr, large.data.indptr[: fewer + 1])
    np.testing.assert_array_equal(small.data.qid, large.data.qid[:fewer])
    np.testing.assert_array_equal(small.data.X, large.data.X[:n])
    np.testing.assert_array_equal(small.data.y, large.data.y[:n])
    np.testing.assert_array_equal(small.utility, large.utility[:n])
    if shape.hosts:
        np.testing.assert_array_equal(small.data.group, large.data.group[:n])


def test_equal_bytes_for_any_number_of_threads():
    made = [synthetic_with_truth(SMALL, n_jobs=threads) for threads in (1, 2, 5)]
    for data, utility in made[1:]:
        assert data.X.tobytes() == made[0].data.X.tobytes()
        assert data.y.tobytes() == made[0].data.y.tobytes()
        assert utility.tobytes() == made[0].utility.tobytes()


def test_the_numbers_of_a_seed_stay_the_same():
    """Values that version 0.2.0 made."""
    data, utility = synthetic_with_truth("web", queries=200)
    assert data.indptr[[1, 2, -1]].tolist() == [59, 92, 8254]
    assert data.y[:12].tolist() == [0, 3, 2, 0, 1, 2, 0, 0, 0, 1, 0, 0]
    assert data.group[[0, 1, -1]].tolist() == [908, 334, 7522]
    features = [1.0596251, 0.8181368, 27.0, 0.3027095, 0.7516728, 0.0, -0.7285005, 2.0222096]
    np.testing.assert_allclose(data.X[5000, :8], features, rtol=1e-6)
    best = [-0.410521174264, 0.728181457150, 1.508461269791, -0.274337982960]
    np.testing.assert_allclose(utility[[0, 1, 5000, -1]], best, rtol=1e-6)


def test_seeds_and_names_change_the_numbers():
    base = synthetic(SMALL, queries=5).X[:10]
    assert not np.array_equal(base, synthetic(SMALL, queries=5, seed=1).X[:10])
    assert not np.array_equal(base, synthetic(replace(SMALL, name="x"), queries=5).X[:10])


def test_without_interactions_the_utility_is_linear_in_the_features():
    data, utility = synthetic_with_truth(replace(SMALL, interactions=0.0))
    X = data.X.astype(np.float64)
    w, *_ = np.linalg.lstsq(X, utility, rcond=None)
    np.testing.assert_allclose(X @ w, utility, atol=1e-6)


def test_with_interactions_it_is_not():
    data, utility = synthetic_with_truth(replace(SMALL, interactions=0.5))
    X = np.column_stack([data.X.astype(np.float64), np.ones(data.n_documents)])
    w, *_ = np.linalg.lstsq(X, utility, rcond=None)
    assert np.var(utility - X @ w) > 0.3 * np.var(utility)


def test_the_utility_ranks_better_than_any_feature_and_than_least_squares_on_the_grades():
    data, utility = synthetic_with_truth(SMALL, queries=1_000)
    X = data.X.astype(np.float64)
    best = pairs_in_order(data, utility)
    assert best > max(pairs_in_order(data, X[:, f]) for f in range(20))
    half = np.arange(data.n_documents) < data.indptr[500]
    w, *_ = np.linalg.lstsq(X[half], data.y[half], rcond=None)
    rest = data.select(slice(500, None))
    learned = pairs_in_order(rest, X[~half] @ w)
    assert pairs_in_order(rest, utility[~half]) > learned > 0.6


def test_less_noise_makes_a_better_best_ranker():
    best = [
        pairs_in_order(*synthetic_with_truth(replace(SMALL, noise=noise)))
        for noise in (0.9, 0.5, 0.0)
    ]
    assert best[0] < best[1] < best[2]


def test_an_unknown_shape_brings_the_nearest():
    with pytest.raises(UsageError, match="did you mean mslr30k or mslr10k"):
        synthetic("mslr-30k")


@pytest.mark.parametrize("queries", [0, -3])
def test_the_number_of_queries_must_be_positive(queries):
    with pytest.raises(UsageError, match="1 or more"):
        synthetic("ohsumed", queries=queries)


def test_one_feature_is_enough():
    data = synthetic(replace(SMALL, features=1))
    assert pairs_in_order(data, data.X[:, 0]) != 0.5


# --- the preset shapes are those of the real sets, and impossible ones are refused -----------


SMALL_SHAPE = Shape("small", 300, 6_000, 20, (0.6, 0.25, 0.1, 0.05), shortest=3, longest=60)


def test_large_presets_declare_the_size_of_the_real_sets():
    sizes = {name: (s.documents, s.features, s.queries) for name, s in SHAPES.items()}
    assert sizes["mslr10k"] == (1_200_192, 136, 10_000)
    assert sizes["mslr30k"] == (3_771_125, 136, 31_531)
    assert descriptions()["mslr30k"].startswith("31,531 queries, 3,771,125 documents, 136 features")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"documents": 100}, "cannot hold 100"),
        ({"documents": 100_000}, "cannot hold 100000"),
        ({"grades": (1.0,)}, "two or more grades"),
        ({"noise": 1.0}, "shares from 0 to below 1"),
        ({"features": 0}, "at least one query"),
    ],
)
def test_impossible_shapes_are_refused(changes, sentence):
    with pytest.raises(UsageError, match=sentence):
        replace(SMALL_SHAPE, **changes)


# --- the rows of synthetic data look like those of the sets they stand for -------------------


def test_features_are_as_mixed_as_real_ones():
    data = synthetic("mslr10k", queries=100)
    X = data.X[:, :10]
    zeros = (X == 0).mean(axis=0)
    assert (zeros > 0.5).any()  # rare
    assert (X.max(axis=0) > 50 * np.median(np.abs(X), axis=0)).any()  # heavy-tailed
    assert np.corrcoef(X[:, 0], X[:, 1])[0, 1] > 0.7  # correlated
    counts = X[:, 2]
    assert (counts == np.floor(counts)).all()
    per_query = X[data.indptr[:-1], 6]
    np.testing.assert_array_equal(X[:, 6], np.repeat(per_query, data.sizes))


def test_web_names_hosts_and_some_hosts_come_twice_in_a_query():
    data = synthetic("web", queries=50)
    assert set(np.unique(data.y)) == {0, 1, 2, 3, 4}
    repeats = [
        len(hosts) - len(set(hosts.tolist())) for hosts in np.split(data.group, data.indptr[1:-1])
    ]
    assert sum(repeats) > 50
