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

The level of a query's scores is free where it can be, the paper's beta in (3): by nature under
square without C_r, C_w and floor, and on the simplex; by centring under square with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import ranking
from rankwright.core.parameters import check_zero_or_more
from rankwright.core.parts import Part
from rankwright.core.queries import first_of_runs
from rankwright.core.types import F64, I64, HessianLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import KernelLoss, document_weight, grade_targets
from rankwright.losses.ndcg_glm import FixedTargets, shares
from rankwright.losses.retarget_kernels import (
    Layout,
    Places,
    Terms,
    kl_hessian,
    new_workspace,
    retarget_kl,
    retarget_square,
    running_margins,
    square_hessian,
)
from rankwright.registry import unknown

MARGINS = ("none", "grade", "constant", "sqrt", "power", "large")
KL_MARGINS = ("ratio", "additive", "surrogate")
_KERNELS = {"square": (retarget_square, square_hessian), "kl": (retarget_kl, kl_hessian)}

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _masses(lo, hi, indptr, score, w, simplex, weight, mass):  # type: ignore[no-untyped-def]
    """Write exp(score), on the simplex over its sum; 0 for queries without order."""
    for q in range(lo, hi):
        if weight[q] > 0.0:
            shares(indptr[q], indptr[q + 1], score, w, simplex, mass)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Retarget(Part):
    """The divergence of the scores from the nearest ones that keep the order of the grades.

    Parameters
    ----------
    divergence : "square" or "kl"
    domain : "simplex" or "cone"
        Where the targets of KL lie: among distributions, or among positive numbers.
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
    """

    divergence: str = "square"
    domain: str = "simplex"
    margin: str = "grade"
    size: float = 1.0
    power: float = 1.0
    kl_margin: str = "ratio"
    targets: str | tuple[float, ...] = "linear"
    within_grade: bool = False
    floor: float | None = None
    intercept: bool | None = None
    C_r: float = 0.0
    C_w: float = 0.0
    query_weight_exponent: float = 0.0

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        exact = self.divergence == "square" or self.kl_margin != "surrogate"
        return Traits(
            family="listwise",
            queries=True,
            convex=self.divergence == "square" and not self._by_rank,
            shift_invariant=self._free,
            integrable=exact,
            curvature=True,
            hess_vec=exact,
            targets=exact,
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
        for name, known in (
            ("divergence", ("square", "kl")),
            ("domain", ("simplex", "cone")),
            ("margin", MARGINS),
            ("kl_margin", KL_MARGINS),
        ):
            if getattr(self, name) not in known:
                raise UsageError(unknown(f"retarget {name}", getattr(self, name), known))
        for name in ("size", "C_r", "C_w"):
            check_zero_or_more(f"retarget's {name}", getattr(self, name))
        if self.divergence == "square" and self.intercept and self.floor is not None:
            raise UsageError("a free level lifts scores over any floor; set intercept=False.")
        if self.divergence == "kl" and self.intercept not in (None, self._simplex):
            raise UsageError(
                "under kl the level of scores is free on the simplex and fixed on the cone; "
                "choose the domain and leave intercept out."
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
            hessian=hessian if loss.traits.hess_vec else None,
            n_jobs=n_jobs,
        )
        size = np.bincount(data.query_of_row(), document_weight(data), data.n_queries)
        self._factor = np.maximum(size, 1e-300) ** -loss.query_weight_exponent
        self._weight = self._weight * self._factor
        if loss._simplex:
            _check_room(self._terms, layout, self._weight, data)

    def targets(self, s: F64, out: F64) -> None:
        """Write the targets nearest to ``s``, as scores: r itself, or log r under KL.

        Where the level of a query is free they have the level of its scores. A query without order
        keeps its scores.
        """
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


def _check_room(terms: Terms, layout: Layout, weight: F64, data: RankingData) -> None:
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
