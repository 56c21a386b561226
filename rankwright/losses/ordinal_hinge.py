"""Ordinal regression: a threshold between each two grades, the best for the scores (SVOR).

With thresholds t_1 <= t_2 <= ... between the grades that occur in a query, each document is to
stand a margin above every threshold below its grade, and a margin below every one above:

    L(s) = min over t of sum_k [ sum_{i: g_i above t_k} w_i (margin - s_i + t_k)_+
                               + sum_{i: g_i below t_k} w_i (margin + s_i - t_k)_+ ]            (1)

This is `chu2005svor`'s ordinal regression with implicit constraints, in which every threshold is a
problem of its own and the best ones come out in order. There the thresholds are those of all the
data; here each query has its own, so that queries may differ in level as ranking allows. For data
of one query the two are the same. Where one grade is far more frequent than the others, the best
scores may be all alike; ``balanced=True`` lets both sides of each threshold weigh the same, half of
the query, and so they never are if any feature is informative.

Each threshold's sum is piecewise linear in t, with a gradient that rises by w_i at s_i - margin for
a document above and at s_i + margin for one below, from minus the weight of all below; where it
passes 0 is the best t. Documents whose kink lies exactly there take the share of their gradient
that makes it 0, and the gradients in s are then those of L (the envelope theorem). Curvature there
is none; in its place stands a document's weight in all thresholds over the margin, by which no step
of boosting is longer than the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import clear, clear_query
from rankwright.core.order import NO_KEY, numbers_of_runs, sort_query
from rankwright.core.parameters import Part, check_above_zero
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight, rows_by_grade


class _Terms(NamedTuple):
    begin: I64  # where the places of each query begin
    row: I64  # of each place, grades rising
    grade: I64  # its number in the query
    w: F64
    margin: float
    balanced: bool


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, terms, scores, places, thresholds, weight, value, grad, curv):  # type: ignore[no-untyped-def]
    begin, row, grade, w, margin, balanced = terms
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        first, end = begin[q], begin[q + 1]
        for p in range(first, end):
            scores[p] = -s[row[p]]
        sort_query(first, end, scores, NO_KEY, places[0], places[1])
        rising = places[0, first:end]
        gradient, heft = thresholds[0, first:end], thresholds[1, first:end]
        clear(0, end - first, gradient)
        clear(0, end - first, heft)
        share = thresholds[2]
        for k in range(grade[end - 1]):  # grades are numbered from 0 and places go up with them
            _weigh(k, first, end, grade, w, balanced, share)
            for p in range(first, end):
                heft[p - first] += share[p]
            found = _threshold(k, rising, first, scores, grade, share, margin, gradient)
            value[q] += weight[q] * found
        for p in range(first, end):
            if len(grad):
                grad[row[p]] = weight[q] * gradient[p - first]
            if len(curv):
                curv[row[p]] = weight[q] * heft[p - first] / margin


@kernel
def _weigh(k, first, end, grade, w, balanced, out):  # type: ignore[no-untyped-def]
    """Write the weight of each document at the threshold above grade k."""
    below = above = 0.0
    for p in range(first, end):
        if grade[p] > k:
            above += w[p]
        else:
            below += w[p]
    for p in range(first, end):
        side = above if grade[p] > k else below
        out[p] = w[p] * 0.5 * (above + below) / side if balanced else w[p]


@kernel
def _threshold(k, rising, first, minus_s, grade, w, margin, gradient):  # type: ignore[no-untyped-def]
    """Find the threshold above grade k; add the gradients of its terms and return their sum."""
    n = len(rising)
    left = 0.0
    for p in rising:
        left += w[p] if grade[p] <= k else 0.0
    above, below = _next_of(0, True, k, rising, grade), _next_of(0, False, k, rising, grade)
    at, weight_at, part = -np.inf, 0.0, 0.0
    while left > 0.0:  # go through the kinks, from the lowest
        high = -minus_s[rising[above]] - margin if above < n else np.inf
        low = -minus_s[rising[below]] + margin if below < n else np.inf
        at, weight_at = min(high, low), 0.0
        while above < n and -minus_s[rising[above]] - margin <= at:
            weight_at += w[rising[above]]
            above = _next_of(above + 1, True, k, rising, grade)
        while below < n and -minus_s[rising[below]] + margin <= at:
            weight_at += w[rising[below]]
            below = _next_of(below + 1, False, k, rising, grade)
        if weight_at == 0.0:
            break  # scores that are not finite have no kink to go on to
        part = min(1.0, left / weight_at)
        left -= weight_at
    total = 0.0
    for p in rising:
        is_above = grade[p] > k
        kink = -minus_s[p] - margin if is_above else -minus_s[p] + margin
        passed = part if kink == at else 1.0 if kink < at else 0.0
        gradient[p - first] += -w[p] * passed if is_above else w[p] * (1.0 - passed)
        total += w[p] * (max(at - kink, 0.0) if is_above else max(kink - at, 0.0))  # (1)
    return total


@kernel
def _next_of(place, is_above, k, rising, grade):  # type: ignore[no-untyped-def]
    while place < len(rising) and (grade[rising[place]] > k) != is_above:
        place += 1
    return place


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class OrdinalHinge(Part):
    """Hinge against the best thresholds between the grades of each query.

    Parameters
    ----------
    margin : float
        How far documents are to stand from every threshold.
    balanced : bool
        Let both sides of each threshold weigh the same, however many documents they have.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.OrdinalHinge(balanced=True), model="linear")
    Ranker(loss=OrdinalHinge(balanced=True))
    """

    margin: float = 1.0
    balanced: bool = False

    traits: ClassVar[Traits] = Traits(
        family="pointwise", queries=True, smooth=False, convex=True, curvature=True
    )

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_above_zero("ordinal_hinge's margin", self.margin)
        begin, row = rows_by_grade(data)
        grade, _ = numbers_of_runs(data.y[row], begin)
        w = document_weight(data)[row]
        terms = _Terms(begin, row, grade, w, float(self.margin), bool(self.balanced))
        scores, places = np.empty(len(row)), np.empty((2, len(row)), np.int64)
        args = (terms, scores, places, np.empty((3, len(row))))
        return KernelLoss(_queries, data, *args, curvature=True, n_jobs=n_jobs)
