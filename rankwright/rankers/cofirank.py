"""CofiRank: user and item factors under a ranking loss of each user's list."""

from __future__ import annotations

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.rankers.recommender import Recommender


class CofiRank(Recommender):
    """CofiRank: user and item factors under a ranking loss of each user's list.

    Ranking matrix factorisation (`weimer2008cofirank`; section 5.2 of `le2007dorm`), with any loss
    in the place of theirs; by default scores need only keep the order of the ratings, and their
    distances as a margin. ``loss="position_svm"`` is the combination of section 5.2, DORM's bound
    on what a metric loses: it has kinks, and is minimised in turns by the bundle solver.

    Parameters
    ----------
    loss : str
        Name of the loss: ``rankwright list losses`` shows them.
    loss_params : dict
        Its parameters.
    levels : int or None
        Round ratings to so many levels for the loss, for those that want few grades or whole
        numbers.
    """

    defaults = {
        "loss": "retarget",
        "loss_params": None,
        "levels": None,
        "convention": "sklearn",
    }

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the named loss."""
        return loss(self.loss, **(self.loss_params or {}))
