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
    n_bags, bag_fraction, colsample_bytree, n_estimators, num_leaves, …
        See `rankwright.models.forest.Forest`.

    Notes
    -----
    The defaults are RankLib's. Its flags are here: ``n_bags=300`` (-bag), ``bag_fraction=1.0``
    (-srate: queries drawn with replacement), ``colsample_bytree=0.3`` (-frate: features of a tree,
    where RankLib draws them once for a bag, which is the same for a bag of one tree),
    ``inner="gbdt"`` (-rtype 0, MART) or ``"lambdamart"`` (-rtype 6), ``n_estimators=1`` (-tree),
    ``num_leaves=100`` (-leaf), ``learning_rate=0.1`` (-shrinkage), ``min_child_samples=1`` (-mls) and
    ``max_bins=255`` (-tc 256, which RankLib does not hand to its forests: they have its default).
    """

    models = ("forest",)
    defaults = {"inner": "gbdt", "inner_params": None}

    def make_loss(self, data: RankingData) -> Loss:
        """Return the inner ranker's loss."""
        inner: Ranker = registry.resolve("rankers", self.inner)(**(self.inner_params or {}))
        return inner.make_loss(data)
