"""Effects of positions beside scores: against SciPy's minimum, and clicks that are known."""

import numpy as np
import pytest
from reference.dual_softmax import with_positions

import rankwright as rw
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses import DualSoftmax
from rankwright.testing.losses import central_differences


def clicked_lists(seed=0, queries=6, size=5):
    """Return lists with positions in a random order, and random click rates."""
    rng = np.random.default_rng(seed)
    n = queries * size
    return RankingData.from_arrays(
        rng.normal(size=(n, 3)),
        rng.random(n) * (rng.random(n) < 0.7),
        group_sizes=[size] * queries,
        sample_weight=rng.integers(1, 9, n),
        position=np.concatenate([rng.permutation(size) + 1 for _ in range(queries)]),
    )


def test_value_and_effects_are_those_of_a_generic_minimisation():
    data, loss = clicked_lists(), DualSoftmax(ridge=0.1)
    s = np.random.default_rng(1).normal(size=data.n_documents)
    bound = loss.bind(data)
    w = data.sample_weight
    value, effect = with_positions(loss, s, data.y, w, data.position - 1, data.indptr)
    assert bound.value(s) == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(np.log(bound.examination), effect, atol=1e-5)


def test_the_gradient_is_that_of_the_minimum_over_effects():
    data = clicked_lists(seed=2)
    s = np.random.default_rng(3).normal(size=data.n_documents)
    bound = DualSoftmax().bind(data)
    grad = np.empty(len(s))
    bound.grad(s, grad)
    np.testing.assert_allclose(grad, central_differences(bound.value, s), atol=1e-5)


def test_examination_is_found_where_clicks_are_relevance_times_examination():
    rng = np.random.default_rng(4)
    data = clicked_lists(seed=4, queries=30)
    s, theta = rng.normal(size=data.n_documents), np.array([1.0, 0.6, 0.3, 0.2, 0.05])
    exact = data._replace(y=theta[data.position - 1] * np.exp(s))
    bound = DualSoftmax(ridge=1e-9).bind(exact)
    bound.value(s)
    np.testing.assert_allclose(bound.examination, theta, rtol=1e-5)
    assert bound.positions.tolist() == [1, 2, 3, 4, 5]


def test_effects_stay_finite_at_a_position_without_clicks():
    data = clicked_lists(seed=5)
    data = data._replace(y=np.where(data.position == 3, 0.0, data.y))
    bound = DualSoftmax().bind(data)
    assert np.isfinite(bound.value(np.zeros(data.n_documents)))
    assert 0.0 < bound.examination[2] < 0.05


def test_a_list_with_equal_rates_speaks_of_positions():
    data = clicked_lists(seed=6, queries=1)
    equal = data._replace(y=np.full(5, 0.5), sample_weight=None)
    assert DualSoftmax().bind(equal).value(np.zeros(5)) == pytest.approx(2.5 * np.log(5))
    assert DualSoftmax().bind(equal._replace(position=None)).value(np.zeros(5)) == 0.0


def test_passes_over_single_queries_come_to_the_same_effects():
    data, loss = clicked_lists(seed=8), DualSoftmax(ridge=1e-6)
    s = np.random.default_rng(9).normal(size=data.n_documents)
    whole, parts = loss.bind(data), loss.bind(data)
    whole.value(s)
    out = np.zeros(len(s))
    for t in range(1, 200):
        parts.set_iteration(t)
        for lo, hi in ((0, 2), (2, 6)):
            parts.grad_queries(lo, hi, s, out)
    np.testing.assert_allclose(parts.examination, whole.examination, rtol=1e-4)
    again = loss.bind(data)
    again.load_state(parts.state())
    theirs = np.zeros(len(s))
    assert again.grad_queries(0, 6, s, theirs) == parts.grad_queries(0, 6, s, out)
    assert theirs.tolist() == out.tolist()


def test_models_see_positions_and_rank_without_them():
    pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    queries, size = 60, 8
    x = rng.normal(size=(queries, size))
    place = np.argsort(np.argsort(-x - rng.normal(size=x.shape), axis=1), axis=1) + 1
    data = RankingData.from_arrays(
        np.column_stack([x.ravel(), rng.normal(size=queries * size)]),
        (np.exp(-x) / (1 + np.exp(-x)) / place).ravel(),  # the logger was wrong: low x is relevant
        group_sizes=[size] * queries,
        position=place.ravel(),
    )
    network = rw.models.Network(hidden_layer_sizes=(8,), epochs=60, learning_rate=0.01)
    for model in ("linear", "trees", network):
        fitted = rw.Ranker(loss="dual_softmax", model=model).fit(data)
        assert np.corrcoef(fitted.predict(data), x.ravel())[0, 1] < -0.9
        unplaced = rw.Ranker(loss="dual_softmax", model=model).fit(data._replace(position=None))
        assert np.corrcoef(unplaced.predict(data), x.ravel())[0, 1] > -0.5


def test_what_makes_no_sense_is_refused():
    data = clicked_lists()
    with pytest.raises(UsageError, match="ridge"):
        DualSoftmax(ridge=0.0).bind(data)
    with pytest.raises(DataError, match="positions that are numbers"):
        DualSoftmax().bind(data._replace(position=data.position.astype(str)))
