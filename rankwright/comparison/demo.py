"""The demo: a panel of rankers of every family on the embedded digits, compared as any others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rankwright.comparison.baselines import best_feature, feature_scores, random_scores
from rankwright.comparison.compare import compare
from rankwright.comparison.result import Comparison
from rankwright.data.catalog import digits
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import Ranker, ranker

METRICS = ("ndcg@10", "ndcg@5", "ndcg@1", "map")
TITLE = "Rankwright demo: handwritten digits as queries"

_TREES = {"n_estimators": 200, "num_leaves": 15, "early_stopping_rounds": 30}
PANEL: dict[str, dict[str, Any]] = {
    "linear_regression": {},
    "gbdt": _TREES,
    "gbrank": _TREES,
    "xendcg": _TREES,
    "lambdamart": _TREES,
    "intervalrank": _TREES,
    "random_forest": {"n_bags": 100},
    "listmle": {"l2": "auto"},
    "listnet": {"l2": "auto"},
    "ranknet": {"model": "linear", "model__l2": "auto"},
    "memr": {"l2": "auto"},
    "ranksvm": {"model": "kernel"},
    "irsvm": {"l2": "auto"},
    "dorm": {},
    "domination": {"l1": "auto"},
    "pamir": {},
    "prank": {},
    "rankboost": {},
    "adarank": {},
    "coordinate_ascent": {},
    "rankgp": {},
}
"""Every ranker of the demo with its parameters; validation data chooses the rest."""
NETWORKS: dict[str, dict[str, Any]] = {"lambdarank": {}, "softrank": {}}
"""Further ones, where torch is installed."""


def panel() -> dict[str, Ranker]:
    """Return the rankers of the demo."""
    chosen = {**PANEL, **NETWORKS} if find_spec("torch") else PANEL
    return {
        f"{name}, {own['model']}" if "model" in own else name: ranker(name, **own)
        for name, own in chosen.items()
    }


def run_demo(
    cache: str | Path, *, seed: int = 0, report: Callable[[str], None] = lambda _: None
) -> tuple[Comparison, dict[str, dict[str, float]]]:
    """Compare the panel; return the comparison, and what it must beat.

    Fitted rankers are kept in ``cache`` while the comparison is looked at; ``report`` is called
    with a line for each.
    """
    fold = digits(seed=seed)
    found = compare(
        fold, panel(), metrics=METRICS, cache=cache, jobs=1, report=report, random_state=seed
    )
    return replace(found, name="digits"), _floors(fold, seed)


def _floors(fold: Any, seed: int) -> dict[str, dict[str, float]]:
    """Return the metrics of chance, and of the single feature that is best on train."""
    column, sign = best_feature(fold.train)
    scores = {
        "random": random_scores(fold.test, seed=seed),
        "best feature": sign * feature_scores(fold.test, column),
    }
    return {name: dict(evaluate(fold.test, s, METRICS)) for name, s in scores.items()}
