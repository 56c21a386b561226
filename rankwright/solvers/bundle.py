"""Cutting planes with a line search, for losses with kinks; reports how far from optimal it is.

The problem is J(w) = strength/2 |w|^2 + M(w), with M convex and known by planes that touch it from
below, a'w + b <= M(w). Their maximum in place of M gives a small problem, solved in its dual
(`solvers.bundle_qp`),

    D = max over weights x of planes of  b'x - |A'x|^2 / (2 strength),     w = -A'x / strength   (1)

a lower bound of the optimum. So J(best w so far) - D is a duality gap: a certificate, valid at
every step, of how much could still be gained. Plain cutting planes (`joachims2009cutting`) take the
w of (1) as the next point and zigzag. Here the best point on the way from the best w to that of (1)
is looked for (`franc2009ocas`), every point tried leaves its plane, planes that carry no weight for
long are dropped, and x starts from its last value.

A **difference** of convex functions, M - N, is solved in rounds: N is held to its plane at the
present w, the rest is convex with the same planes of M, and no round makes J larger
(`le2007dorm` with tied grades in order of score). The gap is then that of the last round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part
from rankwright.core.types import F64, I64, CutProblem, SolveResult
from rankwright.errors import UsageError

_IDLE = 25  # rounds without weight after which a plane is dropped
_TRIES = 4  # points on a line


@dataclass(frozen=True, slots=True)
class CutResult(SolveResult):
    """Where cutting planes ended, and what it took.

    Parameters
    ----------
    planes, active
        Planes at the end, and those of them that carry weight.
    rounds
        Convex problems solved.
    looks
        How often the problem was evaluated.
    qp_share
        Share of the time spent in (1).
    """

    planes: int = 0
    active: int = 0
    rounds: int = 1
    looks: int = 0
    qp_share: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Bundle(Part):
    """Cutting planes with line search and a duality gap; for losses with kinks.

    Parameters
    ----------
    tol
        Stop when the duality gap is below this share of the objective.
    max_iter
        Small problems solved, in all rounds together.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="pair_hinge", solver=rw.solvers.Bundle(tol=0.0001))
    Ranker(loss='pair_hinge', solver=Bundle(tol=0.0001))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"convex_parts"})

    tol: float = 1e-6
    max_iter: int = 500

    def solve(
        self,
        problem: CutProblem,
        start: F64 | None = None,
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> CutResult:
        """Minimise ``problem`` from ``start`` (0 by default); optimality is the duality gap."""
        if not problem.strength > 0.0:
            raise UsageError("bundle needs a penalty: give l2 above 0.")
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        return _Run(problem, w, self.tol, self.max_iter, callback).go()


class _Run:
    """One run: the planes, the best point, and what bounds it from below."""

    def __init__(
        self,
        problem: CutProblem,
        w: F64,
        tolerance: float,
        max_iter: int,
        callback: Callable[[int, F64, float], bool] | None,
    ) -> None:
        self._problem, self._tolerance, self._callback = problem, tolerance, callback
        self._max = max_iter
        self._planes = _Planes(problem.size, problem.strength)
        self._curve: list[float] = []
        self._began, self._in_qp, self._looks, self._rounds = time.perf_counter(), 0.0, 0, 0
        self._stopped = ""
        self._u, self._beta = np.zeros(problem.size), 0.0
        self._w, self._value, self._gap = w, np.inf, np.inf
        self._gradient = np.empty(problem.size)

    def go(self) -> CutResult:
        """Solve round after round until another gains nothing; return where that ended."""
        if not self._w.any() and self._problem.concave_part(self._w) is not None:
            self._w = self._aside(self._w)
        before = np.inf
        while not self._stopped or self._stopped == "the gap is small":
            plane = self._problem.concave_part(self._w)
            if plane is not None:
                self._u, self._beta = plane
                self._planes.tilt(self._u)
            self._rounds += 1
            self._value, self._gradient = self._look(self._w)
            if plane is not None and before - self._value <= self._tolerance * abs(self._value):
                self._stopped = "another round gains nothing"
                break
            before = self._value
            self._stopped = ""
            self._solve_round()
            if plane is None:
                break
        return self._result()

    def _aside(self, w: F64) -> F64:
        """Return a point near ``w``, where all scores are tied, that separates them.

        There the order of ties is open, and a round that left it open might stay where it is.
        """
        self._u, self._beta = self._problem.concave_part(w) or (self._u, self._beta)
        gradient = self._look(w)[1]
        steepest = float(np.abs(gradient).max(initial=0.0))
        return w - 1e-3 / steepest * gradient if steepest > 0.0 else w

    def _look(self, w: F64) -> tuple[float, F64]:
        """Return J (with N held) and its gradient at w; keep the plane."""
        a, b, value = self._problem.cut(w)
        self._looks += 1
        self._planes.add(a - self._u, b)
        strength = self._problem.strength
        held = value - float(self._u @ w) - self._beta
        return held + 0.5 * strength * float(w @ w), a - self._u + strength * w

    def _solve_round(self) -> None:
        bound = -np.inf
        while True:
            began = time.perf_counter()
            near = self._gap if np.isfinite(self._gap) else 0.0
            dual, ahead = self._planes.solve(0.05 * near)
            self._in_qp += time.perf_counter() - began
            bound = max(bound, dual - self._beta)
            self._gap = max(self._value - bound, 0.0)
            if self._gap <= self._tolerance * abs(self._value):
                self._stopped = "the gap is small"
                return
            if len(self._curve) == self._max:
                self._stopped = "max_iter was reached"
                return
            self._go_towards(ahead)
            self._gap = max(self._value - bound, 0.0)
            self._curve.append(self._value)
            if self._callback is not None and self._callback(
                len(self._curve), self._w, self._value
            ):
                self._stopped = "the callback ended the run"
                return

    def _go_towards(self, ahead: F64) -> None:
        """Move to the best of a few points between the best one and ``ahead``.

        On the line, J is a parabola plus a convex function known by its tangents; the next point
        is where the parabola plus the two nearest tangents is least.
        """
        start, d = self._w, ahead - self._w
        curvature = self._problem.strength * float(d @ d)
        left = _Point(0.0, self._value, float(self._gradient @ d))
        right: _Point | None = None
        t = 1.0
        for _ in range(_TRIES):
            w = start + t * d
            value, gradient = self._look(w)
            here = _Point(t, value, float(gradient @ d))
            if value < self._value:
                self._w, self._value, self._gradient = w, value, gradient
            if here.derivative >= 0.0:
                right = here
            else:
                left = here
            if right is None:
                return
            t, least = _lowest(left, right, curvature)
            worth = min(left.value, right.value) - least
            if worth <= 0.1 * (self._gap if np.isfinite(self._gap) else 0.0):
                return

    def _result(self) -> CutResult:
        seconds = time.perf_counter() - self._began
        return CutResult(
            w=self._w,
            value=self._value,
            optimality=self._gap,
            iterations=len(self._curve),
            stopped=self._stopped,
            curve=self._curve,
            planes=self._planes.n,
            active=self._planes.active,
            rounds=self._rounds,
            looks=self._looks,
            qp_share=self._in_qp / seconds,
        )


@dataclass(frozen=True, slots=True)
class _Point:
    """A point on the line, with the objective and its derivative there."""

    t: float
    value: float
    derivative: float


def _lowest(left: _Point, right: _Point, curvature: float) -> tuple[float, float]:
    """Return where the parabola plus the higher tangent is least, and how low that is."""

    def tangent(p: _Point, t: float) -> float:
        return p.value + p.derivative * (t - p.t) + 0.5 * curvature * (t - p.t) ** 2

    # Both are parabolas of one curvature, so they cross once.
    rise = left.derivative - curvature * left.t - (right.derivative - curvature * right.t)
    level = tangent(right, 0.0) - tangent(left, 0.0)
    cross = level / rise if rise != 0.0 else 0.5 * (left.t + right.t)
    cross = min(max(cross, left.t), right.t)
    if curvature > 0.0:  # the lowest point of either may lie on its own side of the crossing
        low = left.t - left.derivative / curvature
        high = right.t - right.derivative / curvature
        cross = low if low < cross else high if high > cross else cross
        cross = min(max(cross, left.t), right.t)
    return cross, max(tangent(left, cross), tangent(right, cross))


class _Planes:
    """Planes a'w + b in rows, their products, and the weights x of (1)."""

    def __init__(self, size: int, strength: float) -> None:
        self._strength, self.n = strength, 0
        self._A, self._b = np.empty((64, size)), np.empty(64)
        self._G, self._x, self._idle = np.empty((64, 64)), np.zeros(64), np.zeros(64, np.int64)
        self._u = np.zeros(size)

    @property
    def active(self) -> int:
        """How many planes carry weight."""
        return int((self._x[: self.n] > 0.0).sum())

    def add(self, a: F64, b: float) -> None:
        """Keep a plane."""
        if self.n == len(self._b):
            self._grow()
        n = self.n
        self._A[n], self._b[n], self._idle[n] = a, b, 0
        products = self._A[: n + 1] @ a / self._strength
        self._G[n, : n + 1] = self._G[: n + 1, n] = products
        self._x[n] = 1.0 if n == 0 else 0.0
        self.n += 1

    def tilt(self, u: F64) -> None:
        """Take ``u`` from every plane, in place of what was taken before."""
        n = self.n
        self._A[:n] -= u - self._u
        self._u = u.copy()
        self._G[:n, :n] = self._A[:n] @ self._A[:n].T / self._strength

    def solve(self, tolerance: float) -> tuple[float, F64]:
        """Return D and w of (1)."""
        n = self.n
        G, b, x = self._G[:n, :n], self._b[:n], self._x[:n]
        least = 1e-14 * max(abs(float(b @ x)), float(x @ G @ x))
        minimise_over_simplices(G, b, x, tolerance=max(tolerance, least), max_steps=100 * n + 5000)
        x /= x.sum()
        w = self._A[:n].T @ x / -self._strength
        dual = float(b @ x) - 0.5 * self._strength * float(w @ w)
        self._drop_idle()
        return dual, w

    def _drop_idle(self) -> None:
        n = self.n
        idle = self._idle[:n]
        idle[:] = np.where(self._x[:n] > 0.0, 0, idle + 1)
        kept = np.flatnonzero(idle < _IDLE)
        if len(kept) < 0.8 * n:
            m = len(kept)
            self._A[:m], self._b[:m] = self._A[kept], self._b[kept]
            self._G[:m, :m] = self._G[np.ix_(kept, kept)]
            self._x[:m], self._idle[:m] = self._x[kept], idle[kept]
            self.n = m

    def _grow(self) -> None:
        n = self.n
        self._A = np.concatenate([self._A, np.empty_like(self._A)])
        self._b, self._x = np.tile(self._b, 2), np.append(self._x, np.zeros(n))
        self._idle = np.tile(self._idle, 2)
        G = np.empty((2 * n, 2 * n))
        G[:n, :n] = self._G
        self._G = G


# --- the dual problem ------------------------------------------------------------------------
#
# The small dual problem of cutting-plane solvers: a quadratic over simplices.
#
#     minimise 1/2 x'G x - b'x    over x >= 0 with  sum of x over block k = cap_k, for all k     (2)
#
# x weighs planes; blocks are one (1-slack) or one for each query (n-slack, with a plane of zeros in
# each, so that its sum over the others is at most cap_k: (7b) and (28b) of `le2007dorm`).
#
# **One block**: active set. On the planes that carry weight, (2) without x >= 0 is a linear system;
# x goes toward its solution until a weight reaches 0, which then stays there, and so on until none
# does; then the plane of the smallest g joins. A little is added to the diagonal, so that planes
# which depend on each other make a long step instead of a singular system, and the answer has few.
#
# **Several blocks**: sequential minimal optimisation. With g = G x - b, weight moves within a block
# from the plane j of the largest g that has any to the plane i of smaller g for which the objective
# falls most,
#
#     x_i += d,  x_j -= d,     d = min(x_j, (g_j - g_i) / (G_ii + G_jj - 2 G_ij))                (3)
#
# until no x is further from optimal than the tolerance, as shown by
#
#     sum_j x_j (g_j - min of g over the block of j)  >=  objective - optimum                    (4)
#
# Any feasible x is a start, so a problem with a plane more starts from the last answer.


_RIDGE = 1e-13


@kernel
def _by_active_set(G, b, x, g, tolerance, max_steps):  # type: ignore[no-untyped-def]
    """Minimise over one simplex; return (4). ``x`` has the sum of the simplex."""
    n, size = len(x), x.sum()
    active = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        if x[i] > 0.0:
            active[m] = i
            m += 1
    best = np.inf
    for _ in range(max_steps):
        m = _settle(G, b, x, active, m, size)
        _gradients(G, b, x, g)
        least = np.argmin(g)
        gap = 0.0
        for i in range(n):
            gap += x[i] * (g[i] - g[least])
        stuck = gap >= best and gap <= 1e3 * tolerance  # as near as rounding allows
        for k in range(m):
            stuck |= active[k] == least
        if gap <= tolerance or stuck:
            return gap
        best = min(best, gap)
        active[m] = least
        m += 1
    return gap


@kernel
def _settle(G, b, x, active, m, size):  # type: ignore[no-untyped-def]
    """Make x optimal on the active planes, less those that reach 0; return how many are left."""
    while True:
        target = _without_bounds(G, b, active[:m], size)
        step, blocked = 1.0, -1
        for k in range(m):
            if target[k] < 0.0:
                i = active[k]
                reach = x[i] / (x[i] - target[k])
                if reach < step:
                    step, blocked = reach, k
        for k in range(m):
            x[active[k]] += step * (target[k] - x[active[k]])
        if blocked < 0:
            return m
        x[active[blocked]] = 0.0
        kept = 0
        for k in range(m):
            if x[active[k]] > 0.0:
                active[kept] = active[k]
                kept += 1
            else:
                x[active[k]] = 0.0
        m = kept


@kernel
def _without_bounds(G, b, active, size):  # type: ignore[no-untyped-def]
    m = len(active)
    system, right = np.zeros((m + 1, m + 1)), np.empty(m + 1)
    largest = 0.0
    for k in range(m):
        largest = max(largest, G[active[k], active[k]])
    unit = np.sqrt(max(largest, 1e-300))  # keeps the border in proportion
    for k in range(m):
        for other in range(m):
            system[k, other] = G[active[k], active[other]]
        system[k, k] += _RIDGE * largest + 1e-300
        system[k, m] = system[m, k] = unit
        right[k] = b[active[k]]
    right[m] = size * unit
    return np.linalg.solve(system, right)[:m]


@kernel
def _gradients(G, b, x, g):  # type: ignore[no-untyped-def]
    """Write g = G x - b."""
    for i in range(len(x)):
        g[i] = -b[i]
    for j in range(len(x)):
        if x[j] != 0.0:
            for i in range(len(x)):
                g[i] += x[j] * G[j, i]


@kernel
def _minimise(G, b, member, begin, x, g, tolerance, max_steps):  # type: ignore[no-untyped-def]
    """Improve x by (3) until (4) is within the tolerance; return (4)."""
    _gradients(G, b, x, g)
    steps = 0
    while True:
        gap, moved = 0.0, False
        for k in range(len(begin) - 1):
            block = member[begin[k] : begin[k + 1]]
            gap += _excess(block, x, g)
        if gap <= tolerance or steps >= max_steps:
            return gap
        share = 0.5 * tolerance / (len(begin) - 1)
        for k in range(len(begin) - 1):
            block = member[begin[k] : begin[k + 1]]
            for _ in range(4 + 2 * len(block)):
                if _excess(block, x, g) <= share or not _move(G, block, x, g):
                    break
                moved = True
                steps += 1
        if not moved:
            return gap


@kernel
def _excess(block, x, g):  # type: ignore[no-untyped-def]
    """Return the part of (4) of one block."""
    least = np.inf
    for i in block:
        least = min(least, g[i])
    total = 0.0
    for i in block:
        total += x[i] * (g[i] - least)
    return total


@kernel
def _move(G, block, x, g):  # type: ignore[no-untyped-def]
    """Take the step (3) in one block; return whether there was one."""
    j = -1
    for i in block:
        if x[i] > 0.0 and (j < 0 or g[i] > g[j]):
            j = i
    to, most = -1, 0.0
    for i in block:
        lead = g[j] - g[i]
        if lead > 0.0:
            curvature = max(G[i, i] + G[j, j] - 2.0 * G[i, j], 1e-300)
            gain = lead * min(x[j], 0.5 * lead / curvature)  # a lower bound where x_j is the limit
            if gain > most:
                to, most = i, gain
    if to < 0:
        return False
    curvature = max(G[to, to] + G[j, j] - 2.0 * G[to, j], 1e-300)
    d = min(x[j], (g[j] - g[to]) / curvature)
    x[to] += d
    x[j] = 0.0 if d == x[j] else x[j] - d
    for i in range(len(x)):
        g[i] += d * (G[to, i] - G[j, i])
    return True


def minimise_over_simplices(
    G: F64,
    b: F64,
    x: F64,
    *,
    block: I64 | None = None,
    tolerance: float = 1e-12,
    max_steps: int = 1_000_000,
) -> float:
    """Minimise (2) from the feasible ``x``, in place; return how far it is from optimal at most.

    Parameters
    ----------
    G, b
        The quadratic.
    x
        Weights to start from; the sum over each block is kept.
    block : optional
        The block of each variable, numbered from 0; by default there is one.
    """
    G, g = np.ascontiguousarray(G), np.empty(len(x))  # one layout: kernels are compiled once
    if block is None:
        member, begin = np.arange(len(x)), np.array([0, len(x)])
        steps = max(1, min(max_steps, 10 * len(x) + 100))
        gap: float = _by_active_set(G, b, x, g, tolerance, steps)
        if gap <= tolerance:
            return gap
    else:
        member = np.argsort(block, kind="stable")
        begin = np.searchsorted(block[member], np.arange(block.max() + 2))
    left: float = _minimise(G, b, member, begin, x, g, tolerance, max_steps)
    return left
