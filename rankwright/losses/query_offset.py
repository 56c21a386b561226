"""Squared error up to one constant per query: regression that ignores the level of a query.

With y_i the target of document i and w_i its weight, the loss of a query is

    L(s) = min over b of  sum_i w_i/2 (s_i - y_i - b)^2                                       (1)

which is (3) of [moon2010intervalrank] and of the family of CatBoost's QueryRMSE. The best b is
the weighted mean of s - y, and with it the gradient is w_i (s_i - y_i - b). The Hessian
diag(w) - w w' / sum w is below diag(w), so w_i is given as curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part, check_parameters
from rankwright.core.types import BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import KernelLoss, Targets, document_weight, grade_targets

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _offset(lo, hi, s, y, w):
    """Return the weighted mean of s - y, summed from the first so that large scores stay exact."""
    base = s[lo] - y[lo]
    total = mass = 0.0
    for i in range(lo, hi):
        total += w[i] * (s[i] - y[i] - base)
        mass += w[i]
    return base + total / mass if mass > 0.0 else base


@kernel
def _queries(lo, hi, indptr, s, y, w, weight, value, grad, curv):
    for q in range(lo, hi):
        total = 0.0
        if indptr[q] < indptr[q + 1]:
            b = _offset(indptr[q], indptr[q + 1], s, y, w)
            for i in range(indptr[q], indptr[q + 1]):
                step = weight[q] * w[i] * (s[i] - y[i] - b)
                total += 0.5 * step * (s[i] - y[i] - b)  # (1)
                if len(grad):
                    grad[i] = step
                if len(curv):
                    curv[i] = weight[q] * w[i]
        value[q] = total


@kernel
def _hessian(lo, hi, indptr, _s, _y, w, weight, v, out):
    for q in range(lo, hi):
        total = mass = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            total += w[i] * v[i]
            mass += w[i]
        mean = total / mass if mass > 0.0 else 0.0
        for i in range(indptr[q], indptr[q + 1]):
            out[i] = weight[q] * w[i] * (v[i] - mean)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class QueryOffset(Part):
    """Squared error to the target of the grade, up to one constant per query.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.QueryOffset(targets="gain"), model="trees")
    Ranker(loss=QueryOffset(targets='gain'), model='trees')
    """

    targets: Targets = "linear"

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        y = grade_targets(data, self.targets)
        args = (y, document_weight(data))
        return KernelLoss(_queries, data, *args, curvature=True, hessian=_hessian, n_jobs=n_jobs)
