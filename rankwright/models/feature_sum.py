"""A weighted sum of features, chosen one after the other for the queries ranked badly so far.

    score(x) = sum_t a_t x_f(t)                                                                 (1)

Features are weak rankers: each of them orders the documents of every query. With M(f, q) the metric
of weak ranker f on query q, in [0, 1], and D_t(q) the weight of query q in round t, where D_1 are
the weights of the data,

    f_t = argmax over f of sum_q D_t(q) M(f, q)                                                 (2)
    a_t = 1/2 ln(sum_q D_t(q) (1 + M(f_t, q)) / sum_q D_t(q) (1 - M(f_t, q)))                   (3)
    D_t+1(q) ~ D_1(q) exp(-M(sum_s a_s f_s, q))                                                 (4)

(`xu2007adarank`, Figure 1). A weak ranker that is the best one again and again can block the run.
RankLib's rules avoid this:

- ``weights="running"``: D_t+1(q) ~ D_t(q) exp(-a_t M(sum_s a_s f_s, q)) replaces (4)          (5)
- ``enqueue``: a weak ranker that is chosen twice in a row is removed and set aside. If no weak
  ranker is left, or the metric falls, the last one set aside returns, and the run continues.
- ``tol``: a round that lowers the mean metric by this much or more is undone and ends the run
  (with ``enqueue``, it ends the search without the next weak ranker that was set aside).
- ``max_selections``: a weak ranker that was chosen this many times in a row after the first,
  without any change of the mean metric, rests until the mean changes or another one is chosen.

The metric of each feature on each query never changes and is computed once. Tied scores count as
the mean over their orders for every convention, so that the order of the rows does not reach the
model. A metric that falls as rankings improve is negated, and a metric above 1, such as dcg, is
divided by its largest value over features. Queries that the metric leaves out have weight 0.
Metrics have no weights of documents, and neither has this model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parallel import ordered_sum, thread_count
from rankwright.core.parameters import Count, Missing
from rankwright.core.products import times_vector
from rankwright.core.types import F64, AnyArray, Metric, Round
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.ranked import Ranked
from rankwright.models.linear import FittedLinear, LinearRounds, deviations
from rankwright.models.missing import column_of
from rankwright.models.schema import ModelPart

_SURE = 1.0 - 1e-6  # a weak ranker without error gets a step of 7.25 instead of infinity
_STATE = (
    ArraySpec("round", "int64", (1,), low=1),
    ArraySpec("by_query", "float64", ("sums", "queries")),
)

Weights = dict[int, float]
"""Weights of a sum by the number of the weak ranker."""


@dataclass(frozen=True, slots=True, repr=False)
class FeatureSum(ModelPart):
    """A weight for each feature, from rounds that choose one feature each to improve a metric.

    Parameters
    ----------
    n_rounds : int
        Maximum number of rounds. RankLib's parameters are 500, "running", True, 0.002, 5.
    weights : "total" or "running"
        Weight queries by the present ranking, as published, or by all rankings so far.
    enqueue : bool
        Set a feature aside that is chosen twice in a row.
    tol : float or None
        End the run after a loss of mean metric in one round; None never does.
    max_selections : int or None
        Number of times in a row that a feature may be chosen without effect; None sets no limit.
    falling : bool
        Also use features with falling values, for which less is better; RankLib does not.
    scale : bool
        Add features in units of their standard deviation.
    missing : None, "mean" or "zero"
        Replacement for missing values; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RankBoost(model=rw.models.FeatureSum(n_rounds=100))
    RankBoost(model=FeatureSum(n_rounds=100))
    """

    fitted_class: ClassVar[Any] = FittedLinear
    optimises_metric: ClassVar[bool] = True
    resumable: ClassVar[bool] = True

    n_rounds: Count = 500
    weights: Literal["total", "running"] = "total"
    enqueue: bool = False
    tol: float | None = None
    max_selections: int | None = None
    falling: bool = False
    scale: bool = False
    missing: Missing = None

    def rounds(
        self,
        metric: Metric,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedLinear | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round after each feature that is added to the sum of ``start``.

        The metric of each sum on each query determines the run and is its state.
        """
        n_jobs = thread_count(n_jobs)
        run = LinearRounds(in_content_order(data, n_jobs=n_jobs)[1], valid, self.missing, n_jobs)
        features = WeakRankers(metric, run.data, self.falling, self.scale, n_jobs)
        first = {} if start is None else features.weights_of(start)
        by_query: list[F64] = []
        last_resumed, resumed = 0, iter(np.empty((0, data.n_queries)))
        if resume is not None:
            check_arrays(_STATE, resume, "the checkpoint", queries=data.n_queries)
            last_resumed, resumed = int(resume["round"][0]), iter(resume["by_query"])

        def metric_of(weights: Weights) -> F64:
            values = next(resumed, None)
            by_query.append(features.metric_of(weights) if values is None else values)
            return by_query[-1]

        def round_of(number: int, weights: Weights, mean: float) -> Round:
            model = FittedLinear(features.coef(weights), run.fill)
            if number <= last_resumed:
                return run.replayed_round(number, model)
            return run.round(
                number, features.loss(mean), model, partial(_state, number, by_query[:])
            )

        number = 0
        choices = self.choose(features.values, metric_of, features.weight, first)
        for number, choice in enumerate(choices, start=1):
            yield round_of(number, choice.weights, choice.mean)
        if not number:  # no feature improves the metric
            total = ordered_sum(features.weight) or 1.0
            mean = ordered_sum(features.weight * metric_of(first)) / total
            yield round_of(1, first, mean)

    def choose(
        self,
        values: F64,
        metric_of: Callable[[Weights], F64],
        weight: F64,
        start: Weights | None = None,
    ) -> Iterator[Choice]:
        """Yield the weak ranker of each round.

        Parameters
        ----------
        values : (F, Q) array
            Metric of each weak ranker on each query.
        metric_of : callable
            Returns the metric of a sum of weak rankers on each query.
        weight : (Q,) array
            Weights of the queries.
        start : dict
            Weights of the sum to continue from.
        """
        initial = weight / (ordered_sum(weight) or 1.0)
        steps: list[tuple[int, float]] = list((start or {}).items())
        D, mean = initial, -math.inf
        if start:
            by_query = metric_of(start)
            D, mean = self._reweighted(D, initial, by_query, 1.0), ordered_sum(initial * by_query)
        before = D, mean
        enqueues, last, repeats, n_rounds = self.enqueue, -1, 0, 0
        aside: list[int] = []
        resting: set[int] = set()
        while True:
            while n_rounds < self.n_rounds:
                f, gain = _best(values, D, [*aside, *resting])
                if f is None or self._repeats_forever(steps, f):
                    break
                n_rounds += 1
                if enqueues:
                    if f == last:
                        aside.append(f)
                        steps.pop()
                        D, mean = before
                        continue
                    last, before = f, (D, mean)
                step = 0.5 * math.log((1.0 + gain) / (1.0 - gain))  # (3)
                weights = _summed([*steps, (f, step)])
                by_query = metric_of(weights)
                new_mean = ordered_sum(initial * by_query)
                if not enqueues:
                    repeats = repeats + 1 if (f, new_mean) == (last, mean) else 0
                    last = f
                    if not repeats:
                        resting.clear()
                    elif repeats == self.max_selections:
                        repeats = 0
                        resting.add(f)
                if self.tol is not None and new_mean + self.tol <= mean:
                    n_rounds -= 1
                    break
                steps.append((f, step))
                D, mean = self._reweighted(D, initial, by_query, step), new_mean
                yield Choice(f, step, weights, mean, D)
            if not aside:
                return
            aside.pop()  # the last weak ranker that was set aside returns
            enqueues = False

    def _reweighted(self, D: F64, initial: F64, by_query: F64, step: float) -> F64:
        """Return the weights of the queries for the next round."""
        after = initial * np.exp(-by_query)  # (4)
        if self.weights == "running":
            after = D * np.exp(-step * by_query)  # (5)
        total = ordered_sum(after)
        return after / total if total > 0.0 else after

    def _repeats_forever(self, steps: list[tuple[int, float]], f: int) -> bool:
        """Return whether (4) would choose ``f``, the only weak ranker so far, in every round."""
        is_only = bool(steps) and all(number == f for number, _ in steps)
        return is_only and self.weights == "total" and not self.enqueue


@dataclass(frozen=True, slots=True)
class Choice:
    """A round: f_t, a_t, the weights of the sum, its mean metric, and the weights D_t+1."""

    chosen: int
    step: float
    weights: Weights
    mean: float
    queries: F64


class WeakRankers:
    """The features of a data set: number f by rising values, number d + f by falling values.

    Attributes
    ----------
    weight : (Q,) array
        Weights of the queries, 0 for queries that the metric leaves out.
    values : (F, Q) array
        Metric of each weak ranker on each query, in [0, 1].
    """

    def __init__(
        self,
        metric: Any,
        data: RankingData,
        falling: bool,
        scale: bool,
        n_jobs: int | None,
    ) -> None:
        X = data.X
        self._metric, self._X, self._n_jobs = metric.for_selection(), X, n_jobs
        self._judged = metric.judge(data, n_jobs=n_jobs)
        self._deviation = deviations(X, np.ones(data.n_documents), scale=scale)
        columns: Any = sparse.csc_array(X) if sparse.issparse(X) else X
        by_query = np.array(
            [
                self._by_query(sign * column_of(columns, f))
                for sign in ((1.0, -1.0) if falling else (1.0,))
                for f in range(X.shape[1])
            ]
        )
        left_out = np.isnan(by_query).any(axis=0)
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        self.weight: F64 = np.where(left_out, 0.0, weight)
        counted = by_query[:, ~left_out]
        self._falls = not metric.maximise
        self._top = float(counted.max(initial=0.0)) if self._falls else 0.0
        self._unit = max(1.0, float(np.abs(self._top - counted).max(initial=0.0)))
        self.values: F64 = self._in_unit(by_query)

    def metric_of(self, weights: Weights) -> F64:
        """Return the metric of a sum of weak rankers on each query, in [0, 1]."""
        scores = times_vector(self._X, self.coef(weights), n_jobs=self._n_jobs)
        return self._in_unit(self._by_query(scores))

    def coef(self, weights: Weights) -> F64:
        """Return the weights of the features."""
        d = len(self._deviation)
        coef = np.zeros(d)
        for f, weight in weights.items():
            coef[f % d] += weight if f < d else -weight
        return coef / self._deviation

    def weights_of(self, fitted: FittedLinear) -> Weights:
        """Return the weights of a fitted model by the number of the weak ranker."""
        coef = fitted.coef * self._deviation
        return {int(f): float(coef[f]) for f in np.flatnonzero(coef)}

    def loss(self, mean: float) -> float:
        """Return the mean metric in the scale of its values, negated if higher is better."""
        return self._top - mean * self._unit if self._falls else -(mean * self._unit)

    def _by_query(self, scores: F64) -> F64:
        ranked = Ranked(self._judged, scores, self._metric.setting("ties"))
        values: F64 = self._metric.values(ranked)
        return values

    def _in_unit(self, by_query: F64) -> F64:
        """Return the metric in [0, 1], more being better; 0 for queries that it leaves out."""
        rising = self._top - by_query if self._falls else by_query
        return np.nan_to_num(rising / self._unit)


def _best(values: F64, D: F64, excluded: list[int]) -> tuple[int | None, float]:
    """Return the weak ranker of (2) and its weighted mean; None if all are excluded."""
    means = times_vector(values, D)
    means[excluded] = -np.inf
    if not len(means) or means.max() == -np.inf:
        return None, 0.0
    f = int(np.argmax(means))
    return f, float(min(max(means[f], -_SURE), _SURE))


def _summed(steps: list[tuple[int, float]]) -> Weights:
    weights: Weights = {}
    for f, step in steps:
        weights[f] = weights.get(f, 0.0) + step
    return weights


def _state(number: int, by_query: list[F64]) -> dict[str, AnyArray]:
    """Return the metric of each sum on each query up to round ``number``."""
    return {"round": np.array([number]), "by_query": np.array(by_query)}
