import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der, rosen_hess

from rankwright.solvers.lbfgs import LBFGS
from rankwright.solvers.tron import TRON


class Smooth:
    """A function of a few variables by its value, gradient and Hessian."""

    def __init__(self, size, value, gradient, hessian, diagonal=None):
        self.size, self.value, self._gradient, self._hessian = size, value, gradient, hessian
        self._diagonal = np.ones(size) if diagonal is None else diagonal
        self.products = 0

    def grad(self, w, out):
        self._at = w.copy()
        out[:] = self._gradient(w)
        return self.value(w)

    def hess_vec(self, v, out):
        self.products += 1
        out[:] = self._hessian(self._at) @ v

    def precondition(self):
        return self._diagonal


def quadratic(spread=1.0, seed=0, size=12, diagonal=None):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size)) * np.logspace(0, spread, size)
    H, b = root.T @ root + np.eye(size), rng.normal(size=size)
    made = Smooth(size, lambda w: w @ H @ w / 2 - b @ w, lambda w: H @ w - b, lambda _: H, diagonal)
    return made, np.linalg.solve(H, b), np.diag(H)


def test_a_quadratic_is_solved_exactly():
    problem, optimum, _ = quadratic()
    found = TRON(tol=1e-10).solve(problem)
    np.testing.assert_allclose(found.w, optimum, atol=1e-9)
    assert found.optimality <= 1e-10
    assert found.stopped == "the gradient is small"


def test_the_diagonal_saves_products_with_the_hessian():
    plain, _, diagonal = quadratic(spread=3.0)
    helped, optimum, _ = quadratic(spread=3.0, diagonal=diagonal)
    for problem in (plain, helped):
        found = TRON(tol=1e-8).solve(problem)
        np.testing.assert_allclose(found.w, optimum, atol=1e-6)
    assert helped.products < plain.products


def rosenbrock(size):
    return Smooth(size, rosen, rosen_der, rosen_hess)


def test_negative_curvature_is_followed_downhill_to_a_minimum():
    start = np.array([-1.2, 1.0, -0.5, 2.0])
    found = TRON(tol=1e-9).solve(rosenbrock(4), start)
    expected = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", tol=1e-14)
    assert found.value <= expected.fun + 1e-12
    assert np.abs(rosen_der(found.w)).max() <= 1e-9


def test_the_objective_never_rises():
    found = TRON().solve(rosenbrock(6), np.linspace(-2, 2, 6))
    assert (np.diff(found.curve) <= 0).all()


def logistic(seed=1, n=200, size=8):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, size)) * rng.choice([-1, 1], n)[:, None] + 0.5

    def p(w):
        return 1 / (1 + np.exp(A @ w))

    return Smooth(
        size,
        lambda w: np.logaddexp(0, -A @ w).sum() + 0.5 * w @ w,
        lambda w: -A.T @ p(w) + w,
        lambda w: A.T @ (A * (p(w) * (1 - p(w)))[:, None]) + np.eye(size),
    )


def test_the_tail_converges_superlinearly():
    problem, sizes, out = logistic(), [], np.empty(8)
    steps = TRON(tol=1e-11).solve(problem, np.full(8, 3.0)).iterations
    for limit in range(steps - 3, steps + 1):
        problem.grad(TRON(tol=1e-11, max_iter=limit).solve(problem, np.full(8, 3.0)).w, out)
        sizes.append(np.linalg.norm(out))
    last = np.array(sizes)
    ratios = last[1:] / last[:-1]
    assert (np.diff(ratios) < 0).all()  # each step gains more digits than the one before
    assert ratios[-1] < 1e-3


def test_it_ends_where_lbfgs_ends():
    a, b = (solver.solve(logistic()) for solver in (TRON(1e-9), LBFGS(1e-9)))
    np.testing.assert_allclose(a.w, b.w, atol=1e-6)
    assert a.value == pytest.approx(b.value, rel=1e-12)


def test_the_limit_ends_a_run():
    limited = TRON(max_iter=3).solve(rosenbrock(4))
    assert (limited.iterations, limited.stopped) == (3, "max_iter was reached")


def test_an_optimal_start_stays():
    problem, optimum, _ = quadratic()
    found = TRON(tol=1e-6).solve(problem, optimum)
    assert found.iterations == 0
    assert (found.w == optimum).all()
