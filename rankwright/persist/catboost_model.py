"""Read models of CatBoost from JSON, with symmetric or other trees, with the same scores.

A split sends x right where x > border, in float32; leaves are added in double precision, then
multiplied by a scale, and a bias is added. The file has no gains of splits: they are computed from
the leaf values by `node_means`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwright.errors import DataError, IncompatibleError, quoted
from rankwright.models.forest import Forest, node_means
from rankwright.models.forest_scoring import EXACT_LEFT, EXACT_RIGHT
from rankwright.models.thresholds import highest_rounded_to
from rankwright.persist.imported import ImportedModel, distinct_names

_DEEPEST = 16  # symmetric trees of CatBoost
_NAN = {"AsIs": EXACT_LEFT, "AsFalse": EXACT_LEFT, "AsTrue": EXACT_RIGHT}


def read_catboost(content: bytes) -> ImportedModel:
    """Return the model of a file that CatBoost saved with ``format="json"``."""
    model = json.loads(content)
    scale, biases = model["scale_and_bias"]
    biases = biases if isinstance(biases, list) else [biases]
    if len(biases) > 1:
        raise _several()
    features = _Features(model["features_info"])
    symmetric = model.get("oblivious_trees")
    trees = (
        [_symmetric(tree, features) for tree in symmetric]
        if symmetric is not None
        else [_nested(tree, features) for tree in model["trees"]]
    )
    forest = Forest.of_trees(
        features.width,
        trees,
        scale=float(scale),
        offset=float(biases[0]) if biases else 0.0,
        n_rounds=len(trees),
    )
    forest.validate()
    return ImportedModel(
        library="CatBoost",
        objective=_objective(model.get("model_info", {})),
        model=forest,
        names=features.names,
        rounds=len(trees),
    )


class _Features:
    """Columns of the float features of a model, and the direction of their missing values."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        features = [feature for kind in info.values() if isinstance(kind, list) for feature in kind
                    if isinstance(feature, dict) and "flat_feature_index" in feature]  # fmt: skip
        columns = [int(feature["flat_feature_index"]) for feature in features]
        self.width = max(columns, default=0) + 1
        if not 0 < self.width < 1 << 24 or min(columns, default=0) < 0:
            raise DataError("its features have no columns.")
        name_of = dict(zip(columns, (str(f.get("feature_id", "")) for f in features), strict=True))
        names = [name_of.get(column) or str(column) for column in range(self.width)]
        self.names = distinct_names(names) if any(name_of.values()) else None
        self._floats: dict[int, tuple[int, int]] = {}
        for feature in info.get("float_features") or []:
            rule = _NAN[str(feature.get("nan_value_treatment", "AsIs"))]
            self._floats[int(feature["feature_index"])] = int(feature["flat_feature_index"]), rule

    def split(self, split: Mapping[str, Any]) -> tuple[int, int, float]:
        """Return the column, rule and border of a split."""
        if split.get("split_type", "FloatFeature") != "FloatFeature":
            raise IncompatibleError(
                f"it splits on a feature of the kind {quoted(split['split_type'])}: only numeric "
                "features can be imported; encode categories and text as numbers before training."
            )
        column, rule = self._floats[int(split["float_feature_index"])]
        return column, rule, float(split["border"])


def _several() -> IncompatibleError:
    return IncompatibleError(
        "it has several scores for each document, one for each class; a ranking needs one; "
        "train with a ranking, regression or binary objective."
    )


def _objective(info: Mapping[str, Any]) -> str:
    params = info.get("params", {})
    loss = params.get("loss_function", {}) if isinstance(params, dict) else {}
    return str(loss.get("type", "")) if isinstance(loss, dict) else ""


def _symmetric(tree: Mapping[str, Any], features: _Features) -> Forest:
    """Return a symmetric tree. Split k decides bit k of a leaf's number; the last is the root."""
    splits = [features.split(one) for one in tree.get("splits") or []]
    d = len(splits)
    value = np.array(tree["leaf_values"], np.float64)
    weight = np.array(tree.get("leaf_weights") or np.ones(len(value)), np.float64)
    if d > _DEEPEST or len(value) < 1 << d:
        raise DataError(f"a tree has {len(value)} leaves for {d} splits.")
    if len(value) > 1 << d:
        raise _several()
    if len(weight) != len(value):
        raise DataError("a tree has lists of different lengths.")
    level = np.repeat(np.arange(d), 1 << np.arange(d))  # of each split, from the root
    column, rule, border = (
        np.array([split[k] for split in splits[::-1]], kind)[level]
        for k, kind in enumerate((np.int64, np.int64, np.float32))
    )
    inner = (1 << d) - 1
    node = np.arange(inner)
    none, of_leaf = np.full(len(value), -1), np.zeros(len(value), np.int64)
    left = np.append(2 * node + 1, none)
    right = np.append(2 * node + 2, none)
    values = np.append(np.zeros(inner), value)
    cover, _, gain = node_means(left, right, values, np.append(np.zeros(inner), weight))
    return Forest.of_nodes(
        features.width,
        left=left,
        right=right,
        feature=np.append(column, of_leaf),
        threshold=np.append(highest_rounded_to(border), np.zeros(len(value))),
        rule=np.append(rule, of_leaf),
        value=values,
        cover=cover,
        gain=gain,
    )


def _nested(tree: Mapping[str, Any], features: _Features) -> Forest:
    """Return a tree of nested splits."""
    nodes: list[Mapping[str, Any]] = [tree]
    splits: dict[int, tuple[int, int, float]] = {}
    left: list[int] = []
    right: list[int] = []
    for node in nodes:  # the list grows during the loop
        if "split" in node:
            splits[len(left)] = features.split(node["split"])
            left.append(len(nodes))
            right.append(len(nodes) + 1)
            nodes += [node["left"], node["right"]]
        else:
            left.append(-1)
            right.append(-1)
            if isinstance(node["value"], list):
                raise _several()
    order = sorted(range(len(nodes)), key=lambda node: node not in splits)  # splits first
    place = np.empty(len(nodes), np.int64)
    place[order] = np.arange(len(nodes))
    n = len(splits)
    looks = [splits.get(node, (0, 0, 0.0)) for node in order]
    value = np.array([float(nodes[node].get("value", 0.0)) for node in order])
    weight = np.array([float(nodes[node].get("weight", 1.0)) for node in order[n:]])
    children = [np.append(place[[side[node] for node in order[:n]]], np.full(len(nodes) - n, -1))
                if n else np.full(len(nodes), -1) for side in (left, right)]  # fmt: skip
    cover, _, gain = node_means(children[0], children[1], value, np.append(np.zeros(n), weight))
    return Forest.of_nodes(
        features.width,
        left=children[0],
        right=children[1],
        feature=np.array([look[0] for look in looks], np.int64),
        threshold=highest_rounded_to(np.array([look[2] for look in looks], np.float32)),
        rule=np.array([look[1] for look in looks], np.int64),
        value=value,
        cover=cover,
        gain=gain,
    )
