"""The nearest scores that have the grades in order, with a margin (monotone retargeting, MEMR).

Order the documents of a query by grade, and inside a grade by current score. The loss of a query
is the divergence from the nearest targets r in that order [acharyya2014memr]:

    L(s) = min over r of  D(r || m(s)) + C_r D(r || m(q)) + C_w/2 |s|^2                       (8)
           r_i - r_j >= t    for neighbours i above j, t > 0 where the grade changes          (14)
           r_last >= t_0     (``floor``)

    square   D(r || x) = 1/2 sum w (r - x)^2,                m(s) = s
    kl       D(r || x) = sum w (r log(r/x) - r + x),         m(s) = exp(s); on the simplex
             D(r || x) = sum w r log(r/x),                   m(s) = exp(s) / sum w exp(s)

with w the weights of documents and q the targets of their grades. Margins t between neighbours of
different grade, where ``rank`` is the number of documents down to the upper one:

    grade      size (q_i - q_j), the difference of the grades' targets
    constant   size            sqrt   size / sqrt(rank)            power   size / rank^power
    none       0: monotone retargeting, of which s = 0 is a degenerate solution unless C_r > 0
    large      (15): no margin, but a reward -size (q_i - q_j) (r_i - r_j) at each grade change

The inner problem is one pass of pooling adjacent violators on alpha s + (1 - alpha) q with alpha =
1 / (1 + C_r) (Lemma 1; `losses.pav`); with (15) on alpha (s + c / w) + (1 - alpha) q, c being
the rewards of r. By the envelope theorem the gradient is w (m(s) - r) + C_w w s. The Hessian has
the projection's Jacobian J, a mean over each pool, which (13) drops:

    square    diag(w) (I - alpha J) + C_w diag(w)                                             (a)
    cone      diag(w m(s)) - alpha diag(w r) J + C_w diag(w)                                  (b)
    simplex   cov(w m(s)) - alpha cov(w r) J + C_w diag(w),     cov(p) = diag(p) - p p'       (c)

The square loss is convex, for a margin between grades makes a convex set, and 2-homogeneous while
C_r = 0: scaling all margins scales the solution, and no ranking changes. KL is not convex, unless
C_w >= alpha on the simplex with unit weights of documents (Lemma 2; with other C_w for each query
it must hold for all of them, not for the sum that is printed), nor are
margins inside a grade (``within_grade``, as printed), whose loss has kinks where scores tie.

Under KL on the cone every term tends to 0 as r and exp(s) do, whatever the order of s: without
floor, C_r, C_w or margins between r themselves there is no minimum. Nor is there one with (15)
unless C_r > 0: minimised over r it has terms (1 - exp(c / w)) exp(s), which no penalty bounds. Both
are refused.

The level of a query's scores is free where it can be, the paper's beta in (3): by nature under
square without C_r, C_w and floor, and on the simplex; by centring under square with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.kernels import clear, clear_query
from rankwright.core.order import first_of_runs, ranking, sort_query
from rankwright.core.parameters import NonNegative, Part, check_parameters
from rankwright.core.types import F64, I64, HessianLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.ndcg_glm import LARGEST, FixedTargets, shares
from rankwright.losses.old_base import (
    KernelLoss,
    Targets,
    check_lengths,
    document_weight,
    grade_targets,
)
from rankwright.losses.pav import (
    log_plus,
    pav,
    pav_additive,
    pav_additive_simplex,
    simplex_shift,
)

# --- kernels ---------------------------------------------------------------------------------
#
# The layout of a query, then value, gradient and Hessian of both losses. A query is laid out worst
# grade first, with scores rising inside each grade.
#
# Documents of weight 0 have no place. A place fixes the grade, so what depends on grades and ranks
# alone (margins, rewards, targets) is known by place once and for all; which document stands where
# inside its grade follows the scores.


Places: TypeAlias = NDArray[np.int32] | I64
"""Numbers of rows or places, as short as the data allow."""


class Terms(NamedTuple):
    """Numbers of the loss, as its kernels take them."""

    alpha: float
    c_r: float
    c_w: float
    floor: float  # -inf, or 0 under KL, for none; as r has it
    free: bool  # whether the level of the scores is free
    simplex: bool
    rewards: bool
    additive: bool  # whether margins lie between r rather than between log r
    by_rank: bool  # whether margins inside a grade separate tied documents


class Layout(NamedTuple):
    """Documents of positive weight by query, grade and row: places, worst grade first."""

    rows: Places
    start: I64  # where each grade of each query begins
    of_query: I64  # the first grade of each query
    w: F64
    w_of_row: F64
    d: F64  # running sum of the margins
    stop: Places  # where the run of equal d ends
    tilt: F64  # under KL, weight of the place in the projection, over w
    reward: F64  # of r at this place: (15) has one of opposite sign at both sides of a change
    q: F64  # target of the grade, as scores
    lift: F64  # (1 - alpha) q - d


class Workspace(NamedTuple):
    """What a kernel leaves for the Hessian and the targets, by place or query, and scratch."""

    at: Places  # row of the document at each place, scores rising inside a grade
    w: F64
    v: F64  # score, less the level of the query
    target: F64  # the solution, as a score less that level
    r: F64
    share: F64  # m(s)
    level: F64  # of each query
    first: Places  # where pools begin
    pools: I64  # where the list of each query's pools ends
    cut: I64  # places of each query before this one lie at the floor
    key: F64
    order: Places
    spare: Places
    u: F64
    heavy: F64
    sums: F64
    mass: F64


_FEW = 0.25  # share of neighbours out of order up to which insertion is quicker

# --- layout ----------------------------------------------------------------------------------


@kernel
def level_of(s, rows, w):
    """Return the weighted mean score of some rows, summed from the first of them."""
    base = s[rows[0]]
    total = mass = 0.0
    for k in range(len(rows)):
        total += w[k] * (s[rows[k]] - base)
        mass += w[k]
    return base + total / mass


@kernel
def sort_grades(grades, s, level, rows, w_of_row, at, w, v, key, order, spare, u):
    """Fill ``at``, ``w`` and ``v`` of one query, scores rising inside each grade, then rows.

    ``grades`` is where its grades begin, and the last of them ends. The last order is where it
    starts from: near it when a solver makes small steps, and without effect on where it ends.
    """
    for g in range(len(grades) - 1):
        a, b = grades[g], grades[g + 1]
        here, score, heavy = at[a:b], v[a:b], w[a:b]
        for k in range(len(here)):
            score[k] = s[here[k]] - level
        falls = 0
        for k in range(1, len(here)):
            tied = (score[k] == score[k - 1]) & (here[k] < here[k - 1])
            falls += (score[k] < score[k - 1]) | tied
        if len(key) > 0 or falls > _FEW * len(here):
            own, negative, place = rows[a:b], u[a:b], order[a:b]
            for k in range(len(here)):
                negative[k] = level - s[own[k]]
            sort_query(a, b, u, key, order, spare)
            for k in range(len(here)):
                here[k], score[k] = own[place[k] - a], -negative[place[k] - a]
        elif falls > 0:
            _insert(here, score)
        for k in range(len(here)):
            heavy[k] = w_of_row[here[k]]


@kernel
def _insert(at, v):
    """Sort a few documents out of order into their places."""
    for p in range(1, len(at)):
        row, score, k = at[p], v[p], p
        while k > 0 and (v[k - 1] > score or (v[k - 1] == score and at[k - 1] > row)):
            at[k], v[k] = at[k - 1], v[k - 1]
            k -= 1
        at[k], v[k] = row, score


@kernel
def share_ties(grades, v, w, r):
    """Give documents of a query equal in grade, score and weight the mean of their r."""
    for g in range(len(grades) - 1):
        a, end = grades[g], grades[g + 1]
        while a < end:
            b, total = a, 0.0
            while b < end and v[b] == v[a] and w[b] == w[a]:
                total += r[b]
                b += 1
            for p in range(a, b):
                r[p] = total / (b - a)
            a = b


@kernel
def running_margins(of_query, start, w, size, power, d):
    """Fill d by grade: the margin below each grade but the first is size / rank^power."""
    for q in range(len(of_query) - 1):
        rank = 0.0
        for g in range(of_query[q + 1] - 1, of_query[q] - 1, -1):
            for p in range(start[g], start[g + 1]):
                rank += w[p]
            d[start[g]] = size / rank**power
        total = 0.0
        for g in range(of_query[q], of_query[q + 1]):
            total += d[start[g]] if g > of_query[q] else 0.0
            for p in range(start[g], start[g + 1]):
                d[p] = total


def new_workspace(rows: Places, n_queries: int, key: F64) -> Workspace:
    """Return a workspace for documents that start in the order of ``rows``."""
    n = len(rows)
    return Workspace(
        at=rows.copy(),
        w=np.zeros(n),
        v=np.zeros(n),
        target=np.zeros(n),
        r=np.zeros(n),
        share=np.zeros(n),
        level=np.zeros(n_queries),
        first=np.zeros(n, rows.dtype),
        pools=np.zeros(n_queries, np.int64),
        cut=np.zeros(n_queries, np.int64),
        key=key,
        order=np.zeros(n, rows.dtype),
        spare=np.zeros(n, rows.dtype),
        u=np.zeros(n),
        heavy=np.zeros(n),
        sums=np.zeros(n),
        mass=np.zeros(n),
    )


# --- squared error ---------------------------------------------------------------------------
# Fields are taken out of the tuples once, before the loop (1), as `KernelLoss` says: counting
# references to them for each query took a third of the time.


@kernel
def retarget_square(lo, hi, indptr, s, terms, layout, workspace, weight, value, grad, curv):
    """Write value, gradient and curvature of the queries lo:hi."""
    c_r, c_w, free = terms.c_r, terms.c_w, terms.free
    rows, start, of_query, w_of_row = layout.rows, layout.start, layout.of_query, layout.w_of_row
    all_w, all_v, all_at, all_target = (
        workspace.w,
        workspace.v,
        workspace.at,
        workspace.target,
    )  # see (1)
    lift, d, reward, own_w, own_q = layout.lift, layout.d, layout.reward, layout.w, layout.q
    key, order, spare, u = workspace.key, workspace.order, workspace.spare, workspace.u
    heavy, first, pools, cut, levels = (
        workspace.heavy,
        workspace.first,
        workspace.pools,
        workspace.cut,
        workspace.level,
    )
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
def _project(a, b, terms, w, v, lift, d, reward, target, heavy, first):
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
def square_hessian(lo, hi, indptr, _s, terms, layout, workspace, weight, v, out):
    """Write the Hessian of the queries lo:hi times v, from what the last run left."""
    alpha, c_w = terms.alpha, terms.c_w
    centre = terms.free and (terms.c_r > 0.0 or c_w > 0.0)
    rows, own_w, start, of_query = layout.rows, layout.w, layout.start, layout.of_query  # (1)
    all_at, all_w, first, pools, cut = (
        workspace.at,
        workspace.w,
        workspace.first,
        workspace.pools,
        workspace.cut,
    )
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


# --- Kullback-Leibler divergence -------------------------------------------------------------


@kernel
def _project_kl(q, a, b, terms, layout, workspace):
    """Leave log r in ``target`` and r in ``r``."""
    floor, d, w, target = terms.floor, layout.d, workspace.w, workspace.target
    if terms.additive:
        args = (w, d, layout.stop)
        scratch = (target, workspace.sums, workspace.mass, workspace.heavy, workspace.first)
        if terms.simplex:
            workspace.pools[q] = pav_additive_simplex(a, b, workspace.u, *args, floor, *scratch)
        else:
            workspace.pools[q] = pav_additive(a, b, workspace.u, 0.0, *args, *scratch)
        least, shift = math.log(floor) if floor > 0.0 else -np.inf, 0.0
    else:
        for p in range(a, b):
            workspace.mass[p] = w[p] * layout.tilt[p]
        workspace.pools[q] = pav(
            a, b, workspace.u, workspace.mass, target, workspace.heavy, workspace.first
        )
        least, shift = math.log(floor) - d[a] if floor > 0.0 else -np.inf, 0.0
        if terms.simplex:
            shift = simplex_shift(a, b, target, d, w, least, workspace.sums)
    workspace.cut[q] = a
    for p in range(a, b):
        z = target[p] + shift
        if z <= least:
            z, workspace.cut[q] = least, p + 1
        target[p] = log_plus(z, d[p]) if terms.additive else z + d[p]
        workspace.r[p] = math.exp(target[p])


@kernel
def retarget_kl(lo, hi, indptr, s, terms, layout, workspace, weight, value, grad, curv):
    """Write value, gradient and curvature of the queries lo:hi."""
    c_r, c_w, simplex = terms.c_r, terms.c_w, terms.simplex
    w, v, target, r, share = (
        workspace.w,
        workspace.v,
        workspace.target,
        workspace.r,
        workspace.share,
    )
    for q in range(lo, hi):
        grades = layout.start[layout.of_query[q] : layout.of_query[q + 1] + 1]
        a, b = grades[0], grades[-1]
        if b - a < indptr[q + 1] - indptr[q] or weight[q] == 0.0:
            clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        level = level_of(s, layout.rows[a:b], layout.w[a:b]) if terms.free else 0.0
        sort_grades(
            grades, s, level, layout.rows, layout.w_of_row, workspace.at, w, v,
            workspace.key, workspace.order, workspace.spare, workspace.u,
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
            workspace.u[p] = terms.alpha * pushed + (1.0 - terms.alpha) * layout.q[p] - margin
        _project_kl(q, a, b, terms, layout, workspace)
        total = 0.0
        for p in range(a, b):
            miss, far = target[p] - (v[p] - scale), target[p] - layout.q[p]
            entropy = r[p] * (miss + c_r * far)
            if not simplex:
                entropy += share[p] - r[p] + c_r * (math.exp(layout.q[p]) - r[p])
            total += w[p] * (entropy + 0.5 * c_w * v[p] * v[p]) - layout.reward[p] * r[p]  # (8)
            target[p] += scale
        value[q], workspace.level[q] = weight[q] * total, level
        if terms.by_rank:
            share_ties(grades, v, w, r)
        if len(grad):
            for p in range(a, b):
                grad[workspace.at[p]] = weight[q] * w[p] * (share[p] - r[p] + c_w * v[p])
        if len(curv):
            for p in range(a, b):
                x, y = w[p] * share[p], w[p] * r[p]
                most = max(x * (1.0 - x), y * (1.0 - y)) if simplex else max(x, y)
                curv[workspace.at[p]] = weight[q] * (most + c_w * w[p])


@kernel
def _turn_pools(a, b, pools, cut, terms, workspace, v):
    """Leave in ``sums`` how each pool turns when its scores turn by v.

    It turns in log r, or in r itself where margins lie there. On the simplex all turn on, by what
    keeps sum w r = 1.
    """
    turn, ease, w, r = workspace.sums, workspace.mass, workspace.w, workspace.r
    change = room = 0.0
    for pool in range(a, pools):
        begin, end = workspace.first[pool], workspace.first[pool + 1] if pool + 1 < pools else b
        turn[pool] = ease[pool] = 0.0
        push = mass = stiff = 0.0
        for p in range(begin, end):
            push += (
                w[p] * v[workspace.at[p]] if terms.additive else w[p] * r[p] * v[workspace.at[p]]
            )
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
def kl_hessian(lo, hi, indptr, _s, terms, layout, workspace, weight, v, out):
    """Write the Hessian of the queries lo:hi times v, from what the last run left."""
    at, w, r, share = workspace.at, workspace.w, workspace.r, workspace.share
    for q in range(lo, hi):
        a, b = layout.start[layout.of_query[q]], layout.start[layout.of_query[q + 1]]
        if b - a < indptr[q + 1] - indptr[q] or weight[q] == 0.0:
            clear(indptr[q], indptr[q + 1], out)
        if weight[q] == 0.0:
            continue
        _turn_pools(a, b, workspace.pools[q], workspace.cut[q], terms, workspace, v)
        level = level_of(v, layout.rows[a:b], layout.w[a:b]) if terms.free else 0.0
        mean = 0.0
        if terms.simplex:
            for p in range(a, b):
                mean += w[p] * share[p] * v[at[p]]
        for pool in range(a, workspace.pools[q]):
            end = workspace.first[pool + 1] if pool + 1 < workspace.pools[q] else b
            for p in range(workspace.first[pool], end):
                turn = workspace.sums[pool] if terms.additive else r[p] * workspace.sums[pool]
                own = share[p] * (v[at[p]] - mean) - terms.alpha * turn  # (b), (c)
                out[at[p]] = weight[q] * w[p] * (own + terms.c_w * (v[at[p]] - level))


@kernel
def _masses(lo, hi, indptr, score, w, simplex, weight, mass):
    """Write exp(score), on the simplex over its sum; 0 for queries without order."""
    for q in range(lo, hi):
        if weight[q] > 0.0:
            shares(indptr[q], indptr[q + 1], score, w, simplex, mass)


# --- API -------------------------------------------------------------------------------------

Margin = Literal["none", "grade", "constant", "sqrt", "power", "large"]
KLMargin = Literal["ratio", "additive", "surrogate"]
_KERNELS = {"square": (retarget_square, square_hessian), "kl": (retarget_kl, kl_hessian)}


@dataclass(frozen=True, slots=True, repr=False)
class Retarget(Part):
    """The divergence of the scores from the nearest ones that keep the order of the grades.

    Parameters
    ----------
    divergence : "square" or "kl"
    domain : "simplex" or "cone"
        Where the targets of KL lie: among distributions, or among positive numbers. On the cone
        all targets and scores can sink together, so it needs a ``floor``, ``C_r`` or ``C_w`` above
        0, or margins with ``kl_margin="additive"``; ``margin="large"`` needs ``C_r``.
    margin : "grade", "none", "constant", "sqrt", "power" or "large"
        What separates neighbours of different grade: the difference of the grades' targets, 0, a
        constant, size / sqrt(rank), size / rank^power; or "large", a reward for what does.
    size, power : float
        Size of margins and rewards; the power of rank.
    kl_margin : "ratio", "additive" or "surrogate"
        Margins between log r, between r, or between log r by the paper's Propositions 2 and 3,
        whose solution is not the nearest one, so that its gradient is none of a value.
    targets : "linear", "gain" or a tuple
        Target of a grade, for margins and ``C_r``: the grade, 2^grade - 1, or a value per grade.
    within_grade : bool
        Put the margins by rank between tied grades too, as printed. Not convex. A document then
        has one rank whatever its weight.
    floor : float or None
        The least that a target may be.
    intercept : bool or None
        Leave the level of each query's scores free. None: where that can be, that is under square
        without a floor, and on the simplex.
    C_r : float
        Pulls the targets toward those of the grades.
    C_w : float
        Pulls the scores toward 0, or toward their mean where their level is free.
    query_weight_exponent : float
        The loss of a query of n documents is multiplied by n^-exponent; 1 as printed.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Retarget(divergence="kl"), model="linear")
    Ranker(loss=Retarget(divergence='kl'))
    """

    divergence: Literal["square", "kl"] = "square"
    domain: Literal["simplex", "cone"] = "simplex"
    margin: Margin = "grade"
    size: NonNegative = 1.0
    power: float = 1.0
    kl_margin: KLMargin = "ratio"
    targets: Targets = "linear"
    within_grade: bool = False
    floor: float | None = None
    intercept: bool | None = None
    C_r: NonNegative = 0.0
    C_w: NonNegative = 0.0
    query_weight_exponent: float = 0.0

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        exact = self.divergence == "square" or self.kl_margin != "surrogate"
        return Traits(
            convex=self.divergence == "square" and not self._by_rank,
            shift_invariant=self._free,
            integrable=exact,
        )

    @property
    def _by_rank(self) -> bool:
        return self.within_grade and self.margin in ("constant", "sqrt", "power")

    @property
    def _simplex(self) -> bool:
        return self.divergence == "kl" and self.domain == "simplex"

    @property
    def _free(self) -> bool:
        if self.divergence == "square":
            return self.floor is None if self.intercept is None else self.intercept
        return self.domain == "simplex"

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundRetarget:
        """Prepare the loss for one data set."""
        self._check()
        return BoundRetarget(self, data, n_jobs=n_jobs)

    def _check(self) -> None:
        check_parameters(self)
        if self.divergence == "square" and self.intercept and self.floor is not None:
            raise UsageError("a free level lifts scores over any floor; set intercept=False.")
        if self.divergence == "kl" and self.intercept not in (None, self._simplex):
            raise UsageError(
                "under kl the level of scores is free on the simplex and fixed on the cone; "
                "choose the domain and leave intercept out."
            )
        if self.divergence == "kl" and not self._simplex:
            self._check_cone()

    def _check_cone(self) -> None:
        """Refuse an objective on the cone that has no minimum."""
        if self.margin == "large" and self.size > 0.0:
            if self.C_r == 0.0:  # the reward grows like exp(s), and no floor or penalty limits it
                raise UsageError(
                    "under kl on the cone, margin='large' rewards scores without bound; set C_r "
                    "above 0, or use domain='simplex' or another margin."
                )
            return
        separated = self.margin not in ("none", "large") and self.size > 0.0
        held = self.kl_margin == "additive" and separated
        if not (held or self.C_r > 0.0 or self.C_w > 0.0 or (self.floor or 0.0) > 0.0):
            raise UsageError(
                "under kl on the cone the loss falls to 0 as all targets and scores sink, whatever "
                "their order; set C_r, C_w or the floor of losses.Retarget above 0, or use "
                "domain='simplex'."
            )


class BoundRetarget(KernelLoss):
    """The loss on one data set."""

    def __init__(self, loss: Retarget, data: RankingData, *, n_jobs: int | None) -> None:
        self._loss, self._data = loss, data
        self._layout = layout = _layout(loss, data)
        floor = -np.inf if loss.floor is None else float(loss.floor)
        square = loss.divergence == "square"
        self._terms = Terms(
            alpha=1.0 / (1.0 + loss.C_r),
            c_r=float(loss.C_r),
            c_w=float(loss.C_w),
            floor=floor if square else max(floor, 0.0),
            free=loss._free,
            simplex=loss._simplex,
            rewards=loss.margin == "large",
            additive=not square and loss.kl_margin == "additive",
            by_rank=loss._by_rank,
        )
        key = layout.w if loss._by_rank else np.empty(0)
        self._workspace = new_workspace(layout.rows, data.n_queries, key)
        run, hessian = _KERNELS[loss.divergence]
        args = (self._terms, layout, self._workspace)
        super().__init__(
            run,
            data,
            *args,
            curvature=True,
            hessian=hessian if loss.traits.smooth else None,
            n_jobs=n_jobs,
        )
        size = np.bincount(data.query_of_row(), document_weight(data), data.n_queries)
        self._factor = np.maximum(size, 1e-300) ** -loss.query_weight_exponent
        self._weight = self._weight * self._factor
        if loss._simplex:
            _check_simplex(self._terms, layout, self._weight, data)

    def targets(self, s: F64, out: F64) -> None:
        """Write the targets nearest to ``s``, as scores: r itself, or log r under KL.

        Where the level of a query is free they have the level of its scores. A query without order
        keeps its scores.
        """
        check_lengths(self._n_documents, out)
        self.value(s)
        out[:] = s
        size = np.diff(self._layout.start[self._layout.of_query])
        held = np.repeat(self._weight > 0.0, size)
        target = self._workspace.target + np.repeat(self._workspace.level, size)
        out[self._workspace.at[held]] = target[held]

    def with_targets(self, r: F64) -> HessianLoss:
        """Return the loss (8) of scores for fixed targets ``r``, given as `targets` gives them.

        At ``targets(s)`` its value and gradient at s are those of this loss.
        """
        check_lengths(self._n_documents, r)
        terms, layout, data = self._terms, self._layout, self._data
        w, target, mass = document_weight(data), r, r
        if self._loss.divergence == "kl":
            mass = np.zeros(len(r))
            _masses(0, data.n_queries, data.indptr, r, w, terms.simplex, self._weight, mass)
        grade = np.repeat(np.arange(len(layout.start) - 1), np.diff(layout.start))
        place = layout.rows[np.lexsort((target[layout.rows], grade))]
        fixed = -layout.reward * mass[place]
        if terms.c_r > 0.0:
            fixed = fixed + terms.c_r * w[place] * self._far(place, target, mass)
        query = data.query_of_row()[place]
        constant: F64 = np.bincount(query, fixed, data.n_queries).astype(np.float64)
        return FixedTargets(
            data,
            mass,
            self._loss.divergence,
            free=terms.free,
            ridge=terms.c_w,
            constant=constant,
            query_factor=self._factor,
            n_jobs=self._n_jobs,
        )

    def _far(self, place: Places, target: F64, mass: F64) -> F64:
        """Return D(r || m(q)) by place; up to a constant per query where levels are free."""
        q, query = self._layout.q, self._data.query_of_row()[place]
        if self._loss.divergence == "square":
            r = target[place]
            if self._terms.free:
                w = document_weight(self._data)[place]
                total = np.bincount(query, w)
                r = r - np.bincount(query, w * r)[query] / total[query]
            return 0.5 * (r - q) ** 2
        r = mass[place]
        known = np.log(np.where(r > 0.0, r, 1.0))
        return r * (known - q) + (0.0 if self._terms.simplex else np.exp(q) - r)


def _layout(loss: Retarget, data: RankingData) -> Layout:
    """Return the places of ``data``, with margins, rewards and targets."""
    weight = document_weight(data)
    rows: Places = ranking(-data.y, data.indptr)  # grades rise, rows rise within them
    query = data.query_of_row()
    if (weight <= 0.0).any():
        rows = rows[weight[rows] > 0.0]
        query = query[rows]
    w, begins = weight[rows], np.searchsorted(query, np.arange(data.n_queries + 1))
    first = np.flatnonzero(first_of_runs(data.y[rows], begins))
    start = np.append(first, len(rows))
    of_query = np.searchsorted(start, begins)
    target = grade_targets(data, loss.targets)[rows]
    d, reward = np.zeros(len(rows)), np.zeros(len(rows))
    begin = start[of_query[query]]
    if loss.margin == "grade":
        d = loss.size * (target - target[begin])
    elif loss.margin == "large":
        changes = first[1:][query[first[1:]] == query[first[1:] - 1]]
        reward[changes] += loss.size * (target[changes] - target[changes - 1])
        reward[changes - 1] -= loss.size * (target[changes] - target[changes - 1])
    elif loss.margin != "none":
        power = {"constant": 0.0, "sqrt": 0.5, "power": float(loss.power)}[loss.margin]
        if loss.within_grade:
            each = np.arange(len(rows) + 1)
            running_margins(start[of_query], each, np.ones(len(rows)), loss.size, power, d)
        else:
            running_margins(of_query, start, w, loss.size, power, d)
    tilt = np.ones(len(rows) if loss.divergence == "kl" else 0)
    if loss.kl_margin == "ratio" and loss.divergence == "kl":
        tilt = np.maximum(np.exp(d - d[start[of_query[query + 1]] - 1]), 1e-300)
    ends = np.flatnonzero(np.append((d[1:] != d[:-1]) | (query[1:] != query[:-1]), True)) + 1
    stop: Places = np.repeat(ends, np.diff(ends, prepend=0))
    q = _centres(loss, target, query, w) if loss.C_r > 0.0 else np.zeros(len(rows))
    lift = (1.0 - 1.0 / (1.0 + loss.C_r)) * q - d
    rows, stop = _shortened(rows), _shortened(stop)
    return Layout(rows, start, of_query, w, weight, d, stop, tilt, reward, q, lift)


def _shortened(places: Places) -> Places:
    """Return the numbers in half the memory, where they fit."""
    return places.astype(np.int32) if places.max(initial=0) < 2**31 else places


def _centres(loss: Retarget, target: F64, query: I64, w: F64) -> F64:
    """Return q of (8) as scores, less what a free level takes up."""
    if not loss._free:
        return target
    total = np.bincount(query, w)
    if loss.divergence == "square":
        mean: F64 = np.bincount(query, w * target)[query] / total[query]
        return target - mean
    top = np.full(len(total), -np.inf)
    np.maximum.at(top, query, target)
    share = np.bincount(query, w * np.exp(target - top[query]))
    log_share: F64 = target - top[query] - np.log(share[query])
    return log_share


def _check_simplex(terms: Terms, layout: Layout, weight: F64, data: RankingData) -> None:
    """Raise where a query's margins and floor ask for more than the simplex holds."""
    query = data.query_of_row()[layout.rows]
    least = terms.floor + layout.d if terms.additive else terms.floor * np.exp(layout.d)
    taken = np.bincount(query, layout.w * least, data.n_queries)
    over = np.flatnonzero((taken >= 1.0) & (weight > 0.0))
    if len(over):
        raise UsageError(
            f"query {data.qid[over[0]]} needs targets that sum to {taken[over[0]]:.3g} or more, "
            "and on the simplex they sum to 1: make size or floor smaller, or use "
            "kl_margin='ratio' or domain='cone'."
        )
