"""The small dual problem of cutting-plane solvers: a quadratic over simplices.

    minimise 1/2 x'G x - b'x    over x >= 0 with  sum of x over block k = cap_k, for all k       (1)

x weighs planes; blocks are one (1-slack) or one for each query (n-slack, with a plane of zeros in
each, so that its sum over the others is at most cap_k: (7b) and (28b) of `le2007dorm`).

**One block**: active set. On the planes that carry weight, (1) without x >= 0 is a linear system;
x goes toward its solution until a weight reaches 0, which then stays there, and so on until none
does; then the plane of the smallest g joins. A little is added to the diagonal, so that planes
which depend on each other make a long step instead of a singular system, and the answer has few.

**Several blocks**: sequential minimal optimisation. With g = G x - b, weight moves within a block
from the plane j of the largest g that has any to the plane i of smaller g for which the objective
falls most,

    x_i += d,  x_j -= d,     d = min(x_j, (g_j - g_i) / (G_ii + G_jj - 2 G_ij))                  (2)

until no x is further from optimal than the tolerance, as shown by

    sum_j x_j (g_j - min of g over the block of j)  >=  objective - optimum                      (3)

Any feasible x is a start, so a problem with a plane more starts from the last answer.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64

_RIDGE = 1e-13

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _by_active_set(G, b, x, g, tolerance, max_steps):  # type: ignore[no-untyped-def]
    """Minimise over one simplex; return (3). ``x`` has the sum of the simplex."""
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
    """Improve x by (2) until (3) is within the tolerance; return (3)."""
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
    """Return the part of (3) of one block."""
    least = np.inf
    for i in block:
        least = min(least, g[i])
    total = 0.0
    for i in block:
        total += x[i] * (g[i] - least)
    return total


@kernel
def _move(G, block, x, g):  # type: ignore[no-untyped-def]
    """Take the step (2) in one block; return whether there was one."""
    j = -1
    for i in block:
        if x[i] > 0.0 and (j < 0 or g[i] > g[j]):
            j = i
    to, most = -1, 0.0
    for i in block:
        lead = g[j] - g[i]
        if lead > 0.0:
            bend = max(G[i, i] + G[j, j] - 2.0 * G[i, j], 1e-300)
            gain = lead * min(x[j], 0.5 * lead / bend)  # a lower bound where x_j is the limit
            if gain > most:
                to, most = i, gain
    if to < 0:
        return False
    bend = max(G[to, to] + G[j, j] - 2.0 * G[to, j], 1e-300)
    d = min(x[j], (g[j] - g[to]) / bend)
    x[to] += d
    x[j] = 0.0 if d == x[j] else x[j] - d
    for i in range(len(x)):
        g[i] += d * (G[to, i] - G[j, i])
    return True


# --- API -------------------------------------------------------------------------------------


def minimise_over_simplices(
    G: F64,
    b: F64,
    x: F64,
    *,
    block: I64 | None = None,
    tolerance: float = 1e-12,
    max_steps: int = 1_000_000,
) -> float:
    """Minimise (1) from the feasible ``x``, in place; return how far it is from optimal at most.

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
