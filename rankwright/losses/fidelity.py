"""Fidelity loss on pairs of documents of different grades (FRank).

With p = 1 / (1 + exp(s_j - s_i)), the probability that the better document i leads, q what it is to
be, and w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j (1 - sqrt(p q) - sqrt((1 - p) (1 - q)))              (1)

(`tsai2007frank`, with q = 1 for pairs of different grades), where a pair counts m = min(1, g_i -
g_j): 1 for whole grades, the difference for estimated relevance. A pair costs between 0 and 1
however wrong it is, so a few hopeless pairs do not decide the ranking; the loss is not convex. With
a = sqrt(p q) (1 - p) / 2 and b = sqrt((1 - p) (1 - q)) p / 2 a pair adds b - a to the gradient of i
and a - b to that of j. Its second derivative is at most a + b, which is added to the curvature of
both: no step of gradient / curvature is longer than 1. ``normalize=True`` divides the loss of each
query by the sum of w_i w_j over its pairs.

O(n^2) pairs a query, with one exponential for each document. On the CPU, a list of 2,048 documents
or more is summed up by `losses.score_sums`, in O(n) and to 1e-13 of the same, unless its scores are
a thousand apart or grades are less than 1 apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.kernels import sigmoid
from rankwright.core.parameters import Part, check_parameters
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.old_base import KernelLoss, document_weight
from rankwright.losses.pair_sums import GradeBlocks, score_range
from rankwright.losses.score_sums import (
    LONG,
    NODES,
    add_higher,
    add_lower,
    count_cells,
    different_grades,
    make_coefficients,
    new_cells,
    new_values,
    node_gap,
)

_FAR = 600.0


class _Terms(NamedTuple):
    w: F64  # of each place
    scale: F64  # of each query
    roots: tuple[float, float]  # of q and of 1 - q
    grade: F64  # of each place


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, layout, terms, sums, weight, value, grad, curv):
    rows, start, of_query = layout
    w, scale, roots, grade = terms
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
                        own, others, w[p], w[below], grade[p], grade[below],
                        roots, gradient[below], curvature[below],
                    )  # fmt: skip
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
def _load(begin, end, s, rows, lead):
    """Write exp of each score; return whether they are too far apart for that."""
    low, high = score_range(begin, end, s, rows)
    if high - low > _FAR:
        return True
    for p in range(begin, end):
        lead[p] = math.exp(s[rows[p]] - 0.5 * (low + high))
    return False


@kernel
def _set_ratio(p, begin, end, s, rows, ratio):
    """Write exp of how far each document leads document p, within what a float holds."""
    for j in range(begin, end):
        ratio[j] = math.exp(min(max(s[rows[j]] - s[rows[p]], -_FAR), _FAR))


@quick_kernel
def _add_row(own, others, weight, weights, grade, grades, roots, gradient, curvature):
    """Pair a document with all of lower grades; return its loss, gradient and curvature."""
    hit, miss = roots
    total = down = curved = 0.0
    for j in range(len(others)):
        whole = 1.0 / (own + others[j])
        p, c = own * whole, others[j] * whole
        root, other_root = math.sqrt(p), math.sqrt(c)
        pair = weight * weights[j] * min(grade - grades[j], 1.0)
        a, b = 0.5 * hit * root * c * pair, 0.5 * miss * other_root * p * pair
        # 1 - sqrt(p q) - sqrt(c (1 - q)), as half of squares that do not cancel            (1)
        total += 0.5 * pair * ((root - hit) ** 2 + (other_root - miss) ** 2)
        gradient[j] += a - b
        curvature[j] += a + b
        down += a - b
        curved += a + b
    return total, down, curved


# --- kernels for long lists ------------------------------------------------------------------


@kernel
def _any_queries(lo, hi, indptr, s, layout, terms, sums, weight, value, grad, curv):
    begin = lo
    for q in range(lo, hi):
        if indptr[q + 1] - indptr[q] >= LONG and weight[q] > 0.0:
            _queries(begin, q, indptr, s, layout, terms, sums, weight, value, grad, curv)
            begin = q
            if _long_query(q, indptr, s, layout, terms, weight, value, grad, curv):
                begin = q + 1
    _queries(begin, hi, indptr, s, layout, terms, sums, weight, value, grad, curv)


@kernel
def _long_query(q, indptr, s, layout, terms, weight, value, grad, curv):
    """Do as `_queries`, by cells of scores; return whether that is quicker."""
    rows, w = layout.rows[indptr[q] : indptr[q + 1]], terms.w[indptr[q] : indptr[q + 1]]
    edges = layout.start[layout.of_query[q] : layout.of_query[q + 1] + 1] - indptr[q]
    n, factor = len(rows), weight[q] * terms.scale[q]
    x = np.empty(n)
    for p in range(n):
        x[p] = s[rows[p]]
    count = count_cells(x, edges, different_grades(edges), 5)
    if count == 0:
        return False
    cells, A = new_cells(x, count), new_values(count)
    lower, higher = np.zeros(n), np.zeros(n)
    _set_function(0, 1.0, terms.roots, A)
    add_lower(edges, x, w, A, cells, lower)
    value[q] = 0.0
    for p in range(n):
        value[q] += factor * w[p] * lower[p]  # (1)
    for out, number, sign in ((grad, 1, -1.0), (curv, 2, 1.0)):
        if len(out):
            lower[:] = 0.0
            higher[:] = 0.0
            _set_function(number, 1.0, terms.roots, A)
            add_lower(edges, x, w, A, cells, lower)
            _set_function(number, -1.0, terms.roots, A)
            add_higher(edges, x, w, A, cells, higher)
            for p in range(n):
                out[rows[p]] = factor * w[p] * (higher[p] + sign * lower[p])
    return True


@kernel
def _set_function(number, sign, roots, A):
    """Set the loss of a pair, a - b or a + b, of how far the worse document leads times sign."""
    hit, miss = roots
    far = len(A) // 2
    for k in range(len(A)):
        for i in range(NODES):
            for j in range(NODES):
                gap = sign * node_gap(k - far, i, j)
                p, c = sigmoid(-gap), sigmoid(gap)
                root, other_root = math.sqrt(p), math.sqrt(c)
                a, b = 0.5 * hit * root * c, 0.5 * miss * other_root * p
                if number == 0:
                    A[k, i, j] = 0.5 * ((root - hit) ** 2 + (other_root - miss) ** 2)
                else:
                    A[k, i, j] = a - b if number == 1 else a + b
    make_coefficients(A)


# --- API -------------------------------------------------------------------------------------


def _check_confidence(name: str, value: Any) -> None:
    """Raise unless ``value`` is a probability above 1/2."""
    if not (isinstance(value, Real) and 0.5 < float(value) <= 1.0):
        raise UsageError(f"{name} must be above 0.5 and at most 1, not {value}.")


@dataclass(frozen=True, slots=True, repr=False)
class Fidelity(Part):
    """Fidelity loss on every pair of documents of different grades.

    A pair of grades less than 1 apart, as of relevance estimated from clicks, counts as much as
    they differ.

    Parameters
    ----------
    confidence : float
        The probability q with which a better document is to lead, above 1/2.
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

    traits: ClassVar[Traits] = Traits()

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        scale = blocks.pair_share(w) if self.normalize else np.ones(data.n_queries)
        roots = math.sqrt(self.confidence), math.sqrt(1.0 - self.confidence)
        sums = np.empty((4, data.n_documents))
        args = (blocks.layout, _Terms(w, scale, roots, blocks.place_grade()), sums)
        long = bool(data.sizes.max(initial=0) >= LONG) and not blocks.fractional
        return KernelLoss(
            _queries,
            data,
            *args,
            curvature=True,
            cpu_kernel=_any_queries if long else None,
            n_jobs=n_jobs,
        )
