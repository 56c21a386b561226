"""Pairs of RankNet, weighted by the change of a metric when the two documents swap (LambdaRank).

For documents i, j of a query with g_i > g_j, weights w and the ranking by current scores,

    lambda_ij = -sigma w_i w_j |Delta_ij| p_ij,     p_ij = 1 / (1 + exp(sigma (s_i - s_j)))     (1)

is added to the gradient of i and subtracted from that of j, where Delta_ij is the change of the
metric when i and j swap places (`burges2010overview`). To the curvature of both the pair adds
sigma^2 w_i w_j |Delta_ij| p_ij (1 - p_ij). Only pairs with a document in the first ``truncation``
ranks count.

The gradient is not that of any function, since Delta jumps when two scores cross. `value` is the
loss with this gradient while Delta is constant:

    L(s) = sum over g_i > g_j of w_i w_j |Delta_ij| log(1 + exp(-sigma (s_i - s_j)))            (2)

``normalize=True`` does as LightGBM's lambdarank_norm: |Delta_ij| is divided by 0.01 + |s_i - s_j|
(unless all scores are equal), and everything in a query by Lambda / log2(1 + Lambda), where Lambda
is the sum of the absolute gradients of its pairs, both sides counted.

**Tied scores** have no order, so |Delta_ij| is its mean over the orders of tied documents. Results
then do not depend on the order of rows, and the first iteration, with equal scores, has a gradient.
For metrics that are a sum over ranks (ndcg, dcg, p, ...) let d be the discount by rank, k the
truncation and t_i the ranks of the documents tied with i. For i above j, |Delta_ij| is
|gain_i - gain_j| times the mean over ranks a in t_i and b in t_j of

    [a <= k] (d_a - d_b)   =   mean of [a <= k] d_a  -  share of a <= k  times  mean of d_b     (3)

and for i, j in one tie, times the mean of [a <= k] (d_a - d_b) over its ranks a < b            (4)

For map, mrr and err the means are those of `rankwright.metrics.swap`.

**Other weights** of LambdaLoss (`wang2018lambdaloss`) replace |Delta_ij| in (1) and (2), for ndcg
and dcg, with G = gain / IDCG and the discount d_r = 1 / log2(1 + r) of rank r:

    ndcg_loss1      G_i d_i, for all ordered pairs (i, j) of documents, of one grade too         (5)
    ndcg_loss2      |G_i - G_j| (d_r - d_{r + 1}) with r = |rank of i - rank of j|              (6)
    ndcg_loss2++    mu times (6), plus |Delta_ij|                                               (7)

They are those of allRank's lambdaLoss, divided by log2(e) since (2) has the natural logarithm, and
(6) that of rax's dcg2_lambdaweight over the size of the list. Ties count by means over their orders
as above.

A query takes O(n x truncation). Documents with equal scores and gains are one **group**, whose
weight is the sum of theirs: if all scores are equal there are only as many groups as grades.

**Weights**: a document takes one rank whatever its weight; documents of weight 0 are left out, of
the metric too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel, quick_kernel
from rankwright.core.kernels import twice_artanh
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import Count, Positive
from rankwright.core.team import owns, shared_range, team_sums, wait
from rankwright.core.types import F64, I64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.base import KernelLoss, document_weight
from rankwright.metrics.base import AnyMetric, PositionMetric
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.swap import (
    changes_below,
    has_ties,
    mean_changes_below,
    prepare,
    tie_sums,
)

_SMOOTH = 0.01  # LightGBM's
_FAR = 600.0  # exp(-600) and its inverse are finite
_WEIGHTS = ("lambdarank", "ndcg_loss1", "ndcg_loss2", "ndcg_loss2++")
_SWAPS, _LOSS1, _LOSS2, _LOSS2PP = range(4)


class _Terms(NamedTuple):
    """The metric as a `rankwright.metrics.swap.SwapForm`, and the parameters."""

    kind: int
    gain: F64
    discount: F64  # of each rank, in sums over ranks
    cut: I64
    scale: F64
    w: F64
    sigma: float
    truncation: int
    normalize: bool
    weights: int
    mu: float
    by_gap: F64  # 1 / log2(1 + gap) of two ranks, for ndcg_loss2


class _Groups(NamedTuple):
    """Work arrays: the groups of each query, best score first, and the sums over their pairs."""

    order: I64  # rows by rank
    spare: I64
    first: I64  # first rank of each group, and the number of ranks after the last group
    low: I64  # ranks of the tie of the group
    high: I64
    score: F64
    gain: F64
    mass: F64
    lead: F64  # exp(sigma (score - best score))
    reach: F64  # means of (3) and (4)
    share: F64
    discount: F64
    tied: F64
    pair: F64  # weights of the pairs of a row
    gradient: F64
    curvature: F64


# --- kernels -----------------------------------------------------------------------------------


@quick_kernel
def _sums_over_ranks(queries, indptr, s, terms, work, value, grad, curv):
    for q in queries:
        m, groups = _group(q, indptr, s, terms, work)
        rows = _mean_over_ties(q, m, terms, groups)
        form = _row_form(m, terms, groups)
        sums = (0.0, 0.0)
        for c in range(min(rows, m - 1)):
            if terms.weights == _SWAPS:
                _weigh_by_swaps(c, m, terms.scale[q], groups)
            else:
                _weigh_by_lambdaloss(q, c, m, False, terms, groups)
            sums = _add_row(c, m, form, groups, sums)
            if terms.weights == _LOSS1:
                _weigh_by_lambdaloss(q, c, m, True, terms, groups)
                sums = _add_row(c, m, form, groups, sums)
        value[q] = _unload(m, sums, terms, groups, grad, curv)


@quick_kernel
def _any_metric(queries, indptr, s, terms, work, value, grad, curv):
    kind, most = terms.kind, 0
    for q in queries:
        most = max(most, indptr[q + 1] - indptr[q])
    gains_, u, v, changes = np.empty(most), np.empty(most + 1), np.empty(most + 1), np.empty(most)
    no_ties = tie_sums(kind, s, work.order[:0], u[:0], 0, 0)
    for q in queries:
        m, groups = _group(q, indptr, s, terms, work)
        form = _row_form(m, terms, groups)
        first, gain, mass = groups.first, groups.gain, groups.mass
        n, cut, scale = first[m], terms.cut[q], terms.scale[q]
        gains = gains_[:n]
        for c in range(m):
            for rank in range(first[c], first[c + 1]):
                gains[rank] = gain[c]
        prepare(kind, gains, cut, u, v)
        depth = min(terms.truncation, cut, n - 1) if scale > 0.0 else 0
        ranked = groups.order
        tied = depth > 0 and has_ties(s, ranked)
        ties = tie_sums(kind, s, ranked, gains, cut, depth) if tied else no_ties
        rows, c = ties.end[depth - 1] if tied else depth, 0
        sums = (0.0, 0.0)
        while c < m - 1 and first[c] < rows:
            if tied:
                mean_changes_below(kind, first[c], gains, cut, depth, ties, changes)
            else:
                changes_below(kind, first[c], gains, cut, u, v, changes)
            for d in range(c + 1, m):
                pair = scale * mass[c] * mass[d] * abs(changes[first[d]])
                groups.pair[d] = pair if gain[c] > gain[d] else -pair
            sums = _add_row(c, m, form, groups, sums)
            c += 1
        value[q] = _unload(m, sums, terms, groups, grad, curv)


@inline_kernel
def _group(q, indptr, s, terms, work):
    """Rank the documents of query q; return the number of its groups, and its part of ``work``."""
    begin, end = indptr[q], indptr[q + 1]
    sort_query(begin, end, s, NO_KEY, work.order, work.spare)
    ranked, gain, w = work.order[begin:end], terms.gain, terms.w
    if has_ties(s, ranked):
        sort_query(begin, end, s, gain, work.order, work.spare)
    groups = _Groups(
        ranked,
        work.spare[begin:end],
        work.first[begin + q : end + q + 1],
        work.low[begin:end],
        work.high[begin:end],
        work.score[begin:end],
        work.gain[begin:end],
        work.mass[begin:end],
        work.lead[begin:end],
        work.reach[begin:end],
        work.share[begin:end],
        work.discount[begin:end],
        work.tied[begin:end],
        work.pair[begin:end],
        work.gradient[begin:end],
        work.curvature[begin:end],
    )
    m, mass = 0, 0.0
    for rank in range(end - begin):
        i, above = ranked[rank], ranked[max(rank - 1, 0)]
        if rank == 0 or s[i] != s[above] or gain[i] != gain[above]:
            groups.first[m], groups.score[m], groups.gain[m] = rank, s[i], gain[i]
            m, mass = m + 1, 0.0
        mass += w[i]
        groups.mass[m - 1] = mass
    groups.first[m] = end - begin
    wait()
    for c in shared_range(0, m):
        groups.lead[c] = math.exp(terms.sigma * (groups.score[c] - groups.score[0]))
        groups.gradient[c] = groups.curvature[c] = 0.0
    wait()
    return m, groups


@inline_kernel
def _row_form(m, terms, groups):
    """Return a and b of the factor 1 / (a + b |s_i - s_j|), sigma, and if scores differ widely."""
    best, worst = groups.score[0], groups.score[m - 1]
    wide = terms.sigma * (best - worst) > _FAR
    if terms.normalize and best != worst:
        return _SMOOTH, 1.0, terms.sigma, wide
    return 1.0, 0.0, terms.sigma, wide


@inline_kernel
def _mean_over_ties(q, m, terms, groups):
    """Write the means of (3) and (4) for each group; return how many groups have pairs below."""
    first, score, cut = groups.first, groups.score, terms.cut[q]
    depth = min(terms.truncation, cut, first[m]) if terms.scale[q] > 0.0 else 0
    both = terms.weights == _LOSS1
    start = rows = 0
    while start < m:
        stop = start + 1
        while stop < m and score[stop] == score[start]:
            stop += 1
        low, high = first[start], first[stop]
        n = high - low
        within = counted = tied = total = 0.0
        for rank in range(high - 1, low - 1, -1):
            d = terms.discount[rank] if rank < cut else 0.0
            if rank < depth:
                counted += 1.0
                within += d
                below = d * (high - 1 - rank)
                tied += 0.5 * (below + total) if both else below - total
            total += d
        for c in range(start, stop):
            groups.low[c], groups.high[c] = low, high
            groups.reach[c], groups.share[c] = within / n, counted / n
            groups.discount[c] = total / n
            groups.tied[c] = tied / (0.5 * n * (n - 1)) if n > 1 else 0.0  # (4)
        if low < depth:
            rows = stop
        start = stop
    wait()
    return rows


@inline_kernel
def _weigh_by_swaps(c, m, scale, groups):
    """Write the weights of the pairs of group c; positive if it has the higher gain."""
    worse = slice(c + 1, m)
    score, gain, mass = groups.score[worse], groups.gain[worse], groups.mass[worse]
    discount, pair = groups.discount[worse], groups.pair[worse]
    for d in shared_range(0, len(pair)):
        moved = abs(groups.reach[c] - groups.share[c] * discount[d])  # (3)
        moved = groups.tied[c] if score[d] == groups.score[c] else moved
        pair[d] = scale * groups.mass[c] * mass[d] * (groups.gain[c] - gain[d]) * moved


@kernel
def _weigh_by_lambdaloss(q, c, m, backward, terms, groups):
    """Do as `_weigh_by_swaps`, for (5), in one of its directions, (6) or (7)."""
    gain, score, scale = groups.gain, groups.score, terms.scale[q] * groups.mass[c]
    for d in range(c + 1, m):
        tied = score[d] == score[c]
        mean = groups.share[c] * groups.discount[d]
        if terms.weights != _LOSS1:
            weight = terms.mu if terms.weights == _LOSS2PP else 1.0
            moved = groups.tied[c] if tied else groups.reach[c] - mean
            moved = moved if terms.weights == _LOSS2PP else 0.0
            moved += weight * _mean_of_gaps(c, d, terms, groups)  # (7)
            groups.pair[d] = scale * groups.mass[d] * (gain[c] - gain[d]) * moved
        elif backward:
            groups.pair[d] = -scale * groups.mass[d] * gain[d] * (groups.tied[c] if tied else mean)
        else:
            reach = groups.tied[c] if tied else groups.reach[c]
            groups.pair[d] = scale * groups.mass[d] * gain[c] * reach  # (5)
    wait()


@kernel
def _mean_of_gaps(c, d, terms, groups):
    """Return the mean of (6), without gains, over the orders of ties; its sums telescope."""
    low, high, end = groups.low[d], groups.high[d], groups.high[c]
    total = 0.0
    for rank in range(groups.low[c], min(end, terms.truncation)):
        total += terms.by_gap[max(low - rank, 1)] - terms.by_gap[max(high - rank, 1)]
    n, others = end - groups.low[c], high - low
    return total / (0.5 * n * (n - 1) if end == high else n * others)


@inline_kernel
def _add_row(c, m, form, groups, sums):
    """Add the pairs of group c with those below it; return the sums of losses and gradients."""
    near, slope, sigma, wide = form
    below = slice(c + 1, m)
    score, lead, pair = groups.score[below], groups.lead[below], groups.pair[below]
    gradient, curvature = groups.gradient[below], groups.curvature[below]
    own, inverse_lead = groups.score[c], 1.0 if wide else 1.0 / groups.lead[c]
    if wide:
        for d in shared_range(0, len(score)):
            lead[d] = math.exp(sigma * (score[d] - own))
    loss, size = sums
    down = bend = 0.0
    for d in shared_range(0, len(score)):
        gap, r = own - score[d], lead[d] * inverse_lead
        smooth = near + slope * gap
        inverse = 1.0 / ((1.0 + r) * (2.0 + r) * smooth)  # one division for three quotients
        above = (2.0 + r) * smooth * inverse  # the probability that the higher score is better
        weight = pair[d] * (1.0 + r) * (2.0 + r) * inverse
        step = weight * (r * above if weight > 0.0 else above)  # (1)
        curved = abs(weight) * r * above * above
        wrong = 0.0 if weight > 0.0 else sigma * gap
        loss += abs(weight) * (wrong + twice_artanh(r * (1.0 + r) * smooth * inverse))  # (2)
        size += abs(step)
        gradient[d] += step
        curvature[d] += curved
        down += step
        bend += curved
    down, bend = team_sums(down, bend)
    if owns(c):
        groups.gradient[c] -= down
        groups.curvature[c] += bend
    return loss, size


@inline_kernel
def _unload(m, sums, terms, groups, grad, curv):
    """Write gradient and curvature of the documents of query q; return its value."""
    loss, size = team_sums(sums[0], 2.0 * terms.sigma * sums[1])
    factor = math.log2(1.0 + size) / size if terms.normalize and size > 0.0 else 1.0
    for c in range(m):
        for rank in shared_range(groups.first[c], groups.first[c + 1]):
            i = groups.order[rank]
            share = factor * terms.sigma * terms.w[i] / groups.mass[c]
            grad[i] = share * groups.gradient[c]
            curv[i] = share * terms.sigma * groups.curvature[c]
    wait()
    return factor * loss


# --- API ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class LambdaRank(KernelLoss):
    """Logistic loss on pairs, weighted by the change of a metric when the two documents swap.

    Parameters
    ----------
    metric : str or Metric
        Metric with a known swap delta: ndcg, dcg, p, map, mrr, err; with a cut-off as in
        ``ndcg@10``, under the standard convention.
    truncation : int or None
        Use only pairs in which at least one document is currently ranked in the top
        ``truncation``. None uses all pairs.
    sigma : float
        Steepness: the inverse of the score difference that counts as decided.
    normalize : bool
        Even out gradients within and between queries, as LightGBM's ``lambdarank_norm``.
    label_gain : sequence of float or None
        The gain of grade 0, 1, 2, ... in ndcg or dcg; None is that of the metric, 2^g - 1.
    weights : "lambdarank", "ndcg_loss1", "ndcg_loss2" or "ndcg_loss2++"
        Weights of the pairs: the change of the metric, or those of LambdaLoss for ndcg and dcg
        without a cut-off.
    mu : float
        Weight of ndcg_loss2 in ndcg_loss2++.

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
    weights: Literal["lambdarank", "ndcg_loss1", "ndcg_loss2", "ndcg_loss2++"] = "lambdarank"
    mu: Positive = 10.0

    traits = Traits(smooth=False, integrable=False)

    @property
    def run(self) -> Any:
        """Kernel of value, gradient and curvature."""
        metric = make_metric(self.metric, label_gain=self.label_gain)
        return _sums_over_ranks if isinstance(metric, PositionMetric) else _any_metric

    def check(self) -> None:
        """Raise for a metric without a swap delta, or that LambdaLoss does not have."""
        metric = make_metric(self.metric, label_gain=self.label_gain)
        if not hasattr(metric, "swap_form"):
            raise IncompatibleError(
                f"lambdarank needs to know what a swap of two documents changes; '{metric}' "
                "does not provide it. Use ndcg, dcg, p, map, mrr or err."
            )
        if self.weights != "lambdarank" and metric.key not in ("ndcg", "dcg"):
            raise UsageError(f"lambdarank's weights={self.weights} need ndcg or dcg, not {metric}.")
        if self.weights != "lambdarank" and metric.k is not None:
            raise UsageError(
                f"lambdarank's weights={self.weights} have no cut-off. Use metric='{metric.key}' "
                f"and truncation={metric.k}."
            )

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the metric and the parameters, and the work arrays."""
        metric: Any = make_metric(self.metric, label_gain=self.label_gain)
        form = metric.swap_form(data)
        n, longest = data.n_documents, int(data.sizes.max(initial=0))
        gain = form.gain.view()
        gain.flags.writeable = False  # as NO_KEY, so that sort_query is compiled once
        terms = _Terms(
            kind=form.kind,
            gain=gain,
            discount=form.weight.copy(),
            cut=form.cut,
            scale=form.scale,
            w=document_weight(data),
            sigma=float(self.sigma),
            truncation=longest if self.truncation is None else int(self.truncation),
            normalize=bool(self.normalize),
            weights=_WEIGHTS.index(self.weights),
            mu=float(self.mu),
            by_gap=1.0 / np.log2(np.arange(longest + 1) + 1.0).clip(1.0),
        )
        ranks = np.empty((4, n), np.int64)
        first = np.empty(n + data.n_queries, np.int64)
        return terms, _Groups(ranks[0], ranks[1], first, ranks[2], ranks[3], *np.empty((11, n)))
