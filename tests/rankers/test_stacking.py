"""Weights of members on made-up scores, where it is known what they should be."""

import numpy as np
import pytest
from scipy.optimize import minimize
from small_data import small_data

from rankwright.metrics.base import metric
from rankwright.rankers.stacking import LOSS, Stack, WeightsProblem, within_queries

NDCG = metric("ndcg@10").for_selection()
DATA = small_data(queries=20, documents=10)
rng = np.random.default_rng(1)
GOOD = DATA.y + rng.normal(size=DATA.n_documents)
FAIR = DATA.y + 2.0 * rng.normal(size=DATA.n_documents)
NOISE = rng.normal(size=DATA.n_documents)


def stack(*members):
    return Stack(DATA, np.array(members, float)[:, None], NDCG)


def objective(found, pull):
    z = [scores / np.sqrt(within_queries(scores, DATA)) for scores in found.scores[:, 0]]
    bound = LOSS.bind(DATA)

    def value(w):
        apart = sum((w - np.mean(w)) ** 2)
        return (bound.value(sum(a * b for a, b in zip(w, z, strict=True))) + pull / 2 * apart) / 20

    return value


def test_the_deviation_is_the_root_of_the_mean_variance_within_queries():
    by_query = FAIR.reshape(20, 10)
    assert stack(FAIR).deviations == pytest.approx([np.sqrt(by_query.var(axis=1).mean())])
    shifted = FAIR + np.repeat(rng.normal(size=20), 10)  # a level of its own for each query
    assert stack(shifted).deviations == pytest.approx(stack(FAIR).deviations)
    weighted = DATA._replace(query_weight=np.arange(20.0))
    expected = np.average(by_query.var(axis=1), weights=np.arange(20.0))
    assert within_queries(FAIR, weighted) == pytest.approx(expected)


@pytest.mark.parametrize("pull", [0.0, 5.0, 100.0])
def test_weights_minimise_the_loss_and_add_up_to_one(pull):
    found = stack(GOOD, FAIR, NOISE)
    weights = found.fit_weights(pull)
    best = minimize(
        objective(found, pull), np.ones(3), bounds=[(0, None)] * 3, options={"ftol": 1e-14}
    ).x
    np.testing.assert_allclose(weights, best / best.sum(), atol=2e-4)


def test_the_gradient_is_that_of_the_objective():
    made = WeightsProblem(stack(GOOD, FAIR, NOISE).standardised, LOSS.bind(DATA), 20.0, 7.0)
    w, out = np.array([0.3, 0.9, 0.1]), np.empty(3)
    made.grad(w, out)
    steps = 1e-6 * np.eye(3)
    slopes = [(made.value(w + step) - made.value(w - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(out, slopes, rtol=1e-6)


def test_a_strong_pull_leaves_the_mean_and_none_leaves_noise_out():
    found = stack(GOOD, FAIR, NOISE)
    np.testing.assert_allclose(found.fit_weights(1e9), 1 / 3, atol=1e-6)
    free = found.fit_weights(0.0)
    assert free[0] > free[1] > free[2] >= 0.0
    assert free[2] < 0.1
    opposite = stack(GOOD, -GOOD).fit_weights(0.0)
    assert opposite.tolist() == [1.0, 0.0]


def test_the_scale_of_a_members_scores_changes_nothing():
    a = stack(GOOD, FAIR).fit_weights(3.0)
    b = stack(1000 * GOOD + 5, 0.01 * FAIR).fit_weights(3.0)
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_scores_that_do_not_differ_have_no_weight_unless_there_are_no_others():
    flat = np.zeros(DATA.n_documents)
    assert stack(GOOD, flat).fit_weights(1.0).tolist() == [1.0, 0.0]
    assert stack(flat, flat).fit_weights(1.0).tolist() == [0.5, 0.5]


def test_repeats_count_alike():
    both = Stack(DATA, np.array([[GOOD, FAIR], [NOISE, NOISE]]), NDCG)
    values = [stack(one, NOISE).per_query(np.array([1.0, 0.0])) for one in (GOOD, FAIR)]
    np.testing.assert_allclose(both.per_query(np.array([1.0, 0.0])), np.mean(values, axis=0))
    twice = Stack(DATA, np.array([[GOOD, GOOD], [FAIR, FAIR]]), NDCG)
    np.testing.assert_allclose(
        twice.fit_weights(2.0), stack(GOOD, FAIR).fit_weights(2.0), atol=1e-5
    )


def test_cross_fitted_weights_have_not_seen_the_query_they_are_judged_on():
    found = stack(GOOD, FAIR, NOISE)
    values = found.cross_fitted(0.0, seed=0)
    spoiled = DATA.y.copy()
    spoiled[:10] = -spoiled[:10] + spoiled.max()  # grades of the first query alone
    other = Stack(DATA._replace(y=spoiled), found.scores, NDCG)
    seen = [found.fit_weights(0.0, np.delete(np.arange(20), q)) for q in (0, 1)]
    again = [other.fit_weights(0.0, np.delete(np.arange(20), q)) for q in (0, 1)]
    np.testing.assert_array_equal(seen[0], again[0])
    assert (seen[1] != again[1]).any()
    assert values.shape == (20,)
