"""Weights of several rankers, fitted to out-of-fold scores.

Let z_m be the scores of member m over their usual standard deviation within a query. The weights
are the solution of

    minimise over w >= 0   1/Q sum_q loss_q(sum_m w_m z_m) + k/(2 Q) sum_m (w_m - mean w)^2     (1)

with the loss RankNet's (`rankwright.losses.ranknet`), averaged over the pairs of a query and
therefore convex in w. The second term shrinks the weights towards their mean and does not affect
their sum, which sets the slope of the loss. It counts as much as k queries: with few queries the
weights are nearly equal, with many the data decide. L-BFGS solves (1), which has one variable for
each member.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwright.core.types import F64, I64, BoundLoss
from rankwright.data.query_folds import deal_queries
from rankwright.data.ranking_data import RankingData
from rankwright.losses.ranknet import RankNet
from rankwright.metrics.base import Metric
from rankwright.metrics.evaluation import Evaluator
from rankwright.solvers.lbfgs import LBFGS

LOSS = RankNet(normalize=True)
_FOLDS = 5  # for the evaluation of blends


@dataclass(frozen=True, eq=False)
class Stack:
    """Out-of-fold scores of several members on the same queries.

    Parameters
    ----------
    data : RankingData
        The scored queries.
    scores : (members, repeats, documents) float64
    metric : Metric
        Metric of rankings.
    """

    data: RankingData
    scores: F64
    metric: Metric
    n_jobs: int | None = None

    @cached_property
    def deviations(self) -> F64:
        """Usual standard deviation of the scores of each member; 0 if all scores are equal.

        It is the root of the mean variance within a query over queries and repeats.
        """
        variances = [[within_queries(s, self.data) for s in member] for member in self.scores]
        return np.asarray(np.sqrt(np.mean(variances, axis=1)))

    @cached_property
    def standardised(self) -> F64:
        """The scores over the deviation of their member."""
        divisor = np.where(self.deviations > 0.0, self.deviations, 1.0)
        return self.scores / divisor[:, None, None]

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.data, self.metric, n_jobs=self.n_jobs)

    def per_query(self, weights: F64) -> F64:
        """Return the mean metric of a blend over repeats for each query."""
        values: list[F64] = []
        for scores in np.tensordot(weights, self.standardised, axes=1):
            values += self._evaluator(scores).per_query.values()
        return np.asarray(np.mean(values, axis=0))

    def members_per_query(self) -> F64:
        """Return the metric of each member on each query."""
        return np.array([self.per_query(weights) for weights in np.eye(len(self.scores))])

    def fit_weights(self, pull: float, queries: I64 | None = None) -> F64:
        """Return weights with the sum 1, fitted by (1) to some queries; ``pull`` is k."""
        has_order = self.deviations > 0.0
        if not has_order.any():
            return np.full(len(has_order), 1.0 / len(has_order))
        data, z = self.data, self.standardised[has_order]
        if queries is not None:
            data, z = data.select(queries), z[..., data.rows_of(queries)]
        problem = WeightsProblem(z, LOSS.bind(data, n_jobs=self.n_jobs), _total(data), pull)
        start = np.full(problem.size, 1.0 / problem.size)
        solution = LBFGS(nonnegative=True).solve(problem, start).w
        weights = np.zeros(len(has_order))
        weights[has_order] = solution if solution.any() else 1.0
        return np.asarray(weights / weights.sum())

    def loss(self, weights: F64) -> float:
        """Return the mean loss of a blend."""
        bound = LOSS.bind(self.data, n_jobs=self.n_jobs)
        blends = np.tensordot(weights, self.standardised, axes=1)
        return sum(bound.value(scores) for scores in blends) / (len(blends) * _total(self.data))

    def cross_fitted(self, pull: float, seed: int) -> F64:
        """Return the metric of a blend on each query, with weights fitted to other queries."""
        values = np.empty(self.data.n_queries)
        for test in deal_queries(self.data, min(_FOLDS, self.data.n_queries), seed=seed):
            train = np.setdiff1d(np.arange(self.data.n_queries), test)
            values[test] = self.per_query(self.fit_weights(pull, train))[test]
        return values


class WeightsProblem:
    """Problem (1) for solvers."""

    def __init__(self, z: F64, loss: BoundLoss, total: float, pull: float) -> None:
        self.size, self._repeats, n = z.shape
        self._z, self._loss, self._total, self._pull = z, loss, total, pull
        self._gradient = np.empty(n)

    def value(self, w: F64) -> float:
        """Return the objective at ``w``."""
        return self.grad(w, np.empty(self.size))

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient at ``w`` to ``out`` and return the objective."""
        difference = w - w.mean()
        value = 0.5 * self._pull * float(difference @ difference)
        out[:] = self._pull * difference
        for repeat in range(self._repeats):
            z = self._z[:, repeat]
            value += self._loss.grad(w @ z, self._gradient) / self._repeats
            out += z @ self._gradient / self._repeats
        out /= self._total
        return value / self._total


def clearly_better(first: F64, second: F64, errors: float) -> bool:
    """Return whether the mean of ``first`` is higher by more than this many standard errors.

    The maximum of several estimates is biased upwards, so a lead of 0 proves nothing.
    """
    lead = (first - second)[~np.isnan(first - second)]
    if len(lead) < 2:
        return False
    return bool(lead.mean() > errors * lead.std(ddof=1) / np.sqrt(len(lead)))


def within_queries(scores: F64, data: RankingData) -> float:
    """Return the mean variance of the scores within a query."""
    weight = np.ones(len(scores)) if data.sample_weight is None else data.sample_weight
    query = data.query_of_row()
    mass = np.maximum(np.bincount(query, weight, data.n_queries), 1e-300)
    mean = np.bincount(query, weight * scores, data.n_queries) / mass
    variance = np.bincount(query, weight * (scores - mean[query]) ** 2, data.n_queries) / mass
    query_weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    has_pairs = data.sizes > 1
    total = float(query_weight[has_pairs].sum())
    return float(query_weight[has_pairs] @ variance[has_pairs]) / total if total > 0.0 else 0.0


def _total(data: RankingData) -> float:
    """Return the total weight of the queries."""
    return float(data.n_queries if data.query_weight is None else data.query_weight.sum())
