"""Bound on a ranking measure: the worst order that scores nearly as well as the ideal (DORM).

For a measure that is a sum over ranks, <a, b>, and falling weights c by rank (`le2007dorm`),

    L(s) = max over orders pi of  sum_i s_i (c_pi(i) - cref_i)  +  <a, b(ideal)> - <a, b(pi)>   (1)

where pi(i) is the rank of document i in pi and cref_i is c at its rank in the reference order, by
falling grade: (27) of the paper. L is at least what the measure loses when documents are put in
order of s. It is piecewise linear, with slope c_pi(i) - cref_i at the worst order pi, which
`subproblems.position_max` and `subproblems.assignment` find.

**Tied grades** leave the reference open, and results depend on it. ``ties="mean"``: tied documents
share the mean of their c, which is the mean of (1) over tied orders. ``"file"``: by row, as
printed. ``"score"``: by score, equal scores sharing the mean; L is then the least of (1) over tied
orders, M(s) - N(s) with convex M and N,

    M(s) = max over pi of sum_i s_i c_pi(i) + <a, b(ideal)> - <a, b(pi)>,
    N(s) = max over reference orders of sum_i s_i c_ref(i)                                      (2)

`convex_part` and `lean` give the two to a solver that holds N to its tangent, round by round.

c_i = (i + 1)^-d for ``decay=d``, 1/log(i + 2) for "log", 1/log(log(i + 2)) for "loglog", i from 1,
and c = a for "metric". The reciprocal rank is a sum over ranks only where one document is relevant;
(1) is solved for its true value with several.

``per_group=k``: orders hold at most k documents of a group in the ranks that count, as the
reference does, and c is 0 beyond (section 5.1). ``cost``: a function from the grades of a query,
best first, to the cost C_ij of document i at rank j, in place of a measure (section 3.4): the
reference is then the cheapest order, and the loss of the measure C(pi) - C(reference).

**Weights**: ranks are held by whole documents; one of weight 0 is left out, any other counts like
the rest. **Curvature** there is none; in its place stands the range of c, by which no step of
boosting is longer than 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, ordered_sum
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.base import KernelLoss, document_weight
from rankwright.metrics.evaluate import metric
from rankwright.metrics.position import rank_weights
from rankwright.metrics.swap import LINEAR_SWAP, MRR_SWAP
from rankwright.subproblems.assignment import least_cost
from rankwright.subproblems.position_lists import (
    BENCHES,
    COST,
    FIRST,
    GROUPS,
    SORT,
    Lists,
    by_rank,
    classes_or_assignment,
    numbers_of_runs,
    scratch_of_classes,
)
from rankwright.subproblems.worst_order import reference, sorted_places, worst_order

TIES = ("score", "mean", "file")

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, lists, by_score, limit, states, ranks, crefs, floats, places,
    weight, value, grad, curv,
):  # fmt: skip
    worth, choice = np.empty((2, states)), np.empty((ranks + 1, states), np.int8)
    for q in range(lo, hi):
        value[q] = 0.0
        if len(grad):
            grad[indptr[q] : indptr[q + 1]] = 0.0
        if len(curv):
            curv[indptr[q] : indptr[q + 1]] = 0.0
        at = slice(lists.begin[q], lists.begin[q + 1])
        if weight[q] == 0.0 or lists.begin[q] == lists.begin[q + 1]:
            continue
        row, c, cref, slope = lists.row[at], lists.c[at], crefs[at], floats[1, at]
        v, centre = floats[0, at], np.mean(s[row])
        v[:] = s[row] - centre
        ranked = sorted_places(lists.begin[q], lists.begin[q + 1], floats[0], places)
        lost = worst_order(q, limit, lists, ranked, v, worth, choice, places[2, at], slope)
        if by_score:
            reference(q, limit, lists, ranked, v, places[2, at], cref)
        total = lost
        for i in range(len(row)):
            slope[i] -= cref[i]
            total += slope[i] * (v[i] + centre)  # (1)
            if len(grad):
                grad[row[i]] = weight[q] * slope[i]
            if len(curv):
                curv[row[i]] = weight[q] * (c[0] if limit > 0 else c[0] - c[-1])
        value[q] = weight[q] * total


@kernel
def _references(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, lists, limit, floats, places, weight, value, out
):
    """Write N of (2) and its slope."""
    for q in range(lo, hi):
        value[q] = 0.0
        out[indptr[q] : indptr[q + 1]] = 0.0
        at = slice(lists.begin[q], lists.begin[q + 1])
        if weight[q] == 0.0 or lists.begin[q] == lists.begin[q + 1]:
            continue
        row, v, cref = lists.row[at], floats[0, at], floats[1, at]
        v[:] = s[row]
        ranked = sorted_places(lists.begin[q], lists.begin[q + 1], floats[0], places)
        reference(q, limit, lists, ranked, v, places[2, at], cref)
        for i in range(len(row)):
            out[row[i]] = weight[q] * cref[i]
            value[q] += weight[q] * cref[i] * v[i]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PositionSVM:
    """A convex bound on what a ranking measure loses, tight where documents are in order.

    Parameters
    ----------
    metric : str
        The measure: ndcg, dcg, p, wta, eru or another sum over ranks, or mrr; with a cut-off as in
        ``ndcg@10``, under the standard convention. ``wta(modified=true)`` is the paper's mWTA.
    decay : float, "log", "loglog" or "metric"
        Weights by rank: (i + 1)^-decay; slower with the names; "metric" takes the measure's own.
    ties : "score", "mean" or "file"
        Which order of equal grades is aimed at: that of the scores, all on average, or the rows'.
    per_group : int or None
        At most so many documents of each group (host, topic) in the ranks that count.
    cost : callable or None
        ``cost(grades)``, grades best first, gives the cost of each document at each rank, in place
        of a measure.
    """

    metric: str = "ndcg@10"
    decay: float | str = 1.0
    ties: str = "mean"
    per_group: int | None = None
    cost: Callable[[F64], Any] | None = None

    @property
    def traits(self) -> Traits:
        """What the loss can do with these parameters."""
        by_score = self.ties == "score"
        return Traits(
            family="listwise",
            smooth=False,
            convex=not by_score,
            curvature=True,
            difference=by_score,
        )

    def bind(self, data: RankingData, *, n_threads: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        self._check()
        row = np.flatnonzero(document_weight(data) > 0.0)
        query = data.query_of_row()[row]
        row = row[np.lexsort((-data.y[row], query))]
        lists = self._lists(_in_layout(data, row), row)
        return _Bound(lists, data, ties=self.ties, limit=self.per_group or 0, n_threads=n_threads)

    def _check(self) -> None:
        if self.ties not in TIES:
            raise UsageError(f"ties must be score, mean or file, not '{self.ties}'.")
        if self.per_group is not None and self.per_group < 1:
            raise UsageError(f"per_group must be 1 or more, not {self.per_group}.")
        if self.per_group is not None and self.cost is not None:
            raise UsageError("per_group and cost do not go together; give one of them.")
        rank_decay(self.decay, 1, np.ones(1))

    def _lists(self, data: RankingData, row: I64) -> Lists:
        """Lay out ``data``, whose documents are sorted by grade."""
        begin, n = data.indptr, int(data.sizes.max(initial=0))
        if self.cost is not None:
            return _with_costs(self.cost, rank_decay(self.decay, n, np.ones(n)), data, row)
        mrr, weights, b, cut = self._measure(data)
        a = by_rank(weights, begin, cut)
        block, _ = numbers_of_runs(data.y, begin)
        kind, gain_begin = numbers_of_runs(b, begin)
        c = by_rank(rank_decay(self.decay, n, weights), begin)
        best = _sums(a * b, begin)
        if mrr:
            method, best = np.full(data.n_queries, FIRST), _sums(b, begin).clip(0.0, 1.0)
        elif self.per_group is not None:
            method = np.full(data.n_queries, GROUPS if self.per_group == 1 else BENCHES)
        elif self.decay == "metric":
            method, c = np.full(data.n_queries, SORT), a
        else:
            method = classes_or_assignment(kind, begin, cut)
        group, n_groups = _groups(data, self.per_group)
        if self.per_group is not None:
            best = _best_in_groups(self.per_group, a, b, group, begin, cut)
        first = np.append(True, np.diff(kind) != 0) if len(kind) else np.empty(0, bool)
        first[begin[:-1][data.sizes > 0]] = True
        return Lists(
            begin=begin,
            cut=cut,
            best=best,
            method=method,
            gain_begin=gain_begin,
            n_groups=n_groups,
            cost_begin=np.zeros(data.n_queries + 1, np.int64),
            row=row,
            block=block,
            kind=kind,
            group=group,
            b=b,
            a=a,
            c=c,
            gain=b[first],
            cost=np.empty(0),
        )

    def _measure(self, data: RankingData) -> tuple[bool, F64, F64, I64]:
        """Return whether it is a reciprocal rank, weights by rank, gains, and ranks that count."""
        measure = metric(self.metric)
        form = measure.swap_form(data) if hasattr(measure, "swap_form") else None
        if form is None or form.kind not in (LINEAR_SWAP, MRR_SWAP):
            raise IncompatibleError(
                f"position_svm needs a measure that is a sum over ranks; '{self.metric}' is none. "
                "Use ndcg, dcg, p, wta, eru or mrr."
            )
        mrr = form.kind == MRR_SWAP
        n = int(data.sizes.max(initial=0))
        weights = rank_weights("reciprocal", n) if mrr else form.weight
        scale, cut = form.scale, np.minimum(form.cut, data.sizes)
        if self.per_group is not None:
            if mrr or self.decay == "metric":
                raise IncompatibleError("per_group goes with sums over ranks and a decay by rank.")
            limited: Any = replace(measure, max_per_group=self.per_group)
            judged = limited.judge(data)
            found, divisor = form.scale > 0.0, limited.scale(judged)
            scale = np.where(found, 1.0 / np.where(found, divisor, 1.0), 0.0)
            cut = np.minimum(limited.cut(judged), judged.sizes)
        return mrr, weights, form.gain * np.repeat(scale, data.sizes), cut.astype(np.int64)


class _Bound(KernelLoss):
    """The loss on one data set; `convex_part` and `lean` are M and N of (2)."""

    def __init__(
        self, lists: Lists, data: RankingData, *, ties: str, limit: int, n_threads: int | None
    ) -> None:
        n = len(lists.row)
        self._lists, self._limit, self._by_score = lists, limit, ties == "score"
        self._floats, self._places = np.empty((2, n)), np.empty((3, n), np.int64)
        crefs = np.zeros(n)
        room = scratch_of_classes(lists)
        buffers = (self._floats, self._places)
        args = (lists, self._by_score, limit, *room, crefs, *buffers)
        super().__init__(_queries, data, *args, curvature=True, n_threads=n_threads)
        self._convex: KernelLoss = self
        if self._by_score:
            of_none = (lists, False, limit, *room, np.zeros(n), *buffers)
            self._convex = KernelLoss(_queries, data, *of_none, n_threads=n_threads)
        else:
            s, out = np.zeros(data.n_documents), np.empty(data.n_documents)
            if ties == "file":
                s[lists.row] = -np.arange(n, dtype=np.float64)
            weight, self._weight = self._weight, np.ones(data.n_queries)
            self.lean(s, out)
            self._weight = weight
            crefs[:] = out[lists.row]

    def convex_part(self, s: F64, out: F64) -> float:
        """Write the slope of M to ``out`` and return M; the loss itself where it is convex."""
        return self._convex.grad(s, out)

    def lean(self, s: F64, out: F64) -> float:
        """Write the slope of N to ``out`` and return N: the loss is M - N."""
        args = (self._lists, self._limit, self._floats, self._places, self._weight)
        map_ranges(
            _references,
            self._ranges,
            *(self._indptr, s, *args, self._per_query, out),
            n_threads=self._n_threads,
        )
        return ordered_sum(self._per_query)


def rank_decay(decay: float | str, n: int, own: F64) -> F64:
    """Return c of ranks 1 to n; ``own`` are the measure's weights."""
    rank = np.arange(1.0, n + 1.0)
    if decay == "metric":
        return own
    if decay == "log":
        return 1.0 / np.log(rank + 2.0)
    if decay == "loglog":
        return 1.0 / np.log(np.log(rank + 2.0))
    if isinstance(decay, str) or not 0.0 < decay < np.inf:
        raise UsageError(f"decay must be a number above 0, log, loglog or metric, not {decay!r}.")
    powers: F64 = (rank + 1.0) ** -float(decay)
    return powers


def _in_layout(data: RankingData, row: I64) -> RankingData:
    """Return the documents ``row`` without their features."""
    begin = np.searchsorted(data.query_of_row()[row], np.arange(data.n_queries + 1))
    group = None if data.group is None else data.group[row]
    X = np.zeros((len(row), 1))
    return RankingData(X, data.y[row], begin.astype(np.int64), data.qid, group=group)


def _sums(values: F64, begin: I64) -> F64:
    query = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    return np.bincount(query, values, len(begin) - 1).astype(np.float64)


def _groups(data: RankingData, per_group: int | None) -> tuple[I64, I64]:
    """Return groups numbered from 0 in each query, and how many it has."""
    if per_group is None:
        return np.zeros(data.n_documents, np.int64), np.zeros(data.n_queries, np.int64)
    codes, group = data.group_codes(), np.empty(data.n_documents, np.int64)
    n_groups = np.zeros(data.n_queries, np.int64)
    for q in range(data.n_queries):
        at = slice(data.indptr[q], data.indptr[q + 1])
        names, group[at] = np.unique(codes[at], return_inverse=True)
        n_groups[q] = len(names)
    return group, n_groups


def _best_in_groups(limit: int, a: F64, b: F64, group: I64, begin: I64, cut: I64) -> F64:
    """Return the measure of the best order with at most ``limit`` documents of a group."""
    best = np.zeros(len(begin) - 1)
    for q in range(len(best)):
        seats: dict[int, int] = {}
        rank = 0
        for i in range(begin[q], begin[q + 1]):
            taken = seats.get(int(group[i]), 0)
            if taken < limit and rank < cut[q]:
                seats[int(group[i])] = taken + 1
                best[q] += a[begin[q] + rank] * b[i]
                rank += 1
    return best


def _with_costs(cost: Callable[[F64], Any], decay: F64, data: RankingData, row: I64) -> Lists:
    """Lay out queries whose orders cost what ``cost`` says; b holds c of the cheapest order."""
    begin, sizes = data.indptr, data.sizes
    own, best, new = np.empty(len(row)), np.zeros(data.n_queries), np.ones(len(row), bool)
    costs = [np.empty(0)]
    for q in range(data.n_queries):
        at, n = slice(begin[q], begin[q + 1]), int(sizes[q])
        C = _costs(cost, data, q)
        rank = least_cost(C)
        best[q] = -C[np.arange(n), rank].sum()
        # Documents of one grade are tied where they cost the same at every rank.
        new[at][1:] = (np.diff(data.y[at]) != 0) | (np.diff(C, axis=0) != 0).any(axis=1)
        for tied in np.split(np.arange(n), np.flatnonzero(new[at])[1:]):
            own[at][tied] = decay[np.sort(rank[tied])]
        costs.append(C.ravel())
    block, _ = numbers_of_runs(np.cumsum(new).astype(np.float64), begin)
    none = np.zeros(data.n_queries, np.int64)
    return Lists(
        begin=begin,
        cut=sizes.astype(np.int64),
        best=best,
        method=np.full(data.n_queries, COST),
        gain_begin=np.append(none, 0),
        n_groups=none,
        cost_begin=np.append(0, np.cumsum(sizes**2)).astype(np.int64),
        row=row,
        block=block,
        kind=block,
        group=np.zeros(len(row), np.int64),
        b=own,
        a=np.zeros(len(row)),
        c=by_rank(decay, begin),
        gain=np.empty(0),
        cost=np.concatenate(costs),
    )


def _costs(cost: Callable[[F64], Any], data: RankingData, q: int) -> F64:
    y = data.y[data.indptr[q] : data.indptr[q + 1]].copy()
    C = np.ascontiguousarray(cost(y), np.float64) if len(y) else np.zeros((0, 0))
    if C.shape != (len(y), len(y)) or not np.isfinite(C).all():
        raise UsageError(
            f"cost must give a finite number for each document and rank: query {data.qid[q]} "
            f"needs a matrix of {len(y)} x {len(y)}, not of shape {C.shape}."
        )
    return C
