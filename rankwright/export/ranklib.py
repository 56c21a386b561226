"""``ranklib``: a text model of RankLib 2.18, as `rankwright.ranklib` writes and strictly reads it.

Features go by their number, from 1; a feature that a line lacks is 0, so a missing value scores as
in the model only where it counts as 0 there. Without its option ``-missingZero`` RankLib ends with
an error where a feature is asked for that comes after the last of the line.

Networks end in a sigmoid: scores are scaled to lie between -4 and 4 before it, so that it never
saturates and documents keep their order.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import DataError
from rankwright.export.target import (
    DOUBLE,
    SINGLE,
    EngineTarget,
    Job,
    ParityError,
    Release,
    Written,
)
from rankwright.models.portable import HIGHEST, Linear, Network, PortableForest
from rankwright.models.thresholds import not_above
from rankwright.ranklib.conversion import of_one_kind, text_of
from rankwright.ranklib.model_text import (
    Ensembles,
    ModelText,
    Steps,
    Terms,
    Tree,
    read_model_text,
)
from rankwright.ranklib.model_text import (
    Network as NetworkText,
)

_REACH = 4.0  # what scores are scaled to, before the sigmoid


_MISSING_ZERO = "-missingZero"


class RankLib(EngineTarget):
    """RankLib's text model, for RankLib and the plugins that read it."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "rankwright's strict reader of RankLib's models, in RankLib's arithmetic"
    releases = (
        Release(engine="ranklib", since=(2, 18), missing="counts as 0", setup=_MISSING_ZERO),
        Release(
            engine="ranklib",
            since=(2, 18),
            missing="counts as 0; at the end of a line it is an error",
        ),
    )

    def write(self, job: Job) -> Written:
        """Return model.txt."""
        model = job.one_kind
        if isinstance(model, PortableForest):
            model.check_numeric(self.name)
        text, scale, offset = ranklib_text(job)
        takes = model.fill_value == 0.0
        some = "a missing value counts as 0; where the model has it otherwise (may_be_missing is"
        return Written(
            files={"model.txt": text.text().encode()},
            epsilon=SINGLE if model.family == "trees" else DOUBLE,
            missing="a missing value counts as 0, as in the model"
            if takes.all()
            else f"{some} false) give a number",
            takes_missing=takes,
            thresholds=ranklib_thresholds(model),
            scale=scale,
            offset=offset,
            sigmoid=ends_in_sigmoid(model),
            notes=(
                f"Run RankLib with {_MISSING_ZERO}: without it, RankLib ends with an error where "
                "a line lacks a feature after its last one.",
            ),
            oldest=job.release,
        )

    def scores_on(self, release: Release, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by RankLib's arithmetic."""
        try:
            model = read_model_text(folder / "model.txt")
        except DataError as error:
            raise ParityError(str(error)) from None
        if model.n_features > len(about["features"]):
            raise ParityError(f"{folder / 'model.txt'} has more features than its export.json.")
        return ranklib_scores(folder / "model.txt", model, X, release)


def ranklib_text(job: Job) -> tuple[ModelText, float, float]:
    """Return RankLib's model, and by what scores were scaled and moved before its sigmoid."""
    model = job.model
    if isinstance(model, Linear) and (model.intercept or job.ranker.name == "listnet"):
        # RankLib's own ListNet ends in a sigmoid, and most of its linear models have no constant
        return _weights(model.coef, model.intercept), 1.0, 0.0
    if isinstance(model, Network) and len(model.layers) == 1:
        weight, constant = model.layers[0]
        return _weights(weight[:, 0], float(constant[0])), 1.0, 0.0
    ranker = of_one_kind(job.ranker)
    if not ends_in_sigmoid(model):
        return text_of(ranker), 1.0, 0.0
    fitted: Any = ranker._fitted()
    weight, constant = fitted.layers[-1]
    low = float(np.minimum(weight, 0.0).sum() + constant[0])  # units before it are between 0 and 1
    high = float(np.maximum(weight, 0.0).sum() + constant[0])
    middle, scale = (low + high) / 2.0, 2.0 * _REACH / max(high - low, 1e-300)
    last = (weight * scale, (constant - middle) * scale)
    scaled = copy.copy(ranker)
    scaled.model_ = replace(fitted, layers=(*fitted.layers[:-1], last))
    return text_of(scaled), scale, -middle * scale


def _weights(coef: F64, constant: float) -> ModelText:
    """Return plain weights as a model of RankLib."""
    features, weights = np.arange(len(coef) + 1), np.append(constant, coef)
    if constant:
        return ModelText("Linear Regression", (("Lambda", "0.0"),), Terms(features, weights))
    return ModelText("Coordinate Ascent", (), Terms(features[1:], weights[1:]))


def ends_in_sigmoid(model: Any) -> bool:
    """Whether RankLib adds a sigmoid to the scores; a network that came from it has its own."""
    if not isinstance(model, Network) or len(model.layers) == 1:
        return False
    weight, constant = model.layers[-1]
    own = weight.shape == (1, 1) and weight[0, 0] == 1.0
    return not (own and not constant.any())


def ranklib_thresholds(model: Any) -> F64 | None:
    """Return the thresholds as RankLib has them: finite, and no numbers but 0 are 0."""
    if not isinstance(model, PortableForest):
        return None
    written = model.threshold if model.source is None else model.source.threshold
    thresholds: F64 = np.clip(not_above(written).astype(np.float64), -HIGHEST, HIGHEST)
    return thresholds


# --- reading -----------------------------------------------------------------------------------
# What RankLib refuses or throws at, beyond its arithmetic, which `rankwright.ranklib` has.


def ranklib_scores(path: Path, model: ModelText, X: F64, release: Release) -> F64:
    """Return the score of each row, NaN where RankLib ends with an error.

    A missing value is a feature that the line of its row does not have.
    """
    if model.name == "Linear Regression":
        assert isinstance(model.body, Terms)
        if sorted(model.body.features.tolist()) != list(range(len(model.body.features))):
            raise ParityError(
                f"{path} would be refused: its weights must be 0, the constant, 1, 2 and so on."
            )
    filled = np.nan_to_num(X, nan=0.0)
    scores = model.scores(filled)
    if release.setup == _MISSING_ZERO:
        return scores
    last = np.where(np.isnan(X), 0, np.arange(1, X.shape[1] + 1)).max(axis=1, initial=0)
    return np.where(_asks_beyond(model.body, filled, last), np.nan, scores)


def _asks_beyond(body: Any, X: F64, last: I64) -> Any:
    """Whether a feature after the ``last`` of each row is asked for."""
    if isinstance(body, Ensembles):
        return np.any([_walks_beyond(tree, X, last) for tree in body.trees], axis=0)
    assert isinstance(body, Terms | Steps | NetworkText)
    return max(body.features) > last


def _walks_beyond(tree: Tree, X: F64, last: I64) -> Any:
    found = np.zeros(len(X), bool)
    waiting = [(0, np.arange(len(X)))]
    while waiting:
        node, rows = waiting.pop()
        feature = int(tree.feature[node])
        if feature == 0:
            continue
        found[rows] |= last[rows] < feature
        left = X[rows, feature - 1].astype(np.float32) <= tree.threshold[node]
        waiting += [(int(tree.left[node]), rows[left]), (int(tree.right[node]), rows[~left])]
    return found
