"""The worst order of one query: the order that scores and metric together make worst for a ranker.

For documents with scores s and gains b, and weights a and c of the ranks, both falling,

    maximise over orders  sum_j c_j s_(j) - a_j b_(j)                                           (1)

where (j) is the document at rank j: the most violated order of DORM (`le2007dorm`, (23)). a is 0
beyond the cut-off. The functions here receive the documents by falling score, and return the rank
of each, or -1 for no rank.

**a = c** (`by_sort`): sort by s - b.

**Few different gains** (`by_classes`): documents of equal gain, a class, are in order of score. So
the first m = min(cut, n) ranks hold the best few documents of each class, and a dynamic programme
over their numbers (n_1, ..., n_K) finds how many, rank by rank:

    V(n_1, ..., n_K) = max over k of V(..., n_k - 1, ...) + c_t s_k(n_k) - a_t b_k,
    t = n_1 + ... + n_K                                                                         (2)

The other documents follow in order of score. With documents numbered 0, 1, ... by score,
g_0 < g_1 < ... in the first m ranks, and P_x(r) = sum_{i < r} s_i c_{m + i - x}, they add

    P_m(n) + sum_{x < m} P_x(g_x) - P_{x+1}(g_x + 1)                                            (3)

because a document that x of the g precede is at rank m + i - x.

**Otherwise** (`assignment.by_assignment`): documents are assigned to ranks at the costs

    cost[i, j] = a_j b_i - c_j s_i                                                              (4)

If a were 0, the order of the scores would be best, with a difference of the prices of ranks j + 1
and j anywhere between (c_j - c_{j+1}) times their scores: `sorted_prices` starts from there.

**Reciprocal rank** (`by_first_relevant`): the metric depends only on the rank f of the first
relevant document. Given f, the best f - 1 irrelevant documents come first, then the best relevant
one, then the remaining documents, each part in order of score. All f up to the cut-off are tried.

**Groups** (`by_groups`, `by_seats`): at most ``limit`` documents of each group in the first ranks,
also by assignment ((33) of `le2007dorm`).

**Equal scores**: documents come in order of (score, gain, group). Documents with equal scores take
their ranks in this order, which is a worst order too: the lowest gain is first. `mean_over_equals`
averages c over documents with equal score, gain and group, so that the gradient does not depend on
the order of the rows.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import copy_values
from rankwright.core.order import NO_KEY, in_order_of, sort_query
from rankwright.losses.assignment import FORBIDDEN, by_assignment

MOST_CLASSES = 8

# --- orders by score -------------------------------------------------------------------------


@kernel
def sorted_documents(s, kind):
    """Return the documents of a query by falling score; equal scores by rising ``kind``."""
    n = len(s)
    order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    sort_query(0, n, s, NO_KEY, order, spare)
    first = 0
    for end in range(1, n + 1):
        if end == n or s[order[end]] != s[order[first]]:
            if end > first + 1:
                copy_values(in_order_of(kind, order[first:end]), order[first:end])
            first = end
    return order


@kernel
def sort_ranks_of_ties(v, position):
    """Give the ranks of documents with equal scores to them in their order; all have ranks."""
    n = len(v)
    ties = 0
    for i in range(1, n):
        ties += v[i] == v[i - 1]
    if ties == 0:
        return
    document, first, following = np.empty(n, np.int64), np.empty(n, np.int64), np.arange(n)
    for i in range(n):
        document[position[i]] = i
        first[i] = first[i - 1] if i > 0 and v[i] == v[i - 1] else i
    for rank in range(n):
        tie = first[document[rank]]
        position[following[tie]] = rank
        following[tie] += 1


@kernel
def mean_over_equals(order, first_key, second_key, worth, out):
    """Write the worth of each place of ``order`` to its document; equal documents share the mean.

    Documents are equal if both keys are. Equal documents must be neighbours in ``order``.
    """
    first = 0
    while first < len(order):
        i, total, end = order[first], worth[first], first + 1
        while end < len(order):
            j = order[end]
            if first_key[j] != first_key[i] or second_key[j] != second_key[i]:
                break
            total += worth[end]
            end += 1
        for place in range(first, end):
            out[order[place]] = total / (end - first)
        first = end


@kernel
def mean_within_groups(order, first_key, second_key, group, limit, top, c, out):
    """Write c of each document in the best order with ``limit`` documents of a group in ``top``.

    ``order`` has the best document first. Documents of one group with equal keys share the
    remaining places of the group, and all with equal keys share the next ranks.
    """
    n_groups = group.max() + 1
    left, tied = np.full(n_groups, limit), np.zeros(n_groups, np.int64)
    first = rank = 0
    for end in range(1, len(order) + 1):
        if end < len(order):
            i, j = order[end], order[first]
            if first_key[i] == first_key[j] and second_key[i] == second_key[j]:
                continue
        tied[:] = 0
        for i in order[first:end]:
            tied[group[i]] += 1
        places = 0
        for g in range(n_groups):
            places += min(tied[g], left[g])
        following = min(rank + places, top)
        mean = 0.0
        for place in range(rank, following):
            mean += c[place]
        mean = mean / places if places else 0.0
        for i in order[first:end]:
            out[i] = mean * min(1.0, left[group[i]] / tied[group[i]])
        for g in range(n_groups):
            left[g] -= min(tied[g], left[g])
        rank, first = following, end


# --- worst orders by sorting and by assignment -----------------------------------------------


@kernel
def by_sort(v, b):
    """Return the ranks that solve (1) if a = c."""
    n = len(v)
    lead, order, spare = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        lead[i] = v[i] - b[i]
    sort_query(0, n, lead, NO_KEY, order, spare)
    position = spare
    for rank in range(n):
        position[order[rank]] = rank
    return position


@kernel
def by_first_relevant(v, b, cut, scale, c):
    """Return the ranks that maximise sum_j c_j s_(j) - scale/f, without the last term if f > cut.

    Documents with a gain are relevant, and f is the rank of the first one, from 1.
    """
    n = len(v)
    irrelevant = 0
    for i in range(n):
        irrelevant += not b[i] > 0.0
    position, best, best_lead = np.empty(n, np.int64), -np.inf, 0
    for lead in range(min(cut, irrelevant) + 1):
        _lead_with_irrelevant(lead, cut, b, position)
        total = -scale / (lead + 1) if lead < cut else 0.0
        for i in range(n):
            total += c[position[i]] * v[i]
        if total > best:
            best, best_lead = total, lead
    _lead_with_irrelevant(best_lead, cut, b, position)
    return position


@kernel
def _lead_with_irrelevant(lead, cut, b, position):
    """Put irrelevant documents on ``lead`` ranks, then (within cut) a relevant one."""
    led, is_placed, rank = 0, lead >= cut, lead + (lead < cut)
    for i in range(len(b)):
        relevant = b[i] > 0.0
        if not relevant and led < lead:
            position[i] = led
            led += 1
        elif relevant and not is_placed:
            position[i] = lead
            is_placed = True
        else:
            position[i] = rank
            rank += 1


@kernel
def metric_costs(v, b, a, c, ranks):
    """Return (4) for the first ``ranks`` ranks."""
    cost = np.empty((len(v), ranks))
    for i in range(len(v)):
        for j in range(ranks):
            cost[i, j] = a[j] * b[i] - c[j] * v[i]
    return cost


@kernel
def sorted_prices(v, c):
    """Return prices of ranks that suit documents sorted by score."""
    prices = np.zeros(len(v))
    for j in range(1, len(v)):
        prices[j] = prices[j - 1] + (c[j - 1] - c[j]) * 0.5 * (v[j - 1] + v[j])
    return prices


@kernel
def by_groups(v, b, group, top, a, c):
    """Return the ranks that solve (1) with one document of each group in ``top`` ranks.

    Each group takes part with the document that is cheapest at the rank.
    """
    n_groups = group.max() + 1
    cost, cheapest = np.full((top, n_groups), FORBIDDEN), np.full((top, n_groups), -1)
    costs = metric_costs(v, b, a, c, top)
    for i in range(len(v)):
        g = group[i]
        for j in range(top):
            if cheapest[j, g] < 0 or costs[i, j] < cost[j, g]:
                cost[j, g], cheapest[j, g] = costs[i, j], i
    group_of = by_assignment(cost, np.zeros(n_groups))
    position = np.full(len(v), -1)
    for j in range(top):
        position[cheapest[j, group_of[j]]] = j
    return position


@kernel
def by_seats(v, b, group, limit, top, a, c):
    """Return the ranks that solve (1) with ``limit`` documents of each group in ``top`` ranks.

    A group of m documents has m - limit seats beyond the ranks that only its documents may take.
    All documents may take the seats that remain. All seats are taken, so no group exceeds its
    limit.
    """
    n = len(v)
    size = np.zeros(group.max() + 1, np.int64)
    for i in range(n):
        size[group[i]] += 1
    cost = metric_costs(v, b, a, c, n)
    for i in range(n):
        for seat in range(top, n):
            cost[i, seat] = 0.0
    seat = top
    for g in range(len(size)):
        for _ in range(size[g] - limit):
            for i in range(n):
                cost[i, seat] = 0.0 if group[i] == g else FORBIDDEN
            seat += 1
    position = by_assignment(cost, np.zeros(n))
    for i in range(n):
        if position[i] >= top:
            position[i] = -1
    return position


# --- worst orders by classes of gains --------------------------------------------------------


@kernel
def by_classes(v, b, kind, cut, a, c):
    """Return the ranks that solve (1) by (2) and (3); ``kind`` numbers the gains."""
    m, kinds = min(cut, len(v)), kind.max() + 1
    member, size = _members(kind, kinds, m)
    score, gain = np.empty((kinds, m)), np.empty(kinds)
    for k in range(kinds):
        gain[k] = b[member[k, 0]]
        for i in range(min(size[k], m)):
            score[k, i] = v[member[k, i]]
    last = 0  # the largest class is not counted: it fills the ranks that remain
    for k in range(1, kinds):
        last = k if size[k] > size[last] else last
    stride, states = np.zeros(kinds, np.int64), 1
    for k in range(kinds):
        if k != last:
            stride[k] = states
            states *= min(size[k], m) + 1
    worth, choice = np.empty((2, states)), np.empty((m + 1, states), np.int8)
    worth[0, 0] = 0.0
    for t in range(1, m + 1):
        old, new = worth[(t - 1) % 2], worth[t % 2]
        _extend(t, score, gain, a[t - 1], c[t - 1], size, stride, last, old, new, choice[t])
    count = _best_head(m, _changes(m, v, c), member, size, stride, last, worth[m % 2])
    return _lay_out(m, count, len(v), member, stride, choice)


@kernel
def _members(kind, kinds, m):
    """Return the first m documents of each class, and the size of each class."""
    member, size = np.empty((kinds, m), np.int64), np.zeros(kinds, np.int64)
    for i in range(len(kind)):
        k = kind[i]
        if size[k] < m:
            member[k, size[k]] = i
        size[k] += 1
    return member, size


@kernel
def _next(count, total, size, stride, last, t, index):
    """Step to the next numbers with a sum up to t; return sum and index, a sum of -1 at the end."""
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
    """Fill rank t, from 1, of every state: (2)."""
    count = np.zeros(len(gain), np.int64)
    total, index = 0, 0
    while total >= 0:
        count[last] = t - total
        if count[last] <= size[last]:
            best, best_kind = -np.inf, 0
            for k in range(len(gain)):
                if count[k] > 0:
                    sum_k = old[index - stride[k]] + c * score[k, count[k] - 1] - a * gain[k]
                    if sum_k > best:
                        best, best_kind = sum_k, k
            new[index], choice[index] = best, best_kind
        count[last] = 0
        total, index = _next(count, total, size, stride, last, t, index)


@kernel
def _best_head(m, change, member, size, stride, last, worth):
    """Return the number of documents of each class in the first m ranks, by (2) and (3)."""
    kinds = len(size)
    above = _numbers_above(member, size)
    count, best_count = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
    best = -np.inf
    total, index = 0, 0
    while total >= 0:
        count[last] = m - total
        if count[last] <= size[last]:
            value = worth[index]
            for k in range(kinds):
                for i in range(count[k]):
                    x = 0  # documents of the head with a higher score
                    for h in range(kinds):
                        x += min(above[k, i, h], count[h])
                    value += change[x, member[k, i]]
            if value > best:
                best = value
                copy_values(count, best_count)
        count[last] = 0
        total, index = _next(count, total, size, stride, last, m, index)
    return best_count


@kernel
def _numbers_above(member, size):
    """Return how many of the listed documents of each class have a higher score than each."""
    kinds, m = member.shape
    above = np.zeros((kinds, m, kinds), np.int64)
    for k in range(kinds):
        for h in range(kinds):
            x = 0
            for i in range(min(size[k], m)):
                while x < min(size[h], m) and member[h, x] < member[k, i]:
                    x += 1
                above[k, i, h] = x
    return above


@kernel
def _changes(m, v, c):
    """Return P_x(r) - P_{x+1}(r + 1) of (3) for each x and document r; P_m(n) is common to all."""
    n = len(v)
    out = np.empty((m, n))
    sums = np.zeros((2, n + 1))
    for x in range(m + 1):
        now, before = sums[x % 2], sums[(x + 1) % 2]
        for r in range(min(x, n) + 1):
            now[r] = 0.0
        for r in range(x, n):
            rank = m + r - x
            now[r + 1] = now[r] + (v[r] * c[rank] if rank < n else 0.0)
        if x > 0:
            for r in range(n):
                out[x - 1, r] = before[r] - now[r + 1]
    return out


@kernel
def _lay_out(m, count, n, member, stride, choice):
    """Return the ranks: follow the choices back, then add the other documents by score."""
    position, index = np.full(n, -1), 0
    for k in range(len(count)):
        index += count[k] * stride[k]
    for t in range(m, 0, -1):
        k = choice[t, index]
        count[k] -= 1
        index -= stride[k]
        position[member[k, count[k]]] = t - 1
    rank = m
    for i in range(n):
        if position[i] < 0:
            position[i] = rank
            rank += 1
    return position


@kernel
def n_steps(size, m):
    """Return about how many steps `by_classes` takes for classes of these sizes."""
    ways, spare = np.zeros(m + 1), np.empty(m + 1)  # ways to make a sum: products of polynomials
    ways[0] = 1.0
    for k in range(len(size)):
        for t in range(m + 1):
            spare[t] = 0.0
            for x in range(min(size[k], t) + 1):
                spare[t] += ways[t - x]
        copy_values(spare, ways)
    return len(size) * (ways.sum() + m * ways[m])


@kernel
def prefers_classes(size, m):
    """Return whether `by_classes` is faster than the assignment for classes of these sizes."""
    n = size.sum()
    return len(size) <= MOST_CLASSES and n_steps(size, m) <= 7 * n * n + 500  # measured
