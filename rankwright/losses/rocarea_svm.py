"""Bound on the area above the ROC curve: the mean hinge over pairs of a query (SVM-perf).

    L(s) = sum over g_i > g_j of (margin - s_i + s_j)_+  /  number of such pairs                (1)

(`joachims2005svmperf`, ROCArea): with two grades the number is relevant x others. It is
`pair_hinge` with ``form="hinge"`` and ``pairs="query"``, under the name of its metric.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.types import BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.pair_hinge import PairHinge


@dataclass(frozen=True, slots=True, repr=False)
class ROCAreaSVM(Part):
    """A convex bound on the share of pairs in the wrong order.

    Parameters
    ----------
    margin : float
        How far a better document is to lead a worse one.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ROCAreaSVM(margin=0.5), model="linear")
    Ranker(loss=ROCAreaSVM(margin=0.5))
    """

    margin: Positive = 1.0

    @property
    def traits(self) -> Traits:
        """What the loss can do."""
        return self._pairs().traits

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        return self._pairs().bind(data, n_jobs=n_jobs)

    def _pairs(self) -> PairHinge:
        return PairHinge(form="hinge", pairs="query", margin=self.margin)
