"""``solr``: feature store and model store uploads for Solr's learning to rank.

Solr scores in float32. Trees and rules go as MultipleAdditiveTreesModel, weights as LinearModel,
networks as NeuralNetworkModel. Solr adds 1e-6 to every threshold before it compares x <= threshold:
thresholds here are such that the sum, in float32, is the one that was meant. Near 0 no float32 does
that; values between the two thresholds then go the other way, and ``export.json`` counts them as
inexact.

A missing value is the feature's ``defaultValue``. Where no number does for a feature, since its
missing values go left at some splits and right at others, Solr from 9.2 on takes ``missing`` of
each split; for older versions such a feature is written twice, with a default that goes left and
one that goes right. A model too large for a node of ZooKeeper goes onto the class path of every
node; a DefaultWrapperModel is what is uploaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.export.target import (
    SINGLE,
    EngineTarget,
    Input,
    Job,
    ParityError,
    Release,
    Written,
    accepts_missing,
    filled_inputs,
    filled_thresholds,
    read_json,
    shortest,
)
from rankwright.models.portable import HIGHEST, Linear, Network, PortableForest
from rankwright.models.thresholds import not_above

_CLASS = "org.apache.solr.ltr.model."
_FEATURE = "org.apache.solr.ltr.feature.FieldValueFeature"
_SLACK = np.float32(1e-6)
_NORM = len(', "norm": {"class": "org.apache.solr.ltr.norm.IdentityNormalizer"}')
_ACTIVATIONS = ("relu", "sigmoid", "tanh")
_DEFAULT = "is the defaultValue of its feature"
_SPLIT_MISSING = (9, 2)  # SOLR-16596
_COMPACT = (9, 5)  # SOLR-17050: stored without indentation


@dataclass(frozen=True, slots=True, kw_only=True)
class SolrRelease(Release):
    """Versions of Solr; ``compact`` where stores are kept without indentation."""

    compact: bool = True

    @property
    def split_missing(self) -> bool:
        """Whether a split may say where missing values go."""
        return self.since >= _SPLIT_MISSING


class Solr(EngineTarget):
    """Features and model for Solr's stores."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "a strict reader of Solr's stores, in its float32 arithmetic"
    limit: ClassVar[int] = 0xFFFFF  # bytes of a node in ZooKeeper by default
    releases = (
        SolrRelease(engine="solr", since=_COMPACT, missing=f"{_DEFAULT}, or goes by split"),
        SolrRelease(
            engine="solr",
            since=_SPLIT_MISSING,
            missing=f"{_DEFAULT}, or goes by split",
            compact=False,
        ),
        SolrRelease(engine="solr", since=(7, 3), missing=_DEFAULT, compact=False),
    )

    def write(self, job: Job) -> Written:
        """Return features.json and model.json; for a large model, wrapper.json besides."""
        model, release = job.one_kind, job.release
        assert isinstance(release, SolrRelease)
        oldest, thresholds, takes = self.oldest(release.engine), None, accepts_missing(model)
        offset = 0.0
        inputs = [*map(Input, job.names, range(len(job.names)), model.fill_value.tolist())]
        if isinstance(model, PortableForest):
            model.check_numeric(self.name)
            model.check_depth(self.name)
            kind, by_split = "MultipleAdditiveTreesModel", False
            if np.isnan(model.fill_value).any() and release.split_missing:
                by_split = True
                oldest = [own for own in self.releases if own.split_missing][-1]
                inputs = [own._replace(missing=np.nan) for own in inputs]
                of_node, bounded = model.feature, not_above(model.threshold)
            else:
                inputs, of_node = filled_inputs(model, job.names)
                bounded = not_above(filled_thresholds(model))
            cuts, found = thresholds_before_slack(bounded)
            if not np.array_equal(found, not_above(model.threshold).astype(np.float64)):
                thresholds = found
            names = [inputs[k].name for k in of_node.tolist()]
            params = _trees(model, cuts, names, by_split=by_split)
        elif isinstance(model, Linear):
            weights = {n: float(shortest(w)) for n, w in zip(job.names, model.coef, strict=True)}
            kind, params = "LinearModel", {"weights": weights}
            offset = -model.intercept  # Solr's linear models have no constant
        else:
            kind, params = "NeuralNetworkModel", {"layers": _layers(model)}
        whole = {
            "class": f"{_CLASS}{kind}",
            "name": job.title,
            "store": job.title,
            "features": [{"name": own.name} for own in inputs],
            "params": params,
        }
        nan = isinstance(model, PortableForest)
        features = [_feature(job.title, own, job.names[own.column], nan=nan) for own in inputs]
        files, upload, notes = self._files(job.title, features, whole, release)
        if len(inputs) > len(job.names):
            notes.append(
                f"{len(inputs) - len(job.names)} features are written twice: NAME, with the "
                "highest number where it is missing, and NAME_or_lowest, with the lowest."
            )
        return Written(
            files=files,
            epsilon=SINGLE,
            missing="a missing value is the feature's defaultValue, or goes by 'missing' of a split"
            if takes.all()
            else "the model takes no missing values, and Solr takes them for 0",
            takes_missing=takes,
            offset=offset,
            thresholds=thresholds,
            upload=upload,
            notes=tuple(notes),
            oldest=oldest,
        )

    def _files(
        self, title: str, features: Any, whole: dict[str, Any], release: SolrRelease
    ) -> tuple[dict[str, bytes], tuple[dict[str, str], ...], list[str]]:
        """Return the files, the requests that upload them, and notes on their size."""
        files, notes, model = {"features.json": _bytes(features)}, [], "model.json"
        stored = _stored_size(whole, release)
        if stored <= self.limit:
            files[model] = json.dumps(whole, allow_nan=False).encode()
        else:
            resource, model = f"{title}.json", "wrapper.json"
            files[resource] = json.dumps(whole, allow_nan=False).encode()
            files[model] = _bytes(_wrapper(title, resource))
            notes.append(
                f"The model takes {stored:,} bytes of Solr's store, more than a node of ZooKeeper "
                f"holds: put {resource} on the class path of every node, such as in a .jar file in "
                "SOLR_HOME/lib, and upload wrapper.json."
            )
        upload = (
            {"method": "PUT", "path": "/schema/feature-store", "file": "features.json"},
            {"method": "PUT", "path": "/schema/model-store", "file": model},
        )
        return files, upload, notes

    def scores_on(
        self, release: SolrRelease, folder: Path, about: Mapping[str, Any], X: F64
    ) -> F64:
        """Return the scores by the reader below."""
        model = about["upload"][1]["file"]
        names = [feature["name"] for feature in about["features"]]
        return score_store(folder, model, names, X, release)


def _stored_size(whole: dict[str, Any], release: SolrRelease) -> int:
    """Return how many bytes Solr's model store keeps, which has a normaliser per feature."""
    text = json.dumps(whole, indent=None if release.compact else 2)
    return len(text) + len(whole["features"]) * _NORM


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


def _trees(
    model: PortableForest, cuts: Any, names: Sequence[str], *, by_split: bool
) -> dict[str, Any]:
    """Return the trees; ``cuts`` and ``names`` are the threshold and the feature of each node."""
    missing_left = model.missing_left

    def nested(node: int) -> dict[str, Any]:
        if model.left[node] == node:
            return {"value": shortest(model.value[node])}
        split = {
            "feature": names[node],
            "threshold": shortest(cuts[node]),
            "left": nested(int(model.left[node])),
            "right": nested(int(model.right[node])),
        }
        return (
            {**split, "missing": "left" if missing_left[node] else "right"} if by_split else split
        )

    trees = [{"weight": "1", "root": nested(int(root))} for root in model.roots]
    if model.offset:
        trees.insert(0, {"weight": "1", "root": {"value": shortest(model.offset)}})
    return {"isNullSameAsZero": False, "trees": trees} if by_split else {"trees": trees}


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


def _feature(store: str, own: Input, field: str, *, nan: bool) -> dict[str, Any]:
    """Return a feature that reads a field; with ``nan``, a default that is NaN is written."""
    params: dict[str, Any] = {"field": field}
    if not np.isnan(own.missing):
        params["defaultValue"] = float(shortest(own.missing))
    elif nan:
        params["defaultValue"] = "NaN"
    return {"store": store, "name": own.name, "class": _FEATURE, "params": params}


def _wrapper(title: str, resource: str) -> dict[str, Any]:
    return {
        "class": f"{_CLASS}DefaultWrapperModel",
        "name": title,
        "store": title,
        "features": [],
        "params": {"resource": resource},
    }


def _bytes(value: Any) -> bytes:
    return json.dumps(value, indent=1, allow_nan=False).encode()


# --- reading -----------------------------------------------------------------------------------
# A strict reader of both stores, which scores as Solr's classes do, in float32.


_F32 = np.float32
_PACKAGE = "org.apache.solr.ltr."


def score_store(folder: Path, file: str, names: list[str], X: F64, release: SolrRelease) -> F64:
    """Return the score of each row of features in the order of ``names``.

    ``file`` is what is uploaded: a model, or a wrapper that names one. NaN stands for a document
    at which Solr ends with an error.
    """
    path = folder / file
    model = read_json(path)
    try:
        if model["class"] == f"{_PACKAGE}model.DefaultWrapperModel":
            path = folder / Path(model["params"]["resource"]).name
            model = read_json(path)
        listed = [feature["name"] for feature in model["features"]]
        kind, params = str(model["class"]).removeprefix(f"{_PACKAGE}model."), model["params"]
    except (KeyError, TypeError):
        _fail(path, "it lacks class, features or params")
    fields, defaults = _read_features(folder / "features.json")
    if [name for name in listed if name in names] != names or set(listed) != fields.keys():
        _fail(path, "its features are not those of features.json and export.json")
    if not {*fields.values()} <= {*names}:
        _fail(folder / "features.json", "it reads fields that export.json does not have")
    if "isNullSameAsZero" in params and not release.split_missing:
        _fail(path, "Solr before 9.2 knows no isNullSameAsZero")
    X = X[:, [names.index(fields[name]) for name in listed]]
    with np.errstate(over="ignore"):
        x = np.where(np.isnan(X), [defaults[name] for name in listed], X).astype(_F32)
    readers = {
        "LinearModel": _linear,
        "MultipleAdditiveTreesModel": _score_trees,
        "NeuralNetworkModel": _network,
    }
    if kind not in readers:
        _fail(path, f"there is no model class '{kind}'")
    try:
        return np.asarray(readers[kind](path, params, listed, x), np.float64)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _fail(path, f"its parameters are not those of {kind}: {error!r}")


def _read_features(path: Path) -> tuple[dict[str, str], dict[str, float]]:
    """Return the field that each feature reads, and what it is where a document has none."""
    fields: dict[str, str] = {}
    defaults: dict[str, float] = {}
    for feature in read_json(path):
        if not isinstance(feature, dict) or not {"name", "class", "params"} <= feature.keys():
            _fail(path, "a feature lacks name, class or params")
        if feature["class"] != _FEATURE or feature["name"] in fields:
            _fail(path, f"feature {feature['name']} is no FieldValueFeature, or appears twice")
        fields[feature["name"]] = feature["params"]["field"]
        defaults[feature["name"]] = float(feature["params"].get("defaultValue", 0.0))
    return fields, defaults


def _linear(path: Path, params: Any, names: list[str], x: Any) -> Any:
    weights = params["weights"]
    if set(weights) != set(names):
        _fail(path, "its weights are not those of its features")
    total = np.zeros(len(x), _F32)
    for j, name in enumerate(names):
        total = total + x[:, j] * _F32(weights[name])
    return total


def _score_trees(path: Path, params: Any, names: list[str], x: Any) -> Any:
    by_split = not params.get("isNullSameAsZero", True)
    place = {name: j for j, name in enumerate(names)}
    total = np.zeros(len(x), _F32)
    for tree in params["trees"]:
        leaf = np.zeros(len(x), _F32)
        waiting = [(tree["root"], np.arange(len(x)))]
        while waiting:
            node, rows = waiting.pop()
            if node.keys() == {"value"}:
                leaf[rows] += _F32(node["value"])  # keeps NaN, of an error above
                continue
            if node.keys() - {"missing"} != {"feature", "threshold", "left", "right"}:
                _fail(path, "a split has other keys than feature, threshold, left and right")
            if node["feature"] not in place:
                _fail(path, f"a tree splits on '{node['feature']}', which scores 0 in Solr")
            cut = _F32(node["threshold"]) + _F32(1e-6)  # as RegressionTreeNode.setThreshold does
            value = x[rows, place[node["feature"]]]
            left = value <= cut
            if by_split and "missing" not in node:
                leaf[rows[np.isnan(value)]] = np.nan  # a NullPointerException
            elif by_split and node["missing"] == "left":
                left |= np.isnan(value)
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
