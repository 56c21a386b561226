"""Queries laid out for losses over orders: gains, weights by rank and the reference order.

The reference order has the documents by falling grade. **Place** j of a query is the j-th one of
this order; without limits and costs it is rank j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import in_order_of
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.assignment import by_assignment
from rankwright.losses.gain_lists import form_over_ranks
from rankwright.losses.position_orders import (
    mean_over_equals,
    mean_within_groups,
    prefers_classes,
    sorted_documents,
)
from rankwright.losses.topic_search import best_order, most_documents
from rankwright.metrics.base import AnyMetric, metric
from rankwright.metrics.ranked import rank_weights
from rankwright.metrics.swap import MRR_SWAP, SwapForm

SORT, FIRST, CLASSES, ASSIGN = range(4)


class Lists(NamedTuple):
    """The queries of a data set, for kernels."""

    by_score: bool  # whether documents of equal grade are in order of score in the reference
    method: I64  # of each query: SORT, FIRST, CLASSES or ASSIGN, without limits and costs
    cut: I64  # of each query: number of ranks that count
    best: F64  # of each query: metric of the reference order
    a: F64  # of each rank of each query: weight in the metric, 0 beyond the cut-off
    c: F64  # of each rank of each query
    c_best: F64  # c of each place of the reference order
    gain: F64  # of each document: b
    kind: I64  # of each document: number of its gain and group, by rising gain
    block: I64  # of each document: number of its grade, by falling grade
    cref: F64  # of each document, if it does not depend on the scores


class Groups(NamedTuple):
    """Groups of documents, for ``per_group``."""

    limit: int
    group: I64  # of each document


class Topics(NamedTuple):
    """Overlapping topics of documents, for ``per_group``."""

    limit: int
    shares: F64  # of each document in each topic
    position: I64  # of each document: rank in the worst order, or -1


class Costs(NamedTuple):
    """Costs of documents at ranks, for ``cost``."""

    begin: I64  # of each query: where its matrix begins
    matrix: F64


Terms = tuple[Lists, Groups | None, Topics | None, Costs | None]

# --- kernels ---------------------------------------------------------------------------------


@kernel
def write_reference(lo, hi, cut, order, s, lists, groups, out):
    """Write c of each document in the reference order; ``order`` has the documents by score."""
    block = lists.block[lo:hi]
    by_grade = in_order_of(block, order)
    if groups is not None:
        group, c = groups.group[lo:hi], lists.c[lo:hi]
        mean_within_groups(by_grade, s, block, group, groups.limit, cut, c, out)
    else:
        mean_over_equals(by_grade, s, block, lists.c_best[lo:hi], out)


@kernel
def references(queries, indptr, s, lists, groups, _topics, _costs, value, grad, _curv):
    """Write N of `position_svm` (2) and its gradient."""
    for q in queries:
        lo, hi = indptr[q], indptr[q + 1]
        order = sorted_documents(s[lo:hi], lists.kind[lo:hi])
        write_reference(lo, hi, lists.cut[q], order, s[lo:hi], lists, groups, grad[lo:hi])
        for i in range(lo, hi):
            value[q] += grad[i] * s[i]


# --- layout ----------------------------------------------------------------------------------


def lists_of_metric(
    name: AnyMetric, decay: float | str, per_group: int | None, data: RankingData
) -> Terms:
    """Return the queries with the gains and weights of a metric."""
    form = form_over_ranks("position_svm", name, data, mrr=True)
    mrr, longest = form.kind == MRR_SWAP, int(data.sizes.max(initial=0))
    weights = rank_weights("reciprocal", longest) if mrr else form.weight
    gain = form.gain * np.repeat(form.scale, data.sizes)
    cut = np.minimum(form.cut, data.sizes).astype(np.int64)
    lists = _lists(data, rank_decay(decay, longest, weights), gain)._replace(cut=cut)
    groups = None
    if per_group is not None:
        if mrr or decay == "metric":
            raise IncompatibleError(
                "per_group works with sums over ranks and a decay by rank only."
            )
        if data.group is not None and data.group.ndim == 2:
            return _with_topics(lists, name, int(per_group), weights, data)
        lists, groups = _with_groups(lists, name, int(per_group), form, data)
    a = _by_rank(weights, data, lists.cut)
    lists = lists._replace(a=a)
    if mrr:
        method = np.full(data.n_queries, FIRST)
        lists = lists._replace(method=method, best=_sums(gain, data).clip(0.0, 1.0))
        return lists, None, None, None
    if decay == "metric":
        lists = lists._replace(method=np.full(data.n_queries, SORT), c=a, c_best=a)
    elif groups is None:
        for q in np.flatnonzero(data.sizes):
            sizes = np.bincount(lists.kind[data.indptr[q] : data.indptr[q + 1]])
            lists.method[q] = CLASSES if prefers_classes(sizes, int(cut[q])) else ASSIGN
    by_metric = lists._replace(c=a, c_best=a), groups, None, None
    a_best = reference_weights(np.zeros(data.n_documents), data, by_metric)
    return lists._replace(best=_sums(a_best * lists.gain, data)), groups, None, None


def _with_groups(
    lists: Lists, name: AnyMetric, limit: int, form: SwapForm, data: RankingData
) -> tuple[Lists, Groups]:
    """Return the queries with at most ``limit`` documents of each group in the ranks that count."""
    limited: Any = replace(metric(name), max_per_group=limit)
    judged = limited.judge(data)
    divisor = np.where(form.scale > 0.0, limited.scale(judged), np.inf)
    gain = form.gain * np.repeat(1.0 / divisor, data.sizes)
    cut = np.minimum(limited.cut(judged), judged.sizes).astype(np.int64)
    group = _numbers(data, data.group_codes())
    lists = lists._replace(cut=cut, gain=gain, kind=_numbers(data, gain, group))
    return lists, Groups(limit, group)


def _with_topics(
    lists: Lists, name: AnyMetric, limit: int, weights: F64, data: RankingData
) -> Terms:
    """Return the queries with a weight of at most ``limit`` of each topic in the ranks that count.

    The reference is the best order by `best_order`.
    """
    all_shares = np.asarray(data.group_shares(), np.float64)
    lists = lists._replace(
        c_best=np.zeros(data.n_documents),
        kind=_numbers(data, lists.gain, *all_shares.T),
        block=_numbers(data, -data.y, *all_shares.T),
    )
    for q in np.flatnonzero(data.sizes):
        at = slice(data.indptr[q], data.indptr[q + 1])
        _, first, sizes = np.unique(lists.block[at], return_index=True, return_counts=True)
        shares, gain = all_shares[at][first], lists.gain[at][first]
        top = most_documents(sizes, shares, limit, int(lists.cut[q]))
        order = best_order(np.outer(gain, weights[:top]), sizes, shares, limit)
        place = np.append(0, np.cumsum(sizes))
        for rank, k in enumerate(order):
            lists.c_best[at][place[k]] = lists.c[at][rank]
            place[k] += 1
        lists.cut[q], lists.best[q] = top, gain[order] @ weights[:top]
    judge: Any = metric(name)
    if any(getattr(judge, flag, judge.key == "ndcg") for flag in ("normalised", "modified")):
        scale = 1.0 / np.where(lists.best > 0.0, lists.best, np.inf)  # over the best order's
        gain = lists.gain * np.repeat(scale, data.sizes)
        lists = lists._replace(gain=gain, best=lists.best * scale)
    lists = lists._replace(a=_by_rank(weights, data, lists.cut))
    return lists, None, Topics(limit, all_shares, np.empty(data.n_documents, np.int64)), None


def lists_with_costs(cost: Callable[[F64], Any], decay: float | str, data: RankingData) -> Terms:
    """Return the queries with the costs of their documents at each rank."""
    weights = rank_decay(decay, int(data.sizes.max(initial=0)), np.ones(data.n_documents))
    lists = _lists(data, weights, np.zeros(data.n_documents))
    lists = lists._replace(c_best=lists.c.copy())
    matrices = [np.empty(0)]
    for q in np.flatnonzero(data.sizes):
        at, n = slice(data.indptr[q], data.indptr[q + 1]), int(data.sizes[q])
        by_grade = np.argsort(-data.y[at], kind="stable")
        grades = data.y[at][by_grade]
        costs = np.ascontiguousarray(cost(grades.copy()), np.float64)
        if costs.shape != (n, n) or not np.isfinite(costs).all():
            raise UsageError(
                f"cost must give a finite number for each document and rank: query {data.qid[q]} "
                f"needs a matrix of {n} x {n}, not of shape {costs.shape}."
            )
        rank = by_assignment(costs, np.zeros(n))
        lists.best[q] = -costs[np.arange(n), rank].sum()
        # Documents of one grade are tied if they cost the same at every rank.
        differ = (np.diff(grades) != 0) | (np.diff(costs, axis=0) != 0).any(axis=1)
        block = np.append(0, np.cumsum(differ))
        lists.c_best[at] = weights[rank[np.lexsort((rank, block))]]
        lists.block[at][by_grade] = block
        matrices.append(costs[np.argsort(by_grade)].ravel())
    begin = np.append(0, np.cumsum(data.sizes**2)).astype(np.int64)
    return lists._replace(kind=lists.block), None, None, Costs(begin, np.concatenate(matrices))


def reference_weights(s: F64, data: RankingData, terms: Terms) -> F64:
    """Return c of each document in the reference order, documents of equal grade by score."""
    out, value = np.zeros(data.n_documents), np.empty(data.n_queries)
    references(np.flatnonzero(data.sizes), data.indptr, s, *terms, value, out, out)
    return out


def rank_decay(decay: float | str, n: int, weights: F64) -> F64:
    """Return c of ranks 1 to n; ``weights`` are those of the metric."""
    rank = np.arange(1.0, n + 1.0)
    if decay == "metric":
        return weights
    if decay == "log":
        return 1.0 / np.log(rank + 2.0)
    if decay == "loglog":
        return 1.0 / np.log(np.log(rank + 2.0))
    powers: F64 = (rank + 1.0) ** -float(decay)
    return powers


def _lists(data: RankingData, decay: F64, gain: F64) -> Lists:
    """Return queries with these weights by rank and gains, without a metric."""
    c = _by_rank(decay, data)
    return Lists(
        by_score=False,
        method=np.full(data.n_queries, ASSIGN),
        cut=data.sizes.astype(np.int64),
        best=np.zeros(data.n_queries),
        a=np.zeros(data.n_documents),
        c=c,
        c_best=c,
        gain=gain,
        kind=_numbers(data, gain),
        block=_numbers(data, -data.y),
        cref=np.zeros(data.n_documents),
    )


def _by_rank(table: F64, data: RankingData, cut: I64 | None = None) -> F64:
    """Return ``table`` for the ranks of each query, and 0 beyond ``cut``."""
    rank = np.arange(data.n_documents) - np.repeat(data.indptr[:-1], data.sizes)
    values: F64 = table[rank]
    if cut is not None:
        values[rank >= np.repeat(cut, data.sizes)] = 0.0
    return values


def _sums(values: F64, data: RankingData) -> F64:
    """Return the sum of the values of each query."""
    sums: F64 = np.bincount(data.query_of_row(), values, data.n_queries).astype(np.float64)
    return sums


def _numbers(data: RankingData, *columns: Any) -> I64:
    """Return the number of each document's values among those of its query, in rising order."""
    order, query = np.lexsort((*columns[::-1], data.query_of_row())), data.query_of_row()
    differ = np.zeros(data.n_documents, np.int64)
    for column in (query, *columns):
        differ[1:] |= np.diff(column[order]) != 0
    runs = np.cumsum(differ)
    numbers = np.empty(data.n_documents, np.int64)
    numbers[order] = runs
    numbers -= np.repeat(np.append(runs, 0)[data.indptr[:-1]], data.sizes)
    return numbers
