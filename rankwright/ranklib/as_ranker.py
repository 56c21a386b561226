"""A RankLib model as a ranker of ours, and our fitted rankers as models that RankLib reads.

What comes from RankLib scores as it does there, up to the float32 rounding that RankLib's trees do
after each tree and to the constant of Linear Regression, which changes no ranking; it can be
evaluated, explained, saved and exported like any other.

What goes to RankLib ranks as it does here; scores are the same up to float32, save that networks
there end in a sigmoid, which moves every score and changes no order. A missing value counts as 0
there: `missing_notice` says where the model has it otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import registry
from rankwright.core.dtypes import highest_rounded_to, not_above
from rankwright.core.types import FittedModel
from rankwright.errors import UsageError
from rankwright.export.forest import Forest
from rankwright.export.lightgbm import blocks_of
from rankwright.export.portable import gaps_not_zero, portable
from rankwright.models.additive import FittedAdditive
from rankwright.models.imported_trees import ImportedForest
from rankwright.models.linear import FittedLinear
from rankwright.models.network import FittedNetwork
from rankwright.models.tree_text import model_text
from rankwright.models.trees import FittedTrees
from rankwright.persist.other_libraries import give_model
from rankwright.rankers.base import Ranker
from rankwright.ranklib.model_network import Network
from rankwright.ranklib.model_text import Body, ModelText, read_model_text, write_model_text
from rankwright.ranklib.model_trees import Ensembles
from rankwright.ranklib.model_weights import Steps, Terms
from rankwright.ranklib.settings import parameters_of, settings_of
from rankwright.ranklib.tree_conversion import ensembles_of, fitted_trees

REGISTERED = {
    "MART": "gbdt",
    "RankNet": "ranknet",
    "RankBoost": "rankboost",
    "AdaRank": "adarank",
    "Coordinate Ascent": "coordinate_ascent",
    "LambdaRank": "lambdarank",
    "LambdaMART": "lambdamart",
    "ListNet": "listnet",
    "Random Forests": "random_forest",
    "Linear Regression": "linear_regression",
}
_SHOWN = 5  # features that a notice names
_ALWAYS = -float(np.finfo(np.float32).max)  # every feature is above


def load_ranklib(path: str | Path, *, n_features: int | None = None) -> Ranker:
    """Read a model file of RankLib as a fitted ranker.

    Parameters
    ----------
    n_features
        How many features the data has, where that is more than the model uses.
    """
    return ranker_of(read_model_text(path), n_features=n_features)


def save_ranklib(ranker: Ranker, path: str | Path) -> None:
    """Write a fitted ranker as a model file that RankLib and the search engines' plugins read.

    Warns where the model has missing values otherwise than RankLib, which counts them as 0.
    """
    text, lost = text_of(ranker), missing_notice(ranker)
    write_model_text(text, path)
    if lost is not None:
        warnings.warn(lost, stacklevel=2)


def ranker_of(model: ModelText, *, n_features: int | None = None) -> Ranker:
    """Return a RankLib model as a fitted ranker."""
    width = max(model.n_features, n_features or 1)
    kind = registry.resolve("rankers", REGISTERED[model.name])
    ranker: Ranker = kind(**parameters_of(model))
    give_model(ranker, _fitted(model.body, width), best_iteration=_rounds(model.body))
    return ranker


def text_of(ranker: Ranker) -> ModelText:
    """Return a fitted ranker as a RankLib model."""
    model: Any = ranker._fitted()
    for kind, convert in _WRITERS.items():
        if isinstance(model, kind):
            name, body = convert(ranker, model)
            return ModelText(name, settings_of(name, ranker, body), body)
    raise UsageError(
        f"RankLib has no model like {type(ranker).__name__}'s '{ranker.model_name}'; "
        "trees, linear, additive and network models can be written for it."
    )


def missing_notice(ranker: Ranker) -> str | None:
    """Return what RankLib does otherwise with missing values than the model; None: nothing."""
    columns = gaps_not_zero(portable(ranker)).tolist()
    if not columns:
        return None
    names = getattr(ranker, "feature_names_in_", np.arange(1, ranker.n_features_in_ + 1))
    shown = ", ".join(str(names[column]) for column in columns[:_SHOWN])
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return (
        f"RankLib counts a missing value as 0, which this model does not do for feature {shown}"
        f"{more}: give every document a number there, or rank with the model file itself."
    )


# --- from RankLib ------------------------------------------------------------------------------


def _fitted(body: Body, width: int) -> FittedModel:
    if isinstance(body, Ensembles):
        return fitted_trees(body.trees, width, share=1.0 / len(body.ensembles))
    if isinstance(body, Terms):
        return FittedLinear(body.coefficients(width), None, width)
    if isinstance(body, Steps):
        # [float32(x) > t] for any x, also one of float64 that lies between
        cuts = highest_rounded_to(not_above(body.thresholds))
        empty = np.empty(0)
        none = FittedAdditive(np.empty(0, np.int64), empty, empty, 0.0, 0, width)
        rules = zip((body.features - 1).tolist(), cuts.tolist(), body.weights.tolist(), strict=True)
        return none.plus(list(rules))
    assert isinstance(body, Network)
    return _network(body, width)


def _network(body: Network, width: int) -> FittedNetwork:
    """RankLib's last sigmoid is one more hidden layer, of one unit that is the score."""
    first = np.zeros((width, body.weights[0].shape[1]))
    first[np.array(body.features) - 1] = body.weights[0]
    weights = [first, *body.weights[1:], np.ones((1, 1))]
    layers = tuple(zip(weights, [*body.constants, np.zeros(1)], strict=True))
    centre = np.zeros(width)
    return FittedNetwork(layers, (), 0, "sigmoid", centre, None, width)


def _rounds(body: Body) -> int:
    if isinstance(body, Ensembles):
        return len(body.ensembles) if body.forest else len(body.trees)
    return len(body.weights) if isinstance(body, Steps | Terms) else 1


# --- to RankLib --------------------------------------------------------------------------------


def _trees_text(ranker: Ranker, model: FittedTrees) -> tuple[str, Body]:
    if ranker.name != "random_forest":
        name = "MART" if ranker.name == "gbdt" else "LambdaMART"
        return name, Ensembles(ensembles_of(model))
    bags = max(1, min(ranker.best_iteration_, model.n_trees))
    if model.n_trees % bags:
        bags = model.n_trees  # bags of unequal size: the mean over all trees comes to the same
    return "Random Forests", Ensembles(ensembles_of(model, bags), forest=True)


def _imported_text(ranker: Ranker, model: ImportedForest) -> tuple[str, Body]:
    forest = portable(ranker)
    assert isinstance(forest, Forest)
    names = [f"Column_{j}" for j in range(model.n_features)]
    text = model_text(names, blocks_of(forest))
    return _trees_text(ranker, FittedTrees(text, forest.initial, model.n_features))


def _linear_text(ranker: Ranker, model: FittedLinear) -> tuple[str, Body]:
    every = np.arange(1, model.n_features + 1)
    if ranker.name == "adarank":
        there = np.flatnonzero(model.coef)
        return "AdaRank", Terms(every[there], model.coef[there])
    if ranker.name == "listnet":
        return "ListNet", Network(tuple(every.tolist()), (model.coef[:, None],), (np.zeros(1),))
    name = "Linear Regression" if ranker.name == "linear_regression" else "Coordinate Ascent"
    return name, Terms(every, model.coef)


def _additive_text(ranker: Ranker, model: FittedAdditive) -> tuple[str, Body]:  # noqa: ARG001
    features, weights = model.feature + 1, model.weight
    with np.errstate(over="ignore"):
        cuts = np.maximum(not_above(model.threshold).astype(np.float64), _ALWAYS)
    if model.initial:
        features, cuts = np.append(1, features), np.append(_ALWAYS, cuts)
        weights = np.append(model.initial, weights)
    return "RankBoost", Steps(features, cuts, weights)


def _network_text(ranker: Ranker, model: FittedNetwork) -> tuple[str, Body]:
    if model.context or (model.activation != "sigmoid" and len(model.layers) > 1):
        raise UsageError(
            "RankLib's networks have sigmoid units and no list context; fit with "
            "activation='sigmoid', or export to another format."
        )
    layers = model.layers
    last, constant = layers[-1]
    if len(layers) > 1 and last.shape == (1, 1) and last[0, 0] == 1.0 and not constant.any():
        layers = layers[:-1]  # a sigmoid score, as RankLib's own
    weights, constants = zip(*layers, strict=True)
    known = {"ranknet": "RankNet", "lambdarank": "LambdaRank", "listnet": "ListNet"}
    name = known.get(ranker.name, "RankNet")
    if name == "ListNet" and len(layers) > 1:
        name = "RankNet"  # ListNet has no hidden layers in RankLib
    features = tuple(range(1, model.n_features + 1))
    return name, Network(features, tuple(weights), tuple(constants))


_WRITERS: dict[type, Callable[[Ranker, Any], tuple[str, Body]]] = {
    FittedTrees: _trees_text,
    ImportedForest: _imported_text,
    FittedLinear: _linear_text,
    FittedAdditive: _additive_text,
    FittedNetwork: _network_text,
}
