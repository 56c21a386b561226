"""Solr's feature and model stores read strictly, and scored as Solr's classes do, in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rankwright.core.types import F64
from rankwright.export.json_reader import read_json
from rankwright.export.target import ParityError

_F32 = np.float32
_PACKAGE = "org.apache.solr.ltr."


def score_store(folder: Path, names: list[str], X: F64) -> F64:
    """Return the score of each row of features in the order of ``names``."""
    path = folder / "model.json"
    defaults = _defaults(folder / "features.json")
    model = read_json(path)
    try:
        listed = [feature["name"] for feature in model["features"]]
        kind, params = str(model["class"]).removeprefix(f"{_PACKAGE}model."), model["params"]
    except (KeyError, TypeError):
        _fail(path, "it lacks class, features or params")
    if listed != names or set(listed) != defaults.keys():
        _fail(path, "its features are not those of features.json and export.json")
    default = np.array([defaults[name] for name in listed])
    with np.errstate(over="ignore"):
        x = np.where(np.isnan(X), default, X).astype(_F32)
    readers = {
        "LinearModel": _linear,
        "MultipleAdditiveTreesModel": _trees,
        "NeuralNetworkModel": _network,
    }
    if kind not in readers:
        _fail(path, f"there is no model class '{kind}'")
    try:
        return np.asarray(readers[kind](path, params, listed, x), np.float64)
    except (KeyError, TypeError, ValueError) as fault:
        _fail(path, f"its parameters are not those of {kind}: {fault!r}")


def _defaults(path: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for feature in read_json(path):
        if not isinstance(feature, dict) or not {"name", "class", "params"} <= feature.keys():
            _fail(path, "a feature lacks name, class or params")
        if not str(feature["class"]).startswith(f"{_PACKAGE}feature.") or feature["name"] in found:
            _fail(path, f"feature {feature['name']} has no class of Solr, or appears twice")
        found[feature["name"]] = float(feature["params"].get("defaultValue", np.nan))
    return found


def _linear(path: Path, params: Any, names: list[str], x: Any) -> Any:
    weights = params["weights"]
    if set(weights) != set(names):
        _fail(path, "its weights are not those of its features")
    total = np.zeros(len(x), _F32)
    for j, name in enumerate(names):
        total = total + x[:, j] * _F32(weights[name])
    return total


def _trees(path: Path, params: Any, names: list[str], x: Any) -> Any:
    place = {name: j for j, name in enumerate(names)}
    total = np.zeros(len(x), _F32)
    for tree in params["trees"]:
        leaf = np.zeros(len(x), _F32)
        waiting = [(tree["root"], np.arange(len(x)))]
        while waiting:
            node, rows = waiting.pop()
            if node.keys() == {"value"}:
                leaf[rows] = _F32(node["value"])
                continue
            if node.keys() != {"feature", "threshold", "left", "right"}:
                _fail(path, "a split has other keys than feature, threshold, left and right")
            if node["feature"] not in place:
                _fail(path, f"a tree splits on '{node['feature']}', which scores 0 in Solr")
            cut = _F32(node["threshold"]) + _F32(1e-6)  # as RegressionTreeNode.setThreshold does
            left = x[rows, place[node["feature"]]] <= cut
            waiting += [(node["left"], rows[left]), (node["right"], rows[~left])]
        total = total + _F32(tree["weight"]) * leaf
    return total


def _network(path: Path, params: Any, names: list[str], x: Any) -> Any:
    h = x[:, : len(names)]
    for layer in params["layers"]:
        matrix, bias = np.array(layer["matrix"], _F32), np.array(layer["bias"], _F32)
        if matrix.shape != (len(bias), h.shape[1]):
            _fail(path, f"a layer of {matrix.shape} does not follow {h.shape[1]} numbers")
        out = np.broadcast_to(bias, (len(h), len(bias)))
        for j in range(h.shape[1]):
            out = out + h[:, j, None] * matrix[:, j]
        h = _activated(path, layer["activation"], out)
    if h.shape[1] != 1:
        _fail(path, "its last layer has more than one number")
    return h[:, 0]


def _activated(path: Path, name: str, z: Any) -> Any:
    if name not in ("identity", "relu", "sigmoid", "tanh"):
        _fail(path, f"there is no activation '{name}'")
    if name in ("identity", "relu"):
        return z if name == "identity" else np.maximum(z, _F32(0))
    wide = z.astype(np.float64)
    with np.errstate(over="ignore"):
        return (np.tanh(wide) if name == "tanh" else 1.0 / (1.0 + np.exp(-wide))).astype(_F32)


def _fail(path: Path, what: str) -> NoReturn:
    raise ParityError(f"{path} would be refused, or misread: {what}.")
