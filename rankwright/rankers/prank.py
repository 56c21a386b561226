"""PRank: a perceptron whose score is cut into grades by thresholds."""

from __future__ import annotations

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses.ordinal_hinge import OrdinalHinge
from rankwright.rankers.base import Ranker


class PRank(Ranker):
    """PRank: a perceptron whose score is cut into grades by thresholds.

    It corrects itself at each mistake, a document at a time (`crammer2002prank`). The published
    steps are ``threshold_step=1, by_query=False``; the defaults rank better where documents have
    many features and queries differ in how many are relevant.

    Parameters
    ----------
    n_passes : int
        Passes over the data; the best on valid is kept.
    averaging : bool
        Answer with the mean of the weights over all steps.
    threshold_step : float or None
        How far a mistake moves a threshold; None: as far as it moves scores, on average.
    by_query : bool
        Visit documents query after query; False: all in one order.
    """

    models = ("prank",)

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the hinge against thresholds, which tells how far the steps have come."""
        return OrdinalHinge()
