"""The linear objective as solvers see it: all the data, single queries and fixed targets."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each
from scipy import sparse
from small_data import small_data

from rankwright.losses import loss
from rankwright.models.linear_objective import LinearObjective, diagonal, penalty

SCALE = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
V = np.linspace(-0.4, 0.6, 6)


def example():
    """Eight queries of unlike weight, the third of one grade only."""
    data = small_data(queries=8, documents=10)
    y = data.y.copy()
    y[20:30] = 1.0
    return replace(data, y=y, query_weight=np.arange(1.0, 9.0), X=data.X + 5.0)


def problem_of(name, data=None, l2=0.1, X=None, has_curvature=True, center=None, **parameters):
    data = example() if data is None else data
    made = loss(name, **parameters)
    data = data if X is None else replace(data, X=X)
    bound = made.bind(data)
    if not has_curvature:
        bound = SimpleNamespace(value=bound.value, grad=bound.grad, grad_queries=bound.grad_queries)
    return LinearObjective(bound, data, made.traits, scale=SCALE, l2=l2, center=center)


def gradient(problem, v, parts=None):
    out = np.empty(problem.size)
    if parts is None:
        return problem.grad(v, out), out
    return problem.part_grad(np.array(parts), v, out), out


def test_the_objective_is_the_weighted_mean_and_the_penalty_of_the_scaled_weights():
    data = example()
    s = data.X @ (V / SCALE)
    per_query = 0.5 * np.add.reduceat((s - data.y) ** 2, data.indptr[:-1])
    weight = data.query_weight * (np.arange(8) != 2)
    expected = weight[weight > 0] @ per_query[weight > 0] / weight.sum() + 0.05 * V @ V
    assert problem_of("squared").value(V) == pytest.approx(expected)


def test_queries_without_order_are_not_visited():
    assert problem_of("ranknet").n_parts == 7


@pytest.mark.parametrize("name", ["ranknet", "lambdarank", "listmle", "pair_hinge"])
def test_the_whole_is_the_mean_of_its_parts(name):
    problem = problem_of(name)
    value, whole = gradient(problem, V)
    parts = [gradient(problem, V, [k]) for k in range(problem.n_parts)]
    assert np.mean([part[0] for part in parts]) == pytest.approx(value)
    np.testing.assert_allclose(np.mean([part[1] for part in parts], axis=0), whole, atol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_batch_is_the_mean_of_its_parts(kind):
    problem = problem_of("ranknet", X=kind(example().X))
    value, whole = gradient(problem, V, [4, 0, 5])
    parts = [gradient(problem, V, [k]) for k in (4, 0, 5)]
    assert np.mean([part[0] for part in parts]) == pytest.approx(value)
    np.testing.assert_allclose(np.mean([part[1] for part in parts], axis=0), whole, atol=1e-10)


@pytest.mark.parametrize("name", ["ranknet", "listnet", "listmle", "squared", "gbrank", "interval"])
def test_no_part_turns_faster_than_its_bound(name):
    """The largest eigenvalue of each part's Hessian, by differences, at several weights."""
    problem = problem_of(name, l2=0.0)
    for v in (np.zeros(6), V, -3.0 * V):
        problem.begin_pass(0, v)
        for k in range(problem.n_parts):
            hessian = [
                (gradient(problem, v + h, [k])[1] - gradient(problem, v - h, [k])[1]) / 2e-5
                for h in 1e-5 * np.eye(6)
            ]
            turn = np.linalg.norm(hessian, 2)
            assert turn <= problem.part_smoothness(k, 0.0) * (1 + 1e-6)


def test_the_bound_does_not_see_what_all_documents_of_a_query_share():
    data = example()
    near, far = (problem_of("ranknet", X=data.X + shift) for shift in (0.0, 100.0))
    for problem in (near, far):
        problem.begin_pass(0, np.zeros(6))
    assert near.part_smoothness(1, 0.0) == pytest.approx(far.part_smoothness(1, 0.0), rel=0.02)


def test_a_bound_below_the_floor_is_the_floor():
    problem = problem_of("ranknet")
    problem.begin_pass(0, V)
    bound = problem.part_smoothness(3, 0.0)
    assert problem.part_smoothness(3, 2.0 * bound) == 2.0 * bound
    assert problem.part_smoothness(3, 0.5 * bound) == bound


def test_without_curvature_a_step_of_the_bound_moves_scores_by_less_than_one():
    data = example()
    problem = problem_of("ranknet", data, l2=0.0, has_curvature=False)
    problem.begin_pass(0, V)
    for k, q in enumerate([0, 1, 3, 4, 5, 6, 7]):
        step = gradient(problem, V, [k])[1] / problem.part_smoothness(k, 0.0)
        moved = data.X[10 * q : 10 * q + 10] @ (step / SCALE)
        assert np.linalg.norm(moved - moved.mean()) < 1.0


def test_each_pass_draws_the_noise_of_a_stochastic_loss():
    problem = problem_of("xendcg")
    gradients = []
    for t in (0, 1, 0):
        problem.begin_pass(t, V)
        gradients.append(gradient(problem, V, [0])[1])
    assert (gradients[0] == gradients[2]).all()
    assert not np.allclose(gradients[0], gradients[1])


@pytest.mark.parametrize("divergence", ["square", "kl"])
def test_held_to_its_targets_the_problem_touches_the_one_it_bounds(divergence):
    problem = problem_of("retarget", divergence=divergence)
    held = problem.with_targets(problem.targets(V))
    for a, b in zip(gradient(problem, V), gradient(held, V), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    for v in (np.zeros(6), -V, 2.0 * V):
        assert held.value(v) >= problem.value(v) - 1e-12


# --- intercept -------------------------------------------------------------------------------

CENTER = np.array([5.0, 4.0, 6.0, 5.0, 5.0, 0.0])
WITH_INTERCEPT = np.append(V, 0.7)


@each("kind", [np.asarray, sparse.csr_array])
def test_means_move_the_intercept_and_no_score(kind):
    data = example()
    problem = problem_of("squared", X=kind(data.X), center=CENTER)
    w, intercept = problem.weights(WITH_INTERCEPT)
    np.testing.assert_allclose(problem.scores(WITH_INTERCEPT), data.X @ w + intercept)
    np.testing.assert_allclose(problem.variables(w, intercept), WITH_INTERCEPT)
    plain = problem_of("squared", X=kind(data.X), center=np.zeros(6))
    assert plain.value(plain.variables(w, intercept)) == pytest.approx(
        problem.value(WITH_INTERCEPT)
    )


@each("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", ["squared", "retarget"])
def test_derivatives_agree_with_differences(name, kind):
    problem = problem_of(name, X=kind(example().X), center=CENTER)
    gradients, products = [], []
    for h in 1e-6 * np.eye(7):
        gradients.append(problem.value(WITH_INTERCEPT + h) - problem.value(WITH_INTERCEPT - h))
        ahead, behind = (gradient(problem, WITH_INTERCEPT + s * h)[1] for s in (1.0, -1.0))
        products.append((ahead - behind) / 2e-6)
    value, exact = gradient(problem, WITH_INTERCEPT)
    assert value == pytest.approx(problem.value(WITH_INTERCEPT))
    np.testing.assert_allclose(np.array(gradients) / 2e-6, exact, atol=1e-6)
    out = np.empty(7)
    for h, product in zip(np.eye(7), products, strict=True):
        problem.hess_vec(h, out)
        np.testing.assert_allclose(out, product, atol=1e-5)


@each("kind", [np.asarray, sparse.csr_array])
def test_the_diagonal_is_that_of_squared_columns(kind):
    data = example()
    problem = problem_of("squared", X=kind(data.X), center=CENTER)
    columns = np.column_stack([(data.X - CENTER) / SCALE, np.ones(len(data.X))])
    np.testing.assert_allclose(problem.squares(), (columns**2).sum(axis=0))
    assert (problem.precondition() == diagonal(problem.squares())).all()


@each("kind", [np.asarray, sparse.csr_array])
def test_no_part_with_an_intercept_turns_faster_than_its_bound(kind):
    X = np.where(np.abs(example().X) < 5.5, 0.0, example().X)
    problem = problem_of("squared", X=kind(X), center=CENTER, l2=0.0)
    problem.begin_pass(0, WITH_INTERCEPT)
    for k in range(problem.n_parts):
        ahead, behind = (
            np.array([gradient(problem, s * h, [k])[1] for h in np.eye(7)]) for s in (0.5, -0.5)
        )
        turn = np.linalg.norm(ahead - behind, 2)
        assert turn <= problem.part_smoothness(k, 0.0) <= 2.01 * turn


# --- sums ------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [None, CENTER], ids=["without intercept", "with intercept"])
def test_objectives_of_parts_of_the_data_add_up(center):
    data = example()
    whole = problem_of("squared", center=center)
    v = WITH_INTERCEPT[: whole.size]
    made = loss("squared")
    parts = []
    for queries in (slice(0, 3), slice(3, 4), slice(4, 8)):
        part = data.select(queries)
        parts.append(
            LinearObjective(
                made.bind(part),
                part,
                made.traits,
                scale=SCALE,
                center=center,
                total_weight=whole.total_weight,
            )
        )
    value, exact = gradient(whole, v)
    summed = sum(gradient(part, v)[1] for part in parts)
    total = sum(part.value(v) for part in parts) + penalty(whole.l2, v[:6], summed)
    assert total == pytest.approx(value)
    np.testing.assert_allclose(summed, exact)
    np.testing.assert_allclose(diagonal(sum(p.squares() for p in parts)), whole.precondition())
    assert sum(part.n_parts for part in parts) == whole.n_parts
