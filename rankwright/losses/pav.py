"""Isotonic regression by pooling adjacent violators: the nearest sequence that never decreases.

    min over x_lo <= ... <= x_{hi-1} of  sum_k w_k/2 (x_k - y_k)^2,    w_k > 0                (1)

Neighbours in the wrong order are replaced by their weighted mean until there are none, in one pass.
The result consists of blocks of one level each. The k-th block begins at ``first[lo + k]``. The
Jacobian of the solution is the weighted mean over each block. A bound x >= f only clips the
solution: x = max(x, f).

Bregman projections with margins have the same form [acharyya2014memr]. With increasing d, the
running sum of the margins, the minimum of D(r || m(y)) subject to r_{k+1} - r_k >= d_{k+1} - d_k is

    square              r = x + d,       x solves (1) for y - d                               (2)
    KL, ratio margins   r = exp(x + d),  x solves (1) for y - d with weights w exp(d)         (3)
    KL                  r = exp(x) + d,  with sum w log(exp(x) + d) = sum w y in each block   (4)

where (3) has r_{k+1} / r_k >= exp(d_{k+1} - d_k) instead. On the simplex, sum w r = 1 adds the
same constant to every y (`simplex_shift`, `pav_additive_simplex`). In (4) d begins with 0.
"""

from __future__ import annotations

import math

import numpy as np

from rankwright.core.jit import kernel

_STEPS = 200  # more than any of these Newton iterations needs

# --- kernels ---------------------------------------------------------------------------------


@kernel
def pav(lo, hi, y, w, x, weight, first):
    """Write the solution of (1) to ``x[lo:hi]``, which may be ``y`` itself.

    ``weight`` and ``first`` (integers) are work arrays as long as ``y``. Returns the end of the
    list of blocks; they begin at ``first[lo]``, ..., ``first[end - 1]``. Equal levels are one
    block.
    """
    y, w, x, weight, begins = y[lo:hi], w[lo:hi], x[lo:hi], weight[lo:hi], first[lo:hi]
    top = -1  # the last block, with its level in x, its weight and its first place in begins
    for k in range(len(y)):
        level, heavy, begin = y[k], w[k], k
        while top >= 0 and x[top] >= level:
            both = weight[top] + heavy
            level += (x[top] - level) * (weight[top] / both)
            heavy, begin = both, begins[top] - lo
            top -= 1
        top += 1
        x[top], weight[top], begins[top] = level, heavy, lo + begin
    _spread(lo, x, begins[: top + 1])
    return lo + top + 1


@kernel
def _spread(lo, x, begins):
    """Copy the level of each block from the first places of ``x`` to all places of the block."""
    end = len(x)
    for block in range(len(begins) - 1, -1, -1):
        level, begin = x[block], begins[block] - lo
        for k in range(begin, end):
            x[k] = level
        end = begin


@kernel
def log_plus(x, d):
    """Return log(exp(x) + d) for d >= 0."""
    if d == 0.0:
        return x
    return x + math.log1p(d * math.exp(-x)) if x > 0.0 else math.log(math.exp(x) + d)


@kernel
def _additive_level(lo, begin, end, stop, d, mass, mean):
    """Return x of (4) for the block begin:end; -inf if exp(x) would be 0 or less.

    ``stop[k]`` is the end of the run of d equal to d_k, ``mass[k]`` the weight of lo:k+1. The left
    side of (4) is convex and increasing in x, and too large at ``mean``, so Newton's method
    decreases x in every step.
    """
    if d[begin] == d[end - 1]:
        level = math.exp(mean) - d[begin]
        return mean if d[begin] == 0.0 else (math.log(level) if level > 0.0 else -np.inf)
    heavy = mass[end - 1] - (mass[begin - 1] if begin > lo else 0.0)
    x = mean
    for _ in range(_STEPS):
        miss, derivative, k = -heavy * mean, 0.0, begin
        while k < end:
            after = min(stop[k], end)
            w = mass[after - 1] - (mass[k - 1] if k > lo else 0.0)
            log_r = log_plus(x, d[k])
            miss += w * log_r
            derivative += w * math.exp(x - log_r)
            k = after
        if derivative <= 0.0:
            return -np.inf
        step = miss / derivative
        x -= step
        if step <= 1e-14 * max(1.0, abs(x)):
            break
        if x < -1e6:  # scores reach 1e4; a level below has no limit
            return -np.inf
    return x


@kernel
def pav_additive(lo, hi, y, shift, w, d, stop, x, mean, mass, weight, first):
    """Write x of (4) for scores y + shift to ``x[lo:hi]``; return the end of the list of blocks.

    The level of a block without its lowest documents may not exist; such a block counts as -inf
    and is pooled with the block below. ``mean``, ``mass`` and ``weight`` are work arrays.
    """
    total = 0.0
    for k in range(lo, hi):
        total += w[k]
        mass[k] = total
    top = lo - 1
    for k in range(lo, hi):
        centre, heavy, begin = y[k] + shift, w[k], k
        level = _additive_level(lo, begin, k + 1, stop, d, mass, centre)
        while top >= lo and x[top] >= level:
            both = weight[top] + heavy
            centre += (mean[top] - centre) * (weight[top] / both)
            heavy, begin = both, first[top]
            top -= 1
            level = _additive_level(lo, begin, k + 1, stop, d, mass, centre)
        top += 1
        x[top], mean[top], weight[top], first[top] = level, centre, heavy, begin
    _spread(lo, x[lo:hi], first[lo : top + 1])
    return top + 1


@kernel
def pav_additive_simplex(lo, hi, y, w, d, stop, floor, x, mean, mass, weight, first):
    """Write x of (4) at the shift for which sum w max(exp(x), floor) + w d = 1; see `pav_additive`.

    The largest y must be about 0. A shift exists if sum w (floor + d) < 1.
    """
    room, total, blocks = 1.0, 0.0, lo
    for k in range(lo, hi):
        room -= w[k] * d[k]
        total += w[k] * math.exp(y[k])
    shift, below, above = math.log(room) - math.log(total), -np.inf, np.inf
    for _ in range(_STEPS):
        blocks = pav_additive(lo, hi, y, shift, w, d, stop, x, mean, mass, weight, first)
        top = max(x[hi - 1], math.log(floor)) if floor > 0.0 else x[hi - 1]
        filled = derivative = 0.0  # both in units of exp(top), which may underflow
        for block in range(lo, blocks):
            begin, end = first[block], first[block + 1] if block + 1 < blocks else hi
            heavy = inverse = 0.0
            for k in range(begin, end):
                heavy += w[k]
                inverse += w[k] * math.exp(top - log_plus(x[begin], d[k]))
            z = math.exp(x[begin] - top)
            least = floor * math.exp(-top) if floor > 0.0 else 0.0
            filled += heavy * max(z, least)
            derivative += heavy * heavy / inverse if z > least else 0.0
        miss = top + math.log(filled) - math.log(room)
        if miss > 0.0:
            above = shift
        else:
            below = shift
        if abs(miss) <= 4e-16 * (hi - lo + 10) or above - below <= 1e-15 * abs(shift):
            break
        shift -= miss * filled / derivative if derivative > 0.0 else math.copysign(1.0, miss)
        if not below < shift < above:
            outer = below if below > -np.inf else above - 10.0
            shift = 0.5 * (outer + (above if above < np.inf else below + 10.0))
    return blocks


@kernel
def simplex_shift(lo, hi, x, d, w, floor, tail):
    """Return the shift for which sum w exp(max(x + shift, floor) + d) = 1; x must not decrease.

    ``tail`` is a work array. A shift exists if sum w exp(floor + d) < 1.
    """
    top = -np.inf
    for k in range(lo, hi):
        top = max(top, x[k] + d[k])
    total = 0.0
    for k in range(hi - 1, lo - 1, -1):
        total += w[k] * math.exp(x[k] + d[k] - top)
        tail[k] = total
    room = 1.0
    for k in range(lo, hi):  # documents lo:k are at the floor
        shift = math.log(room) - math.log(tail[k]) - top
        if x[k] + shift >= floor:
            return shift
        room -= w[k] * math.exp(floor + d[k])
    return shift
