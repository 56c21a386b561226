"""``xgboost-json``: XGBoost's model file in JSON, for ``xgboost.Booster(model_file=...)``.

XGBoost holds features, thresholds and scores in float32 and sends x left where x < t. So t is the
next float32 above the model's threshold, rounded down first: x < t and x <= threshold agree for
every float32. XGBoost looks for a right child beside the left one, whatever the file says, so nodes
are numbered level by level. A linear model is the booster ``gblinear``.

The learning-to-rank plugins read the same file (``model/xgboost+json+raw``), but know few
objectives, of which ``rank:pairwise`` leaves scores as they are, and no ``base_score``: the initial
score is a first tree of one leaf.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import MissingExtraError
from rankwright.export.target import (
    KEPT,
    SINGLE,
    Job,
    ParityError,
    Target,
    Written,
    float32_thresholds,
    shortest,
    strictly_above,
)
from rankwright.models.forest import Forest
from rankwright.models.portable import Linear, PortableForest

_NO_PARENT = 2147483647
_PLACES = ("left_children", "right_children", "split_indices", "parents")
_OF_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
_OF_NODES = (
    "base_weights", "default_left", "loss_changes", "split_conditions", "sum_hessian",
)  # fmt: skip


class XGBoostJson(Target):
    """XGBoost's JSON model file."""

    families = frozenset({"linear", "additive", "trees"})
    single = True
    evaluator = "XGBoost"
    lacks = ": it supports trees and linear weights only"

    def write(self, job: Job) -> Written:
        """Return model.json."""
        model = job.model
        if isinstance(model, PortableForest):
            model.check_numeric(self.name)
            thresholds = float32_thresholds(model, strictly_above(model.threshold))
            takes = np.ones(len(job.names), bool)
            booster: dict[str, Any] = _trees(model)
        else:
            assert isinstance(model, Linear)
            thresholds, takes = None, model.fill_value == 0.0
            weights = [float(shortest(w)) for w in (*model.coef, model.intercept)]
            booster = {"name": "gblinear", "model": {"boosted_rounds": 1, "weights": weights}}
        zero = "a missing value counts as 0, which this model takes only where it was so trained"
        text = json.dumps(_learner(booster, job.names), allow_nan=False)
        return Written(
            files={"model.json": text.encode()},
            epsilon=SINGLE,
            missing=KEPT if takes.all() else zero,
            takes_missing=takes,
            thresholds=thresholds,
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return XGBoost's scores."""
        try:
            import xgboost
        except ImportError:
            raise MissingExtraError(
                "xgboost", "xgboost", "verifying an export to XGBoost"
            ) from None
        path = folder / "model.json"
        _check(path, len(about["features"]))
        try:
            booster = xgboost.Booster({"nthread": 1}, model_file=str(path))
            if booster.feature_names != [feature["name"] for feature in about["features"]]:
                raise ParityError(f"{path} has other features than its export.json.")
            matrix = xgboost.DMatrix(
                X.astype(np.float32), feature_names=booster.feature_names, nthread=1
            )
            return np.asarray(booster.predict(matrix, output_margin=True), np.float64)
        except (xgboost.core.XGBoostError, UnicodeDecodeError) as error:  # of its own message
            reason = str(error).splitlines()[0][:200]
            raise ParityError(f"XGBoost cannot read {path}: {reason}.") from None


def _check(path: Path, n_features: int) -> None:
    """Refuse a file that XGBoost would read past the end of."""
    try:
        booster = json.loads(path.read_bytes())["learner"]["gradient_booster"]
        model = booster["model"]
        if booster["name"] == "gblinear":
            whole = np.shape(np.array(model["weights"], np.float64)) == (n_features + 1,)
        else:
            trees = model["trees"]
            whole = (
                booster == {"name": "gbtree", "model": {**_counts(len(trees)), "trees": trees}}
                and all(_is_whole(tree, n_features) for tree in trees)
            )  # fmt: skip
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError):
        whole = False
    if not whole:
        raise ParityError(f"{path} is not the file of a model; export the model again.")


def _is_whole(tree: Mapping[str, Any], n_features: int) -> bool:
    """Whether nodes and features of a tree are within it, and the rest is as we write it."""
    n = len(tree["left_children"])
    kept = [np.array(tree[name], np.float64) for name in _OF_NODES]
    left, right, feature, parents = (np.array(tree[name], np.int64) for name in _PLACES)
    if n == 0 or any(np.shape(values) != (n,) for values in (*kept, left, right, feature, parents)):
        return False
    nodes = np.flatnonzero(left >= 0)
    above = np.full(n, _NO_PARENT)
    above[left[nodes]] = above[right[nodes]] = nodes
    return (
        bool((left[nodes] > nodes).all() and (right[nodes] == left[nodes] + 1).all())
        and np.array_equal(parents, above)
        and bool(((feature >= 0) & (feature < n_features)).all())
        and {**tree, **_fixed_parts(n, n_features)} == tree
    )


def _learner(booster: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "version": [2, 0, 0],
        "learner": {
            "attributes": {},
            "feature_names": list(names),
            "feature_types": ["float"] * len(names),
            "gradient_booster": booster,
            "learner_model_param": {
                "base_score": "0.0",
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(len(names)),
                "num_target": "1",
            },
            "objective": {"name": "rank:pairwise", "lambdarank_param": {}},
        },
    }


def _trees(model: PortableForest) -> dict[str, Any]:
    roots = [(model, int(root)) for root in model.roots]
    if model.offset:
        leaf = Forest.leaf(model.n_features, model.offset)
        roots.insert(0, (PortableForest.of(leaf), 0))
    trees = [_tree(forest, number, root) for number, (forest, root) in enumerate(roots)]
    return {
        "name": "gbtree",
        "model": {
            **_counts(len(trees)),
            "trees": trees,
        },
    }


def _counts(n_trees: int) -> dict[str, Any]:
    """Return what a booster of trees says of their number."""
    return {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(n_trees)},
        "iteration_indptr": list(range(n_trees + 1)),
        "tree_info": [0] * n_trees,
    }


def _fixed_parts(n: int, n_features: int) -> dict[str, Any]:
    """Return the parts of a tree of n nodes that do not depend on the model: no categories."""
    return {
        **{name: [] for name in _OF_CATEGORIES},
        "split_type": [0] * n,
        "tree_param": {"num_deleted": "0", "num_feature": str(n_features),
                       "num_nodes": str(n), "size_leaf_vector": "1"},
    }  # fmt: skip


def _tree(model: PortableForest, number: int, root: int) -> dict[str, Any]:
    order = [root]  # level by level: XGBoost finds a right child next to the left one
    for node in order:
        if model.left[node] != node:
            order += [int(model.left[node]), int(model.right[node])]
    place = {node: k for k, node in enumerate(order)}
    at, n = np.array(order), len(order)
    inner = model.left[at] != at
    cuts, leaves = strictly_above(model.threshold[at]), model.value[at]
    left = [place[int(c)] if split else -1 for c, split in zip(model.left[at], inner, strict=True)]
    right = [k + 1 if k >= 0 else -1 for k in left]
    parents = [_NO_PARENT] * n
    for k, split in enumerate(inner):
        if split:
            parents[left[k]] = parents[right[k]] = k
    return {
        "base_weights": [float(shortest(value)) for value in leaves],
        "default_left": (model.missing_left[at] & inner).astype(int).tolist(),
        "id": number,
        "left_children": left,
        "loss_changes": [0.0] * n,
        "parents": parents,
        "right_children": right,
        "split_conditions": [float(shortest(v)) for v in np.where(inner, cuts, leaves)],
        "split_indices": np.where(inner, model.feature[at], 0).tolist(),
        "sum_hessian": [1.0] * n,
        **_fixed_parts(n, model.n_features),
    }
