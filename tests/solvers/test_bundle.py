"""Cutting planes: the optimum of (27) as cvxpy finds it, and a certificate at every step."""

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from reference.position_svm import at_ranks, measured, reference_orders

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses import loss as make_loss
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.position_svm import PositionSVM
from rankwright.models.linear_problem import LinearProblem
from rankwright.rankers.base import Ranker, ranker
from rankwright.solvers.bundle import Bundle, minimise_over_simplices
from rankwright.solvers.column_generation import ColumnGeneration

L2 = 0.05


def some_data(seed=0, queries=5, size=5, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, features))
    y = (X @ rng.normal(size=features) + rng.normal(size=len(X))).round().clip(0, 2)
    y.reshape(queries, size)[:, :2] = 0.0, 1.0
    return RankingData.from_arrays(X, y, group_sizes=np.full(queries, size))


def problem_of(loss, data, l2=L2):
    weight = order_weight(data)
    return LinearProblem(
        data.X,
        data.indptr,
        loss.bind(data),
        float(weight.sum()),
        l2=l2,
        deviation=np.ones(data.n_features),
        visited=np.flatnonzero(weight),
        document_weight=document_weight(data),
        traits=loss.traits,
    )


def structured_svm(loss, data, l2=L2):
    """(27) with a constraint for every order of every query."""
    w, xi = cp.Variable(data.n_features), cp.Variable(data.n_queries)
    rules = [xi >= 0]
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        X, y = data.X[rows], data.y[rows]
        c = 1 / np.arange(2.0, len(y) + 2)
        orders = reference_orders(y, np.zeros(len(y)), loss.ties)
        cref = np.mean([at_ranks(o, c) for o in orders], axis=0)
        ideal = measured(loss.metric, np.sort(y)[::-1])
        every = list(permutations(range(len(y))))
        gradients = np.array([(at_ranks(o, c) - cref) @ X for o in every])
        losses = np.array([ideal - measured(loss.metric, y[list(o)]) for o in every])
        rules.append(gradients @ w + losses <= xi[q])
    value = l2 / 2 * cp.sum_squares(w) + cp.sum(xi) / data.n_queries
    return cp.Problem(cp.Minimize(value), rules).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("ties", ["mean", "file"])
@pytest.mark.parametrize("metric", ["ndcg@3", "mrr"])
def test_bundle_column_generation_and_cvxpy_agree(metric, ties):
    loss, data = PositionSVM(metric=metric, ties=ties), some_data()
    best = structured_svm(loss, data)
    problem = problem_of(loss, data)
    planes = Bundle(tol=1e-9).solve(problem)
    columns = ColumnGeneration(tol=1e-9).solve(problem)
    for found in (planes, columns):
        assert found.value == pytest.approx(best, rel=1e-7)
        assert problem.value(found.w) == pytest.approx(found.value, rel=1e-12)
        assert found.optimality <= 1e-8
    assert planes.stopped == "the gap is small"
    assert columns.stopped == "no set has grown"
    np.testing.assert_allclose(planes.w, columns.w, atol=1e-3)


@pytest.mark.parametrize("solver", [Bundle, ColumnGeneration])
@pytest.mark.parametrize("name", ["position_svm", "precision_svm", "rocarea_svm", "ordinal_hinge"])
def test_the_certificate_holds_at_every_step(solver, name):
    loss, data = make_loss(name), some_data(1, queries=6, size=12)
    problem = problem_of(loss, data, l2=0.01)
    best = Bundle(tol=1e-10, max_iter=5000).solve(problem)
    assert best.optimality <= 1e-9 * best.value
    for steps in range(0, 30, 3):
        found = solver(tol=1e-8, max_iter=steps).solve(problem)
        assert found.value - found.optimality <= best.value + 1e-9
        assert found.value >= best.value - 1e-9


def test_smooth_losses_have_the_optimum_of_lbfgs():
    from rankwright.solvers.lbfgs import LBFGS

    loss, data = make_loss("pair_hinge"), some_data(2, queries=8, size=10)
    problem = problem_of(loss, data, l2=0.1)
    planes = Bundle(tol=1e-8, max_iter=2000).solve(problem)
    smooth = LBFGS(tol=1e-9).solve(problem)
    assert planes.value == pytest.approx(smooth.value, rel=1e-7)
    assert planes.value - planes.optimality <= smooth.value + 1e-10


def test_rounds_of_a_difference_never_climb_and_end_below_the_start():
    loss, data = PositionSVM(ties="score"), some_data(3, queries=10, size=12)
    problem = problem_of(loss, data)
    found = Bundle(tol=1e-5).solve(problem)
    assert found.rounds > 1
    assert problem.value(found.w) <= problem.value(np.zeros(3))
    again = Bundle(tol=1e-5).solve(problem, found.w)
    assert again.value <= found.value * (1 + 1e-9)


def test_what_it_cannot_do_is_told():
    data = some_data()
    with pytest.raises(UsageError, match="give l2 above 0"):
        Bundle().solve(problem_of(PositionSVM(), data, l2=0.0))
    with pytest.raises(UsageError, match="give l2 above 0"):
        ColumnGeneration().solve(problem_of(PositionSVM(), data, l2=0.0))
    with pytest.raises(IncompatibleError, match="column_generation needs a convex loss"):
        ranker("dorm", solver="column_generation").fit(data)
    with pytest.raises(IncompatibleError, match="bundle needs a convex loss, or a difference"):
        Ranker("lambdarank", solver="bundle").fit(data)


def test_a_watcher_may_end_the_run():
    problem = problem_of(PositionSVM(), some_data(), l2=1e-3)
    for solver in (Bundle(tol=1e-9), ColumnGeneration(tol=1e-9)):
        found = solver.solve(problem, callback=lambda t, w, value: t == 2)
        assert (found.iterations, found.stopped) == (2, "the callback ended the run")


# --- bundle qp -------------------------------------------------------------------------------
# The dual problem of cutting planes against cvxpy, with its own bound on the error.


def optimum(G, b, block, cap):
    x = cp.Variable(len(b), nonneg=True)
    sums = [cp.sum(x[np.flatnonzero(block == k)]) == cap[k] for k in range(len(cap))]
    cost = cp.quad_form(x, cp.psd_wrap(G)) / 2 - b @ x
    return cp.Problem(cp.Minimize(cost), sums).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_feasible_and_as_near_the_optimum_as_told(seed):
    rng = np.random.default_rng(seed)
    n, d, blocks = 30, 5 + 20 * (seed % 2), 1 + seed
    A, b = rng.normal(size=(n, d)), rng.normal(size=n)
    block = np.concatenate([np.arange(blocks), rng.integers(0, blocks, n - blocks)])
    cap = rng.uniform(0.5, 2.0, blocks)
    x = np.zeros(n)
    x[:blocks] = cap
    gap = minimise_over_simplices(A @ A.T, b, x, block=block, tolerance=1e-9)
    assert (x >= 0).all()
    np.testing.assert_allclose(np.bincount(block, x), cap, rtol=1e-12)
    value = 0.5 * x @ A @ A.T @ x - b @ x
    best = optimum(A @ A.T, b, block, cap)
    assert gap <= 1e-9
    assert value - best <= gap + 1e-7 * abs(best)


def test_the_nearest_point_of_a_segment_to_the_origin():
    """Planes (1, 1) and (1, -3) of equal height: the shortest mean of the two is (1, 0)."""
    A = np.array([[1.0, 1.0], [1.0, -3.0]])
    x = np.array([0.0, 1.0])
    minimise_over_simplices(A @ A.T, np.zeros(2), x)
    assert x == pytest.approx([0.75, 0.25])


def test_few_steps_tell_how_far_they_are():
    rng = np.random.default_rng(7)
    A, b = rng.normal(size=(40, 8)), rng.normal(size=40)
    G, block = A @ A.T, np.zeros(40, int)
    best = optimum(G, b, block, [1.0])
    for steps in (0, 3, 10, 30):
        x = np.append(1.0, np.zeros(39))
        gap = minimise_over_simplices(G, b, x, tolerance=0.0, max_steps=steps)
        assert 0.5 * x @ G @ x - b @ x - best <= gap + 1e-7
