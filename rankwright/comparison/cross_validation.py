"""Cross-validation of one ranker by whole queries, without any setting of scikit-learn."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from rankwright.comparison.entries import chooses_columns, features_for, fit_with_queries
from rankwright.comparison.pooled import TestQueries
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.frames import frame_columns, frame_of_columns
from rankwright.data.query_folds import folds_of_queries
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError, counted
from rankwright.metrics.base import AnyMetrics, named_metrics
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import Evaluation, Evaluator, over_fewer
from rankwright.rankers.base import Ranker
from rankwright.rankers.base import ranker as ranker_called
from rankwright.rankers.inputs import ranking_data


def cross_validate(
    ranker: Any,
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group_sizes: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    features: Any = None,
    drop: Any = (),
    cv: Any = 5,
    metrics: AnyMetrics | None = None,
    convention: str | Convention | None = None,
    return_estimator: bool = False,
    random_state: Any = 0,
) -> CrossValidation:
    """Fit and evaluate a ranker on folds of whole queries.

    Each query is tested once, unless the folds of ``cv`` test it several times, as in repeated
    cross-validation: its values are then averaged in ``per_query``.

    Query ids reach ``fit`` by themselves: scikit-learn's metadata routing need not be enabled.

    Parameters
    ----------
    ranker : Ranker, str or scikit-learn estimator
        Not changed: a copy is fitted in each fold. A name stands for that ranker with its defaults.
        Other estimators, such as a pipeline with a ranker at its end, are given ``qid`` if they
        take it. A pipeline is given a frame if ``X`` is one, or is data with feature names.
    X, y, qid, group_sizes, sample_weight, query_weight, features, drop
        The data, as for `Ranker.fit`: arrays, a frame with names of columns, or RankingData.
    cv : int, splitter or iterable of (train, test), default 5
        Number of folds, dealt by `QueryFolds`; a splitter of scikit-learn, which is given the query
        ids as ``groups``; or arrays of the rows of each fold. Folds that cut a query are refused.
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        Such as ``"ndcg@10,map"``; by default the metric that selects the ranker, or ``ndcg@10``.
    convention : str, Convention or None
        What metrics mean where their names leave it open; None is the ranker's own.
    return_estimator : bool, default False
        Keep the fitted rankers.
    random_state : int, Generator, RandomState or None, default 0
        Seed of the folds, where ``cv`` is a number.

    Returns
    -------
    CrossValidation
        Print it, or use ``mean``, ``std``, ``values``, ``per_query`` and ``to_frame()``.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.synthetic("mq2008", queries=30)
    >>> found = rw.cross_validate(rw.RankSVM(), data, cv=3, metrics="ndcg@10,map")
    >>> found.n_folds, sorted(found.mean)
    (3, ['map', 'ndcg@10'])
    """
    made = ranker_called(ranker) if isinstance(ranker, str) else ranker
    for method in ("fit", "predict"):
        if not hasattr(made, method):
            raise UsageError(
                f"cross_validate takes a ranker, its name or a scikit-learn estimator, not "
                f"{type(ranker).__name__}, which has no {method}."
            )
    data = ranking_data(
        X, y, qid, group_sizes, sample_weight, query_weight, features=features, drop=drop
    )
    if metrics is None:
        metrics = made.selection_metric if isinstance(made, Ranker) else "ndcg@10"
    if convention is None:
        convention = getattr(made, "convention", "standard")
    asked = named_metrics(metrics, convention=convention)  # refuses what is wrong before any fit
    scores = np.full(data.n_documents, np.nan)
    folds: list[Fold] = []
    for train, test in folds_of_queries(data, cv, random_state):
        one, held_out = clone(made), data.select(test)
        began = time.perf_counter()
        if isinstance(one, Ranker):
            one.fit(data.select(train))
        else:
            fit_with_queries(one, _features(one, X, data, train), data.select(train))
        fitted = time.perf_counter()
        found = one.predict(held_out if isinstance(one, Ranker) else _features(one, X, data, test))
        predicted = time.perf_counter()
        scores[data.rows_of(test)] = found
        folds.append(
            Fold(
                queries=test,
                evaluation=Evaluator(held_out, asked, convention=convention)(found),
                fit_seconds=fitted - began,
                predict_seconds=predicted - fitted,
                estimator=one if return_estimator else None,
            )
        )
    return CrossValidation(type(made).__name__, tuple(folds), data.in_caller_order(scores))


@dataclass(frozen=True)
class Fold:
    """One fold of a cross-validation.

    Attributes
    ----------
    queries : (q,) int64
        Numbers of the queries that were tested, in order of first appearance in the data.
    evaluation : Evaluation
        The metrics on them, and their value for each query.
    fit_seconds, predict_seconds : float
    estimator : fitted ranker or None
    """

    queries: I64
    evaluation: Evaluation
    fit_seconds: float
    predict_seconds: float
    estimator: Any = field(default=None, repr=False)


@dataclass(frozen=True, repr=False)
class CrossValidation:
    """What `cross_validate` found.

    Attributes
    ----------
    ranker : str
        The class of what was fitted.
    folds : tuple of Fold
        Each fold: its evaluation, times and, where asked for, its fitted ranker.
    scores : (n,) float64
        The score of each document from the last fold that tested it, in the caller's order of rows;
        NaN if none did.
    """

    ranker: str
    folds: tuple[Fold, ...]
    scores: F64

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.folds)

    @property
    def values(self) -> dict[str, F64]:
        """The value of each metric in each fold."""
        names = self.folds[0].evaluation
        return {name: np.array([fold.evaluation[name] for fold in self.folds]) for name in names}

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the folds."""
        return {name: float(values.mean()) for name, values in self.values.items()}

    @property
    def std(self) -> dict[str, float]:
        """The standard deviation of each metric over the folds."""
        return {name: float(values.std()) for name, values in self.values.items()}

    @property
    def qid(self) -> AnyArray:
        """The ids of the queries that were tested, each once, in the order of the data."""
        return self._queries.qid

    @property
    def fold_of_query(self) -> I64:
        """The first fold that tested each query of ``qid``, counted from 1."""
        return self._queries.fold + 1

    @property
    def per_query(self) -> dict[str, F64]:
        """The value of each metric for each query of ``qid``; NaN: left out of the mean.

        The values of a query that several folds tested are averaged: they are not independent, and
        tests and intervals need one value for each query.
        """
        queries = self._queries
        return {
            name: queries.average(
                np.concatenate([fold.evaluation.per_query[name] for fold in self.folds])
            )
            for name in self.folds[0].evaluation
        }

    @property
    def estimators(self) -> tuple[Any, ...]:
        """The fitted rankers, a fold each, where ``return_estimator`` asked for them."""
        if self.folds[0].estimator is None:
            raise UsageError("the fitted rankers were not kept; pass return_estimator=True.")
        return tuple(fold.estimator for fold in self.folds)

    @cached_property
    def _queries(self) -> TestQueries:
        tested = np.concatenate([fold.queries for fold in self.folds])
        _, first, number = np.unique(tested, return_index=True, return_inverse=True)
        fold = np.repeat(np.arange(self.n_folds), [len(fold.queries) for fold in self.folds])
        qid = np.concatenate([fold.evaluation.qid for fold in self.folds])
        return TestQueries(qid[first], fold[first], number, None)

    def to_frame(
        self,
        per: Literal["fold", "query"] = "fold",
        *,
        backend: Literal["pandas", "polars", "pyarrow"] = "pandas",
    ) -> Any:
        """Return a frame with a row for each fold, or for each query.

        Parameters
        ----------
        per : {"fold", "query"}
            With "fold", the columns are ``fold``, ``queries``, each metric, ``fit_seconds`` and
            ``predict_seconds``; with "query", ``qid``, the first ``fold`` that tested it and each
            metric, averaged over the folds that did.
        backend : {"pandas", "polars", "pyarrow"}
        """
        if per == "query":
            columns = {"qid": self.qid, "fold": self.fold_of_query, **self.per_query}
        elif per == "fold":
            columns = {
                "fold": np.arange(1, self.n_folds + 1),
                "queries": np.array([len(fold.queries) for fold in self.folds]),
                **self.values,
                "fit_seconds": np.array([fold.fit_seconds for fold in self.folds]),
                "predict_seconds": np.array([fold.predict_seconds for fold in self.folds]),
            }
        else:
            raise UsageError(f"per must be 'fold' or 'query', not {per!r}.")
        return frame_of_columns(columns, backend)

    def __repr__(self) -> str:
        values, mean, std, per_query = self.values, self.mean, self.std, self.per_query
        width = max(map(len, values))
        lines = [
            f"  {name:<{width}}  {mean[name]:.4f} ± {std[name]:.4f}  "
            f"({', '.join(f'{value:.4f}' for value in values[name])})"
            f"{over_fewer(int((~np.isnan(per_query[name])).sum()), len(self.qid))}"
            for name in values
        ]
        convention = self.folds[0].evaluation.convention.name
        about = f"{self.ranker}, {self.n_folds} folds, {counted(len(self.qid), 'query')}"
        if self._queries.repeated:
            about += " tested in several folds"
        return "\n".join([f"CrossValidation ({about}, convention {convention})", *lines])


def _features(estimator: Any, X: Any, data: RankingData, queries: I64) -> Any:
    """Return the features of some queries: of a frame, its own columns where they are wanted."""
    names = frame_columns(X) or []
    if chooses_columns(estimator) and names and set(data.feature_names or ()) <= set(names):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        if not frame.implementation.is_pyarrow():  # which scikit-learn does not take
            rows = data.rows_of(queries)
            rows = rows if data.row is None else data.row[rows]
            return frame[rows, list(data.feature_names or ())].to_native()
    return features_for(estimator, data.select(queries))
