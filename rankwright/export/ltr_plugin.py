"""Upload payloads for the learning-to-rank plugins of Elasticsearch and OpenSearch.

The plugin scores in float32. Trees and rules go as ``model/xgboost+json``, a nested dump in which a
split names its feature and sends x to "yes" where x < split_condition; weights as ``model/linear``;
networks as ``model/ranklib``, whose features are places in the feature set. The engine refuses
negative scores: a forest is raised by a constant, as a last tree of one leaf, so that none is below
0 even in float32; weights and networks without a last sigmoid cannot be, and a note says so.

Features of the set read a field of the document's own; they are a start, to be replaced by your
queries under the same names and in the same order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import DataError
from rankwright.export.ranklib import ends_in_sigmoid, ranklib_text
from rankwright.export.target import (
    SINGLE,
    Job,
    ParityError,
    Target,
    Written,
    float32_thresholds,
    read_json,
    shortest,
    strictly_above,
)
from rankwright.models.portable import Forest, Linear
from rankwright.ranklib.model_text import parse_model_text


class LtrPlugin(Target):
    """What the two plugins have in common."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "a strict reader of the plugin's payloads, in its float32 arithmetic"
    engine: ClassVar[str]
    limit: ClassVar[int] = 100 << 20  # bytes of a request that the engine takes by default

    def write(self, job: Job) -> Written:
        """Return featureset.json and model.json."""
        model, notes, scale, offset, held = job.model, [], 1.0, 0.0, None
        if isinstance(model, Forest):
            model.check_numeric(self.name)
            model.check_depth(self.name)
            held, offset = float32_thresholds(model), max(0.0, -model.lowest(SINGLE))
            kind, definition = "model/xgboost+json", _dump(model, offset, job.names)
            takes, default = np.ones(len(job.names), bool), np.full(len(job.names), np.nan)
            missing = "a missing value scores as in the model, by the 'missing' of each split"
            if (model.rule[model.splits] != 0).any():
                notes.append("Splits say where missing values go; old plugins read them as 0.")
        else:
            default, takes = model.fill_value, ~np.isnan(model.fill_value)
            missing = "a missing value is what the feature set says ('missing' of its script)"
            if isinstance(model, Linear):
                kind, definition = "model/linear", _weights(model, job.names)
            else:
                kind = "model/ranklib"
                definition, scale, offset = ranklib_text(job)
            if not ends_in_sigmoid(model):
                notes.append(
                    f"Scores may be negative, which {self.engine} refuses outside of a rescore "
                    "query: use the model in one."
                )
        payload = {"model": {"name": job.title, "model": {"type": kind, "definition": definition}}}
        text = json.dumps(payload, allow_nan=False).encode()
        notes += self._note_of_size(len(text))
        features = json.dumps(_feature_set(job.names, default), indent=1, allow_nan=False)
        return Written(
            files={"featureset.json": features.encode(), "model.json": text},
            epsilon=SINGLE,
            missing=missing if takes.all() else "the model takes no missing values",
            takes_missing=takes,
            offset=offset,
            scale=scale,
            sigmoid=ends_in_sigmoid(model),
            thresholds=held,
            upload=self._upload(job.title),
            notes=tuple(notes),
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by the reader below."""
        names = [feature["name"] for feature in about["features"]]
        return score_payload(folder, names, X)

    def _note_of_size(self, size: int) -> list[str]:
        if size <= self.limit:
            return []
        return [
            f"The model has {size >> 20} MB, more than {self.engine} takes in a request by "
            "default: raise http.max_content_length, or fit fewer trees."
        ]

    def _upload(self, name: str) -> tuple[dict[str, str], ...]:
        features = f"/_ltr/_featureset/{name}"
        return (
            {"method": "PUT", "path": "/_ltr"},
            {"method": "POST", "path": features, "file": "featureset.json"},
            {"method": "POST", "path": f"{features}/_createmodel", "file": "model.json"},
        )


class Elasticsearch(LtrPlugin):
    """Upload payloads for Elasticsearch's LTR plugin, with the feature set."""

    engine = "Elasticsearch"


class OpenSearch(LtrPlugin):
    """Upload payloads for OpenSearch's LTR plugin, with the feature set."""

    engine = "OpenSearch"


def _feature_set(names: tuple[str, ...], default: F64) -> dict[str, Any]:
    """Return features that read a field each, with what stands for a missing one."""
    features = []
    for name, value in zip(names, default.tolist(), strict=True):
        absent = "Float.NaN" if np.isnan(value) else "params.missing"
        source = f"doc['{name}'].size() == 0 ? {absent} : doc['{name}'].value"
        params = {} if np.isnan(value) else {"missing": float(shortest(value))}
        features.append(
            {
                "name": name,
                "params": [],
                "template_language": "script_feature",
                "template": {"lang": "painless", "source": source, "params": params},
            }
        )
    return {"featureset": {"features": features}}


def _weights(model: Linear, names: tuple[str, ...]) -> str:
    weights = {n: float(shortest(w)) for n, w in zip(names, model.coef, strict=True)}
    return json.dumps(weights, allow_nan=False)


def _dump(model: Forest, offset: float, names: tuple[str, ...]) -> str:
    """Return the trees as XGBoost dumps them, the initial score first and the offset last."""
    cuts, missing_left = strictly_above(model.threshold), model.missing_left

    def nested(node: int, at: int, depth: int) -> tuple[dict[str, Any], int]:
        left, right = int(model.left[node]), int(model.right[node])
        if left == node:
            return {"nodeid": at, "leaf": float(shortest(model.value[node]))}, at + 1
        yes, after = nested(left, at + 1, depth + 1)
        no, end = nested(right, after, depth + 1)
        own = {
            "nodeid": at,
            "depth": depth,
            "split": names[int(model.feature[node])],
            "split_condition": float(shortest(cuts[node])),
            "yes": at + 1,
            "no": after,
            "missing": at + 1 if missing_left[node] else after,
            "children": [yes, no],
        }
        return own, end

    trees = [nested(int(root), 0, 0)[0] for root in model.roots]
    first = [{"nodeid": 0, "leaf": float(shortest(model.initial))}] if model.initial else []
    last = [{"nodeid": 0, "leaf": float(shortest(offset))}] if offset else []
    return json.dumps([*first, *trees, *last], allow_nan=False)


# --- reading -----------------------------------------------------------------------------------
# A strict reader of the payloads, which scores them in the plugins' float32 arithmetic.
#
# A name that is not in the feature set, an unknown key, or children that are not those of "yes" and
# "no" are refused: the plugin refuses them too or, worse, takes them for something else.


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
    except DataError as error:
        raise ParityError(str(error)) from None
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
