"""Exponential loss on pairs of documents of different grades (RankBoost).

With w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j exp(s_j - s_i)                                       (1)

(`freund2003rankboost`), and a pair counts m = min(1, g_i - g_j): 1 for integer grades, the
difference for estimated relevance. If m = 1 for all pairs, the sums over the pairs of a document
with lower and with higher grades are products,

    push_i = w_i exp(-s_i) x sum of w_j exp(s_j) over lower grades                              (2)
    pull_j = w_j exp(s_j) x sum of w_i exp(-s_i) over higher grades                             (3)

so running sums from grade to grade give the value sum_j pull_j, the gradient pull - push and the
exact diagonal of the Hessian pull + push in O(n). All terms are positive, so nothing cancels.
``normalize=True`` divides the loss of each query by the sum of m w_i w_j over its pairs.

For s_j - s_i above 600, the tangent replaces exp, so that the loss stays finite and convex. Queries
whose scores spread that far are summed pair by pair, and so are all queries if some grades are less
than 1 apart.

A rule h with values 0 and 1 changes each term of (1) by a factor exp(a), exp(-a) or 1. With
r = -(derivative of L along h) / L, L(s + a h) is at most L ((1 - r) exp(a) + (1 + r) exp(-a)) / 2.
The minimum of this bound,

    a = 1/2 ln((1 + r) / (1 - r)),                                                              (4)

is RankBoost's step. It reduces L at least by a factor of sqrt(1 - r^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight, order_weight
from rankwright.losses.pair_sums import GradeBlocks, preference, score_range

_FAR = 600.0
_SURE = 1.0 - 1e-6  # a rule without errors gets a weight of 7.25 instead of infinity


@kernel
def _pair_exp(queries, indptr, s, layout, w, grade, fractional, work, value, grad, curv):
    rows, start, of_query = layout
    for q in queries:
        first, last = of_query[q], of_query[q + 1]
        low, high = score_range(indptr[q], indptr[q + 1], s, rows)
        if fractional or high - low > _FAR:
            value[q] = _pair_by_pair(first, last, start, rows, s, w, grade, grad, curv)
        else:
            middle = 0.5 * (low + high)
            value[q] = _grade_by_grade(first, last, start, rows, s, w, middle, work, grad, curv)


@kernel
def _grade_by_grade(first, last, start, rows, s, w, middle, work, grad, curv):
    """Add (2) and (3) to gradient and curvature and return (1), if all pairs count 1."""
    up, down = work
    below = above = total = 0.0
    for b in range(last - 1, first - 1, -1):
        for p in range(start[b], start[b + 1]):
            lead = math.exp(s[rows[p]] - middle)
            up[p], down[p] = w[p] * lead, w[p] / lead
            push = down[p] * below  # (2)
            grad[rows[p]] -= push
            curv[rows[p]] += push
        for p in range(start[b], start[b + 1]):
            below += up[p]
    for b in range(first, last):
        for p in range(start[b], start[b + 1]):
            pull = up[p] * above  # (3)
            grad[rows[p]] += pull
            curv[rows[p]] += pull
            total += pull
        for p in range(start[b], start[b + 1]):
            above += down[p]
    return total


@kernel
def _pair_by_pair(first, last, start, rows, s, w, grade, grad, curv):
    """Do the same with m, and with the tangent of exp above 600."""
    total = 0.0
    for b in range(first, last):
        for p in range(start[b], start[b + 1]):
            i = rows[p]
            for k in range(start[b + 1], start[last]):
                j = rows[k]
                gap = s[j] - s[i]
                term = preference(grade[p], grade[k]) * w[p] * w[k] * math.exp(min(gap, _FAR))
                grad[i] -= term
                grad[j] += term
                curv[i] += term
                curv[j] += term
                total += term * (1.0 + max(gap - _FAR, 0.0))  # (1)
    return total


@dataclass(frozen=True, slots=True, repr=False)
class PairExp(KernelLoss):
    """Exponential loss on every pair of documents of different grades.

    A pair of grades less than 1 apart, such as relevance estimated from clicks, is weighted by the
    difference.

    Parameters
    ----------
    normalize : bool
        Use the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PairExp(normalize=True), model="linear")
    Ranker(loss=PairExp(normalize=True))
    """

    normalize: bool = False

    traits = Traits(convex=True)
    run = staticmethod(_pair_exp)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the documents by grade with weights and grades, and work arrays."""
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        work = tuple(np.empty((2, data.n_documents)))
        return blocks.layout, w, blocks.place_grade(), blocks.fractional, work

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query, with ``normalize`` divided by its weight of pairs."""
        weight = order_weight(data)
        if self.normalize:
            blocks = GradeBlocks.of(data)
            weight *= blocks.pair_share(document_weight(data)[blocks.rows])
        return weight

    @staticmethod
    def rule_step(value: float, derivative: float) -> float:
        """Return RankBoost's weight (4) of a rule, from the loss and its derivative along it."""
        r = min(max(-derivative / value, -_SURE), _SURE)
        return 0.5 * math.log((1.0 + r) / (1.0 - r))
