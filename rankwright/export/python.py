"""``python``: a module of plain Python without dependencies, with ``score(features)``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import UsageError
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
from rankwright.models.portable import (
    SETS,
    Blend,
    Linear,
    Network,
    OneKind,
    PortableForest,
    forest_in,
)

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
_SPLIT = """
inf = math.inf


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
"""
_LINEAR = """
COEF{s} = {coef}
FILL{s} = {fill}


def _part{s}(values):
    total = {intercept}
    for w, f, x in zip(COEF{s}, FILL{s}, values):
        total += w * (f if x != x else x)
    return total
"""
_FOREST = """
INITIAL{s} = {initial}
# feature (-1: leaf), threshold, rule, left, right, value by node
TREES{s} = [
{trees}
]


def _part{s}(values):
    total = 0.0
    for feature, threshold, rule, left, right, value in TREES{s}:
        i = 0
        while feature[i] >= 0:
            i = left[i] if _left(values[feature[i]], threshold[i], rule[i]) else right[i]
        total += value[i]
    return INITIAL{s} + total
"""
_NETWORK = """
FILL{s} = {fill}
LAYERS{s} = {layers}


def _activated{s}(z):
    return {activation}


def _part{s}(values):
    h = [f if x != x else x for f, x in zip(FILL{s}, values)]
    for k, (weights, constants) in enumerate(LAYERS{s}):
        z = [sum(w * x for w, x in zip(row, h)) + b for row, b in zip(weights, constants)]
        h = z if k == len(LAYERS{s}) - 1 else [_activated{s}(one) for one in z]
    return h[0]
"""
_SCORE = """

def score(features):
    values = _values(features)
    return {total}
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

    families = frozenset({"linear", "additive", "trees", "network", "blend"})
    single = False
    evaluator = "a fresh Python interpreter without any packages"

    def write(self, job: Job) -> Written:
        """Return NAME.py."""
        _check_module_name(job.title)
        model = job.model
        categories = {name: list(own.values) for name, own in job.categories.items()}
        head = _HEAD.format(
            family=model.family, names=json.dumps(list(job.names)), categories=repr(categories)
        )
        parts = model.parts if isinstance(model, Blend) else (model,)
        body = _SPLIT if forest_in(model) is not None else ""
        body += "".join(_part(part, f"_{k}") for k, part in enumerate(parts, 1))
        total = " + ".join(f"_part_{k}(values)" for k in range(1, len(parts) + 1))
        body += _SCORE.format(total=total)
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


def _check_module_name(name: str) -> None:
    """Refuse a name that no import statement can take, or that hides a module of Python."""
    if iskeyword(name) or name in sys.stdlib_module_names:
        kind = "a keyword of Python" if iskeyword(name) else "a module of Python itself"
        raise UsageError(f"'{name}' is {kind}; choose another name for the module.")


def _part(model: OneKind, s: str) -> str:
    """Return the tables of a model and the function of its score, with a suffix to their names."""
    if isinstance(model, PortableForest):
        return _FOREST.format(s=s, initial=repr(model.offset), trees=_trees(model))
    if isinstance(model, Linear):
        return _LINEAR.format(
            s=s, coef=model.coef.tolist(), fill=_fill(model), intercept=repr(model.intercept)
        )
    layers = [(w.T.tolist(), b.tolist()) for w, b in model.layers]
    activation = _ACTIVATIONS[model.activation]
    return _NETWORK.format(s=s, fill=_fill(model), layers=layers, activation=activation)


def _fill(model: Linear | Network) -> str:
    n = len(model.fill_value)
    return f"[math.nan] * {n}" if model.fill is None else repr(model.fill.tolist())


def _trees(model: PortableForest) -> str:
    lines = []
    for tree in plain_trees(model):
        rules = [(rule, tuple(tree["categories"][str(node)])) if rule in SETS else rule
                 for node, rule in enumerate(tree["missing"])]  # fmt: skip
        cuts = [float(cut) for cut in tree["threshold"]]
        arrays = (tree["feature"], cuts, rules, tree["left"], tree["right"], tree["value"])
        lines.append(f"    {arrays!r},")
    return "\n".join(lines)
