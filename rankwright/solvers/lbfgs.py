"""L-BFGS for smooth problems, with variables bounded below on request (SciPy's L-BFGS-B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.types import F64, Problem, SolveResult


@dataclass(frozen=True, slots=True, repr=False)
class LBFGS(Part):
    """Limited-memory quasi-Newton method: estimates curvature from the last few gradients.

    Parameters
    ----------
    tol
        Stop when no component of the (projected) gradient exceeds this.
    max_iter
        Maximum number of iterations.
    nonnegative
        Keep every variable at 0 or above.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="listnet", solver=rw.solvers.LBFGS(max_iter=100))
    Ranker(loss='listnet', solver=LBFGS(max_iter=100))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "integrable"})

    tol: NonNegative = 1e-6
    max_iter: Count = 500
    nonnegative: bool = False

    def solve(self, problem: Problem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""
        from scipy.optimize import minimize

        gradient = np.empty(problem.size)
        curve: list[float] = []

        def value_and_gradient(w: F64) -> tuple[float, F64]:
            return problem.grad(w, gradient), gradient.copy()

        def record(intermediate_result: Any) -> None:
            curve.append(float(intermediate_result.fun))

        result = minimize(
            value_and_gradient,
            np.zeros(problem.size) if start is None else start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * problem.size if self.nonnegative else None,
            callback=record,
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-14},
        )
        w = np.asarray(result.x, np.float64)
        problem.grad(w, gradient)
        if self.nonnegative:
            gradient[(w <= 0.0) & (gradient > 0.0)] = 0.0
        optimality = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(
            w, float(result.fun), optimality, int(result.nit), str(result.message), curve
        )
