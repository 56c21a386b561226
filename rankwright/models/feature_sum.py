"""A sum of features, each taken because it serves the queries that the sum so far serves badly.

    score(x) = sum_t a_t x_f(t)                                                                 (1)

Features are weak rankers: each alone puts the documents of every query in some order. Since they
never change, their metric on every query is worked out once, and a round of
`models.reweighting` is a weighted mean of it and one look at the sum so far (`xu2007adarank`). What
comes out is a linear model.

Ties count as the mean over their orders, whatever the convention says, so the order of rows never
reaches the model.
A metric that falls as rankings improve is turned round, and one that goes beyond 1, such as dcg,
is divided by the most that a feature reaches; queries that the metric leaves out have no weight.
Weights of documents are unknown to metrics, and so to this model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rankwright.core.parallel import ordered_sum, thread_count
from rankwright.core.parts import Part
from rankwright.core.products import times_vector
from rankwright.core.types import F64, Callback, FloatMatrix, Metric
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.ranked import Ranked
from rankwright.models.interrupt import until_interrupted
from rankwright.models.linear import FittedLinear, deviations, restored_weights
from rankwright.models.missing import filled
from rankwright.models.reweighting import Reweight
from rankwright.models.rules import by_column, column
from rankwright.models.weight_rounds import WeightRounds
from rankwright.solvers.oracle_log import OracleLog


@dataclass(frozen=True, slots=True, repr=False)
class FeatureSum(Part):
    """A weight for each feature, from rounds that take one feature each; climbs a metric.

    Parameters
    ----------
    n_rounds, weights, enqueue, tol, max_selections
        See `rankwright.models.reweighting.Reweight`. RankLib's are 500, "running", True, 0.002, 5.
    falling : bool
        Let features take part with falling values too, where less is better; RankLib does not.
    scale : bool
        Add features up in units of their standard deviation, not as they are.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    """

    n_rounds: int = 500
    weights: str = "total"
    enqueue: bool = False
    tol: float | None = None
    max_selections: int | None = None
    falling: bool = False
    scale: bool = False
    missing: str | None = None

    def fit(
        self,
        metric: Metric,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedLinear | None = None,
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,
    ) -> FittedLinear:
        """Take features until the mean of ``metric`` climbs no more, after those of ``start``."""
        n_jobs = thread_count(n_jobs)
        rules = Reweight(**{f.name: getattr(self, f.name) for f in fields(Reweight)})
        rows, ordered = in_content_order(data, n_jobs=n_jobs)
        rounds = WeightRounds(data, callback, self.missing, n_jobs=n_jobs)
        run = _Features(self, metric, ordered, filled(ordered.X, rounds.fill, "linear"), n_jobs)
        begun, log = run.taken_by(start), OracleLog(callback)

        def seen(weights: dict[int, float], mean: float) -> bool:
            on_train = None
            if callback.wants_train:
                on_train = np.empty(data.n_documents)
                on_train[rows] = run.scores
            return rounds.see(run.coef(weights), run.loss(mean), on_train)

        def metric_of(weights: dict[int, float]) -> F64:
            run.come_to(weights)
            (found,) = log.recall(lambda: (run.metric_by_query(),), run.coef(weights))
            return found

        with until_interrupted(callback, rounds):
            for now in rules.rounds(run.values, metric_of, run.weight, begun):
                if seen(now.weights, now.mean):
                    break
        if not rounds:  # no feature brings the metric up
            seen(begun, run.mean(begun))
        return rounds.fitted()

    restore = staticmethod(restored_weights)


class _Features:
    """Features as weak rankers: number f by rising, number d + f by falling values."""

    def __init__(
        self, own: FeatureSum, metric: Any, data: RankingData, X: FloatMatrix, n_jobs: int
    ) -> None:
        self._metric, self._X, self._n_jobs = metric.for_selection(), X, n_jobs
        self._judged = metric.judge(data, n_jobs=n_jobs)
        self._deviation = deviations(X, np.ones(data.n_documents), scale=own.scale)
        columns, signs = by_column(X), (1.0, -1.0) if own.falling else (1.0,)
        found = np.array(
            [
                self._metric_in_range(sign * column(columns, f))
                for sign in signs
                for f in range(X.shape[1])
            ]
        )
        left_out = np.isnan(found).any(axis=0)
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        self.weight: F64 = np.where(left_out, 0.0, weight)
        known = found[:, ~left_out]
        self._turned = not metric.maximise
        self._top = float(known.max(initial=0.0)) if self._turned else 0.0
        self._unit = max(1.0, float(np.abs(self._top - known).max(initial=0.0)))
        self.values: F64 = self._earned(found)
        self.scores = np.zeros(data.n_documents)

    def come_to(self, weights: dict[int, float]) -> None:
        """Score documents by a sum of weak rankers."""
        self.scores = times_vector(self._X, self.coef(weights), n_jobs=self._n_jobs)

    def metric_by_query(self) -> F64:
        """Return the metric of the scores on each query."""
        return self._earned(self._metric_in_range(self.scores))

    def mean(self, weights: dict[int, float]) -> float:
        """Return the mean metric of a sum of weak rankers."""
        self.come_to(weights)
        total = ordered_sum(self.weight) or 1.0
        return ordered_sum(self.weight * self.metric_by_query()) / total

    def coef(self, weights: dict[int, float]) -> F64:
        """Return weights by feature from those by weak ranker."""
        coef, d = np.zeros(len(self._deviation)), len(self._deviation)
        for f, weight in weights.items():
            coef[f % d] += weight if f < d else -weight
        return coef / self._deviation

    def taken_by(self, start: FittedLinear | None) -> dict[int, float]:
        """Return the weights of ``start`` by weak ranker."""
        if start is None:
            return {}
        coef = start.coef * self._deviation
        return {int(f): float(coef[f]) for f in np.flatnonzero(coef)}

    def loss(self, mean: float) -> float:
        """Return what the callback is shown: the metric, such that less is better."""
        mean *= self._unit
        return self._top - mean if self._turned else -mean

    def _metric_in_range(self, scores: F64) -> F64:
        ranked = Ranked(self._judged, scores, self._metric.setting("ties"))
        found: F64 = self._metric.values(ranked)
        return found

    def _earned(self, found: F64) -> F64:
        """Return the metric in [0, 1], more being better; 0 where it leaves the query out."""
        turned = self._top - found if self._turned else found
        return np.nan_to_num(turned / self._unit)
