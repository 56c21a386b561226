"""Squared error against the target of each document's grade: regression, order by order (GBDT).

With y_i the target of document i and w_i its weight, the loss of a query is

    L(s) = sum_i w_i/2 (s_i - y_i)^2                                                          (1)

with gradient w_i (s_i - y_i) and the Hessian diag(w).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part, check_parameters
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import KernelLoss, Targets, document_weight, grade_targets

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, y, w, weight, value, grad, curv):
    for q in range(lo, hi):
        total = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            step = weight[q] * w[i] * (s[i] - y[i])
            total += 0.5 * step * (s[i] - y[i])  # (1)
            if len(grad):
                grad[i] = step
            if len(curv):
                curv[i] = weight[q] * w[i]
        value[q] = total


@kernel
def _hessian(lo, hi, indptr, _s, _y, w, weight, v, out):
    for q in range(lo, hi):
        for i in range(indptr[q], indptr[q + 1]):
            out[i] = weight[q] * w[i] * v[i]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Squared(Part):
    """Squared error to the target of the grade: the pointwise loss of GBDT and MART.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Squared(targets="gain"), model="trees")
    Ranker(loss=Squared(targets='gain'), model='trees')
    """

    targets: Targets = "linear"

    traits: ClassVar[Traits] = Traits(convex=True, shift_invariant=False)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        args = (self.fixed_targets(data), document_weight(data))
        return KernelLoss(_queries, data, *args, curvature=True, hessian=_hessian, n_jobs=n_jobs)

    def fixed_targets(self, data: RankingData) -> F64:
        """Return y of (1)."""
        return grade_targets(data, self.targets)
