"""Queries laid out for losses over orders: best grade first, with weights by rank beside them.

A **place** is a document's number in this layout: places go query after query, and within a query
from the best grade to the worst, in the order of the rows. Documents of weight 0 have no place.
The document at place j of a query also is the one at rank j of its reference order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.subproblems.position_max import n_states

SORT, CLASSES, FIRST, ASSIGN, COST, GROUPS, BENCHES = range(7)
_MOST_KINDS = 8

# --- kernels ---------------------------------------------------------------------------------


@kernel
def in_grade_order(ranked, block, sequence):  # type: ignore[no-untyped-def]
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
def refer(sequence, s, block, c, out):  # type: ignore[no-untyped-def]
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
def refer_within_groups(sequence, s, block, group, n_groups, limit, top, c, out):  # type: ignore[no-untyped-def]
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
        mean = c[rank:following].sum() / seated if seated else 0.0
        for i in sequence[first:end]:
            out[i] = mean * min(1.0, seats[group[i]] / tied[group[i]])
        for g in range(n_groups):
            seats[g] -= min(tied[g], seats[g])
        rank, first = following, end


@kernel
def _tied(i, j, s, block):  # type: ignore[no-untyped-def]
    return block[i] == block[j] and s[i] == s[j]


# --- API -------------------------------------------------------------------------------------


class Lists(NamedTuple):
    """All lists of one data set, for kernels.

    Of each query, by its number: ``begin`` (where its places begin), ``cut`` (ranks that count),
    ``best`` (the measure of the reference order), ``method`` (how its worst order is found),
    ``gain_begin`` (where its kinds of gain are in ``gain``), ``n_groups`` and ``cost_begin``
    (where its costs are in ``cost``). Of each place: its row, number of grade and of gain, group,
    gain b, and a and c of the rank of the same number.
    """

    begin: I64
    cut: I64
    best: F64
    method: I64
    gain_begin: I64
    n_groups: I64
    cost_begin: I64
    row: I64
    block: I64
    kind: I64
    group: I64
    b: F64
    a: F64
    c: F64
    gain: F64
    cost: F64


def numbers_of_runs(values: F64, begin: I64) -> tuple[I64, I64]:
    """Return numbers from 0 for runs of equal values in each query, and where its runs begin."""
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    new[begin[:-1][np.diff(begin) > 0]] = True
    runs = np.append(0, np.cumsum(new))
    of_query = runs[begin]
    number = runs[1:] - 1 - np.repeat(of_query[:-1], np.diff(begin))
    return number.astype(np.int64), of_query.astype(np.int64)


def by_rank(table: F64, begin: I64, cut: I64 | None = None) -> F64:
    """Return ``table`` for the ranks of each query; 0 beyond ``cut`` where given."""
    sizes = np.diff(begin)
    rank = np.arange(begin[-1]) - np.repeat(begin[:-1], sizes)
    values: F64 = table[rank]
    if cut is not None:
        values[rank >= np.repeat(cut, sizes)] = 0.0
    return values


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


def scratch_of_classes(lists: Lists) -> tuple[int, int]:
    """Return the most states and the most ranks that any query of method CLASSES needs."""
    states, ranks = 1, 0
    for q in np.flatnonzero(lists.method == CLASSES):
        kinds = lists.kind[lists.begin[q] : lists.begin[q + 1]]
        m = min(int(lists.cut[q]), len(kinds))
        states = max(states, int(n_states(np.bincount(kinds), m)[0]))
        ranks = max(ranks, m)
    return states, ranks
