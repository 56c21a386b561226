"""Passive-aggressive steps: by hand, capped, averaged lazily, and resumed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.pair_sampler import PairSampler, sample_pair
from rankwright.models.passive_aggressive import (
    FittedPassiveAggressive,
    PairState,
    PassiveAggressive,
    _sampler,
    _state_of,
)


def sparse_data(seed=0, n=40, features=12):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(sparse.random(n, features, 0.3, random_state=seed))
    return RankingData.from_arrays(X, rng.integers(0, 3, n), group_sizes=[n // 2, n // 2])


def draws_of(data):
    return PairSampler.of(data, order_weight(data), document_weight(data))


def start(data):
    return PairState.at(np.zeros(data.n_features))


def slowly(data, C, n_steps, seed=0):
    """The definition: dense vectors, all weights kept; returns the last and their mean."""
    draws, X = draws_of(data), data.X.toarray()
    w, seen = np.zeros(data.n_features), []
    for t in range(n_steps):
        i, j = sample_pair(seed, t, draws)
        d = X[i] - X[j]
        loss = max(0.0, 1.0 - w @ d)
        if d @ d > 0.0:
            w = w + min(C, loss / (d @ d)) * d
        seen.append(w)
    return w, np.mean(seen, axis=0)


def test_one_step_by_hand():
    X = sparse.csr_array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    data = RankingData.from_arrays(X, [1, 0], group_sizes=[2])
    d = np.array([1.0, -1.0, 1.0])
    free = PassiveAggressive(C=10.0).go_on(X, data.y, draws_of(data), start(data), 1)
    assert free.w == pytest.approx(d / 3)  # tau = 1 / |d|^2: the pair then leads by exactly 1
    capped = PassiveAggressive(C=0.1).go_on(X, data.y, draws_of(data), start(data), 1)
    assert capped.w == pytest.approx(0.1 * d)
    again = PassiveAggressive(C=10.0).go_on(X, data.y, draws_of(data), free, 5)
    assert again.w == pytest.approx(free.w)  # passive where the lead is there
    assert (again.t, again.moved) == (6, 1)


def test_a_pair_of_estimated_relevance_moves_the_weights_by_its_difference_at_most():
    X = sparse.csr_array([[1.0, 0.0], [0.0, 1.0]])
    data = RankingData.from_arrays(X, [0.31, 0.3], group_sizes=[2])
    state = PassiveAggressive(C=0.1).go_on(X, data.y, draws_of(data), start(data), 1)
    assert state.w == pytest.approx([0.001, -0.001])


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_lazy_sparse_steps_and_mean_are_those_of_the_definition(C):
    data = sparse_data()
    state = PassiveAggressive(C=C).go_on(data.X, data.y, draws_of(data), start(data), 300, seed=5)
    last, mean = slowly(data, C, 300, seed=5)
    np.testing.assert_allclose(state.w, last, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(state.mean, mean, rtol=1e-9, atol=1e-12)


def test_a_run_that_stops_and_goes_on_ends_at_the_same_bits():
    data, solver = sparse_data(1), PassiveAggressive(C=0.3)
    whole = solver.go_on(data.X, data.y, draws_of(data), start(data), 500)
    half = solver.go_on(data.X, data.y, draws_of(data), start(data), 200)
    rest = solver.go_on(data.X, data.y, draws_of(data), half, 300)
    assert rest.w.tobytes() == whole.w.tobytes()
    assert rest.mean.tobytes() == whole.mean.tobytes()
    assert (half.t, rest.t) == (200, 500)


def test_a_fit_samples_all_pairs_of_a_query_in_an_order_fixed_by_content():
    data = sparse_data(3, n=16)
    drawn = [sample_pair(0, t, _sampler(data, 1)) for t in range(3000)]
    y, query = data.y, data.query_of_row()
    pairs = {(i, j) for i in range(16) for j in range(16) if query[i] == query[j] and y[i] > y[j]}
    assert set(drawn) == pairs
    turned = np.arange(16)[::-1]
    other = RankingData.from_arrays(data.X[turned], y[turned], group_sizes=[8, 8])
    again = [sample_pair(0, t, _sampler(other, 1)) for t in range(50)]
    assert [(15 - i, 15 - j) for i, j in again] == drawn[:50]


def test_the_seed_decides():
    data, solver = sparse_data(2), PassiveAggressive()
    runs = [
        solver.go_on(data.X, data.y, draws_of(data), start(data), 100, seed=s).w for s in (0, 0, 1)
    ]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_before_the_first_step_the_mean_is_the_start():
    assert PairState.at(np.array([1.0, 2.0])).mean.tolist() == [1.0, 2.0]


def test_without_any_order_the_weights_stay():
    X = sparse.csr_array(np.eye(3))
    data = RankingData.from_arrays(X, [1, 1, 1], group_sizes=[3])
    state = PassiveAggressive().go_on(X, data.y, draws_of(data), start(data), 10)
    assert (state.t, state.moved, state.w.any()) == (10, 0, False)


def test_a_cap_that_allows_no_step_is_refused():
    data = sparse_data()
    with pytest.raises(UsageError, match="C, the longest step, must be above 0"):
        PassiveAggressive(C=0.0).go_on(data.X, data.y, draws_of(data), start(data), 1)


def test_steps_go_on_from_the_state_of_a_fitted_model_or_from_its_weights():
    assert _state_of(None, 3).w.tolist() == [0.0, 0.0, 0.0]
    pairs = PairState(np.array([1.0, 2.0]), np.array([0.5, 0.5]), t=4, moved=3)
    fitted = FittedPassiveAggressive(pairs.mean, None, 2, pairs=pairs)
    assert _state_of(fitted, 2) is pairs
    bare = _state_of(replace(fitted, pairs=None), 2)
    assert (bare.w.tolist(), bare.t) == (pairs.mean.tolist(), 0)
