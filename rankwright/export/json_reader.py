"""A strict reader of the ``json`` target's files that scores rows one by one, in plain Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.export.target import ParityError

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
        score = {
            "linear": _linear, "trees": _forest, "additive": _forest, "network": _network,
        }[str(family)]  # fmt: skip
        return np.array([score(model, row) for row in X.tolist()])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as fault:
        raise ParityError(f"{path} cannot be read as a {family} model: {fault!r}.") from None


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; twice the same key, NaN or broken text is refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key appears twice")
        return found

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON number")

    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except (OSError, ValueError, RecursionError) as fault:
        raise ParityError(f"{path} cannot be read: {fault}.") from None


def _with_fill(model: dict[str, Any], row: list[float]) -> list[float]:
    fill = model["fill"] or row
    return [f if x != x else x for x, f in zip(row, fill, strict=True)]


def _linear(model: dict[str, Any], row: list[float]) -> float:
    whole = _with_fill(model, row)
    return math.fsum(w * x for w, x in zip(model["coef"], whole, strict=True))


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
