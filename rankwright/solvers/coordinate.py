"""Coordinate descent with l1 and l2 penalties, for models with few weights other than 0.

    min over w of  f(w) + l1 |w|_1,      f smooth and convex, the l2 term in it                (1)

is solved one weight at a time; the problem computes the step along a column. At the optimum, with
g the gradient of f,

    g_j = -l1 sign(w_j)  if w_j != 0,     |g_j| <= l1  if w_j = 0                             (2)

The largest violation of (2) over all columns is the residual. It ends the run, and the result
reports it as its optimality.

A pass over all columns only computes that residual. Between two such passes the steps sweep over a
working set: the columns with a weight and the columns with the largest violations, up to twice as
many. Within a working set, columns that stay at 0 are skipped until the rest has converged.

A path of falling l1 is fast if each problem starts from the weights of the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.types import F64, I64, Problem, SolveResult

_FIRST = 100  # columns of the first working set
_INNER = 0.1  # a working set has converged at this share of the residual


class ColumnProblem(Problem, Protocol):
    """A problem (1) with steps along its columns."""

    l1: float
    l2: float

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient of f to ``out`` and return (1); steps start from ``w``."""

    def sweep(self, w: F64, columns: I64, *, step: str) -> F64:
        """Step along each of ``columns``, changing ``w``; return the violation of (2) of each."""


@dataclass(frozen=True, slots=True, repr=False)
class Coordinate(Part):
    """Coordinate descent on working sets of columns; the solver of sparse models.

    Parameters
    ----------
    tol
        Stop when no column violates its optimality condition by more than this.
    max_iter
        Maximum number of sweeps over a working set.
    step : str
        How the problem computes the length of a step. The domination loss has "log1p" and, as
        printed in the paper, "bound", which is much slower.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="domination", solver=rw.solvers.Coordinate(max_iter=100))
    Ranker(loss='domination', solver=Coordinate(max_iter=100))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"by_column"})
    by_column: ClassVar[bool] = True

    tol: NonNegative = 1e-6
    max_iter: Count = 500
    step: Literal["log1p", "bound"] = "log1p"

    def solve(self, problem: ColumnProblem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        g = np.empty(problem.size)
        curve: list[float] = []
        sweeps, stopped = 0, "the optimality conditions hold"
        while True:
            value = problem.grad(w, g)
            curve.append(value)
            violation = residuals(g, w, problem.l1)
            optimality = float(violation.max(initial=0.0))
            if optimality <= self.tol:
                break
            if sweeps >= self.max_iter:
                stopped = "max_iter was reached"
                break
            columns = working_set(violation, w) if problem.l1 > 0.0 else np.arange(problem.size)
            tolerance = max(_INNER * optimality, 0.5 * self.tol)
            sweeps += self._sweep(problem, w, columns, tolerance, self.max_iter - sweeps)
        return SolveResult(w, value, optimality, sweeps, stopped, curve)

    def _sweep(
        self, problem: ColumnProblem, w: F64, columns: I64, tolerance: float, limit: int
    ) -> int:
        """Sweep over ``columns``, changing ``w``, until (2) holds; return the number of sweeps."""
        active = columns
        for sweeps in range(1, limit + 1):
            violation = problem.sweep(w, active, step=self.step)
            if violation.max(initial=0.0) > tolerance:
                active = active[(w[active] != 0.0) | (violation > 0.0)]
            elif len(active) == len(columns):
                return sweeps
            else:
                active = columns
        return limit


def residuals(g: F64, w: F64, l1: float) -> F64:
    """Return the violation of (2) of each column."""
    return np.where(w == 0.0, np.maximum(np.abs(g) - l1, 0.0), np.abs(g + l1 * np.sign(w)))


def working_set(violation: F64, w: F64) -> I64:
    """Return the columns to sweep over: all with a weight, and the worst without."""
    weighted = np.flatnonzero(w)
    unweighted = np.where(w == 0.0, violation, 0.0)
    room = min(max(_FIRST, len(weighted)), int(np.count_nonzero(unweighted)))
    added = np.argsort(-unweighted, kind="stable")[:room]
    return np.sort(np.concatenate([weighted, added]))


def largest_l1(problem: ColumnProblem) -> float:
    """Return the smallest l1 that makes every weight 0."""
    g = np.empty(problem.size)
    problem.grad(np.zeros(problem.size), g)
    return float(np.abs(g).max(initial=0.0))


def falling_l1(problem: ColumnProblem, *, steps: int = 20, least: float = 1e-3) -> list[float]:
    """Return ``steps`` penalties from just below `largest_l1` down to ``least`` times it."""
    top = largest_l1(problem)
    return [float(top * least ** ((k + 1) / steps)) for k in range(steps)]
