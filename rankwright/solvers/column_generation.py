"""Column generation: add the most violated order of each query, solve the dual again (DORM).

The problem is the mean over n parts (queries) of a convex loss xi_k(w) >= 0 plus strength/2 |w|^2,
as (27) of `le2007dorm`, in whose terms C = 1/(n strength). Each part keeps a set S_k of planes
a'w + b <= xi_k(w); with a weight x for each plane, the dual is

    max  b'x - |A'x|^2 / (2 strength),    sum of x over S_k <= 1/n,  x >= 0,    w = -A'x / strength
                                                                                                (1)

which is (28) there. Algorithm 2 visits part after part: the plane at the present w joins S_k if it
is above all planes of S_k and above 0 by more than the tolerance, and (1) is solved again. It ends
with a pass in which no set has grown. The vector a of a plane is the **difference** of the feature
maps of the order and of the reference, both in w and in the kernel of (7) and (28); the paper
prints single maps.

It is slower than `bundle` and needs more planes. It is here as published, and as a check of
`bundle`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.types import F64, StochasticProblem
from rankwright.errors import UsageError
from rankwright.solvers.bundle import CutResult, minimise_over_simplices


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

    needs: ClassVar[frozenset[str]] = frozenset({"convex", "queries", "shift_invariant"})

    tol: float = 1e-3
    max_iter: int = 500

    def solve(
        self,
        problem: StochasticProblem,
        start: F64 | None = None,  # noqa: ARG002
    ) -> CutResult:
        """Minimise ``problem``, always from no planes; optimality is the duality gap."""
        if not problem.strength > 0.0:
            raise UsageError("column_generation needs a penalty: give l2 above 0.")
        began, in_qp, evaluations = time.perf_counter(), 0.0, 0
        dual, gradient = _Dual(problem), np.empty(problem.size)
        curve: list[float] = []
        stopped = "no set has grown"
        grown = problem.n_parts > 0

        while grown:
            if len(curve) == self.max_iter:
                stopped = "max_iter was reached"
                break
            grown = False
            for k in range(problem.n_parts):
                a, b = _plane(problem, k, dual.w, gradient)
                evaluations += 1
                if float(a @ dual.w) + b > dual.slack(k) + self.tol:
                    grown = True
                    dual.add(k, a, b)
                    since = time.perf_counter()
                    dual.solve(1e-3 * self.tol)
                    in_qp += time.perf_counter() - since
            curve.append(dual.value)
        value = problem.value(dual.w)
        seconds = time.perf_counter() - began
        return CutResult(
            w=dual.w,
            value=value,
            optimality=max(value - dual.value, 0.0),
            iterations=len(curve),
            stopped=stopped,
            curve=curve,
            planes=dual.planes,
            active=dual.active,
            evaluations=evaluations,
            qp_share=in_qp / seconds,
        )


def _plane(problem: StochasticProblem, k: int, w: F64, gradient: F64) -> tuple[F64, float]:
    """Return the plane that touches the loss of part k at ``w``."""
    value = problem.part_grad(np.array([k]), w, gradient)
    a = gradient - problem.strength * w
    return a, value - 0.5 * problem.strength * float(w @ w) - float(a @ w)


class _Dual:
    """The dual (1): planes, their blocks and weights; each block begins with a plane of zeros."""

    def __init__(self, problem: StochasticProblem) -> None:
        n = problem.n_parts
        self._strength, self._n = problem.strength, n
        self._A, self._b = np.zeros((n, problem.size)), np.zeros(n)
        self._G, self._x = np.zeros((n, n)), np.full(n, 1.0 / max(n, 1))
        self._block = np.arange(n)
        self.w, self.value = np.zeros(problem.size), 0.0

    @property
    def planes(self) -> int:
        """Number of planes without those of zeros."""
        return len(self._b) - self._n

    @property
    def active(self) -> int:
        """Number of planes with a positive weight."""
        return int((self._x[self._n :] > 0.0).sum())

    def slack(self, k: int) -> float:
        """Return the highest plane of part k at w."""
        block = self._block == k
        return float((self._A[block] @ self.w + self._b[block]).max())

    def add(self, k: int, a: F64, b: float) -> None:
        """Add a plane to part k."""
        self._A, self._b = np.vstack([self._A, a]), np.append(self._b, b)
        products = self._A @ a / self._strength
        self._G = np.block([[self._G, products[:-1, None]], [products[None, :]]])
        self._x, self._block = np.append(self._x, 0.0), np.append(self._block, k)

    def solve(self, tolerance: float) -> None:
        """Compute the weights of the planes, and w."""
        minimise_over_simplices(self._G, self._b, self._x, block=self._block, tolerance=tolerance)
        self.w = self._A.T @ self._x / -self._strength
        self.value = float(self._b @ self._x) - 0.5 * self._strength * float(self.w @ self.w)
