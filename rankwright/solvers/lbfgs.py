"""L-BFGS for smooth problems, bounded below where asked (SciPy's L-BFGS-B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.types import F64, Problem, SolveResult


@dataclass(frozen=True, slots=True, repr=False)
class LBFGS(Part):
    """Limited-memory quasi-Newton: a few gradients make the curvature.

    Parameters
    ----------
    tol
        Stop when no component of the (projected) gradient exceeds this.
    max_iter
    nonnegative
        Keep every variable at 0 or above.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="listnet", solver=rw.solvers.LBFGS(max_iter=100))
    Ranker(loss='listnet', solver=LBFGS(max_iter=100))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "integrable"})

    tol: float = 1e-6
    max_iter: int = 500
    nonnegative: bool = False

    def solve(
        self,
        problem: Problem,
        start: F64 | None = None,
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""
        from scipy.optimize import minimize

        gradient = np.empty(problem.size)
        curve: list[float] = []

        def value_and_gradient(w: F64) -> tuple[float, F64]:
            return problem.grad(w, gradient), gradient.copy()

        def each(intermediate_result: object) -> None:
            w, value = intermediate_result.x, intermediate_result.fun  # type: ignore[attr-defined]
            curve.append(float(value))
            if callback is not None and callback(len(curve), w, value):
                raise StopIteration

        found = minimize(
            value_and_gradient,
            np.zeros(problem.size) if start is None else start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * problem.size if self.nonnegative else None,
            callback=each,
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-14},
        )
        problem.grad(found.x, gradient)
        if self.nonnegative:
            gradient[(found.x <= 0.0) & (gradient > 0.0)] = 0.0
        w, steepest = np.asarray(found.x, np.float64), float(np.abs(gradient).max(initial=0.0))
        return SolveResult(w, float(found.fun), steepest, int(found.nit), str(found.message), curve)
