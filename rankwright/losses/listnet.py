"""Cross entropy between the top-one, or top-k, probabilities of grades and of scores (ListNet).

The probability of being sampled first is P_i = w_i exp(s_i) / sum_j w_j exp(s_j), with w_i the
weight of document i. With shares t_i of the grades, the loss of a query is

    L(s) = - sum_i t_i log(P_i / w_i) = sum_i t_i (log sum_j w_j exp(s_j) - s_i)                (1)

with gradient T P_i - t_i and curvature T P_i (1 - P_i), exact, where T = sum_i t_i; the Hessian
times v is T P_i (v_i - sum_j P_j v_j). The shares are

    target="softmax":  t_i = w_i exp(g_i) / sum_j w_j exp(g_j)                                  (2)
    target="gain":     t_i = w_i (2^g_i - 1) / IDCG                                             (3)

(2) is ListNet's (`cao2007listnet`); (3) weighs documents by what they add to NDCG. IDCG is that of
the documents of the query, each taken once whatever its weight unless that is 0, with discount
1/log2(rank + 1).

``k`` above 1 is the cross entropy over the first k ranks, sampled one after the other from those
that are left: with T(pi) the probability under the shares (2) that the first documents are pi,

    L(s) = sum over orders pi of fewer than k documents of T(pi) L_rest(s)                      (4)

where L_rest is (1) for the documents not in pi; a document is sampled once, and a weight counts as
chances to be sampled. All orders are visited where a query has at most 10,000 of k - 1 documents.
With ``samples`` = m, m orders of k - 1 documents sampled from the grades take their place, anew in
each round (a hash of seed, round, query number, sample and position): (4) is a mean over the
grades' own samples, so this is right on average, and convex in any round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Count, CountOrZero, Part, check_parameters
from rankwright.core.team import shared_range, team_max, team_sum
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    KernelLoss,
    SampledLoss,
    document_weight,
    exp2_of_grades,
    new_random_key,
    present_documents,
)
from rankwright.losses.top_k import (
    MOST_ORDERS,
    TopKTerms,
    top_k_hessian,
    top_k_queries,
)
from rankwright.metrics.base import warn_of_huge_gains

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, t, w, weight, value, grad, curv):
    for q in range(lo, hi):
        top, z = _softmax_of(indptr[q], indptr[q + 1], s, w)
        shares = total = 0.0
        for i in shared_range(indptr[q], indptr[q + 1]):
            if w[i] > 0.0:
                shares += t[i]
                total += t[i] * (top - s[i])
        shares, total = team_sum(shares), team_sum(total)
        value[q] = weight[q] * (total + shares * math.log(z)) if z > 0.0 else 0.0  # (1)
        if len(grad):
            for i in shared_range(indptr[q], indptr[q + 1]):
                p = w[i] * math.exp(s[i] - top) / z if w[i] > 0.0 else 0.0
                grad[i] = weight[q] * (shares * p - t[i])
                if len(curv):
                    curv[i] = weight[q] * shares * p * (1.0 - p)


@kernel
def _softmax_of(lo, hi, s, w):
    """Return the highest score and, relative to its exponential, the sum of all."""
    top = -np.inf
    for i in shared_range(lo, hi):
        if w[i] > 0.0:
            top = max(top, s[i])
    top, z = team_max(top), 0.0
    for i in shared_range(lo, hi):
        if w[i] > 0.0:
            z += w[i] * math.exp(s[i] - top)
    return top, team_sum(z)


@kernel
def _hessian(lo, hi, indptr, s, t, w, weight, v, out):
    for q in range(lo, hi):
        top, z = _softmax_of(indptr[q], indptr[q + 1], s, w)
        shares = mean = 0.0
        for i in shared_range(indptr[q], indptr[q + 1]):
            out[i] = w[i] * math.exp(s[i] - top) / z if w[i] > 0.0 else 0.0
            shares += t[i] if w[i] > 0.0 else 0.0
            mean += out[i] * v[i]
        shares, mean = team_sum(shares), team_sum(mean)
        for i in shared_range(indptr[q], indptr[q + 1]):
            out[i] *= weight[q] * shares * (v[i] - mean)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class ListNet(Part):
    """Cross entropy of the softmax of the scores against the shares of the grades.

    Parameters
    ----------
    target : "softmax" or "gain"
        Shares of the documents: the softmax of their grades, or 2^grade - 1 over the ideal DCG.
    k : int
        How many ranks the probabilities are of; above 1 with the softmax alone.
    samples : int
        For k above 1, how many orders are sampled in each round; 0 visits all.
    random_state : int
        Of the samples.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ListNet(k=2), model="linear")
    Ranker(loss=ListNet(k=2))
    """

    target: Literal["softmax", "gain"] = "softmax"
    k: Count = 1
    samples: CountOrZero = 0
    random_state: int = 0

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        sampled = self.k > 1 and self.samples > 0
        return Traits(
            family="listwise",
            queries=True,
            convex=True,
            curvature=True,
            hess_vec=True,
            stochastic=sampled,
        )

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        seen = present_documents(data)
        self._check(seen)
        w = document_weight(seen)
        options: dict[str, Any] = {"curvature": True, "present": seen, "n_jobs": n_jobs}
        if self.k > 1:
            random_key = new_random_key(self.random_state)
            terms = TopKTerms(seen.y, w, int(self.k), int(self.samples), random_key)
            return SampledLoss(
                random_key,
                top_k_queries,
                data,
                terms,
                hessian=top_k_hessian,
                **options,
            )
        t = _softmax_shares(seen, w) if self.target == "softmax" else _gain_shares(seen, w)
        return KernelLoss(_queries, data, t, w, hessian=_hessian, team=True, **options)

    def _check(self, data: RankingData) -> None:
        check_parameters(self)
        if self.k > 1 and self.target != "softmax":
            raise UsageError("listnet's k above 1 needs target='softmax'.")
        if self.target == "softmax":
            warn_of_huge_gains(data.y.max(initial=0.0), "targets of e^grade")
        longest = int(data.sizes.max(initial=0))
        if self.k > 1 and not self.samples and math.perm(longest, int(self.k) - 1) > MOST_ORDERS:
            raise UsageError(
                f"listnet's k={self.k} visits too many orders of the {longest} documents of query "
                f"{data.qid[int(np.argmax(data.sizes))]}. Use samples=32, or a smaller k."
            )


def _softmax_shares(data: RankingData, w: F64) -> F64:
    query = data.query_of_row()
    highest = np.full(data.n_queries, -np.inf)
    np.maximum.at(highest, query, data.y)
    mass = w * np.exp(data.y - highest[query])
    total = np.bincount(query, mass, data.n_queries)[query]
    shares: F64 = mass / np.where(total > 0.0, total, 1.0)  # (2)
    return shares


def _gain_shares(data: RankingData, w: F64) -> F64:
    query = data.query_of_row()
    gain = exp2_of_grades(data) - 1.0
    rank = np.arange(data.n_documents) - data.indptr[query]
    best_first = gain[np.lexsort((-gain, query))]
    ideal = np.bincount(query, best_first / np.log2(rank + 2.0), data.n_queries)[query]
    return w * gain / np.where(ideal > 0.0, ideal, 1.0)  # (3)
