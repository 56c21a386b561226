"""Metrics over the test queries of all folds, in which each query counts once.

Values of a query that several folds test, as in repeated cross-validation, are averaged: they
belong to the same documents and are not independent.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import quoted
from rankwright.metrics.base import Metric
from rankwright.metrics.evaluation import Evaluator, mean_over_queries


@dataclass(frozen=True)
class TestQueries:
    """The distinct queries of several test sets, in the order of their first appearance.

    Attributes
    ----------
    qid : (Q,) array of object
    fold : (Q,) int array
        The first fold that tests the query, from 0.
    number : (n,) int array
        Of the queries of all test sets, one set after the other: the query's place in ``qid``.
    weight : (Q,) array or None
        Mean weight of the query; None if no test set has weights.
    """

    __test__ = False  # for pytest: not a class of tests

    qid: AnyArray
    fold: I64
    number: I64
    weight: F64 | None

    @classmethod
    def of(cls, tests: Sequence[RankingData]) -> TestQueries:
        """Return the queries of these test sets; queries with the same id are the same query."""
        numbers: dict[object, int] = {}
        number = [
            numbers.setdefault(qid, len(numbers)) for test in tests for qid in test.qid.tolist()
        ]
        qid = np.empty(len(numbers), object)
        qid[:] = list(numbers)
        sets = np.repeat(np.arange(len(tests)), [test.n_queries for test in tests])
        fold = np.full(len(numbers), len(tests), np.int64)
        np.minimum.at(fold, number, sets)
        queries = cls(qid, fold, np.array(number, np.int64), None)
        if all(test.query_weight is None for test in tests):
            return queries
        weights = np.concatenate([_weights(test) for test in tests])
        return cls(qid, fold, queries.number, queries.average(weights))

    @property
    def repeated(self) -> bool:
        """Whether any query is tested more than once."""
        return len(self.number) > len(self.qid)

    def average_weights(self, weights: Sequence[tuple[F64, F64]]) -> tuple[F64, F64]:
        """Return the mean of each query's weights of `Evaluator.weights`."""
        in_mean, in_sum = map(np.concatenate, zip(*weights, strict=True))
        return self.average(in_mean), self.average(in_sum)

    def average(self, values: F64) -> F64:
        """Return the mean of each query's values, over those that are not NaN."""
        if not self.repeated:
            return values[np.argsort(self.number)]
        known = ~np.isnan(values)
        sums, counts = (
            np.bincount(self.number, column, len(self.qid))
            for column in (np.where(known, values, 0.0), known)
        )
        means: F64 = np.full(len(sums), np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means


@dataclass(frozen=True)
class Pooled:
    """Values of metrics for each test query.

    Attributes
    ----------
    queries : TestQueries
    per_query : dict
        ``per_query[label][metric]``: an array with a value for each query.
    weights : dict of pairs of arrays
        By metric, the weights of the queries; see `Evaluator.weights`.
    metrics : dict of Metric
    """

    queries: TestQueries
    per_query: dict[str, dict[str, F64]]
    weights: dict[str, tuple[F64, F64]]
    metrics: Mapping[str, Metric]

    def mean(self, label: str, metric: str) -> float:
        """Return the mean over the queries, as `rankwright.evaluate` computes it."""
        values = self.per_query[label][metric]
        return mean_over_queries(self.metrics[metric], values, *self.weights[metric])


def pooled_values(
    tests: Sequence[RankingData],
    scores: Mapping[str, Sequence[F64]],
    metrics: Mapping[str, Metric],
    n_jobs: int | None = None,
) -> Pooled:
    """Return the metrics of the scores of each label on the test sets."""
    queries = TestQueries.of(tests)
    values: dict[str, dict[str, list[F64]]] = {
        label: {metric: [] for metric in metrics} for label in scores
    }
    weights: dict[str, list[tuple[F64, F64]]] = {metric: [] for metric in metrics}
    for number, test in enumerate(tests):
        evaluator = Evaluator(test, metrics, n_jobs=n_jobs)
        for metric, of_tests in weights.items():
            of_tests.append(evaluator.weights(metric))
        for label, of_label in scores.items():
            found = evaluator(of_label[number]).per_query
            for metric, parts in values[label].items():
                parts.append(found[metric])
    return Pooled(
        queries,
        {
            label: {
                metric: queries.average(np.concatenate(parts)) for metric, parts in columns.items()
            }
            for label, columns in values.items()
        },
        {metric: queries.average_weights(of_tests) for metric, of_tests in weights.items()},
        metrics,
    )


def warn_of_reused_ids(tests: Sequence[RankingData]) -> None:
    """Warn if queries of several test sets have the same id, but different documents."""
    first: dict[object, tuple[int, F64]] = {}
    for fold, test in enumerate(tests, 1):
        for number, qid in enumerate(test.qid.tolist()):
            grades = np.sort(test.y[test.indptr[number] : test.indptr[number + 1]])
            before, known = first.setdefault(qid, (fold, grades))
            if not np.array_equal(known, grades):
                warnings.warn(
                    f"query {quoted(qid)} has other documents or grades in fold {fold} than in "
                    f"fold {before}; queries with the same id count as one query, and their values "
                    "are averaged. Give different queries different ids.",
                    stacklevel=3,
                )
                return


def _weights(test: RankingData) -> F64:
    return np.ones(test.n_queries) if test.query_weight is None else test.query_weight
