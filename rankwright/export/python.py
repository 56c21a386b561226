"""``python``: a module of plain Python without dependencies, with ``score(features)``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.export.json import plain_trees
from rankwright.export.target import (
    DOUBLE,
    KEPT,
    REFUSED,
    Job,
    ParityError,
    Target,
    Written,
    accepts_missing,
    run_evaluator,
)
from rankwright.models.portable import SETS, Forest, Linear, Network

_HEAD = '''"""A model (family {family}) written by rankwright: score(features), higher is better.

Features come in the order of FEATURES, or by name; a missing one is None or NaN. Those in
CATEGORIES may be given by value, as text; one that is not there is missing.
"""

import math

FEATURES = {names}
CATEGORIES = {categories}
_CODES = {{name: {{value: code for code, value in enumerate(values)}}
          for name, values in CATEGORIES.items()}}


def _number(name, x):
    if isinstance(x, str):
        if name not in _CODES:
            raise ValueError(f"{{name}} is {{x!r}}, which is no number")
        return _CODES[name].get(x, math.nan)
    return math.nan if x is None else float(x)


def _values(features):
    if isinstance(features, dict):
        features = [features.get(name) for name in FEATURES]
    if len(features) != len(FEATURES):
        raise ValueError(f"{{len(features)}} features where {{len(FEATURES)}} are expected")
    return [_number(name, x) for name, x in zip(FEATURES, features)]

'''
_LINEAR = """
COEF = {coef}
FILL = {fill}


def score(features):
    total = 0.0
    for w, f, x in zip(COEF, FILL, _values(features)):
        total += w * (f if x != x else x)
    return total
"""
_FOREST = """
INITIAL = {initial}
inf = math.inf
# feature (-1: leaf), threshold, rule, left, right, value by node
TREES = [
{trees}
]


def _left(x, threshold, rule):
    if rule == "plain":
        return (0.0 if x != x else x) <= threshold
    if isinstance(rule, tuple):
        kind, categories = rule
        if x != x or (kind != "category" and x < 0.0):
            return x != x and kind == "member_or_nan"
        return -1.0 < x < 2147483648.0 and int(x) in categories
    kind, _, side = rule.partition("_")
    if x != x or (kind == "zero" and abs(x) <= 1.0000000180025095e-35):
        return side == "left"
    return x <= threshold


def score(features):
    values, total = _values(features), 0.0
    for feature, threshold, rule, left, right, value in TREES:
        i = 0
        while feature[i] >= 0:
            i = left[i] if _left(values[feature[i]], threshold[i], rule[i]) else right[i]
        total += value[i]
    return INITIAL + total
"""
_NETWORK = """
FILL = {fill}
LAYERS = {layers}


def _activated(z):
    return {activation}


def score(features):
    h = [f if x != x else x for f, x in zip(FILL, _values(features))]
    for k, (weights, constants) in enumerate(LAYERS):
        z = [sum(w * x for w, x in zip(row, h)) + b for row, b in zip(weights, constants)]
        h = z if k == len(LAYERS) - 1 else [_activated(one) for one in z]
    return h[0]
"""
_ACTIVATIONS = {
    "relu": "max(z, 0.0)",
    "sigmoid": "1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0",
    "tanh": "math.tanh(z)",
    "elu": "z if z > 0.0 else math.expm1(z)",
}
_DRIVER = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("model", sys.argv[1])
model = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(model)
json.dump([model.score(row) for row in json.load(sys.stdin)], sys.stdout)
"""


class Python(Target):
    """A Python module that needs no package at all."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = False
    evaluator = "a fresh Python interpreter without any packages"

    def write(self, job: Job) -> Written:
        """Return NAME.py."""
        model = job.model
        categories = {name: list(own.values) for name, own in job.categories.items()}
        head = _HEAD.format(
            family=model.family, names=json.dumps(list(job.names)), categories=repr(categories)
        )
        if isinstance(model, Forest):
            body = _FOREST.format(initial=repr(model.initial), trees=_trees(model))
        elif isinstance(model, Linear):
            body = _LINEAR.format(coef=model.coef.tolist(), fill=_fill(model))
        else:
            layers = [(w.T.tolist(), b.tolist()) for w, b in model.layers]
            body = _NETWORK.format(
                fill=_fill(model), layers=layers, activation=_ACTIVATIONS[model.activation]
            )
        takes = accepts_missing(model)
        return Written(
            files={f"{job.title}.py": (head + body).encode()},
            epsilon=DOUBLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return what the module scores in an interpreter of its own."""
        path = folder / f"{about['name']}.py"
        rows = [[None if x != x else x for x in row] for row in X.tolist()]
        command, failure = [sys.executable, "-I", "-S", "-c", _DRIVER, str(path)], f"{path} fails"
        answer = run_evaluator(command, json.dumps(rows).encode(), failure)
        try:
            return np.array(json.loads(answer), np.float64)
        except (ValueError, TypeError):
            raise ParityError(f"{failure}: its scores are no numbers.") from None


def _fill(model: Linear | Network) -> str:
    n = len(model.fill_value)
    return f"[math.nan] * {n}" if model.fill is None else repr(model.fill.tolist())


def _trees(model: Forest) -> str:
    lines = []
    for tree in plain_trees(model):
        rules = [(rule, tuple(tree["categories"][str(node)])) if rule in SETS else rule
                 for node, rule in enumerate(tree["missing"])]  # fmt: skip
        cuts = [float(cut) for cut in tree["threshold"]]
        arrays = (tree["feature"], cuts, rules, tree["left"], tree["right"], tree["value"])
        lines.append(f"    {arrays!r},")
    return "\n".join(lines)
