"""Logistic loss on pairs of documents of different grades (RankNet).

With w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j log(1 + exp(-sigma (s_i - s_j)))                     (1)

(`burges2005ranknet`), where m = min(1, g_i - g_j): 1 for whole grades, the difference for estimated
relevance. With p = 1 / (1 + exp(sigma (s_i - s_j))), a pair adds

    -sigma m w_i w_j p                  to the gradient of i, and the opposite to that of j      (2)
    sigma^2 m w_i w_j p (1 - p)         to the curvature of both, the diagonal of the Hessian    (3)

``normalize=True`` divides the loss of each query by the sum of m w_i w_j over its pairs.

A query takes O(n^2) pairs, with one exponential per document. Lists of 2,048 documents or more
take O(n), unless nearly every document has a grade of its own or the scores times sigma differ by
hundreds; see `rankwright.losses.score_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.kernels import twice_artanh
from rankwright.core.parameters import Positive
from rankwright.core.team import owns, shared_range, team_sum, team_sums
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
def _ranknet(queries, indptr, s, points, sigma, value, grad, curv):
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
            x_j, w_j, g_j, lead_j = x[worse], weight[worse], grade[worse], lead[worse]
            grad_j, curv_j = gradient[worse], curvature[worse]
            for begin in range(edges[b], edges[b + 1], step[q]):
                set_leads(begin, edges[b + 1], end, step[q], x, lead)
                for i in range(begin, min(begin + step[q], edges[b + 1])):
                    loss = down = bend = 0.0
                    for j in shared_range(0, len(x_j)):
                        m = min(grade[i] - g_j[j], 1.0)
                        both = lead[i] + lead_j[j]
                        more = both + max(lead[i], lead_j[j])
                        inverse = 1.0 / (both * more)  # one division for three quotients
                        p, c = lead_j[j] * more * inverse, lead[i] * more * inverse
                        u = min(lead[i], lead_j[j]) * both * inverse
                        loss += m * w_j[j] * (max(x_j[j] - x[i], 0.0) + twice_artanh(u))  # (1)
                        grad_j[j] += m * weight[i] * p  # (2)
                        down += m * w_j[j] * p
                        curv_j[j] += m * weight[i] * p * c  # (3)
                        bend += m * w_j[j] * p * c
                    total += weight[i] * loss
                    down, bend = team_sums(down, bend)
                    if owns(i):
                        gradient[i] -= down
                        curvature[i] += bend
        value[q] = team_sum(total)


@dataclass(frozen=True, slots=True, repr=False)
class RankNet(KernelLoss):
    """Logistic loss on every pair of documents of different grades.

    A pair of grades less than 1 apart, as of relevance estimated from clicks, counts by their
    difference.

    Parameters
    ----------
    sigma : float
        Steepness: the inverse of the score difference that counts as decided.
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.RankNet(sigma=2.0), model="trees")
    Ranker(loss=RankNet(sigma=2.0), model='trees')
    """

    sigma: Positive = 1.0
    normalize: bool = False

    traits = Traits(convex=True)
    run = staticmethod(_ranknet)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the points and sigma of (1)."""
        return PairPoints.of(data), float(self.sigma)

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query; with ``normalize``, over the weight of its pairs."""
        return pair_weight(data, normalize=self.normalize)
