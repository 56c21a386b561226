"""Queries laid out for losses over orders: best grade first, with weights by rank beside them.

A **place** is a document's number in this layout: places go query after query, and within a query
from the best grade to the worst, in the order of the rows. Documents of weight 0 have no place.
The document at place j of a query also is the one at rank j of its reference order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.kernels import copy_values
from rankwright.core.order import NO_KEY, in_order_of, numbers_of_runs, sort_query
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.assignment import (
    assign,
    assign_benches,
    assign_groups,
    fill_costs,
    least_cost,
    sorted_prices,
)
from rankwright.losses.topic_search import best_order, most_documents, search_topics

SORT, CLASSES, FIRST, ASSIGN, COST, GROUPS, BENCHES, TOPICS = range(8)
_MOST_KINDS = 8

# --- kernels ---------------------------------------------------------------------------------


@kernel
def in_grade_order(ranked, block, sequence):
    """Write places grade by grade, within a grade as in ``ranked``; blocks number the grades."""
    following = np.zeros(block[-1] + 2, np.int64)
    for i in range(len(block)):
        following[block[i] + 1] += 1
    for k in range(1, len(following)):
        following[k] += following[k - 1]
    for place in range(len(ranked)):
        k = block[ranked[place]]
        sequence[following[k]] = ranked[place]
        following[k] += 1


@kernel
def refer(sequence, s, block, c, out):
    """Write each document's c in the reference order; equal grade and score share the mean."""
    first = 0
    for end in range(1, len(sequence) + 1):
        if end < len(sequence) and _tied(sequence[end], sequence[first], s, block):
            continue
        mean = 0.0
        for rank in range(first, end):
            mean += c[rank]
        for rank in range(first, end):
            out[sequence[rank]] = mean / (end - first)
        first = end


@kernel
def refer_within_groups(sequence, s, block, group, n_groups, limit, top, c, out):
    """As `refer`, for the best order with at most ``limit`` documents of a group in ``top`` ranks.

    Of tied documents, those of one group share the seats it has left, and all that are seated
    share the ranks that come next.
    """
    seats = np.full(n_groups, limit)
    tied = np.zeros(n_groups, np.int64)
    first = rank = 0
    for end in range(1, len(sequence) + 1):
        if end < len(sequence) and _tied(sequence[end], sequence[first], s, block):
            continue
        tied[:] = 0
        for i in sequence[first:end]:
            tied[group[i]] += 1
        seated = 0
        for g in range(n_groups):
            seated += min(tied[g], seats[g])
        following = min(rank + seated, top)
        mean = 0.0
        for place in range(rank, following):
            mean += c[place]
        mean = mean / seated if seated else 0.0
        for i in sequence[first:end]:
            out[i] = mean * min(1.0, seats[group[i]] / tied[group[i]])
        for g in range(n_groups):
            seats[g] -= min(tied[g], seats[g])
        rank, first = following, end


@inline_kernel
def _tied(i, j, s, block):
    return block[i] == block[j] and s[i] == s[j]


# --- API -------------------------------------------------------------------------------------


class Lists(NamedTuple):
    """All lists of one data set, for kernels.

    Of each query, by its number: ``begin`` (where its places begin), ``cut`` (ranks that count),
    ``best`` (the metric of the reference order), ``method`` (how its worst order is found),
    ``gain_begin`` (where its kinds of gain are in ``gain``), ``n_groups``, ``topic_begin`` (where
    the shares of its groups in topics are in ``topic``) and ``cost_begin`` (where its costs are in
    ``cost``). Of each place: its row, number of grade and of gain, group, its seat (rank in the
    reference order under topics, -1: none), gain b, and a and c of the rank of the same number.
    ``limit`` is how many documents of a group or topic may count, 0: any number.
    """

    limit: int
    begin: I64
    cut: I64
    best: F64
    method: I64
    gain_begin: I64
    n_groups: I64
    topic_begin: I64
    cost_begin: I64
    row: I64
    block: I64
    kind: I64
    group: I64
    seat: I64
    b: F64
    a: F64
    c: F64
    gain: F64
    cost: F64
    topic: F64


def by_rank(table: F64, begin: I64, cut: I64 | None = None) -> F64:
    """Return ``table`` for the ranks of each query; 0 beyond ``cut`` where given."""
    sizes = np.diff(begin)
    rank = np.arange(begin[-1]) - np.repeat(begin[:-1], sizes)
    values: F64 = table[rank]
    if cut is not None:
        values[rank >= np.repeat(cut, sizes)] = 0.0
    return values


def sums_of_queries(values: F64, begin: I64) -> F64:
    """Return the sum of the values of each query."""
    query = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    return np.bincount(query, values, len(begin) - 1).astype(np.float64)


def groups_of_queries(data: RankingData) -> tuple[I64, I64]:
    """Return groups numbered from 0 in each query, and how many it has."""
    codes, group = data.group_codes(), np.empty(data.n_documents, np.int64)
    n_groups = np.zeros(data.n_queries, np.int64)
    for q in range(data.n_queries):
        at = slice(data.indptr[q], data.indptr[q + 1])
        names, group[at] = np.unique(codes[at], return_inverse=True)
        n_groups[q] = len(names)
    return group, n_groups


def best_within_groups(limit: int, a: F64, b: F64, group: I64, begin: I64, cut: I64) -> F64:
    """Return the metric of the best order with at most ``limit`` documents of a group."""
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


class Topics(NamedTuple):
    """Overlapping topics of the queries of a layout, and the best order within their limits.

    Groups are documents of the same shares in all topics; ``begin`` and ``share`` are
    ``topic_begin`` and ``topic`` of `Lists`, ``best`` is the sum of a times gain of that order.
    """

    group: I64
    n_groups: I64
    begin: I64
    share: F64
    cut: I64
    seat: I64
    block: I64
    best: F64


def topics_of_queries(limit: int, weights: F64, gain: F64, data: RankingData, cut: I64) -> Topics:
    """Lay out topics; ``gain`` is that of each place, and places of a grade go by their topics."""
    begin, Q = data.indptr, data.n_queries
    shares = np.asarray(data.group_shares(), np.float64)
    group, seat = np.zeros(len(gain), np.int64), np.full(len(gain), -1)
    n_groups, cuts, best = np.zeros(Q, np.int64), np.zeros(Q, np.int64), np.zeros(Q)
    held, new = [np.empty(0)], np.ones(len(gain), bool)
    for q in range(Q):
        at = slice(begin[q], begin[q + 1])
        if begin[q] == begin[q + 1]:
            continue
        own = shares[at][:, shares[at].any(axis=0)]
        rows, inverse = np.unique(own, axis=0, return_inverse=True)
        group[at] = inverse.ravel()  # NumPy 2.0 makes a column of it
        n_groups[q] = len(rows)
        held.append(rows.ravel())
        cuts[q] = most_documents(np.bincount(group[at]), rows, limit, int(cut[q]))
        new[at][1:] = (np.diff(data.y[at]) != 0) | (np.diff(group[at]) != 0)
        first = np.flatnonzero(new[at])
        sizes = np.diff(np.append(first, len(own)))
        a, b = weights[: cuts[q]], gain[at]
        order = best_order(b[first], sizes, own[first], limit, a)
        for rank, k in enumerate(order):
            place = begin[q] + first[k] + int((order[:rank] == k).sum())
            seat[place] = rank
            best[q] += a[rank] * gain[place]
    block, _ = numbers_of_runs(np.cumsum(new).astype(np.float64), begin)
    size = np.array([len(part) for part in held[1:]], np.int64)
    ends = np.zeros(Q, np.int64)
    ends[np.diff(begin) > 0] = size
    at_topic = np.append(0, np.cumsum(ends)).astype(np.int64)
    return Topics(group, n_groups, at_topic, np.concatenate(held), cuts, seat, block, best)


def lists_with_costs(cost: Callable[[F64], Any], decay: F64, data: RankingData, row: I64) -> Lists:
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
        limit=0,
        begin=begin,
        cut=sizes.astype(np.int64),
        best=best,
        method=np.full(data.n_queries, COST),
        gain_begin=np.append(none, 0),
        n_groups=none,
        topic_begin=np.append(none, 0),
        cost_begin=np.append(0, np.cumsum(sizes**2)).astype(np.int64),
        row=row,
        block=block,
        kind=block,
        group=np.zeros(len(row), np.int64),
        seat=np.empty(0, np.int64),
        b=own,
        a=np.zeros(len(row)),
        c=by_rank(decay, begin),
        gain=np.empty(0),
        cost=np.concatenate(costs),
        topic=np.empty(0),
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


def classes_or_assignment(kind: I64, begin: I64, cut: I64) -> I64:
    """Return for each query which of the two finds its worst order sooner."""
    method = np.full(len(begin) - 1, ASSIGN)
    for q in range(len(begin) - 1):
        kinds = kind[begin[q] : begin[q + 1]]
        if len(kinds) and kinds[-1] < _MOST_KINDS:
            n = len(kinds)
            steps = n_states(np.bincount(kinds), min(int(cut[q]), n))[1]
            if steps <= 7 * n * n + 500:  # about where both take as long
                method[q] = CLASSES
    return method


class OrderWorkspace(NamedTuple):
    """Scratch of `worst_order` for queries of method CLASSES."""

    worth: F64
    choice: NDArray[np.int8]


def size_of_workspace(lists: Lists) -> tuple[int, int]:
    """Return the most states and the most ranks that any query of method CLASSES needs."""
    states, ranks = 1, 0
    for q in np.flatnonzero(lists.method == CLASSES):
        kinds = lists.kind[lists.begin[q] : lists.begin[q + 1]]
        m = min(int(lists.cut[q]), len(kinds))
        states = max(states, int(n_states(np.bincount(kinds), m)[0]))
        ranks = max(ranks, m)
    return states, ranks


# --- worst and reference order of a query, by its method -------------------------------------


@kernel
def sorted_places(first, end, scores, places):
    """Return the documents of a query by score, numbered from 0."""
    sort_query(first, end, scores, NO_KEY, places[0], places[1])
    ranked = places[0, first:end]
    for k in range(len(ranked)):
        ranked[k] -= first
    return ranked


@kernel
def worst_order(
    q, lists, ranked, v, workspace, position, out,
    classes, assigned, sort, first, cost, grouped, topics,
):  # fmt: skip
    """Write c at each document's rank in the worst order; return what the metric loses there.

    ``classes`` to ``topics`` are the `Methods`, each an argument: where one is None, Numba leaves
    out its code.
    """
    limit = lists.limit
    at = slice(lists.begin[q], lists.begin[q + 1])
    b, a, c, kind = lists.b[at], lists.a[at], lists.c[at], lists.kind[at]
    method, cut = lists.method[q], lists.cut[q]
    if sort is not None and method == SORT:
        return lists.best[q] - _sort_by_lead(v, b, c, position, out)
    if first is not None and method == FIRST:
        place = by_first_relevant(ranked, v, b, cut, lists.best[q], c, position)
        level = np.zeros(len(v))
        level[: place - 1], level[place - 1 : min(place, cut)] = 2.0, 1.0
        share(ranked, v, kind, level, c, position, out)
        return lists.best[q] * (1.0 - 1.0 / place if place <= cut else 1.0)
    if cost is not None and method == COST:
        return _costliest(q, lists, ranked, v, position, out) + lists.best[q]
    if grouped is not None and method == GROUPS:
        assign_groups(v, b, lists.group[at], lists.n_groups[q], cut, a, c, position)
        _share_in_groups(ranked, v, kind, lists.group[at], c, position, out)
        return lists.best[q] - _metric(a, b, position)
    if grouped is not None and method == BENCHES:
        assign_benches(v, b, lists.group[at], lists.n_groups[q], limit, cut, a, c, position)
        _share_in_groups(ranked, v, kind, lists.group[at], c, position, out)
        return lists.best[q] - _metric(a, b, position)
    if topics is not None and method == TOPICS:
        _seats(q, lists, ranked, position)
        group, shares = lists.group[at], _topics(q, lists)
        search_topics(ranked, v, b, kind, group, shares, limit, cut, a, c, position)
        _share_in_groups(ranked, v, kind, group, c, position, out)
        return lists.best[q] - _metric(a, b, position)
    if assigned is not None and method == ASSIGN:
        costs = np.empty((len(v), len(v)))
        fill_costs(v, b, a, c, cut, costs)
        _assign(costs, ranked, v, c, position)
    if classes is not None and method == CLASSES:
        gain = lists.gain[lists.gain_begin[q] : lists.gain_begin[q + 1]]
        by_classes(ranked, v, kind, gain, cut, a, c, workspace.worth, workspace.choice, position)
    share(ranked, v, kind, a, c, position, out)
    return lists.best[q] - _metric(a, b, position)


@kernel
def _seats(q, lists, ranked, position):
    """Write each document's rank in the reference order, documents of a class by score."""
    at = slice(lists.begin[q], lists.begin[q + 1])
    sequence = np.empty(len(ranked), np.int64)
    in_grade_order(ranked, lists.block[at], sequence)
    for i in range(len(sequence)):
        position[sequence[i]] = lists.seat[lists.begin[q] + i]


@kernel
def _topics(q, lists):
    """Return the share of each group of a query in its topics."""
    part = lists.topic[lists.topic_begin[q] : lists.topic_begin[q + 1]]
    return part.reshape((lists.n_groups[q], len(part) // lists.n_groups[q]))


@kernel
def _metric(a, b, position):
    total = 0.0
    for i in range(len(b)):
        if position[i] >= 0:
            total += a[position[i]] * b[i]
    return total


@kernel
def _sort_by_lead(v, b, c, position, out):
    """Order by v - b, where a = c; return the metric."""
    lead = np.empty(len(v))
    for i in range(len(v)):
        lead[i] = v[i] - b[i]
    ranked, spare = np.empty(len(v), np.int64), np.empty(len(v), np.int64)
    sort_query(0, len(v), lead, NO_KEY, ranked, spare)
    for rank in range(len(v)):
        position[ranked[rank]] = rank
    share(ranked, lead, np.zeros(len(v), np.int64), c, c, position, out)
    total = 0.0
    for i in range(len(v)):
        total += out[i] * b[i]
    return total


@kernel
def _assign(cost, ranked, v, c, position):
    prices, row_of = np.empty(len(v)), np.empty(len(v), np.int64)
    sorted_prices(ranked, v, c, prices)
    assign(cost, prices, position, row_of)


@kernel
def _costliest(q, lists, ranked, v, position, out):
    """As `worst_order`, for costs of documents at ranks; return the cost."""
    n, c = len(v), lists.c[lists.begin[q] : lists.begin[q + 1]]
    extra = lists.cost[lists.cost_begin[q] : lists.cost_begin[q + 1]].reshape((n, n))
    cost, level = np.empty((n, n)), np.empty(n)
    for i in range(n):
        level[i] = i  # no two ranks are interchangeable
        for rank in range(n):
            cost[i, rank] = -extra[i, rank] - v[i] * c[rank]
    _assign(cost, ranked, v, c, position)
    kind = lists.kind[lists.begin[q] : lists.begin[q + 1]]
    share(ranked, v, kind, level, c, position, out)
    total = 0.0
    for i in range(n):
        total += extra[i, position[i]]
    return total


@kernel
def _share_in_groups(ranked, v, kind, group, c, position, out):
    """Write each document's c, 0 without a rank; equal score, gain and group share the mean."""
    first = 0
    for end in range(1, len(ranked) + 1):
        if end < len(ranked) and v[ranked[end]] == v[ranked[first]]:
            continue
        for i in ranked[first:end]:
            total, alike = 0.0, 0
            for j in ranked[first:end]:
                if kind[i] == kind[j] and group[i] == group[j]:
                    total += c[position[j]] if position[j] >= 0 else 0.0
                    alike += 1
            out[i] = total / alike
        first = end


@kernel
def reference(q, lists, ranked, v, sequence, out, cost, grouped, topics):
    """Write cref of the documents of a query, tied grades in order of v."""
    at = slice(lists.begin[q], lists.begin[q + 1])
    block, c = lists.block[at], lists.c[at]
    in_grade_order(ranked, block, sequence)
    if topics is not None and lists.method[q] == TOPICS:
        seated = np.zeros(len(c))
        for i in range(len(c)):
            seat = lists.seat[lists.begin[q] + i]
            seated[i] = c[seat] if seat >= 0 else 0.0
        refer(sequence, v, block, seated, out)
        return
    if grouped is not None and lists.limit > 0:
        group, n_groups = lists.group[at], lists.n_groups[q]
        refer_within_groups(sequence, v, block, group, n_groups, lists.limit, lists.cut[q], c, out)
        return
    if cost is not None and lists.method[q] == COST:
        refer(sequence, v, block, lists.b[at], out)  # c of this place's rank in the cheapest order
        return
    refer(sequence, v, block, c, out)


class Methods(NamedTuple):
    """True for each method by which the worst order of a query is found, None for the others."""

    classes: bool | None
    assigned: bool | None
    sort: bool | None
    first: bool | None
    cost: bool | None
    grouped: bool | None
    topics: bool | None


def used_methods(lists: Lists) -> Methods:
    """Return the methods that the queries of ``lists`` use."""
    used = set(np.unique(lists.method).tolist())
    families = ({CLASSES}, {ASSIGN}, {SORT}, {FIRST}, {COST}, {GROUPS, BENCHES}, {TOPICS})
    return Methods(*(True if family & used else None for family in families))


# --- worst orders ----------------------------------------------------------------------------
#
# The order of one query that a metric and the scores together make worst for a ranker.
#
# For documents with scores s and gains b, rank weights a (0 beyond rank ``cut``) and c (falling),
#
#     maximise over orders  sum_j c_j s_(j) - a_j b_(j)                                          (1)
#
# where (j) is the document at rank j: the most violated order of DORM (`le2007dorm`, (23)). A
# general solver is `losses.assignment`; here are the forms that need none.
#
# **a = c**: one sort, by s - b.
#
# **Few kinds of gain** (`by_classes`): documents of equal gain stand in order of score, so the
# first m = min(cut, n) ranks hold a prefix of each kind, and which prefixes is found by a dynamic
# programme over their lengths (n_1, ..., n_K), rank by rank:
#
#     V(n_1, ..., n_K) = max over k of V(..., n_k - 1, ...) + c_t s_k(n_k) - a_t b_k,
#     t = n_1 + ... + n_K                                                                        (2)
#
# The other documents follow in order of score. With documents numbered 0, 1, ... by score, g_0 <
# g_1 < ... those in the first m ranks and P_x(r) = sum_{i < r} s_i c_{m + i - x}, what follows is
# worth
#
#     P_m(n) + sum_{x < m} P_x(g_x) - P_{x+1}(g_x + 1)                                           (3)
#
# since a document with x of the g above it stands at rank m + i - x.
#
# **Reciprocal rank** (`by_first_relevant`): the gain depends on the rank f of the first relevant
# document alone. Given f, the f - 1 best irrelevant documents come first, then the best relevant
# one, then the rest, each part in order of score; all f up to the cut-off are tried.
#
# **Ties**: where scores are equal, orders may be equally bad. `share` gives documents their mean c
# over all of these: in a block of equal scores, ranks of equal a are interchangeable, and so are
# documents of equal gain.


@kernel
def by_classes(ranked, s, kind, gain, cut, a, c, worth, choice, position):
    """Write the rank of each document in the order that solves (1), by (2) and (3).

    ``ranked`` lists documents by score, ``kind`` numbers their gains, which are ``gain[kind]``.
    ``worth`` (2, states) and ``choice`` (m + 1, states) are scratch of at least `n_states`.
    """
    m, kinds = min(cut, len(ranked)), len(gain)
    member, size = _members(ranked, kind, kinds, m)
    score = np.empty((kinds, m))
    for k in range(kinds):
        for i in range(min(size[k], m)):
            score[k, i] = s[ranked[member[k, i]]]
    last = 0  # the largest kind is not counted: it has what the others leave
    for k in range(1, kinds):
        last = k if size[k] > size[last] else last
    stride, n_states = np.zeros(kinds, np.int64), 1
    for k in range(kinds):
        if k != last:
            stride[k] = n_states
            n_states *= min(size[k], m) + 1
    worth[0, 0] = 0.0
    for t in range(1, m + 1):
        old, new = worth[(t - 1) % 2], worth[t % 2]
        _extend(t, score, gain, a[t - 1], c[t - 1], size, stride, last, old, new, choice[t])
    count = _best_head(m, _changes(m, ranked, s, c), member, size, stride, last, worth[m % 2])
    _lay_out(m, count, ranked, member, stride, choice, position)


@kernel
def _members(ranked, kind, kinds, m):
    """Return places in ``ranked`` of the first m documents of each kind, and how many it has."""
    member, size = np.empty((kinds, m), np.int64), np.zeros(kinds, np.int64)
    for place in range(len(ranked)):
        k = kind[ranked[place]]
        if size[k] < m:
            member[k, size[k]] = place
        size[k] += 1
    return member, size


@kernel
def _next(count, total, size, stride, last, t, index):
    """Step to the next lengths with a sum up to t; return the sum and index, or -1 at the end."""
    for k in range(len(count)):
        if k == last:
            continue
        if total < t and count[k] < size[k]:
            count[k] += 1
            return total + 1, index + stride[k]
        total -= count[k]
        index -= count[k] * stride[k]
        count[k] = 0
    return -1, 0


@kernel
def _extend(t, score, gain, a, c, size, stride, last, old, new, choice):
    """Fill rank t (from 1) of every state: (2)."""
    count = np.zeros(len(gain), np.int64)
    total, index = 0, 0
    while total >= 0:
        count[last] = t - total
        if count[last] <= size[last]:
            best, taken = -np.inf, 0
            for k in range(len(gain)):
                if count[k] > 0:
                    here = old[index - stride[k]] + c * score[k, count[k] - 1] - a * gain[k]
                    if here > best:
                        best, taken = here, k
            new[index], choice[index] = best, taken
        count[last] = 0
        total, index = _next(count, total, size, stride, last, t, index)


@kernel
def _best_head(m, change, member, size, stride, last, worth):
    """Return the lengths of the prefixes in the first m ranks, what follows counted by (3)."""
    kinds = len(size)
    above = _numbers_above(member, size)
    count, best_count = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
    best = -np.inf
    total, index = 0, 0
    while total >= 0:
        count[last] = m - total
        if count[last] <= size[last]:
            here = worth[index]
            for k in range(kinds):
                for i in range(count[k]):
                    x = 0  # documents of the head above this one
                    for other in range(kinds):
                        x += min(above[k, i, other], count[other])
                    here += change[x, member[k, i]]
            if here > best:
                best = here
                copy_values(count, best_count)
        count[last] = 0
        total, index = _next(count, total, size, stride, last, m, index)
    return best_count


@kernel
def _numbers_above(member, size):
    """Return how many of the listed documents of each kind have a higher score than each."""
    kinds, m = member.shape
    above = np.zeros((kinds, m, kinds), np.int64)
    for k in range(kinds):
        for other in range(kinds):
            x = 0
            for i in range(min(size[k], m)):
                while x < min(size[other], m) and member[other, x] < member[k, i]:
                    x += 1
                above[k, i, other] = x
    return above


@kernel
def _changes(m, ranked, s, c):
    """Return P_x(r) - P_{x+1}(r + 1) of (3) for each x and place r; P_m(n) is common to all."""
    n = len(ranked)
    out = np.empty((m, n))
    sums = np.zeros((2, n + 1))
    for x in range(m + 1):
        now, before = sums[x % 2], sums[(x + 1) % 2]
        for r in range(min(x, n) + 1):
            now[r] = 0.0
        for r in range(x, n):
            rank = m + r - x
            now[r + 1] = now[r] + (s[ranked[r]] * c[rank] if rank < n else 0.0)
        if x > 0:
            for r in range(n):
                out[x - 1, r] = before[r] - now[r + 1]
    return out


@kernel
def _lay_out(m, count, ranked, member, stride, choice, position):
    """Walk back through the choices, then put the other documents behind in order of score."""
    position[:] = -1
    index = 0
    for k in range(len(count)):
        index += count[k] * stride[k]
    for t in range(m, 0, -1):
        k = choice[t, index]
        count[k] -= 1
        index -= stride[k]
        position[ranked[member[k, count[k]]]] = t - 1
    rank = m
    for place in range(len(ranked)):
        if position[ranked[place]] < 0:
            position[ranked[place]] = rank
            rank += 1


@kernel
def by_first_relevant(ranked, s, gain, cut, scale, c, position):
    """Write the order that maximises sum_j c_j s_(j) - scale/f [f <= cut]; return its f.

    Documents with a gain are relevant. f is the rank of the first relevant document, counted from
    1; cut + 1 stands for all beyond.
    """
    n = len(ranked)
    others = 0
    for i in range(n):
        others += not gain[i] > 0.0
    best, best_f = -np.inf, 0
    for f in range(1, min(cut, others) + 2):
        if f > cut + 1 or (f <= cut and f > others + 1):
            break
        _lead_with_others(f, cut, ranked, gain, position)
        here = -scale / f if f <= cut else 0.0
        for i in range(n):
            here += c[position[i]] * s[i]
        if here > best:
            best, best_f = here, f
    _lead_with_others(best_f, cut, ranked, gain, position)
    return best_f


@kernel
def _lead_with_others(f, cut, ranked, gain, position):
    """Put f - 1 irrelevant documents first, then (if f <= cut) a relevant one, then the rest."""
    led, found, rank = 0, f > cut, f if f <= cut else f - 1
    for place in range(len(ranked)):
        i = ranked[place]
        relevant = gain[i] > 0.0
        if not relevant and led < f - 1:
            position[i] = led
            led += 1
        elif relevant and not found:
            position[i] = f - 1
            found = True
        else:
            position[i] = rank
            rank += 1


@kernel
def share(ranked, s, kind, a, c, position, out):
    """Write each document's c, its mean over equally bad orders where scores are equal.

    ``a`` has an entry for each rank: ranks of equal a are interchangeable.
    """
    n = len(ranked)
    first = 0
    while first < n:
        end = first + 1
        while end < n and s[ranked[end]] == s[ranked[first]]:
            end += 1
        if end == first + 1:
            out[ranked[first]] = c[position[ranked[first]]]
        else:
            _share_block(ranked[first:end], kind, a, c, position, out)
        first = end


@kernel
def _share_block(block, kind, a, c, position, out):
    by_rank = in_order_of(position, block)
    first = 0
    for end in range(1, len(by_rank) + 1):  # ranks of equal a
        level = a[position[by_rank[first]]]
        if end < len(by_rank) and a[position[by_rank[end]]] == level:
            continue
        mean = 0.0
        for i in by_rank[first:end]:
            mean += c[position[i]]
        for i in by_rank[first:end]:
            out[i] = mean / (end - first)
        first = end
    by_kind = in_order_of(kind, by_rank)
    first = 0
    for end in range(1, len(by_kind) + 1):  # documents of equal gain
        if end < len(by_kind) and kind[by_kind[end]] == kind[by_kind[first]]:
            continue
        mean = 0.0
        for i in by_kind[first:end]:
            mean += out[i]
        for i in by_kind[first:end]:
            out[i] = mean / (end - first)
        first = end


@kernel
def n_states(size, m):
    """Return how many states `by_classes` has a rank, and how many steps it takes, about."""
    room, largest = 1, 0
    ways, spare = np.zeros(m + 1), np.empty(m + 1)  # of making a sum from lengths: polynomials
    ways[0] = 1.0
    for k in range(len(size)):
        room *= min(size[k], m) + 1
        largest = max(largest, min(size[k], m) + 1)
        for t in range(m + 1):
            spare[t] = 0.0
            for x in range(min(size[k], t) + 1):
                spare[t] += ways[t - x]
        copy_values(spare, ways)
    return room // largest, len(size) * (ways.sum() + m * ways[m])
