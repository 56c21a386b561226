"""Coordinate descent with l1 and l2 penalties: most weights stay exactly 0.

    min over w of  f(w) + l1 |w|_1,      f smooth and convex, the l2 term in it                (1)

is solved one weight at a time; the problem knows how to step along a column. At the optimum, with
g the gradient of f,

    g_j = -l1 sign(w_j)  where w_j != 0,     |g_j| <= l1  where w_j = 0                         (2)

and the largest amount by which (2) is missed, over all columns, is the residual that ends the run
and that the result reports as its optimality.

A pass over all columns is only taken to find that residual. Between two of them the steps sweep
over a working set: the columns with a weight and those that miss (2) most, up to twice as many.
Inside it, columns that rest at 0 are left out until the others have settled.

`path` solves (1) for falling l1, each from the weights of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.types import F64, I64, Problem, SolveResult
from rankwright.errors import UsageError
from rankwright.solvers.oracle_log import recall

_FIRST = 100  # columns of the first working set
_INNER = 0.1  # share of the residual at which a working set is settled


class ColumnProblem(Problem, Protocol):
    """A problem (1) that can step along its columns."""

    l1: float
    l2: float

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient of f to ``out`` and return (1); steps go on from ``w``."""

    def sweep(self, w: F64, columns: I64, *, step: str) -> F64:
        """Step along each of ``columns``, changing ``w``; return by how much each missed (2)."""


@dataclass(frozen=True, slots=True, repr=False)
class Coordinate(Part):
    """Coordinate descent on working sets of columns; the solver of sparse models.

    Parameters
    ----------
    tol
        Stop when no column misses its optimality condition by more than this.
    max_iter
        Most sweeps over a working set.
    step : str
        How the problem finds the length of a step; the domination loss knows "log1p", and "bound",
        as it was printed, which is much slower.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="domination", solver=rw.solvers.Coordinate(max_iter=100))
    Ranker(loss='domination', solver=Coordinate(max_iter=100))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"columns"})
    by_column: ClassVar[bool] = True

    tol: float = 1e-6
    max_iter: int = 500
    step: str = "log1p"

    def solve(
        self,
        problem: ColumnProblem,
        start: F64 | None = None,
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        g = np.empty(problem.size)
        curve: list[float] = []
        sweeps, stopped = 0, "the optimality conditions hold"
        while True:
            value = problem.grad(w, g)
            curve.append(value)
            missed = residuals(g, w, problem.l1)
            optimality = float(missed.max(initial=0.0))
            if optimality <= self.tol:
                break
            if sweeps >= self.max_iter:
                stopped = "max_iter was reached"
                break
            if callback is not None and callback(len(curve), w, value):
                stopped = "the callback ended the run"
                break
            columns = working_set(missed, w) if problem.l1 > 0.0 else np.arange(problem.size)
            enough = max(_INNER * optimality, 0.5 * self.tol)
            most = self.max_iter - sweeps
            settle = partial(self._settle, w=w, columns=columns, enough=enough, most=most)
            w[:], more = recall(problem, settle, w)
            sweeps += int(more[0])
        return SolveResult(w, value, optimality, sweeps, stopped, curve)

    def _settle(
        self, problem: ColumnProblem, w: F64, columns: I64, enough: float, most: int
    ) -> tuple[F64, int]:
        """Sweep over ``columns`` until none misses (2) by ``enough``; return w and the sweeps."""
        active = columns
        for sweeps in range(1, most + 1):
            missed = problem.sweep(w, active, step=self.step)
            if missed.max(initial=0.0) > enough:
                active = active[(w[active] != 0.0) | (missed > 0.0)]
            elif len(active) == len(columns):
                return w, sweeps
            else:
                active = columns
        return w, most

    def path(
        self, problem: ColumnProblem, penalties: Sequence[float], start: F64 | None = None
    ) -> Iterator[SolveResult]:
        """Yield the solution for each l1 of ``penalties``, from the largest down."""
        if any(b > a for a, b in pairwise(penalties)):
            raise UsageError("a path of l1 penalties goes from the largest down.")
        w = start
        for l1 in penalties:
            problem.l1 = l1
            result = self.solve(problem, w)
            w = result.w
            yield result


def residuals(g: F64, w: F64, l1: float) -> F64:
    """Return by how much each column misses (2)."""
    return np.where(w == 0.0, np.maximum(np.abs(g) - l1, 0.0), np.abs(g + l1 * np.sign(w)))


def working_set(missed: F64, w: F64) -> I64:
    """Return the columns to sweep over: those with a weight, and as many that miss (2) most."""
    kept = np.flatnonzero(w)
    rest = np.where(w == 0.0, missed, 0.0)
    room = min(max(_FIRST, len(kept)), int(np.count_nonzero(rest)))
    added = np.argsort(-rest, kind="stable")[:room]
    return np.sort(np.concatenate([kept, added]))


def largest_l1(problem: ColumnProblem) -> float:
    """Return the least l1 at which every weight is 0."""
    g = np.empty(problem.size)
    problem.grad(np.zeros(problem.size), g)
    return float(np.abs(g).max(initial=0.0))


def falling_l1(problem: ColumnProblem, *, steps: int = 20, least: float = 1e-3) -> list[float]:
    """Return ``steps`` penalties from just below `largest_l1` down to ``least`` times it."""
    top = largest_l1(problem)
    return [float(top * least ** ((k + 1) / steps)) for k in range(steps)]
