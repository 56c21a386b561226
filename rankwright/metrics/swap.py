"""Change of a metric when two documents of a ranking are swapped, in O(1) per pair.

`SwapForm` holds a metric on one data set: gains by row, weights by rank, a cut-off and a scale by
query. For one query, with ``b`` the gains in rank order, a kernel such as LambdaRank's calls

    prepare(kind, b, cut, u, v)              once, with scratch ``u`` and ``v`` of length n + 1
    change(kind, i, j, b, a, cut, u, v)      for ranks i < j from 0: new value minus old value

and multiplies with the scale of the query. The rules by kind, with R_r the gain at rank r, C_r the
number of relevant documents up to r, and ranks from 1:

    linear   (b_j - b_i) (a_i - a_j)                                                             (1)
    map      sum_r rel_r C_r / r: the moved document's own term, and +-1/r for every relevant
             document between i and j                                                            (2)
    mrr      1/first: only the first two relevant ranks matter                                   (3)
    err      terms between i and j are multiplied by (1 - R_j) / (1 - R_i)                       (4)

`mean_products` serves means over the orders of ties: E_j, the mean product of 1 - R over all
subsets of j of n documents, follows from the means for n - 1 documents and the n-th document,

    E_j = ((n - j) E_j + j (1 - R_n) E_{j - 1}) / n                                              (5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.errors import IncompatibleError

if TYPE_CHECKING:
    from rankwright.metrics.base import Metric
    from rankwright.metrics.ranked import Judged


LINEAR_SWAP, MAP_SWAP, MRR_SWAP, ERR_SWAP = range(4)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def prepare(kind, b, cut, u, v):
    """Fill the running sums of one query that `change` looks up."""
    if kind == MAP_SWAP:
        u[0], v[0] = 0.0, 0.0
        for r in range(len(b)):
            u[r + 1] = u[r] + b[r]
            v[r + 1] = v[r] + (b[r] / (r + 1) if r < cut else 0.0)
    elif kind == ERR_SWAP:
        u[0], v[0] = 1.0, 0.0
        for r in range(len(b)):
            u[r + 1] = u[r] * (1.0 - b[r])
            v[r + 1] = v[r] + (u[r] * b[r] / (r + 1) if r < cut else 0.0)
    elif kind == MRR_SWAP:
        u[0] = v[0] = len(b)
        for r in range(len(b) - 1, -1, -1):
            if b[r] > 0.0:
                v[0], u[0] = u[0], r


@kernel
def change(kind, i, j, b, a, cut, u, v):
    """Return new minus old value, before scaling, when ranks i < j (from 0) trade documents."""
    if b[i] == b[j] or i >= cut:
        return 0.0
    if kind == MAP_SWAP:
        return _map_change(i, j, b, cut, u, v)
    if kind == MRR_SWAP:
        return _mrr_change(i, j, b, cut, u, v)
    if kind == ERR_SWAP:
        return _err_change(i, j, b, cut, u, v)
    return (b[j] - b[i]) * (a[i] - (a[j] if j < cut else 0.0))  # (1)


@kernel
def changes_below(kind, i, b, cut, u, v, out):
    """Write `change` of rank i with each rank j > i to ``out[j]``, for map, mrr and err.

    One call a row: passing the arrays costs more than a pair does.
    """
    for j in range(i + 1, len(b)):
        out[j] = 0.0
    if i < cut:
        for j in range(i + 1, len(b)):
            if b[i] != b[j]:
                if kind == MAP_SWAP:
                    out[j] = _map_change(i, j, b, cut, u, v)
                elif kind == MRR_SWAP:
                    out[j] = _mrr_change(i, j, b, cut, u, v)
                else:
                    out[j] = _err_change(i, j, b, cut, u, v)


@kernel
def _map_change(i, j, b, cut, u, v):
    between = v[j] - v[i + 1]
    at_j = u[j + 1] / (j + 1) if j < cut else 0.0
    if b[i] > b[j]:
        return at_j - u[i + 1] / (i + 1) - between  # (2), moving down
    return (u[i + 1] + 1.0) / (i + 1) + between - at_j


@kernel
def _mrr_change(i, j, b, cut, u, v):
    first, second = u[0], v[0]
    new = first
    if b[i] > b[j] and i == first:
        new = min(j, second)
    elif b[j] > b[i]:
        new = min(first, i)
    before = 1.0 / (first + 1) if first < cut else 0.0
    return (1.0 / (new + 1) if new < cut else 0.0) - before  # (3)


@kernel
def _err_change(i, j, b, cut, u, v):
    direct = u[i] * (b[j] - b[i]) / (i + 1)
    if abs(1.0 - b[i]) > 1e-6:
        ratio = (1.0 - b[j]) / (1.0 - b[i])
        within = (v[j] - v[i + 1]) * (ratio - 1.0)  # (4)
        at_j = (u[j] * ratio * b[i] - u[j] * b[j]) / (j + 1) if j < cut else 0.0
        return direct + within + at_j
    # No reader gets past a document that satisfies for sure, so sums below it are added anew.
    alive = u[i]
    within = 0.0
    for r in range(i + 1, min(j, cut)):
        within += alive * ((1.0 - b[j]) - (1.0 - b[i])) * b[r] / (r + 1)
        alive *= 1.0 - b[r]
    if j < cut:
        within += alive * ((1.0 - b[j]) * b[i] - (1.0 - b[i]) * b[j]) / (j + 1)
    return direct + within


@kernel
def mean_products(stop, depth):
    """Return the mean product of 1 - stop over all subsets of 0, 1, ..., depth documents (5)."""
    products = np.zeros(depth + 1)
    products[0] = 1.0
    for n in range(1, len(stop) + 1):
        for j in range(min(n, depth), 0, -1):
            products[j] += j * ((1.0 - stop[n - 1]) * products[j - 1] - products[j]) / n
    return products


# --- API -------------------------------------------------------------------------------------


class SwapForm(NamedTuple):
    """A metric on one data set, as the kernels above take it.

    Attributes
    ----------
    kind : int
        ``LINEAR_SWAP``, ``MAP_SWAP``, ``MRR_SWAP`` or ``ERR_SWAP``.
    gain : (n,) array
        Gain of each row of the data.
    weight : array
        Weight of each rank, from the first; past the cut-off it counts as 0.
    cut : (Q,) array
        How many ranks of each query count.
    scale : (Q,) array
        Factor of the changes; 0 for empty queries.
    """

    kind: int
    gain: F64
    weight: F64
    cut: I64
    scale: F64

    @classmethod
    def of(
        cls,
        metric: Metric,
        judged: Judged,
        kind: int,
        gain: F64,
        weight: F64,
        divisor: F64,
    ) -> SwapForm:
        """Build the form of ``metric``, whose sums are divided by ``divisor``."""
        if metric.max_per_group is not None:
            raise IncompatibleError(
                f"{metric!r} depends on which documents of a group stay, so a swap of two has no "
                "fixed effect; use it without max_per_group."
            )
        nothing = metric.nothing_to_find(judged) | (divisor == 0)
        scale = np.where(nothing, 0.0, 1.0 / np.where(nothing, 1.0, divisor))
        return cls(kind, gain, weight, metric.cut(judged), scale)


# --- swaps among ties ------------------------------------------------------------------------
#
# Mean effect of swapping two documents over the orders of tied scores, for map, mrr and err.
#
# `rankwright.metrics.swap` knows the change in one ranking. Tied documents have no order, so the
# change that counts is the mean over all orders of ties. The better document above the worse is
# never the worse ranking under these metrics, so the mean of the absolute change is the absolute
# mean, and that is a sum over ranks of expectations. Below, ranks count from 1, a block of
# tied documents takes the ranks c + 1 to e (t of them), documents i and j are left out of all
# products and counts, i is in the upper block (or both are in one), and only orders count in which
# the upper of the two stands on one of the first ``depth`` ranks.
#
# **err**, and mrr, which is err with gains of 0 and 1. With S_r the probability that none of the
# other documents on the first r ranks contents the reader, i on rank a and j on rank b,
#
#     change = |R_i - R_j| sum_{r = a}^{b - 1} S_r w_r,    w_r = 1/r - 1/(r + 1), 1/k at r = k   (6)
#
# and the mean of S_r over orders is a product: blocks above r entirely give theirs, the block that
# r is in the mean product of r - c (less those of i and j) of its documents, `swap.mean_products`.
#
# **map**. With rel_r the others' share of relevant documents on rank r, C_r their number above it,
# and v_r = 1/r up to the cut-off,
#
#     change = v_a (1 + C_a) + sum_{a < r < b} rel_r v_r - v_b (1 + C_b)                         (7)
#
# where in the block of i a share (m - [i relevant]) / (t - 1) of the others is relevant on each
# rank. Both sums split into a part of i, one of the blocks between and one of j, so a pair takes
# O(1).


class Ties(NamedTuple):
    """Sums of one query's tied documents, by rank from 0.

    Attributes
    ----------
    end : end of the block of a rank
    upper : the part of (6) or (7) that the document has as the upper one of a pair
    share : share of the orders with the document on one of the first ``depth`` ranks
    lower : its part as the lower one, before ``lower_count`` (map) or S (err) is multiplied
    lower_count : mean of v over its block, by which the number of relevant documents counts
    rest : S below its block (err); the number of relevant documents above its block (map)
    passed : the part of its block of the sum, up to its end (map) or for S = 1 above it (err)
    product : the product of 1 - R over its block
    within : the change for the pair of the current row and this document, tied with it
    """

    end: I64
    upper: F64
    share: F64
    lower: F64
    lower_count: F64
    rest: F64
    passed: F64
    product: F64
    within: F64


@kernel
def has_ties(s, ranked):
    """Whether two neighbours of a ranking have equal scores."""
    rank = 1
    while rank < len(ranked) and s[ranked[rank]] != s[ranked[rank - 1]]:
        rank += 1
    return rank < len(ranked)


@kernel
def tie_sums(kind, s, ranked, b, cut, depth):
    """Return the `Ties` of a query with gains ``b`` by rank, equal gains together in a tie."""
    n = len(ranked)
    end = np.empty(n, np.int64)
    sums = np.zeros((8, n))
    ties = Ties(end, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7])
    above, passed = 1.0 if kind != MAP_SWAP else 0.0, 0.0
    c = 0
    while c < n:
        e = c + 1
        while e < n and s[ranked[e]] == s[ranked[c]]:
            e += 1
        end[c:e] = e
        ties.share[c:e] = min(max(depth - c, 0), e - c) / (e - c)
        if kind == MAP_SWAP:
            above, passed = _map_block(c, e, b, cut, depth, above, passed, ties)
        else:
            above = _err_block(c, e, b, cut, depth, above, ties)
        c = e
    return ties


@kernel
def mean_changes_below(kind, i, b, cut, depth, ties, out):
    """Write the mean absolute change for rank i with each rank j > i to ``out[j]``."""
    n, e = len(b), ties.end[i]
    c = i
    while c > 0 and ties.end[c - 1] == e:
        c -= 1
    if i == c or b[i] != b[i - 1]:  # rows of equal gains have the same
        _changes_within(kind, i, c, b, cut, depth, ties)
    for j in range(i + 1, e):
        out[j] = abs(b[i] - b[j]) * ties.within[j]
    so_far, alive = 0.0, ties.rest[i]
    start = e
    while start < n:
        stop = ties.end[start]
        for j in range(start, stop):
            if kind == MAP_SWAP:
                between = ties.passed[start - 1] - ties.passed[i]
                count = ties.rest[j] - b[i] + 1.0
                part = between + ties.lower[j] - ties.lower_count[j] * count
            else:
                part = so_far + alive * ties.lower[j]
            out[j] = abs((b[i] - b[j]) * (ties.upper[i] + ties.share[i] * part))
        so_far += alive * ties.passed[start]
        alive *= ties.product[start]
        start = stop


@kernel
def _err_weight(r, cut):
    if r < cut:
        return 1.0 / r - 1.0 / (r + 1)
    return 1.0 / r if r == cut else 0.0


@kernel
def _without(b, c, e, i, j):
    """Return the gains of ranks c to e without i and j."""
    out = np.empty(e - c - (1 if i == j else 2))
    kept = 0
    for rank in range(c, e):
        if rank not in (i, j):
            out[kept] = b[rank]
            kept += 1
    return out


@kernel
def _err_block(c, e, b, cut, depth, above, ties):
    """Fill the sums of (6) for one block; return S below it."""
    t, seen = e - c, max(min(e, cut) - c, 0)  # ranks of the block that count
    whole = mean_products(b[c:e], seen)
    passed, product = 0.0, 1.0
    for r in range(c + 1, c + seen + 1):
        passed += _err_weight(r, cut) * whole[r - c]
    for rank in range(c, e):
        product *= 1.0 - b[rank]
    for i in range(c, e):
        ties.passed[i], ties.product[i] = passed, product
        if i > c and b[i] == b[i - 1]:
            ties.upper[i], ties.lower[i] = ties.upper[i - 1], ties.lower[i - 1]
            ties.rest[i] = ties.rest[i - 1]
            continue
        others = _without(b, c, e, i, i)
        alone = mean_products(others, min(seen, t - 1))
        upper = lower = 0.0
        for r in range(c + 1, c + seen + 1):
            w = _err_weight(r, cut)
            upper += w * alone[r - c - 1] * max(min(r, depth) - c, 0)
            if r < e:
                lower += w * alone[r - c] * (e - r)
        ties.upper[i], ties.lower[i] = above * upper / t, lower / t
        ties.rest[i] = above
        for one in others:
            ties.rest[i] *= 1.0 - one
    return above * product


@kernel
def _map_block(c, e, b, cut, depth, above, passed, ties):
    """Fill the sums of (7) for one block; return relevant documents and the sum up to its end."""
    t, m = e - c, 0.0
    for rank in range(c, e):
        m += b[rank]
    for i in range(c, e):
        if i > c and b[i] == b[i - 1]:
            ties.upper[i], ties.lower[i] = ties.upper[i - 1], ties.lower[i - 1]
            continue
        rel = (m - b[i]) / (t - 1) if t > 1 else 0.0
        upper = lower = after = before = 0.0
        for a in range(e, c, -1):
            v = 1.0 / a if a <= cut else 0.0
            if a <= depth:
                upper += v * (1.0 + above + rel * (a - c - 1)) + rel * after
            after += v
        for rank in range(c + 1, e + 1):
            v = 1.0 / rank if rank <= cut else 0.0
            lower += rel * before - v * rel * (rank - c - 1)
            before += v
        ties.upper[i], ties.lower[i] = upper / t, lower / t
    mean = 0.0
    for r in range(c + 1, min(e, cut) + 1):
        mean += 1.0 / r / t
    ties.lower_count[c:e] = mean
    ties.rest[c:e] = above
    passed += m * mean
    ties.passed[c:e] = passed
    return above + m, passed


@kernel
def _changes_within(kind, i, c, b, cut, depth, ties):
    """Write the change for rank i and each document of another gain that is tied with it."""
    e = ties.end[i]
    t = e - c
    for j in range(c, e):
        if b[j] == b[i]:
            ties.within[j] = 0.0
        elif j > c and b[j] == b[j - 1]:
            ties.within[j] = ties.within[j - 1]
        elif kind == MAP_SWAP:
            ties.within[j] = _map_pair(c, e, b, cut, depth, ties.rest[i]) / (0.5 * t * (t - 1))
        else:
            ties.within[j] = _err_pair(i, j, c, e, b, cut, depth) / (0.5 * t * (t - 1))
            ties.within[j] *= _survival(c, b)


@kernel
def _survival(c, b):
    """Return the product of 1 - R over the ranks above c."""
    alive = 1.0
    for rank in range(c):
        alive *= 1.0 - b[rank]
    return alive


@kernel
def _err_pair(i, j, c, e, b, cut, depth):
    """Return (6) added up over all pairs of ranks of a block, for S = 1 above it."""
    seen = max(min(e - 1, cut) - c, 0)
    others = mean_products(_without(b, c, e, i, j), min(seen, e - c - 2))
    total = 0.0
    for r in range(c + 1, c + seen + 1):
        orders = max(min(r, depth) - c, 0) * (e - r)
        total += _err_weight(r, cut) * others[r - c - 1] * orders
    return total


@kernel
def _map_pair(c, e, b, cut, depth, above):
    """Return (7) added up over all pairs of ranks of a block, one relevant and one not."""
    m = 0.0
    for rank in range(c, e):
        m += b[rank]
    rel = (m - 1.0) / (e - c - 2) if e - c > 2 else 0.0
    total = after = lost = 0.0
    for a in range(e, c, -1):
        v = 1.0 / a if a <= cut else 0.0
        if a <= depth:
            total += (e - a) * v * (1.0 + above + rel * (a - c - 1)) + rel * after - lost
        after += v * (e - a)
        lost += v * (1.0 + above + rel * (a - c - 2))
    return total
