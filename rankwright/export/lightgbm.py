"""``lightgbm``: LightGBM's model text, with the initial score as a tree of one leaf."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.export.forest import ZERO, Forest
from rankwright.export.lightgbm_tree import Nodes, leaf_block, tree_block
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
    lacks = ": it supports trees only"

    def write(self, job: Job) -> Written:
        """Return model.txt."""
        assert isinstance(job.model, Forest)
        model = job.model
        blocks = tree_blocks(model.text) if model.text else blocks_of(model)
        if model.initial:
            blocks = [leaf_block(model.initial), *blocks]
        return Written(
            files={"model.txt": model_text(job.names, blocks, job.categories).encode()},
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


def blocks_of(model: Forest) -> list[str]:
    """Return LightGBM's text of trees with numeric splits that did not come from it."""
    model.need_numeric("lightgbm")
    found = []
    for a, b in model.spans():
        n, inner = b - a, model.left[a:b] != np.arange(a, b)
        if not inner.any():
            found.append(leaf_block(float(model.value[a])))
            continue
        nodes = Nodes(
            inner=inner,
            left=model.left[a:b] - a,
            right=model.right[a:b] - a,
            feature=model.feature[a:b],
            threshold=np.maximum(model.threshold[a:b], _LOWEST),
            decision=_NAN + _DEFAULT_LEFT * model.missing_left[a:b].astype(np.int64),
            gain=np.ones(n),
            value=np.where(inner, 0.0, model.value[a:b]),
            weight=np.ones(n),
            count=np.where(inner, 2, 1),
        )
        found.append(tree_block(nodes))
    return found
