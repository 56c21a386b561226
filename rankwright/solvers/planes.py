"""Planes below a convex function, and the small dual problem of their weights.

A convex function M is known by planes that touch it from below, a'w + b <= M(w). The dual of
minimising l2/2 |w|^2 plus the maximum of the planes is

    max over x of  b'x - |A'x|^2 / (2 l2),    w = -A'x / l2                        (1)

with a weight x >= 0 for each plane, whose sum over a block of planes is fixed. There is one block
for a single function M, or one for each of several functions, whose blocks begin with a plane of
zeros because the functions are not negative. With G = AA' / l2, (1) is a quadratic over
simplices:

    minimise 1/2 x'G x - b'x    over x >= 0 with  sum of x over block k = cap_k, for all k     (2)

**One block**: active set. On the planes with a weight, (2) without x >= 0 is a linear system. x
moves towards its solution until a weight reaches 0 and stays there, and so on until none does;
then the plane of the smallest g is added. A small ridge on the diagonal turns the singular system
of linearly dependent planes into a long step, so the solution has few planes.

**Several blocks**: sequential minimal optimisation. With g = G x - b, weight moves within a block
from the plane j with the largest g among planes with a weight to the plane i with a smaller g and
the largest decrease of the objective,

    x_i += d,  x_j -= d,     d = min(x_j, (g_j - g_i) / (G_ii + G_jj - 2 G_ij))                (3)

until x is within the tolerance of the optimum, as shown by

    sum_j x_j (g_j - min of g over the block of j)  >=  objective - optimum                    (4)

Any feasible x is a start, so a problem with one more plane starts from the last solution.
"""

from __future__ import annotations

import time

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64

_RIDGE = 1e-13
_STEPS = 1_000_000  # of (3)


class Planes:
    """Planes a'w + b in rows, and the solution of (1).

    Parameters
    ----------
    size : int
        Length of w.
    l2 : float
        The penalty on w.
    n_blocks : int
        Number of blocks that begin with a plane of zeros; 0: a single block without one.

    Attributes
    ----------
    w, value
        The solution of (1) and its value, after `solve`.
    seconds : float
        Time spent in `solve`.
    """

    def __init__(self, size: int, l2: float, n_blocks: int = 0) -> None:
        n = n_blocks
        self.w, self.value, self.seconds = np.zeros(size), 0.0, 0.0
        self._l2, self._n_zeros = l2, n
        self._A, self._b, self._G = np.zeros((n, size)), np.zeros(n), np.zeros((n, n))
        self._x, self._block = np.full(n, 1.0 / max(n, 1)), np.arange(n)
        self._idle = np.zeros(n, np.int64)

    @property
    def active(self) -> int:
        """Number of planes with a positive weight."""
        return int((self._x[self._n_zeros :] > 0.0).sum())

    def highest(self, k: int) -> float:
        """Return the largest value at w of the planes of block ``k``."""
        block = self._block == k
        return float((self._A[block] @ self.w + self._b[block]).max())

    def add(self, a: F64, b: float, k: int = 0) -> None:
        """Add a plane to block ``k``."""
        self._A, self._b = np.vstack([self._A, a]), np.append(self._b, b)
        products = self._A @ a / self._l2
        self._G = np.block([[self._G, products[:-1, None]], [products[None, :]]])
        self._x = np.append(self._x, 0.0 if len(self._x) else 1.0)
        self._block, self._idle = np.append(self._block, k), np.append(self._idle, 0)

    def subtract(self, u: F64) -> None:
        """Subtract ``u`` from the slope of every plane."""
        self._A -= u
        self._G = self._A @ self._A.T / self._l2

    def solve(self, tolerance: float) -> None:
        """Compute `w` and `value`."""
        began = time.perf_counter()
        b, x = self._b, self._x
        least = 1e-14 * max(abs(float(b @ x)), float(x @ self._G @ x))
        minimise_over_simplices(
            self._G,
            b,
            x,
            block=self._block,
            tolerance=max(tolerance, least),
            max_steps=_STEPS if self._n_zeros else 100 * len(x) + 5000,
        )
        if not self._n_zeros:
            x /= x.sum()  # rounding errors of the active set add up
        self.w = self._A.T @ x / -self._l2
        self.value = float(b @ x) - 0.5 * self._l2 * float(self.w @ self.w)
        self.seconds += time.perf_counter() - began

    def drop_idle(self, rounds: int) -> None:
        """Drop the planes without weight in the last ``rounds`` calls, if they are many."""
        self._idle = np.where(self._x > 0.0, 0, self._idle + 1)
        useful = np.flatnonzero(self._idle < rounds)
        if len(useful) < 0.8 * len(self._x):
            self._A, self._b, self._x = self._A[useful], self._b[useful], self._x[useful]
            self._G = self._G[np.ix_(useful, useful)]
            self._block, self._idle = self._block[useful], self._idle[useful]


@kernel
def _by_active_set(G, b, x, g, tolerance, max_steps):
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
def _optimise_active(G, b, x, active, m, size):
    """Optimise x on the active planes, drop planes that reach 0, return the number left."""
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
def _without_bounds(G, b, active, size):
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
def _gradients(G, b, x, g):
    """Write g = G x - b."""
    for i in range(len(x)):
        g[i] = -b[i]
    for j in range(len(x)):
        if x[j] != 0.0:
            for i in range(len(x)):
                g[i] += x[j] * G[j, i]


@kernel
def _minimise(G, b, member, begin, x, g, tolerance, max_steps):
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
def _excess(block, x, g):
    """Return the part of (4) of one block."""
    least = np.inf
    for i in block:
        least = min(least, g[i])
    total = 0.0
    for i in block:
        total += x[i] * (g[i] - least)
    return total


@kernel
def _move(G, block, x, g):
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
    block: I64,
    tolerance: float = 1e-12,
    max_steps: int = _STEPS,
) -> float:
    """Minimise (2) from the feasible ``x``, in place; return a bound on the remaining gap.

    Parameters
    ----------
    G, b
        The quadratic.
    x
        Initial weights; the sum over each block does not change.
    block
        The block of each variable, numbered from 0.
    """
    gap: float
    G, g = np.ascontiguousarray(G), np.empty(len(x))  # one layout: a single compilation
    if len(x) and block.max() == 0:
        gap = _by_active_set(G, b, x, g, tolerance, max(1, min(max_steps, 10 * len(x) + 100)))
        if gap <= tolerance:
            return gap
    member = np.argsort(block, kind="stable")
    begin = np.searchsorted(block[member], np.arange(block.max() + 2))
    gap = _minimise(G, b, member, begin, x, g, tolerance, max_steps)
    return gap
