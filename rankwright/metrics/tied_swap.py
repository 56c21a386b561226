"""What a swap of two documents changes on average over the orders of tied scores: map, mrr, err.

`rankwright.metrics.swap` knows the change in one ranking. Tied documents have no order, so the
change that counts is the mean over all orders of ties. The better document above the worse is never
the worse ranking under these metrics, so the mean of the absolute change is the absolute mean, and
that is a sum over ranks of expectations. In what follows ranks count from 1, a block of tied
documents takes the ranks c + 1 to e (t of them), documents i and j are left out of all products and
counts, i is in the upper block (or both are in one), and only orders count in which the upper of
the two stands on one of the first ``depth`` ranks.

**err**, and mrr, which is err with gains of 0 and 1. With S_r the probability that none of the
other documents on the first r ranks contents the reader, i on rank a and j on rank b,

    change = |R_i - R_j| sum_{r = a}^{b - 1} S_r w_r,    w_r = 1/r - 1/(r + 1), 1/k at r = k     (1)

and the mean of S_r over orders is a product: blocks above r entirely give theirs, the block that r
is in the mean product of r - c (less those of i and j) of its documents, `swap.mean_products`.

**map**. With rel_r the others' share of relevant documents on rank r, C_r their number above it,
and v_r = 1/r up to the cut-off,

    change = v_a (1 + C_a) + sum_{a < r < b} rel_r v_r - v_b (1 + C_b)                           (2)

where in the block of i a share (m - [i relevant]) / (t - 1) of the others is relevant on each rank.
Both sums split into a part of i, one of the blocks between and one of j, so a pair takes O(1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.metrics.swap import MAP_SWAP, mean_products


class Ties(NamedTuple):
    """Sums of one query's tied documents, by rank from 0.

    Attributes
    ----------
    end : where the block of a rank ends
    upper : the part of (1) or (2) that the document has as the upper one of a pair
    share : in how many of the orders it stands on one of the first ``depth`` ranks
    lower : its part as the lower one, before ``lower_count`` (map) or S (err) is multiplied
    lower_count : mean of v over its block, by which the number of relevant documents counts
    rest : S below its block (err); the number of relevant documents above its block (map)
    passed : what its block adds to the sum, up to its end (map) or for S = 1 above it (err)
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


# --- kernels ---------------------------------------------------------------------------------


@kernel
def has_ties(s, ranked):  # type: ignore[no-untyped-def]
    """Whether two neighbours of a ranking have equal scores."""
    rank = 1
    while rank < len(ranked) and s[ranked[rank]] != s[ranked[rank - 1]]:
        rank += 1
    return rank < len(ranked)


@kernel
def tie_sums(kind, s, ranked, b, cut, depth):  # type: ignore[no-untyped-def]
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
def mean_changes_below(kind, i, b, cut, depth, ties, out):  # type: ignore[no-untyped-def]
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
def _err_weight(r, cut):  # type: ignore[no-untyped-def]
    if r < cut:
        return 1.0 / r - 1.0 / (r + 1)
    return 1.0 / r if r == cut else 0.0


@kernel
def _without(b, c, e, i, j):  # type: ignore[no-untyped-def]
    """Return the gains of ranks c to e but those of i and j."""
    out = np.empty(e - c - (1 if i == j else 2))
    kept = 0
    for rank in range(c, e):
        if rank not in (i, j):
            out[kept] = b[rank]
            kept += 1
    return out


@kernel
def _err_block(c, e, b, cut, depth, above, ties):  # type: ignore[no-untyped-def]
    """Fill the sums of (1) for one block; return S below it."""
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
def _map_block(c, e, b, cut, depth, above, passed, ties):  # type: ignore[no-untyped-def]
    """Fill the sums of (2) for one block; return relevant documents and the sum up to its end."""
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
def _changes_within(kind, i, c, b, cut, depth, ties):  # type: ignore[no-untyped-def]
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
def _survival(c, b):  # type: ignore[no-untyped-def]
    """Return the product of 1 - R over the ranks above c."""
    alive = 1.0
    for rank in range(c):
        alive *= 1.0 - b[rank]
    return alive


@kernel
def _err_pair(i, j, c, e, b, cut, depth):  # type: ignore[no-untyped-def]
    """Return (1) added up over all pairs of ranks of a block, for S = 1 above it."""
    seen = max(min(e - 1, cut) - c, 0)
    others = mean_products(_without(b, c, e, i, j), min(seen, e - c - 2))
    total = 0.0
    for r in range(c + 1, c + seen + 1):
        orders = max(min(r, depth) - c, 0) * (e - r)
        total += _err_weight(r, cut) * others[r - c - 1] * orders
    return total


@kernel
def _map_pair(c, e, b, cut, depth, above):  # type: ignore[no-untyped-def]
    """Return (2) added up over all pairs of ranks of a block, one relevant and one not."""
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
