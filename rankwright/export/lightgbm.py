"""``lightgbm``: LightGBM's model text, with the initial score as a tree of one leaf."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import RankwrightError
from rankwright.export.target import (
    DOUBLE,
    Job,
    ParityError,
    Target,
    Written,
    as_scores,
    run_evaluator,
)
from rankwright.models.portable import LOWEST, ZERO, Forest, lightgbm_blocks
from rankwright.models.tree_text import first_trees, leaf_block, model_text, tree_blocks
from rankwright.models.trees import FittedTrees

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
        blocks = tree_blocks(model.text) if model.text else lightgbm_blocks(model)
        if model.initial:
            blocks = [leaf_block(model.initial), *blocks]
        return Written(
            files={"model.txt": model_text(job.names, blocks, job.categories).encode()},
            epsilon=DOUBLE,
            missing="a missing value (NaN) scores as in the model",
            takes_missing=np.ones(len(job.names), bool),
            thresholds=None if model.text else _written_thresholds(model),
        )

    def scores(self, folder: Path, about: Mapping[str, Any], X: F64) -> F64:
        """Return LightGBM's scores, from a process of its own: a damaged text can end it."""
        path = folder / "model.txt"
        names = [feature["name"] for feature in about["features"]]
        command = [sys.executable, "-c", _DRIVER, str(path), *map(str, X.shape), *names]
        failure = f"LightGBM cannot read {path}"
        _check_text(path, X.shape[1], failure)
        answer = run_evaluator(command, np.ascontiguousarray(X).tobytes(), failure)
        return as_scores(answer, len(X), failure)


def _check_text(path: Path, n_features: int, failure: str) -> None:
    """Refuse a damaged text, with which LightGBM may never end."""
    try:
        text = path.read_bytes().decode()
        FittedTrees(text, 0.0, n_features).check()
        whole = text.startswith(first_trees(text, len(tree_blocks(text))))
    except (OSError, UnicodeDecodeError, RankwrightError) as error:
        raise ParityError(f"{failure}: {error}") from None
    if not whole:
        raise ParityError(f"{failure}: the sizes of its trees are wrong, or its end is missing.")


def _written_thresholds(model: Forest) -> F64:
    """Return the thresholds as LightGBM has them: finite, and numbers near 0 are 0."""
    cut = np.maximum(model.threshold, LOWEST)
    cut = np.where((cut >= 0.0) & (cut < ZERO), ZERO, cut)
    below = float(np.nextafter(-ZERO, -np.inf))
    return np.where((cut < 0.0) & (cut >= -ZERO), below, cut)
