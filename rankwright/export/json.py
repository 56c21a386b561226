"""``json``: the model in a plain JSON file, for a scorer of your own.

A forest is a list of trees, each with arrays by node: ``feature`` (-1: a leaf), ``threshold``,
``missing``, ``left``, ``right``, ``value``. A split sends x left where x <= threshold; ``missing``
says what else it does: ``plain`` takes a missing value for 0, ``nan_left`` and ``nan_right`` send
it there, ``zero_left`` and ``zero_right`` do the same with 0 too, ``category`` sends left what
``categories`` lists for the node; so do ``member`` and ``member_or_nan``, of numbers from 0 alone,
and the latter sends a missing value left too. Scores start from ``initial``. A network has
``layers`` of ``weights`` (a row for each input) and ``constants``, with ``activation`` after all
but the last. ``fill`` has what stands for a missing value. ``categories`` has the values of
features that are categories: the model takes the place of a value among them, from 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.export.forest import RULES, Forest
from rankwright.export.json_reader import score_rows
from rankwright.export.portable import Linear, Portable
from rankwright.export.target import DOUBLE, KEPT, REFUSED, Job, Target, Written, taken


class Json(Target):
    """A JSON file with weights, trees or layers, described in docs/how-to/export.md."""

    families = frozenset({"linear", "additive", "trees", "network"})
    single = False
    evaluator = "a strict reader of the schema, in plain Python"

    def write(self, job: Job) -> Written:
        """Return model.json."""
        plain = plain_model(job.model, job.names)
        if job.categories:
            plain["categories"] = {name: list(own.values) for name, own in job.categories.items()}
        text = json.dumps(plain, indent=1, allow_nan=False)
        takes = taken(job.model)
        return Written(
            files={"model.json": text.encode()},
            epsilon=DOUBLE,
            missing=KEPT if takes.all() else REFUSED,
            takes_missing=takes,
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return the scores by `rankwright.export.json_reader`."""
        names = [feature["name"] for feature in about["features"]]
        return score_rows(folder / "model.json", names, X)


def plain_model(model: Portable, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the model as plain values."""
    whole: dict[str, Any] = {"rankwright_model": 1, "family": model.family, "features": list(names)}
    if isinstance(model, Forest):
        return {**whole, "initial": model.initial, "trees": plain_trees(model)}
    fill = None if model.fill is None else model.fill.tolist()
    if isinstance(model, Linear):
        return {**whole, "coef": model.coef.tolist(), "fill": fill}
    layers = [{"weights": w.tolist(), "constants": b.tolist()} for w, b in model.layers]
    return {**whole, "activation": model.activation, "layers": layers, "fill": fill}


def plain_trees(model: Forest) -> list[dict[str, Any]]:
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
