"""Random forest: a mean of tree models, each fitted to queries drawn with replacement."""

from __future__ import annotations

from rankwright import registry
from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.rankers.base import Ranker


class RandomForest(Ranker):
    """Random forest: a mean of tree models, each on queries drawn with replacement.

    Each bag minimises the loss of an inner ranker, whichever it is.

    Parameters
    ----------
    inner : str
        The ranker whose loss each bag minimises: gbdt, lambdamart, intervalrank, …
    inner_params : dict
        Parameters of that ranker.
    n_bags, bag_fraction, feature_fraction, n_trees, num_leaves, …
        See `rankwright.models.forest.Forest`.
    """

    models = ("forest",)
    defaults = {"inner": "gbdt", "inner_params": None}

    def make_loss(self, data: RankingData) -> Loss:
        """Return the inner ranker's loss."""
        inner: Ranker = registry.resolve("rankers", self.inner)(**(self.inner_params or {}))
        return inner.make_loss(data)
