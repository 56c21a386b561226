"""Bound on a ranking metric: the worst order that scores nearly as well as the ideal (DORM).

For a metric that is a sum over ranks, <a, b>, and falling weights c by rank (`le2007dorm`),

    L(s) = max over orders pi of  sum_i s_i (c_pi(i) - cref_i)  +  <a, b(ideal)> - <a, b(pi)>   (1)

where pi(i) is the rank of document i in pi and cref_i is c at its rank in the reference order, by
falling grade: (27) of the paper. L is at least what the metric loses when documents are put in
order of s. It is piecewise linear, with gradient c_pi(i) - cref_i at the worst order pi, which
`losses.position_orders` and `losses.assignment` find.

**Tied grades** leave the reference open, and results depend on it. ``ties="mean"``: tied documents
share the mean of their c, which is the mean of (1) over tied orders. ``"file"``: by row, as
printed. ``"score"``: by score, equal scores sharing the mean; L is then the least of (1) over tied
orders, M(s) - N(s) with convex M and N,

    M(s) = max over pi of sum_i s_i c_pi(i) + <a, b(ideal)> - <a, b(pi)>,
    N(s) = max over reference orders of sum_i s_i c_ref(i)                                      (2)

`convex_part` and `concave_part` give them to a solver that holds N to its tangent, round by round.

c_i = (i + 1)^-d for ``decay=d``, 1/log(i + 2) for "log", 1/log(log(i + 2)) for "loglog", i from 1,
and c = a for "metric". The reciprocal rank is a sum over ranks only where one document is relevant;
(1) is solved for its true value with several.

``per_group=k``: orders hold at most k documents of a group in the ranks that count, as the
reference does, and c is 0 beyond (section 5.1). Where topics overlap, orders hold a weight of at
most k of each topic, and exactly as many documents as the limits leave room for; the reference is
the best such order, of grades and topics, by an integer programme, and the worst one is found by
`losses.topic_search`: exactly, or as well as 20,000 steps allow.

``cost``: a function from the grades of a query, best first, to the cost C_ij of document i at rank
j, in place of a metric (section 3.4): the reference is then the cheapest order, and the loss of
the metric C(pi) - C(reference).

**Weights**: ranks are held by whole documents; one of weight 0 is left out, any other counts like
the rest. **Curvature** there is none; in its place stands the range of c, by which no step of
boosting is longer than 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import clear, clear_query, take
from rankwright.core.order import first_of_runs, numbers_of_runs
from rankwright.core.parallel import map_ranges, ordered_sum
from rankwright.core.parameters import Count, Part, check_parameters
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.gain_lists import form_over_ranks
from rankwright.losses.old_base import KernelLoss, check_lengths, rows_by_grade, without_features
from rankwright.losses.position_orders import (
    BENCHES,
    FIRST,
    GROUPS,
    SORT,
    TOPICS,
    Lists,
    OrderWorkspace,
    best_within_groups,
    by_rank,
    classes_or_assignment,
    groups_of_queries,
    lists_with_costs,
    reference,
    size_of_workspace,
    sorted_places,
    sums_of_queries,
    topics_of_queries,
    used_methods,
    worst_order,
)
from rankwright.metrics.base import AnyMetric, metric
from rankwright.metrics.ranked import rank_weights
from rankwright.metrics.swap import MRR_SWAP

_HIGHEST_SCORE = 1e150  # beyond it the search over orders, by sums of costs, loses its way


class _Workspace(NamedTuple):
    crefs: F64  # of each place, where it does not follow the scores
    floats: F64  # two of each place
    places: I64  # three of each place
    states: int  # of `size_of_workspace`
    ranks: int


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, lists, by_score, methods, workspace, weight, value, grad, curv):
    classes, assigned, sort, first, cost, grouped, topics = methods
    crefs, floats, places, states, ranks = workspace
    own = OrderWorkspace(np.empty((2, states)), np.empty((ranks + 1, states), np.int8))
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        at = slice(lists.begin[q], lists.begin[q + 1])
        if weight[q] == 0.0 or lists.begin[q] == lists.begin[q + 1]:
            continue
        row, c, cref = lists.row[at], lists.c[at], crefs[at]
        v, gradient = floats[0, at], floats[1, at]
        take(s, row, v)
        centre = 0.0
        for i in range(len(v)):
            centre += v[i]
        centre /= len(v)
        for i in range(len(v)):
            v[i] -= centre
        ranked = sorted_places(lists.begin[q], lists.begin[q + 1], floats[0], places)
        lost = worst_order(
            q, lists, ranked, v, own, places[2, at], gradient,
            classes, assigned, sort, first, cost, grouped, topics,
        )  # fmt: skip
        if by_score is not None:
            reference(q, lists, ranked, v, places[2, at], cref, cost, grouped, topics)
        total = lost
        for i in range(len(row)):
            gradient[i] -= cref[i]
            total += gradient[i] * (v[i] + centre)  # (1)
            if len(grad):
                grad[row[i]] = weight[q] * gradient[i]
            if len(curv):
                curv[row[i]] = weight[q] * (c[0] if lists.limit > 0 else c[0] - c[-1])
        value[q] = weight[q] * total


@kernel
def _references(lo, hi, indptr, s, lists, methods, workspace, weight, value, out):
    """Write N of (2) and its gradient."""
    _, _, _, _, cost, grouped, topics = methods
    floats, places = workspace.floats, workspace.places
    for q in range(lo, hi):
        value[q] = 0.0
        clear(indptr[q], indptr[q + 1], out)
        at = slice(lists.begin[q], lists.begin[q + 1])
        if weight[q] == 0.0 or lists.begin[q] == lists.begin[q + 1]:
            continue
        row, v, cref = lists.row[at], floats[0, at], floats[1, at]
        take(s, row, v)
        ranked = sorted_places(lists.begin[q], lists.begin[q + 1], floats[0], places)
        reference(q, lists, ranked, v, places[2, at], cref, cost, grouped, topics)
        for i in range(len(row)):
            out[row[i]] = weight[q] * cref[i]
            value[q] += weight[q] * cref[i] * v[i]


# --- API -------------------------------------------------------------------------------------


def _check_decay(name: str, value: Any) -> None:
    """Raise unless ``value`` is the name of a decay or a finite number above 0."""
    named = isinstance(value, str) and value in ("log", "loglog", "metric")
    if not named and not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
        raise UsageError(f"{name} must be a number above 0, log, loglog or metric, not {value!r}.")


@dataclass(frozen=True, slots=True, repr=False)
class PositionSVM(Part):
    """A convex bound on what a ranking metric loses, tight where documents are in order.

    Parameters
    ----------
    metric : str or Metric
        The metric: ndcg, dcg, p, wta, eru or another sum over ranks, or mrr; with a cut-off as in
        ``ndcg@10``, under the standard convention. ``wta(modified=true)`` is the paper's mWTA.
    decay : float, "log", "loglog" or "metric"
        Weights by rank: (i + 1)^-decay; slower with the names; "metric" takes the metric's own.
    ties : "score", "mean" or "file"
        Which order of equal grades is aimed at: that of the scores, all on average, or the rows'.
    per_group : int or None
        Maximum number of documents of each group (host, topic) in the ranks that count; topics may
        overlap.
    cost : callable or None
        ``cost(grades)``, grades best first, gives the cost of each document at each rank, in place
        of a metric.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PositionSVM(metric="mrr"), model="linear")
    Ranker(loss=PositionSVM(metric='mrr'))
    """

    metric: AnyMetric = "ndcg@10"
    decay: Annotated[float | str, _check_decay] = 1.0
    ties: Literal["score", "mean", "file"] = "mean"
    per_group: Count | None = None
    cost: Callable[[F64], Any] | None = None

    @property
    def traits(self) -> Traits:
        """What the loss can do with these parameters."""
        by_score = self.ties == "score"
        return Traits(smooth=False, convex=not by_score)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        self._check()
        begin, row = rows_by_grade(data, best_first=True)
        if self.per_group is not None and _overlap(data):
            row = _by_topics(data, row)
        lists = self._lists(without_features(data, begin, row), row)
        return _Bound(lists, data, ties=self.ties, n_jobs=n_jobs)

    def _check(self) -> None:
        check_parameters(self)
        if self.per_group is not None and self.cost is not None:
            raise UsageError("per_group and cost cannot be combined; give one of them.")

    def _lists(self, data: RankingData, row: I64) -> Lists:
        """Lay out ``data``, whose documents are sorted by grade."""
        begin, n = data.indptr, int(data.sizes.max(initial=0))
        if self.cost is not None:
            return lists_with_costs(self.cost, rank_decay(self.decay, n, np.ones(n)), data, row)
        mrr, weights, b, cut = self._metric_lists(data)
        a = by_rank(weights, begin, cut)
        block, _ = numbers_of_runs(data.y, begin)
        kind, gain_begin = numbers_of_runs(b, begin)
        c = by_rank(rank_decay(self.decay, n, weights), begin)
        best = sums_of_queries(a * b, begin)
        if mrr:
            method = np.full(data.n_queries, FIRST)
            best = sums_of_queries(b, begin).clip(0.0, 1.0)
        elif self.per_group is not None:
            method = np.full(data.n_queries, GROUPS if self.per_group == 1 else BENCHES)
        elif self.decay == "metric":
            method, c = np.full(data.n_queries, SORT), a
        else:
            method = classes_or_assignment(kind, begin, cut)
        group, n_groups = np.zeros_like(row), np.zeros(data.n_queries, np.int64)
        seat, topic, topic_begin = np.empty(0, np.int64), np.empty(0), np.append(n_groups, 0)
        if self.per_group is not None and _overlap(data):
            found = topics_of_queries(self.per_group, weights, b, data, cut)
            group, n_groups, topic_begin, topic, cut, seat, block, best = found
            b, best = self._over_ideal(b, best, begin)
            method, a = np.full(data.n_queries, TOPICS), by_rank(weights, begin, cut)
        elif self.per_group is not None:
            group, n_groups = groups_of_queries(data)
            best = best_within_groups(self.per_group, a, b, group, begin, cut)
        return Lists(
            limit=int(self.per_group or 0),
            begin=begin,
            cut=cut,
            best=best,
            method=method,
            gain_begin=gain_begin,
            n_groups=n_groups,
            topic_begin=topic_begin,
            cost_begin=np.zeros(data.n_queries + 1, np.int64),
            row=row,
            block=block,
            kind=kind,
            group=group,
            seat=seat,
            b=b,
            a=a,
            c=c,
            gain=b[first_of_runs(b, begin)],
            cost=np.empty(0),
            topic=topic,
        )

    def _over_ideal(self, b: F64, best: F64, begin: I64) -> tuple[F64, F64]:
        """Divide gains by the best order's metric where the metric is a share of the ideal's."""
        judge: Any = metric(self.metric)
        if not any(
            getattr(judge, name, judge.key == "ndcg") for name in ("normalised", "modified")
        ):
            return b, best
        over = np.where(best > 0.0, 1.0 / np.where(best > 0.0, best, 1.0), 0.0)
        return b * np.repeat(over, np.diff(begin)), best * over

    def _metric_lists(self, data: RankingData) -> tuple[bool, F64, F64, I64]:
        """Return whether it is a reciprocal rank, weights by rank, gains, and ranks that count."""
        form = form_over_ranks("position_svm", self.metric, data, mrr=True)
        mrr, n = form.kind == MRR_SWAP, int(data.sizes.max(initial=0))
        weights = rank_weights("reciprocal", n) if mrr else form.weight
        scale, cut = form.scale, np.minimum(form.cut, data.sizes)
        if self.per_group is not None:
            if mrr or self.decay == "metric":
                raise IncompatibleError(
                    "per_group works with sums over ranks and a decay by rank only."
                )
            if _overlap(data):
                return mrr, weights, form.gain * np.repeat(scale, data.sizes), cut.astype(np.int64)
            limited: Any = replace(metric(self.metric), max_per_group=int(self.per_group))
            judged = limited.judge(data)
            found, divisor = form.scale > 0.0, limited.scale(judged)
            scale = np.where(found, 1.0 / np.where(found, divisor, 1.0), 0.0)
            cut = np.minimum(limited.cut(judged), judged.sizes)
        return mrr, weights, form.gain * np.repeat(scale, data.sizes), cut.astype(np.int64)


class _Bound(KernelLoss):
    """The loss on one data set; `convex_part` and `concave_part` are M and N of (2)."""

    def __init__(self, lists: Lists, data: RankingData, *, ties: str, n_jobs: int | None) -> None:
        n, by_score = len(lists.row), True if ties == "score" else None
        crefs, floats, places = np.zeros(n), np.empty((2, n)), np.empty((3, n), np.int64)
        workspace = _Workspace(crefs, floats, places, *size_of_workspace(lists))
        methods = used_methods(lists)
        self._lists, self._methods, self._workspace = lists, methods, workspace
        args = (lists, by_score, methods, workspace)
        options: dict[str, Any] = {"score_limit": _HIGHEST_SCORE, "n_jobs": n_jobs}
        super().__init__(_queries, data, *args, curvature=True, **options)
        self._convex: KernelLoss = self
        if by_score:
            of_none = (lists, None, methods, workspace._replace(crefs=np.zeros(n)))
            self._convex = KernelLoss(_queries, data, *of_none, **options)
        else:
            s, out = np.zeros(data.n_documents), np.empty(data.n_documents)
            if ties == "file":
                s[lists.row] = -np.arange(n, dtype=np.float64)
            weight, self._weight = self._weight, np.ones(data.n_queries)
            self.concave_part(s, out)
            self._weight = weight
            crefs[:] = out[lists.row]

    def convex_part(self, s: F64, out: F64) -> float:
        """Write the gradient of M to ``out`` and return M; the loss itself where it is convex."""
        return self._convex.grad(s, out)

    def concave_part(self, s: F64, out: F64) -> float:
        """Write the gradient of N to ``out`` and return N: the loss is M - N."""
        check_lengths(self._n_documents, s, out)
        if self._beyond_limit(s, out, self._per_query):
            return np.nan
        lists, methods, workspace = self._lists, self._methods, self._workspace
        map_ranges(
            _references,
            self._ranges,
            *(self._indptr, s, lists, methods, workspace, self._weight, self._per_query, out),
            n_jobs=self._n_jobs,
        )
        return ordered_sum(self._per_query)


def _overlap(data: RankingData) -> bool:
    return data.group is not None and data.group.ndim == 2


def _by_topics(data: RankingData, row: I64) -> I64:
    """Return the rows of a layout with those of one grade in the order of their topics."""
    query, shares = data.query_of_row()[row], data.group_shares()[row]
    columns = (*shares.T[::-1], -data.y[row], query)
    return row[np.lexsort(columns)]


def rank_decay(decay: float | str, n: int, own: F64) -> F64:
    """Return c of ranks 1 to n; ``own`` are the metric's weights."""
    rank = np.arange(1.0, n + 1.0)
    if decay == "metric":
        return own
    if decay == "log":
        return 1.0 / np.log(rank + 2.0)
    if decay == "loglog":
        return 1.0 / np.log(np.log(rank + 2.0))
    powers: F64 = (rank + 1.0) ** -float(decay)
    return powers
