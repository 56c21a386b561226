"""Hinge on pairs: the better document should lead the worse one by a margin (RankSVM, IR-SVM).

With w_i the weight of document i and c the weight of a pair of grades, the loss of a query is

    L(s) = sum over g_i > g_j of c(g_i, g_j) w_i w_j (margin - s_i + s_j)_+^p                   (1)

with p = 2 for ``form="squared"`` and p = 1 for ``form="hinge"`` (`joachims2002ranksvm`). A pair
counts m = min(1, g_i - g_j): 1 for integer grades, the difference for estimated relevance. With P
the sum of w_i w_j m over the pairs of a query, ``pairs`` chooses

    "uniform":  c = m                                                                           (2)
    "query":    c = m / P, the mean over the pairs; for two grades, the hinge of the area above the
                ROC curve, 1 / (relevant x others)                                              (3)
    "ir":       c(a, b) = max over queries of P / P  x  the mean loss of NDCG if a document of grade
                a and one of grade b are swapped in the ideal list                              (4)

(4) is that of `cao2006irsvm`. With G = 2^g - 1 and D(a) the mean discount 1/log2(rank + 1) of the
ranks of grade a in the ideal list, the loss of NDCG is (G_a - G_b) (D(a) - D(b)) / IDCG. A document
of weight w has w ranks there; a fraction of a rank counts as a fraction of its discount.

A pair counts if s_i < s_j + margin, so at the kink of the hinge its derivative is 0. The sums over
these pairs come from `losses.pair_sums` in O(n log n), or O(n x grades) for (4); pairs are not
listed. The curvature for p = 2 is an upper bound, as in `gbrank`: 4 w_i times the weight of the
partners of i bounds the Hessian as a matrix. For p = 1 it is w_i times the weight of the partners
over the margin, so that no step is longer than the margin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Positive
from rankwright.core.types import F64, I64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import (
    BoundKernel,
    KernelLoss,
    document_weight,
    exp2_of_grades,
    order_weight,
)
from rankwright.losses.gain_lists import total_discount
from rankwright.losses.pair_sums import (
    GradeBlocks,
    add_partners,
    add_weighted,
    find_wrong_pairs,
    sort_grades,
)


class _PairWeights(NamedTuple):
    gain: F64  # G / IDCG of each grade of a query for (4), the grade for m; empty if m is always 1
    worth: F64  # D of each grade of a query for (4), otherwise empty


class _Work(NamedTuple):
    """Arrays by place, which the kernel leaves for the Hessian."""

    pairs: tuple[I64, I64, I64, F64]  # of `GradeBlocks.new_pairs`
    at: F64  # scores
    x: F64
    n: F64  # weight of all partners
    behind: F64  # weight of the partners of higher grades
    partners: F64  # sum of x over all partners


@kernel
def _pair_hinge(queries, indptr, s, layout, w, pair, margin, squared, work, value, grad, curv):
    rows, start, of_query = layout
    pairs, at, x, n, behind, partners = work
    bound = 4.0 if squared else 1.0 / margin
    for q in queries:
        a, b = indptr[q], indptr[q + 1]
        centre = 0.0  # without it, sums of scores would cancel if all are large
        for i in range(a, b):
            centre += s[i] - s[a]
        centre = s[a] + centre / (b - a)
        for p in range(a, b):
            at[p] = s[rows[p]]
            x[p] = w[p] * (at[p] - centre)
        if len(pair.gain):
            sort_grades(of_query[q], of_query[q + 1], start, at, pairs)
        else:
            find_wrong_pairs(of_query[q], of_query[q + 1], start, at, margin, pairs)
        _add(q, layout, at, pair, margin, pairs, w, n, behind)
        _add(q, layout, at, pair, margin, pairs, x, partners, partners)
        for p in range(a, b):
            v = at[p] - centre
            slope = behind[p] - n[p]  # of the hinge
            n[p] += behind[p]
            hinge = 0.5 * margin * n[p] + slope * v  # each pair is divided between its documents
            pull = 2.0 * (margin * slope + n[p] * v - partners[p])
            value[q] += w[p] * (margin * hinge + 0.5 * pull * v if squared else hinge)  # (1)
            grad[rows[p]] = w[p] * (pull if squared else slope)
            curv[rows[p]] = w[p] * n[p] * bound
        value[q] = max(value[q], 0.0)


@kernel
def _hessian(queries, indptr, _s, layout, w, pair, margin, _squared, work, u, out):
    rows = layout.rows
    pairs, at, x, n, _, partners = work
    for q in queries:
        for p in range(indptr[q], indptr[q + 1]):
            x[p] = w[p] * u[rows[p]]
        _add(q, layout, at, pair, margin, pairs, x, partners, partners)
        for p in range(indptr[q], indptr[q + 1]):
            out[rows[p]] = 2.0 * (n[p] * x[p] - w[p] * partners[p])


@kernel
def _add(q, layout, at, pair, margin, pairs, x, lower, higher):
    """Sum x over the partners of each document, weighted by m or (4) if not all pairs count 1."""
    _, start, of_query = layout
    first, last = of_query[q], of_query[q + 1]
    if len(pair.gain):
        add_weighted(first, last, start, at, margin, pairs, pair, x, lower, higher)
    else:
        add_partners(first, last, start, pairs, x, lower, higher)


@dataclass(frozen=True, slots=True, repr=False)
class PairHinge(KernelLoss):
    """Hinge or squared hinge on every pair of documents of different grades.

    Parameters
    ----------
    form : "squared" or "hinge"
        Cost of the missing part of the margin: its square, which is smooth, or the part itself.
    margin : float
        Difference of scores that a better document should have to a worse one.
    pairs : "uniform", "query" or "ir"
        Weight of a pair: 1, or the difference of its grades if that is smaller, as for estimated
        relevance; the same divided by the sum in its query; or that of IR-SVM, which depends on the
        query and on the loss of NDCG.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PairHinge(pairs="query"), model="linear")
    Ranker(loss=PairHinge(pairs='query'))
    """

    form: Literal["squared", "hinge"] = "squared"
    margin: Positive = 1.0
    pairs: Literal["uniform", "query", "ir"] = "uniform"

    run = staticmethod(_pair_hinge)

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        return Traits(smooth=self.form == "squared", convex=True)

    @property
    def hessian(self) -> Callable[..., None] | None:
        """Kernel of products with the Hessian of the squared hinge."""
        return _hessian if self.form == "squared" else None

    def largest(self, data: RankingData) -> float:
        """Return the largest P of a query, which (4) needs; 0 for other weights of pairs."""
        if self.pairs != "ir":
            return 0.0
        blocks = GradeBlocks.of(data)
        pairs = blocks.pair_weight(document_weight(data)[blocks.rows])
        return float(pairs.max(initial=0.0))

    def bind(
        self, data: RankingData, *, largest: float | None = None, n_jobs: int | None = None
    ) -> BoundKernel:
        """Prepare the loss for one data set.

        Parameters
        ----------
        largest
            `largest` of all data, if ``data`` is a part of it.
        """
        bound = KernelLoss.bind(self, data, n_jobs=n_jobs)
        if self.pairs == "ir":
            bound.terms[2].gain[:] *= self.largest(data) if largest is None else largest  # (4)
        return bound

    def query_weight(self, data: RankingData) -> F64:
        """Return the weight of each query, divided by P in (3) and (4)."""
        weight = order_weight(data)
        if self.pairs != "uniform":
            blocks = GradeBlocks.of(data)
            weight *= blocks.pair_share(document_weight(data)[blocks.rows])
        return weight

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return documents by grade, weights, margin, form and work arrays."""
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        none = np.empty(0)
        pair = _PairWeights(blocks.grade if blocks.fractional else none, none)
        if self.pairs == "ir":
            pair = _gain_and_worth(data, blocks, w)
        work = _Work(blocks.new_pairs(), *np.empty((5, data.n_documents)))
        return blocks.layout, w, pair, float(self.margin), self.form == "squared", work


def _gain_and_worth(data: RankingData, blocks: GradeBlocks, w: F64) -> _PairWeights:
    """Return G / IDCG and D of each grade of a query; (4) has the product of their differences."""
    query, weight, top = blocks.query(), blocks.weight(w), blocks.better_weight(w)
    gain = exp2_of_grades(data)[blocks.rows[blocks.start[:-1]]] - 1.0
    worth = total_discount(top + weight) - total_discount(top)
    ideal = np.bincount(query, gain * worth, data.n_queries)[query]
    return _PairWeights(gain / np.where(ideal > 0.0, ideal, 1.0), worth / weight)
