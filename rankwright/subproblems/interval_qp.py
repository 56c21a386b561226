"""The least change of one query's scores that puts its grades into separate, narrow intervals.

``solve_newton`` solves problem (3) of `interval_chain` exactly. It is piecewise quadratic with a
tridiagonal Hessian, so the solver goes from the minimum of one piece to the next, variables whose
constraint binds moving as one, and is done when the minimum lies on the piece itself. Where several
intervals would close it closes all of them if that lowers (3), and else the first on the way; where
multipliers say that closed ones want to open it opens all of them, until that fails once.

The last system is set up from the piece alone, in sums that do not depend on the order of the
documents, so neither the start of the search nor the order of the rows shows in the result (except
in the last bit where a multiplier is zero to rounding, and either of two pieces will do).
"""

from __future__ import annotations

import math

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import NO_KEY, sort_query
from rankwright.subproblems.interval_chain import (
    DIAG,
    ENDS,
    FIXED,
    FREE,
    HERE,
    MASS,
    NEW,
    OFF,
    OLD,
    RHS,
    SQUARED,
    THERE,
    TIED,
    TRIAL,
    WEIGHT,
    Terms,
    X,
    cover,
    evaluate,
    spring,
)
from rankwright.subproblems.pav import pav

_TINY = 1e-12  # shares of the size of a sum: below this one its sign is not trusted,
_NOISE = 1e-14  # and below this one it is rounding

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _piece_minimum(lo, hi, terms, tie, work):  # type: ignore[no-untyped-def]
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
        work[DIAG, m] += work[HERE, k]
        work[RHS, m] += work[HERE + 1, k]
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
def _first_block(lo, hi, tie, hard, work):  # type: ignore[no-untyped-def]
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
def _pool(lo, hi, tie, hard, work, first, point):  # type: ignore[no-untyped-def]
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
def _begin(lo, hi, terms, tie, work, first, size, warm):  # type: ignore[no-untyped-def]
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
def _try_pooled(lo, hi, start, v, w, terms, tie, work, first, value):  # type: ignore[no-untyped-def]
    """Pool all that crosses at NEW in one go; keep the ties if (3) falls, and say so."""
    for k in range(lo, hi):
        work[TRIAL, k], work[OLD, k] = work[NEW, k], tie[k]
        work[WEIGHT, k] = work[HERE, k] + _TINY * work[MASS, k]
    _pool(lo, hi, tie, terms.lambda1 == np.inf, work, first, TRIAL)
    found = evaluate(lo, hi, start, v, w, terms, tie, work, TRIAL, THERE)
    if found < value:
        return True, found
    for k in range(lo, hi):
        tie[k] = int(work[OLD, k])
    return False, value


@kernel
def _search(lo, hi, start, v, w, terms, tie, work, value, reach, at):  # type: ignore[no-untyped-def]
    """Go from X towards NEW until (3) has fallen well; return the step and the value.

    The derivative along the way rises and, for d^2/2, is piecewise linear: Newton's method inside
    a shrinking bracket finds its root in a few evaluations, and mostly the first is good enough.
    """
    slope = 0.0
    for k in range(lo, hi):
        slope += work[HERE + 2, k] * (work[NEW, k] - work[X, k])
    low, high, t = 0.0, reach, reach
    for _ in range(60):
        for k in range(lo, hi):
            work[TRIAL, k] = work[X, k] + t * (work[NEW, k] - work[X, k])
            if t == 1.0:
                work[TRIAL, k] = work[NEW, k]
            if k > lo and (tie[k - 1] != FREE or (k - 1 == at and t == reach)):
                work[TRIAL, k] = work[TRIAL, k - 1]
        found = evaluate(lo, hi, start, v, w, terms, tie, work, TRIAL, THERE)
        rise = bend = last = 0.0
        for k in range(lo, hi):
            d = work[NEW, k] - work[X, k]
            rise += work[THERE + 2, k] * d
            bend += work[THERE, k] * d * d
            if k > lo:
                bend += spring(work, TRIAL, k - 1, tie, terms) * (d - last) ** 2
            last = d
        if (rise <= 0.0 and t == high) or found <= value + 0.1 * t * slope + _NOISE * value:
            break
        if rise > 0.0:
            high = t
        else:
            low = t
        t = t - rise / bend if bend > 0.0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t, found


@kernel
def _untie(lo, hi, terms, tie, work, size, bold):  # type: ignore[no-untyped-def]
    """Free the constraints that pull apart: all of them, or the strongest; say whether any."""
    springs = 0.0
    for strength in (terms.lambda1, terms.lambda2):
        springs += strength if strength < np.inf else 0.0
    force = mass = worst = 0.0
    at, apart = -1, True
    for k in range(lo, hi - 1):
        if apart:
            force = mass = 0.0
        force -= work[HERE + 2, k]  # the multiplier of x_k <= x_{k+1} inside its block
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
def _same_piece(lo, hi, terms, tie, work):  # type: ignore[no-untyped-def]
    """Whether X and TRIAL certainly lie on one piece; a tied grade counts all its documents."""
    for k in range(lo, hi):
        same = work[HERE, k] == work[THERE, k] and work[HERE + 1, k] == work[THERE + 1, k]
        if not same and (terms.shape != SQUARED or tie[k - k % 2] == FREE):
            return False
        if k + 1 < hi:
            before, after = spring(work, X, k, tie, terms), spring(work, TRIAL, k, tie, terms)
            if before != after:
                return False
    return True


@kernel
def _split_sums(lo, hi, v, w, low, high, tied, grid_w, grid_v):  # type: ignore[no-untyped-def]
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
def _finish(lo, hi, start, v, w, terms, tie, work, size, heaviest):  # type: ignore[no-untyped-def]
    """Solve for the piece at X once more, from the piece alone."""
    most = (start[hi // 2] - start[lo // 2]) * heaviest
    grid_w, grid_v = 1.5 * 2.0 ** math.frexp(most)[1], 1.5 * 2.0 ** math.frexp(most * size)[1]
    for k in range(lo, hi, 2):
        a, a_pull, b, b_pull = _split_sums(
            start[k // 2], start[k // 2 + 1], v, w, work[X, k], work[X, k + 1],
            tie[k] != FREE, grid_w, grid_v,
        )  # fmt: skip
        work[HERE, k], work[HERE, k + 1] = a, b
        work[HERE + 1, k], work[HERE + 1, k + 1] = a_pull, b_pull
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
def solve_newton(lo, hi, start, v, w, terms, tie, work, first, warm):  # type: ignore[no-untyped-def]
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
    value = evaluate(lo, hi, start, v, w, terms, tie, work, X, HERE)
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
                    work[HERE + row, k] = work[THERE + row, k]
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
def solve_hard(lo, hi, start, v, w, work, desk, places):  # type: ignore[no-untyped-def]
    """Solve (3) for one query with hard margins and free widths: problem (5) of the paper.

    Inside a grade the corrected scores keep the order of the scores, so with each grade sorted
    the solution is one isotonic regression. ``desk`` (3 rows) and ``places`` (2) are scratch of
    the length of ``v``; the rest as for ``solve_newton``.
    """
    for k in range(lo, hi, 2):
        p, r = start[k // 2], start[k // 2 + 1]
        sort_query(p, r, v, NO_KEY, places[0], places[1])
        for i in range(p, r):
            largest_last = places[0, p + r - 1 - i]
            desk[0, i], desk[1, i] = v[largest_last], w[largest_last]
    z = desk[0]
    pav(start[lo // 2], start[hi // 2], z, desk[1], z, desk[2], places[0])
    for k in range(lo, hi, 2):
        work[X, k], work[X, k + 1] = z[start[k // 2]], z[start[k // 2 + 1] - 1]
    return 0.0
