"""IntervalRank's inner problem: the smallest change of a query's scores that separates its grades.

With both slacks of problem (6) of [moon2010intervalrank] eliminated (Theorem 5), grade g has an
interval [l_g, u_g], and the corrected score z of a document is its score, clipped to the interval:

    min over l_g <= u_g of  sum_g sum_{i in g} w_i rho((l_g - s_i)_+) + w_i rho((s_i - u_g)_+)
                          + sum_g lambda2/2 (u_g - l_g)^2
                          + sum_g lambda1/2 (y_{g+1} - y_g - l_{g+1} + u_g)_+^2               (1)

    z_i = min(max(s_i, l_g), u_g)                                                             (2)

With v = s - y, the ends form the chain x = (l_0 - y_0, u_0 - y_0, l_1 - y_1, ...), and (1) is

    min  sum_k data_k(x_k) + sum_k gap_k(x_{k+1} - x_k)                                       (3)
    gap_k(r) = lambda2/2 r^2       if k is even (widths), with r >= 0
    gap_k(r) = lambda1/2 (-r)_+^2  if k is odd (margins), with r >= 0 if lambda1 is infinite

In the paper's log-barrier method (Algorithm 2), the gaps are, for mu = 1, 2, 4, ..., 64,

    gap_k(r) = min over xi  of lambda2/2 xi^2  - log(r)/mu - log(xi - r)/mu     if k is even
    gap_k(r) = min over eps of lambda1/2 eps^2 - log(r + eps)/mu                if k is odd   (4)

(the paper prints -eps in the last slack). Both minima have a closed form: the slack t = r + eps
is the positive root of lambda1 (t - r) t = 1/mu, and t = xi - r that of lambda2 (t + r) t = 1/mu.
Because the last mu is finite, intervals keep a distance from their constraints.

Both problems are solved by Newton's method with a line search; the Hessian is tridiagonal. With
rho(d) = d^2/2, (3) is piecewise quadratic: a piece is given by the documents beyond each end and
by the margins that are missed. Ends whose constraint binds are tied: they move together. The solver
stops at a minimum on its own piece if all ties have a positive multiplier. It starts with intervals
that cover their documents. Documents are sorted by v within each grade, so that (1) needs only
sums over the first or the last of them, which do not depend on the order of the rows.

If rho is nearly straight, Newton's method finds no good direction. Therefore the curvature is at
least ``straight`` times rho'(d)/d, the curvature of the parabola that touches rho at d and -d and
lies above it. The solver starts with 1 and lowers it after full steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.losses.pav import pav

SQUARED, HUBER, PSEUDO_HUBER = 0, 1, 2

# Rows of ``docs``, whose columns are documents: v and w; sums of w and w v from the first document
# of the grade; and to its last.
V, W, BELOW_W, BELOW_WV, ABOVE_W, ABOVE_WV = range(6)
DOCUMENT_ROWS = 6

# Rows of ``ends``, whose columns are the ends of intervals, two for each grade: x, the step and the
# point that is tried; gradient, curvature of the data and second derivative of the gap to the next
# end (infinite if they are tied); curvature with all ends before eliminated; the first document
# beyond the end; whether it is tied to the next end.
X, STEP, TRIAL, GRADIENT, CURVATURE, LINK, REDUCED, PIECE, TIE = range(9)
END_ROWS = 9

_LAST_MU = 64.0
_NOISE = 1e-14  # share of the size of a sum below which it counts as rounding
_ROUGH, _EXACT = 1e-3, 1e-10  # shares of the scores; steps below them end Newton's method


class Terms(NamedTuple):
    """The parameters of (3) for one query; mu is infinite without barriers."""

    lambda1: float
    lambda2: float
    mu: float
    penalty: int
    knee: float


# --- the terms of (3) ------------------------------------------------------------------------


@kernel
def penalty(d, kind, knee):
    """Return rho(d), rho'(d) / d and rho''(d) for d >= 0."""
    if kind == SQUARED or (kind == HUBER and d <= knee):
        return 0.5 * d * d, 1.0, 1.0
    if kind == HUBER:
        return knee * (d - 0.5 * knee), knee / d, 0.0
    square = (d / knee) ** 2
    root = math.sqrt(1.0 + square)
    return knee * knee * square / (1.0 + root), 1.0 / root, 1.0 / (root * root * root)


@kernel
def _sum_documents(lo, hi, start, docs):
    """Sum the documents of each grade; return the largest |v| and the weight of all."""
    size = mass = 0.0
    for k in range(lo, hi, 2):
        first, end = start[k // 2], start[k // 2 + 1]
        weight = moment = 0.0
        for i in range(first, end):
            weight += docs[W, i]
            moment += docs[W, i] * docs[V, i]
            docs[BELOW_W, i], docs[BELOW_WV, i] = weight, moment
        mass += weight
        weight = moment = 0.0
        for i in range(end - 1, first - 1, -1):
            weight += docs[W, i]
            moment += docs[W, i] * docs[V, i]
            docs[ABOVE_W, i], docs[ABOVE_WV, i] = weight, moment
        size = max(size, abs(docs[V, first]), abs(docs[V, end - 1]))
    return size, mass


@kernel
def _first_beyond(first, end, docs, x, strictly):
    """Return the first of the documents first:end whose v is above x, or not below it."""
    while first < end:
        middle = (first + end) // 2
        if docs[V, middle] < x or (strictly and docs[V, middle] == x):
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def _sum_penalties(first, end, docs, x, terms, straight):
    """Return gradient and curvature at x of the penalties of the documents first:end."""
    gradient = curvature = 0.0
    for i in range(first, end):
        d = x - docs[V, i]
        _, factor, second = penalty(abs(d), terms.penalty, terms.knee)
        gradient += docs[W, i] * factor * d
        curvature += docs[W, i] * max(second, straight * factor)
    return gradient, curvature


@kernel
def _margin(r, strength, mu):
    """Return the minimum over eps in (4) for odd k, its derivative and its curvature in r."""
    root = math.sqrt(r * r + 4.0 / (strength * mu))
    t = 0.5 * (r + root) if r > 0.0 else 2.0 / (strength * mu) / (root - r)
    slope = -1.0 / (mu * t)
    return 0.5 * slope * slope / strength - math.log(t) / mu, slope, 1.0 / (mu * t * root)


@kernel
def gap_term(k, r, terms):
    """Return gap_k(r) of (3), or of (4) if mu is finite, its derivative and its curvature."""
    mu = terms.mu
    if mu < np.inf and k % 2 == 0:
        value, slope, curvature = _margin(-r, terms.lambda2, mu)
        value, slope = value - math.log(r) / mu, -slope - 1.0 / (mu * r)
        return value, slope, curvature + 1.0 / (mu * r * r)
    if mu < np.inf and terms.lambda1 > 0.0:
        return _margin(r, terms.lambda1, mu)
    strength = terms.lambda2
    if k % 2 == 1:
        strength = terms.lambda1 if r <= 0.0 and terms.lambda1 < np.inf else 0.0
    return 0.5 * strength * r * r, strength * r, strength


@kernel
def _evaluate(lo, hi, start, docs, ends, point, terms, straight):
    """Write the derivatives of (3) at a point, a row of ``ends``.

    Returns whether the point lies on the piece of the last call.
    """
    same = terms.penalty == SQUARED and terms.mu == np.inf
    for k in range(lo, hi, 2):
        first, end = start[k // 2], start[k // 2 + 1]
        low, high = ends[point, k], ends[point, k + 1]
        below = _first_beyond(first, end, docs, low, True)
        above = _first_beyond(first, end, docs, high, ends[TIE, k] > 0.0)  # no document twice
        same = same and ends[PIECE, k] == below and ends[PIECE, k + 1] == above
        ends[PIECE, k], ends[PIECE, k + 1] = below, above
        gradient = curvature = upper_gradient = upper_curvature = 0.0
        if terms.penalty != SQUARED:
            gradient, curvature = _sum_penalties(first, below, docs, low, terms, straight)
            upper_gradient, upper_curvature = _sum_penalties(
                above, end, docs, high, terms, straight
            )
        else:
            if below > first:
                curvature = docs[BELOW_W, below - 1]
                gradient = curvature * low - docs[BELOW_WV, below - 1]
            if above < end:
                upper_curvature = docs[ABOVE_W, above]
                upper_gradient = upper_curvature * high - docs[ABOVE_WV, above]
        ends[GRADIENT, k], ends[GRADIENT, k + 1] = gradient, upper_gradient
        ends[CURVATURE, k], ends[CURVATURE, k + 1] = curvature, upper_curvature
    for k in range(lo, hi - 1):
        slope, stiffness = 0.0, np.inf
        if not ends[TIE, k]:
            _, slope, stiffness = gap_term(k, ends[point, k + 1] - ends[point, k], terms)
        same = same and ends[LINK, k] == stiffness
        ends[GRADIENT, k] -= slope
        ends[GRADIENT, k + 1] += slope
        ends[LINK, k] = stiffness
    return same


# --- Newton's method -------------------------------------------------------------------------


@kernel
def _newton_step(lo, hi, ends):
    """Write the step to the minimum of the quadratic model at x; return its largest component.

    Ends are eliminated one after the other: an end of curvature d adds d c / (d + c) to the next
    one through the link c.
    """
    before = pull = 0.0
    for k in range(lo, hi):
        ends[REDUCED, k] = ends[CURVATURE, k] + before
        ends[STEP, k] = pull - ends[GRADIENT, k]
        link = ends[LINK, k] if k + 1 < hi else 0.0
        share = 1.0
        if link < np.inf:
            share = link / (ends[REDUCED, k] + link) if link > 0.0 else 0.0
        before, pull = share * ends[REDUCED, k], share * ends[STEP, k]
    largest = after = 0.0
    for k in range(hi - 1, lo - 1, -1):
        link = ends[LINK, k] if k + 1 < hi else 0.0
        if link < np.inf:
            whole = ends[REDUCED, k] + link
            after = (ends[STEP, k] + link * after) / whole if whole > 0.0 else 0.0
        ends[STEP, k] = after
        largest = max(largest, abs(after))
    return largest


@kernel
def _room(lo, hi, ends, terms):
    """Return the allowed part of the step, and the constraint that limits it or -1."""
    exact = terms.mu == np.inf
    each = 1 if exact and terms.lambda1 == np.inf else 2
    reach, at = 1.0, -1
    for k in range(lo, hi - 1, each):
        closing = ends[STEP, k] - ends[STEP, k + 1]
        room = (ends[X, k + 1] - ends[X, k]) * (1.0 if exact else 0.99)
        if not ends[TIE, k] and closing > 0.0 and room < reach * closing:
            reach, at = room / closing, k
    return reach, at


@kernel
def _line_search(lo, hi, start, docs, ends, reach, terms, straight):
    """Find the part of the step, up to ``reach``, that nearly minimises (3); write the point.

    The root of the derivative, which increases, is found by Newton's method in a bracket. Returns
    the part, and whether it is the whole step to a point on the same piece.
    """
    first = 0.0
    for k in range(lo, hi):
        first += ends[GRADIENT, k] * ends[STEP, k]
    low, high, t, same = 0.0, reach, reach, False
    most = -first * (1e-9 if terms.mu == np.inf else 0.1)
    for _ in range(60):
        for k in range(lo, hi):
            ends[TRIAL, k] = ends[X, k] + t * ends[STEP, k]
        same = _evaluate(lo, hi, start, docs, ends, TRIAL, terms, straight)
        slope = bend = 0.0
        for k in range(lo, hi):
            step = ends[STEP, k]
            slope += ends[GRADIENT, k] * step
            bend += ends[CURVATURE, k] * step * step
            if k + 1 < hi and ends[LINK, k] < np.inf:
                bend += ends[LINK, k] * (ends[STEP, k + 1] - step) ** 2
        if slope <= most and (t == reach or slope >= 0.5 * first):
            break
        if slope > 0.0:
            high = t
        else:
            low = t
        t = t - slope / bend if bend > 0.0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t, same and t == 1.0


@kernel
def _untie(lo, hi, ends, terms, noise):
    """Free the tie with the most negative multiplier; return whether there is one."""
    force, worst, at = 0.0, -noise, -1
    for k in range(lo, hi - 1):
        force -= ends[GRADIENT, k]  # the multiplier of x_k <= x_{k+1}
        if not ends[TIE, k]:
            force = 0.0
        elif force < worst and (k % 2 == 1 or terms.lambda2 < np.inf):
            worst, at = force, k
    if at >= 0:
        ends[TIE, at] = 0.0
    return at >= 0


@kernel
def _minimise(lo, hi, start, docs, ends, terms, size, least_step, noise):
    """Move x to the minimum of (3) or (4); multipliers above -noise count as positive."""
    straight = 1.0
    _evaluate(lo, hi, start, docs, ends, X, terms, straight)
    for _ in range(200 + 20 * (hi - lo)):
        step = _newton_step(lo, hi, ends)
        settled, tied = not step > least_step, False  # settled also if it is NaN
        if not settled:
            reach, at = _room(lo, hi, ends, terms)
            if step * reach > 2.0 * size:  # no solution is that far
                reach, at = 2.0 * size / step, -1
            t, settled = _line_search(lo, hi, start, docs, ends, reach, terms, straight)
            straight = min(max(straight * (0.1 if t == 1.0 else 10.0), 1e-8), 1.0)
            tied = terms.mu == np.inf and t == reach and at >= 0
            if tied:
                ends[TIE, at] = 1.0
            for k in range(lo, hi):
                ends[X, k] = ends[X, k - 1] if k > lo and ends[TIE, k - 1] else ends[TRIAL, k]
        if settled and not _untie(lo, hi, ends, terms, noise):
            break
        if settled or tied:
            _evaluate(lo, hi, start, docs, ends, X, terms, straight)


@kernel
def _begin(lo, hi, start, docs, place, ends, terms):
    """Set x to intervals that cover their documents, or to means if grades have no width.

    If lambda1 is infinite, they are made feasible by isotonic regression. With lambda2 = 0 this is
    the solution: corrected scores keep the order of the scores within a grade.
    """
    if terms.lambda1 == np.inf or terms.lambda2 == np.inf:
        z = docs[BELOW_W]
        for k in range(lo, hi, 2):
            mass = moment = 0.0
            for i in range(start[k // 2], start[k // 2 + 1]):
                mass += docs[W, i]
                moment += docs[W, i] * docs[V, i]
                z[i] = docs[V, i]
            if terms.lambda2 == np.inf:
                z[start[k // 2] : start[k // 2 + 1]] = moment / mass
        if terms.lambda1 == np.inf:
            pav(start[lo // 2], start[hi // 2], z, docs[W], z, docs[ABOVE_W], place)
    for k in range(lo, hi, 2):
        first, end = start[k // 2], start[k // 2 + 1]
        if terms.lambda1 == np.inf or terms.lambda2 == np.inf:
            ends[X, k], ends[X, k + 1] = docs[BELOW_W, first], docs[BELOW_W, end - 1]
        else:
            ends[X, k], ends[X, k + 1] = docs[V, first], docs[V, end - 1]
    for k in range(lo, hi):
        bound = k + 1 < hi and (k % 2 == 0 or terms.lambda1 == np.inf)
        ends[TIE, k] = 1.0 if bound and ends[X, k] >= ends[X, k + 1] else 0.0


@kernel
def solve(lo, hi, start, docs, place, ends, terms):
    """Write the ends lo:hi of the intervals of one query to row X; return the sum of their gaps.

    Parameters
    ----------
    lo, hi
        Two ends for each grade of the query.
    start
        The documents of grade g are start[g]:start[g + 1].
    docs
        Rows V, sorted within each grade, and W; the other rows are computed here.
    place
        A work array of integers, one for each document.
    ends
        The rows of all ends.
    terms
        With barriers, any finite mu, finite lambdas and lambda2 above 0.
    """
    barrier = terms.mu < np.inf
    _begin(lo, hi, start, docs, place, ends, terms)
    size, mass = _sum_documents(lo, hi, start, docs)
    if barrier:
        size += 1.0 / math.sqrt(terms.lambda2)  # barriers reach this far if scores are equal
        for k in range(lo, hi, 2):
            ends[X, k] -= 1e-2 * size
            ends[X, k + 1] += 1e-2 * size
            ends[TIE, k] = 0.0
    for strength in (terms.lambda1, terms.lambda2):
        mass += strength if strength < np.inf else 0.0
    mu = 1.0 if barrier else np.inf
    while True:
        terms = Terms(terms.lambda1, terms.lambda2, mu, terms.penalty, terms.knee)
        least = _ROUGH if mu < _LAST_MU else _EXACT
        if not barrier:
            least = _NOISE if terms.penalty == SQUARED else 10.0 * _NOISE
        _minimise(lo, hi, start, docs, ends, terms, size, least * size, _NOISE * size * mass)
        if mu >= _LAST_MU:
            break
        mu *= 2.0
    total = 0.0
    for k in range(lo, hi - 1):
        if not ends[TIE, k]:
            total += gap_term(k, ends[X, k + 1] - ends[X, k], terms)[0]
    return total
