"""Gradient descent that halves its step until the value falls."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.types import SolveResult


@dataclass(frozen=True)
class Descent:
    """Steps down the gradient, each as long as the value still falls."""

    needs: ClassVar[frozenset] = frozenset({"smooth", "integrable"})

    max_iter: int = 50
    tol: float = 1e-6

    def solve(self, problem, start=None, *, callback=None):
        """Minimise ``problem`` from ``start``."""
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        grad, curve, step = np.empty(problem.size), [], 1.0
        value = problem.grad(w, grad)
        for t in range(1, self.max_iter + 1):
            while step > 1e-12 and problem.value(w - step * grad) > value - 1e-4 * step * (
                grad @ grad
            ):
                step /= 2.0
            w = w - step * grad
            value = problem.grad(w, grad)
            curve.append(float(value))
            step *= 2.0
            if (callback is not None and callback(t, w, value)) or np.abs(grad).max() < self.tol:
                break
        return SolveResult(w, float(value), float(np.abs(grad).max()), len(curve), "done", curve)
