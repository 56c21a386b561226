"""IntervalRank's inner problem by the paper's log-barrier method, which keeps grades further apart.

Algorithm 2 of [moon2010intervalrank] solves problem (1) of `interval_chain` with barriers in
place of its constraints, for mu = 1, 2, 4, …, 64, each time from the last solution:

    (1)  - 1/mu sum_g [log(u_g - l_g) + log(l_g + xi_g - u_g)]
         - 1/mu sum_g log(l_{g+1} - u_g - Delta_{g+1,g} + eps_g)                              (1)

(the paper prints the last slack with -eps_g). Given l and u, eps and xi have a closed form: with
the distance r = l_{g+1} - u_g - Delta, the slack t = r + eps solves lambda1 (t - r) t = 1/mu, and
with the width d = u_g - l_g, t = xi - d solves lambda2 (t + d) t = 1/mu. So conjugate gradients run
over the chain x of `interval_chain` alone, preconditioned by the tridiagonal Hessian.

mu stays finite on purpose: intervals keep a distance from their constraints. The loss is then the
minimum of (1) at the last mu, barriers included, whose gradient in the scores is again s - z.
"""

from __future__ import annotations

import math

from rankwright.core.jit import kernel
from rankwright.subproblems.interval_chain import (
    DIAG,
    ENDS,
    HERE,
    NEW,
    RHS,
    SQUARED,
    THERE,
    TRIAL,
    X,
    beyond,
    beyond_squared,
    cover,
)

_LAST_MU = 64.0
_ROUGH, _EXACT = 1e-3, 1e-10

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _margin(r, strength, mu):  # type: ignore[no-untyped-def]
    """Minimum over eps of strength/2 eps^2 - log(r + eps)/mu: value, slope, curvature in r."""
    root = math.sqrt(r * r + 4.0 / (strength * mu))
    t = 0.5 * (r + root) if r > 0.0 else 2.0 / (strength * mu) / (root - r)
    slope = -1.0 / (mu * t)
    return 0.5 * slope * slope / strength - math.log(t) / mu, slope, 1.0 / (mu * t * root)


@kernel
def _width(d, strength, mu):  # type: ignore[no-untyped-def]
    """Minimum over xi of strength/2 xi^2 - log(xi - d)/mu, less log(d)/mu; as ``_margin``."""
    value, slope, curvature = _margin(-d, strength, mu)
    return value - math.log(d) / mu, -slope - 1.0 / (mu * d), curvature + 1.0 / (mu * d * d)


@kernel
def _evaluate(lo, hi, start, v, w, terms, work, mu, point, piece):  # type: ignore[no-untyped-def]
    """Return (1) and its part without data at a point.

    Rows from ``piece``: curvature of the data, of the link to the next variable, and gradient.
    """
    data = links = 0.0
    for k in range(lo, hi, 2):
        low, high = work[point, k], work[point, k + 1]
        p, r = start[k // 2], start[k // 2 + 1]
        if terms.shape == SQUARED:
            a, a_pull, b, b_pull, value = beyond_squared(p, r, v, w, low, high)
        else:
            a, a_pull, b, b_pull, value = beyond(p, r, v, w, low, high, terms)
        work[piece, k], work[piece, k + 1] = a, b
        work[piece + 2, k], work[piece + 2, k + 1] = a * low - a_pull, b * high - b_pull
        data += value
    for k in range(lo, hi - 1):
        gap = work[point, k + 1] - work[point, k]
        value = slope = curvature = 0.0
        if k % 2 == 0:
            value, slope, curvature = _width(gap, terms.lambda2, mu)
        elif terms.lambda1 > 0.0:
            value, slope, curvature = _margin(gap, terms.lambda1, mu)
        work[piece + 1, k] = curvature
        work[piece + 2, k] -= slope
        work[piece + 2, k + 1] += slope
        links += value
    work[piece + 1, hi - 1] = 0.0
    return data + links, links


@kernel
def _line_search(lo, hi, start, v, w, terms, work, mu, value, size):  # type: ignore[no-untyped-def]
    """Go from X along NEW to where (1) is nearly least, into TRIAL; return (1) there, its links.

    Newton's method on the derivative, inside a bracket that ends where an interval would close or
    a variable would cross the whole range.
    """
    low, slope, longest = 0.0, 0.0, 0.0
    for k in range(lo, hi):
        slope += work[HERE + 2, k] * work[NEW, k]
        longest = max(longest, abs(work[NEW, k]))
    high = 2.0 * size / longest
    for k in range(lo, hi, 2):
        closing = work[NEW, k] - work[NEW, k + 1]
        if closing > 0.0:
            high = min(high, 0.999 * (work[X, k + 1] - work[X, k]) / closing)
    t = min(1.0, 0.5 * high)
    found = links = 0.0
    for _ in range(30):
        for k in range(lo, hi):
            work[TRIAL, k] = work[X, k] + t * work[NEW, k]
        found, links = _evaluate(lo, hi, start, v, w, terms, work, mu, TRIAL, THERE)
        rise = bend = 0.0
        for k in range(lo, hi):
            d = work[NEW, k]
            rise += work[THERE + 2, k] * d
            bend += work[THERE, k] * d * d
            if k + 1 < hi:
                bend += work[THERE + 1, k] * (work[NEW, k + 1] - d) ** 2
        if abs(rise) <= 0.1 * abs(slope) and found <= value + 1e-4 * t * slope:
            break
        if rise > 0.0:
            high = t
        else:
            low = t
        t = t - rise / bend if bend > 0.0 else high
        if not low < t < high:
            t = 0.5 * (low + high)
    return found, links


@kernel
def _precondition(lo, hi, work):  # type: ignore[no-untyped-def]
    """Divide the gradient at X by the tridiagonal Hessian there, into RHS."""
    for k in range(lo, hi):
        before = work[HERE + 1, k - 1] if k > lo else 0.0
        work[DIAG, k] = work[HERE, k] + before + work[HERE + 1, k]
        work[RHS, k] = work[HERE + 2, k]
        whole = work[DIAG, k]
        if k > lo and work[DIAG, k - 1] > 0.0:
            factor = before / work[DIAG, k - 1]
            work[DIAG, k] -= factor * before
            work[RHS, k] += factor * work[RHS, k - 1]
        if work[DIAG, k] <= 1e-14 * whole:  # no document pulls: the level is free
            work[DIAG, k] = 0.0
    for k in range(hi - 1, lo - 1, -1):
        after = work[HERE + 1, k] * work[RHS, k + 1] if k + 1 < hi else 0.0
        work[RHS, k] = (work[RHS, k] + after) / work[DIAG, k] if work[DIAG, k] > 0.0 else 0.0


@kernel
def _conjugate_gradients(lo, hi, start, v, w, terms, work, mu, size, near):  # type: ignore[no-untyped-def]
    """Minimise (1) from X until preconditioned gradients are below ``near``; return its links."""
    value, links = _evaluate(lo, hi, start, v, w, terms, work, mu, X, HERE)
    before = 0.0  # the power of the last gradient; 0 begins anew with the gradient alone
    for _ in range(200):
        _precondition(lo, hi, work)
        far = power = change = 0.0
        for k in range(lo, hi):
            far = max(far, abs(work[RHS, k]))
            power += work[RHS, k] * work[HERE + 2, k]
            change += work[RHS, k] * (work[HERE + 2, k] - work[THERE + 2, k])
        if far <= near:
            break
        beta = max(0.0, change / before) if before > 0.0 else 0.0  # Polak and Ribiere
        slope = 0.0
        for k in range(lo, hi):
            last = beta * work[NEW, k] if beta > 0.0 else 0.0  # NEW may hold anything at first
            work[NEW, k] = last - work[RHS, k]
            slope += work[NEW, k] * work[HERE + 2, k]
        found, there = value, links
        if slope < 0.0:
            found, there = _line_search(lo, hi, start, v, w, terms, work, mu, value, size)
        if found >= value:
            if beta == 0.0:
                break
            before = 0.0
            continue
        value, links, before = found, there, power
        for k in range(lo, hi):
            work[X, k] = work[TRIAL, k]
            for row in range(3):  # THERE keeps the last gradient, which beta needs
                here = work[HERE + row, k]
                work[HERE + row, k] = work[THERE + row, k]
                work[THERE + row, k] = here
    return links


@kernel
def solve_barrier(lo, hi, start, v, w, terms, work):  # type: ignore[no-untyped-def]
    """Solve (1) for one query; arguments and result are those of ``interval_qp.solve_newton``.

    Both lambdas are finite, and lambda2 is above 0: without it nothing would hold a width.
    """
    size, _ = cover(lo, hi, start, v, w, work)
    size += 1.0 / math.sqrt(terms.lambda2)  # barriers reach that far where all scores are equal
    for k in range(lo, hi, 2):
        work[X, k] = work[ENDS, k] - 1e-2 * size
        work[X, k + 1] = work[ENDS, k + 1] + 1e-2 * size
    links, mu = 0.0, 1.0
    while mu <= _LAST_MU:
        near = size * (_ROUGH if mu < _LAST_MU else _EXACT)
        links = _conjugate_gradients(lo, hi, start, v, w, terms, work, mu, size, near)
        mu *= 2.0
    return links
