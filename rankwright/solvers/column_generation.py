"""Column generation: add the most violated order of each query, solve the dual again (DORM).

The problem is the mean over n parts (queries) of a convex loss xi_k(w) >= 0 plus l2/2 |w|^2,
as (27) of `le2007dorm`, in whose terms C = 1/(n l2). Each part keeps a set S_k of planes
a'w + b <= xi_k(w); the dual is (1) of `rankwright.solvers.planes`, which is (28) of the paper, with
sums of x over S_k of at most 1/n.

Algorithm 2 visits part after part: the plane at the present w joins S_k if it is above all planes
of S_k and above 0 by more than the tolerance, and the dual is solved again. It ends with a pass in
which no set has grown. The vector a of a plane is the **difference** of the feature maps of the
order and of the reference, both in w and in the kernel of (7) and (28); the paper prints single
maps.

It is slower than `bundle` and needs more planes. It is here as published, and as a check of
`bundle`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.types import F64, StochasticProblem
from rankwright.errors import UsageError
from rankwright.solvers.bundle import CutResult
from rankwright.solvers.planes import Planes


@dataclass(frozen=True, slots=True, repr=False)
class ColumnGeneration(Part):
    """Column generation in the dual of the structured SVM (DORM's Algorithm 2).

    Parameters
    ----------
    tol
        Add a plane if it is violated by more than this.
    max_iter
        Maximum number of passes over the queries.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="position_svm", solver=rw.solvers.ColumnGeneration(max_iter=100))
    Ranker(loss='position_svm', solver=ColumnGeneration(max_iter=100))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"convex", "grad_queries", "shift_invariant"})

    tol: NonNegative = 1e-3
    max_iter: Count = 500

    def solve(
        self,
        problem: StochasticProblem,
        start: F64 | None = None,  # noqa: ARG002
    ) -> CutResult:
        """Minimise ``problem``, always from no planes; optimality is the duality gap."""
        if not problem.l2 > 0.0:
            raise UsageError("column_generation needs a penalty: give l2 above 0.")
        began = time.perf_counter()
        planes = Planes(problem.size, problem.l2, problem.n_parts)
        curve: list[float] = []
        has_grown = problem.n_parts > 0
        while has_grown and len(curve) < self.max_iter:
            has_grown = False
            for k in range(problem.n_parts):
                a, b = _plane(problem, k, planes.w)
                if float(a @ planes.w) + b > planes.highest(k) + self.tol:
                    has_grown = True
                    planes.add(a, b, k)
                    planes.solve(1e-3 * self.tol)
            curve.append(planes.value)
        value = problem.value(planes.w)
        return CutResult(
            w=planes.w,
            value=value,
            optimality=max(value - planes.value, 0.0),
            iterations=len(curve),
            stopped="max_iter was reached" if has_grown else "no set has grown",
            curve=curve,
            active=planes.active,
            qp_share=planes.seconds / (time.perf_counter() - began),
        )


def _plane(problem: StochasticProblem, k: int, w: F64) -> tuple[F64, float]:
    """Return the plane that touches the loss of part k at ``w``."""
    gradient = np.empty(problem.size)
    value = problem.part_grad(np.array([k]), w, gradient)
    a = gradient - problem.l2 * w
    return a, value - 0.5 * problem.l2 * float(w @ w) - float(a @ w)
