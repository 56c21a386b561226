"""Bound on the area above the ROC curve: the mean hinge over pairs of a query (SVM-perf).

    L(s) = sum over g_i > g_j of (margin - s_i + s_j)_+  /  number of such pairs                (1)

(`joachims2005svmperf`, ROCArea). With two grades, the number of pairs is relevant x others. This is
`pair_hinge` with ``form="hinge"`` and ``pairs="query"``, under the name of its metric.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankwright.core.parameters import Positive, check_parameters
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import BoundKernel, KernelLoss
from rankwright.losses.pair_hinge import PairHinge


@dataclass(frozen=True, slots=True, repr=False)
class ROCAreaSVM(KernelLoss):
    """A convex bound on the share of pairs in the wrong order.

    Parameters
    ----------
    margin : float
        Difference of scores that a better document should have to a worse one.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ROCAreaSVM(margin=0.5), model="linear")
    Ranker(loss=ROCAreaSVM(margin=0.5))
    """

    margin: Positive = 1.0

    traits = Traits(smooth=False, convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundKernel:
        """Prepare the loss for one data set."""
        check_parameters(self)
        return PairHinge("hinge", self.margin, pairs="query").bind(data, n_jobs=n_jobs)
