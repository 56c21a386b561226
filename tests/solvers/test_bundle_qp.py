"""The dual problem of cutting planes against cvxpy, with its own bound on the error."""

import cvxpy as cp
import numpy as np
import pytest

from rankwright.solvers.bundle_qp import minimise_over_simplices


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
