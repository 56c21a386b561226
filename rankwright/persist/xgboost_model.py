"""Read models of XGBoost from JSON or UBJSON as trees with the same scores.

Leaves are float32 and are added in single precision to the base score; a split sends x left if
x < threshold, in float32. The listed categories of a categorical split go right.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.frames import Categories
from rankwright.errors import DataError, IncompatibleError, MissingExtraError, quoted
from rankwright.models.forest import Forest
from rankwright.models.forest_scoring import EXACT_LEFT, EXACT_RIGHT, MEMBER, MEMBER_OR_NAN
from rankwright.models.thresholds import highest_rounded_to
from rankwright.persist.imported import ImportedModel, category_list, distinct_names

_LOGISTIC = {"binary:logistic", "binary:logitraw", "reg:logistic"}
_LOGARITHM = {"count:poisson", "reg:gamma", "reg:tweedie"}
_SAME = {
    "rank:ndcg", "rank:pairwise", "rank:map", "reg:squarederror", "reg:linear",
    "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror",
    "binary:hinge",
}  # fmt: skip
_MAX_CATEGORIES = 1 << 24  # of XGBoost
_CONVERT = """
import sys, xgboost
content = bytearray(sys.stdin.buffer.read())
try:
    import resource
    limit, hard = (4 << 30) + 100 * len(content), resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))
except ImportError:
    pass
sys.stdout.buffer.write(xgboost.Booster(model_file=content).save_raw("json"))
"""
_CONVERT_SECONDS = 60


def read_xgboost(content: bytes) -> ImportedModel:
    """Return the model of a file in JSON or UBJSON.

    A file of scikit-learn's interface (XGBRanker) ends with its best iteration, as its ``predict``
    does; one of a Booster has all trees.
    """
    file = json.loads(content if content.lstrip()[:2] != b"{L" else _json_of_ubjson(content))
    attributes = file["learner"].get("attributes", {})
    wrapped = "scikit_learn" in attributes and "best_iteration" in attributes
    return model_of(file, int(attributes["best_iteration"]) + 1 if wrapped else None)


def _json_of_ubjson(content: bytes) -> bytes:
    """Convert a model with XGBoost in another process, because a damaged file can crash it."""
    if find_spec("xgboost") is None:
        raise MissingExtraError("xgboost", "xgboost", "a model in UBJSON (.ubj)")
    try:
        conversion = subprocess.run(
            [sys.executable, "-P", "-c", _CONVERT],
            input=content,
            capture_output=True,
            timeout=_CONVERT_SECONDS,
            check=True,
        )
    except subprocess.SubprocessError:
        raise DataError("XGBoost cannot read it.") from None
    return conversion.stdout


def model_of(file: Mapping[str, Any], rounds: int | None) -> ImportedModel:
    """Return the model of XGBoost's parsed file, with its first ``rounds``; None takes all."""
    learner = file["learner"]
    shape, objective = learner["learner_model_param"], str(learner["objective"]["name"])
    base = [float(part) for part in str(shape["base_score"]).strip("[]").split(",")]
    if int(shape.get("num_class", 0)) > 1 or int(shape.get("num_target", 1)) > 1 or len(base) > 1:
        raise IncompatibleError(
            "it has several scores for each document, one for each class or target; a "
            "ranking needs one; train with a ranking, regression or binary objective."
        )
    booster = learner["gradient_booster"]
    kind = str(booster["name"])
    if kind not in ("gbtree", "dart"):
        raise IncompatibleError(
            f"its booster is {quoted(kind)}, and only trees (gbtree, dart) can be imported; fit "
            "a linear ranker such as RankSVM instead."
        )
    model = booster["gbtree"]["model"] if kind == "dart" else booster["model"]
    width = int(shape["num_feature"])
    trees = model["trees"]
    ends = _rounds(model, len(trees))
    n_rounds = len(ends) if rounds is None else rounds
    if not 0 <= n_rounds <= len(ends):
        raise DataError(f"its best iteration is {n_rounds - 1}, of {len(ends)}.")
    selected = trees[: ends[n_rounds - 1] if n_rounds else 0]
    weights = booster["weight_drop"] if kind == "dart" else np.ones(len(trees))
    if len(weights) != len(trees):
        raise DataError(f"it has {len(weights)} weights for {len(trees)} trees.")
    if not 0 < width < 1 << 24:
        raise DataError(f"it has {width} features.")
    forest = Forest.of_trees(
        width,
        [_tree(tree, width, np.float32(w)) for tree, w in zip(selected, weights, strict=False)],
        base=_margin(base[0], objective),
        absent_is_missing=True,
        n_rounds=n_rounds,
    )
    forest.validate()
    names = [str(name) for name in learner.get("feature_names") or []]
    if names and len(names) != width:
        raise DataError(f"it has {len(names)} names for {width} features.")
    return ImportedModel(
        library="XGBoost",
        objective=objective,
        model=forest,
        names=distinct_names(names) if names else None,
        rounds=n_rounds,
        categories=_categories(model.get("cats") or {}, names),
    )


def _categories(cats: Mapping[str, Any], names: Sequence[str]) -> dict[str, Categories] | None:
    """Return the categories of the training frame, which files since XGBoost 3.1 have.

    Texts are stored as bytes with offsets. For a pandas frame XGBoost 3.2 counts offsets in
    characters, so that texts with characters of several bytes cannot be recovered.
    """
    encodings = cats.get("enc") or []
    if not names or not encodings:
        return None
    if len(encodings) != len(names):
        raise DataError(f"it has categories of {len(encodings)} features for {len(names)} names.")
    categories = {}
    for name, encoding in zip(names, encodings, strict=True):
        values = np.array(encoding["values"], np.int64)
        if "offsets" in encoding:
            text = values.astype(np.uint8).tobytes()
            if not text.isascii():
                warnings.warn(
                    "XGBoost does not keep categories beyond ASCII, and feature "
                    f"{quoted(name)} has some; give its codes 0, 1, ... in their place, as "
                    ".cat.codes has them.",
                    stacklevel=6,
                )
                continue
            cuts = np.array(encoding["offsets"], np.int64).tolist()
            if sorted(cuts) != cuts or (cuts and (cuts[0] != 0 or cuts[-1] != len(text))):
                raise DataError(f"the categories of {quoted(name)} are cut wrongly.")
            listed = [text[a:b].decode() for a, b in pairwise(cuts)]
        else:
            listed = values.tolist()
        if listed:
            categories[name] = category_list(listed)
    return categories or None


def _rounds(model: Mapping[str, Any], n_trees: int) -> list[int]:
    """Return the number of trees after each round."""
    if "iteration_indptr" in model:
        cuts = [int(end) for end in model["iteration_indptr"]]
    else:
        step = max(1, int(model["gbtree_model_param"].get("num_parallel_tree", 1)))
        cuts = list(range(0, n_trees + 1, step))
    if not cuts or cuts[0] != 0 or cuts[-1] != n_trees or sorted(cuts) != cuts:
        raise DataError(f"its iterations do not add up to its {n_trees} trees.")
    return cuts[1:]


def _margin(base: float, objective: str) -> float:
    """Return the score that the trees are added to, from the base score of the objective."""
    if objective in _SAME:
        margin = base
    elif objective in _LOGISTIC and 0.0 < base < 1.0:
        share = np.float32(1.0) / np.float32(base) - np.float32(1.0)
        margin = -math.log(share)
    elif objective in _LOGARITHM and base > 0.0:
        margin = math.log(np.float32(base))
    else:
        raise IncompatibleError(
            f"its objective {quoted(objective)} with the base score {base} is not known; ranking, "
            "regression and binary objectives are."
        )
    return float(np.float32(margin))


def _tree(tree: Mapping[str, Any], width: int, weight: np.float32) -> Forest:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise IncompatibleError(
            "its leaves have several scores (multi_strategy='multi_output_tree'); "
            "a ranking needs one."
        )

    def numbers(name: str, kind: Any = np.int64) -> AnyArray:
        return np.array(tree[name], kind)

    left, right = numbers("left_children"), numbers("right_children")
    feature, value = numbers("split_indices"), numbers("split_conditions", np.float32)
    default_left = numbers("default_left") != 0
    with np.errstate(over="ignore"):
        below = highest_rounded_to(np.nextafter(value, np.float32(-np.inf)))
    rule = np.where(default_left, EXACT_LEFT, EXACT_RIGHT)
    sets = _sets(tree, len(left))
    if sets:  # XGBoost sends the listed categories to the right
        at = np.array(sorted(sets))
        left[at], right[at] = right[at], left[at]
        rule[at] = np.where(default_left[at], MEMBER, MEMBER_OR_NAN)
        below[at] = 0.0
    return Forest.of_nodes(
        width,
        left=left,
        right=right,
        feature=feature,
        threshold=below,
        rule=rule,
        value=value * weight,
        cover=numbers("sum_hessian", np.float64),
        gain=numbers("loss_changes", np.float64),
        sets=sets,
    )


def _sets(tree: Mapping[str, Any], n: int) -> dict[int, AnyArray]:
    """Return the categories listed for each categorical split, as bits."""
    kinds = np.array(tree.get("split_type", np.zeros(n)), np.int64)
    if len(kinds) != n:
        raise DataError("a tree has lists of different lengths.")
    if not kinds.any():
        return {}
    listed = np.array(tree["categories"], np.int64)
    places = (tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"])
    sets: dict[int, AnyArray] = {}
    for node, first, size in zip(*(np.array(p, np.int64).tolist() for p in places), strict=True):
        if not (0 <= node < n and 0 <= first <= first + size <= len(listed)):
            raise DataError("a tree lists categories of a node that does not exist.")
        codes = listed[first : first + size]
        if len(codes) and not 0 <= codes.min() <= codes.max() < _MAX_CATEGORIES:
            raise DataError("a tree lists a category that is not a non-negative integer.")
        words = np.zeros(int(codes.max(initial=-1)) // 32 + 1, np.uint32)
        np.bitwise_or.at(words, codes // 32, np.uint32(1) << (codes % 32).astype(np.uint32))
        sets[node] = words
    if set(np.flatnonzero(kinds).tolist()) != set(sets):
        raise DataError("a tree has a categorical split without categories.")
    return sets
