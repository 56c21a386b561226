"""Soft zero-one loss on pairs of documents of different grades: a smooth count of wrong pairs.

With c = 1 / (1 + exp(sigma (s_i - s_j))), which is near 1 if the better document i is behind the
document j, and w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j c                                                    (1)

where m = min(1, g_i - g_j): 1 for whole grades, the difference for estimated relevance. It is the
``pairwise_soft_zero_one_loss`` of TensorFlow Ranking and rax (`jagerman2022rax`), with sigma = 1
there and a mean over pairs in place of the sum. A pair costs between 0 and 1, so a few hopeless
pairs do not decide the ranking; the loss is not convex. A pair adds, times m w_i w_j,

    -sigma c (1 - c)         to the gradient of i, and the opposite to that of j                 (2)
    sigma^2 c (1 - c)        to the curvature of both, a bound of the second derivative          (3)

``normalize=True`` divides the loss of each query by the sum of m w_i w_j over its pairs. A query
takes O(n^2) pairs; long lists take O(n) as described in `rankwright.losses.score_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parameters import Positive
from rankwright.core.team import owns, shared_range, team_sum
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss
from rankwright.losses.score_sums import (
    PairPoints,
    load_points,
    pair_weight,
    set_leads,
    unload_points,
)


@kernel
def _soft_zero_one(queries, indptr, s, points, sigma, value, grad, curv):
    load_points(queries, indptr, s, sigma, points)
    _add_pairs(queries, points, value)
    unload_points(queries, indptr, s, sigma, points, grad, curv)


@quick_kernel
def _add_pairs(queries, points, value):
    """Pair each point with those of lower grades."""
    of_query, edges, step = points.of_query, points.edges, points.step
    x, weight, grade, lead, gradient, curvature = points.work
    for q in queries:
        total, end = 0.0, edges[of_query[q + 1] + q]
        for b in range(of_query[q] + q, of_query[q + 1] + q - 1):
            worse = slice(edges[b + 1], end)
            w_j, g_j, lead_j = weight[worse], grade[worse], lead[worse]
            grad_j, curv_j = gradient[worse], curvature[worse]
            for begin in range(edges[b], edges[b + 1], step[q]):
                set_leads(begin, edges[b + 1], end, step[q], x, lead)
                for i in range(begin, min(begin + step[q], edges[b + 1])):
                    loss = down = 0.0
                    for j in shared_range(0, len(w_j)):
                        inverse = 1.0 / (lead[i] + lead_j[j])
                        c = lead_j[j] * inverse
                        m = min(grade[i] - g_j[j], 1.0)
                        slope = m * c * lead[i] * inverse
                        loss += m * w_j[j] * c  # (1)
                        grad_j[j] += weight[i] * slope  # (2)
                        curv_j[j] += weight[i] * slope  # (3)
                        down += w_j[j] * slope
                    total += weight[i] * loss
                    down = team_sum(down)
                    if owns(i):
                        gradient[i] -= down
                        curvature[i] += down
        value[q] = team_sum(total)


@dataclass(frozen=True, slots=True, repr=False)
class SoftZeroOne(KernelLoss):
    """Smooth count of the pairs of documents of different grades in the wrong order.

    A pair of grades less than 1 apart, as of relevance estimated from clicks, counts by their
    difference.

    Parameters
    ----------
    sigma : float
        Steepness: a larger value is closer to the count of wrong pairs.
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.SoftZeroOne(sigma=2.0), model="linear")
    Ranker(loss=SoftZeroOne(sigma=2.0))
    """

    sigma: Positive = 1.0
    normalize: bool = False

    traits = Traits()
    run = staticmethod(_soft_zero_one)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the points and sigma of (1)."""
        return PairPoints.of(data), float(self.sigma)

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query; with ``normalize``, over the weight of its pairs."""
        return pair_weight(data, normalize=self.normalize)
