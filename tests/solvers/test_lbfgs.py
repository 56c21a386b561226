import numpy as np
import pytest

from rankwright.solvers.lbfgs import LBFGS

A = np.diag([1.0, 10.0, 100.0]) + 0.1
B = np.array([1.0, -2.0, 3.0])


class Quadratic:
    """1/2 w'Aw - b'w, minimised where A w = b."""

    size = 3

    def value(self, w):
        return 0.5 * w @ A @ w - B @ w

    def grad(self, w, out):
        out[:] = A @ w - B
        return self.value(w)


def test_the_minimum_of_a_quadratic():
    found = LBFGS(tol=1e-10).solve(Quadratic())
    np.testing.assert_allclose(found.w, np.linalg.solve(A, B), atol=1e-8)
    assert found.optimality < 1e-8
    assert found.value == pytest.approx(Quadratic().value(found.w))


def test_the_bounded_minimum_meets_the_optimality_conditions():
    found = LBFGS(tol=1e-10, nonnegative=True).solve(Quadratic())
    gradient = A @ found.w - B
    assert (found.w >= 0).all()
    assert found.w[1] == 0
    assert gradient[1] > 0
    assert np.abs(gradient[[0, 2]]).max() < 1e-8


def test_the_limit_stops_the_run():
    found = LBFGS(max_iter=2).solve(Quadratic())
    assert found.iterations == len(found.curve) == 2


def test_a_start_at_the_minimum_stays_there():
    best = np.linalg.solve(A, B)
    assert LBFGS().solve(Quadratic(), best).iterations <= 1
