"""The demo: a panel of rankers on the embedded digits, chosen on valid, judged once on test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

from rankwright.data.digits import digits
from rankwright.data.ranking_data import RankingData
from rankwright.experiments.baselines import best_feature, feature_scores, random_scores
from rankwright.metrics.evaluate import Evaluation, evaluate
from rankwright.metrics.significance import bootstrap_interval
from rankwright.rankers.base import ranker

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "map")

_TREES = {"n_trees": 200, "num_leaves": 15, "early_stopping": 30}
PANEL: dict[str, dict[str, Any]] = {
    "gbdt": _TREES,
    "gbrank": _TREES,
    "xendcg": _TREES,
    "lambdamart": _TREES,
    "intervalrank": _TREES,
    "random_forest": {"n_bags": 100},
    "listmle": {"l2": "auto"},
    "listnet": {"l2": "auto"},
    "ranknet": {"model": "linear", "l2": "auto"},
    "memr": {"l2": "auto"},
    "ranksvm": {"l2": "auto"},
    "irsvm": {"l2": "auto"},
    "dorm": {},
    "domination": {"l1": "auto"},
    "pamir": {},
}
"""Every ranker of the demo with its parameters; valid data chooses the rest."""


@dataclass(frozen=True)
class Row:
    """One contender of the panel: what it is and how it did on test."""

    name: str
    about: str
    evaluation: Evaluation

    def interval(self, metric: str) -> tuple[float, float]:
        """Return the 95 % bootstrap interval of a metric's mean over queries."""
        found = bootstrap_interval(self.evaluation.per_query[metric], seed=0)
        return found.low, found.high


def run_demo(*, seed: int = 0) -> tuple[RankingData, Iterator[Row]]:
    """Return the test data, and the rows of the panel as they come in."""
    train, valid, test = digits(seed=seed)
    assert valid is not None, "the digits come in three parts"
    return test, _rows(train, valid, test, seed)


def _rows(train: RankingData, valid: RankingData, test: RankingData, seed: int) -> Iterator[Row]:
    scores = random_scores(test, seed=seed)
    yield Row("random", "scores by chance", evaluate(test, scores, METRICS))
    column, sign = best_feature(train)
    about = f"{'brightest' if sign > 0 else 'darkest'} pixel {column + 1} first"
    scores = sign * feature_scores(test, column)
    yield Row("best feature", about, evaluate(test, scores, METRICS))
    for name, parameters in PANEL.items():
        fitted = ranker(name, seed=seed, **parameters).fit(train, eval_set=valid)
        about = (getdoc(fitted) or "").partition("\n")[0].partition(": ")[2].rstrip(".")
        yield Row(name, about, evaluate(test, fitted.predict(test), METRICS))
