"""Column generation: for each query its most violated order, then the dual problem again (DORM).

The problem is the mean over n parts (queries) of a convex loss xi_k(w) >= 0 plus strength/2 |w|^2,
as (27) of `le2007dorm`, in whose terms C = 1/(n strength). Each part keeps a set S_k of planes
a'w + b <= xi_k(w); with a weight x for each plane, the dual is

    max  b'x - |A'x|^2 / (2 strength),    sum of x over S_k <= 1/n,  x >= 0,    w = -A'x / strength
                                                                                                (1)

which is (28) there. Algorithm 2: part after part, the plane of the present w joins S_k if it stands
above all planes of S_k and above 0 by more than the tolerance, and (1) is solved again; the end is
a pass in which no set has grown. A plane's a is the **difference** of the feature maps of the order
and of the reference, in w as in the kernel of (7) and (28), where the paper prints single maps.

Slower than `bundle`, with more planes; kept as published, and as a check on the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.types import F64, StochasticProblem
from rankwright.errors import UsageError
from rankwright.solvers.bundle import CutResult, minimise_over_simplices
from rankwright.solvers.oracle_log import recall


@dataclass(frozen=True, slots=True, repr=False)
class ColumnGeneration(Part):
    """The dual of the structured SVM, a plane at a time for each query (DORM's Algorithm 2).

    Parameters
    ----------
    tol
        A plane joins where it is violated by more than this.
    max_iter
        Passes over the queries.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="position_svm", solver=rw.solvers.ColumnGeneration(max_iter=100))
    Ranker(loss='position_svm', solver=ColumnGeneration(max_iter=100))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"convex"})

    tol: float = 1e-3
    max_iter: int = 500

    def solve(
        self,
        problem: StochasticProblem,
        start: F64 | None = None,  # noqa: ARG002
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> CutResult:
        """Minimise ``problem``, whatever the start from no planes; optimality is the gap."""
        if not problem.strength > 0.0:
            raise UsageError("column_generation needs a penalty: give l2 above 0.")
        began, in_qp, looks = time.perf_counter(), 0.0, 0
        dual, gradient = _Dual(problem), np.empty(problem.size)
        curve: list[float] = []
        stopped = "no set has grown"
        grown = problem.n_parts > 0

        def look(itself: StochasticProblem, k: int) -> tuple[F64, float] | tuple[()]:
            a, b = _plane(itself, k, dual.w, gradient)
            joins = float(a @ dual.w) + b > dual.slack(k) + self.tol
            return (a, b) if joins else ()

        while grown:
            if len(curve) == self.max_iter:
                stopped = "max_iter was reached"
                break
            grown = False
            for k in range(problem.n_parts):
                plane = recall(problem, partial(look, k=k), dual.w, sizes=[problem.size, 1])
                looks += 1
                if plane:
                    grown = True
                    dual.add(k, plane[0], float(plane[1][0]))
                    since = time.perf_counter()
                    dual.solve(1e-3 * self.tol)
                    in_qp += time.perf_counter() - since
            curve.append(dual.value)
            if callback is not None and callback(len(curve), dual.w, dual.value):
                stopped = "the callback ended the run"
                break
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
            looks=looks,
            qp_share=in_qp / seconds,
        )


def _plane(problem: StochasticProblem, k: int, w: F64, gradient: F64) -> tuple[F64, float]:
    """Return the plane of part k that touches its loss at ``w``."""
    value = problem.part_grad(np.array([k]), w, gradient)
    a = gradient - problem.strength * w
    return a, value - 0.5 * problem.strength * float(w @ w) - float(a @ w)


class _Dual:
    """(1): planes, their blocks and weights; the first of each block is the plane of zeros."""

    def __init__(self, problem: StochasticProblem) -> None:
        n = problem.n_parts
        self._strength, self._n = problem.strength, n
        self._A, self._b = np.zeros((n, problem.size)), np.zeros(n)
        self._G, self._x = np.zeros((n, n)), np.full(n, 1.0 / max(n, 1))
        self._block = np.arange(n)
        self.w, self.value = np.zeros(problem.size), 0.0

    @property
    def planes(self) -> int:
        """How many planes there are, those of zeros not counted."""
        return len(self._b) - self._n

    @property
    def active(self) -> int:
        """How many of them carry weight."""
        return int((self._x[self._n :] > 0.0).sum())

    def slack(self, k: int) -> float:
        """Return the highest plane of part k at w."""
        own = self._block == k
        return float((self._A[own] @ self.w + self._b[own]).max())

    def add(self, k: int, a: F64, b: float) -> None:
        """Add a plane to part k."""
        self._A, self._b = np.vstack([self._A, a]), np.append(self._b, b)
        products = self._A @ a / self._strength
        self._G = np.block([[self._G, products[:-1, None]], [products[None, :]]])
        self._x, self._block = np.append(self._x, 0.0), np.append(self._block, k)

    def solve(self, tolerance: float) -> None:
        """Find the weights, and with them w."""
        minimise_over_simplices(self._G, self._b, self._x, block=self._block, tolerance=tolerance)
        self.w = self._A.T @ self._x / -self._strength
        self.value = float(self._b @ self._x) - 0.5 * self._strength * float(self.w @ self.w)
