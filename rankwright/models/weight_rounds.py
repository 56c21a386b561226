"""Weights after each round of a fit: shown to the callback, and those of the best round kept.

For models that find one weight per feature in ways of their own; what `rankwright.models.linear`
minimises over data that may lie elsewhere goes through `rankwright.models.linear`.
"""

from __future__ import annotations

from functools import cached_property

from rankwright.core.products import times_vector
from rankwright.core.types import F64, Callback, FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.models.linear import FittedLinear
from rankwright.models.missing import fill_values, filled


class WeightRounds:
    """The rounds of one fit; its length is their number.

    Parameters
    ----------
    data, callback
        What is fitted to, and who looks on.
    missing
        What stands for a missing value: "mean", "zero", or None, which refuses them.

    Attributes
    ----------
    fill
        What stands for a missing value of each feature.
    """

    def __init__(
        self, data: RankingData, callback: Callback, missing: str | None, *, n_jobs: int | None
    ) -> None:
        self._data, self._callback, self._n_jobs = data, callback, n_jobs
        self.fill = fill_values(data.X, missing)
        self._valid = (
            None if callback.valid is None else filled(callback.valid.X, self.fill, "linear")
        )
        self._tried: list[F64] = []

    @cached_property
    def features(self) -> FloatMatrix:
        """The features with `fill` in their gaps; made where a model asks for them."""
        return filled(self._data.X, self.fill, "linear")

    def __len__(self) -> int:
        return len(self._tried)

    def scores(self, coef: F64) -> F64:
        """Return the scores of the documents under weights ``coef``."""
        return times_vector(self.features, coef, n_jobs=self._n_jobs)

    def see(self, coef: F64, value: float, train: F64 | None = None) -> bool:
        """Take in the weights and the loss after a round; True ends the run.

        ``train`` are the scores on the training data, where they are known already.
        """
        self._tried.append(coef)
        if train is None and self._callback.wants_train:
            train = self.scores(coef)
        valid = None
        if self._valid is not None:
            valid = times_vector(self._valid, coef, n_jobs=self._n_jobs)
        shown = train if self._callback.wants_train else None
        return self._callback.on_iteration(len(self._tried), value, shown, valid)

    def best(self) -> int:
        """Return the number of the round to keep, counted from 1."""
        return min(self._callback.best(), len(self._tried))

    def fitted(self) -> FittedLinear:
        """Return the model of that round."""
        return FittedLinear(self._tried[self.best() - 1], self.fill, self._data.n_features)
