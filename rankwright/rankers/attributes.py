"""Attributes of a fitted ranker that depend on the kind of its model.

A ranker has the attribute only if its model has it: ``hasattr(ranker, "coef_")`` is True for linear
models only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from rankwright.core.types import F64, FittedModel
from rankwright.errors import RankwrightError


class NotFittedError(RankwrightError, SklearnNotFittedError):  # type: ignore[misc]
    """A ranker was used before it was fitted."""


class FittedAttributes:
    """Coefficients, importances, booster and solution of the fitted model of a ranker."""

    if TYPE_CHECKING:

        @property
        def model_name(self) -> str:
            """The registered name of the model."""

    def _fitted(self) -> FittedModel:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first.")
        model: FittedModel = self.model_
        return model

    @property
    def coef_(self) -> F64:
        """Weights of a linear model, in the scale of the data; of a classifier, a row per grade."""
        coef: F64 = self._attribute("coef", "linear")
        return coef

    @property
    def weights_(self) -> dict[str, float]:
        """Weights of a linear model by the name of their feature, the largest first.

        Features without names have their number, counted from 1 as in LETOR files.
        """
        coef = self.coef_
        if coef.ndim != 1:
            raise AttributeError(
                f"{type(self).__name__} has no weights_: it has a weight for each grade and "
                "feature; see coef_."
            )
        names = getattr(self, "feature_names_in_", np.arange(1, len(coef) + 1))
        order = np.argsort(-np.abs(coef), kind="stable")
        return {str(names[column]): float(coef[column]) for column in order}

    @property
    def feature_importances_(self) -> F64:
        """Importance of each feature, in the order of the columns.

        Of trees the total gain of the splits on it, as LightGBM's booster reports with
        ``importance_type="gain"``. Of a linear model its absolute weight times the standard
        deviation of the feature in the training data. Not normalised. Other models have none:
        `rankwright.importance` measures it for any model by permutation.
        """
        model: Any = self._fitted()
        if hasattr(model, "importance"):
            gain: F64 = model.importance("gain")
            return gain
        deviation = getattr(self, "feature_deviation_", None)
        if not is_linear(model) or deviation is None:
            why = "was fitted in parts" if is_linear(model) else f"fits '{self.model_name}'"
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_: it {why}, and only trees and "
                "linear models fitted in one process have them; use rankwright.importance(ranker, "
                "'permutation', data=data)."
            )
        weights: F64 = np.abs(model.coef) * deviation
        return weights

    @property
    def booster_(self) -> Any:
        """LightGBM's own model of a tree ensemble."""
        return self._attribute("booster", "tree")

    @property
    def solution_(self) -> Any:
        """Outcome of the solver of a linear model: value, optimality, iterations and reason."""
        return self._attribute("solution", "linear")

    def _attribute(self, name: str, family: str) -> Any:
        """Return an attribute of the fitted model, which only models of a family have."""
        model = self._fitted()
        if not hasattr(model, name):
            raise AttributeError(
                f"only a {family} model has this; the model is '{self.model_name}'."
            )
        return getattr(model, name)


def is_linear(model: Any) -> bool:
    """Return whether a fitted model has one weight for each feature."""
    return getattr(getattr(model, "coef", None), "ndim", 0) == 1
