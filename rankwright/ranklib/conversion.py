"""RankLib's models as rankers of ours, and our fitted rankers as models that RankLib reads.

A model that comes from RankLib scores as it does there, up to the float32 rounding that RankLib
does after each tree and to the constant of Linear Regression, which changes no ranking; it can be
evaluated, explained, saved and exported like any other.

A model that goes to RankLib ranks as it does here; scores are the same up to float32, save that
networks there end in a sigmoid, which moves every score and changes no order. A missing value
counts as 0 there: `missing_notice` says where the model treats it differently.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwright import registry
from rankwright.core.parameters import params_of
from rankwright.core.types import F64, FittedModel
from rankwright.errors import UsageError
from rankwright.models import network as layers
from rankwright.models.additive import rules_of, with_rules
from rankwright.models.blend import FittedBlend
from rankwright.models.fitted_network import FittedNetwork
from rankwright.models.forest import Forest, node_means
from rankwright.models.forest_scoring import PLAIN
from rankwright.models.linear import FittedLinear
from rankwright.models.portable import (
    HIGHEST,
    PortableForest,
    columns_missing_is_not_zero,
    portable,
)
from rankwright.models.portable import Linear as PortableLinear
from rankwright.models.portable import Network as PortableNetwork
from rankwright.models.thresholds import highest_rounded_to, not_above
from rankwright.models.trees import Trees
from rankwright.persist.other_libraries import give_model
from rankwright.rankers.base import Ranker
from rankwright.ranklib.java_numbers import java_double
from rankwright.ranklib.model_text import (
    Body,
    Ensembles,
    ModelText,
    Network,
    Steps,
    Terms,
    Tree,
    read_model_text,
    write_model_text,
)

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
    ranker = of_one_kind(ranker)
    model: Any = ranker._fitted()
    for kind, convert in _WRITERS.items():
        if isinstance(model, kind):
            name, body = convert(ranker, model)
            return ModelText(name, settings_of(name, ranker, body), body)
    raise UsageError(
        f"RankLib has no model like {type(ranker).__name__}'s '{ranker.model_name}'; "
        "trees, linear, additive and network models can be written for it."
    )


def of_one_kind(ranker: Ranker) -> Ranker:
    """Return a blend of trees, of weights or of one network as a ranker of such a model.

    Any other ranker is returned as it is.
    """
    model: Any = ranker._fitted()
    if not isinstance(model, FittedBlend):
        return ranker
    parts = portable(model, ranker.model_name)
    made = copy.copy(ranker)
    if isinstance(parts, PortableForest):
        made.model_ = parts
    elif isinstance(parts, PortableLinear):
        made.model_ = FittedLinear(parts.coef, parts.fill, parts.intercept)
    elif isinstance(parts, PortableNetwork):
        made.model_ = FittedNetwork(
            parts.layers, (), 0, parts.activation, parts.centre, parts.fill, model.n_features
        )
    return made


def missing_notice(ranker: Ranker) -> str | None:
    """Return what RankLib does otherwise with missing values than the model; None: nothing."""
    columns = columns_missing_is_not_zero(portable(ranker._fitted(), ranker.model_name)).tolist()
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
        share = 1.0 / len(body.ensembles)
        return Forest.of_trees(width, [_forest_of(tree, width, share) for tree in body.trees])
    if isinstance(body, Terms):
        return FittedLinear(body.coefficients(width))
    if isinstance(body, Steps):
        # [float32(x) > t] for any x, also for a float64 between two float32 numbers
        cuts = highest_rounded_to(not_above(body.thresholds)).tolist()
        rules = [*zip((body.features - 1).tolist(), cuts, body.weights.tolist(), strict=True)]
        return with_rules(Forest.empty(width), rules, len(rules))
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


def _forest_text(ranker: Ranker, model: Forest) -> tuple[str, Body]:
    if model.is_rules:
        return "RankBoost", _steps(model)
    plain = model.as_sum()
    if ranker.name != "random_forest":
        name = "MART" if ranker.name == "gbdt" else "LambdaMART"
        return name, Ensembles(ensembles_of(plain))
    bags = max(1, min(ranker.best_iteration_, plain.n_trees))
    if plain.n_trees % bags:
        bags = plain.n_trees  # bags of unequal size: the mean of all trees is the same
    return "Random Forests", Ensembles(ensembles_of(plain, bags), forest=True)


def _steps(model: Forest) -> Steps:
    feature, threshold, weight = (np.array(column) for column in zip(*rules_of(model), strict=True))
    with np.errstate(over="ignore"):
        cuts = np.maximum(not_above(threshold).astype(np.float64), _ALWAYS)
    feature = feature + 1
    if model.base:
        feature, cuts = np.append(1, feature), np.append(_ALWAYS, cuts)
        weight = np.append(model.base, weight)
    return Steps(feature, cuts, weight)


def _linear_text(ranker: Ranker, model: FittedLinear) -> tuple[str, Body]:
    every = np.arange(1, model.n_features + 1)
    if ranker.name == "adarank":
        there = np.flatnonzero(model.coef)
        return "AdaRank", Terms(every[there], model.coef[there])
    if ranker.name == "listnet":
        return "ListNet", Network(tuple(every.tolist()), (model.coef[:, None],), (np.zeros(1),))
    if model.intercept or ranker.name == "linear_regression":  # the constant is feature 0
        weights = np.append(model.intercept, model.coef)
        return "Linear Regression", Terms(np.append(0, every), weights)
    return "Coordinate Ascent", Terms(every, model.coef)


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
    Forest: _forest_text,
    FittedLinear: _linear_text,
    FittedNetwork: _network_text,
}


# --- trees -------------------------------------------------------------------------------------
# Between RankLib's trees and node arrays.
#
# - RankLib rounds features to float32 before it compares. The threshold becomes the highest float64
#   that float32 rounds to RankLib's, so both send every document to the same leaf, for features in
#   float32 and in float64. The reverse is the highest float32 that is not above.
# - The value of a leaf is weight x output; outputs have float32 precision.
# - RankLib's text has no document counts: each leaf counts as one document in gains and SHAP values
#   of a model that comes from RankLib.


def _forest_of(tree: Tree, n_features: int, share: float) -> Forest:
    """Return ``share`` times a tree."""
    is_split = tree.feature > 0
    left, right = np.where(is_split, tree.left, -1), np.where(is_split, tree.right, -1)
    value = np.where(is_split, 0.0, tree.weight * tree.output * share)
    cover, _, gain = node_means(left, right, value, np.where(is_split, 0.0, 1.0))
    return Forest.of_nodes(
        n_features,
        left=left,
        right=right,
        feature=tree.feature - 1,
        threshold=highest_rounded_to(tree.threshold),
        rule=np.full(len(left), PLAIN),
        value=value,
        cover=cover,
        gain=gain,
        shrinkage=tree.weight,
    )


def ensembles_of(model: Forest, n_bags: int = 1) -> tuple[tuple[Tree, ...], ...]:
    """Return a model's trees as RankLib has them, in ``n_bags`` ensembles whose mean they are.

    The initial score, which RankLib does not know, is added to the leaves of each first tree.
    """
    if model.is_set.any():
        raise UsageError(
            "the model has splits on categories, which RankLib does not know; "
            "fit it without categorical_feature and columns of categories."
        )
    trees = [_tree_of(model.select(k, k + 1), 1.0 / n_bags) for k in range(model.n_trees)]
    trees = trees or [_single_leaf(0.0)] * n_bags
    size = len(trees) // n_bags
    bags = [trees[i * size : (i + 1) * size] for i in range(n_bags)]
    return tuple((_raised(bag[0], model.offset), *bag[1:]) for bag in bags)


def _raised(tree: Tree, by: float) -> Tree:
    output = np.where(tree.feature > 0, 0.0, _single(tree.output + by / tree.weight))
    return replace(tree, output=output) if by else tree


def _tree_of(forest: Forest, share: float) -> Tree:
    """Return a forest of one tree as a tree of RankLib."""
    weight = float(np.float32(forest.shrinkage[0])) or 1.0
    is_leaf = forest.is_leaf
    # A split between all numbers and missing values is at infinity, which RankLib cannot read.
    cuts = np.clip(not_above(forest.threshold), -HIGHEST, HIGHEST).astype(np.float32)
    tree = Tree(
        weight,
        np.where(is_leaf, 0, forest.feature + 1),
        np.where(is_leaf, np.float32(0.0), cuts),
        np.where(is_leaf, -1, forest.left),
        np.where(is_leaf, -1, forest.right),
        np.where(is_leaf, _single(forest.value / (weight * share)), 0.0),
    )
    return _in_text_order(tree)


def _in_text_order(tree: Tree) -> Tree:
    """Return the tree with its nodes in the order in which the text has them."""
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if tree.feature[node] > 0:
            waiting += [int(tree.right[node]), int(tree.left[node])]
    place = np.full(len(order) + 1, -1)  # the last stands for no child
    place[order] = np.arange(len(order))
    return Tree(
        tree.weight,
        tree.feature[order],
        tree.threshold[order],
        place[tree.left[order]],
        place[tree.right[order]],
        tree.output[order],
    )


def _single_leaf(output: float) -> Tree:
    zero, none = np.zeros(1, np.int64), np.full(1, -1)
    return Tree(1.0, zero, np.zeros(1, np.float32), none, none, _single(np.array([output])))


def _single(values: F64) -> F64:
    return values.astype(np.float32).astype(np.float64)


# --- settings ----------------------------------------------------------------------------------
# The ``##`` lines of a model text, from a ranker's parameters and back.
#
# They say how a model was made and do not change its scores, so one that cannot be read is left at
# the ranker's default.


class Setting(NamedTuple):
    """A line: what RankLib calls it, our parameter, and what is written without one."""

    name: str
    parameter: str | None
    default: int | float | str


_BOOSTED = (
    Setting("No. of trees", "n_estimators", 1000),
    Setting("No. of leaves", "num_leaves", 10),
    Setting("No. of threshold candidates", "max_bins", 256),
    Setting("Learning rate", "learning_rate", 0.1),
    Setting("Stop early", "early_stopping_rounds", 100),
)
_NETWORK = (Setting("Epochs", "epochs", 100),)
SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "MART": _BOOSTED,
    "LambdaMART": _BOOSTED,
    "Random Forests": (
        Setting("No. of bags", "n_bags", 300),
        Setting("Sub-sampling", "bag_fraction", 1.0),
        Setting("Feature-sampling", "colsample_bytree", 0.3),
        Setting("No. of trees", "n_estimators", 1),
        Setting("No. of leaves", "num_leaves", 100),
        Setting("No. of threshold candidates", "max_bins", 256),
        Setting("Learning rate", "learning_rate", 0.1),
    ),
    "Coordinate Ascent": (
        Setting("Restart", "n_restarts", 5),
        Setting("MaxIteration", "n_steps", 25),
        Setting("StepBase", None, 0.05),
        Setting("StepScale", None, 2.0),
        Setting("Tolerance", "tol", 0.001),
        Setting("Regularized", None, "false"),
        Setting("Slack", "reg", 0.001),
    ),
    "Linear Regression": (Setting("Lambda", "l2", 1e-10),),
    "AdaRank": (
        Setting("Iteration", "n_rounds", 500),
        Setting("Train with enqueue", "enqueue", "Yes"),
        Setting("Tolerance", "tol", 0.002),
        Setting("Max consecutive selection count", "max_selections", 5),
    ),
    "RankBoost": (
        Setting("Iteration", "n_rounds", 300),
        Setting("No. of threshold candidates", "n_candidates", 10),
    ),
    "RankNet": _NETWORK,
    "LambdaRank": _NETWORK,
    "ListNet": (Setting("Epochs", "epochs", 1500),),
}


def settings_of(name: str, ranker: Ranker, body: Body) -> tuple[tuple[str, str], ...]:
    """Return the lines for a model that ``ranker`` made."""
    nested = ranker.get_params(deep=True)
    of_model = {k: v for k, v in nested.items() if k.startswith("model__")}
    parameters = {**nested, **{k.removeprefix("model__"): v for k, v in of_model.items()}}
    lines = []
    for setting in SETTINGS[name]:
        value = parameters.get(setting.parameter) if setting.parameter else None
        if setting.parameter == "reg" and not value:
            value = None
        if setting.name == "Regularized":
            value = "true" if parameters.get("reg") else "false"
        lines.append((setting.name, _text(setting.default if value is None else value)))
    if isinstance(body, Network):
        lines.append(("No. of features", str(len(body.features))))
        if name != "ListNet":
            lines.append(("No. of hidden layers", str(len(body.hidden))))
            lines += [(f"Layer {i}", f"{n} neurons") for i, n in enumerate(body.hidden, 1)]
    return tuple(lines)


def parameters_of(model: ModelText) -> dict[str, Any]:
    """Return the parameters of our ranker that made, or could have made, a RankLib model."""
    given = dict(model.settings)
    found: dict[str, Any] = {}
    for setting in SETTINGS[model.name]:
        if setting.parameter is not None and setting.name in given:
            value = _value(given[setting.name], setting.default)
            if value is not None:
                found[setting.parameter] = value
    if model.name == "Coordinate Ascent" and given.get("Regularized") != "true":
        found.pop("reg", None)
    if isinstance(model.body, Network):
        sizes = (*model.body.hidden, 1)
        trained = {"epochs": found.pop("epochs")} if "epochs" in found else {}
        found["model"] = layers.Network(hidden_layer_sizes=sizes, activation="sigmoid", **trained)
    if SETTINGS[model.name] is _BOOSTED:
        of_trees = {name: found.pop(name) for name in params_of(Trees()) if name in found}
        found["model"] = Trees(**of_trees)
    return found


def _text(value: int | float | str) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if value == "all":
        return "-1"
    return java_double(value) if isinstance(value, float) else str(value)


def _value(text: str, default: int | float | str) -> int | float | bool | None:
    if isinstance(default, str):
        return {"yes": True, "no": False}.get(text.lower())
    try:
        return float(text) if isinstance(default, float) else int(float(text))
    except (ValueError, OverflowError):
        return None
