"""Weights of several rankers, fitted to scores by fits that had not seen the queries.

With z_m the scores of member m over their usual standard deviation within a query, the weights are

    minimise over w >= 0   1/Q sum_q loss_q(sum_m w_m z_m) + k/(2 Q) sum_m (w_m - mean w)^2     (1)

where the loss is RankNet's (`rankwright.losses.ranknet`), the mean over the pairs of a query,
convex in the scores and so in w. The second term pulls the weights together and leaves their sum
free, which sets how steep the loss is; it counts as much as k queries, so that few queries leave a
mean, and many decide. (1) has as many variables as there are members, and L-BFGS solves it.
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
_FOLDS = 5  # of the queries that weights are tried on


@dataclass(frozen=True, eq=False)
class Stack:
    """The out-of-fold scores of several members on the same queries.

    Parameters
    ----------
    data : RankingData
        The queries that were scored.
    scores : (members, repeats, documents) float64
    metric : Metric
        What rankings are valued by.
    """

    data: RankingData
    scores: F64
    metric: Metric
    n_jobs: int | None = None

    @cached_property
    def deviations(self) -> F64:
        """The usual standard deviation of each member's scores within a query; 0: they are equal.

        The root of the mean variance over queries and repeats.
        """
        found = [[within_queries(one, self.data) for one in member] for member in self.scores]
        deviations: F64 = np.sqrt(np.mean(found, axis=1))
        return deviations

    @cached_property
    def standardised(self) -> F64:
        """The scores over the deviation of their member."""
        deviation = np.where(self.deviations > 0.0, self.deviations, 1.0)
        return self.scores / deviation[:, None, None]

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.data, self.metric, n_jobs=self.n_jobs)

    def per_query(self, weights: F64) -> F64:
        """Return the metric of a blend on each query, the mean over repeats."""
        found = []
        for scores in np.tensordot(weights, self.standardised, axes=1):
            (values,) = self._evaluator(scores).per_query.values()
            found.append(values)
        mean: F64 = np.mean(found, axis=0)
        return mean

    def members_per_query(self) -> F64:
        """Return the metric of each member on each query."""
        return np.array([self.per_query(one) for one in np.eye(len(self.scores))])

    def fit_weights(self, pull: float, queries: I64 | None = None) -> F64:
        """Return weights by (1) that add up to 1, fitted to some queries; ``pull`` is k."""
        data = self.data if queries is None else self.data.select(queries)
        useful = self.deviations > 0.0
        if not useful.any():
            return np.full(len(useful), 1.0 / len(useful))
        z = self.standardised[useful]
        if queries is not None:
            z = z[..., self.data.rows_of(queries)]
        problem = WeightsProblem(z, LOSS.bind(data, n_jobs=self.n_jobs), _total(data), pull)
        start = np.full(problem.size, 1.0 / problem.size)
        found = LBFGS(nonnegative=True).solve(problem, start).w
        weights = np.zeros(len(useful))
        weights[useful] = found if found.any() else 1.0
        shares: F64 = weights / weights.sum()
        return shares

    def loss(self, weights: F64) -> float:
        """Return the mean loss of a blend."""
        bound = LOSS.bind(self.data, n_jobs=self.n_jobs)
        blends = np.tensordot(weights, self.standardised, axes=1)
        return sum(bound.value(one) for one in blends) / (len(blends) * _total(self.data))

    def cross_fitted(self, pull: float, seed: int) -> F64:
        """Return the metric of a blend on each query, its weights fitted to the other queries."""
        found = np.empty(self.data.n_queries)
        for test in deal_queries(self.data, min(_FOLDS, self.data.n_queries), seed=seed):
            others = np.setdiff1d(np.arange(self.data.n_queries), test)
            found[test] = self.per_query(self.fit_weights(pull, others))[test]
        return found


class WeightsProblem:
    """(1) as solvers see it."""

    def __init__(self, z: F64, loss: BoundLoss, total: float, pull: float) -> None:
        self.size, self._repeats, n = z.shape
        self._z, self._loss, self._total, self._pull = z, loss, total, pull
        self._gradient = np.empty(n)

    def value(self, w: F64) -> float:
        """Return the objective at ``w``."""
        return self.grad(w, np.empty(self.size))

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient at ``w`` to ``out`` and return the objective."""
        apart = w - w.mean()
        value = 0.5 * self._pull * float(apart @ apart)
        out[:] = self._pull * apart
        for repeat in range(self._repeats):
            z = self._z[:, repeat]
            value += self._loss.grad(w @ z, self._gradient) / self._repeats
            out += z @ self._gradient / self._repeats
        out /= self._total
        return value / self._total


def clearly_better(one: F64, other: F64, errors: float) -> bool:
    """Whether values of queries are higher in the mean, by more than so many standard errors.

    What is compared with others is often the best of several, and looks better than it is.
    """
    lead = (one - other)[~np.isnan(one - other)]
    if len(lead) < 2:
        return False
    return bool(lead.mean() > errors * lead.std(ddof=1) / np.sqrt(len(lead)))


def within_queries(scores: F64, data: RankingData) -> float:
    """Return the mean over queries of the variance of the scores of their documents."""
    weight = np.ones(len(scores)) if data.sample_weight is None else data.sample_weight
    query = data.query_of_row()
    mass = np.maximum(np.bincount(query, weight, data.n_queries), 1e-300)
    mean = np.bincount(query, weight * scores, data.n_queries) / mass
    variance = np.bincount(query, weight * (scores - mean[query]) ** 2, data.n_queries) / mass
    of_query = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    several = data.sizes > 1
    total = float(of_query[several].sum())
    return float(of_query[several] @ variance[several]) / total if total > 0.0 else 0.0


def _total(data: RankingData) -> float:
    """Return the total weight of the queries."""
    return float(data.n_queries if data.query_weight is None else data.query_weight.sum())
