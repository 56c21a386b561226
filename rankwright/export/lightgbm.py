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
from rankwright.models.forest import Forest
from rankwright.models.forest_scoring import TINY
from rankwright.models.lightgbm_text import check_head, is_whole, model_text, read_trees
from rankwright.models.portable import LOWEST, PortableForest

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
        assert isinstance(job.model, PortableForest)
        model = job.model
        forest = model.in_lightgbm()
        if model.offset:
            forest = Forest.leaf(model.n_features, model.offset).join([forest])
        return Written(
            files={"model.txt": model_text(job.names, forest, job.categories).encode()},
            epsilon=DOUBLE,
            missing="a missing value (NaN) scores as in the model",
            takes_missing=np.ones(len(job.names), bool),
            thresholds=_written_thresholds(model) if model.source is None else None,
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
    """Raise for a damaged text; LightGBM may not return from reading it."""
    try:
        text = path.read_bytes().decode()
        check_head(text, n_features)
        read_trees(text, n_features)
        whole = is_whole(text)
    except (OSError, UnicodeDecodeError, RankwrightError) as error:
        raise ParityError(f"{failure}: {error}") from None
    if not whole:
        raise ParityError(f"{failure}: the sizes of its trees are wrong, or its end is missing.")


def _written_thresholds(model: PortableForest) -> F64:
    """Return the thresholds as LightGBM has them: finite, and numbers near 0 are 0."""
    cut = np.maximum(model.threshold, LOWEST)
    cut = np.where((cut >= 0.0) & (cut < TINY), TINY, cut)
    below = float(np.nextafter(-TINY, -np.inf))
    return np.where((cut < 0.0) & (cut >= -TINY), below, cut)
