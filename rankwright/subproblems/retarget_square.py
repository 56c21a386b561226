"""Retargeting under squared error: value, gradient and Hessian products of ranges of queries.

The equations are those of `losses.retarget`. The kernels take fields out of their tuples once,
before the loop (1): counting references to them for each query took a third of the time.
"""

from __future__ import annotations

from rankwright.core.jit import kernel
from rankwright.core.queries import clear, clear_query
from rankwright.subproblems.pav import pav
from rankwright.subproblems.retarget_layout import level_of, share_ties, sort_grades

# --- kernels ---------------------------------------------------------------------------------


@kernel
def retarget_square(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, terms, layout, desk, weight, value, grad, curv
):
    """Write value, gradient and curvature of the queries lo:hi."""
    c_r, c_w, free = terms.c_r, terms.c_w, terms.free
    rows, start, of_query, w_of_row = layout.rows, layout.start, layout.of_query, layout.w_of_row
    all_w, all_v, all_at, all_target = desk.w, desk.v, desk.at, desk.target  # see (1)
    lift, d, reward, own_w, own_q = layout.lift, layout.d, layout.reward, layout.w, layout.q
    key, order, spare, u = desk.key, desk.order, desk.spare, desk.u
    heavy, first, pools, cut, levels = desk.heavy, desk.first, desk.pools, desk.cut, desk.level
    for q in range(lo, hi):
        grades = start[of_query[q] : of_query[q + 1] + 1]
        a, b = grades[0], grades[-1]
        if b - a < indptr[q + 1] - indptr[q] or weight[q] == 0.0:
            clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        levels[q] = level_of(s, rows[a:b], own_w[a:b]) if free else 0.0
        sort_grades(
            grades, s, levels[q], rows, w_of_row, all_at, all_w, all_v, key, order, spare, u
        )
        total, pools[q], cut[q] = _project(
            a, b, terms, all_w, all_v, lift, d, reward, all_target, heavy, first
        )
        at, w, v, target = all_at[a:b], all_w[a:b], all_v[a:b], all_target[a:b]
        centre = own_q[a:b]
        for k in range(len(v)):
            miss, far = v[k] - target[k], target[k] - centre[k]
            total += 0.5 * w[k] * (miss * miss + c_r * far * far + c_w * v[k] * v[k])  # (8)
        value[q] = weight[q] * total
        if terms.by_rank:
            share_ties(grades, all_v, all_w, all_target)
        if len(grad):
            for k in range(len(v)):
                grad[at[k]] = weight[q] * w[k] * (v[k] - target[k] + c_w * v[k])
        if len(curv):
            for k in range(len(v)):
                curv[at[k]] = weight[q] * w[k] * (1.0 + c_w)


@kernel
def _project(a, b, terms, w, v, lift, d, reward, target, heavy, first):  # type: ignore[no-untyped-def]
    """Write the solution to ``target``.

    Returns minus its rewards, where the list of pools ends, and the place where the floor ends.
    """
    own_v, own_lift, own_d, found = v[a:b], lift[a:b], d[a:b], target[a:b]
    for k in range(len(found)):
        found[k] = terms.alpha * own_v[k] + own_lift[k]
    if terms.rewards:
        for p in range(a, b):
            target[p] += terms.alpha * reward[p] / w[p]  # (15)
    pools = pav(a, b, target, w, target, heavy, first)
    least, low, total = terms.floor - own_d[0], 0, 0.0
    for k in range(len(found)):
        low += found[k] <= least
        found[k] = max(found[k], least) + own_d[k]  # (14)
    if terms.rewards:
        for p in range(a, b):
            total -= reward[p] * target[p]  # (15)
    return total, pools, a + low


@kernel
def square_hessian(  # type: ignore[no-untyped-def]
    lo, hi, indptr, _s, terms, layout, desk, weight, v, out
):
    """Write the Hessian of the queries lo:hi times v, from what the last run left."""
    alpha, c_w = terms.alpha, terms.c_w
    centre = terms.free and (terms.c_r > 0.0 or c_w > 0.0)
    rows, own_w, start, of_query = layout.rows, layout.w, layout.start, layout.of_query  # (1)
    all_at, all_w, first, pools, cut = desk.at, desk.w, desk.first, desk.pools, desk.cut
    for q in range(lo, hi):
        a, b = start[of_query[q]], start[of_query[q + 1]]
        if b - a < indptr[q + 1] - indptr[q] or weight[q] == 0.0:
            clear(indptr[q], indptr[q + 1], out)
        if weight[q] == 0.0:
            continue
        level = level_of(v, rows[a:b], own_w[a:b]) if centre else 0.0
        end = b
        for pool in range(pools[q] - 1, a - 1, -1):
            begin = first[pool]
            at, w = all_at[begin:end], all_w[begin:end]
            total = mass = 0.0
            for k in range(len(at)):
                total += w[k] * (v[at[k]] - level)
                mass += w[k]
            mean = alpha * total / mass if begin >= cut[q] else 0.0
            for k in range(len(at)):  # (a)
                own = v[at[k]] - level
                out[at[k]] = weight[q] * w[k] * (own - mean + c_w * own)
            end = begin
