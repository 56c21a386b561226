"""Squared error up to one constant per query: regression that ignores the level of a query.

With y_i the target of document i and w_i its weight, the loss of a query is

    L(s) = min over b of  sum_i w_i/2 (s_i - y_i - b)^2                                         (1)

which is (3) of `moon2010intervalrank` and similar to CatBoost's QueryRMSE. The best b is the
weighted mean of s - y, and the gradient is w_i (s_i - y_i - b): `fixed_targets.square` with a free
level. The Hessian diag(w) - w w' / sum w is bounded by diag(w), so w_i is the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, Targets, grade_targets
from rankwright.losses.fixed_targets import square, square_hessian, target_terms


@dataclass(frozen=True, slots=True, repr=False)
class QueryOffset(KernelLoss):
    """Squared error to the target of the label, up to one constant per query.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a label: the label, 2^label - 1, or a value per label.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.QueryOffset(targets="gain"), model="trees")
    Ranker(loss=QueryOffset(targets='gain'), model='trees')
    """

    targets: Targets = "linear"

    traits = Traits(convex=True)
    run = staticmethod(square)
    hessian = staticmethod(square_hessian)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the terms of the kernel for y of (1)."""
        return target_terms(data, grade_targets(data, self.targets))
