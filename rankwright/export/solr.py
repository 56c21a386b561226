"""``solr``: feature store and model store uploads for Solr's learning to rank.

Solr scores in float32. Trees and rules go as MultipleAdditiveTreesModel, weights as LinearModel,
networks as NeuralNetworkModel. Solr adds 1e-6 to every threshold before it compares x <= threshold:
thresholds here are such that the sum, in float32, is the one that was meant. Near 0 no float32 does
that; values between the two thresholds then go the other way, and ``export.json`` counts them as
inexact. A missing value is the feature's ``defaultValue``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from rankwright.core.dtypes import not_above
from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.export.target import SINGLE, Job, ParityError, Target, Written, read_json, shortest
from rankwright.models.portable import HIGHEST, Forest, Linear, Network

_CLASS = "org.apache.solr.ltr.model."
_FEATURE = "org.apache.solr.ltr.feature.FieldValueFeature"
_SLACK = np.float32(1e-6)
_ACTIVATIONS = ("relu", "sigmoid", "tanh")


class Solr(Target):
    """Features and model for Solr's stores."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "a strict reader of Solr's stores, in its float32 arithmetic"
    limit: ClassVar[int] = 0xFFFFF  # bytes of a node in ZooKeeper by default

    def write(self, job: Job) -> Written:
        """Return features.json and model.json."""
        model = job.model
        kind, params, held = self._params(model, job.names)
        default = model.fill_value
        takes = ~np.isnan(default)
        whole = {
            "class": f"{_CLASS}{kind}",
            "name": job.title,
            "store": job.title,
            "features": [{"name": name} for name in job.names],
            "params": params,
        }
        text = json.dumps(whole, allow_nan=False).encode()
        named = zip(job.names, default.tolist(), strict=True)
        features = [_feature(job.title, name, value) for name, value in named]
        files = {"features.json": _bytes(features), "model.json": text}
        upload = [
            {"method": "PUT", "path": "/schema/feature-store", "file": "features.json"},
            {"method": "PUT", "path": "/schema/model-store", "file": "model.json"},
        ]
        notes = []
        if len(text) > self.limit:
            files["wrapper.json"] = _bytes(_wrapper(job.title))
            upload[1]["file"] = "wrapper.json"
            notes.append(
                f"The model has {len(text):,} bytes, more than a node of ZooKeeper holds: put "
                "model.json on every node of SolrCloud and upload wrapper.json in its place."
            )
        return Written(
            files=files,
            epsilon=SINGLE,
            missing="a missing value is the feature's defaultValue"
            if takes.all()
            else "features without a defaultValue must not be missing: no number stands for that",
            takes_missing=takes,
            thresholds=held,
            upload=tuple(upload),
            notes=tuple(notes),
        )

    def _params(self, model: Any, names: tuple[str, ...]) -> tuple[str, dict[str, Any], F64 | None]:
        if isinstance(model, Linear):
            weights = {n: float(shortest(w)) for n, w in zip(names, model.coef, strict=True)}
            return "LinearModel", {"weights": weights}, None
        if isinstance(model, Network):
            return "NeuralNetworkModel", {"layers": _layers(model)}, None
        assert isinstance(model, Forest)
        model.check_numeric(self.name)
        model.check_depth(self.name)
        cut, held = thresholds_before_slack(not_above(model.threshold))
        trees = [_tree(model, cut, int(root), names) for root in model.roots]
        if model.initial:
            trees.insert(0, {"weight": "1", "root": {"value": shortest(model.initial)}})
        exact = np.array_equal(held, not_above(model.threshold).astype(np.float64))
        return "MultipleAdditiveTreesModel", {"trees": trees}, None if exact else held

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by the reader below."""
        return score_store(folder, [feature["name"] for feature in about["features"]], X)


def thresholds_before_slack(threshold: Any) -> tuple[Any, F64]:
    """Return what to write so that 1e-6 more is ``threshold``, and what it comes to."""
    bounded = np.clip(threshold, np.float32(-HIGHEST), np.float32(HIGHEST))
    best = bounded - _SLACK
    reached = best + _SLACK
    for way in (np.float32(HIGHEST), np.float32(-HIGHEST)):
        tried = bounded - _SLACK
        for _ in range(4):
            tried = np.nextafter(tried, way)
            nearer = np.abs(tried + _SLACK - bounded) < np.abs(reached - bounded)
            best = np.where(nearer, tried, best)
            reached = best + _SLACK
    # 0 must stay on its side: too many documents have it
    astray = (bounded < 0) & (reached >= 0)
    best = np.where(astray, np.nextafter(-_SLACK, np.float32(-np.inf)), best)
    return best, (best + _SLACK).astype(np.float64)


def _tree(model: Forest, cut: Any, root: int, names: tuple[str, ...]) -> dict[str, Any]:
    def nested(node: int) -> dict[str, Any]:
        if model.left[node] == node:
            return {"value": shortest(model.value[node])}
        return {
            "feature": names[int(model.feature[node])],
            "threshold": shortest(cut[node]),
            "left": nested(int(model.left[node])),
            "right": nested(int(model.right[node])),
        }

    return {"weight": "1", "root": nested(root)}


def _layers(model: Network) -> list[dict[str, Any]]:
    if len(model.layers) > 1 and model.activation not in _ACTIVATIONS:
        raise UsageError(
            f"Solr's networks know {', '.join(_ACTIVATIONS)}, not {model.activation}; fit with one "
            "of them, or export to another format."
        )
    found = []
    for k, (weight, constant) in enumerate(model.layers, 1):
        last = k == len(model.layers)
        found.append(
            {
                "matrix": [[float(shortest(w)) for w in row] for row in weight.T],
                "bias": [float(shortest(b)) for b in constant],
                "activation": "identity" if last else model.activation,
            }
        )
    return found


def _feature(store: str, name: str, default: float) -> dict[str, Any]:
    params: dict[str, Any] = {"field": name}
    if not np.isnan(default):
        params["defaultValue"] = float(shortest(default))
    return {"store": store, "name": name, "class": _FEATURE, "params": params}


def _wrapper(title: str) -> dict[str, Any]:
    return {
        "class": f"{_CLASS}DefaultWrapperModel",
        "name": title,
        "store": title,
        "features": [],
        "params": {"resource": "model.json"},
    }


def _bytes(value: Any) -> bytes:
    return json.dumps(value, indent=1, allow_nan=False).encode()


# --- reading -----------------------------------------------------------------------------------
# A strict reader of both stores, which scores as Solr's classes do, in float32.


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
    except (KeyError, TypeError, ValueError) as error:
        _fail(path, f"its parameters are not those of {kind}: {error!r}")


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
