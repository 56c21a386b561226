"""Hinge on pairs: each better document is to lead each worse one by a margin (RankSVM, IR-SVM).

With w_i the weight of document i and c the weight of a pair of grades, the loss of a query is

    L(s) = sum over g_i > g_j of c(g_i, g_j) w_i w_j (margin - s_i + s_j)_+^p                   (1)

with p = 2 for ``form="squared"`` and p = 1 for ``form="hinge"`` (`joachims2002ranksvm`). A pair
counts m = min(1, g_i - g_j): 1 for whole grades, the difference for estimated relevance. With P the
number of pairs of a query, that is the sum of w_i w_j m over them, ``pairs`` chooses

    "uniform":  c = m                                                                           (2)
    "query":    c = m / P, the mean over the pairs; for two grades the area above the ROC curve's
                hinge, 1 / (relevant x others)                                                  (3)
    "ir":       c(a, b) = max over queries of P / P  x  what NDCG loses when a document of grade a
                and one of grade b trade places in the ideal list, on average over such pairs   (4)

(4) is `cao2006irsvm`'s. With G = 2^g - 1 and D(a) the mean discount 1/log2(rank + 1) of the places
that grade a has in the ideal list, the loss of NDCG is (G_a - G_b) (D(a) - D(b)) / IDCG. A document
of weight w has w places there; a fraction of a place counts as a fraction of its discount.

A pair counts where s_i < s_j + margin, so at the kink of the hinge it has derivative 0. Sums over
those pairs come from `losses.pair_sums` in O(n log n), or O(n x grades) for (4), and no pair is
listed. The curvature of p = 2 is an upper bound, as in `gbrank`: 4 w_i times the weight of the
partners of i bounds the Hessian as a matrix. That of p = 1 is w_i times the weight of the partners
over the margin, with which no step is longer than the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.gain_lists import total_discount
from rankwright.losses.old_base import NOTHING, KernelLoss, document_weight, exp2_of_grades
from rankwright.losses.pair_sums import (
    GradeBlocks,
    add_partners,
    add_weighted,
    find_wrong_pairs,
    sort_grades,
)


class _Terms(NamedTuple):
    w: F64  # of each place
    scale: F64  # of each query
    gain: F64  # of each block, for (4), or its grade for m; empty where all pairs count 1
    worth: F64  # of each block, for (4)
    margin: float
    squared: bool


class _Workspace(NamedTuple):
    """What the kernel leaves for the Hessian, by place, and scratch."""

    pairs: tuple[I64, I64, I64, F64]  # of `GradeBlocks.new_pairs`
    at: F64  # score
    x: F64
    n: F64  # weight of all partners
    behind: F64  # and of those of higher grades
    partners: F64  # sum of x over them


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, layout, terms, workspace, weight, value, grad, curv):
    rows, start, of_query = layout
    w, scale, gain, _, margin, squared = terms
    pairs, at, x, n, behind, partners = workspace
    curvature = 4.0 if squared else 1.0 / margin
    for q in range(lo, hi):
        centre = _mean(indptr[q], indptr[q + 1], s)  # sums of scores cancel where all are large
        for p in range(indptr[q], indptr[q + 1]):
            at[p] = s[rows[p]]
            x[p] = w[p] * (at[p] - centre)
        first, last = of_query[q], of_query[q + 1]
        if len(gain):
            sort_grades(first, last, start, at, pairs)
        else:
            find_wrong_pairs(first, last, start, at, margin, pairs)
        _add(first, last, start, at, terms, pairs, w, n, behind)
        _add(first, last, start, at, terms, pairs, x, partners, partners)
        factor, total = weight[q] * scale[q], 0.0
        for p in range(indptr[q], indptr[q + 1]):
            v = at[p] - centre
            derivative = behind[p] - n[p]  # as the worse one of a pair, and as the better one
            n[p] += behind[p]
            hinge = 0.5 * margin * n[p] + derivative * v  # half of each pair at either document
            pull = 2.0 * (margin * derivative + n[p] * v - partners[p])
            total += w[p] * (margin * hinge + 0.5 * pull * v if squared else hinge)  # (1)
            if len(grad):
                grad[rows[p]] = factor * w[p] * (pull if squared else derivative)
            if len(curv):
                curv[rows[p]] = factor * w[p] * n[p] * curvature
        value[q] = factor * max(total, 0.0)


@kernel
def _hessian(lo, hi, indptr, _s, layout, terms, workspace, weight, u, out):
    """Write the Hessian times u, from the pairs and the weights of partners found at s."""
    rows, start, of_query = layout
    w, scale = terms.w, terms.scale
    pairs, at, x, n, _, partners = workspace
    for q in range(lo, hi):
        for p in range(indptr[q], indptr[q + 1]):
            x[p] = w[p] * u[rows[p]]
        first, last = of_query[q], of_query[q + 1]
        _add(first, last, start, at, terms, pairs, x, partners, partners)
        factor = 2.0 * weight[q] * scale[q]
        for p in range(indptr[q], indptr[q + 1]):
            out[rows[p]] = factor * (n[p] * x[p] - w[p] * partners[p])


@kernel
def _add(first, last, start, at, terms, pairs, x, lower, higher):
    """Sum x over the partners of each document, weighed by m or (4) where there is a gain."""
    if len(terms.gain):
        both = (terms.gain, terms.worth)
        add_weighted(first, last, start, at, terms.margin, pairs, both, x, lower, higher)
    else:
        add_partners(first, last, start, pairs, x, lower, higher)


@kernel
def _mean(lo, hi, s):
    """Return the mean of lo:hi, counted from the first."""
    total = 0.0
    for i in range(lo, hi):
        total += s[i] - s[lo]
    return s[lo] + total / (hi - lo) if lo < hi else 0.0


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class PairHinge(Part):
    """Hinge or squared hinge on every pair of documents of different grades.

    Parameters
    ----------
    form : "squared" or "hinge"
        What a missing part of the margin costs: its square, which is smooth, or itself.
    margin : float
        The lead that a better document is to have.
    pairs : "uniform", "query" or "ir"
        Weight of a pair: 1, or the difference of its grades where that is smaller, as between
        estimates of relevance; the same over the sum in its query; or IR-SVM's, by query and by
        what NDCG would lose.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PairHinge(pairs="query"), model="linear")
    Ranker(loss=PairHinge(pairs='query'))
    """

    form: Literal["squared", "hinge"] = "squared"
    margin: Positive = 1.0
    pairs: Literal["uniform", "query", "ir"] = "uniform"

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        squared = self.form == "squared"
        return Traits(smooth=squared, convex=True)

    def largest(self, data: RankingData) -> float:
        """Return the most pairs that a query has, which (4) asks for."""
        blocks = GradeBlocks.of(data)
        pairs = blocks.pair_weight(document_weight(data)[blocks.rows])
        return float(pairs.max(initial=0.0))

    def bind(
        self, data: RankingData, *, largest: float | None = None, n_jobs: int | None = None
    ) -> BoundLoss:
        """Prepare the loss for one data set.

        Parameters
        ----------
        largest
            `largest` of all data, where ``data`` are a part of them.
        """
        self._check()
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        gain, worth = blocks.grade if blocks.fractional else NOTHING, NOTHING
        scale = np.ones(data.n_queries)  # (2)
        if self.pairs != "uniform":
            scale = blocks.pair_share(w)  # (3)
        if self.pairs == "ir":
            most = blocks.pair_weight(w).max(initial=0.0) if largest is None else largest
            scale = scale * most
            gain, worth = _gain_and_worth(data, blocks, w)  # (4)
        squared = self.form == "squared"
        return KernelLoss(
            _queries,
            data,
            blocks.layout,
            _Terms(w, scale, gain, worth, float(self.margin), squared),
            _Workspace(blocks.new_pairs(), *np.empty((5, data.n_documents))),
            curvature=True,
            hessian=_hessian if squared else None,
            n_jobs=n_jobs,
        )

    def _check(self) -> None:
        check_parameters(self)


def _gain_and_worth(data: RankingData, blocks: GradeBlocks, w: F64) -> tuple[F64, F64]:
    """Return G / IDCG and D of each block; the product of their differences is (4)'s loss."""
    query, weight, top = blocks.query(), blocks.weight(w), blocks.better_weight(w)
    gain = exp2_of_grades(data)[blocks.rows[blocks.start[:-1]]] - 1.0
    worth = total_discount(top + weight) - total_discount(top)
    ideal = np.bincount(query, gain * worth, data.n_queries)[query]
    mean_worth = np.divide(worth, weight, out=np.zeros(len(worth)), where=weight > 0.0)
    return np.divide(gain, ideal, out=np.zeros(len(gain)), where=ideal > 0.0), mean_worth
