"""The demo: a panel of rankers on the embedded digits, chosen on valid, judged once on test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rankwright.data.digits import digits
from rankwright.data.ranking_data import RankingData
from rankwright.experiments.baselines import best_feature, feature_scores, random_scores
from rankwright.metrics.evaluate import Evaluation, evaluate
from rankwright.metrics.significance import bootstrap_interval

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "map")


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
    train, _, test = digits(seed=seed)
    return test, _rows(train, test, seed)


def _rows(train: RankingData, test: RankingData, seed: int) -> Iterator[Row]:
    scores = random_scores(test, seed=seed)
    yield Row("random", "scores by chance", evaluate(test, scores, METRICS))
    column, sign = best_feature(train)
    about = f"{'highest' if sign > 0 else 'lowest'} pixel {column + 1} first, chosen on train"
    scores = sign * feature_scores(test, column)
    yield Row("best feature", about, evaluate(test, scores, METRICS))
