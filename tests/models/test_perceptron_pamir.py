"""PAMIR's steps: by hand, limited by C, and averaged lazily."""

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.pair_sampler import PairSampler, sample_pair
from rankwright.models.perceptron import pamir_steps, sampler_by_content


def sparse_data(seed=0, n=40, features=12):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(sparse.random(n, features, 0.3, random_state=seed))
    return RankingData.from_arrays(X, rng.integers(0, 3, n), group_sizes=[n // 2, n // 2])


def sampler_of(data):
    return PairSampler.of(data, order_weight(data), document_weight(data))


def walk(data, end, C=0.1, seed=0, first=0, before=None):
    """Return the weights and the sum of (4) after steps ``first`` to ``end``."""
    X, d = data.X, data.n_features
    w, late = (np.zeros(d), np.zeros(d)) if before is None else [a.copy() for a in before]
    cells = X.indptr, X.indices, X.data
    pamir_steps(first, end, seed, sampler_of(data), *cells, data.y, C, w, late)
    return w, late


def walk_densely(data, C, n_steps, seed=0):
    """Return the last weights and their mean by the definition, with dense vectors."""
    sampler, X = sampler_of(data), data.X.toarray()
    w, history = np.zeros(data.n_features), []
    for t in range(n_steps):
        i, j = sample_pair(seed, t, sampler)
        d = X[i] - X[j]
        loss = max(0.0, 1.0 - w @ d)
        if d @ d > 0.0:
            w = w + min(C, loss / (d @ d)) * d
        history.append(w)
    return w, np.mean(history, axis=0)


def test_one_step_by_hand():
    X = sparse.csr_array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    data = RankingData.from_arrays(X, [1, 0], group_sizes=[2])
    d = np.array([1.0, -1.0, 1.0])
    free, _ = walk(data, 1, C=10.0)
    assert free == pytest.approx(d / 3)  # tau = 1 / |d|^2: the pair then leads by exactly 1
    assert walk(data, 1, C=0.1)[0] == pytest.approx(0.1 * d)
    assert walk(data, 6, C=10.0)[0] == pytest.approx(free)  # no step if the lead is there


def test_a_pair_of_estimated_relevance_moves_the_weights_by_its_difference_at_most():
    X = sparse.csr_array([[1.0, 0.0], [0.0, 1.0]])
    data = RankingData.from_arrays(X, [0.31, 0.3], group_sizes=[2])
    assert walk(data, 1)[0] == pytest.approx([0.001, -0.001])


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_lazy_sparse_steps_and_mean_are_those_of_the_definition(C):
    data = sparse_data()
    w, late = walk(data, 300, C=C, seed=5)
    last, mean = walk_densely(data, C, 300, seed=5)
    np.testing.assert_allclose(w, last, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(w - late / 300, mean, rtol=1e-9, atol=1e-12)


def test_steps_in_two_rounds_end_at_the_same_bits():
    data = sparse_data(1)
    whole = walk(data, 500, C=0.3)
    half = walk(data, 200, C=0.3)
    continued = walk(data, 500, C=0.3, first=200, before=half)
    assert all((a == b).all() for a, b in zip(whole, continued, strict=True))


def test_a_fit_samples_all_pairs_of_a_query_in_an_order_fixed_by_content():
    data = sparse_data(3, n=16)
    drawn = [sample_pair(0, t, sampler_by_content(data, n_jobs=1)) for t in range(3000)]
    y, query = data.y, data.query_of_row()
    pairs = {(i, j) for i in range(16) for j in range(16) if query[i] == query[j] and y[i] > y[j]}
    assert set(drawn) == pairs
    turned = np.arange(16)[::-1]
    other = RankingData.from_arrays(data.X[turned], y[turned], group_sizes=[8, 8])
    again = [sample_pair(0, t, sampler_by_content(other, n_jobs=1)) for t in range(50)]
    assert [(15 - i, 15 - j) for i, j in again] == drawn[:50]


def test_the_seed_decides():
    data = sparse_data(2)
    runs = [walk(data, 100, seed=seed)[0] for seed in (0, 0, 1)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_without_any_order_the_weights_stay():
    data = RankingData.from_arrays(sparse.csr_array(np.eye(3)), [1, 1, 1], group_sizes=[3])
    assert not walk(data, 10)[0].any()
