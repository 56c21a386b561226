"""Each better document is to stand above everything it dominates, at once (domination loss).

Document i dominates j where its grade (or tier of grades) is the higher one. With w_j the weight of
document j and a_i the margin of document i, the loss of a dominating document is

    l(i) = log(1 + sum over j dominated by i of w_j exp(t_j - t_i)),     t = s - a             (1)

so that i is to lead j by a_i - a_j (`stevens2010domination`, (1.1) with a separable margin), and
the loss of a query is the mean of l over its dominating documents, each counted w_i times. It is
meant for few good documents among many: what counts for i is the best of those below it.

Only Z(g) = sum over the documents below grade g of w_j exp(t_j) couples documents. With
p_i = Z / (Z + exp(t_i)), the share of l(i) that the dominated hold, and P(g), P2(g) the weighted
sums of p and p^2 over grade g,

    dl/ds_i   = -w_i p_i            + w_i exp(t_i) sum over grades g above of P(g) / Z(g)       (2)
    d2l/ds_i2 = w_i p_i (1 - p_i)   + w_i exp(t_i) sum of P(g) / Z(g)
                                    - w_i^2 exp(2 t_i) sum of P2(g) / Z(g)^2                    (3)

and with V(g) the mean of v over the documents below g, by w exp(t),

    (H v)_i = w_i p_i (1 - p_i) (v_i - V) + w_i exp(t_i) sum of (P(g) v_i - R(g)) / Z(g),
    R(g) = sum over grade g of w_k p_k (p_k V + (1 - p_k) v_k)                                  (4)

Nothing is sorted after `bind`: two passes over the grades, O(n) a query. Only log Z is kept, so
that no score overflows. `by_column` gives `rankwright.solvers.coordinate` its problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import log1p_exp, sigmoid
from rankwright.core.parallel import map_queries
from rankwright.core.parameters import NonNegative, Part, check_parameters
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses.domination_columns import DominationColumns
from rankwright.losses.old_base import KernelLoss, check_targets, document_weight, grade_targets
from rankwright.losses.pair_sums import GradeBlocks


class _Terms(NamedTuple):
    a: F64  # margin of each place
    w: F64
    share: F64  # of each query: 1 over the weight of its dominating documents


class _Workspace(NamedTuple):
    """What the kernel leaves for the Hessian, by block."""

    log_z: F64
    p1: F64
    p2: F64
    mean: F64


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, _indptr, s, layout, terms, workspace, weight, value, grad, curv):
    rows, start, of_query = layout
    a, w, share = terms
    log_z, p1, p2, _ = workspace
    for q in range(lo, hi):
        first, last = of_query[q], of_query[q + 1]
        factor = weight[q] * share[q]
        value[q] = factor * _upward(first, last, start, s, rows, a, w, log_z, p1, p2)
        if len(grad) == 0:
            continue
        level, one, two = -np.inf, 0.0, 0.0  # the sums of (2) and (3) times Z, Z^2 of the last
        for b in range(first, last):  # from the best grade down
            for k in range(start[b], start[b + 1]):
                i = rows[k]
                t = s[i] - a[k]
                p = sigmoid(log_z[b] - t)
                e = w[k] * math.exp(t - level) if one > 0.0 and w[k] > 0.0 else 0.0
                grad[i] = factor * (e * one - w[k] * p)  # (2)
                if len(curv):
                    curvature = w[k] * p * (1.0 - p) + max(e * one - e * e * two, 0.0)
                    curv[i] = factor * curvature  # (3)
            if log_z[b] > -np.inf:
                fall = math.exp(log_z[b] - level) if one > 0.0 else 0.0
                one, two = one * fall + p1[b], two * fall * fall + p2[b]
                level = log_z[b]


@kernel
def _upward(first, last, start, s, rows, a, w, log_z, p1, p2):
    """Return the sum of (1), leaving log Z, P and P2 of each block."""
    total = 0.0
    top, mass = -np.inf, 0.0  # Z is mass exp(top)
    for b in range(last - 1, first - 1, -1):
        log_z[b] = top + math.log(mass) if mass > 0.0 else -np.inf
        p1[b] = p2[b] = 0.0
        highest = top
        for k in range(start[b], start[b + 1]):
            if w[k] > 0.0:
                t = s[rows[k]] - a[k]
                p = sigmoid(log_z[b] - t)
                total += w[k] * log1p_exp(log_z[b] - t)  # (1)
                p1[b] += w[k] * p
                p2[b] += w[k] * p * p
                highest = max(highest, t)
        if mass > 0.0:
            mass *= math.exp(top - highest)
        top = highest
        for k in range(start[b], start[b + 1]):
            if w[k] > 0.0:
                mass += w[k] * math.exp(s[rows[k]] - a[k] - top)
    return total


@kernel
def _hessian(lo, hi, _indptr, s, layout, terms, workspace, weight, v, out):
    """Write (4), from log Z and P as `_queries` left them."""
    rows, start, of_query = layout
    a, w, share = terms
    log_z, p1, _, mean = workspace
    for q in range(lo, hi):
        first, last = of_query[q], of_query[q + 1]
        factor = weight[q] * share[q]
        _means_below(first, last, start, s, rows, a, w, log_z, v, mean)
        level, one, pull = -np.inf, 0.0, 0.0
        for b in range(first, last):
            r = 0.0
            for k in range(start[b], start[b + 1]):
                i = rows[k]
                t = s[i] - a[k]
                p = sigmoid(log_z[b] - t)
                e = w[k] * math.exp(t - level) if one > 0.0 and w[k] > 0.0 else 0.0
                own = w[k] * p * (1.0 - p) * (v[i] - mean[b])
                out[i] = factor * (own + e * (v[i] * one - pull))
                r += w[k] * p * (p * mean[b] + (1.0 - p) * v[i])
            if log_z[b] > -np.inf:
                fall = math.exp(log_z[b] - level) if one > 0.0 else 0.0
                one, pull = one * fall + p1[b], pull * fall + r
                level = log_z[b]


@kernel
def _means_below(first, last, start, s, rows, a, w, log_z, v, mean):
    """Write V of each block, from the one below it."""
    for b in range(last - 1, first - 1, -1):
        mean[b] = 0.0
        if log_z[b] > -np.inf:
            mean[b] = mean[b + 1] * math.exp(log_z[b + 1] - log_z[b])
            for k in range(start[b + 1], start[b + 2]):
                if w[k] > 0.0:
                    t = s[rows[k]] - a[k]
                    mean[b] += w[k] * math.exp(t - log_z[b]) * v[rows[k]]


@kernel
def _shares(lo, hi, _indptr, start, of_query, w, share):
    """Write 1 over the weight of each query's dominating documents; 0 where there are none."""
    for q in range(lo, hi):
        below = dominating = 0.0
        for b in range(of_query[q + 1] - 1, of_query[q] - 1, -1):
            here = 0.0
            for k in range(start[b], start[b + 1]):
                here += w[k]
            dominating += here if below > 0.0 else 0.0
            below += here
        share[q] = 1.0 / dominating if dominating > 0.0 else 0.0


# --- API -------------------------------------------------------------------------------------


def _check_margin(name: str, margin: Any) -> None:
    """Raise unless ``margin`` is None, "linear", "gain" or an increasing number for each grade."""
    if isinstance(margin, str) and margin not in ("linear", "gain"):
        raise UsageError(f"{name} must be linear, gain, a value per grade or None, not '{margin}'.")
    if margin is not None:
        check_targets(name, margin)


def _check_tiers(name: str, tiers: Any) -> None:
    """Raise unless ``tiers`` is None or increasing numbers."""
    if tiers is None:
        return
    try:
        thresholds = np.asarray(tiers, np.float64)
    except (TypeError, ValueError):
        thresholds = np.empty(0)
    rising = thresholds.ndim == 1 and (np.diff(thresholds) > 0).all()
    if not thresholds.size or np.isnan(thresholds).any() or not rising:
        raise UsageError(f"{name} must be rising thresholds, not {tiers!r}.")


@dataclass(frozen=True, slots=True, repr=False)
class Domination(Part):
    """Log-loss of each good document against all that it dominates together; fit for few good.

    Parameters
    ----------
    margin : None, "linear", "gain" or a tuple
        Lead that is asked for: the difference of the grades, of 2^grade - 1, or of a value per
        grade, times ``margin_scale``. Grades may be any numbers, such as click counts.
    margin_scale : float
    tiers : None or a tuple
        Rising thresholds that sort grades into tiers, the grade at a threshold in the upper one; a
        document dominates those of lower tiers. None: every grade is a tier of its own. A query of
        one tier but several grades counts as a query, with loss 0.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Domination(margin_scale=0.5), model="linear")
    Ranker(loss=Domination(margin_scale=0.5))
    """

    margin: Annotated[str | tuple[float, ...] | None, _check_margin] = None
    margin_scale: NonNegative = 1.0
    tiers: Annotated[tuple[float, ...] | None, _check_tiers] = None

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(
        self, data: RankingData, *, margins: F64 | None = None, n_jobs: int | None = None
    ) -> BoundDomination:
        """Prepare the loss for one data set.

        Parameters
        ----------
        margins : (n,) float64
            The margin a_i of each document, instead of one by its grade.
        """
        check_parameters(self)
        tiered = data._replace(y=self._tier(data.y))
        if margins is None:
            margins = self._margins(data)
        elif len(margins) != data.n_documents or not np.isfinite(margins).all():
            raise DataError("margins must be one finite number for each document.")
        return BoundDomination(tiered, margins, n_jobs)

    def _tier(self, y: F64) -> F64:
        if self.tiers is None:
            return y
        return np.searchsorted(self.tiers, y, side="right").astype(np.float64)

    def _margins(self, data: RankingData) -> F64:
        if self.margin is None:
            return np.zeros(data.n_documents)
        return self.margin_scale * grade_targets(data, self.margin)


class BoundDomination(KernelLoss):
    """The domination loss on one data set; goes by rows, as every loss, or by columns."""

    def __init__(self, data: RankingData, margins: F64, n_jobs: int | None) -> None:
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        share = np.empty(data.n_queries)
        map_queries(_shares, data.indptr, blocks.start, blocks.of_query, w, share, n_jobs=n_jobs)
        workspace = _Workspace(*np.empty((4, len(blocks.start) - 1)))
        args = (blocks.layout, _Terms(margins[blocks.rows], w, share), workspace)
        super().__init__(_queries, data, *args, curvature=True, hessian=_hessian, n_jobs=n_jobs)
        self._blocks, self._share, self._margins = blocks, share, margins
        self._document_weight = document_weight(data)

    def by_column(
        self, X: Any, *, total_weight: float | None = None, **options: Any
    ) -> DominationColumns:
        """Return the problem of linear scores that `rankwright.solvers.coordinate` solves.

        Parameters
        ----------
        X : CSC matrix, or Columns
        total_weight
            What the sum over queries is divided by; the weight of those with an order by default.
        **options
            See `rankwright.losses.domination_columns.DominationColumns`.
        """
        ordered = float(self._weight.sum())
        total = total_weight or ordered or 1.0
        return DominationColumns(
            self,
            X,
            self._blocks,
            self._document_weight,
            self._weight * self._share / total,
            self._margins,
            indptr=self._indptr,
            ordered_weight=ordered,
            total_weight=total,
            **options,
        )
