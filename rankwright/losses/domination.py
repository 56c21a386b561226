"""Domination loss: each better document should score above all documents of lower grade at once.

Document i dominates j if its grade (or tier of grades) is higher. With w_j the weight of document j
and a_i the margin of document i, the loss of a dominating document is

    l(i) = log(1 + sum over j dominated by i of w_j exp(t_j - t_i)),     t = s - a             (1)

so that i should lead j by a_i - a_j (`stevens2010domination`, (1.1) with a separable margin). The
loss of a query is the mean of l over its dominating documents, each counted w_i times. It suits a
few good documents among many: for i, the best of the dominated documents counts most.

Documents are coupled only by Z(g) = sum over the documents below grade g of w_j exp(t_j). With
p_i = Z / (Z + exp(t_i)), and P(g), P2(g) the weighted sums of p and p^2 over grade g,

    dl/ds_i   = -w_i p_i            + w_i exp(t_i) sum over grades g above of P(g) / Z(g)       (2)
    d2l/ds_i2 = w_i p_i (1 - p_i)   + w_i exp(t_i) sum of P(g) / Z(g)
                                    - w_i^2 exp(2 t_i) sum of P2(g) / Z(g)^2                    (3)

Two passes over the grades, O(n) per query, need no sorting. Only log Z is stored, so that no score
overflows. `by_column` returns the problem of `rankwright.solvers.coordinate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import log1p_exp, sigmoid
from rankwright.core.order import first_of_runs
from rankwright.core.parameters import NonNegative
from rankwright.core.types import F64, I64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    BoundKernel,
    KernelLoss,
    check_targets,
    document_weight,
    grade_targets,
    order_weight,
    rows_by_grade,
)
from rankwright.losses.domination_columns import DominationColumns

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _domination(
    queries, _indptr, s, rows, start, of_query, a, w, share, log_z, p1, p2, value, grad, curv
):
    for q in queries:
        first, last = of_query[q], of_query[q + 1]
        value[q] = share[q] * _upward(first, last, start, s, rows, a, w, log_z, p1, p2)
        level, one, two = -np.inf, 0.0, 0.0  # the sums of (2) and (3) times Z, Z^2 of the last
        for b in range(first, last):  # from the best grade down
            for k in range(start[b], start[b + 1]):
                i = rows[k]
                t = s[i] - a[k]
                p = sigmoid(log_z[b] - t)
                e = w[k] * math.exp(t - level) if one > 0.0 else 0.0
                grad[i] = share[q] * (e * one - w[k] * p)  # (2)
                curvature = w[k] * p * (1.0 - p) + max(e * one - e * e * two, 0.0)
                curv[i] = share[q] * curvature  # (3)
            if log_z[b] > -np.inf:
                fall = math.exp(log_z[b] - level) if one > 0.0 else 0.0
                one, two = one * fall + p1[b], two * fall * fall + p2[b]
                level = log_z[b]


@kernel
def _upward(first, last, start, s, rows, a, w, log_z, p1, p2):
    """Return the sum of (1); write log Z, P and P2 of each grade, from the lowest up."""
    total = 0.0
    top, mass = -np.inf, 0.0  # Z is mass exp(top)
    for b in range(last - 1, first - 1, -1):
        log_z[b] = top + math.log(mass) if mass > 0.0 else -np.inf
        p1[b] = p2[b] = 0.0
        highest = top
        for k in range(start[b], start[b + 1]):
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
            mass += w[k] * math.exp(s[rows[k]] - a[k] - top)
    return total


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


class Blocks(NamedTuple):
    """Documents of positive weight by query and tier, best first; a block is a tier of a query."""

    rows: I64
    start: I64  # block b has the places start[b]:start[b + 1]
    of_query: I64  # the first block of each query
    share: F64  # of each query: 1 over the weight of its dominating documents, or 0 without any


@dataclass(frozen=True, repr=False)
class Domination(KernelLoss):
    """Log-loss of each good document against all that it dominates together; fit for few good.

    Parameters
    ----------
    margin : None, "linear", "gain" or a tuple
        Lead that is asked for: the difference of the grades, of 2^grade - 1, or of a value per
        grade, times ``margin_scale``. Grades may be any numbers, such as click counts.
    margin_scale : float
        Factor of the margins.
    tiers : None or a tuple
        Increasing thresholds that divide grades into tiers; a grade equal to a threshold is in the
        upper one. A document dominates the documents of lower tiers. None: every grade is a tier.

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
    run = staticmethod(_domination)

    @property
    def bound_class(self) -> type[BoundKernel]:
        """Class of the loss on a data set."""
        return BoundDomination

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query, 0 if it has only one tier."""
        return order_weight(self._with_tiers(data))

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the blocks, margins and weights, and work arrays by block."""
        blocks = self.blocks(data)
        work = np.zeros((3, len(blocks.start) - 1))
        rows, start, of_query, share = blocks
        a, w = self.margins(data)[rows], document_weight(data)[rows]
        return rows, start, of_query, a, w, share, *work

    def blocks(self, data: RankingData) -> Blocks:
        """Return the documents by tier."""
        tiered = self._with_tiers(data)
        begin, rows = rows_by_grade(tiered, best_first=True)
        start = np.append(np.flatnonzero(first_of_runs(tiered.y[rows], begin)), len(rows))
        of_query = np.searchsorted(start, begin)
        query, sizes = np.repeat(np.arange(data.n_queries), np.diff(of_query)), np.diff(start)
        dominates = np.append(query[1:] == query[:-1], [False] * (len(query) > 0))
        dominating = np.repeat(dominates, sizes) * document_weight(data)[rows]
        weight = np.bincount(np.repeat(query, sizes), dominating, data.n_queries)
        share = np.divide(1.0, weight, out=np.zeros(len(weight)), where=weight > 0.0)
        return Blocks(rows, start, of_query, share)

    def margins(self, data: RankingData) -> F64:
        """Return the margin a of each document."""
        if self.margin is None:
            return np.zeros(data.n_documents)
        return self.margin_scale * grade_targets(data, self.margin)

    def _with_tiers(self, data: RankingData) -> RankingData:
        """Return the data with tiers for grades."""
        if self.tiers is None:
            return data
        tier = np.searchsorted(self.tiers, data.y, side="right")
        return data._replace(y=tier.astype(np.float64))


class BoundDomination(BoundKernel):
    """The domination loss on one data set; `by_column` steps along features instead of rows."""

    def __init__(self, loss: Domination, data: RankingData, *, n_jobs: int | None = None) -> None:
        super().__init__(loss, data, n_jobs=n_jobs)
        self._data = data

    def by_column(
        self, X: Any, *, total_weight: float | None = None, **options: Any
    ) -> DominationColumns:
        """Return the problem of linear scores that `rankwright.solvers.coordinate` solves.

        Parameters
        ----------
        X : CSC matrix
        total_weight
            Divisor of the sum over queries; by default the weight of the queries with an order.
        **options
            See `rankwright.losses.domination_columns.DominationColumns`.
        """
        total = total_weight or float(self.weight.sum()) or 1.0
        return DominationColumns(self, self._data, X, total_weight=total, **options)
