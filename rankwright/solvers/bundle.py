"""Cutting planes with a line search and a duality gap, for losses with kinks.

The problem is J(w) = strength/2 |w|^2 + M(w), with M convex and known by planes that touch it from
below, a'w + b <= M(w). The maximum of the planes replaces M in a small problem, which is solved in
its dual,

    D = max over weights x of planes of  b'x - |A'x|^2 / (2 strength),     w = -A'x / strength   (1)

a lower bound of the optimum. So J(best w so far) - D is a duality gap: it bounds the possible gain
at every step. Plain cutting planes (`joachims2009cutting`) use the w of (1) as the next point and
zigzag. This solver searches the line from the best w to that of (1) (`franc2009ocas`), adds a plane
at every point it evaluates, drops planes without weight after a while, and starts x from its last
value.

A **difference** of convex functions, M - N, is solved in rounds. Each round replaces N by its plane
at the present w. The remaining problem is convex with the same planes of M, and no round makes J
larger (`le2007dorm` with tied grades in order of score). The gap is that of the last round.
"""

from __future__ import annotations

import time
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
    """Result of cutting planes.

    Parameters
    ----------
    planes, active
        Number of planes at the end, and of those with a positive weight.
    rounds
        Number of convex problems solved.
    evaluations
        Number of evaluations of the problem.
    qp_share
        Share of the time spent in (1).
    """

    planes: int = 0
    active: int = 0
    rounds: int = 1
    evaluations: int = 0
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

    tol: float = 1e-6
    max_iter: int = 500

    def solve(self, problem: CutProblem, start: F64 | None = None) -> CutResult:
        """Minimise ``problem`` from ``start`` (0 by default); optimality is the duality gap."""
        if not problem.strength > 0.0:
            raise UsageError("bundle needs a penalty: give l2 above 0.")
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        return _Run(problem, w, self.tol, self.max_iter).solve()


class _Run:
    """A run: its planes, the best point so far and its duality gap."""

    def __init__(self, problem: CutProblem, w: F64, tolerance: float, max_iter: int) -> None:
        self._problem, self._tolerance, self._max_iter = problem, tolerance, max_iter
        self._planes = _Planes(problem.size, problem.strength)
        self._curve: list[float] = []
        self._began, self._in_qp, self._evaluations, self._rounds = time.perf_counter(), 0.0, 0, 0
        self._stopped = ""
        self._u, self._beta = np.zeros(problem.size), 0.0
        self._w, self._value, self._gap = w, np.inf, np.inf
        self._gradient = np.empty(problem.size)

    def solve(self) -> CutResult:
        """Solve rounds until one does not lower the objective."""
        if not self._w.any() and self._problem.concave_part(self._w) is not None:
            self._w = self._separate_ties(self._w)
        before = np.inf
        while not self._stopped or self._stopped == "the gap is small":
            plane = self._problem.concave_part(self._w)
            if plane is not None:
                self._u, self._beta = plane
                self._planes.tilt(self._u)
            self._rounds += 1
            self._value, self._gradient = self._evaluate(self._w)
            if plane is not None and before - self._value <= self._tolerance * abs(self._value):
                self._stopped = "another round gains nothing"
                break
            before = self._value
            self._stopped = ""
            self._solve_round()
            if plane is None:
                break
        return self._result()

    def _separate_ties(self, w: F64) -> F64:
        """Return a point near ``w``, at which all scores are tied, without these ties.

        A round from tied scores might stay there, since their order is arbitrary.
        """
        self._u, self._beta = self._problem.concave_part(w) or (self._u, self._beta)
        gradient = self._evaluate(w)[1]
        steepest = float(np.abs(gradient).max(initial=0.0))
        return w - 1e-3 / steepest * gradient if steepest > 0.0 else w

    def _evaluate(self, w: F64) -> tuple[float, F64]:
        """Return J, with N replaced by its plane, and the gradient at w; add the plane."""
        a, b, value = self._problem.cut(w)
        self._evaluations += 1
        self._planes.add(a - self._u, b)
        strength = self._problem.strength
        convex = value - float(self._u @ w) - self._beta
        return convex + 0.5 * strength * float(w @ w), a - self._u + strength * w

    def _solve_round(self) -> None:
        bound = -np.inf
        while True:
            began = time.perf_counter()
            gap = self._gap if np.isfinite(self._gap) else 0.0
            dual, ahead = self._planes.solve(0.05 * gap)
            self._in_qp += time.perf_counter() - began
            bound = max(bound, dual - self._beta)
            self._gap = max(self._value - bound, 0.0)
            if self._gap <= self._tolerance * abs(self._value):
                self._stopped = "the gap is small"
                return
            if len(self._curve) == self._max_iter:
                self._stopped = "max_iter was reached"
                return
            self._search_line(ahead)
            self._gap = max(self._value - bound, 0.0)
            self._curve.append(self._value)

    def _search_line(self, ahead: F64) -> None:
        """Move to the best of a few points between the best one and ``ahead``.

        On the line, J is a parabola plus a convex function known by its tangents; the next point
        minimises the parabola plus the two nearest tangents.
        """
        start, d = self._w, ahead - self._w
        curvature = self._problem.strength * float(d @ d)
        left = _Point(0.0, self._value, float(self._gradient @ d))
        right: _Point | None = None
        t = 1.0
        for _ in range(_TRIES):
            w = start + t * d
            value, gradient = self._evaluate(w)
            here = _Point(t, value, float(gradient @ d))
            if value < self._value:
                self._w, self._value, self._gradient = w, value, gradient
            if here.derivative >= 0.0:
                right = here
            else:
                left = here
            if right is None:
                return
            t, lowest = _lowest(left, right, curvature)
            gain = min(left.value, right.value) - lowest
            if gain <= 0.1 * (self._gap if np.isfinite(self._gap) else 0.0):
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
            evaluations=self._evaluations,
            qp_share=self._in_qp / seconds,
        )


@dataclass(frozen=True, slots=True)
class _Point:
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
    if curvature > 0.0:  # each parabola may have its minimum on its own side of the crossing
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
        """Number of planes with a positive weight."""
        return int((self._x[: self.n] > 0.0).sum())

    def add(self, a: F64, b: float) -> None:
        """Add a plane."""
        if self.n == len(self._b):
            self._grow()
        n = self.n
        self._A[n], self._b[n], self._idle[n] = a, b, 0
        products = self._A[: n + 1] @ a / self._strength
        self._G[n, : n + 1] = self._G[: n + 1, n] = products
        self._x[n] = 1.0 if n == 0 else 0.0
        self.n += 1

    def tilt(self, u: F64) -> None:
        """Subtract ``u`` from every plane, instead of the vector that was subtracted before."""
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
        useful = np.flatnonzero(idle < _IDLE)
        if len(useful) < 0.8 * n:
            m = len(useful)
            self._A[:m], self._b[:m] = self._A[useful], self._b[useful]
            self._G[:m, :m] = self._G[np.ix_(useful, useful)]
            self._x[:m], self._idle[:m] = self._x[useful], idle[useful]
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
# x are the weights of planes. There is one block (1-slack), or one for each query (n-slack), with a
# plane of zeros, so that the sum over the others is at most cap_k: (7b) and (28b) of `le2007dorm`.
#
# **One block**: active set. On the planes with a weight, (2) without x >= 0 is a linear system. x
# moves towards its solution until a weight reaches 0 and stays there, and so on until none does;
# then the plane of the smallest g is added. A small ridge on the diagonal turns the singular system
# of linearly dependent planes into a long step, so the solution has few planes.
#
# **Several blocks**: sequential minimal optimisation. With g = G x - b, weight moves within a block
# from the plane j with the largest g among those with a weight to the plane i with a smaller g for
# which the objective falls most,
#
#     x_i += d,  x_j -= d,     d = min(x_j, (g_j - g_i) / (G_ii + G_jj - 2 G_ij))                (3)
#
# until x is within the tolerance of the optimum, as shown by
#
#     sum_j x_j (g_j - min of g over the block of j)  >=  objective - optimum                    (4)
#
# Any feasible x is a start, so a problem with one more plane starts from the last solution.


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
        m = _optimise_active(G, b, x, active, m, size)
        _gradients(G, b, x, g)
        least = np.argmin(g)
        gap = 0.0
        for i in range(n):
            gap += x[i] * (g[i] - g[least])
        stuck = gap >= best and gap <= 1e3 * tolerance  # the limit of rounding
        for k in range(m):
            stuck |= active[k] == least
        if gap <= tolerance or stuck:
            return gap
        best = min(best, gap)
        active[m] = least
        m += 1
    return gap


@kernel
def _optimise_active(G, b, x, active, m, size):  # type: ignore[no-untyped-def]
    """Optimise x on the active planes, drop those that reach 0; return the number that remain."""
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
        remaining = 0
        for k in range(m):
            if x[active[k]] > 0.0:
                active[remaining] = active[k]
                remaining += 1
            else:
                x[active[k]] = 0.0
        m = remaining


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
            gain = lead * min(x[j], 0.5 * lead / curvature)  # a lower bound if x_j limits
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
    """Minimise (2) from the feasible ``x``, in place; return a bound on the remaining gap.

    Parameters
    ----------
    G, b
        The quadratic.
    x
        Initial weights; the sum over each block does not change.
    block : optional
        The block of each variable, numbered from 0; by default there is one.
    """
    gap: float
    G, g = np.ascontiguousarray(G), np.empty(len(x))  # one layout: a single compilation
    if block is None:
        member, begin = np.arange(len(x)), np.array([0, len(x)])
        steps = max(1, min(max_steps, 10 * len(x) + 100))
        gap = _by_active_set(G, b, x, g, tolerance, steps)
        if gap <= tolerance:
            return gap
    else:
        member = np.argsort(block, kind="stable")
        begin = np.searchsorted(block[member], np.arange(block.max() + 2))
    gap = _minimise(G, b, member, begin, x, g, tolerance, max_steps)
    return gap
