"""Any loss with any model, by their names."""

from __future__ import annotations

from rankwright.core.types import Loss
from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.rankers.base import Ranker


class Compose(Ranker):
    """Any loss with any model.

    Parameters
    ----------
    loss : str
        Name of the loss: ``rankwright list losses`` shows them.
    loss_params : dict
        Its parameters.
    model : str
        Name of the model, whose parameters may be given beside it.
    """

    models = ("linear", "trees", "forest", "kernel", "network", "additive")
    defaults = {"loss": "ranknet", "loss_params": None}

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Return the named loss."""
        return loss(self.loss, **(self.loss_params or {}))
