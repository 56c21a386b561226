"""The LTR plugins' payloads read strictly, and scored in their own float32 arithmetic.

A name that the feature set does not have, a key that the grammar does not know, children that are
not those of "yes" and "no": each is refused, as the plugin refuses it or worse, takes it for
something else.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import DataError
from rankwright.export.json_reader import read_json
from rankwright.export.target import ParityError
from rankwright.ranklib.model_text import parse_model_text

_SPLIT = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
_SCRIPT = re.compile(r"doc\['(\w+)'\]\.size\(\) == 0 \? (\S+) : doc\['(\w+)'\]\.value")
_F32 = np.float32


def score_payload(folder: Path, names: list[str], X: F64) -> F64:
    """Return the score of each row of features in the order of ``names``."""
    path = folder / "model.json"
    found, defaults = _features(folder / "featureset.json")
    if found != names:
        _fail(folder / "featureset.json", "its features are not those of export.json")
    payload = read_json(path)
    try:
        model = payload["model"]["model"]
        kind, definition = model["type"], model["definition"]
    except (KeyError, TypeError):
        _fail(path, "it has no model.model.type and definition")
    place = {name: j for j, name in enumerate(found)}
    x = np.where(np.isnan(X), np.array(defaults), X).astype(_F32)
    if kind == "model/linear":
        return _linear(path, _parsed(path, definition), place, x)
    if kind == "model/xgboost+json":
        return _trees(path, _parsed(path, definition), place, x)
    if kind != "model/ranklib":
        _fail(path, f"there is no model type '{kind}'")
    try:
        scores = parse_model_text(definition, str(path)).scores(x.astype(np.float64))
    except DataError as fault:
        raise ParityError(str(fault)) from None
    return scores.astype(_F32).astype(np.float64)


def _features(path: Path) -> tuple[list[str], list[float]]:
    whole = read_json(path)
    names, defaults = [], []
    try:
        for feature in whole["featureset"]["features"]:
            template = feature["template"]
            script = _SCRIPT.fullmatch(template["source"])
            if script is None or script[1] != script[3] or feature["params"] != []:
                _fail(path, f"the script of {feature['name']} is not one of an export")
            absent = template["params"].get("missing", np.nan)
            if (script[2] == "params.missing") == bool(np.isnan(absent)):
                _fail(path, f"the script of {feature['name']} lacks its parameter")
            names.append(feature["name"])
            defaults.append(float(absent))
    except (KeyError, TypeError):
        _fail(path, "it is no feature set")
    if len(set(names)) < len(names):
        _fail(path, "a feature appears twice")
    return names, defaults


def _linear(path: Path, weights: Any, place: dict[str, int], x: Any) -> F64:
    if not isinstance(weights, dict):
        _fail(path, "a linear model is an object of weights")
    by_place = np.zeros(len(place), _F32)
    for name, weight in weights.items():
        if name not in place:
            _fail(path, f"there is no feature '{name}' in the set")
        by_place[place[name]] = weight
    total = np.zeros(len(x), _F32)
    for j, weight in enumerate(by_place):
        total = total + weight * x[:, j]
    return np.asarray(total, np.float64)


def _trees(path: Path, trees: Any, place: dict[str, int], x: Any) -> F64:
    if not isinstance(trees, list) or not trees:
        _fail(path, "a model of trees is a list of them")
    total = np.zeros(len(x), _F32)
    for tree in trees:
        total = total + _eval(path, tree, place, x)
    return np.asarray(total, np.float64)


def _eval(path: Path, tree: Any, place: dict[str, int], x: Any) -> Any:
    """Return the leaf of each row, by sending sets of rows down the tree."""
    out = np.zeros(len(x), _F32)
    waiting = [(tree, np.arange(len(x)))]
    while waiting:
        node, rows = waiting.pop()
        if not isinstance(node, dict) or "nodeid" not in node:
            _fail(path, "a node of a tree has no nodeid")
        if "leaf" in node:
            if node.keys() != {"nodeid", "leaf"}:
                _fail(path, "a leaf has keys besides nodeid and leaf")
            out[rows] = _F32(node["leaf"])
            continue
        if node.keys() != _SPLIT or node["split"] not in place:
            _fail(path, f"the split of node {node['nodeid']} is not one of the grammar or the set")
        children = {child.get("nodeid"): child for child in node["children"]}
        if children.keys() != {node["yes"], node["no"]} or node["missing"] not in children:
            _fail(path, f"the children of node {node['nodeid']} are not its yes and no")
        value = x[rows, place[node["split"]]]
        yes = _F32(node["split_condition"]) > value
        yes |= np.isnan(value) & (node["missing"] == node["yes"])
        waiting += [(children[node["yes"]], rows[yes]), (children[node["no"]], rows[~yes])]
    return out


def _parsed(path: Path, definition: Any) -> Any:
    try:
        return json.loads(definition)
    except (TypeError, ValueError, RecursionError):
        _fail(path, "its definition is not JSON")


def _fail(path: Path, what: str) -> NoReturn:
    raise ParityError(f"{path} would be refused: {what}.")
