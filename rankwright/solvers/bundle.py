"""Cutting planes with a line search and a duality gap, for losses with kinks.

The problem is J(w) = l2/2 |w|^2 + M(w), with M convex and known by planes that touch it from
below (`rankwright.solvers.planes`). Replacing M by the maximum of the planes gives a small problem,
whose dual value D is a lower bound of the optimum: J(best w so far) - D is a duality gap, which
bounds the possible gain at every step. Plain cutting planes (`joachims2009cutting`) use the
minimiser of the small problem as the next point and zigzag. This solver searches the line from the
best w to that minimiser (`franc2009ocas`), adds a plane at every point it evaluates, and drops
planes without weight after a while.

A **difference** of convex functions, M - N, is solved in rounds. Each round replaces N by its plane
u'w + c at the present w. The remaining problem is convex with the same planes of M, less u, and no
round makes J larger (`le2007dorm` with tied grades in order of score). The gap refers to the last
round.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.types import F64, CutProblem, SolveResult
from rankwright.errors import UsageError
from rankwright.solvers.planes import Planes

_IDLE = 25  # small problems without weight after which a plane is dropped
_TRIES = 4  # points on a line
_SMALL_GAP = "the gap is small"


@dataclass(frozen=True, slots=True)
class CutResult(SolveResult):
    """Result of cutting planes.

    Parameters
    ----------
    active
        Number of planes with a positive weight.
    rounds
        Number of convex problems solved.
    qp_share
        Share of the time spent in the small problems.
    """

    active: int = 0
    rounds: int = 1
    qp_share: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Bundle(Part):
    """Cutting planes with line search and a duality gap; for losses with kinks.

    Parameters
    ----------
    tol
        Stop when the duality gap is below this share of the objective.
    max_iter
        Maximum number of small problems, over all rounds.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="pair_hinge", solver=rw.solvers.Bundle(tol=0.0001))
    Ranker(loss='pair_hinge', solver=Bundle(tol=0.0001))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"convex_parts"})

    tol: NonNegative = 1e-6
    max_iter: Count = 500

    def solve(self, problem: CutProblem, start: F64 | None = None) -> CutResult:
        """Minimise ``problem`` from ``start`` (0 by default); optimality is the duality gap."""
        if not problem.l2 > 0.0:
            raise UsageError("bundle needs a penalty: give l2 above 0.")
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        began = time.perf_counter()
        search = _Search(problem)
        curve: list[float] = []
        rounds, before = 0, np.inf
        if not w.any():
            w = search.separate_ties(w)
        while True:
            is_difference = search.linearise(w)
            rounds += 1
            if is_difference and before - search.value <= self.tol * abs(search.value):
                stopped = "another round gains nothing"
                break
            before = search.value
            stopped = search.solve_round(curve, self.tol, self.max_iter)
            w = search.w
            if not is_difference or stopped != _SMALL_GAP:
                break
        return CutResult(
            w=search.w,
            value=search.value,
            optimality=search.gap,
            iterations=len(curve),
            stopped=stopped,
            curve=curve,
            active=search.planes.active,
            rounds=rounds,
            qp_share=search.planes.seconds / (time.perf_counter() - began),
        )


class _Search:
    """The planes, the best point so far and its duality gap; N is replaced by a plane u'w + c."""

    def __init__(self, problem: CutProblem) -> None:
        self.planes = Planes(problem.size, problem.l2)
        self.w, self.value, self.gap = np.zeros(problem.size), np.inf, np.inf
        self._problem, self._gradient = problem, np.zeros(problem.size)
        self._u, self._c = np.zeros(problem.size), 0.0

    def linearise(self, w: F64) -> bool:
        """Move to ``w`` and replace N by its plane there; return whether the problem has an N."""
        plane = self._problem.concave_part(w)
        if plane is not None:
            self.planes.subtract(plane[0] - self._u)
            self._u, self._c = plane
        self.w = w
        self.value, self._gradient = self._evaluate(w)
        return plane is not None

    def separate_ties(self, w: F64) -> F64:
        """Return a point near ``w`` without tied scores, if all scores are tied at ``w``.

        The order of tied scores is arbitrary, so a round of a difference might stay at ``w``.
        """
        if self._problem.concave_part(w) is None:
            return w
        self.linearise(w)
        steepest = float(np.abs(self._gradient).max(initial=0.0))
        return w - 1e-3 / steepest * self._gradient if steepest > 0.0 else w

    def solve_round(self, curve: list[float], tolerance: float, max_iter: int) -> str:
        """Minimise J with N replaced; append values to ``curve`` and return why it stopped."""
        bound = -np.inf
        while True:
            self.planes.solve(0.05 * self.gap if np.isfinite(self.gap) else 0.0)
            self.planes.drop_idle(_IDLE)
            bound = max(bound, self.planes.value - self._c)
            self.gap = max(self.value - bound, 0.0)
            if self.gap <= tolerance * abs(self.value):
                return _SMALL_GAP
            if len(curve) == max_iter:
                return "max_iter was reached"
            self._search_line(self.planes.w)
            self.gap = max(self.value - bound, 0.0)
            curve.append(self.value)

    def _evaluate(self, w: F64) -> tuple[float, F64]:
        """Return J, with N replaced, and its gradient at ``w``; add the plane."""
        a, b, value = self._problem.cut(w)
        slope, l2 = a - self._u, self._problem.l2
        self.planes.add(slope, b)
        convex = value - float(self._u @ w) - self._c
        return convex + 0.5 * l2 * float(w @ w), slope + l2 * w

    def _search_line(self, ahead: F64) -> None:
        """Move to the best of a few points between the best one and ``ahead``.

        On the line, J is a parabola plus a convex function known by its tangents; the next point
        minimises the parabola plus the two nearest tangents.
        """
        start, d = self.w, ahead - self.w
        curvature = self._problem.l2 * float(d @ d)
        left = _Point(0.0, self.value, float(self._gradient @ d))
        right: _Point | None = None
        t = 1.0
        for _ in range(_TRIES):
            w = start + t * d
            value, gradient = self._evaluate(w)
            here = _Point(t, value, float(gradient @ d))
            if value < self.value:
                self.w, self.value, self._gradient = w, value, gradient
            if here.derivative >= 0.0:
                right = here
            else:
                left = here
            if right is None:
                return
            t, lowest = _lowest(left, right, curvature)
            gain = min(left.value, right.value) - lowest
            if gain <= 0.1 * self.gap:
                return


class _Point(NamedTuple):
    """A point on the line, with the value and the derivative of the objective."""

    t: float
    value: float
    derivative: float


def _lowest(left: _Point, right: _Point, curvature: float) -> tuple[float, float]:
    """Return the minimiser and the minimum of the parabola plus the higher tangent."""

    def tangent(p: _Point, t: float) -> float:
        return p.value + p.derivative * (t - p.t) + 0.5 * curvature * (t - p.t) ** 2

    # Both are parabolas of one curvature, so they cross once.
    rise = left.derivative - curvature * left.t - (right.derivative - curvature * right.t)
    level = tangent(right, 0.0) - tangent(left, 0.0)
    cross = level / rise if rise != 0.0 else 0.5 * (left.t + right.t)
    cross = min(max(cross, left.t), right.t)
    if curvature > 0.0:  # the minimum may be on either side of the crossing
        low = left.t - left.derivative / curvature
        high = right.t - right.derivative / curvature
        cross = low if low < cross else high if high > cross else cross
        cross = min(max(cross, left.t), right.t)
    return cross, max(tangent(left, cross), tangent(right, cross))
