"""Rankers whose model climbs a measure itself, where the others minimise a loss."""

from __future__ import annotations

import numpy as np

from rankwright.core.types import FittedModel, Loss, MetricModel
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.metrics.names import metric
from rankwright.rankers.base import Ranker
from rankwright.rankers.selection import Selection


class MetricRanker(Ranker):
    """Base of AdaRank, Coordinate Ascent and RankGP: ``metric`` is what the model climbs.

    ``select_metric`` chooses the round on valid, where that is to be another measure. A metric has
    no weights of documents, so ``sample_weight`` may only leave documents out; queries may have any
    weight.
    """

    def make_loss(self, data: RankingData) -> Loss:  # noqa: ARG002
        """Refuse: there is none."""
        raise IncompatibleError(
            f"{self.name} climbs a measure and has no loss; use a ranker that minimises one, such "
            "as gbdt or lambdamart."
        )

    def _fit_model(
        self, data: RankingData, callback: Selection, start: FittedModel | None
    ) -> FittedModel:
        weight = data.sample_weight
        if weight is not None and np.ptp(weight) > 0.0:
            raise UsageError(
                f"{self.name} climbs a metric, which has no weights of documents: give weights of "
                "queries (query_weight), or documents the weights 0 and 1 to leave some out."
            )
        model: MetricModel = self.make_model()  # type: ignore[assignment]
        return model.fit(
            metric(self.metric, convention=self.convention),
            data,
            callback=callback,
            start=start,
            seed=self.seed,
            n_jobs=self.n_jobs,
        )
