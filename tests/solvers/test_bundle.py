"""Cutting planes: the optimum of (27) as cvxpy finds it, and a certificate at every step."""

import cvxpy as cp
import numpy as np
import pytest
from svm_problems import problem_of, some_data

from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses import loss as make_loss
from rankwright.losses.position_svm import PositionSVM
from rankwright.rankers.base import Ranker, ranker
from rankwright.solvers.bundle import Bundle, _Search
from rankwright.solvers.column_generation import ColumnGeneration
from rankwright.solvers.planes import minimise_over_simplices


@pytest.mark.parametrize("solver", [Bundle, ColumnGeneration])
@pytest.mark.parametrize("name", ["position_svm", "precision_svm", "rocarea_svm"])
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


def test_planes_of_a_difference_stay_below_it_after_ties_are_separated():
    loss, data = PositionSVM(ties="score"), some_data(5, queries=10, size=12)
    problem = problem_of(loss, data)
    search = _Search(problem)
    w = search.separate_ties(np.zeros(3))
    search.linearise(w)
    u, c = problem.concave_part(w)
    for v in np.random.default_rng(0).normal(size=(20, 3)):
        highest = max(search.planes._A @ v + search.planes._b)
        assert highest <= problem.cut(v)[2] - u @ v + 1e-9
    assert c == pytest.approx(problem.concave_part(w)[1])


def test_what_it_cannot_do_is_reported():
    data = some_data()
    with pytest.raises(UsageError, match="give l2 above 0"):
        Bundle().solve(problem_of(PositionSVM(), data, l2=0.0))
    with pytest.raises(UsageError, match="give l2 above 0"):
        ColumnGeneration().solve(problem_of(PositionSVM(), data, l2=0.0))
    with pytest.raises(IncompatibleError, match="column_generation needs a convex loss"):
        ranker("dorm", solver="column_generation").fit(data)
    for solver in ("bundle", "column_generation"):
        with pytest.raises(IncompatibleError, match="needs a loss that is unchanged by shifts"):
            Ranker("squared", solver=solver).fit(data)
    with pytest.raises(IncompatibleError, match="bundle needs a convex loss, or a difference"):
        Ranker("lambdarank", solver="bundle").fit(data)


def test_the_limit_ends_the_run():
    problem = problem_of(PositionSVM(), some_data(), l2=1e-3)
    for solver in (Bundle(tol=1e-9, max_iter=2), ColumnGeneration(tol=1e-9, max_iter=2)):
        found = solver.solve(problem)
        assert (found.iterations, found.stopped) == (2, "max_iter was reached")


# The dual problem of cutting planes against cvxpy, with its own bound on the error.
def optimum(G, b, block, cap):
    x = cp.Variable(len(b), nonneg=True)
    sums = [cp.sum(x[np.flatnonzero(block == k)]) == cap[k] for k in range(len(cap))]
    cost = cp.quad_form(x, cp.psd_wrap(G)) / 2 - b @ x
    return cp.Problem(cp.Minimize(cost), sums).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_feasible_and_as_near_the_optimum_as_the_gap_says(seed):
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
    minimise_over_simplices(A @ A.T, np.zeros(2), x, block=np.zeros(2, int))
    assert x == pytest.approx([0.75, 0.25])


def test_few_steps_tell_how_far_they_are():
    rng = np.random.default_rng(7)
    A, b = rng.normal(size=(40, 8)), rng.normal(size=40)
    G, block = A @ A.T, np.zeros(40, int)
    best = optimum(G, b, block, [1.0])
    for steps in (0, 3, 10, 30):
        x = np.append(1.0, np.zeros(39))
        gap = minimise_over_simplices(G, b, x, block=block, tolerance=0.0, max_steps=steps)
        assert 0.5 * x @ G @ x - b @ x - best <= gap + 1e-7
