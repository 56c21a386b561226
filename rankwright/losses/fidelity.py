"""Fidelity loss on pairs of documents of different grades (FRank).

With p = 1 / (1 + exp(s_j - s_i)), the probability that the better document i leads, q what it is to
be, and w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of w_i w_j (1 - sqrt(p q) - sqrt((1 - p) (1 - q)))                (1)

(`tsai2007frank`, with q = 1 for pairs of different grades). A pair costs between 0 and 1 however
wrong it is, so a few hopeless pairs do not decide the ranking; the loss is not convex. With
a = sqrt(p q) (1 - p) / 2 and b = sqrt((1 - p) (1 - q)) p / 2 a pair adds b - a to the gradient of
i and a - b to that of j. Its second derivative is at most a + b, which is added to the curvature of
both: no step of gradient / curvature is longer than 1. ``normalize=True`` divides the loss of each
query by the sum of w_i w_j over its pairs.

O(n^2) pairs a query, with one exponential for each document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parameters import Part
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import KernelLoss, document_weight
from rankwright.losses.pair_sums import GradeBlocks, score_range

_FAR = 600.0


class _Terms(NamedTuple):
    w: F64  # of each place
    scale: F64  # of each query
    roots: tuple[float, float]  # of q and of 1 - q


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, layout, terms, sums, weight, value, grad, curv
):
    rows, start, of_query = layout
    w, scale, roots = terms
    lead, ratio, gradient, curvature = sums
    for q in range(lo, hi):
        begin, end, total = indptr[q], indptr[q + 1], 0.0
        gradient[begin:end] = 0.0
        curvature[begin:end] = 0.0
        factor = weight[q] * scale[q]
        if factor > 0.0:
            wide = _load(begin, end, s, rows, lead)
            for b in range(of_query[q], of_query[q + 1] - 1):
                below = slice(start[b + 1], end)
                for p in range(start[b], start[b + 1]):
                    if wide:
                        _set_ratio(p, start[b + 1], end, s, rows, ratio)
                    own, others = (1.0, ratio[below]) if wide else (lead[p], lead[below])
                    missed, down, curved = _add_row(
                        own, others, w[p], w[below], roots, gradient[below], curvature[below]
                    )
                    total += missed
                    gradient[p] -= down
                    curvature[p] += curved
        value[q] = factor * total
        for p in range(begin, end):
            if len(grad):
                grad[rows[p]] = factor * gradient[p]
            if len(curv):
                curv[rows[p]] = factor * curvature[p]


@kernel
def _load(begin, end, s, rows, lead):  # type: ignore[no-untyped-def]
    """Write exp of each score; return whether they are too far apart for that."""
    low, high = score_range(begin, end, s, rows)
    if high - low > _FAR:
        return True
    for p in range(begin, end):
        lead[p] = math.exp(s[rows[p]] - 0.5 * (low + high))
    return False


@kernel
def _set_ratio(p, begin, end, s, rows, ratio):  # type: ignore[no-untyped-def]
    """Write exp of how far each document leads document p, within what a float holds."""
    for j in range(begin, end):
        ratio[j] = math.exp(min(max(s[rows[j]] - s[rows[p]], -_FAR), _FAR))


@quick_kernel
def _add_row(own, others, weight, weights, roots, gradient, curvature):  # type: ignore[no-untyped-def]
    """Pair a document with all of lower grades; return its loss, gradient and curvature."""
    hit, miss = roots
    total = down = curved = 0.0
    for j in range(len(others)):
        whole = 1.0 / (own + others[j])
        p, c = own * whole, others[j] * whole
        root, other_root = math.sqrt(p), math.sqrt(c)
        pair = weight * weights[j]
        a, b = 0.5 * hit * root * c * pair, 0.5 * miss * other_root * p * pair
        # 1 - sqrt(p q) - sqrt(c (1 - q)), as half of squares that do not cancel            (1)
        total += 0.5 * pair * ((root - hit) ** 2 + (other_root - miss) ** 2)
        gradient[j] += a - b
        curvature[j] += a + b
        down += a - b
        curved += a + b
    return total, down, curved


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Fidelity(Part):
    """Fidelity loss on every pair of documents of different grades.

    Parameters
    ----------
    confidence : float
        The probability q with which a better document is to lead, above 1/2.
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    """

    confidence: float = 1.0
    normalize: bool = False

    traits: ClassVar[Traits] = Traits(family="pairwise", queries=True, curvature=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        if not (isinstance(self.confidence, Real) and 0.5 < self.confidence <= 1.0):
            raise UsageError(
                f"fidelity's confidence must be above 0.5 and at most 1, not {self.confidence}."
            )
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        scale = blocks.pair_share(w) if self.normalize else np.ones(data.n_queries)
        roots = math.sqrt(self.confidence), math.sqrt(1.0 - self.confidence)
        sums = np.empty((4, data.n_documents))
        args = (blocks.layout, _Terms(w, scale, roots), sums)
        return KernelLoss(_queries, data, *args, curvature=True, n_jobs=n_jobs)
