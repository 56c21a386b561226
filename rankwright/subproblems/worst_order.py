"""The worst order and the reference order of one query of `position_lists.Lists`, by its method."""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import NO_KEY, sort_query
from rankwright.subproblems.assignment import (
    assign,
    assign_benches,
    assign_groups,
    fill_costs,
    sorted_prices,
)
from rankwright.subproblems.position_lists import (
    ASSIGN,
    BENCHES,
    CLASSES,
    COST,
    FIRST,
    GROUPS,
    SORT,
    TOPICS,
    Lists,
    in_grade_order,
    refer,
    refer_within_groups,
)
from rankwright.subproblems.position_max import by_classes, by_first_relevant, share
from rankwright.subproblems.topic_search import search_topics

# --- kernels ---------------------------------------------------------------------------------


@kernel
def sorted_places(first, end, scores, places):  # type: ignore[no-untyped-def]
    """Return the documents of a query by score, numbered from 0."""
    sort_query(first, end, scores, NO_KEY, places[0], places[1])
    ranked = places[0, first:end]
    for k in range(len(ranked)):
        ranked[k] -= first
    return ranked


@kernel
def worst_order(  # type: ignore[no-untyped-def]
    q, limit, lists, ranked, v, worth, choice, position, out,
    classes, assigned, sort, first, cost, grouped, topics,
):  # fmt: skip
    """Write c at each document's rank in the worst order; return what the measure loses there.

    ``classes`` to ``topics`` are None for methods that no query uses (`used_methods`): their code
    is left out.
    """
    at = slice(lists.begin[q], lists.begin[q + 1])
    b, a, c, kind = lists.b[at], lists.a[at], lists.c[at], lists.kind[at]
    method, cut = lists.method[q], lists.cut[q]
    if sort is not None and method == SORT:
        return lists.best[q] - _sort_by_lead(v, b, c, position, out)
    if first is not None and method == FIRST:
        place = by_first_relevant(ranked, v, b > 0.0, cut, lists.best[q], c, position)
        level = np.zeros(len(v))
        level[: place - 1], level[place - 1 : min(place, cut)] = 2.0, 1.0
        share(ranked, v, kind, level, c, position, out)
        return lists.best[q] * (1.0 - 1.0 / place if place <= cut else 1.0)
    if cost is not None and method == COST:
        return _costliest(q, lists, ranked, v, position, out) + lists.best[q]
    if grouped is not None and method == GROUPS:
        assign_groups(v, b, lists.group[at], lists.n_groups[q], cut, a, c, position)
        _share_in_groups(ranked, v, kind, lists.group[at], c, position, out)
        return lists.best[q] - _measure(a, b, position)
    if grouped is not None and method == BENCHES:
        assign_benches(v, b, lists.group[at], lists.n_groups[q], limit, cut, a, c, position)
        _share_in_groups(ranked, v, kind, lists.group[at], c, position, out)
        return lists.best[q] - _measure(a, b, position)
    if topics is not None and method == TOPICS:
        _seats(q, lists, ranked, position)
        group, shares = lists.group[at], _topics(q, lists)
        search_topics(ranked, v, b, kind, group, shares, limit, cut, a, c, position)
        _share_in_groups(ranked, v, kind, group, c, position, out)
        return lists.best[q] - _measure(a, b, position)
    if assigned is not None and method == ASSIGN:
        costs = np.empty((len(v), len(v)))
        fill_costs(v, b, a, c, cut, costs)
        _assign(costs, ranked, v, c, position)
    if classes is not None and method == CLASSES:
        gain = lists.gain[lists.gain_begin[q] : lists.gain_begin[q + 1]]
        by_classes(ranked, v, kind, gain, cut, a, c, worth, choice, position)
    share(ranked, v, kind, a, c, position, out)
    return lists.best[q] - _measure(a, b, position)


@kernel
def _seats(q, lists, ranked, position):  # type: ignore[no-untyped-def]
    """Write each document's rank in the reference order, documents of a class by score."""
    at = slice(lists.begin[q], lists.begin[q + 1])
    sequence = np.empty(len(ranked), np.int64)
    in_grade_order(ranked, lists.block[at], sequence)
    for i in range(len(sequence)):
        position[sequence[i]] = lists.seat[lists.begin[q] + i]


@kernel
def _topics(q, lists):  # type: ignore[no-untyped-def]
    """Return the share of each group of a query in its topics."""
    part = lists.topic[lists.topic_begin[q] : lists.topic_begin[q + 1]]
    return part.reshape((lists.n_groups[q], len(part) // lists.n_groups[q]))


@kernel
def _measure(a, b, position):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(b)):
        if position[i] >= 0:
            total += a[position[i]] * b[i]
    return total


@kernel
def _sort_by_lead(v, b, c, position, out):  # type: ignore[no-untyped-def]
    """Order by v - b, where a = c; return the measure."""
    lead = v - b
    ranked, spare = np.empty(len(v), np.int64), np.empty(len(v), np.int64)
    sort_query(0, len(v), lead, NO_KEY, ranked, spare)
    for rank in range(len(v)):
        position[ranked[rank]] = rank
    share(ranked, lead, np.zeros(len(v), np.int64), c, c, position, out)
    return (out * b).sum()


@kernel
def _assign(cost, ranked, v, c, position):  # type: ignore[no-untyped-def]
    prices, row_of = np.empty(len(v)), np.empty(len(v), np.int64)
    sorted_prices(ranked, v, c, prices)
    assign(cost, prices, position, row_of)


@kernel
def _costliest(q, lists, ranked, v, position, out):  # type: ignore[no-untyped-def]
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
def _share_in_groups(ranked, v, kind, group, c, position, out):  # type: ignore[no-untyped-def]
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
def reference(  # type: ignore[no-untyped-def]
    q, limit, lists, ranked, v, sequence, out, cost, grouped, topics
):
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
    if grouped is not None and limit > 0:
        group, top = lists.group[at], lists.cut[q]
        refer_within_groups(sequence, v, block, group, lists.n_groups[q], limit, top, c, out)
        return
    if cost is not None and lists.method[q] == COST:
        refer(sequence, v, block, lists.b[at], out)  # c of this place's rank in the cheapest order
        return
    refer(sequence, v, block, c, out)


# --- API -------------------------------------------------------------------------------------


def used_methods(lists: Lists) -> tuple[bool | None, ...]:
    """Return True for each method that a query of ``lists`` uses, else None, for `worst_order`."""
    used = set(np.unique(lists.method).tolist())
    families = ({CLASSES}, {ASSIGN}, {SORT}, {FIRST}, {COST}, {GROUPS, BENCHES}, {TOPICS})
    return tuple(True if family & used else None for family in families)
