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
from typing import Any, ClassVar

import numpy as np

from rankwright.core.dtypes import not_above
from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.export.forest import HIGHEST, Forest
from rankwright.export.portable import Linear, Network
from rankwright.export.solr_reader import score_store
from rankwright.export.target import SINGLE, Job, Target, Written, shortest

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
        default = model.stand_in
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
        model.need_numeric(self.name)
        model.need_shallow(self.name)
        cut, held = lowered(not_above(model.threshold))
        trees = [_tree(model, cut, int(root), names) for root in model.roots]
        if model.initial:
            trees.insert(0, {"weight": "1", "root": {"value": shortest(model.initial)}})
        exact = np.array_equal(held, not_above(model.threshold).astype(np.float64))
        return "MultipleAdditiveTreesModel", {"trees": trees}, None if exact else held

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by `rankwright.export.solr_reader`."""
        return score_store(folder, [feature["name"] for feature in about["features"]], X)


def lowered(threshold: Any) -> tuple[Any, F64]:
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
