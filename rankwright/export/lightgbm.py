"""``lightgbm``: LightGBM's model text, with the initial score as a tree of one leaf."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.export.forest import ZERO, Forest
from rankwright.export.target import DOUBLE, Job, Target, Written, as_scores, run_evaluator
from rankwright.models.tree_text import model_text, tree_blocks

_DRIVER = """
import os, sys
out = os.dup(1)
os.dup2(2, 1)
import lightgbm, numpy
path, n, d, *names = sys.argv[1:]
booster = lightgbm.Booster(model_file=path)
if booster.feature_name() != names:
    sys.exit("its features are not those of export.json")
X = numpy.frombuffer(sys.stdin.buffer.read(), numpy.float64).reshape(int(n), int(d))
with os.fdopen(out, "wb") as stream:
    stream.write(numpy.asarray(booster.predict(X, num_threads=1), numpy.float64).tobytes())
"""
_NAN = 2 << 2  # missing type NaN, in decision_type
_DEFAULT_LEFT = 2
_LOWEST = float(np.finfo(np.float64).min)


class LightGBM(Target):
    """LightGBM's text for ``lightgbm.Booster(model_file=...)``."""

    families = frozenset({"additive", "trees"})
    single = False
    evaluator = "LightGBM"
    lacks = ": it knows trees alone"

    def write(self, job: Job) -> Written:
        """Return model.txt."""
        assert isinstance(job.model, Forest)
        model = job.model
        blocks = tree_blocks(model.text) if model.text else _blocks(model)
        if model.initial:
            blocks = [_leaf(model.initial), *blocks]
        return Written(
            files={"model.txt": model_text(job.names, blocks).encode()},
            epsilon=DOUBLE,
            missing="a missing value (NaN) scores as in the model",
            takes_missing=np.ones(len(job.names), bool),
            thresholds=None if model.text else _held(model),
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return LightGBM's scores, from a process of its own: a damaged text can end it."""
        path = folder / "model.txt"
        names = [feature["name"] for feature in about["features"]]
        command = [sys.executable, "-c", _DRIVER, str(path), *map(str, X.shape), *names]
        fault = f"LightGBM cannot read {path}"
        answer = run_evaluator(command, np.ascontiguousarray(X).tobytes(), fault)
        return as_scores(answer, len(X), fault)


def _held(model: Forest) -> F64:
    """Return the thresholds as LightGBM has them: finite, and numbers near 0 are 0."""
    cut = np.maximum(model.threshold, _LOWEST)
    cut = np.where((cut >= 0.0) & (cut < ZERO), ZERO, cut)
    below = float(np.nextafter(-ZERO, -np.inf))
    return np.where((cut < 0.0) & (cut >= -ZERO), below, cut)


def _leaf(value: float) -> str:
    return (
        f"num_leaves=1\nnum_cat=0\nleaf_value={value!r}\nleaf_weight=1\nleaf_count=1\n"
        "is_linear=0\nshrinkage=1\n\n\n"
    )


def _blocks(model: Forest) -> list[str]:
    """Return LightGBM's text of trees with numeric splits that did not come from it."""
    found = []
    for a, b in model.spans():
        nodes = np.arange(a, b)
        inner = model.left[a:b] != nodes
        if not inner.any():
            found.append(_leaf(float(model.value[a])))
            continue
        number: I64 = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner))
        kind = _NAN + _DEFAULT_LEFT * model.missing_left[a:b][inner].astype(np.int64)
        lines = [
            f"num_leaves={int((~inner).sum())}",
            "num_cat=0",
            f"split_feature={_joined(model.feature[a:b][inner])}",
            f"split_gain={_joined(np.ones(inner.sum()))}",
            f"threshold={_joined(np.maximum(model.threshold[a:b][inner], _LOWEST))}",
            f"decision_type={_joined(kind)}",
            f"left_child={_joined(number[model.left[a:b][inner] - a])}",
            f"right_child={_joined(number[model.right[a:b][inner] - a])}",
            f"leaf_value={_joined(model.value[a:b][~inner])}",
            f"leaf_weight={_joined(np.ones((~inner).sum()))}",
            f"leaf_count={_joined(np.ones((~inner).sum(), np.int64))}",
            f"internal_value={_joined(np.zeros(inner.sum()))}",
            f"internal_weight={_joined(np.ones(inner.sum()))}",
            f"internal_count={_joined(np.full(inner.sum(), 2))}",
        ]
        found.append("\n".join([*lines, "is_linear=0", "shrinkage=1", "", "", ""]))
    return found


def _joined(values: Any) -> str:
    return " ".join(map(repr, values.tolist()))
