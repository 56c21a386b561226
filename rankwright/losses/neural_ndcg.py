"""NeuralNDCG: NDCG with a differentiable relaxation of sorting.

A sort is a permutation matrix with a row per rank and a column per document. NeuralSort relaxes it
(`grover2019neuralsort`): the row of rank r is a softmax with ``temperature`` T,

    P_r = softmax of z_rj / T,     z_rj = (n + 1 - 2 r) s_j - sum_l |s_j - s_l|                 (1)

and the metric, a sum over ranks of discount d by rank times gain b by document, uses the mean gain
of each row (`pobrotyn2021neuralndcg`):

    L(s) = best - sum_r d_r m_r,     m_r = sum_j P_rj b_j                                       (2)

As T approaches 0, (2) approaches the loss of the metric. The rows of (1) sum to 1, but the columns
do not: if scores are close, documents in the middle count at many ranks and those at the ends at
few, so that (2) falls when good documents move to the middle. ``sinkhorn`` rounds of scaling,
columns and then rows to a sum of 1, prevent this:

    P <- diag(u) P diag(v),     v_j = 1 / sum_r u_r P_rj,   then   u_r = 1 / sum_j P_rj v_j     (3)

The gradient is computed backwards through (3), with u and v of each round, and through (1). With
e_rj = dL/dP_rj for the P of (1), G_rj = dL/dz_rj, c_r = n + 1 - 2 r and S_j = sum_r G_rj,

    G_rj = P_rj (e_rj - sum_l P_rl e_rl)                                                        (4)
    T dL/ds_j = sum_r c_r G_rj - sum_l (S_j + S_l) sign(s_j - s_l)                              (5)

where tied documents have sign 0: the loss has kinks at ties. The differences in (1) grow with n, so
that T is in units of n scores. A query of n documents takes time and memory proportional to n^2.
The loss has no curvature of its own; the curvature is 1, which suits solvers but not Newton steps.

**Weights**: each document has one rank. Documents of weight 0 are removed, all others count alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parameters import CountOrZero, Positive
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss
from rankwright.losses.gain_lists import gain_lists
from rankwright.metrics.base import AnyMetric


@kernel
def _neural_ndcg(queries, indptr, s, lists, temperature, rounds, value, grad, curv):
    gain, discount, cut, best = lists.gain, lists.discount, lists.cut, lists.best
    for q in queries:
        start, end = indptr[q], indptr[q + 1]
        n, b = end - start, gain[start:end]
        x, d, m, vb = np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
        P, u, v = np.empty((n, n)), np.ones((rounds + 1, n)), np.ones((rounds + 1, n))
        for j in range(n):
            x[j] = (s[start + j] - s[start]) / temperature
        for r in range(cut[q]):
            d[r] = discount[r]
        _soft_sort(x, P)
        for t in range(1, rounds + 1):  # (3)
            _sum_over_ranks(P, u[t - 1], v[t])
            _invert(v[t])
            _sum_over_documents(P, v[t], u[t])
            _invert(u[t])
        for j in range(n):
            vb[j] = v[rounds, j] * b[j]
        _sum_over_documents(P, vb, m)
        value[q] = best[q]
        for r in range(n):
            value[q] -= d[r] * u[rounds, r] * m[r]  # (2)
        e = np.empty((n, n))
        _matrix_gradient(P, u, v, b, d, m, vb, e)
        _score_gradient(P, e, x, grad[start:end])
        for i in range(start, end):
            grad[i] /= temperature
            curv[i] = 1.0


@quick_kernel
def _soft_sort(x, P):
    """Write (1)."""
    n = len(x)
    for j in range(n):
        P[0, j] = 0.0
        for i in range(n):
            P[0, j] += abs(x[j] - x[i])
    for r in range(n - 1, -1, -1):  # row 0, which has the sums, last
        top, total = -np.inf, 0.0
        for j in range(n):
            P[r, j] = (n - 1 - 2 * r) * x[j] - P[0, j]
            top = max(top, P[r, j])
        for j in range(n):
            P[r, j] = math.exp(P[r, j] - top)
            total += P[r, j]
        for j in range(n):
            P[r, j] /= total


@quick_kernel
def _sum_over_documents(P, x, out):
    """Write sum_j P_rj x_j for each rank."""
    for r in range(len(x)):
        out[r] = 0.0
        for j in range(len(x)):
            out[r] += P[r, j] * x[j]


@quick_kernel
def _sum_over_ranks(P, x, out):
    """Write sum_r P_rj x_r for each document."""
    for j in range(len(x)):
        out[j] = 0.0
    for r in range(len(x)):
        for j in range(len(x)):
            out[j] += P[r, j] * x[r]


@kernel
def _invert(x):
    for i in range(len(x)):
        x[i] = 1.0 / x[i]


@kernel
def _matrix_gradient(P, u, v, b, d, m, vb, e):
    """Write dL/dP to ``e``, backwards from (2) through the rounds of (3)."""
    n, rounds = len(b), len(u) - 1
    du, dv, turn, back = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for r in range(n):
        du[r] = -d[r] * m[r]
        turn[r] = -d[r] * u[rounds, r]
        for j in range(n):
            e[r, j] = turn[r] * vb[j]
    _sum_over_ranks(P, turn, dv)
    for j in range(n):
        dv[j] *= b[j]
    for t in range(rounds, 0, -1):
        for r in range(n):
            turn[r] = -du[r] * u[t, r] ** 2
        _sum_over_ranks(P, turn, back)
        for j in range(n):
            dv[j] = -(dv[j] + back[j]) * v[t, j] ** 2
        _sum_over_documents(P, dv, du)
        for r in range(n):
            for j in range(n):
                e[r, j] += turn[r] * v[t, j] + u[t - 1, r] * dv[j]
        for j in range(n):
            dv[j] = 0.0


@kernel
def _score_gradient(P, e, x, out):
    """Write (5), times T; ``e`` becomes G of (4)."""
    n = len(x)
    sums = np.zeros(n)
    for r in range(n):
        mean = 0.0
        for j in range(n):
            mean += P[r, j] * e[r, j]
        for j in range(n):
            e[r, j] = P[r, j] * (e[r, j] - mean)  # (4)
            sums[j] += e[r, j]
            out[j] += (n - 1 - 2 * r) * e[r, j]
    for j in range(n):
        for i in range(n):
            if x[i] != x[j]:
                out[j] -= (sums[j] + sums[i]) * math.copysign(1.0, x[j] - x[i])  # (5)


@dataclass(frozen=True, slots=True, repr=False)
class NeuralNDCG(KernelLoss):
    """Loss of a ranking metric with a differentiable relaxation of sorting.

    Parameters
    ----------
    metric : str or Metric
        ndcg, dcg, p or another sum over ranks, with a cut-off as in ``ndcg@10``, under the standard
        convention.
    temperature : float
        Smoothness of the sort; small values approximate the metric.
    sinkhorn : int
        Rounds of scaling, after which every document counts at one rank in total.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.NeuralNDCG(temperature=0.5), model="linear")
    Ranker(loss=NeuralNDCG(temperature=0.5))
    """

    metric: AnyMetric = "ndcg"
    temperature: Positive = 1.0
    sinkhorn: CountOrZero = 10

    traits = Traits(smooth=False)
    run = staticmethod(_neural_ndcg)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the metric and the parameters."""
        lists = gain_lists("neural_ndcg", self.metric, data)
        return lists, float(self.temperature), int(self.sinkhorn)
