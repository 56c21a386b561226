"""IntervalRank's inner problem: the least change of one query's scores that separates its grades.

The problem (6) of [moon2010intervalrank], both slacks eliminated (Theorem 5): grade g gets an
interval [l_g, u_g], and a document's corrected score is its own, clipped to it,

    min over l_g <= u_g of  sum_g sum_{i in g} w_i rho((l_g - s_i)_+) + w_i rho((s_i - u_g)_+)
                          + sum_g lambda2/2 (u_g - l_g)^2
                          + sum_g lambda1/2 (Delta_{g+1,g} - l_{g+1} + u_g)_+^2               (1)

    z_i = clip(s_i, l_g, u_g)                                                                 (2)

with rho(d) = d^2/2, or another convex penalty. Measured from the target y_g of its grade, each
interval is a pair of the chain x = (l_0 - y_0, u_0 - y_0, l_1 - y_1, …), and (1) reads

    min  sum_k data_k(x_k) + sum_{k even} lambda2/2 (x_{k+1} - x_k)^2
                           + sum_{k odd}  lambda1/2 (x_k - x_{k+1})_+^2                       (3)
    subject to x_k <= x_{k+1} for k even, and for k odd where lambda1 is infinite.

There are two solvers: the exact one, which is the default, and the paper's. The sums over documents
that both need are taken in one pass without sorting: a solver needs some eight of them, which cost
less than a sort.

Arguments are the same throughout. Variables lo:hi are those of one query, two for each grade; the
documents of grade g are start[g]:start[g + 1]; v is score less target (less any constant of the
query) and w > 0 the weight of a document; ``tie`` says which variables are held equal to the next;
``work`` has a column for each variable. Nothing here slices or packs arrays, since the counts of
references that Numba keeps for that make threads wait for each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import NO_KEY, sort_query
from rankwright.losses.pav import pav

SQUARED, HUBER, PSEUDO_HUBER = 0, 1, 2
FREE, TIED, FIXED = 0, 1, 2

# Rows of ``work``: the current point and two more; the ends of intervals that cover all documents;
# the weight of the grade; the piece (three rows) at the current and at the tried point; scratch.
X, NEW, TRIAL, ENDS, MASS = 0, 1, 2, 3, 4
CURRENT, TRIED = 5, 8
# Rows of a piece: curvature of the data, its pull (of the barrier: curvature of the link to the
# next variable), and the gradient.
CURVATURE, PULL, GRADIENT = 0, 1, 2
LINK = PULL
DIAG, OFF, RHS, WEIGHT, OLD = 11, 12, 13, 14, 15
ROWS = 16


class Terms(NamedTuple):
    """The parameters of (1): both lambdas, and the penalty by number and knee.

    Where rho is nearly straight, Newton's method finds no good direction. Its curvature is taken to
    be at least ``straight`` times that of the parabola which touches rho at d and -d; a solver
    begins with 1 and lowers it as it comes near.
    """

    lambda1: float
    lambda2: float
    shape: int
    knee: float
    straight: float


# --- sums over documents ---------------------------------------------------------------------


@kernel
def penalty(d, terms):
    """Return rho, its derivative and its curvature at d >= 0."""
    knee = terms.knee
    if terms.shape == SQUARED or (terms.shape == HUBER and d <= knee):
        return 0.5 * d * d, d, 1.0
    if terms.shape == HUBER:
        return knee * (d - 0.5 * knee), knee, terms.straight * knee / d
    square = (d / knee) ** 2
    root = math.sqrt(1.0 + square)
    curvature = max(1.0 / (root * root * root), terms.straight / root)
    return knee * knee * square / (1.0 + root), d / root, curvature


@kernel
def beyond_squared(lo, hi, v, w, low, high):
    """Weight and weighted sum of documents at or below ``low``, and at or above ``high``."""
    below = above = below_sum = above_sum = value = 0.0
    for p in range(lo, hi):  # selects in place of branches: up to four times as fast
        d = low - v[p]
        m = w[p] if d >= 0.0 else 0.0
        below += m
        below_sum += m * v[p]
        e = v[p] - high
        o = w[p] if e >= 0.0 else 0.0
        above += o
        above_sum += o * v[p]
        value += m * d * d + o * e * e
    return below, below_sum, above, above_sum, 0.5 * value


@kernel
def beyond(lo, hi, v, w, low, high, terms):
    """As ``beyond_squared`` for any penalty: curvature, curvature x - derivative for the sum."""
    below = above = below_derivative = above_derivative = value = 0.0
    for p in range(lo, hi):
        if v[p] <= low:
            rho, derivative, curvature = penalty(low - v[p], terms)
            below += w[p] * curvature
            below_derivative += w[p] * derivative
            value += w[p] * rho
        if v[p] >= high:
            rho, derivative, curvature = penalty(v[p] - high, terms)
            above += w[p] * curvature
            above_derivative += w[p] * derivative
            value += w[p] * rho
    return below, below * low - below_derivative, above, above * high + above_derivative, value


@kernel
def spring(work, point, k, tie, terms):
    """Return the strength of the spring between x_k and x_{k+1} at a point."""
    if tie[k] != FREE:
        return 0.0
    if k % 2 == 0:
        return terms.lambda2
    overlap = work[point, k] >= work[point, k + 1]
    return terms.lambda1 if overlap and terms.lambda1 < np.inf else 0.0


@kernel
def evaluate(lo, hi, start, v, w, terms, tie, work, point, piece):
    """Return the value of (3) at a point, and write the piece there.

    Near the point data_k is curv_k/2 x_k^2 - pull_k x_k; ``piece`` is the first of the rows curv,
    pull and gradient.
    """
    total = 0.0
    for k in range(lo, hi, 2):
        low, high = work[point, k], work[point, k + 1]
        p, r = start[k // 2], start[k // 2 + 1]
        if terms.shape == SQUARED:
            a, a_pull, b, b_pull, value = beyond_squared(p, r, v, w, low, high)
            if tie[k] != FREE:  # documents at x itself count once
                twice = a + b - work[MASS, k]
                b -= twice
                b_pull -= twice * high
        else:
            a, a_pull, b, b_pull, value = beyond(p, r, v, w, low, high, terms)
        work[piece + CURVATURE, k], work[piece + CURVATURE, k + 1] = a, b
        work[piece + PULL, k], work[piece + PULL, k + 1] = a_pull, b_pull
        work[piece + GRADIENT, k], work[piece + GRADIENT, k + 1] = (
            a * low - a_pull,
            b * high - b_pull,
        )
        total += value
    for k in range(lo, hi - 1):
        gap = work[point, k + 1] - work[point, k]
        force = spring(work, point, k, tie, terms) * gap
        work[piece + GRADIENT, k] -= force
        work[piece + GRADIENT, k + 1] += force
        total += 0.5 * force * gap
    return total


@kernel
def cover(lo, hi, start, v, w, work):
    """Write the intervals that cover their documents to ENDS, and the weights of the grades.

    Returns the largest |v| and the largest weight.
    """
    size = heaviest = 0.0
    for k in range(lo, hi, 2):
        low, high, mass = np.inf, -np.inf, 0.0
        for p in range(start[k // 2], start[k // 2 + 1]):
            low, high = min(low, v[p]), max(high, v[p])
            heaviest = max(heaviest, w[p])
            mass += w[p]
        work[ENDS, k], work[ENDS, k + 1] = low, high
        work[MASS, k] = work[MASS, k + 1] = mass
        size = max(size, -low, high)
    return size, heaviest


# --- the exact solution ----------------------------------------------------------------------
# `solve_newton` solves (3) exactly. It is piecewise quadratic with a tridiagonal Hessian, so the
# solver goes from the minimum of one piece to the next, variables whose constraint binds moving
# as one, and is done when the minimum lies on the piece itself. Where several intervals would
# close it closes all of them if that lowers (3), and else the first on the way; where multipliers
# say that closed ones want to open it opens all of them, until that fails once.
#
# The last system is set up from the piece alone, in sums that do not depend on the order of the
# documents, so neither the start of the search nor the order of the rows shows in the result
# (except in the last bit where a multiplier is zero to rounding, and either of two pieces will
# do).


_TINY = 1e-12  # shares of the size of a sum: below this one its sign is not trusted,
_NOISE = 1e-14  # and below this one it is rounding


@kernel
def _piece_minimum(lo, hi, terms, tie, work):
    """Put the minimum of the piece at X into NEW, tied variables as one; a flat one stays."""
    m = lo - 1
    for k in range(lo, hi):
        if k == lo or tie[k - 1] == FREE:
            m += 1
            work[DIAG, m] = work[OFF, m] = work[RHS, m] = 0.0
            if k > lo:
                c = spring(work, X, k - 1, tie, terms)
                work[DIAG, m - 1] += c
                work[DIAG, m], work[OFF, m] = c, -c
        work[DIAG, m] += work[CURRENT + CURVATURE, k]
        work[RHS, m] += work[CURRENT + PULL, k]
        work[NEW, m] = work[X, k]
    for j in range(lo, m + 1):
        whole = work[DIAG, j]
        if j > lo and work[DIAG, j - 1] > 0.0:
            factor = work[OFF, j] / work[DIAG, j - 1]
            work[DIAG, j] -= factor * work[OFF, j]
            work[RHS, j] -= factor * work[RHS, j - 1]
        if work[DIAG, j] <= _TINY * whole:
            work[DIAG, j] = 0.0
    for j in range(m, lo - 1, -1):
        if work[DIAG, j] > 0.0:
            after = work[OFF, j + 1] * work[NEW, j + 1] if j < m else 0.0
            work[NEW, j] = (work[RHS, j] - after) / work[DIAG, j]
    for k in range(hi - 1, lo - 1, -1):  # from blocks to variables; backwards, so in place
        work[NEW, k] = work[NEW, m]
        if k > lo and tie[k - 1] == FREE:
            m -= 1


@kernel
def _first_block(lo, hi, tie, hard, work):
    """Return how far X may go towards NEW, and the constraint that stops it (or -1)."""
    reach, at = 1.0, -1
    for k in range(lo, hi - 1, 1 if hard else 2):
        if tie[k] == FREE and work[NEW, k] > work[NEW, k + 1]:
            room = work[X, k + 1] - work[X, k]
            share = room / (room + work[NEW, k] - work[NEW, k + 1])
            if share < reach:
                reach, at = share, k
    return reach, at


@kernel
def _pool(lo, hi, tie, hard, work, first, point):
    """Make a point feasible by pooling what crosses, and tie what was pooled."""
    if hard:
        x = work[point]
        pav(lo, hi, x, work[WEIGHT], x, work[DIAG], first)
    for k in range(lo, hi - 1, 1 if hard else 2):
        a, b = work[point, k], work[point, k + 1]
        if a > b:
            share = work[WEIGHT, k] / (work[WEIGHT, k] + work[WEIGHT, k + 1])
            work[point, k] = work[point, k + 1] = b + share * (a - b)
        if tie[k] == FREE and a >= b:
            tie[k] = TIED


@kernel
def _begin(lo, hi, terms, tie, work, first, size, warm):
    """Set X and tie: intervals that cover their documents, or the last ones if ``warm``.

    A free interval never reaches beyond its documents, nor a closed one beyond all documents.
    """
    for k in range(lo, hi, 2):
        low, high = work[ENDS, k], work[ENDS, k + 1]
        if not warm:
            work[X, k], work[X, k + 1] = low, high
            tie[k] = tie[k + 1] = FREE
        else:
            least, most = (low, high) if tie[k] == FREE else (-size, size)
            work[X, k] = min(max(work[X, k], least), most)
            work[X, k + 1] = min(max(work[X, k + 1], least), most)
        if low == high or terms.lambda2 == np.inf:
            work[X, k] = work[X, k + 1] = 0.5 * (work[X, k] + work[X, k + 1])
            tie[k] = FIXED
        elif tie[k] == FIXED:
            tie[k] = TIED
    if terms.lambda1 == np.inf:
        for k in range(lo, hi):
            work[WEIGHT, k] = 1.0
        _pool(lo, hi, tie, True, work, first, X)


@kernel
def _try_pooled(lo, hi, start, v, w, terms, tie, work, first, value):
    """Pool all that crosses at NEW in one go; keep the ties if (3) falls, and say so."""
    for k in range(lo, hi):
        work[TRIAL, k], work[OLD, k] = work[NEW, k], tie[k]
        work[WEIGHT, k] = work[CURRENT + CURVATURE, k] + _TINY * work[MASS, k]
    _pool(lo, hi, tie, terms.lambda1 == np.inf, work, first, TRIAL)
    found = evaluate(lo, hi, start, v, w, terms, tie, work, TRIAL, TRIED)
    if found < value:
        return True, found
    for k in range(lo, hi):
        tie[k] = int(work[OLD, k])
    return False, value


@kernel
def _search(lo, hi, start, v, w, terms, tie, work, value, reach, at):
    """Go from X towards NEW until (3) has fallen well; return the step and the value.

    The derivative along the way rises and, for d^2/2, is piecewise linear: Newton's method inside
    a shrinking bracket finds its root in a few evaluations, and mostly the first is good enough.
    """
    derivative = 0.0
    for k in range(lo, hi):
        derivative += work[CURRENT + GRADIENT, k] * (work[NEW, k] - work[X, k])
    low, high, t = 0.0, reach, reach
    for _ in range(60):
        for k in range(lo, hi):
            work[TRIAL, k] = work[X, k] + t * (work[NEW, k] - work[X, k])
            if t == 1.0:
                work[TRIAL, k] = work[NEW, k]
            if k > lo and (tie[k - 1] != FREE or (k - 1 == at and t == reach)):
                work[TRIAL, k] = work[TRIAL, k - 1]
        found = evaluate(lo, hi, start, v, w, terms, tie, work, TRIAL, TRIED)
        rise = curvature = last = 0.0
        for k in range(lo, hi):
            d = work[NEW, k] - work[X, k]
            rise += work[TRIED + GRADIENT, k] * d
            curvature += work[TRIED + CURVATURE, k] * d * d
            if k > lo:
                curvature += spring(work, TRIAL, k - 1, tie, terms) * (d - last) ** 2
            last = d
        if (rise <= 0.0 and t == high) or found <= value + 0.1 * t * derivative + _NOISE * value:
            break
        if rise > 0.0:
            high = t
        else:
            low = t
        t = t - rise / curvature if curvature > 0.0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t, found


@kernel
def _untie(lo, hi, terms, tie, work, size, bold):
    """Free the constraints that pull apart: all of them, or the strongest; say whether any."""
    springs = 0.0
    for strength in (terms.lambda1, terms.lambda2):
        springs += strength if strength < np.inf else 0.0
    force = mass = worst = 0.0
    at, apart = -1, True
    for k in range(lo, hi - 1):
        if apart:
            force = mass = 0.0
        force -= work[CURRENT + GRADIENT, k]  # the multiplier of x_k <= x_{k+1} inside its block
        mass += work[MASS, k]
        apart = tie[k] == FREE
        if tie[k] == TIED and force < -size * (_TINY * mass + _NOISE * springs):
            if force < worst:
                worst, at = force, k
            if bold:
                tie[k] = FREE
    if at >= 0:
        tie[at] = FREE
    return at >= 0


@kernel
def _same_piece(lo, hi, terms, tie, work):
    """Whether X and TRIAL certainly lie on one piece; a tied grade counts all its documents."""
    for k in range(lo, hi):
        same = (
            work[CURRENT + CURVATURE, k] == work[TRIED + CURVATURE, k]
            and work[CURRENT + PULL, k] == work[TRIED + PULL, k]
        )
        if not same and (terms.shape != SQUARED or tie[k - k % 2] == FREE):
            return False
        if k + 1 < hi:
            before, after = spring(work, X, k, tie, terms), spring(work, TRIAL, k, tie, terms)
            if before != after:
                return False
    return True


@kernel
def _split_sums(lo, hi, v, w, low, high, tied, grid_w, grid_v):
    """As ``beyond_squared``, in sums that hardly depend on the order of the documents.

    Adding and taking away 1.5 * 2^k leaves the upper bits of a number; these add up exactly, and
    what is left over is too small for its rounding to matter.
    """
    a = a_rest = a_pull = a_pull_rest = b = b_rest = b_pull = b_pull_rest = 0.0
    for p in range(lo, hi):
        upper_w = (w[p] + grid_w) - grid_w
        t = w[p] * v[p]
        upper_t = (t + grid_v) - grid_v
        if tied or v[p] <= low:
            a += upper_w
            a_rest += w[p] - upper_w
            a_pull += upper_t
            a_pull_rest += t - upper_t
        elif v[p] >= high:
            b += upper_w
            b_rest += w[p] - upper_w
            b_pull += upper_t
            b_pull_rest += t - upper_t
    return a + a_rest, a_pull + a_pull_rest, b + b_rest, b_pull + b_pull_rest


@kernel
def _finish(lo, hi, start, v, w, terms, tie, work, size, heaviest):
    """Solve for the piece at X once more, from the piece alone."""
    most = (start[hi // 2] - start[lo // 2]) * heaviest
    grid_w, grid_v = 1.5 * 2.0 ** math.frexp(most)[1], 1.5 * 2.0 ** math.frexp(most * size)[1]
    for k in range(lo, hi, 2):
        a, a_pull, b, b_pull = _split_sums(
            start[k // 2], start[k // 2 + 1], v, w, work[X, k], work[X, k + 1],
            tie[k] != FREE, grid_w, grid_v,
        )  # fmt: skip
        work[CURRENT + CURVATURE, k], work[CURRENT + CURVATURE, k + 1] = a, b
        work[CURRENT + PULL, k], work[CURRENT + PULL, k + 1] = a_pull, b_pull
    _piece_minimum(lo, hi, terms, tie, work)
    held = False
    for k in range(lo, hi):
        holds = k + 1 < hi and (tie[k] != FREE or spring(work, X, k, tie, terms) > 0.0)
        if not held and not holds:  # nothing pushes: as far as the documents, if it may
            other = work[NEW, k + 1 - 2 * (k % 2)]
            end = work[ENDS, k]
            work[NEW, k] = min(end, other) if k % 2 == 0 else max(end, other)
        held = holds
    for k in range(lo, hi, 2):
        work[X, k], work[X, k + 1] = work[NEW, k], max(work[NEW, k], work[NEW, k + 1])


@kernel
def solve_newton(lo, hi, start, v, w, terms, tie, work, first, warm):
    """Solve (3) for one query, whose variables are lo:hi; leaves the solution in ``work[X]``.

    Parameters
    ----------
    lo, hi
        Variables of the query: twice the number of its first grade, and of the grade behind it.
    start
        The documents of grade g are start[g]:start[g + 1].
    v, w
        Score less target of each document (less any constant of the query); weight, above 0.
    terms
        A `Terms`.
    tie, work, first
        State and scratch of all queries: int8, (ROWS, variables) floats, integers.
    warm
        Whether ``tie`` and ``work[X]`` hold the last solution, to start from.

    Returns
    -------
    value
        Of the terms of (3) that are not data: widths and margins.
    """
    size, heaviest = cover(lo, hi, start, v, w, work)
    _begin(lo, hi, terms, tie, work, first, size, warm)
    value = evaluate(lo, hi, start, v, w, terms, tie, work, X, CURRENT)
    bold, settled, stalls = True, False, 0
    for _ in range(200 + 20 * (hi - lo)):
        _piece_minimum(lo, hi, terms, tie, work)
        far = 0.0
        for k in range(lo, hi):
            far = max(far, abs(work[NEW, k] - work[X, k]))
        settled = far <= _NOISE * size
        if not settled:
            reach, at = _first_block(lo, hi, tie, terms.lambda1 == np.inf, work)
            if far * reach > 2.0 * size:  # where rho is nearly straight; x is within -size:size
                reach, at = 2.0 * size / far, -1
            pooled, found = False, value
            if at >= 0 and bold and far <= 2.0 * size:
                pooled, found = _try_pooled(lo, hi, start, v, w, terms, tie, work, first, value)
                bold = pooled
            if not pooled:
                step, found = _search(lo, hi, start, v, w, terms, tie, work, value, reach, at)
                if at >= 0 and step == reach:
                    tie[at] = TIED
                settled = at < 0 and step == 1.0 and _same_piece(lo, hi, terms, tie, work)
                straight = terms.straight * (0.1 if step == 1.0 else 10.0)
                straight = min(max(straight, 1e-8), 1.0)
                terms = Terms(terms.lambda1, terms.lambda2, terms.shape, terms.knee, straight)
            fell = found < value - 0.1 * _NOISE * value
            stalls = 0 if fell or at >= 0 else stalls + 1
            settled = settled or stalls > 3  # rounding is all that is left
            value = found
            for k in range(lo, hi):
                work[X, k] = work[TRIAL, k]
                for row in range(3):
                    work[CURRENT + row, k] = work[TRIED + row, k]
        if settled and not _untie(lo, hi, terms, tie, work, size, bold):
            break
    if settled and terms.shape == SQUARED:
        _finish(lo, hi, start, v, w, terms, tie, work, size, heaviest)
    springs = 0.0
    for k in range(lo, hi - 1):
        gap = work[X, k + 1] - work[X, k]
        springs += 0.5 * spring(work, X, k, tie, terms) * gap * gap
    return springs


@kernel
def solve_hard(lo, hi, start, v, w, work, sums, places):
    """Solve (3) for one query with hard margins and free widths: problem (5) of the paper.

    Inside a grade the corrected scores keep the order of the scores, so with each grade sorted
    the solution is one isotonic regression. ``sums`` (3 rows) and ``places`` (2) are scratch
    of the length of ``v``; the rest as for ``solve_newton``.
    """
    for k in range(lo, hi, 2):
        p, r = start[k // 2], start[k // 2 + 1]
        sort_query(p, r, v, NO_KEY, places[0], places[1])
        for i in range(p, r):
            largest_last = places[0, p + r - 1 - i]
            sums[0, i], sums[1, i] = v[largest_last], w[largest_last]
    z = sums[0]
    pav(start[lo // 2], start[hi // 2], z, sums[1], z, sums[2], places[0])
    for k in range(lo, hi, 2):
        work[X, k], work[X, k + 1] = z[start[k // 2]], z[start[k // 2 + 1] - 1]
    return 0.0


# --- the paper's log-barrier method ----------------------------------------------------------
# It keeps grades further apart.
#
# Algorithm 2 of [moon2010intervalrank] solves problem (1) with barriers in place of
# its constraints, for mu = 1, 2, 4, …, 64, each time from the last solution:
#
#     (1)  - 1/mu sum_g [log(u_g - l_g) + log(l_g + xi_g - u_g)]
#          - 1/mu sum_g log(l_{g+1} - u_g - Delta_{g+1,g} + eps_g)                              (4)
#
# (the paper prints the last slack with -eps_g). Given l and u, eps and xi have a closed form:
# with the distance r = l_{g+1} - u_g - Delta, the slack t = r + eps solves lambda1 (t - r) t =
# 1/mu, and with the width d = u_g - l_g, t = xi - d solves lambda2 (t + d) t = 1/mu. So conjugate
# gradients run over the chain x alone, preconditioned by the tridiagonal Hessian.
#
# mu stays finite on purpose: intervals keep a distance from their constraints. The loss is then the
# minimum of (4) at the last mu, barriers included, whose gradient in the scores is again s - z.


_LAST_MU = 64.0
_ROUGH, _EXACT = 1e-3, 1e-10


@kernel
def _margin(r, strength, mu):
    """Minimum over eps of strength/2 eps^2 - log(r + eps)/mu: value, derivative, curvature in r."""
    root = math.sqrt(r * r + 4.0 / (strength * mu))
    t = 0.5 * (r + root) if r > 0.0 else 2.0 / (strength * mu) / (root - r)
    derivative = -1.0 / (mu * t)
    return (
        0.5 * derivative * derivative / strength - math.log(t) / mu,
        derivative,
        1.0 / (mu * t * root),
    )


@kernel
def _width(d, strength, mu):
    """Minimum over xi of strength/2 xi^2 - log(xi - d)/mu, less log(d)/mu; as ``_margin``."""
    value, derivative, curvature = _margin(-d, strength, mu)
    return value - math.log(d) / mu, -derivative - 1.0 / (mu * d), curvature + 1.0 / (mu * d * d)


@kernel
def _evaluate(lo, hi, start, v, w, terms, work, mu, point, piece):
    """Return (4) and its part without data at a point.

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
        work[piece + CURVATURE, k], work[piece + CURVATURE, k + 1] = a, b
        work[piece + GRADIENT, k], work[piece + GRADIENT, k + 1] = (
            a * low - a_pull,
            b * high - b_pull,
        )
        data += value
    for k in range(lo, hi - 1):
        gap = work[point, k + 1] - work[point, k]
        value = derivative = curvature = 0.0
        if k % 2 == 0:
            value, derivative, curvature = _width(gap, terms.lambda2, mu)
        elif terms.lambda1 > 0.0:
            value, derivative, curvature = _margin(gap, terms.lambda1, mu)
        work[piece + LINK, k] = curvature
        work[piece + GRADIENT, k] -= derivative
        work[piece + GRADIENT, k + 1] += derivative
        links += value
    work[piece + LINK, hi - 1] = 0.0
    return data + links, links


@kernel
def _line_search(lo, hi, start, v, w, terms, work, mu, value, size):
    """Go from X along NEW to where (4) is nearly least, into TRIAL; return (4) there, its links.

    Newton's method on the derivative, inside a bracket that ends where an interval would close or
    a variable would cross the whole range.
    """
    low, derivative, longest = 0.0, 0.0, 0.0
    for k in range(lo, hi):
        derivative += work[CURRENT + GRADIENT, k] * work[NEW, k]
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
        found, links = _evaluate(lo, hi, start, v, w, terms, work, mu, TRIAL, TRIED)
        rise = curvature = 0.0
        for k in range(lo, hi):
            d = work[NEW, k]
            rise += work[TRIED + GRADIENT, k] * d
            curvature += work[TRIED + CURVATURE, k] * d * d
            if k + 1 < hi:
                curvature += work[TRIED + LINK, k] * (work[NEW, k + 1] - d) ** 2
        if abs(rise) <= 0.1 * abs(derivative) and found <= value + 1e-4 * t * derivative:
            break
        if rise > 0.0:
            high = t
        else:
            low = t
        t = t - rise / curvature if curvature > 0.0 else high
        if not low < t < high:
            t = 0.5 * (low + high)
    return found, links


@kernel
def _precondition(lo, hi, work):
    """Divide the gradient at X by the tridiagonal Hessian there, into RHS."""
    for k in range(lo, hi):
        before = work[CURRENT + LINK, k - 1] if k > lo else 0.0
        work[DIAG, k] = work[CURRENT + CURVATURE, k] + before + work[CURRENT + LINK, k]
        work[RHS, k] = work[CURRENT + GRADIENT, k]
        whole = work[DIAG, k]
        if k > lo and work[DIAG, k - 1] > 0.0:
            factor = before / work[DIAG, k - 1]
            work[DIAG, k] -= factor * before
            work[RHS, k] += factor * work[RHS, k - 1]
        if work[DIAG, k] <= 1e-14 * whole:  # no document pulls: the level is free
            work[DIAG, k] = 0.0
    for k in range(hi - 1, lo - 1, -1):
        after = work[CURRENT + LINK, k] * work[RHS, k + 1] if k + 1 < hi else 0.0
        work[RHS, k] = (work[RHS, k] + after) / work[DIAG, k] if work[DIAG, k] > 0.0 else 0.0


@kernel
def _conjugate_gradients(lo, hi, start, v, w, terms, work, mu, size, near):
    """Minimise (4) from X until preconditioned gradients are below ``near``; return its links."""
    value, links = _evaluate(lo, hi, start, v, w, terms, work, mu, X, CURRENT)
    before = 0.0  # the power of the last gradient; 0 begins anew with the gradient alone
    for _ in range(200):
        _precondition(lo, hi, work)
        far = power = change = 0.0
        for k in range(lo, hi):
            far = max(far, abs(work[RHS, k]))
            power += work[RHS, k] * work[CURRENT + GRADIENT, k]
            change += work[RHS, k] * (work[CURRENT + GRADIENT, k] - work[TRIED + GRADIENT, k])
        if far <= near:
            break
        beta = max(0.0, change / before) if before > 0.0 else 0.0  # Polak and Ribiere
        derivative = 0.0
        for k in range(lo, hi):
            last = beta * work[NEW, k] if beta > 0.0 else 0.0  # NEW may hold anything at first
            work[NEW, k] = last - work[RHS, k]
            derivative += work[NEW, k] * work[CURRENT + GRADIENT, k]
        found, there = value, links
        if derivative < 0.0:
            found, there = _line_search(lo, hi, start, v, w, terms, work, mu, value, size)
        if found >= value:
            if beta == 0.0:
                break
            before = 0.0
            continue
        value, links, before = found, there, power
        for k in range(lo, hi):
            work[X, k] = work[TRIAL, k]
            for row in range(3):  # TRIED keeps the last gradient, which beta needs
                here = work[CURRENT + row, k]
                work[CURRENT + row, k] = work[TRIED + row, k]
                work[TRIED + row, k] = here
    return links


@kernel
def solve_barrier(lo, hi, start, v, w, terms, work):
    """Solve (4) for one query; arguments and result are those of `solve_newton`.

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
