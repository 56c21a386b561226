"""``json``: the model in a plain JSON file, for a scorer of your own.

A forest is a list of trees, each with arrays by node: ``feature`` (-1: a leaf), ``threshold``,
``missing``, ``left``, ``right``, ``value``. A split sends x left where x <= threshold; ``missing``
says what else it does: ``plain`` takes a missing value for 0, ``nan_left`` and ``nan_right`` send
it there, ``zero_left`` and ``zero_right`` do the same with 0 too, ``category`` sends left what
``categories`` lists for the node; so do ``member`` and ``member_or_nan``, of numbers from 0 alone,
and the latter sends a missing value left too. Scores start from ``initial``. A network has
``layers`` of ``weights`` (a row for each input) and ``constants``, with ``activation`` after all
but the last. ``fill`` has what stands for a missing value. A blend has ``parts``, such models
whose scores are added. ``categories`` has the values of
features that are categories: the model takes the place of a value among them, from 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.export.target import (
    DOUBLE,
    KEPT,
    REFUSED,
    Job,
    ParityError,
    Target,
    Written,
    accepts_missing,
    read_json,
)
from rankwright.models.portable import RULES, Blend, Linear, OneKind, Portable, PortableForest


class Json(Target):
    """A JSON file with weights, trees or layers, described in docs/how-to/export.md."""

    families = frozenset({"linear", "additive", "trees", "network", "blend"})
    single = False
    evaluator = "a strict reader of the schema, in plain Python"

    def write(self, job: Job) -> Written:
        """Return model.json."""
        plain = plain_model(job.model, job.names)
        if job.categories:
            plain["categories"] = {name: list(own.values) for name, own in job.categories.items()}
        text = json.dumps(plain, indent=1, allow_nan=False)
        takes = accepts_missing(job.model)
        return Written(
            files={"model.json": text.encode()},
            epsilon=DOUBLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by the reader below."""
        names = [feature["name"] for feature in about["features"]]
        return score_rows(folder / "model.json", names, X)


def plain_model(model: Portable, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the model as plain values."""
    whole: dict[str, Any] = {"rankwright_model": 1, "family": model.family, "features": list(names)}
    if isinstance(model, Blend):
        return {**whole, "parts": [_plain_part(part) for part in model.parts]}
    return {**whole, **_plain_part(model)}


def _plain_part(model: OneKind) -> dict[str, Any]:
    whole: dict[str, Any] = {"family": model.family}
    if isinstance(model, PortableForest):
        return {**whole, "initial": model.offset, "trees": plain_trees(model)}
    fill = None if model.fill is None else model.fill.tolist()
    if isinstance(model, Linear):
        intercept = {"intercept": model.intercept} if model.intercept else {}
        return {**whole, "coef": model.coef.tolist(), "fill": fill, **intercept}
    layers = [{"weights": w.tolist(), "constants": b.tolist()} for w, b in model.layers]
    return {**whole, "activation": model.activation, "layers": layers, "fill": fill}


def plain_trees(model: PortableForest) -> list[dict[str, Any]]:
    """Return each tree with its nodes numbered from 0."""
    leaf = model.is_leaf
    feature = np.where(leaf, -1, model.feature)
    categories, trees = model.categories, []
    for a, b in model.spans():
        tree: dict[str, Any] = {
            "feature": feature[a:b].tolist(),
            "threshold": [_finite(cut) for cut in model.threshold[a:b].tolist()],
            "missing": [RULES[rule] for rule in model.rule[a:b].tolist()],
            "left": (model.left[a:b] - a).tolist(),
            "right": (model.right[a:b] - a).tolist(),
            "value": model.value[a:b].tolist(),
        }
        own = {str(node - a): found for node, found in categories.items() if a <= node < b}
        trees.append({**tree, "categories": own} if own else tree)
    return trees


def _finite(cut: float) -> float | str:
    return cut if np.isfinite(cut) else "Infinity" if cut > 0 else "-Infinity"


# --- reading -----------------------------------------------------------------------------------
# A strict reader that scores rows one by one, in plain Python; `verify_export` uses it.


_TINY = 1.0000000180025095e-35
_NODE = {"feature", "threshold", "missing", "left", "right", "value"}


def score_rows(path: Path, names: list[str], X: F64) -> F64:
    """Return the score of each row."""
    model = read_json(path)
    if not isinstance(model, dict) or model.get("rankwright_model") != 1:
        raise ParityError(f"{path} is not a model of the json target.")
    if model.get("features") != names:
        raise ParityError(f"{path} has other features than its export.json.")
    family = model.get("family")
    try:
        return np.array([_score(model, row) for row in X.tolist()])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ParityError(f"{path} cannot be read as a {family} model: {error!r}.") from None


def _score(model: dict[str, Any], row: list[float]) -> float:
    if model["family"] == "blend":
        return math.fsum(_score(part, row) for part in model["parts"])
    return {
        "linear": _linear, "trees": _forest, "additive": _forest, "network": _network,
    }[model["family"]](model, row)  # fmt: skip


def _with_fill(model: dict[str, Any], row: list[float]) -> list[float]:
    fill = model["fill"] or row
    return [f if x != x else x for x, f in zip(row, fill, strict=True)]


def _linear(model: dict[str, Any], row: list[float]) -> float:
    whole = _with_fill(model, row)
    products = (w * x for w, x in zip(model["coef"], whole, strict=True))
    return math.fsum((float(model.get("intercept", 0.0)), *products))


def _forest(model: dict[str, Any], row: list[float]) -> float:
    total = 0.0
    for tree in model["trees"]:
        if not tree.keys() >= _NODE or len({len(tree[key]) for key in _NODE}) != 1:
            raise ValueError("a tree lacks some of its arrays")
        node = 0
        while tree["feature"][node] >= 0:
            below = "left" if _goes_left(tree, node, row[tree["feature"][node]]) else "right"
            if tree[below][node] <= node:
                raise ValueError("a tree leads back")
            node = tree[below][node]
        total += tree["value"][node]
    return float(model["initial"]) + total


def _goes_left(tree: dict[str, Any], node: int, x: float) -> bool:
    rule, cut = tree["missing"][node], float(tree["threshold"][node])
    if rule in ("member", "member_or_nan") and not x >= 0.0:
        return bool(rule == "member_or_nan" and x != x)
    if rule in ("category", "member", "member_or_nan"):
        return -1.0 < x < 2.0**31 and int(x) in tree["categories"][str(node)]
    if rule in ("zero_left", "zero_right") and (x != x or abs(x) <= _TINY):
        return bool(rule == "zero_left")
    if x != x and rule in ("nan_left", "nan_right"):
        return bool(rule == "nan_left")
    if rule not in ("plain", "nan_left", "nan_right", "zero_left", "zero_right"):
        raise ValueError(f"there is no rule {rule}")
    return (0.0 if x != x else x) <= cut


def _network(model: dict[str, Any], row: list[float]) -> float:
    h = _with_fill(model, row)
    *hidden, last = model["layers"]
    act = _ACTIVATIONS[model["activation"]]
    for layer in hidden:
        h = [act(z) for z in _sums(layer, h)]
    (score,) = _sums(last, h)
    return score


def _sums(layer: dict[str, Any], h: list[float]) -> list[float]:
    columns = zip(*layer["weights"], strict=True)
    return [
        math.fsum(w * x for w, x in zip(column, h, strict=True)) + constant
        for column, constant in zip(columns, layer["constants"], strict=True)
    ]


def _sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z >= -700.0 else math.exp(max(z, -745.0))


_ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda z: max(z, 0.0),
    "sigmoid": _sigmoid,
    "tanh": math.tanh,
    "elu": lambda z: z if z > 0.0 else math.expm1(z),
}
