"""What a step along one feature needs of the domination loss, at the cost of its non-zeros.

In the notation of `rankwright.losses.domination`, p_i = Z / (Z + exp(t_i)), the derivatives of the
loss along a feature x are sums over the grades g of all queries,

    derivative = sum_g c_g [S_1 mu - sum_{i in g} w_i p_i x_i]
    (1) bend  = sum_g c_g [S_1 nu - S_2 mu^2 + sum_{i in g} w_i p_i (1 - p_i) x_i (x_i - 2 mu)]
    (2)

    mu, nu = means of x and x^2 over the documents below g, by w_j exp(t_j)
    S_k = sum over i in g of w_i p_i^k                                                          (3)

with c_g the weight of the query over that of its dominating documents (`stevens2010domination`,
(1.2), and its multi-valued form). All but S_k are sums over the non-zeros of x. A step changes Z
and with it every term of (3), so S_1, …, S_5 are kept at a fixed Z_0 and expanded,

    S_1(Z) Z_0 / Z     = S_1 - d S_2 + d^2 S_3 - …,            d = (Z - Z_0) / Z_0
    S_2(Z) (Z_0 / Z)^2 = S_2 - 2 d S_3 + 3 d^2 S_4 - …                                          (4)

which at |d| <= 1/100 is exact to 1e-10. Beyond that S_k are summed anew.

Documents 700 or more below the best of their query count as 700 below it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.losses.pair_sums import GradeBlocks

POWERS = 5
_CHANGE = 0.01  # of Z, at which S_k are summed anew
_LOST = 1e-4  # share of its largest value below which Z is summed anew
T, MASS, BLOCK, WEIGHT = range(4)
_LOWEST, _HIGHEST = -700.0, 50.0  # of t less the shift of its query


class State(NamedTuple):
    """What steps read and write, by row, by block (a grade of a query) and by query.

    What belongs to a row stands together in ``row``, since each entry of a column costs a look into
    memory there: t, which has the logarithm of the document's weight in it; its mass, w exp(t) =
    exp(t - shift); its block, -1 where the row does not count; and its weight w.
    """

    rows: I64
    start: I64
    of_query: I64
    query: I64  # of each block
    row: F64
    scale: F64  # c_g of each block, 0 where nothing is dominated
    shift: F64
    z: F64
    z0: F64
    top: F64  # the largest z since it was summed
    power: F64  # S_k at z0, a row for each k
    room: F64  # sums over the non-zeros of one query, by block


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _sum_powers(b, st):  # type: ignore[no-untyped-def]
    """Sum (3) of one block at its present Z."""
    z = st.z[b]
    st.z0[b] = z
    s1 = s2 = s3 = s4 = s5 = 0.0
    for k in range(st.start[b], st.start[b + 1]):
        i = st.rows[k]
        w = st.row[i, WEIGHT]
        if w > 0.0:
            p = z / (z + st.row[i, MASS] / w)
            s1 += w * p
            s2 += w * p * p
            s3 += w * p * p * p
            s4 += w * p * p * p * p
            s5 += w * p * p * p * p * p
    st.power[0, b], st.power[1, b], st.power[2, b] = s1, s2, s3
    st.power[3, b], st.power[4, b] = s4, s5


@kernel
def refresh(lo, hi, st):  # type: ignore[no-untyped-def]
    """Work out masses, Z and S_k of the queries lo:hi from t."""
    for q in range(lo, hi):
        first, last = st.of_query[q], st.of_query[q + 1]
        if first == last or st.scale[first] == 0.0:
            continue
        highest = -np.inf
        for k in range(st.start[first], st.start[last]):
            highest = max(highest, st.row[st.rows[k], T])
        st.shift[q] = highest
        z = 0.0
        for b in range(last - 1, first - 1, -1):
            st.z[b] = st.top[b] = z
            for k in range(st.start[b], st.start[b + 1]):
                i = st.rows[k]
                if st.row[i, WEIGHT] > 0.0:
                    st.row[i, MASS] = math.exp(max(st.row[i, T] - highest, _LOWEST))
                    z += st.row[i, MASS]
            if st.scale[b] > 0.0:
                _sum_powers(b, st)


@kernel
def derivatives(lo, hi, indices, values, factor, st):  # type: ignore[no-untyped-def]
    """Return (1), (2) and the positive terms of (2) for the column lo:hi."""
    derivative = bend = positive = 0.0
    mass, moment, pull, own, cross = st.room
    at = lo
    while at < hi:
        b = int(st.row[indices[at], BLOCK])
        if b < 0:
            at += 1
            continue
        first, last = st.of_query[st.query[b]], st.of_query[st.query[b] + 1]
        for b in range(last - first):
            mass[b] = moment[b] = pull[b] = own[b] = cross[b] = 0.0
        mu = nu = 0.0  # means times Z; most documents are of the lowest grade
        while at < hi:
            i = indices[at]
            b = int(st.row[i, BLOCK])
            if b >= last:
                break
            x = values[at] * factor
            at += 1
            if b == last - 1:
                mu += st.row[i, MASS] * x
                nu += st.row[i, MASS] * x * x
            elif b >= 0:
                mx = st.row[i, MASS] * x
                mass[b - first] += mx
                moment[b - first] += mx * x
                if st.scale[b] > 0.0:
                    w = st.row[i, WEIGHT]
                    p = st.z[b] / (st.z[b] + st.row[i, MASS] / w)
                    wx = w * x
                    pull[b - first] += wx * p
                    own[b - first] += wx * x * p * (1.0 - p)
                    cross[b - first] += wx * p * (1.0 - p)
        for b in range(last - 2, first - 1, -1):
            c, n = st.scale[b], b - first
            if c > 0.0:
                s1, s2 = _expand(b, st)
                mean = mu / st.z0[b]
                convex = s1 * nu / st.z0[b] + own[n]
                derivative += c * (s1 * mean - pull[n])  # (1)
                bend += c * (convex - s2 * mean * mean - 2.0 * mu / st.z[b] * cross[n])  # (2)
                positive += c * convex
            mu += mass[n]
            nu += moment[n]
    return derivative, bend, positive


@kernel
def _expand(b, st):  # type: ignore[no-untyped-def]
    """Return S_1 Z_0 / Z and S_2 (Z_0 / Z)^2 of one block by (4)."""
    d = (st.z[b] - st.z0[b]) / st.z0[b]
    s2, s3, s4, s5 = st.power[1, b], st.power[2, b], st.power[3, b], st.power[4, b]
    one = st.power[0, b] - d * (s2 - d * (s3 - d * (s4 - d * s5)))
    two = s2 - d * (2.0 * s3 - d * (3.0 * s4 - d * 4.0 * s5))
    return one, two


@kernel
def move(lo, hi, indices, values, factor, u, st):  # type: ignore[no-untyped-def]
    """Add u times the column lo:hi to the scores."""
    at = lo
    while at < hi:
        b = int(st.row[indices[at], BLOCK])
        if b < 0:
            at += 1
            continue
        q = st.query[b]
        first, last = st.of_query[q], st.of_query[q + 1]
        change, lost = st.room[0], False
        for b in range(last - first):
            change[b] = 0.0
        while at < hi:
            i = indices[at]
            b = int(st.row[i, BLOCK])
            if b >= last:
                break
            at += 1
            if b < 0:
                continue
            st.row[i, T] += u * (values[at - 1] * factor)
            height = st.row[i, T] - st.shift[q]
            lost = lost or height > _HIGHEST
            mass = math.exp(min(max(height, _LOWEST), -_LOWEST))
            if st.scale[b] > 0.0:
                _replace(b, st.row[i, MASS], mass, st.row[i, WEIGHT], st)
            change[b - first] += mass - st.row[i, MASS]
            st.row[i, MASS] = mass
        gain = 0.0
        for b in range(last - 1, first - 1, -1):
            if st.scale[b] > 0.0:
                st.z[b] += gain
                st.top[b] = max(st.top[b], st.z[b])
                lost = lost or not st.z[b] > _LOST * st.top[b]
                if abs(st.z[b] - st.z0[b]) > _CHANGE * st.z0[b] and not lost:
                    _sum_powers(b, st)
            gain += change[b - first]
        if lost:
            refresh(q, q + 1, st)


@kernel
def _replace(b, before, after, w, st):  # type: ignore[no-untyped-def]
    """Exchange one term of (3)."""
    z0 = st.z0[b]
    old, new = z0 / (z0 + before / w), z0 / (z0 + after / w)
    a, c = w, w
    for k in range(POWERS):
        a *= old
        c *= new
        st.power[k, b] += c - a


@kernel
def _block_scales(rows, start, of_query, w, scale, out):  # type: ignore[no-untyped-def]
    """Write c of each block: the query's where the block dominates some document, else 0."""
    for q in range(len(of_query) - 1):
        below = 0.0
        for b in range(of_query[q + 1] - 1, of_query[q] - 1, -1):
            out[b] = scale[q] if below > 0.0 else 0.0
            for k in range(start[b], start[b + 1]):
                below += w[rows[k]]


# --- API -------------------------------------------------------------------------------------


def new_state(blocks: GradeBlocks, w: F64, scale: F64) -> State:
    """Return the state of steps, still to be refreshed."""
    n_blocks, sizes = len(blocks.start) - 1, np.diff(blocks.start)
    query = np.repeat(np.arange(len(scale)), np.diff(blocks.of_query))
    by_block = np.zeros(n_blocks)
    _block_scales(blocks.rows, blocks.start, blocks.of_query, w, scale, by_block)
    row = np.zeros((len(w), 4))
    counts = np.where(scale[query] > 0.0, np.arange(n_blocks), -1)
    row[blocks.rows, BLOCK] = np.repeat(counts, sizes)
    row[w == 0.0, BLOCK] = -1.0
    row[:, WEIGHT] = w
    most = int(np.diff(blocks.of_query).max(initial=1))
    per_block = np.zeros((3, n_blocks))
    return State(
        rows=blocks.rows,
        start=blocks.start,
        of_query=blocks.of_query,
        query=query,
        row=row,
        scale=by_block,
        shift=np.zeros(len(scale)),
        z=per_block[0],
        z0=per_block[1],
        top=per_block[2],
        power=np.zeros((POWERS, n_blocks)),
        room=np.empty((5, most)),
    )
