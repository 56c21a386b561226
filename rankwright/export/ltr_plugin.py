"""Upload payloads for the learning-to-rank plugins of Elasticsearch and OpenSearch.

The plugin scores in float32. Trees and rules go as ``model/xgboost+json``, a nested dump in which a
split names its feature and sends x to "yes" where x < split_condition; weights as ``model/linear``;
networks as ``model/ranklib``, whose features are places in the feature set. The engine refuses
negative scores: a forest is raised by a constant, as a last tree of one leaf, so that none is below
0 even in float32; weights and networks without a last sigmoid cannot be, and a note says so.

Features of the set read a field of the document's own, by a script; they are a start, to be
replaced by your queries under the same names and in the same order. A script must not return a
negative number. Where a negative value scores as 0 does, the script returns 0; elsewhere the
feature is a ``derived_expression``, the difference of two scripts, which is exact.

Plugins before Elasticsearch 8.11.4 and OpenSearch 3.8 send a missing value (NaN) right at every
split. For those, the scripts return a number in its place: the lowest, which goes left at every
split, or the highest, which goes right. A feature that needs both stands in the set twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import DataError
from rankwright.export.ranklib import ends_in_sigmoid, ranklib_text
from rankwright.export.target import (
    SINGLE,
    EngineTarget,
    Input,
    Job,
    ParityError,
    Release,
    Written,
    filled_inputs,
    filled_thresholds,
    float32_thresholds,
    read_json,
    shortest,
    strictly_above,
    unused_name,
)
from rankwright.models.portable import Linear, OneKind, PortableForest
from rankwright.models.thresholds import not_above
from rankwright.ranklib.model_text import parse_model_text

_BY_SPLIT = "goes where the split says"
_RIGHT = "goes right at every split"
_QUERIES = "features by queries"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRelease(Release):
    """Versions of a plugin.

    Attributes
    ----------
    follows_missing
        Whether a missing value goes where "missing" of the split says; else it goes right.
    unset
        What a feature counts as whose query does not match the document; None where features are
        those of the exported set, which match every document.
    """

    follows_missing: bool
    unset: float | None = None


def _releases(
    engine: str, since: tuple[int, ...], *, follows_missing: bool, unset: float
) -> tuple[PluginRelease, PluginRelease]:
    rule = _BY_SPLIT if follows_missing else _RIGHT
    by_query = "counts as 0" if unset == 0.0 else rule
    return (
        PluginRelease(engine=engine, since=since, missing=rule, follows_missing=follows_missing),
        PluginRelease(
            engine=engine,
            since=since,
            missing=by_query,
            setup=_QUERIES,
            follows_missing=follows_missing,
            unset=unset,
        ),
    )


class LtrPlugin(EngineTarget):
    """What the two plugins have in common."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = True
    evaluator = "a strict reader of the plugin's payloads, in its float32 arithmetic"
    engine: ClassVar[str]
    limit: ClassVar[int] = 100 << 20  # bytes of a request that the engine takes by default
    releases = (
        *_releases("elasticsearch", (8, 11, 4), follows_missing=True, unset=np.nan),
        *_releases("elasticsearch", (7, 0), follows_missing=False, unset=0.0),
        *_releases("opensearch", (3, 8), follows_missing=True, unset=np.nan),
        *_releases("opensearch", (3, 2), follows_missing=False, unset=np.nan),
        *_releases("opensearch", (1, 0), follows_missing=False, unset=0.0),
    )

    def write(self, job: Job) -> Written:
        """Return featureset.json and model.json."""
        model, notes, scale, offset, thresholds = job.one_kind, [], 1.0, 0.0, None
        assert isinstance(job.release, PluginRelease)
        oldest = self.oldest(job.release.engine)
        if isinstance(model, PortableForest):
            model.check_numeric(self.name)
            model.check_depth(self.name)
            inputs, of_node, cuts = _forest_inputs(model, job.names, job.release)
            features = _feature_set(inputs, job.names, _signed(model))
            offset, thresholds = max(0.0, -model.lowest(SINGLE)), float32_thresholds(model, cuts)
            names = [inputs[k].name for k in of_node.tolist()]
            kind, definition = "model/xgboost+json", _dump(model, cuts, offset, names)
            takes = np.ones(len(job.names), bool)
            missing = "a missing value scores as in the model"
            if _needs_direction(model, inputs):
                oldest = job.release
                missing += ", by the 'missing' of each split"
                notes.append(
                    f"{self.engine} before {oldest.version} sends missing values right at every "
                    "split: export for it with --engine-version."
                )
        else:
            filled = model.fill_value
            takes = ~np.isnan(filled)
            inputs = _inputs(job.names, filled)
            features = _feature_set(inputs, job.names, _signed(model))
            missing = "a missing value is what the feature set says ('missing' of its script)"
            if isinstance(model, Linear):
                kind, definition = "model/linear", _weights(model, job.names)
                offset = -model.intercept  # a linear model of the plugin has no constant
            else:
                places = {feature["name"]: k for k, feature in enumerate(features, 1)}
                network, scale, offset = ranklib_text(job)
                definition = network.with_features([places[name] for name in job.names]).text()
                kind = "model/ranklib"
            if not ends_in_sigmoid(model):
                notes.append(
                    f"Scores may be negative, which {self.engine} refuses outside of a rescore "
                    "query: use the model in one."
                )
        payload = {"model": {"name": job.title, "model": {"type": kind, "definition": definition}}}
        text = json.dumps(payload, allow_nan=False).encode()
        notes += [*_notes_of_features(inputs, features, job.names), *self._note_of_size(len(text))]
        feature_set = {"featureset": {"features": features}}
        return Written(
            files={
                "featureset.json": json.dumps(feature_set, indent=1, allow_nan=False).encode(),
                "model.json": text,
            },
            epsilon=SINGLE,
            missing=missing if takes.all() else "the model takes no missing values",
            takes_missing=takes,
            offset=offset,
            scale=scale,
            sigmoid=ends_in_sigmoid(model),
            thresholds=thresholds,
            upload=self._upload(job.title),
            notes=tuple(notes),
            oldest=oldest,
        )

    def scores_on(
        self, release: PluginRelease, folder: Path, about: Mapping[str, Any], X: F64
    ) -> F64:
        """Return the scores by the reader below."""
        names = [feature["name"] for feature in about["features"]]
        features = read_features(folder / "featureset.json", names)
        x, refused = feature_values(features, names, X, release.unset)
        scores = model_scores(folder / "model.json", [own.name for own in features], x, release)
        return np.where(refused, np.nan, scores)

    def releases_for(self, family: str) -> tuple[Release, ...]:
        """Return the releases whose answers are known: features by queries, of forests alone."""
        forest = family in ("trees", "additive")
        return tuple(release for release in self.releases if forest or not release.setup)

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


# --- features ----------------------------------------------------------------------------------


def _forest_inputs(
    model: PortableForest, names: tuple[str, ...], release: PluginRelease
) -> tuple[list[Input], I64, Any]:
    """Return the features of the set, that of each node, and thresholds for x < t."""
    if not release.follows_missing:
        return *filled_inputs(model, names), strictly_above(filled_thresholds(model))
    inputs = _inputs(names, np.where(model.fill_value == 0.0, 0.0, np.nan))
    return inputs, model.feature, strictly_above(model.threshold)


def _inputs(names: tuple[str, ...], missing: F64) -> list[Input]:
    pairs = zip(names, missing.tolist(), strict=True)
    return [Input(name, column, value) for column, (name, value) in enumerate(pairs)]


def _needs_direction(model: PortableForest, inputs: list[Input]) -> bool:
    """Whether a missing value that the scripts return as NaN must go left somewhere."""
    left = model.splits[model.missing_left[model.splits]]
    unfilled = [own.column for own in inputs if np.isnan(own.missing)]
    return bool(np.isin(model.feature[left], unfilled).any())


def _signed(model: OneKind) -> Any:
    """Whether a negative value of each feature scores differently from 0."""
    if isinstance(model, PortableForest):
        below = model.splits[not_above(model.threshold[model.splits]) < 0.0]
        return np.isin(np.arange(model.n_features), model.feature[below])
    weights = model.coef[:, None] if isinstance(model, Linear) else model.layers[0][0]
    return (weights != 0.0).any(axis=1)


def _feature_set(
    inputs: Sequence[Input], fields: Sequence[str], signed: Any
) -> list[dict[str, Any]]:
    """Return features that read a field each, with a number in place of a missing one."""
    features, used = [], {own.name for own in inputs}
    for name, column, missing in inputs:
        positive = max(missing, 0.0) if missing == missing else missing
        if not signed[column]:
            features.append(_script(name, fields[column], positive))
            continue
        negative = max(-missing, 0.0) if missing == missing else 0.0
        plus, minus = (unused_name(f"{name}_{part}", used) for part in ("positive", "negative"))
        features.append(_script(plus, fields[column], positive))
        features.append(_script(minus, fields[column], negative, sign="-"))
        features.append(
            {
                "name": name,
                "params": [],
                "template_language": "derived_expression",
                "template": f"{plus} - {minus}",
            }
        )
    return features


def _script(name: str, field: str, missing: float, sign: str = "") -> dict[str, Any]:
    absent = "Float.NaN" if np.isnan(missing) else "params.missing"
    value = f"Math.max(0.0, {sign}doc['{field}'].value)"
    source = f"doc['{field}'].size() == 0 ? {absent} : {value}"
    params = {} if np.isnan(missing) else {"missing": float(shortest(missing))}
    return {
        "name": name,
        "params": [],
        "template_language": "script_feature",
        "template": {"lang": "painless", "source": source, "params": params},
    }


def _notes_of_features(
    inputs: list[Input], features: list[dict[str, Any]], names: tuple[str, ...]
) -> list[str]:
    notes = []
    if len(features) > len(inputs):
        notes.append(
            f"{(len(features) - len(inputs)) // 2} features may be negative, which a script must "
            "not return: each is the difference of two scripts, NAME_positive - NAME_negative."
        )
    if len(inputs) > len(names):
        notes.append(
            f"{len(inputs) - len(names)} features stand in the set twice: NAME, with the highest "
            "number where it is missing, and NAME_or_lowest, with the lowest."
        )
    return notes


# --- models ------------------------------------------------------------------------------------


def _weights(model: Linear, names: tuple[str, ...]) -> str:
    weights = {n: float(shortest(w)) for n, w in zip(names, model.coef, strict=True)}
    return json.dumps(weights, allow_nan=False)


def _dump(model: PortableForest, cuts: Any, offset: float, names: Sequence[str]) -> str:
    """Return the trees as XGBoost dumps them, the initial score first and the offset last.

    ``cuts`` and ``names`` are the threshold and the feature of each node.
    """
    missing_left = model.missing_left

    def nested(node: int, at: int, depth: int) -> tuple[dict[str, Any], int]:
        left, right = int(model.left[node]), int(model.right[node])
        if left == node:
            return {"nodeid": at, "leaf": float(shortest(model.value[node]))}, at + 1
        yes, after = nested(left, at + 1, depth + 1)
        no, end = nested(right, after, depth + 1)
        own = {
            "nodeid": at,
            "depth": depth,
            "split": names[node],
            "split_condition": float(shortest(cuts[node])),
            "yes": at + 1,
            "no": after,
            "missing": at + 1 if missing_left[node] else after,
            "children": [yes, no],
        }
        return own, end

    trees = [nested(int(root), 0, 0)[0] for root in model.roots]
    first = [{"nodeid": 0, "leaf": float(shortest(model.offset))}] if model.offset else []
    last = [{"nodeid": 0, "leaf": float(shortest(offset))}] if offset else []
    return json.dumps([*first, *trees, *last], allow_nan=False)


# --- reading -----------------------------------------------------------------------------------
# A strict reader of the payloads, which scores them in the plugins' float32 arithmetic.
#
# A name that is not in the feature set, an unknown key, or children that are not those of "yes" and
# "no" are refused: the plugin refuses them too or, worse, takes them for something else.


_SPLIT = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
_SCRIPT = re.compile(
    r"doc\['(?P<field>\w+)'\]\.size\(\) == 0 \? (?P<missing>Float\.NaN|params\.missing) : "
    r"(?P<bounded>Math\.max\(0\.0, (?P<sign>-?))?doc\['(?P=field)'\]\.value(?(bounded)\))"
)
_DIFFERENCE = re.compile(r"(\w+) - (\w+)")
_F32 = np.float32


class Script(NamedTuple):
    """A script feature: the field that it reads, and what it returns."""

    name: str
    field: str
    missing: float
    bounded: bool
    sign: float


class Difference(NamedTuple):
    """A derived feature: one feature less another."""

    name: str
    plus: str
    minus: str


def read_features(path: Path, names: list[str]) -> list[Script | Difference]:
    """Return the features of a set, which has those of ``names`` in their order."""
    found: list[Script | Difference] = []
    try:
        for feature in read_json(path)["featureset"]["features"]:
            before = {own.name for own in found}
            if feature["name"] in before:
                _fail(path, "a feature appears twice")
            if feature["params"] != []:
                _fail(path, f"{feature['name']} has parameters")
            if feature["template_language"] == "script_feature":
                found.append(_read_script(path, feature["name"], feature["template"], names))
                continue
            if feature["template_language"] != "derived_expression":
                _fail(path, f"{feature['name']} is neither a script nor derived")
            parts = _DIFFERENCE.fullmatch(feature["template"])
            if parts is None or not before >= {*parts.groups()}:
                _fail(path, f"{feature['name']} is not derived from features before it")
            found.append(Difference(feature["name"], *parts.groups()))
    except (KeyError, TypeError):
        _fail(path, "it is no feature set")
    if [own.name for own in found if own.name in names] != names:
        _fail(path, "its features are not those of export.json")
    return found


def _read_script(path: Path, name: str, template: dict[str, Any], names: list[str]) -> Script:
    script = _SCRIPT.fullmatch(template["source"])
    if script is None or template["lang"] != "painless" or script["field"] not in names:
        _fail(path, f"the script of {name} is not one of an export")
    if (script["missing"] == "params.missing") != ("missing" in template["params"]):
        _fail(path, f"the script of {name} lacks its parameter")
    missing = float(template["params"].get("missing", np.nan))
    sign = -1.0 if script["sign"] else 1.0
    return Script(name, script["field"], missing, script["bounded"] is not None, sign)


def feature_values(
    features: Sequence[Script | Difference], names: list[str], X: F64, unset: float | None
) -> tuple[Any, Any]:
    """Return the vector of each row, and whether the engine refuses it for a negative script.

    With ``unset``, features are queries for the columns that the set's features read, and that is
    the value of one that does not match.
    """
    values: dict[str, Any] = {}
    column: dict[str, int] = {}
    refused = np.zeros(len(X), bool)
    for own in features:
        if isinstance(own, Difference):
            column[own.name] = column[own.plus]
            values[own.name] = values[own.plus] - values[own.minus]
            continue
        column[own.name] = names.index(own.field)
        x = X[:, column[own.name]]
        bounded = np.maximum(0.0, own.sign * x) if own.bounded else x
        with np.errstate(over="ignore"):
            values[own.name] = np.where(np.isnan(x), own.missing, bounded).astype(_F32)
        refused |= values[own.name] < 0.0
    if unset is None:
        return np.column_stack([*values.values()]), refused
    X = X[:, [*column.values()]]
    with np.errstate(over="ignore"):
        return np.where(np.isnan(X), unset, X).astype(_F32), np.zeros(len(X), bool)


def model_scores(path: Path, names: list[str], x: Any, release: PluginRelease) -> F64:
    """Return what the model in ``path`` scores vectors of features of these names."""
    payload = read_json(path)
    try:
        model = payload["model"]["model"]
        kind, definition = model["type"], model["definition"]
    except (KeyError, TypeError):
        _fail(path, "it has no model.model.type and definition")
    place = {name: j for j, name in enumerate(names)}
    if kind == "model/linear":
        return _linear(path, _parsed(path, definition), place, x)
    if kind == "model/xgboost+json":
        trees = _parsed(path, definition)
        return _trees(path, trees, place, x, follows_missing=release.follows_missing)
    if kind != "model/ranklib":
        _fail(path, f"there is no model type '{kind}'")
    try:
        scores = parse_model_text(definition, str(path)).scores(x.astype(np.float64))
    except DataError as error:
        raise ParityError(str(error)) from None
    return scores.astype(_F32).astype(np.float64)


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


def _trees(path: Path, trees: Any, place: dict[str, int], x: Any, *, follows_missing: bool) -> F64:
    if not isinstance(trees, list) or not trees:
        _fail(path, "a model of trees is a list of them")
    total = np.zeros(len(x), _F32)
    for tree in trees:
        total = total + _leaves(path, tree, place, x, follows_missing)
    return np.asarray(total, np.float64)


def _leaves(path: Path, tree: Any, place: dict[str, int], x: Any, follows_missing: bool) -> Any:
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
        if follows_missing and node["missing"] == node["yes"]:
            yes |= np.isnan(value)
        waiting += [(children[node["yes"]], rows[yes]), (children[node["no"]], rows[~yes])]
    return out


def _parsed(path: Path, definition: Any) -> Any:
    try:
        return json.loads(definition)
    except (TypeError, ValueError, RecursionError):
        _fail(path, "its definition is not JSON")


def _fail(path: Path, what: str) -> NoReturn:
    raise ParityError(f"{path} would be refused: {what}.")
