"""IntervalRank's inner problem for one query: a chain of interval ends, and the sums it needs.

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

Here are the sums over documents, which both solvers need. They are taken in one pass without
sorting: a solver needs some eight of them, which cost less than a sort.

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

SQUARED, HUBER, PSEUDO_HUBER = 0, 1, 2
FREE, TIED, FIXED = 0, 1, 2

# Rows of ``work``: the current point and two more; the ends of intervals that cover all documents;
# the weight of the grade; the piece (three rows) at the current and at the tried point; scratch.
X, NEW, TRIAL, ENDS, MASS = 0, 1, 2, 3, 4
HERE, THERE = 5, 8
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


# --- kernels ---------------------------------------------------------------------------------


@kernel
def penalty(d, terms):  # type: ignore[no-untyped-def]
    """Return rho, its slope and its curvature at d >= 0."""
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
def beyond_squared(lo, hi, v, w, low, high):  # type: ignore[no-untyped-def]
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
def beyond(lo, hi, v, w, low, high, terms):  # type: ignore[no-untyped-def]
    """As ``beyond_squared`` for any penalty: curvature, and curvature x - slope for the sum."""
    below = above = below_slope = above_slope = value = 0.0
    for p in range(lo, hi):
        if v[p] <= low:
            rho, slope, curvature = penalty(low - v[p], terms)
            below += w[p] * curvature
            below_slope += w[p] * slope
            value += w[p] * rho
        if v[p] >= high:
            rho, slope, curvature = penalty(v[p] - high, terms)
            above += w[p] * curvature
            above_slope += w[p] * slope
            value += w[p] * rho
    return below, below * low - below_slope, above, above * high + above_slope, value


@kernel
def spring(work, point, k, tie, terms):  # type: ignore[no-untyped-def]
    """Return the strength of the spring between x_k and x_{k+1} at a point."""
    if tie[k] != FREE:
        return 0.0
    if k % 2 == 0:
        return terms.lambda2
    overlap = work[point, k] >= work[point, k + 1]
    return terms.lambda1 if overlap and terms.lambda1 < np.inf else 0.0


@kernel
def evaluate(lo, hi, start, v, w, terms, tie, work, point, piece):  # type: ignore[no-untyped-def]
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
        work[piece, k], work[piece, k + 1] = a, b
        work[piece + 1, k], work[piece + 1, k + 1] = a_pull, b_pull
        work[piece + 2, k], work[piece + 2, k + 1] = a * low - a_pull, b * high - b_pull
        total += value
    for k in range(lo, hi - 1):
        gap = work[point, k + 1] - work[point, k]
        force = spring(work, point, k, tie, terms) * gap
        work[piece + 2, k] -= force
        work[piece + 2, k + 1] += force
        total += 0.5 * force * gap
    return total


@kernel
def cover(lo, hi, start, v, w, work):  # type: ignore[no-untyped-def]
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
