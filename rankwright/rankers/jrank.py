"""JRank: a perceptron on the joint kernel of users and items, cut into grades by thresholds."""

from __future__ import annotations

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses.ordinal_hinge import OrdinalHinge
from rankwright.rankers.recommender import Recommender


class JRank(Recommender):
    """JRank: a perceptron on the joint kernel of users and items, cut into grades by thresholds.

    PRank with a kernel (`basilico2004unifying`), as in Table 3 of `le2007dorm`. Both kernels are
    learnt from the ratings: items are alike as their ratings are, and ``users`` says how much of
    what one user likes counts for the others.

    Parameters
    ----------
    levels : int or None
        Round ratings to so many levels; None takes each value as a level.
    """

    models = ("jrank",)
    defaults = {"levels": None, "convention": "sklearn"}

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the hinge against thresholds, which tells how far the steps have come."""
        return OrdinalHinge()
