"""The order of one query that a metric and the scores together make worst for a ranker.

For documents with scores s and gains b, rank weights a (0 beyond rank ``cut``) and c (falling),

    maximise over orders  sum_j c_j s_(j) - a_j b_(j)                                           (1)

where (j) is the document at rank j: the most violated order of DORM (`le2007dorm`, (23)). A general
solver is `losses.assignment`; here are the forms that need none.

**a = c**: one sort, by s - b.

**Few kinds of gain** (`by_classes`): documents of equal gain stand in order of score, so the first
m = min(cut, n) ranks hold a prefix of each kind, and which prefixes is found by a dynamic programme
over their lengths (n_1, ..., n_K), rank by rank:

    V(n_1, ..., n_K) = max over k of V(..., n_k - 1, ...) + c_t s_k(n_k) - a_t b_k,
    t = n_1 + ... + n_K                                                                         (2)

The other documents follow in order of score. With documents numbered 0, 1, ... by score, g_0 < g_1
< ... those in the first m ranks and P_x(r) = sum_{i < r} s_i c_{m + i - x}, what follows is worth

    P_m(n) + sum_{x < m} P_x(g_x) - P_{x+1}(g_x + 1)                                            (3)

since a document with x of the g above it stands at rank m + i - x.

**Reciprocal rank** (`by_first_relevant`): the gain depends on the rank f of the first relevant
document alone. Given f, the f - 1 best irrelevant documents come first, then the best relevant one,
then the rest, each part in order of score; all f up to the cut-off are tried.

**Ties**: where scores are equal, orders may be equally bad. `share` gives documents their mean c
over all of these: in a block of equal scores, ranks of equal a are interchangeable, and so are
documents of equal gain.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.copies import copy_values
from rankwright.core.jit import kernel
from rankwright.core.order import in_order_of

# --- kernels ---------------------------------------------------------------------------------


@kernel
def by_classes(ranked, s, kind, gain, cut, a, c, worth, choice, position):  # type: ignore[no-untyped-def]
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
    last = np.argmax(size)  # the largest kind is not counted: it has what the others leave
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
def _members(ranked, kind, kinds, m):  # type: ignore[no-untyped-def]
    """Return places in ``ranked`` of the first m documents of each kind, and how many it has."""
    member, size = np.empty((kinds, m), np.int64), np.zeros(kinds, np.int64)
    for place in range(len(ranked)):
        k = kind[ranked[place]]
        if size[k] < m:
            member[k, size[k]] = place
        size[k] += 1
    return member, size


@kernel
def _next(count, total, size, stride, last, t, index):  # type: ignore[no-untyped-def]
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
def _extend(t, score, gain, a, c, size, stride, last, old, new, choice):  # type: ignore[no-untyped-def]
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
def _best_head(m, change, member, size, stride, last, worth):  # type: ignore[no-untyped-def]
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
def _numbers_above(member, size):  # type: ignore[no-untyped-def]
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
def _changes(m, ranked, s, c):  # type: ignore[no-untyped-def]
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
def _lay_out(m, count, ranked, member, stride, choice, position):  # type: ignore[no-untyped-def]
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
def by_first_relevant(ranked, s, relevant, cut, scale, c, position):  # type: ignore[no-untyped-def]
    """Write the order that maximises sum_j c_j s_(j) - scale/f [f <= cut]; return its f.

    f is the rank of the first relevant document, counted from 1; cut + 1 stands for all beyond.
    """
    n = len(ranked)
    others = 0
    for i in range(n):
        others += not relevant[i]
    best, best_f = -np.inf, 0
    for f in range(1, min(cut, others) + 2):
        if f > cut + 1 or (f <= cut and f > others + 1):
            break
        _lead_with_others(f, cut, ranked, relevant, position)
        here = -scale / f if f <= cut else 0.0
        for i in range(n):
            here += c[position[i]] * s[i]
        if here > best:
            best, best_f = here, f
    _lead_with_others(best_f, cut, ranked, relevant, position)
    return best_f


@kernel
def _lead_with_others(f, cut, ranked, relevant, position):  # type: ignore[no-untyped-def]
    """Put f - 1 irrelevant documents first, then (if f <= cut) a relevant one, then the rest."""
    led, found, rank = 0, f > cut, f if f <= cut else f - 1
    for place in range(len(ranked)):
        i = ranked[place]
        if not relevant[i] and led < f - 1:
            position[i] = led
            led += 1
        elif relevant[i] and not found:
            position[i] = f - 1
            found = True
        else:
            position[i] = rank
            rank += 1


@kernel
def share(ranked, s, kind, a, c, position, out):  # type: ignore[no-untyped-def]
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
def _share_block(block, kind, a, c, position, out):  # type: ignore[no-untyped-def]
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
def n_states(size, m):  # type: ignore[no-untyped-def]
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
