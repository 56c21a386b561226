"""Every threshold between grades, by a smooth hinge: the loss of maximum margin factorisation.

With thresholds t_k between the grades that occur in a query, the best there are for its scores,

    L(s) = min over t of sum_k [ sum_{i: g_i above t_k} w_i h(s_i - t_k)
                               + sum_{i: g_i below t_k} w_i h(t_k - s_i) ]                     (1)

    h(z) = m/2 - z  below 0,    (m - z)^2 / 2m  from 0 to the margin m,    0  above            (2)

as in fast maximum margin matrix factorisation (`rennie2005mmmf`), where each user has thresholds of
his own and they are left without penalty. Each is a problem of its own, convex in one variable,
with a derivative that rises along straight pieces: Newton's method inside a bracket ends on the
right piece after a few steps. By the envelope theorem the derivatives in s are those of (1) at the
best thresholds. For the curvature stands a bound, w_i times the number of thresholds over the
margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel
from rankwright.core.kernels import clear_query, take
from rankwright.core.order import numbers_of_runs
from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import KernelLoss, document_weight, rows_by_grade


class _Terms(NamedTuple):
    begin: I64  # where the places of each query begin
    row: I64  # of each place, grades rising
    grade: I64  # its number in the query
    w: F64
    margin: float


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, terms, scratch, weight, value, grad, curv):
    begin, row, grade, w, margin = terms
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        at = slice(begin[q], begin[q + 1])
        rows, grades, weights = row[at], grade[at], w[at]
        scores = scratch[at]
        take(s, rows, scores)
        n_thresholds = grades[-1]  # grades are numbered from 0 and rows go up with them
        first = 0
        for k in range(n_thresholds):
            while grades[first] <= k:
                first += 1
            t = _best_threshold(first, scores, weights, margin)
            for i in range(len(rows)):
                lead = scores[i] - t if i >= first else t - scores[i]
                value[q] += weight[q] * weights[i] * _hinge(lead, margin)  # (1)
                if len(grad):
                    push = weight[q] * weights[i] * _pull(lead, margin)
                    grad[rows[i]] += -push if i >= first else push
        if len(curv):
            for i in range(len(rows)):
                curv[rows[i]] = weight[q] * weights[i] * n_thresholds / margin


@kernel
def _best_threshold(first, s, w, margin):
    """Return the best threshold between the rows before ``first`` and those from it on."""
    low = high = s[0]
    for i in range(1, len(s)):  # NaN where one is
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
    """Return minus the derivative of h."""
    return min(1.0, max(0.0, 1.0 - lead / margin))


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class AllThreshold(Part):
    """Smooth hinge against the best thresholds between the grades of each query.

    Parameters
    ----------
    margin : float
        How far documents are to stand from every threshold.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.AllThreshold(margin=0.5), model="linear")
    Ranker(loss=AllThreshold(margin=0.5))
    """

    margin: Positive = 1.0

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        begin, row = rows_by_grade(data)
        grade, _ = numbers_of_runs(data.y[row], begin)
        terms = _Terms(begin, row, grade, document_weight(data)[row], float(self.margin))
        scratch = np.empty(len(row))
        return KernelLoss(_queries, data, terms, scratch, curvature=True, n_jobs=n_jobs)
