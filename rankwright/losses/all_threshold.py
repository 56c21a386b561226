"""Thresholds between labels with a smooth hinge: the loss of maximum margin factorisation.

With thresholds t_k between the distinct labels of a query, chosen best for its scores,

    L(s) = min over t of sum_k [ sum_{i: g_i above t_k} w_i h(s_i - t_k)
                               + sum_{i: g_i below t_k} w_i h(t_k - s_i) ]                      (1)

    h(z) = m/2 - z  below 0,    (m - z)^2 / 2m  from 0 to the margin m,    0  above             (2)

as in fast maximum margin matrix factorisation (`rennie2005mmmf`), where each user has separate
thresholds without a penalty. Each threshold is a convex problem in one variable whose derivative is
piecewise linear: Newton's method within a bracket ends on the right piece after a few steps. By the
envelope theorem, the gradient is that of (1) at the best thresholds. The curvature is an upper
bound: w_i times the number of thresholds over the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.kernels import take
from rankwright.core.order import numbers_of_runs
from rankwright.core.parameters import Positive
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight, rows_by_grade


@kernel
def _all_threshold(queries, indptr, s, row, grade, w, margin, sorted_scores, value, grad, curv):
    for q in queries:
        query = slice(indptr[q], indptr[q + 1])
        rows, grades, weights = row[query], grade[query], w[query]
        scores = sorted_scores[query]
        take(s, rows, scores)
        n_thresholds = grades[-1]  # grades are numbered from 0 and sorted
        first = 0
        for k in range(n_thresholds):
            while grades[first] <= k:
                first += 1
            t = _best_threshold(first, scores, weights, margin)
            for i in range(len(rows)):
                lead = scores[i] - t if i >= first else t - scores[i]
                value[q] += weights[i] * _hinge(lead, margin)  # (1)
                pull = weights[i] * _pull(lead, margin)
                grad[rows[i]] += -pull if i >= first else pull
        for i in range(len(rows)):
            curv[rows[i]] = weights[i] * n_thresholds / margin


@kernel
def _best_threshold(first, s, w, margin):
    """Return the best threshold between the documents before ``first`` and the others."""
    low = high = s[0]
    for i in range(1, len(s)):  # NaN if a score is NaN
        low = s[i] if s[i] < low or s[i] != s[i] else low
        high = s[i] if s[i] > high or s[i] != s[i] else high
    low, high = low - margin, high + margin
    t = 0.5 * (low + high)
    for _ in range(100):
        derivative, curvature, size = 0.0, 0.0, 0.0
        for i in range(len(s)):
            lead = s[i] - t if i >= first else t - s[i]
            pull = w[i] * _pull(lead, margin)
            derivative += pull if i >= first else -pull
            curvature += w[i] / margin if 0.0 < lead < margin else 0.0
            size += pull
        if abs(derivative) <= 1e-15 * size or high - low <= 1e-15 * max(abs(low), abs(high)):
            break
        if derivative > 0.0:
            high = t
        else:
            low = t
        t = t - derivative / curvature if curvature > 0.0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
    return t


@kernel
def _hinge(lead, margin):
    """Return h of (2)."""
    short = margin - lead
    if short <= 0.0:
        return 0.0
    return 0.5 * short * short / margin if short < margin else short - 0.5 * margin


@inline_kernel
def _pull(lead, margin):
    """Return the negative derivative of h."""
    return min(1.0, max(0.0, 1.0 - lead / margin))


@dataclass(frozen=True, slots=True, repr=False)
class AllThreshold(KernelLoss):
    """Smooth hinge against the best thresholds between the labels of each query.

    Parameters
    ----------
    margin : float
        Distance from a threshold beyond which a document on the right side costs nothing.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.AllThreshold(margin=0.5), model="linear")
    Ranker(loss=AllThreshold(margin=0.5))
    """

    margin: Positive = 1.0

    traits = Traits(convex=True)
    run = staticmethod(_all_threshold)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the rows of each query by grade, their grades and weights, and a work array."""
        begin, row = rows_by_grade(data)
        grade, _ = numbers_of_runs(data.y[row], begin)
        weight = document_weight(data)[row]
        return row, grade, weight, float(self.margin), np.empty(len(row))
