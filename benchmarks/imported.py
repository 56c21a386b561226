"""Imported models against the libraries' own predict on one thread: largest difference and speed.

Each library trains 500 trees of up to 64 leaves (CatBoost: symmetric trees of depth 6, and others)
over 136 features; its model is imported, and both score 20,000 documents in float32, in turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rankwright as rw

from .contest import Contender, contest, is_installed
from .findings import OURS, Findings
from .scoring import (
    LEAVES,
    ROWS,
    RUNS,
    TREES,
    drawn,
    grown,
    trained_catboost,
    trained_xgboost,
)

Made = tuple[Any, Callable[[np.ndarray], np.ndarray]]
Make = Callable[[np.ndarray, np.ndarray], Made]


def run() -> Findings:
    X, y = drawn()
    found = Findings()
    print(f"{'library':28}{'rows':>8}{'difference':>12}{'theirs ms':>11}{'ours ms':>9}{'ratio':>7}")
    for library, package, what, make in (
        ("LightGBM", "lightgbm", f"predict, {LEAVES} leaves", _lightgbm),
        ("XGBoost", "xgboost", f"inplace_predict, {LEAVES} leaves", _xgboost),
        ("CatBoost", "catboost", f"Lossguide trees, {LEAVES} leaves", _catboost("Lossguide")),
        (
            "CatBoost, symmetric trees",
            "catboost",
            "SymmetricTree, depth 6",
            _catboost("SymmetricTree"),
        ),
    ):
        _measure(found, library, package, what, make, X, y)
    return found


def _measure(
    found: Findings, library: str, package: str, what: str, make: Make, X: np.ndarray, y: np.ndarray
) -> None:
    if not is_installed(package):
        found.absent[library] = f"{package} is not installed"
        return
    model, theirs = make(X, y)
    ours = rw.import_model(model).model_
    off = float(np.abs(ours.scores(X, n_jobs=1) - theirs(X)).max())
    settings = f"{TREES} trees, {what}, 1 thread"
    same = "the same scores, to the last bit" if off == 0.0 else ""
    turns = found.add(
        contest(
            f"Imported {library}, {ROWS:,} documents",
            [
                Contender(OURS, "rankwright", settings, lambda: lambda: ours.scores(X, n_jobs=1)),
                Contender(library, package, settings, lambda: lambda: theirs(X), same=same),
            ],
            rounds=RUNS,
        )
    )
    key = library.lower().replace(", symmetric trees", "_symmetric")
    faster = turns.ratio(library, OURS)
    found.figures[f"{key}_largest_difference"] = off
    found.note_figure(f"{key}_vs_predict", faster)
    taken = {record.peer: 1e3 * (record.seconds or 0.0) for record in turns.records}
    print(
        f"{library:28}{ROWS:>8,}{off:>12.3g}{taken[library]:>11.1f}{taken[OURS]:>9.1f}"
        f"{faster or 0.0:>7.2f}"
    )


def _lightgbm(X: np.ndarray, y: np.ndarray) -> Made:
    booster = grown(X, y)
    return booster, lambda Z: booster.predict(Z, num_threads=1)


def _xgboost(X: np.ndarray, y: np.ndarray) -> Made:
    booster = trained_xgboost(X, y)
    return booster, booster.inplace_predict


def _catboost(policy: str) -> Make:
    def make(X: np.ndarray, y: np.ndarray) -> Made:
        model = trained_catboost(X, y, policy)
        return model, lambda Z: model.predict(Z, thread_count=1)

    return make
