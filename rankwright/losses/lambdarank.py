"""RankNet's pairs, each weighed by what swapping the two would change in a metric (LambdaRank).

For documents i, j of a query with g_i > g_j, weights w and the ranking by current scores,

    lambda_ij = -sigma w_i w_j |Delta_ij| p_ij,     p_ij = 1 / (1 + exp(sigma (s_i - s_j)))     (1)

is added to the gradient of i and taken from that of j, where Delta_ij is the change of the metric
when i and j trade places (`burges2010overview`). To the curvature of both the pair adds
sigma^2 w_i w_j |Delta_ij| p_ij (1 - p_ij). Only pairs with a document among the first
``truncation`` count.

The gradient is that of no function, since Delta jumps where two scores cross. `value` is the loss
whose gradient it would be if Delta stood still:

    L(s) = sum over g_i > g_j of w_i w_j |Delta_ij| log(1 + exp(-sigma (s_i - s_j)))            (2)

``normalize=True`` does as LightGBM's lambdarank_norm: |Delta_ij| is divided by 0.01 + |s_i - s_j|
(unless all scores are equal), and everything in a query by Lambda / log2(1 + Lambda), where Lambda
is the sum of the absolute gradients of its pairs, both sides counted.

**Tied scores** have no order, so |Delta_ij| is the mean over the orders of ties: row order never
reaches a model, and in the first round, where all scores are equal, there is a gradient all the
same. For metrics that are a sum over ranks (ndcg, dcg, p, ...) let d be the discount by rank, k
the truncation and t_i the ranks of the documents tied with i. For i above j, |Delta_ij| is
|gain_i - gain_j| times the mean over ranks a in t_i and b in t_j of

    [a <= k] (d_a - d_b)   =   mean of [a <= k] d_a  -  share of a <= k  times  mean of d_b     (3)

and for i, j in one tie, times the mean of [a <= k] (d_a - d_b) over its ranks a < b            (4)

For map, mrr and err the means are those of `rankwright.metrics.swap`. Documents equal in
score, grade and weight get the same gradient to the last bit.

A document among the first ``truncation`` is paired with all others, O(n x truncation) a query.
Where scores are tied, as in boosting, all that are tied with such a one are; in lists of 2,048
documents or more the CPU then adds up those of one score and one gain as one of their weight.

**Weights**: ranks are held by whole documents; one of weight 0 is left out, of the metric too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.kernels import log1p_unit, take
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import Count, Part, Positive, check_parameters
from rankwright.core.team import LANES, new_floats, shared_range, wait, zero
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.losses.old_base import KernelLoss, document_weight, present_documents
from rankwright.losses.pair_sums import (
    CURV,
    DISCOUNT,
    GAIN,
    GRAD,
    RANK,
    RATIO,
    ROW_CURV,
    ROW_GRAD,
    SCORE,
    SIZE,
    SWAP,
    TILE,
    VALUE,
    WEIGHT,
    begin_row,
    end_row,
    load_tiles,
    n_tiles,
    place,
    set_ratio,
    tile_floats,
    tiles_size,
    total,
    unload,
)
from rankwright.losses.score_sums import LONG
from rankwright.metrics.base import AnyMetric
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.swap import (
    LINEAR_SWAP,
    changes_below,
    has_ties,
    mean_changes_below,
    prepare,
    tie_sums,
)

_SMOOTH = 0.01  # LightGBM's


class _Terms(NamedTuple):
    """The metric as `rankwright.metrics.swap.SwapForm` has it, and the parameters."""

    kind: int
    gain: F64
    discount: F64  # of each rank, in sums over ranks
    cut: I64
    scale: F64
    key: F64  # orders tied documents, in metrics that are no sum over ranks
    w: F64
    sigma: float
    truncation: int
    normalize: bool


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _sums_over_ranks(lo, hi, indptr, s, terms, order, scratch, weight, value, grad, curv):
    _, gain, discount, cut, scale, _, w, sigma, truncation, normalize = terms
    tiles = new_floats(scratch, lo, 0, tiles_size(lo, hi, indptr))
    zero(tiles)
    places = len(tiles) // TILE * LANES
    by_rank = new_floats(scratch, lo, len(tiles), 3 * places)
    reach, share, tied = by_rank[:places], by_rank[places : 2 * places], by_rank[2 * places :]
    for q in range(lo, hi):
        value[q] = 0.0
        n = indptr[q + 1] - indptr[q]
        if n == 0:
            continue
        sort_query(indptr[q], indptr[q + 1], s, NO_KEY, order[0], order[1])
        ranked = order[0, indptr[q] : indptr[q + 1]]
        wide = load_tiles(ranked, s, gain, scale[q], w, sigma, tiles)
        near, slope = _smoothing(normalize, s[ranked[0]], s[ranked[n - 1]])
        depth = min(truncation, cut[q], n) if weight[q] * scale[q] > 0.0 else 0
        rows = _mean_over_ties(ranked, s, depth, discount, cut[q], reach, share, tied, tiles)
        for row in range(min(rows, n - 1)):
            if wide:
                set_ratio(n, row, sigma, tiles)
            change = (False, reach[row], share[row], tied[row])
            _add_row(n, row, change, (sigma, near, slope), tiles)
        value[q] = _finish(ranked, sigma, normalize, weight[q], tiles, grad, curv)


@kernel
def _any_metric(lo, hi, indptr, s, terms, order, scratch, weight, value, grad, curv):
    kind, gain, _, cut, scale, key, w, sigma, truncation, normalize = terms
    tiles = new_floats(scratch, lo, 0, tiles_size(lo, hi, indptr))
    zero(tiles)
    room = np.empty((4, len(tiles) // TILE * LANES + 1))
    u, v = room[1], room[2]
    no_ties = tie_sums(kind, s, order[0, :0], room[0, :0], 0, 0)
    for q in range(lo, hi):
        value[q] = 0.0
        n = indptr[q + 1] - indptr[q]
        if n == 0:
            continue
        sort_query(indptr[q], indptr[q + 1], s, key, order[0], order[1])
        ranked = order[0, indptr[q] : indptr[q + 1]]
        wide = load_tiles(ranked, s, gain, 1.0, w, sigma, tiles)
        near, slope = _smoothing(normalize, s[ranked[0]], s[ranked[n - 1]])
        gains = room[0, :n]
        take(gain, ranked, gains)
        prepare(kind, gains, cut[q], u, v)
        depth = min(truncation, cut[q], n - 1) if weight[q] * scale[q] > 0.0 else 0
        tied = depth > 0 and has_ties(s, ranked)
        ties = tie_sums(kind, s, ranked, gains, cut[q], depth) if tied else no_ties
        rows = min(ties.end[depth - 1], n - 1) if tied else depth
        for row in range(rows):
            if wide:
                set_ratio(n, row, sigma, tiles)
            if tied:
                mean_changes_below(kind, row, gains, cut[q], depth, ties, room[3])
            else:
                changes_below(kind, row, gains, cut[q], u, v, room[3])
            for b in range(row + 1, n):
                tiles[place(b) + SWAP] = abs(room[3, b]) * scale[q]
            _add_row(n, row, (True, 0.0, 0.0, 0.0), (sigma, near, slope), tiles)
        _share_among_equals(ranked, s, key, tiles)
        value[q] = _finish(ranked, sigma, normalize, weight[q], tiles, grad, curv)


@inline_kernel
def _smoothing(normalize, best, worst):
    """Return a and b of the factor 1 / (a + b |s_i - s_j|)."""
    return (_SMOOTH, 1.0) if normalize and best != worst else (1.0, 0.0)


@kernel
def _mean_over_ties(ranked, s, depth, discount, cut, reach, share, tied, tiles):
    """Find the means of (3) and (4) for each rank; return how many ranks have pairs that count."""
    n, rows = len(ranked), 0
    end = n
    while end > 0:
        start = end - 1
        while start > 0 and s[ranked[start - 1]] == s[ranked[start]]:
            start -= 1
        m = end - start
        within = counted = below = all_d = 0.0
        for rank in range(end - 1, start - 1, -1):
            d = discount[rank] if rank < cut else 0.0
            if rank < depth:
                counted += 1.0
                within += d
                below += d * (end - 1 - rank) - all_d
            all_d += d
        for rank in range(start, end):
            reach[rank], share[rank] = within / m, counted / m
            tied[rank] = below / (0.5 * m * (m - 1)) if m > 1 else 0.0  # (4)
            tiles[place(rank) + DISCOUNT] = all_d / m
        if start < depth:
            rows = max(rows, end)
        end = start
    wait()
    return rows


@kernel
def _add_row(n, row, change, shape, tiles):
    """Add the pairs of the document at rank ``row`` with all that stand below it.

    ``change`` describes Delta: whether SWAP has it, and the means of (3) and (4) where it has not.
    """
    at = place(row)
    own = (tiles[at + SCORE], tiles[at + GAIN], tiles[at + WEIGHT], 1.0 / tiles[at + RATIO])
    for t in range(begin_row(row, tiles), n_tiles(n)):
        _add_tile(row, own, change, shape, tiles[t * TILE : (t + 2) * TILE])
    end_row(n, row, tiles)


@kernel
def _add_tile(row, own, change, shape, two):
    """Pair a document with the second of ``two`` tiles; running sums come from the first."""
    score, gain, weight, inverse = own
    looked_up, reach, share, tied = change
    sigma, near, slope = shape
    for lane in shared_range(0, LANES):
        other = two[TILE + GAIN + lane]
        lead = score - two[TILE + SCORE + lane]
        moved = abs(reach - share * two[TILE + DISCOUNT + lane])  # (3)
        moved = abs(gain - other) * (tied if lead == 0.0 else moved)
        moved = two[TILE + SWAP + lane] if looked_up else moved
        moved = moved if two[TILE + RANK + lane] > row else 0.0
        r = two[TILE + RATIO + lane] * inverse
        smooth = near + slope * lead
        inverse_both = 1.0 / ((1.0 + r) * smooth)
        q = smooth * inverse_both
        pair = weight * two[TILE + WEIGHT + lane] * moved * (1.0 + r) * inverse_both
        p = r * q
        step = pair * (p if gain > other else -q)  # (1)
        curvature = pair * p * q
        loss = log1p_unit(r) + (0.0 if gain > other else sigma * lead)
        two[TILE + GRAD + lane] += step
        two[TILE + CURV + lane] += curvature
        two[TILE + VALUE + lane] += pair * loss  # (2)
        two[TILE + SIZE + lane] += abs(step)
        two[TILE + ROW_GRAD + lane] = two[ROW_GRAD + lane] + step
        two[TILE + ROW_CURV + lane] = two[ROW_CURV + lane] + curvature


@kernel
def _share_among_equals(ranked, s, key, tiles):
    """Give documents equal in score and key the mean of their gradients and curvatures."""
    start = 0
    for end in range(1, len(ranked) + 1):
        i = ranked[start]
        if end < len(ranked) and s[ranked[end]] == s[i] and key[ranked[end]] == key[i]:
            continue
        grad = curv = 0.0
        for rank in range(start, end):
            grad += tiles[place(rank) + GRAD]
            curv += tiles[place(rank) + CURV]
        for rank in range(start, end):
            tiles[place(rank) + GRAD] = grad / (end - start)
            tiles[place(rank) + CURV] = curv / (end - start)
        start = end


@kernel
def _finish(ranked, sigma, normalize, weight, tiles, grad, curv):
    """Write gradient and curvature of a query and return its value."""
    n = len(ranked)
    factor = weight
    if normalize:
        size = 2.0 * sigma * total(n, SIZE, tiles)
        factor *= math.log2(1.0 + size) / size if size > 0.0 else 1.0
    if len(grad):
        unload(ranked, GRAD, factor * sigma, tiles, grad)
    if len(curv):
        unload(ranked, CURV, factor * sigma * sigma, tiles, curv)
    return factor * total(n, VALUE, tiles)


# --- kernels for long lists with ties --------------------------------------------------------


@kernel
def _any_length(lo, hi, indptr, s, terms, order, scratch, weight, value, grad, curv):
    begin = lo
    for q in range(lo, hi):
        if indptr[q + 1] - indptr[q] >= LONG and weight[q] > 0.0:
            _sums_over_ranks(begin, q, indptr, s, terms, order, scratch, weight, value, grad, curv)
            begin = q
            if _long_query(q, indptr, s, terms, order, weight, value, grad, curv):
                begin = q + 1
    _sums_over_ranks(begin, hi, indptr, s, terms, order, scratch, weight, value, grad, curv)


@kernel
def _long_query(q, indptr, s, terms, order, weight, value, grad, curv):
    """Do as `_sums_over_ranks`, with equal documents as one; return whether half of them are."""
    _, gain, discount, cut, scale, _, w, sigma, truncation, normalize = terms
    sort_query(indptr[q], indptr[q + 1], s, gain, order[0], order[1])
    ranked = order[0, indptr[q] : indptr[q + 1]]
    n, m = len(ranked), 0
    kind, first = np.empty(n, np.int64), np.empty(n, np.int64)
    for rank in range(n):
        i, before = ranked[rank], ranked[max(rank - 1, 0)]
        if rank == 0 or s[i] != s[before] or gain[i] != gain[before]:
            first[m] = rank
            m += 1
        kind[rank] = m - 1
    if 2 * m > n:
        return False
    tiles = np.zeros(tiles_size(q, q + 1, indptr))
    reach, share, tied = np.empty(n), np.empty(n), np.empty(n)
    depth = min(truncation, cut[q], n) if scale[q] > 0.0 else 0
    rows = _mean_over_ties(ranked, s, depth, discount, cut[q], reach, share, tied, tiles)
    score, gains, together = np.empty(m), np.empty(m), np.zeros(m)
    take(s, ranked[first[:m]], score)
    take(gain, ranked[first[:m]], gains)
    for rank in range(n):
        together[kind[rank]] += w[ranked[rank]]
    every, few = np.arange(m), np.zeros(tiles_size(0, 1, np.array([0, m])))
    wide = load_tiles(every, score, gains, scale[q], together, sigma, few)
    for c in range(m):
        few[place(c) + DISCOUNT] = tiles[place(first[c]) + DISCOUNT]
    near, slope = _smoothing(normalize, score[0], score[m - 1])
    for c in range(m - 1):
        if first[c] >= rows:
            break
        if wide:
            set_ratio(m, c, sigma, few)
        change = (False, reach[first[c]], share[first[c]], tied[first[c]])
        _add_row(m, c, change, (sigma, near, slope), few)
    g, h = np.empty(m if len(grad) else 0), np.empty(m if len(curv) else 0)
    value[q] = _finish(every, sigma, normalize, weight[q], few, g, h)
    for rank in range(n):
        i, c = ranked[rank], kind[rank]
        if len(grad):
            grad[i] = g[c] * w[i] / together[c]
        if len(curv):
            curv[i] = h[c] * w[i] / together[c]
    return True


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class LambdaRank(Part):
    """Logistic loss on pairs, each weighed by what swapping the two would change in a metric.

    Parameters
    ----------
    metric : str or Metric
        The metric: ndcg, dcg, p, map, mrr, err or another that knows what a swap changes; with a
        cut-off as in ``ndcg@10``, and under the standard convention.
    truncation : int or None
        Only pairs with a document among the first ``truncation``; None takes all pairs.
    sigma : float
        Steepness: how far apart two scores must be to count as decided.
    normalize : bool
        Even out gradients within and between queries, as LightGBM's ``lambdarank_norm``.
    label_gain : sequence of float or None
        The gain of grade 0, 1, 2, ... in ndcg or dcg; None is that of the metric, 2^g - 1.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.LambdaRank(truncation=10), model="trees")
    Ranker(loss=LambdaRank(truncation=10), model='trees')
    """

    metric: AnyMetric = "ndcg"
    truncation: Count | None = 30
    sigma: Positive = 1.0
    normalize: bool = True
    label_gain: Sequence[float] | None = None

    traits: ClassVar[Traits] = Traits(smooth=False, integrable=False)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        metric = make_metric(self.metric, label_gain=self.label_gain)
        if not hasattr(metric, "swap_form"):
            raise IncompatibleError(
                f"lambdarank needs to know what a swap of two documents changes; '{metric}' "
                "does not provide it. Use ndcg, dcg, p, map, mrr or err."
            )
        seen = present_documents(data)
        form = metric.swap_form(seen)
        w = document_weight(seen)
        over_ranks = form.kind == LINEAR_SWAP
        terms = _Terms(
            kind=form.kind,
            gain=form.gain,
            discount=form.weight.copy(),
            cut=form.cut,
            scale=form.scale,
            key=NO_KEY if over_ranks else _tie_key(seen, w),
            w=w,
            sigma=float(self.sigma),
            truncation=data.n_documents if self.truncation is None else int(self.truncation),
            normalize=bool(self.normalize),
        )
        return KernelLoss(
            _sums_over_ranks if over_ranks else _any_metric,
            data,
            terms,
            np.empty((2, seen.n_documents), np.int64),
            curvature=True,
            present=seen,
            scratch=_scratch_floats,
            team=over_ranks,
            cpu_kernel=_any_length if over_ranks and seen.sizes.max(initial=0) >= LONG else None,
            n_jobs=n_jobs,
        )


def _scratch_floats(sizes: I64, lanes: int) -> I64:
    """Return the size of the tiles, and of three numbers for each of their places."""
    tiles = tile_floats(sizes, lanes)
    return tiles + 3 * (tiles // (TILE // LANES))


def _tie_key(data: RankingData, w: F64) -> F64:
    """Return a number that orders documents by grade, then by weight, and is equal for equals."""
    kinds = np.unique(np.stack([data.y, w], axis=1), axis=0, return_inverse=True)[1]
    kinds = kinds.ravel()  # NumPy 2.0 makes a column of it
    return kinds.astype(np.float64)
