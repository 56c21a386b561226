"""ListNet: cross entropy between the top-one (or top-k) probabilities of labels and of scores.

The probability of document i to be sampled first is P_i = w_i exp(s_i) / sum_j w_j exp(s_j), with
w_i the weight of the document. With target shares t_i, the loss of a query is

    L(s)       = sum_i t_i (log sum_j w_j exp(s_j) - s_i)                                       (1)
    dL/ds_i    = T P_i - t_i,     T = sum_i t_i                                                 (2)
    d2L/ds_i^2 = T P_i (1 - P_i)                                                                (3)

and the targets are

    target="softmax":  t_i = w_i exp(g_i) / sum_j w_j exp(g_j)                                  (4)
    target="gain":     t_i = w_i (2^g_i - 1) / IDCG                                             (5)

(4) is ListNet's (`cao2007listnet`). (5) weights documents by their share of NDCG; IDCG is that of
the documents of the query, each counted once, with discount 1/log2(rank + 1).

``k`` above 1 is the cross entropy over the first k ranks, which are sampled one after the other
without replacement. With T(pi) the probability under (4) that the first documents are pi,

    L(s) = sum over orders pi of fewer than k documents of T(pi) L_rest(s)                      (6)

where L_rest is (1) for the documents not in pi. All orders are visited if a query has at most
10,000 orders of k - 1 documents. With ``samples`` = m, m orders of k - 1 documents are sampled
from the labels instead, in each iteration (a hash of seed, iteration, query number, sample and
position). Its expectation is (6), and each sample is convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Count, CountOrZero
from rankwright.core.team import shared_range, team_sum
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    BoundKernel,
    BoundSample,
    KernelLoss,
    document_weight,
    exp2_of_grades,
    exponentials,
    new_random_key,
)
from rankwright.losses.top_k import MOST_ORDERS, top_k_queries
from rankwright.metrics.base import warn_of_huge_gains


@kernel
def softmax_cross_entropy(queries, indptr, s, t, w, value, grad, curv):
    """Compute (1) to (3)."""
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        top, z = exponentials(a, b, s, w, grad)
        shares = loss = 0.0
        for i in shared_range(a, b):
            shares += t[i]
            loss += t[i] * (top - s[i])
        shares, loss = team_sum(shares), team_sum(loss)
        value[q] = loss + shares * math.log(z)  # (1)
        for i in shared_range(a, b):
            p = grad[i] / z
            grad[i] = shares * p - t[i]  # (2)
            curv[i] = shares * p * (1.0 - p)  # (3)


@dataclass(frozen=True, slots=True, repr=False)
class ListNet(KernelLoss):
    """Cross entropy between the softmax of the scores and shares of the labels.

    Parameters
    ----------
    target : "softmax" or "gain"
        Shares of the documents: the softmax of their labels, or 2^label - 1 over the ideal DCG.
    k : int
        Number of ranks in the probabilities; above 1 with target="softmax" only.
    samples : int
        For k above 1, number of orders that each iteration samples; 0 visits all orders.
    random_state : int
        Seed of the samples.

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
        """Properties of the loss with these parameters."""
        return Traits(convex=True, stochastic=self.k > 1 and self.samples > 0)

    @property
    def run(self) -> Any:
        """Kernel of value, gradient and curvature."""
        return top_k_queries if self.k > 1 else softmax_cross_entropy

    @property
    def bound_class(self) -> type[BoundKernel]:
        """Class of the loss on a data set."""
        return BoundSample if self.k > 1 else BoundKernel

    def check(self) -> None:
        """Raise for a target that the first k ranks do not have."""
        if self.k > 1 and self.target != "softmax":
            raise UsageError("listnet's k above 1 needs target='softmax'.")

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return t and w of (1), or the labels and parameters of (6)."""
        w = document_weight(data)
        if self.target == "gain":
            return _gain_shares(data, w), w
        warn_of_huge_gains(data.y.max(initial=0.0), "targets of e^grade")
        if self.k == 1:
            return softmax_by_query(data, w), w
        longest = int(data.sizes.max(initial=0))
        if not self.samples and math.perm(longest, int(self.k) - 1) > MOST_ORDERS:
            raise UsageError(
                f"listnet's k={self.k} visits too many orders of the {longest} documents of query "
                f"{data.qid[int(np.argmax(data.sizes))]}. Use samples=32, or a smaller k."
            )
        return new_random_key(self.random_state), data.y, w, int(self.k), int(self.samples)


def softmax_by_query(data: RankingData, w: F64) -> F64:
    """Return the weighted softmax of the labels of each query: (4)."""
    query = data.query_of_row()
    highest = np.full(data.n_queries, -np.inf)
    np.maximum.at(highest, query, data.y)
    mass = w * np.exp(data.y - highest[query])
    shares: F64 = mass / np.bincount(query, mass, data.n_queries)[query]
    return shares


def _gain_shares(data: RankingData, w: F64) -> F64:
    query = data.query_of_row()
    gain = exp2_of_grades(data) - 1.0
    rank = np.arange(data.n_documents) - data.indptr[query]
    best_first = gain[np.lexsort((-gain, query))]
    ideal = np.bincount(query, best_first / np.log2(rank + 2.0), data.n_queries)[query]
    return w * gain / np.where(ideal > 0.0, ideal, 1.0)  # (5)
