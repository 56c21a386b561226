"""ApproxNDCG loss: NDCG and other metrics with smooth ranks.

The rank of a document is one more than the number of documents above it. Counted by a logistic
function of the difference in score at ``temperature`` T, it is smooth (`qin2010general`):

    a_ij = 1 / (1 + exp((s_i - s_j) / T)),     r_i = 1 + sum_{j != i} a_ij                      (1)

The loss is the metric of the best order less that of these ranks. With x_i = 1 for a document of
``min_grade`` or more and R of these in a query,

    ndcg:       sum_i (2^g_i - 1) / log2(1 + r_i) / IDCG                                        (2)
    map:        sum_i x_i C_i / r_i / R,     C_i = 1 + sum_{j != i} x_j a_ij                    (3)
    mrr:        sum_i x_i / r_i / R                                                             (4)
    p@k:        sum_i x_i c(r_i) / k,        c(r) = 1 / (1 + exp(r - k - 1/2))                  (5)
    recall@k:   sum_i x_i c(r_i) / R                                                            (6)

dcg is (2) without IDCG. A cut-off k multiplies the terms of (2) to (4) by c(r_i). (2) and (3) are
from the paper. (4) is TensorFlow Ranking's ApproxMRRLoss: the reciprocal rank, if R = 1, and else
the mean of 1 / rank over the relevant documents. The step function of the paper's cut-offs is
smoothed by (5), at half a rank after the last that counts.

As T goes to 0, (2) tends to NDCG and (3) to average precision; a larger T compares documents with
larger differences in score. The **curvature** is the sum of the absolute gradients of a document's
pairs, over T, instead of the diagonal of the Hessian. No Newton step is longer than T.

A query takes O(n x documents of positive gain); in lists of 2,048 documents or more, the sums over
j are sums over the points of `rankwright.losses.score_sums`, whose number depends only on the
spread of the scores.

**Weights**: a document takes one rank whatever its weight; documents of weight 0 are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel, quick_kernel
from rankwright.core.kernels import sigmoid
from rankwright.core.parameters import Positive
from rankwright.core.team import shared_range, team_sum, wait
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.losses.base import KernelLoss
from rankwright.losses.score_sums import PairPoints, load_points, unload_points
from rankwright.metrics.base import AnyMetric
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.swap import LINEAR_SWAP

_METRICS = ("ndcg", "dcg", "map", "mrr", "p", "recall")
_LOG2, _PRECISION, _RECIPROCAL, _COUNT = range(4)
_FORMS = dict(zip(_METRICS, (_LOG2, _LOG2, _PRECISION, _RECIPROCAL, _COUNT, _COUNT), strict=True))


class _Terms(NamedTuple):
    form: int
    cut: float  # infinite without a cut-off
    gain: F64  # of each place, over the divisor of the metric
    best: F64  # metric of the best order of each query
    above: F64  # work array: a_ij of the current document i
    down: F64  # sum of the pulls of the document at each place
    itself: F64  # its pull on itself, in both sums


# --- kernels -----------------------------------------------------------------------------------


@kernel
def _approx_metric(queries, indptr, s, points, terms, steepness, value, grad, curv):
    load_points(queries, indptr, s, steepness, points)
    _add_ranks(queries, s, points, terms, steepness, value)
    unload_points(queries, indptr, s, steepness, points, grad, curv)
    rows, down, itself = points.rows, terms.down, terms.itself
    for q in queries:
        for p in shared_range(indptr[q], indptr[q + 1]):
            i = rows[p]
            up, pull = grad[i] - steepness * itself[p], steepness * (down[p] - itself[p])
            grad[i], curv[i] = up - pull, steepness * (abs(up) + abs(pull))


@quick_kernel
def _add_ranks(queries, s, points, terms, steepness, value):
    """Add the terms of the documents with gains, which are the first points of each query."""
    rows, start, of_query, edges = points.rows, points.start, points.of_query, points.edges
    low, middle, step, cells = points.low, points.middle, points.step, points.cells
    gain, above, down, itself = terms.gain, terms.above, terms.down, terms.itself
    x, weight, _, lead, grad, _ = points.work
    for q in queries:
        b = of_query[q]
        split, end = edges[b + q + 1], edges[of_query[q + 1] + q]
        with_gain, others = slice(edges[b + q], split), slice(split, end)
        total = terms.best[q]
        for p in shared_range(start[b], start[of_query[q + 1]]):
            down[p] = itself[p] = 0.0
        for p in range(start[b], start[b + 1]):
            if gain[p] == 0.0:
                break
            x_i = steepness * (s[rows[p]] - low[q])
            if step[q] == 1:
                for j in shared_range(edges[b + q], end):
                    lead[j] = math.exp(min(max(x[j] - x_i, -300.0), 300.0))
                wait()
            own = 1.0 if step[q] == 1 else math.exp(x_i - middle[q])
            count = 0.5 + _compare(own, weight[with_gain], lead[with_gain], above[with_gain])
            rank = count + _compare(own, weight[others], lead[others], above[others])  # (1)
            term, slope, by_count = _term(terms.form, terms.cut, rank, count)
            total -= gain[p] * term
            pull, pull_with_gain = -gain[p] * slope, -gain[p] * (slope + by_count)
            if cells[q] > 0:  # nodes include the document, with a_ii = 1/2
                itself[p] = 0.25 * pull_with_gain
            else:
                wait()
                above[p] = 0.0
                wait()
            near = _add_pulls(pull_with_gain, weight[with_gain], above[with_gain], grad[with_gain])
            far = _add_pulls(pull, weight[others], above[others], grad[others])
            down[p] = near + far
        value[q] = total


@inline_kernel
def _compare(own, weight, lead, above):
    """Write a_ij of (1), and return their weighted sum."""
    total = 0.0
    for j in shared_range(0, len(lead)):
        above[j] = lead[j] / (lead[j] + own)
        total += weight[j] * above[j]
    return team_sum(total)


@kernel
def _term(form, cut, rank, count):
    """Return a document's term of the metric, and its derivatives in r and C."""
    inside = sigmoid(cut + 0.5 - rank)  # (5)
    outward = -inside * (1.0 - inside)
    if form == _LOG2:
        width = math.log(1.0 + rank)
        term, slope = math.log(2.0) / width, -math.log(2.0) / ((1.0 + rank) * width * width)  # (2)
    elif form == _COUNT:
        term, slope = 1.0, 0.0
    else:
        term, slope = 1.0 / rank, -1.0 / (rank * rank)  # (3), (4)
    term, slope = term * inside, slope * inside + term * outward
    if form == _PRECISION:
        return term * count, slope * count, term
    return term, slope, 0.0


@inline_kernel
def _add_pulls(pull, weight, above, gradient):
    """Add a document's pull on the points above it; return its sum."""
    down = 0.0
    for j in shared_range(0, len(above)):
        step = pull * above[j] * (1.0 - above[j])
        gradient[j] += step
        down += weight[j] * step
    return team_sum(down)


# --- API ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class ApproxNDCG(KernelLoss):
    """NDCG, or another metric, of ranks that are smooth in the scores.

    Parameters
    ----------
    temperature : float
        Difference in score at which one document is mostly above another.
    metric : str or Metric
        ndcg, dcg, map, mrr, p@10 or recall@10, under the standard convention; all may have a
        cut-off.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ApproxNDCG(metric="map"), model="linear")
    Ranker(loss=ApproxNDCG(metric='map'))
    """

    temperature: Positive = 0.1
    metric: AnyMetric = "ndcg"

    traits = Traits()
    run = staticmethod(_approx_metric)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the points, documents with gains first, the metric and 1 / T."""
        metric: Any = make_metric(self.metric)
        if metric.key not in _FORMS:
            raise IncompatibleError(
                f"approx_ndcg has no smooth form of '{metric}'. Use {', '.join(_METRICS[:-1])} "
                f"or {_METRICS[-1]}."
            )
        form, query = metric.swap_form(data), data.query_of_row()
        gain = form.gain * form.scale[query]
        found = np.bincount(query, gain > 0.0, data.n_queries)
        best = np.minimum(found, form.cut) * form.scale
        if metric.key == "mrr":
            gain, best = gain / np.maximum(found, 1.0)[query], np.minimum(found, 1.0)
        if form.kind == LINEAR_SWAP:
            rank = np.arange(len(query)) - data.indptr[query]
            discount = np.where(rank < form.cut[query], form.weight[rank], 0.0)
            best = np.bincount(query, gain[np.lexsort((-gain, query))] * discount, data.n_queries)
        points = PairPoints.of(data._replace(y=(gain > 0.0).astype(np.float64), sample_weight=None))
        terms = _Terms(
            _FORMS[metric.key],
            np.inf if metric.k is None else float(metric.k),
            gain[points.rows],
            best,
            *np.empty((3, data.n_documents)),
        )
        return points, terms, 1.0 / self.temperature
