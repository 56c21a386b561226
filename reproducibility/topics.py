"""A ranking function for each topic, hundreds of them over one shared sparse matrix.

Each topic is a query over all documents of a collection: those on the topic are to rank above all
others. A method offers weights for a topic, one after the other along a path of penalties or steps.
The place on the path is chosen once for all topics, by the mean of average precision over the
validation documents, because many topics have only a few of these. So are the settings of a row.

A document of grade 1 or more counts as relevant in all measures, so that methods that learn from
counts of clicks are judged as the others are.

The methods use solvers of the package below its rankers, since these share the columns of the
matrix among topics.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import rankwright as rw
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.pair_sampler import PairSampler
from rankwright.metrics import Evaluator
from rankwright.models.perceptron import pamir_steps
from rankwright.solvers.coordinate import Coordinate, falling_l1
from reproducibility.protocol import Column, Run, per_query, progress
from reproducibility.reuters import Part, TopicFold

Method = Callable[[rw.RankingData, int], Iterator[Any]]
"""Yields weights for the topic of a number, the sparsest first."""


def domination_path(
    X: Any, *, steps: int, least: float, l2: float = 0.0, n_jobs: int | None = None, **loss: Any
) -> Method:
    """Domination loss by coordinate descent, along a path of l1 penalties.

    The path goes from the least penalty that makes all weights 0 down to ``least`` times it.
    """
    columns = sparse.csc_array(X)
    domination = rw.loss("domination", **loss)

    def path(data: rw.RankingData, topic: int) -> Iterator[Any]:  # noqa: ARG001
        problem: Any = domination.bind(data, n_jobs=1).by_column(columns, n_jobs=n_jobs)
        penalties = falling_l1(problem, steps=steps, least=least)
        top = penalties[0] / least ** (1.0 / steps)
        problem.l2 = l2
        solver = Coordinate(tol=1e-3 * top, max_iter=500)
        w = None
        for problem.l1 in penalties:  # from the largest down
            w = solver.solve(problem, w).w
            yield w

    return path


def pamir(X: Any, *, C: Sequence[float], n_steps: int, seed: int, rounds: int = 5) -> Method:
    """Passive-aggressive steps on sampled pairs (PAMIR): the mean weights after each round."""

    def path(data: rw.RankingData, topic: int) -> Iterator[Any]:
        pairs = PairSampler.of(data, order_weight(data), document_weight(data))
        for cap in C:
            w, late, size = np.zeros(X.shape[1]), np.zeros(X.shape[1]), n_steps // rounds
            for end in range(size, rounds * size + 1, size):
                cells, sampled = (X.indptr, X.indices, X.data), seed + (topic << 32)
                pamir_steps(end - size, end, sampled, pairs, *cells, data.y, float(cap), w, late)
                yield w - late / end

    return path


def ridge(X: Any, *, loss: str, l2: Sequence[float], **parameters: Any) -> Method:
    """Any smooth loss with falling l2 penalties; no weight is 0."""

    def path(data: rw.RankingData, topic: int) -> Iterator[Any]:  # noqa: ARG001
        documents = rw.RankingData(X, data.y, data.indptr, data.qid)
        fitted = None
        for penalty in l2:
            model = rw.models.Linear(l2=penalty, scale=False, tol=1e-3, max_iter=100)
            ranker = rw.ranker(
                "ranker", loss=rw.loss(loss, **parameters), model=model, solver="tron", n_jobs=1
            )
            fitted = ranker.fit(documents, init_model=fitted)
            yield fitted.coef_

    return path


class TopicModels(NamedTuple):
    """The weights of all topics, topics x features, and the mean average precision on valid."""

    coef: Any
    valid: float

    @property
    def zero_weights(self) -> Any:
        """The percentage of weights that are exactly 0, for each topic."""
        return 100.0 * (1.0 - np.diff(self.coef.indptr) / self.coef.shape[1])


def fit_topics(fold: TopicFold, method: Method, run: Run, *, min_zero: float = 0.0) -> TopicModels:
    """Fit every topic and choose one place on the path for all of them.

    Only places where at least the share ``min_zero`` of the weights is 0, on average, are eligible.
    """
    valid = Part(fold.valid.X, relevant(fold.valid.grades))
    metric = rw.metric("map").for_selection()

    def fit(topic: int) -> list[tuple[Any, float]]:
        judged = Evaluator(one_query(valid.grades, topic), metric, n_jobs=1)
        return [
            (sparse.csr_array(w[None]), judged.means(valid.X @ w)[repr(metric)])
            for w in method(one_query(fold.train.grades, topic), topic)
        ]

    with ThreadPoolExecutor(run.n_jobs or os.cpu_count()) as threads:
        paths = list(threads.map(fit, range(len(fold.topics))))
    best, place = -np.inf, 0
    for k, offers in enumerate(zip(*paths, strict=True)):
        mean = float(np.mean([value for _, value in offers]))
        zero = np.mean([1.0 - coef.nnz / coef.shape[1] for coef, _ in offers])
        if zero >= min_zero and mean > best:
            best, place = mean, k
    return TopicModels(sparse.csr_array(sparse.vstack([path[place][0] for path in paths])), best)


def choose_settings(
    name: str, fold: TopicFold, methods: Sequence[Method], run: Run, *, min_zero: float = 0.0
) -> TopicModels:
    """Return the models of the setting that is best on valid, the first of equals."""
    best: TopicModels | None = None
    for method in methods:
        models = fit_topics(fold, method, run, min_zero=min_zero)
        progress(f"{name}: map {models.valid:.4f} on valid")
        if best is None or models.valid > best.valid:
            best = models
    assert best is not None
    return best


def evaluate_topics(
    models: TopicModels, test: Part, columns: Sequence[Column]
) -> dict[str, list[Any]]:
    """Return the value of each topic on the test documents, by column."""
    grades = relevant(test.grades)
    n, topics = grades.shape
    y, indptr = grades.toarray().T.ravel(), n * np.arange(topics + 1)
    data = rw.RankingData(np.empty((len(y), 0)), y, indptr, np.arange(topics))
    scores = (test.X @ models.coef.T).toarray().T.ravel()
    return {
        column.name: [
            models.zero_weights
            if column.metric == "zero_weights"
            else per_query(column, data, scores)
        ]
        for column in columns
    }


def one_query(grades: Any, topic: int) -> rw.RankingData:
    """Return all documents as one query, without features."""
    y = grades[:, [topic]].toarray().ravel()
    return rw.RankingData(np.empty((len(y), 0)), y, np.array([0, len(y)]), np.array([topic]))


def relevant(grades: Any) -> Any:
    """Return 1 for each document of grade 1 or more, 0 for the others."""
    return sparse.csc_array((grades >= 1.0).astype(np.float64))
