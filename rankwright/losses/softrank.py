"""SoftRank: expected loss of a ranking metric under Gaussian noise on the scores.

Scores are independent normal variables around s with standard deviation sigma, so that every
document has a distribution over ranks. For a metric that is a sum over ranks of discount d by rank
times gain b by document,

    L(s) = best - sum_i b_i E_i,     E_i = sum_r d_r P(document i is at rank r)                 (1)

where best is the metric of the best order: 1 for NDCG (`taylor2008softrank`). The rank of i is one
more than the number of documents above it, and each other document adds one with probability p:

    P(r) <- (1 - p) P(r) + p P(r - 1)     for every other document                              (2)

Probabilities of ranks beyond the cut-off k are not needed, so that a query costs O(n^2 k).
Documents without a gain cost nothing.

``form="recursion"``, as published, uses p_ij = Phi((s_j - s_i) / (sqrt(2) sigma)) as if the pairs
of a document were independent. They are not, since all contain its score: an unlucky sample puts it
below many others at once. ``form="exact"`` averages (2) over this score by Gauss-Hermite
quadrature: given s_i + sigma z, p_ij = Phi((s_j - s_i) / sigma - z), and these are independent.
With nearly equal scores, the ranks of the recursion concentrate around n/2, and a cut-off far above
that leaves no gradient to start from: use ndcg without a cut-off, or the exact form.

The gradient is that of (1), computed backwards through (2). The **curvature** bounds the diagonal
of the Hessian: with the gradient g_ij of the pair i, j, and u the argument of Phi, whose scale is
tau, it is the sum over pairs of |g_ij| (1 + |u|) / tau, plus the second derivative of E_i as two
probabilities change together if that is negative, which it never is if the discounts are convex up
to the last rank. No Newton step is longer than tau.

**Weights**: each document has one rank. Documents of weight 0 are removed, all others count alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parameters import Count, Positive
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss
from rankwright.losses.gain_lists import gain_lists
from rankwright.metrics.base import AnyMetric

_ROOT_HALF = math.sqrt(0.5)
_NEGLIGIBLE = 1e-17  # weight of a node whose probabilities are not computed
_PEAK = 1.0 / math.sqrt(2.0 * math.pi)


@kernel
def _softrank(queries, indptr, s, lists, convex, nodes, share, tau, value, grad, curv):
    gain, discount, cut, best = lists.gain, lists.discount, lists.cut, lists.best
    for q in queries:
        start, end = indptr[q], indptr[q + 1]
        n, k = end - start, cut[q]
        x, u, above, density = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        states, ranks = np.zeros((n + 1, k + 1)), np.empty((4, k + 2))
        gradient, curvature = grad[start:end], curv[start:end]
        value[q] = best[q]
        for j in range(n):
            x[j] = s[start + j] / tau
        for i in range(n):
            if gain[start + i] == 0.0:
                continue
            for m in range(len(nodes)):
                _probabilities(i, x, nodes[m], u, above, density)
                factor = gain[start + i] * share[m]
                value[q] -= factor * _expectation(i, above, discount, k, states)  # (1)
                _add_gradients(
                    i, factor, above, density, u, discount, k, states, ranks, gradient, curvature
                )
                if not (convex and k == n):
                    mixed = _mixed_derivative(i, above, density, discount, k, states, ranks)
                    curvature[i] += factor * max(0.0, -mixed)
        for i in range(start, end):
            grad[i] /= tau
            curv[i] /= tau * tau


@quick_kernel
def _probabilities(i, x, z, u, above, density):
    """Write the probability of each document to be above i, and its derivative."""
    for j in range(len(x)):
        u[j] = x[j] - x[i] - z
        above[j] = 0.5 * math.erfc(-_ROOT_HALF * u[j])
    for j in range(len(x)):
        density[j] = _PEAK * math.exp(-0.5 * u[j] * u[j])


@quick_kernel
def _expectation(i, above, discount, k, states):
    """Return E_i of (1); row j of ``states`` is P of (2) before document j, from column 1."""
    states[0, 1] = 1.0
    for j in range(len(above)):
        before, after = states[j], states[j + 1]
        p = above[j] if j != i else 0.0
        reach = min(k, j + 2)  # no rank beyond is possible yet
        if j + 2 <= k:
            before[reach] = 0.0
        for r in range(1, reach + 1):
            after[r] = before[r] + p * (before[r - 1] - before[r])  # (2)
    total = 0.0
    for r in range(k):
        total += discount[r] * states[len(above), r + 1]
    return total


@quick_kernel
def _add_gradients(i, factor, above, density, u, discount, k, states, ranks, gradient, curvature):
    """Subtract the gradient of ``factor`` times E_i, backwards through (2)."""
    worth, worth_before = ranks[0], ranks[1]  # of rank r to i after the documents from j on
    for r in range(k):
        worth[r] = discount[r]
    worth[k] = worth_before[k] = 0.0
    for j in range(len(above) - 1, -1, -1):
        if j == i:
            continue
        before, p = states[j], above[j]
        change = 0.0
        reach = min(k, j + 1)
        for r in range(reach):
            change += before[r + 1] * (worth[r + 1] - worth[r])
        for r in range(reach):
            worth_before[r] = worth[r] + p * (worth[r + 1] - worth[r])
        worth, worth_before = worth_before, worth
        pull = factor * change * density[j]
        bound = abs(pull) * (1.0 + abs(u[j]))
        gradient[j] -= pull
        curvature[j] += bound
        gradient[i] += pull
        curvature[i] += bound


@quick_kernel
def _mixed_derivative(i, above, density, discount, k, states, ranks):
    """Return the second derivative of E_i in s_i without those of single probabilities."""
    p1, p2, new1, new2 = ranks[0], ranks[1], ranks[2], ranks[3]  # derivatives of P
    for r in range(k + 2):
        p1[r] = p2[r] = new1[r] = new2[r] = 0.0
    for j in range(len(above)):
        if j == i:
            continue
        p0, p, d = states[j], above[j], -density[j]
        for r in range(1, min(k, j + 2) + 1):
            new2[r] = p2[r] + p * (p2[r - 1] - p2[r]) + 2.0 * d * (p1[r - 1] - p1[r])
            new1[r] = p1[r] + p * (p1[r - 1] - p1[r]) + d * (p0[r - 1] - p0[r])
        p1, p2, new1, new2 = new1, new2, p1, p2
    total = 0.0
    for r in range(k):
        total += discount[r] * p2[r + 1]
    return total


@dataclass(frozen=True, slots=True, repr=False)
class SoftRank(KernelLoss):
    """Expected loss of a ranking metric under Gaussian noise on the scores.

    Parameters
    ----------
    metric : str or Metric
        ndcg, dcg, p or another sum over ranks, with a cut-off as in ``ndcg@10``, under the standard
        convention.
    sigma : float
        Standard deviation of the noise; small values approximate the metric.
    form : "recursion" or "exact"
        Treat the pairs of a document as independent, as published, or average over its score.
    nodes : int
        Points of the quadrature of the exact form. With 32, the value is exact to about 0.001; long
        lists of nearly equal scores need more points for the same precision of the gradient.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.SoftRank(sigma=0.5), model="linear")
    Ranker(loss=SoftRank(sigma=0.5))
    """

    metric: AnyMetric = "ndcg"
    sigma: Positive = 1.0
    form: Literal["recursion", "exact"] = "recursion"
    nodes: Count = 32

    traits = Traits()
    run = staticmethod(_softrank)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the metric, whether its discounts are convex, the quadrature and tau."""
        nodes, share, tau = np.zeros(1), np.ones(1), math.sqrt(2.0) * self.sigma
        if self.form == "exact":
            nodes, share = np.polynomial.hermite_e.hermegauss(int(self.nodes))
            nodes, share = nodes[share > _NEGLIGIBLE], share[share > _NEGLIGIBLE]
            share, tau = share / share.sum(), float(self.sigma)
        lists = gain_lists("softrank", self.metric, data)
        convex = bool((np.diff(lists.discount, 2) >= 0.0).all())
        return lists, convex, nodes, share, tau
