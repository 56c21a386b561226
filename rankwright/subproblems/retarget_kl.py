"""Retargeting under the KL divergence: value, gradient and Hessian products of queries.

The equations are those of `losses.retarget`.
"""

from __future__ import annotations

import math

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.queries import clear, clear_query
from rankwright.subproblems.pav import (
    log_plus,
    pav,
    pav_additive,
    pav_additive_simplex,
    simplex_shift,
)
from rankwright.subproblems.retarget_layout import level_of, share_ties, sort_grades

LARGEST = 300.0  # scores above count as this where exp(s) itself is asked for

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _project_kl(q, a, b, terms, layout, desk):  # type: ignore[no-untyped-def]
    """Leave log r in ``target`` and r in ``r``."""
    floor, d, w, target = terms.floor, layout.d, desk.w, desk.target
    if terms.additive:
        args = (w, d, layout.stop)
        scratch = (target, desk.sums, desk.mass, desk.heavy, desk.first)
        if terms.simplex:
            desk.pools[q] = pav_additive_simplex(a, b, desk.u, *args, floor, *scratch)
        else:
            desk.pools[q] = pav_additive(a, b, desk.u, 0.0, *args, *scratch)
        least, shift = math.log(floor) if floor > 0.0 else -np.inf, 0.0
    else:
        for p in range(a, b):
            desk.mass[p] = w[p] * layout.tilt[p]
        desk.pools[q] = pav(a, b, desk.u, desk.mass, target, desk.heavy, desk.first)
        least, shift = math.log(floor) - d[a] if floor > 0.0 else -np.inf, 0.0
        if terms.simplex:
            shift = simplex_shift(a, b, target, d, w, least, desk.sums)
    desk.cut[q] = a
    for p in range(a, b):
        z = target[p] + shift
        if z <= least:
            z, desk.cut[q] = least, p + 1
        target[p] = log_plus(z, d[p]) if terms.additive else z + d[p]
        desk.r[p] = math.exp(target[p])


@kernel
def retarget_kl(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, terms, layout, desk, weight, value, grad, curv
):
    """Write value, gradient and curvature of the queries lo:hi."""
    c_r, c_w, simplex = terms.c_r, terms.c_w, terms.simplex
    w, v, target, r, share = desk.w, desk.v, desk.target, desk.r, desk.share
    for q in range(lo, hi):
        grades = layout.start[layout.of_query[q] : layout.of_query[q + 1] + 1]
        a, b = grades[0], grades[-1]
        if b - a < indptr[q + 1] - indptr[q] or weight[q] == 0.0:
            clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        level = level_of(s, layout.rows[a:b], layout.w[a:b]) if terms.free else 0.0
        sort_grades(
            grades, s, level, layout.rows, layout.w_of_row, desk.at, w, v,
            desk.key, desk.order, desk.spare, desk.u,
        )  # fmt: skip
        top, whole = 0.0, 1.0
        if simplex:
            top, whole = -np.inf, 0.0
            for p in range(a, b):
                top = max(top, v[p])
            for p in range(a, b):
                whole += w[p] * math.exp(v[p] - top)
        else:
            for p in range(a, b):
                v[p] = min(v[p], LARGEST)
        scale = top + math.log(whole)
        for p in range(a, b):
            share[p] = math.exp(v[p] - top) / whole
            pushed = v[p] - scale + layout.reward[p] / w[p]  # (15)
            margin = 0.0 if terms.additive else layout.d[p]
            desk.u[p] = terms.alpha * pushed + (1.0 - terms.alpha) * layout.q[p] - margin
        _project_kl(q, a, b, terms, layout, desk)
        total = 0.0
        for p in range(a, b):
            miss, far = target[p] - (v[p] - scale), target[p] - layout.q[p]
            entropy = r[p] * (miss + c_r * far)
            if not simplex:
                entropy += share[p] - r[p] + c_r * (math.exp(layout.q[p]) - r[p])
            total += w[p] * (entropy + 0.5 * c_w * v[p] * v[p]) - layout.reward[p] * r[p]  # (8)
            target[p] += scale
        value[q], desk.level[q] = weight[q] * total, level
        if terms.by_rank:
            share_ties(grades, v, w, r)
        if len(grad):
            for p in range(a, b):
                grad[desk.at[p]] = weight[q] * w[p] * (share[p] - r[p] + c_w * v[p])
        if len(curv):
            for p in range(a, b):
                x, y = w[p] * share[p], w[p] * r[p]
                most = max(x * (1.0 - x), y * (1.0 - y)) if simplex else max(x, y)
                curv[desk.at[p]] = weight[q] * (most + c_w * w[p])


@kernel
def _turn_pools(a, b, pools, cut, terms, desk, v):  # type: ignore[no-untyped-def]
    """Leave in ``sums`` how each pool turns when its scores turn by v.

    It turns in log r, or in r itself where margins lie there. On the simplex all turn on, by what
    keeps sum w r = 1.
    """
    turn, ease, w, r = desk.sums, desk.mass, desk.w, desk.r
    change = room = 0.0
    for pool in range(a, pools):
        begin, end = desk.first[pool], desk.first[pool + 1] if pool + 1 < pools else b
        turn[pool] = ease[pool] = 0.0
        push = mass = stiff = 0.0
        for p in range(begin, end):
            push += w[p] * v[desk.at[p]] if terms.additive else w[p] * r[p] * v[desk.at[p]]
            mass += w[p] if terms.additive else w[p] * r[p]
            stiff += w[p] / r[p] if terms.additive else w[p] * r[p]
        if begin >= cut and 0.0 < stiff < np.inf:
            turn[pool], ease[pool] = push / stiff, mass / stiff
            change += mass * turn[pool]
            room += mass * ease[pool]
    if terms.simplex and room > 0.0:
        for pool in range(a, pools):
            turn[pool] -= change / room * ease[pool]


@kernel
def kl_hessian(  # type: ignore[no-untyped-def]
    lo, hi, indptr, _s, terms, layout, desk, weight, v, out
):
    """Write the Hessian of the queries lo:hi times v, from what the last run left."""
    at, w, r, share = desk.at, desk.w, desk.r, desk.share
    for q in range(lo, hi):
        a, b = layout.start[layout.of_query[q]], layout.start[layout.of_query[q + 1]]
        if b - a < indptr[q + 1] - indptr[q] or weight[q] == 0.0:
            clear(indptr[q], indptr[q + 1], out)
        if weight[q] == 0.0:
            continue
        _turn_pools(a, b, desk.pools[q], desk.cut[q], terms, desk, v)
        level = level_of(v, layout.rows[a:b], layout.w[a:b]) if terms.free else 0.0
        mean = 0.0
        if terms.simplex:
            for p in range(a, b):
                mean += w[p] * share[p] * v[at[p]]
        for pool in range(a, desk.pools[q]):
            end = desk.first[pool + 1] if pool + 1 < desk.pools[q] else b
            for p in range(desk.first[pool], end):
                turn = desk.sums[pool] if terms.additive else r[p] * desk.sums[pool]
                own = share[p] * (v[at[p]] - mean) - terms.alpha * turn  # (b), (c)
                out[at[p]] = weight[q] * w[p] * (own + terms.c_w * (v[at[p]] - level))
