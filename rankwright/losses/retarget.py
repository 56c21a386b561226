"""Monotone retargeting (MEMR): distance of the scores from the nearest ones in the order of grades.

Sort the documents of a query by grade, and within a grade by current score. The loss of a query is
the divergence of the scores from the nearest targets r in that order [acharyya2014memr]:

    L(s) = min over r of  D(r || m(s)) + C_r D(r || m(q)) + C_w/2 |s|^2                       (8)
           r_i - r_j >= t    for neighbours i above j, t > 0 if the grade changes             (14)
           r_last >= t_0     (``floor``)

    square   D(r || x) = 1/2 sum w (r - x)^2,                m(s) = s
    kl       D(r || x) = sum w (r log(r/x) - r + x),         m(s) = exp(s); on the simplex
             D(r || x) = sum w r log(r/x),                   m(s) = exp(s) / sum w exp(s)

with w the weights of documents and q the targets of their grades. Margins t between neighbours of
different grade, where ``rank`` is the number of documents down to the upper one:

    grade      size (q_i - q_j), the difference of the grades' targets
    constant   size            sqrt   size / sqrt(rank)            power   size / rank^power
    none       0: monotone retargeting; s = 0 is a degenerate solution unless C_r > 0
    large      (15): no margin, but a reward -size (q_i - q_j) (r_i - r_j) at each grade change

With alpha = 1 / (1 + C_r) and c the rewards of r, the inner problem is one pass of pooling adjacent
violators on

    alpha (s + c / w) + (1 - alpha) q                                                         (1)

(Lemma 1; `losses.pav`). By the envelope theorem the gradient is w (m(s) - r) + C_w w s. The Hessian
has the projection's Jacobian J, a mean over each pool, which the paper's (13) omits:

    square    diag(w) (I - alpha J) + C_w diag(w)                                             (a)
    cone      diag(w m(s)) - alpha diag(w r) J + C_w diag(w)                                  (b)
    simplex   cov(w m(s)) - alpha cov(w r) J + C_w diag(w),     cov(p) = diag(p) - p p'       (c)

The square loss is convex, because margins between grades make a convex set. While C_r = 0 it is
2-homogeneous: scaling all margins scales the solution and changes no ranking. KL is not convex,
unless C_w >= alpha on the simplex with unit weights of documents (Lemma 2; if C_w differs between
queries this must hold for each query; the printed sum over queries is not sufficient). Margins
inside a grade (``within_grade``, as printed) are not convex either, and have kinks at tied scores.

Under KL on the cone every term tends to 0 with r and exp(s), for any order of s: no minimum exists
without floor, C_r, C_w or margins between r. With (15) there is none unless C_r > 0: minimised over
r, the loss has terms (1 - exp(c / w)) exp(s), which no penalty bounds. Both are refused.

The level of a query's scores is free if possible (the paper's beta in (3)): under square without
C_r, C_w and floor, and on the simplex, by nature; under square with C_r or C_w by centring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.order import NO_KEY, first_of_runs, sort_query
from rankwright.core.parameters import NonNegative
from rankwright.core.team import owns
from rankwright.core.types import F64, I64, HessianLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    BoundKernel,
    KernelLoss,
    Targets,
    check_lengths,
    document_weight,
    grade_targets,
    order_weight,
    present_documents,
    rows_by_grade,
    weighted_mean,
)
from rankwright.losses.fixed_targets import FixedTargets
from rankwright.losses.pav import log_plus, pav, pav_additive, pav_additive_simplex, simplex_shift

LARGEST = 300.0  # larger scores count as this on the cone


class Terms(NamedTuple):
    """The parameters of the loss."""

    alpha: float
    c_r: float
    c_w: float
    floor: float  # of r; -inf, or 0 under KL, without a floor
    free: bool  # whether the level of the scores is free
    kl: bool
    simplex: bool
    rewards: bool
    additive: bool  # margins under KL lie between r, not between log r
    by_rank: bool  # margins also separate documents of one grade


class Layout(NamedTuple):
    """Places: the documents by query and grade, lowest grade first.

    A place has a grade. Which document of the grade is there depends on the scores.
    """

    rows: I64  # by grade and row
    start: I64  # grade g has the places start[g]:start[g + 1]
    of_query: I64  # the first grade of each query
    row_weight: F64
    key: F64  # order of documents with equal scores
    d: F64  # running sum of the margins
    stop: I64  # the end of the run of equal d
    tilt: F64  # factor of the weights in the projection
    reward: F64  # (15) has two of opposite sign at each change of the grade
    q: F64  # target of the grade, as a score
    lift: F64  # (1 - alpha) q, less d unless margins are additive


class Work(NamedTuple):
    """Results of the kernel by place or query, which the Hessian and the targets use."""

    row: I64
    w: F64
    v: F64  # score less the level of the query
    target: F64  # the solution, as a score less the level
    r: F64  # the solution; under square, the same array as target
    share: F64  # m(s); under square, the same array as v
    level: F64  # of each query
    first: I64  # the first place of each pool
    pools: I64  # end of the list of each query's pools
    cut: I64  # places of each query before this one are at the floor
    order: I64
    spare: I64
    u: F64
    heavy: F64
    sums: F64
    mass: F64


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _retarget(queries, indptr, s, terms, layout, work, value, grad, curv):
    alpha, c_r, c_w, floor, free, kl, simplex, rewards, additive, by_rank = terms
    rows, start, of_query, row_weight, key, d, stop, tilt, reward, q_of_grade, lift = layout
    row, w, v, target, r, share, levels, first, pools, cut, order, spare, u, heavy, sums, mass = (
        work
    )
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        level = weighted_mean(a, b, s, row_weight) if free else 0.0
        for g in range(of_query[q], of_query[q + 1]):
            for p in range(start[g], start[g + 1]):
                u[p] = level - s[rows[p]]
            sort_query(start[g], start[g + 1], u, key, order, spare)
        if not owns(0):
            continue
        levels[q], scale = level, 0.0
        for p in range(a, b):
            row[p], v[p] = rows[order[p]], -u[order[p]]
            w[p] = row_weight[row[p]]
        if kl:
            scale = _shares(a, b, w, v, simplex, share)
        for p in range(a, b):
            u[p] = alpha * (v[p] - scale) + lift[p]  # (1)
            mass[p] = w[p] * tilt[p]
        if rewards:
            for p in range(a, b):
                u[p] += alpha * reward[p] / w[p]  # (15)
        least, shift = floor, 0.0
        if kl:
            least = math.log(floor) if floor > 0.0 else -np.inf
        if additive and simplex:
            pools[q] = pav_additive_simplex(
                a, b, u, w, d, stop, floor, target, sums, mass, heavy, first
            )
        elif additive:
            pools[q] = pav_additive(a, b, u, 0.0, w, d, stop, target, sums, mass, heavy, first)
        else:
            pools[q] = pav(a, b, u, mass, target, heavy, first)
            least -= d[a]
            if simplex:
                shift = simplex_shift(a, b, target, d, w, least, sums)
        cut[q] = a
        for p in range(a, b):
            z = target[p] + shift
            if z <= least:
                z, cut[q] = least, p + 1
            target[p] = log_plus(z, d[p]) if additive else z + d[p]  # (14)
        total = 0.0
        for p in range(a, b):
            miss, far = target[p] - (v[p] - scale), target[p] - q_of_grade[p]
            if kl:
                r[p] = math.exp(target[p])
                divergence = r[p] * (miss + c_r * far)
                if not simplex:
                    divergence += share[p] - r[p] + c_r * (math.exp(q_of_grade[p]) - r[p])
                target[p] += scale
            else:
                divergence = 0.5 * (miss * miss + c_r * far * far)
            total += w[p] * (divergence + 0.5 * c_w * v[p] * v[p])  # (8)
            if rewards:
                total -= reward[p] * r[p]  # (15)
        value[q] = total
        if by_rank:
            _share_ties(start[of_query[q] : of_query[q + 1] + 1], v, w, r)
        for p in range(a, b):
            grad[row[p]] = w[p] * (share[p] - r[p] + c_w * v[p])
            bend = w[p]
            if kl:
                x, y = w[p] * share[p], w[p] * r[p]
                bend = max(x * (1.0 - x), y * (1.0 - y)) if simplex else max(x, y)
            curv[row[p]] = bend + c_w * w[p]


@kernel
def _shares(a, b, w, v, simplex, share):
    """Write m(s) under KL; return log exp(s) - log m(s)."""
    top, total = 0.0, 1.0
    if simplex:
        top, total = -np.inf, 0.0
        for p in range(a, b):
            top = max(top, v[p])
    for p in range(a, b):
        v[p] = min(v[p], top + LARGEST)
        share[p] = math.exp(v[p] - top)
    if simplex:
        for p in range(a, b):
            total += w[p] * share[p]
        for p in range(a, b):
            share[p] /= total
    return top + math.log(total)


@kernel
def _share_ties(grades, v, w, r):
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
def _hessian(queries, indptr, _s, terms, layout, work, v, out):
    """Write the Hessian times v, from the results of the last run."""
    alpha, c_r, c_w, _, free, kl, simplex, _, additive, _ = terms
    row_weight, ratio = layout.row_weight, kl and not additive
    centred = free and (c_w > 0.0 or (c_r > 0.0 and not kl))  # else the level cancels out
    row, w, r, share, first, pools, cut, x = (
        work.row, work.w, work.r, work.share, work.first, work.pools, work.cut, work.u,
    )  # fmt: skip
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        level = weighted_mean(a, b, v, row_weight) if centred else 0.0
        mean = change = room = 0.0
        for p in range(a, b):
            x[p] = v[row[p]] - level
        if simplex:
            for p in range(a, b):
                mean += w[p] * share[p] * x[p]
            for pool in range(a, pools[q]):
                end = first[pool + 1] if pool + 1 < pools[q] else b
                turn, ease, mass = _turn(first[pool], end, cut[q], w, r, x, ratio, additive)
                change += mass * turn
                room += mass * ease
        for pool in range(a, pools[q]):
            end = first[pool + 1] if pool + 1 < pools[q] else b
            turn, ease, _ = _turn(first[pool], end, cut[q], w, r, x, ratio, additive)
            if room > 0.0:  # sum w r stays 1
                turn -= change / room * ease
            for p in range(first[pool], end):
                slope = share[p] if kl else 1.0
                turned = turn * r[p] if ratio else turn
                product = slope * (x[p] - mean) - alpha * turned  # (a), (b), (c)
                out[row[p]] = w[p] * (product + c_w * x[p])


@inline_kernel
def _turn(begin, end, cut, w, r, x, ratio, additive):
    """Return the derivative of a pool along x and along a shift of all scores, and its mass.

    The derivative of log r if margins are ratios, else of r. It is 0 at the floor.
    """
    push = mass = stiffness = 0.0
    for p in range(begin, end):
        c = w[p] * r[p] if ratio else w[p]
        push += c * x[p]
        mass += c
        stiffness += w[p] / r[p] if additive else c
    if begin < cut or not 0.0 < stiffness < np.inf:
        return 0.0, 0.0, mass
    return push / stiffness, mass / stiffness if additive else 1.0, mass


@kernel
def _running_margins(of_query, start, w, size, power, d):
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


# --- API -------------------------------------------------------------------------------------

Margin = Literal["none", "grade", "constant", "sqrt", "power", "large"]
KLMargin = Literal["ratio", "additive", "surrogate"]


@dataclass(frozen=True, repr=False)
class Retarget(KernelLoss):
    """Divergence of the scores from the nearest ones in the order of the grades.

    Parameters
    ----------
    divergence : "square" or "kl"
    domain : "simplex" or "cone"
        Domain of the targets under KL: probability distributions or positive numbers. On the cone
        all targets and scores can decrease together, so it needs a ``floor``, ``C_r`` or ``C_w``
        above 0, or margins with ``kl_margin="additive"``; ``margin="large"`` needs ``C_r``.
    margin : "grade", "none", "constant", "sqrt", "power" or "large"
        Margin between neighbours of different grade: the difference of the grades' targets, 0, a
        constant, size / sqrt(rank), size / rank^power; or "large", a reward for their distance.
    size, power : float
        Size of margins and rewards; the power of rank.
    kl_margin : "ratio", "additive" or "surrogate"
        Margins between log r, between r, or between log r by the paper's Propositions 2 and 3.
        Their solution is not the nearest one, so the gradient is not the gradient of the value.
    targets : "linear", "gain" or a tuple
        Target of a grade, for margins and ``C_r``: the grade, 2^grade - 1, or a value per grade.
    within_grade : bool
        Also put the margins by rank between documents of one grade, as printed. Not convex. Each
        document then counts as one rank, for any weight.
    floor : float or None
        Smallest allowed target. None: no limit.
    intercept : bool or None
        Leave the level of each query's scores free. None: if possible, which is under square
        without a floor, and on the simplex.
    C_r : float
        Weight of the divergence of the targets from the targets of the grades.
    C_w : float
        Weight of the squared scores, or of their squared distance from the mean if the level is
        free.
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

    run = staticmethod(_retarget)
    hessian = staticmethod(_hessian)

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        exact = self.divergence == "square" or self.kl_margin != "surrogate"
        return Traits(
            convex=self.divergence == "square" and not self._by_rank,
            shift_invariant=self._free,
            integrable=exact,
        )

    @property
    def bound_class(self) -> type[BoundKernel]:
        """Class of the loss on a data set."""
        return BoundRetarget

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

    def check(self) -> None:
        """Raise for parameters that contradict each other, or without a minimum."""
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

    def query_factor(self, data: RankingData) -> F64:
        """Return the number of documents of each query to the power -query_weight_exponent."""
        size = np.bincount(data.query_of_row(), document_weight(data), data.n_queries)
        factor: F64 = np.maximum(size, 1e-300) ** -self.query_weight_exponent
        return factor

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query."""
        return order_weight(data) * self.query_factor(data)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the parameters, the places, and work arrays."""
        floor = -np.inf if self.floor is None else float(self.floor)
        kl = self.divergence == "kl"
        terms = Terms(
            alpha=1.0 / (1.0 + self.C_r),
            c_r=float(self.C_r),
            c_w=float(self.C_w),
            floor=max(floor, 0.0) if kl else floor,
            free=self._free,
            kl=kl,
            simplex=self._simplex,
            rewards=self.margin == "large",
            additive=kl and self.kl_margin == "additive",
            by_rank=self._by_rank,
        )
        layout = _layout(self, terms, data)
        if terms.simplex:
            _check_simplex(terms, layout, data)
        n, n_queries = data.n_documents, data.n_queries
        v, target = np.zeros((2, n))
        r, share = np.zeros((2, n)) if kl else (target, v)
        row, first, order, spare = np.zeros((4, n), np.int64)
        pools, cut = np.zeros((2, n_queries), np.int64)
        w, u, heavy, sums, mass = np.zeros((5, n))
        level = np.zeros(n_queries)
        work = Work(
            row, w, v, target, r, share, level, first, pools, cut, order, spare, u, heavy, sums,
            mass,
        )  # fmt: skip
        return terms, layout, work


class BoundRetarget(BoundKernel):
    """The loss on one data set."""

    def __init__(self, loss: Retarget, data: RankingData, *, n_jobs: int | None = None) -> None:
        super().__init__(loss, data, n_jobs=n_jobs)
        self._data = data

    def targets(self, s: F64, out: F64) -> None:
        """Write the targets nearest to ``s``, as scores: r, or log r under KL.

        If the level of a query is free, the targets have the level of its scores. A query without
        order keeps its scores.
        """
        check_lengths(self._n_documents, out)
        self.value(s)
        work, sizes = self.terms[2], np.diff(self.layout.indptr)
        in_order = np.repeat(self.weight > 0.0, sizes)
        target = (work.target + np.repeat(work.level, sizes))[in_order]
        row = work.row[in_order]
        out[:] = s
        out[row if self.layout.rows is None else self.layout.rows[row]] = target

    def with_targets(self, r: F64) -> HessianLoss:
        """Return the loss (8) for fixed targets ``r``, in the form that `targets` writes.

        Its value and gradient at s equal this loss if ``r`` has the targets of s.
        """
        check_lengths(self._n_documents, r)
        terms, layout, _ = self.terms
        rows = slice(None) if self.layout.rows is None else self.layout.rows
        data = present_documents(self._data)
        w, query = document_weight(data), data.query_of_row()
        masses = _masses(r[rows], query, w, terms) if terms.kl else r[rows]
        grade = np.repeat(np.arange(len(layout.start) - 1), np.diff(layout.start))
        place = layout.rows[np.lexsort((r[rows][layout.rows], grade))]
        fixed = -layout.reward * masses[place]
        if terms.c_r > 0.0:
            far = _divergence_from_grades(masses[place], query, w[place], layout.q, terms)
            fixed = fixed + terms.c_r * w[place] * far
        targets = np.zeros(len(r))
        targets[rows] = masses
        constant: F64 = np.bincount(query, fixed, data.n_queries).astype(np.float64)
        return FixedTargets(
            self._data,
            targets,
            self.loss.divergence,
            free=terms.free,
            ridge=terms.c_w,
            constant=constant,
            query_factor=self.loss.query_factor(self._data),
            n_jobs=self._n_jobs,
        )


def _masses(score: F64, query: I64, w: F64, terms: Terms) -> F64:
    """Return exp(score), on the simplex over the sum of each query."""
    if not terms.simplex:
        return np.exp(np.minimum(score, LARGEST))
    log_share = _log_shares(score, query, w)
    return np.exp(log_share)


def _log_shares(score: F64, query: I64, w: F64) -> F64:
    """Return log(exp(score) / sum w exp(score)) of each document, with the sum over its query."""
    top = np.full(query.max(initial=0) + 1, -np.inf)
    np.maximum.at(top, query, score)
    total = np.bincount(query, w * np.exp(score - top[query]))
    log_shares: F64 = score - top[query] - np.log(total[query])
    return log_shares


def _centred(score: F64, query: I64, w: F64) -> F64:
    """Return the scores less the weighted mean of their query."""
    mean: F64 = np.bincount(query, w * score) / np.maximum(np.bincount(query, w), 1e-300)
    return score - mean[query]


def _divergence_from_grades(r: F64, query: I64, w: F64, q: F64, terms: Terms) -> F64:
    """Return D(r || m(q)) by place; up to a constant per query if levels are free."""
    if not terms.kl:
        return 0.5 * ((_centred(r, query, w) if terms.free else r) - q) ** 2
    log_r = np.log(np.where(r > 0.0, r, 1.0))
    return r * (log_r - q) + (0.0 if terms.simplex else np.exp(q) - r)


def _layout(loss: Retarget, terms: Terms, data: RankingData) -> Layout:
    """Return the places of ``data``, with margins, rewards and targets."""
    row_weight, query = document_weight(data), data.query_of_row()
    _, rows = rows_by_grade(data)
    w, n = row_weight[rows], len(rows)
    first = np.flatnonzero(first_of_runs(data.y[rows], data.indptr))
    start = np.append(first, n)
    of_query = np.searchsorted(start, data.indptr)
    target = grade_targets(data, loss.targets)[rows]
    d, reward = np.zeros(n), np.zeros(n)
    if loss.margin == "grade":
        d = loss.size * (target - target[data.indptr[query]])
    elif loss.margin == "large":
        changes = first[1:][query[first[1:]] == query[first[1:] - 1]]
        step = loss.size * (target[changes] - target[changes - 1])
        reward[changes] += step
        reward[changes - 1] -= step
    elif loss.margin != "none":
        power = {"constant": 0.0, "sqrt": 0.5, "power": float(loss.power)}[loss.margin]
        if loss.within_grade:
            places = np.arange(n + 1)
            _running_margins(data.indptr, places, np.ones(n), loss.size, power, d)
        else:
            _running_margins(of_query, start, w, loss.size, power, d)
    tilt = np.ones(n)
    if terms.kl and loss.kl_margin == "ratio":
        tilt = np.maximum(np.exp(d - d[data.indptr[query + 1] - 1]), 1e-300)
    ends = np.flatnonzero(np.append((d[1:] != d[:-1]) | (query[1:] != query[:-1]), True)) + 1
    stop = np.repeat(ends, np.diff(ends, prepend=0))
    q = np.zeros(n)
    if loss.C_r > 0.0:
        q = target
        if terms.free:
            q = (_log_shares if terms.kl else _centred)(target, query, w)
    lift = (1.0 - terms.alpha) * q - (0.0 if terms.additive else d)
    key = w if terms.by_rank else NO_KEY
    return Layout(rows, start, of_query, row_weight, key, d, stop, tilt, reward, q, lift)


def _check_simplex(terms: Terms, layout: Layout, data: RankingData) -> None:
    """Raise if the margins and the floor of a query need more than the simplex holds."""
    w, query = layout.row_weight[layout.rows], data.query_of_row()
    least = terms.floor + layout.d if terms.additive else terms.floor * np.exp(layout.d)
    sums = np.bincount(query, w * least, data.n_queries)
    over = np.flatnonzero((sums >= 1.0) & (order_weight(data) > 0.0))
    if len(over):
        raise UsageError(
            f"query {data.qid[over[0]]} needs targets that sum to {sums[over[0]]:.3g} or more, "
            "and on the simplex they sum to 1: make size or floor smaller, or use "
            "kl_margin='ratio' or domain='cone'."
        )
