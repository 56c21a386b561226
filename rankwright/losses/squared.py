"""Squared error between the score and the target of each document: pointwise regression.

With y_i the target of document i and w_i its weight, the loss of a query is

    L(s) = sum_i w_i/2 (s_i - y_i)^2                                                            (1)

with gradient w_i (s_i - y_i) and Hessian diag(w): `fixed_targets.square` without a free level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, Targets, grade_targets
from rankwright.losses.fixed_targets import square, square_hessian, target_terms


@dataclass(frozen=True, slots=True, repr=False)
class Squared(KernelLoss):
    """Squared error to the target of the label: the pointwise loss of GBDT and MART.

    Parameters
    ----------
    targets : "linear", "gain" or a tuple
        Target score of a label: the label, 2^label - 1, or a value per label.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Squared(targets="gain"), model="trees")
    Ranker(loss=Squared(targets='gain'), model='trees')
    """

    targets: Targets = "linear"

    traits = Traits(convex=True, shift_invariant=False)
    run = staticmethod(square)
    hessian = staticmethod(square_hessian)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the terms of the kernel for y of (1)."""
        return target_terms(data, self.fixed_targets(data), free=False)

    def fixed_targets(self, data: RankingData) -> F64:
        """Return y of (1)."""
        return grade_targets(data, self.targets)
