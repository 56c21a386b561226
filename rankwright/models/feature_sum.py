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

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from rankwright.core.parallel import ordered_sum, thread_count
from rankwright.core.parameters import Part
from rankwright.core.products import times_vector
from rankwright.core.types import F64, Callback, FloatMatrix, Metric
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics.ranked import Ranked
from rankwright.models.callbacks import until_interrupted
from rankwright.models.linear import (
    FittedLinear,
    WeightRounds,
    deviations,
    filled,
    restored_weights,
)
from rankwright.models.rules import by_column, column
from rankwright.registry import unknown
from rankwright.solvers.oracle_log import OracleLog


@dataclass(frozen=True, slots=True, repr=False)
class FeatureSum(Part):
    """A weight for each feature, from rounds that take one feature each; climbs a metric.

    Parameters
    ----------
    n_rounds, weights, enqueue, tol, max_selections
        See `rankwright.models.feature_sum.Reweight`. RankLib's are 500, "running", True, 0.002, 5.
    falling : bool
        Let features take part with falling values too, where less is better; RankLib does not.
    scale : bool
        Add features up in units of their standard deviation, not as they are.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RankBoost(model=rw.models.FeatureSum(n_rounds=100))
    RankBoost(model=FeatureSum(n_rounds=100))
    """

    n_rounds: int = 500
    weights: str = "total"
    enqueue: bool = False
    tol: float | None = None
    max_selections: int | None = None
    falling: bool = False
    scale: bool = False
    missing: str | None = None

    optimises_metric: ClassVar[bool] = True

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
            coef, queries = run.coef(weights), len(run.weight)
            (found,) = log.recall(lambda: (run.metric_by_query(),), coef, sizes=[queries])
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


# --- AdaRank's weights of queries ------------------------------------------------------------
#
# Boosting over queries: each round takes the weak ranker that serves the neglected queries best.
#
# With M(f, q) the metric of weak ranker f on query q, in [0, 1], and D_t(q) the weight of query q
# in round t, D_1 being the weights given,
#
#     f_t = argmax over f of sum_q D_t(q) M(f, q)                                                (2)
#     a_t = 1/2 ln(sum_q D_t(q) (1 + M(f_t, q)) / sum_q D_t(q) (1 - M(f_t, q)))                  (3)
#     D_t+1(q) ~ D_1(q) exp(-M(sum_s a_s f_s, q))                                                (4)
#
# (`xu2007adarank`, Figure 1). A weak ranker that serves the queries best again and again can hold
# the run where it is; RankLib's rules keep it moving:
#
# - ``weights="running"``: D_t+1(q) ~ D_t(q) exp(-a_t M(sum_s a_s f_s, q)) in place of (4)      (5)
# - ``enqueue``: a weak ranker that comes twice in a row is taken back and set aside. When nothing
# is
#   left, or the metric falls, those set aside return, the last one first, and the run goes on;
# - ``tol``: a round that lowers the mean metric by that much or more is taken back and ends
#   the run (or, with ``enqueue``, the search without the next one that was set aside);
# - ``max_selections``: a weak ranker that was taken that many times in a row after the first,
# without
#   any change of the mean metric, rests until it changes or another one is taken.


_SURE = 1.0 - 1e-6  # a weak ranker without error gets a weight of 7.25, not infinity
_WEIGHTS = ("total", "running")

MetricOfSum = Callable[[dict[int, float]], F64]


@dataclass(frozen=True, slots=True)
class Reweight:
    """Choose weak rankers for weighted queries, and weigh the queries by how they are served.

    Parameters
    ----------
    n_rounds : int
    weights : "total" or "running"
        Weigh queries by the ranking so far, as printed, or by all rankings on the way.
    enqueue : bool
        Set a weak ranker aside that comes twice in a row.
    tol : float or None
        The loss of mean metric in a round that ends the run; None: it goes on.
    max_selections : int or None
        How often in a row a weak ranker may come without any effect; None: always.
    """

    n_rounds: int = 500
    weights: str = "total"
    enqueue: bool = False
    tol: float | None = None
    max_selections: int | None = None

    def rounds(
        self,
        values: F64,
        metric_of: MetricOfSum,
        weight: F64,
        start: dict[int, float] | None = None,
    ) -> Iterator[Round]:
        """Yield the state after each round that is kept.

        Parameters
        ----------
        values : (F, Q)
            MetricOfSum of each weak ranker on each query.
        metric_of : callable
            Takes weights by weak ranker, returns the metric of their sum on each query.
        weight : (Q,)
            Weights of the queries.
        start : dict
            Weights by weak ranker to go on from.
        """
        if self.weights not in _WEIGHTS:
            raise UsageError(unknown("weights", self.weights, _WEIGHTS))
        if self.n_rounds < 1:
            raise UsageError(f"n_rounds must be 1 or more, not {self.n_rounds}.")
        run = _Run(self, values, metric_of, weight / (ordered_sum(weight) or 1.0), start or {})
        yield from run.go(enqueue=self.enqueue)
        while run.recall():
            yield from run.go(enqueue=False)


@dataclass(frozen=True, slots=True)
class Round:
    """What there is after a round: weights by weak ranker, the metric, and the queries' weights.

    ``chosen`` and ``step`` are f_t and a_t of the round.
    """

    chosen: int
    step: float
    weights: dict[int, float]
    mean: float
    queries: F64


class _Run:
    """Where a run stands."""

    def __init__(
        self,
        rules: Reweight,
        values: F64,
        metric_of: MetricOfSum,
        first: F64,
        start: dict[int, float],
    ) -> None:
        self._rules, self._values, self._metric_of, self._first = rules, values, metric_of, first
        self._taken: list[tuple[int, float]] = list(start.items())
        self._D, self._mean, self._t = first, -math.inf, 0
        if start:
            found = metric_of(start)
            self._D, self._mean = self._next(found, 1.0), ordered_sum(first * found)
        self._before = self._D, self._mean
        self._last, self._in_a_row = -1, 0
        self._resting: set[int] = set()
        self.aside: list[int] = []

    def go(self, *, enqueue: bool) -> Iterator[Round]:
        """Take weak rankers until the rounds are over, none is left or the metric falls."""
        while self._t < self._rules.n_rounds:
            f, gain = self._best()
            if f is None or self._holds_still(f):
                return
            self._t += 1
            if enqueue:
                if f == self._last:
                    self._set_aside(f)
                    continue
                self._last, self._before = f, (self._D, self._mean)
            step = 0.5 * math.log((1.0 + gain) / (1.0 - gain))  # (3)
            weights = self._sum((f, step))
            found = self._metric_of(weights)
            mean = ordered_sum(self._first * found)
            if not enqueue:
                self._note(f, mean)
            tol = self._rules.tol
            if tol is not None and mean + tol <= self._mean:
                self._t -= 1
                return
            self._taken.append((f, step))
            self._D, self._mean = self._next(found, step), mean
            yield Round(f, step, weights, mean, self._D)

    def recall(self) -> bool:
        """Let the last weak ranker that was set aside take part again; False: there was none."""
        if self.aside:
            self.aside.pop()
            return True
        return False

    def _best(self) -> tuple[int | None, float]:
        """Return the weak ranker of (2) and its weighted mean."""
        means = times_vector(self._values, self._D)
        means[[*self.aside, *self._resting]] = -np.inf
        f = int(np.argmax(means)) if len(means) else 0
        if not len(means) or means[f] == -np.inf:
            return None, 0.0
        return f, float(min(max(means[f], -_SURE), _SURE))

    def _holds_still(self, f: int) -> bool:
        """Whether f alone was taken and comes again: by (4) that is how it would go on for ever."""
        alone = bool(self._taken) and all(taken == f for taken, _ in self._taken)
        return alone and self._rules.weights == "total" and not self._rules.enqueue

    def _set_aside(self, f: int) -> None:
        """Take the last round back, which took f."""
        self.aside.append(f)
        self._taken.pop()
        self._D, self._mean = self._before

    def _sum(self, *more: tuple[int, float]) -> dict[int, float]:
        weights: dict[int, float] = {}
        for f, step in (*self._taken, *more):
            weights[f] = weights.get(f, 0.0) + step
        return weights

    def _next(self, found: F64, step: float) -> F64:
        if self._rules.weights == "total":
            D = self._first * np.exp(-found)  # (4)
        else:
            D = self._D * np.exp(-step * found)  # (5)
        total = ordered_sum(D)
        return D / total if total > 0.0 else D

    def _note(self, f: int, mean: float) -> None:
        """Count how often f came in a row without effect; let it rest when that is too often."""
        if mean != self._mean or f != self._last:
            self._in_a_row = 0
            self._resting.clear()
        else:
            self._in_a_row += 1
            if self._in_a_row == self._rules.max_selections:
                self._in_a_row = 0
                self._resting.add(f)
        self._last = f
