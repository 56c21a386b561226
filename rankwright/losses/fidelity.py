"""Fidelity loss on pairs of documents of different grades (FRank).

With p = 1 / (1 + exp(s_j - s_i)), the probability that the better document i leads, q the desired
probability, c = 1 - p and w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j (1 - sqrt(p q) - sqrt(c (1 - q)))                    (1)

(`tsai2007frank`, with q = 1 for pairs of different grades), where m = min(1, g_i - g_j): 1 for
whole grades, the difference for estimated relevance. A pair costs between 0 and 1, so a few
hopeless pairs do not decide the ranking; the loss is not convex. A pair adds, times m w_i w_j,

    v - u    to the gradient of i, and u - v to that of j                                       (2)
    u + v    to the curvature of both                                                           (3)

with u = sqrt(p q) c / 2 and v = sqrt(c (1 - q)) p / 2. The second derivative of a pair is at most
u + v, so that no step of gradient / curvature is longer than 1. ``normalize=True`` divides the loss
of each query by the sum of m w_i w_j over its pairs.

A query takes O(n^2) pairs, with one exponential per document; long lists take O(n) as described in
`rankwright.losses.score_sums`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.team import owns, shared_range, team_sum, team_sums
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import KernelLoss
from rankwright.losses.score_sums import (
    PairPoints,
    load_points,
    pair_weight,
    set_leads,
    unload_points,
)


@kernel
def _fidelity(queries, indptr, s, points, roots, value, grad, curv):
    load_points(queries, indptr, s, 1.0, points)
    _add_pairs(queries, points, roots, value)
    unload_points(queries, indptr, s, 1.0, points, grad, curv)


@quick_kernel
def _add_pairs(queries, points, roots, value):
    """Pair each point with those of lower grades."""
    of_query, edges, step = points.of_query, points.edges, points.step
    x, weight, grade, lead, gradient, curvature = points.work
    hit, miss = roots  # of q and 1 - q
    for q in queries:
        total, end = 0.0, edges[of_query[q + 1] + q]
        for b in range(of_query[q] + q, of_query[q + 1] + q - 1):
            worse = slice(edges[b + 1], end)
            w_j, g_j, lead_j = weight[worse], grade[worse], lead[worse]
            grad_j, curv_j = gradient[worse], curvature[worse]
            for begin in range(edges[b], edges[b + 1], step[q]):
                set_leads(begin, edges[b + 1], end, step[q], x, lead)
                for i in range(begin, min(begin + step[q], edges[b + 1])):
                    loss = down = bend = 0.0
                    for j in shared_range(0, len(w_j)):
                        m = min(grade[i] - g_j[j], 1.0)
                        inverse = 1.0 / (lead[i] + lead_j[j])
                        p, c = lead[i] * inverse, lead_j[j] * inverse
                        root_p, root_c = math.sqrt(p), math.sqrt(c)
                        u, v = 0.5 * hit * root_p * c, 0.5 * miss * root_c * p
                        # (1) as half of squares that do not cancel
                        loss += m * w_j[j] * 0.5 * ((root_p - hit) ** 2 + (root_c - miss) ** 2)
                        grad_j[j] += m * weight[i] * (u - v)  # (2)
                        down += m * w_j[j] * (u - v)
                        curv_j[j] += m * weight[i] * (u + v)  # (3)
                        bend += m * w_j[j] * (u + v)
                    total += weight[i] * loss
                    down, bend = team_sums(down, bend)
                    if owns(i):
                        gradient[i] -= down
                        curvature[i] += bend
        value[q] = team_sum(total)


def _check_confidence(name: str, value: Any) -> None:
    """Raise unless ``value`` is a probability above 1/2."""
    if not (isinstance(value, Real) and 0.5 < float(value) <= 1.0):
        raise UsageError(f"{name} must be above 0.5 and at most 1, not {value}.")


@dataclass(frozen=True, slots=True, repr=False)
class Fidelity(KernelLoss):
    """Fidelity loss on every pair of documents of different grades.

    A pair of grades less than 1 apart, as of relevance estimated from clicks, counts by their
    difference.

    Parameters
    ----------
    confidence : float
        Desired probability q that the better document leads, above 1/2.
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Fidelity(confidence=0.9), model="linear")
    Ranker(loss=Fidelity(confidence=0.9))
    """

    confidence: Annotated[float, _check_confidence] = 1.0
    normalize: bool = False

    traits = Traits()
    run = staticmethod(_fidelity)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the points and the roots of q and 1 - q."""
        return PairPoints.of(data), (math.sqrt(self.confidence), math.sqrt(1.0 - self.confidence))

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query; with ``normalize``, over the weight of its pairs."""
        return pair_weight(data, normalize=self.normalize)
