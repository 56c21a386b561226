"""The worst order of a query whose documents belong to several topics, each with a limit.

With w_it the share of document i in topic t (0 or 1, or any number from 0), scores s, gains b, and
weights a and c of the ranks,

    maximise over orders of ``top`` documents  sum_j c_j s_(j) - a_j b_(j)
    such that  sum_j w_(j)t <= limit  for every topic t                                         (1)

(`le2007dorm`, end of section 5.1). Where every document has one topic this is an assignment
(`losses.assignment`); with overlapping topics it contains set packing and is NP-hard, so here
ranks are filled by depth-first search with bounds. Of documents with equal gain and topics only the
best score not yet taken is tried, since c falls; each next rank tries the best value first, so the
first order found is the greedy one. A branch is left if its sum so far plus the lesser of

    sum_j max_i (c_j s_i - a_j b_i),      sum_j c_j s_[j] - min_i b_i sum_j a_j                 (2)

over the ranks and documents that are left, s_[j] the best scores in order, is not above the best
order known. The search is **exact** unless it has visited `MOST_NODES` orders; it then returns the
best order found, which obeys the limits and is no worse than the reference order it starts from.

The reference, fixed before any scores are known, is found once for each query by an integer
programme (SciPy's HiGHS): `best_order`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64

MOST_NODES = 20_000
_ROUNDING = 1e-9


class _Search(NamedTuple):
    v: F64  # scores
    b: F64  # gains
    ranked: I64  # documents by score
    kind: I64  # class of each document: its topics and gain
    member: I64  # documents by class, best score first
    place: I64  # of each document: where it is in `member`
    left: I64  # of each class: where its next document is in `member`
    end: I64  # and where they end
    topics: F64  # of each class: its share in each topic
    load: F64  # of each topic: how much is taken
    room: float
    a: F64
    c: F64


# --- kernels ---------------------------------------------------------------------------------


@kernel
def search_topics(ranked, v, b, gain, group, topics, limit, top, a, c, position):
    """Solve (1); ``position`` comes with an order that obeys the limits, and leaves with the best.

    ``gain`` numbers the gains of documents and ``group`` their rows of ``topics``. Returns whether
    the search was finished.
    """
    one = _begin(ranked, v, b, gain, group, topics, limit, a, c)
    best = 0.0
    for i in range(len(v)):
        if position[i] >= 0:
            best += c[position[i]] * v[i] - a[position[i]] * b[i]
    n_kinds = len(one.left)
    options, value = np.empty((top, n_kinds), np.int64), np.zeros(top + 1)
    count, tried = np.zeros(top, np.int64), np.zeros(top, np.int64)
    taken = np.empty(top, np.int64)
    depth, nodes = 0, 0
    count[0] = _options(one, 0, options[0])
    while depth >= 0:
        if tried[depth] >= count[depth]:
            depth -= 1
            if depth >= 0:
                _release(one, taken[depth])
            continue
        k = options[depth, tried[depth]]
        tried[depth] += 1
        i = _take(one, k)
        taken[depth] = i
        value[depth + 1] = value[depth] + c[depth] * v[i] - a[depth] * b[i]
        nodes += 1
        if depth + 1 == top:
            if value[top] > best + _ROUNDING * (1.0 + abs(best)):
                best = value[top]
                position[:] = -1
                for rank in range(top):
                    position[taken[rank]] = rank
            _release(one, i)
            continue
        if nodes >= MOST_NODES:
            return False
        bound = value[depth + 1] + _bound(one, depth + 1, top)
        if bound <= best + _ROUNDING * (1.0 + abs(best)):
            _release(one, i)
            continue
        depth += 1
        tried[depth], count[depth] = 0, _options(one, depth, options[depth])
    return True


@kernel
def _begin(ranked, v, b, gain, group, topics, limit, a, c):
    n, n_gains = len(v), np.max(gain) + 1
    kind = group * n_gains + gain
    n_kinds = topics.shape[0] * n_gains
    begin = np.zeros(n_kinds + 1, np.int64)
    for i in range(n):
        begin[kind[i] + 1] += 1
    begin = np.cumsum(begin)
    member, place, following = np.empty(n, np.int64), np.empty(n, np.int64), begin[:-1].copy()
    for i in ranked:
        member[following[kind[i]]], place[i] = i, following[kind[i]]
        following[kind[i]] += 1
    share = np.empty((n_kinds, topics.shape[1]))
    for k in range(n_kinds):
        share[k] = topics[k // n_gains]
    load = np.zeros(topics.shape[1])
    room = limit + _ROUNDING
    left, end = begin[:-1].copy(), begin[1:].copy()
    return _Search(v, b, ranked, kind, member, place, left, end, share, load, room, a, c)


@kernel
def _fits(one, k):
    """Whether a document of class k is left, and there is room for it."""
    if one.left[k] >= one.end[k]:
        return False
    for t in range(len(one.load)):
        if one.topics[k, t] > 0.0 and one.load[t] + one.topics[k, t] > one.room:
            return False
    return True


@kernel
def _take(one, k):
    i = one.member[one.left[k]]
    one.left[k] += 1
    one.load[:] += one.topics[k]
    return i


@kernel
def _release(one, i):
    one.left[one.kind[i]] -= 1
    one.load[:] -= one.topics[one.kind[i]]


@kernel
def _options(one, rank, options):
    """Write the classes that may stand at ``rank``, the best value first; return how many."""
    count = 0
    for k in range(len(one.left)):
        if not _fits(one, k):
            continue
        here = _value(one, k, rank)
        at = count
        while at > 0 and _value(one, options[at - 1], rank) < here:
            options[at] = options[at - 1]
            at -= 1
        options[at] = k
        count += 1
    return count


@kernel
def _value(one, k, rank):
    i = one.member[one.left[k]]
    return one.c[rank] * one.v[i] - one.a[rank] * one.b[i]


@kernel
def _bound(one, rank, top):
    """Return (2) for the ranks from ``rank`` on; minus infinity where they cannot be filled."""
    by_rank = 0.0
    for j in range(rank, top):
        best = -np.inf
        for k in range(len(one.left)):
            if _fits(one, k):
                best = max(best, _value(one, k, j))
        by_rank += best
    by_score, least, j = 0.0, np.inf, rank
    total_a = one.a[rank:top].sum()
    for i in one.ranked:
        k = one.kind[i]
        if one.place[i] < one.left[k] or not _fits(one, k):  # taken, or without room
            continue
        least = min(least, one.b[i])
        if j < top:
            by_score += one.c[j] * one.v[i]
            j += 1
    if j < top:
        return -np.inf
    return min(by_rank, by_score - least * total_a)


# --- API -------------------------------------------------------------------------------------


def most_documents(sizes: I64, topics: F64, limit: int, cut: int) -> int:
    """Return how many documents, up to ``cut``, the limits leave room for.

    ``sizes`` has the number of documents with each row of ``topics``.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    taken = _solved(
        milp(
            -np.ones(len(sizes)),
            constraints=[
                LinearConstraint(topics.T, ub=np.full(topics.shape[1], float(limit))),
                LinearConstraint(np.ones((1, len(sizes))), ub=float(cut)),
            ],
            integrality=np.ones(len(sizes), np.int64),
            bounds=Bounds(0.0, sizes.astype(np.float64)),
        )
    )
    return int(np.rint(taken).sum())


def best_order(gain: F64, sizes: I64, topics: F64, limit: int, a: F64) -> I64:
    """Return the class at each of the ``len(a)`` ranks that makes the sum of a times gain largest.

    Classes are given by gain, number of documents and row of ``topics``; there must be room for
    that many documents.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    k, top = len(gain), len(a)
    each_rank = np.kron(np.ones((1, k)), np.eye(top))  # x_kj: a document of class k at rank j
    each_class = np.kron(np.eye(k), np.ones((1, top)))
    taken = _solved(
        milp(
            -np.outer(gain, a).ravel(),
            constraints=[
                LinearConstraint(each_rank, lb=1.0, ub=1.0),
                LinearConstraint(each_class, ub=sizes.astype(np.float64)),
                LinearConstraint(topics.T @ each_class, ub=float(limit)),
            ],
            integrality=np.ones(k * top, np.int64),
            bounds=Bounds(0.0, 1.0),
        )
    )
    order: I64 = taken.reshape(k, top).argmax(axis=0)
    return order


def _solved(found: object) -> F64:
    solution: F64 | None = getattr(found, "x", None)
    assert solution is not None, "an order without documents obeys every limit"
    return solution
