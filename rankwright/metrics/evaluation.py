"""Metric a ranking: ``evaluate(y, scores, "ndcg@1:5,map", qid=qid)``.

Scores are sorted once for all metrics that order ties alike; what the grades alone say (the best
possible list, the number of relevant documents) is worked out once per data set by an `Evaluator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from rankwright.core.parallel import ordered_sum
from rankwright.core.types import F64, AnyArray
from rankwright.data.frames import frame_of_columns
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import Metric, checked_scores
from rankwright.metrics.convention import Convention
from rankwright.metrics.inputs import evaluated_data
from rankwright.metrics.names import AnyMetrics, named_metrics
from rankwright.metrics.ranked import Judged, Ranked

_MOST_QUERIES = 5  # that a remark names


def evaluate(
    data: Any,
    scores: Any,
    metrics: AnyMetrics = "ndcg@10,map",
    *,
    y: Any = None,
    qid: Any = None,
    group_sizes: Any = None,
    query_weight: Any = None,
    doc_id: Any = None,
    group: Any = None,
    convention: str | Convention = "standard",
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the mean of each metric over queries, and the values behind it.

    Grades and scores are lists, NumPy arrays, Series or Arrow arrays, with rows in any order; or
    columns of a frame; or belong to `RankingData`::

        evaluate(y, scores, "ndcg@10,map", qid=qid)
        evaluate(frame, "score", "ndcg@10,map", y="grade", qid="query")
        evaluate(data, ranker.predict(data), "ndcg@10,map")
        evaluate((X, y, qid), ranker.predict(X), "ndcg@10,map")

    Without ``qid`` or ``group_sizes`` all rows are taken as one query, with a warning, as in `fit`.

    Parameters
    ----------
    data : array-like (n,), frame, RankingData or (X, y, qid)
        Grades, 0 or more, a higher one is better; or a pandas or polars frame or an Arrow table; or
        a tuple as ``eval_set`` of a ranker takes it.
    scores : array-like (n,)
        One score per row, higher is better; of `RankingData` in its own order of rows. For this and
        all below, the name of a column where ``data`` is a frame.
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        Such as ``"ndcg@1:5,map"``; a function of the scores and grades of one query is a metric too
        (`rankwright.metrics.from_function`).
    y : str or array-like (n,)
        The grades, where ``data`` is a frame.
    qid : array-like (n,)
        Query id of each row: strings, integers or categories, sorted or not.
    group_sizes : array-like (Q,)
        Instead of ``qid``: how many consecutive rows each query has.
    query_weight : array-like
        One weight per query in order of first appearance, or one per row, equal in a query.
    doc_id : array-like (n,)
        Document ids, by which the ``trec_eval`` convention orders equal scores.
    group : array-like (n,)
        Diversity group (host, topic) of each row, for ``max_per_group`` in the name of a metric.
    convention : str or Convention
        What metrics mean where their names leave it open.

    Examples
    --------
    >>> found = evaluate([2, 0, 1, 0], [0.9, 0.1, 0.2, 0.8], "mrr,p@1", qid=["a", "a", "b", "b"])
    >>> found["mrr"], found.per_query["p@1"].tolist()
    (0.75, [1.0, 0.0])
    """
    columns = {
        "qid": qid,
        "group_sizes": group_sizes,
        "query_weight": query_weight,
        "doc_id": doc_id,
        "group": group,
    }
    judged, in_order = evaluated_data(data, scores, y, columns)
    return Evaluator(judged, metrics, convention=convention, n_jobs=n_jobs)(in_order)


class Evaluator:
    """Metrics on one data set, for evaluating many score vectors.

    Parameters are those of `evaluate`, and ``retrieved`` and ``judged`` of
    `rankwright.metrics.ranked.Judged`; call it with scores.
    """

    def __init__(
        self,
        data: RankingData,
        metrics: AnyMetrics,
        *,
        convention: str | Convention = "standard",
        retrieved: AnyArray | None = None,
        judged: AnyArray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.data = data
        self._rows = {"retrieved": retrieved, "judged": judged}
        self.convention = Convention.named(convention)
        self.metrics = named_metrics(metrics, convention=self.convention)
        self._n_jobs = n_jobs
        self._judged: dict[Any, Judged] = {}

    def __call__(self, scores: Any) -> Evaluation:
        """Return the metrics of these scores."""
        s = checked_scores(scores, self.data)
        shared: dict[Any, Ranked] = {}
        per_query = self._per_query(s, shared)
        means = {name: self._mean(name, values) for name, values in per_query.items()}
        plain = [key for key in shared if key[2] is None and key[3] is None]  # grades as they are
        ranked = (
            shared[plain[0]] if plain else Ranked(self._judge(False, None, None, False), s, "file")
        )
        return Evaluation(
            means=means,
            per_query=per_query,
            convention=self.convention,
            qid=self.data.qid,
            n_queries=self.data.n_queries,
            empty_queries=int((ranked.judged.top <= 0).sum()),
            tie_queries=ranked.tied_queries(),
            _evaluator=self,
            _scores=s.copy(),  # the caller may go on to change its own
        )

    def means(self, scores: Any) -> dict[str, float]:
        """Return the means alone, which takes less time: for curves of many points."""
        per_query = self._per_query(checked_scores(scores, self.data), {})
        return {name: self._mean(name, values) for name, values in per_query.items()}

    def tie_intervals(self, s: F64) -> dict[str, TieInterval]:
        """Return each metric's mean for the worst, the average and the best order of ties."""
        shared: dict[str, dict[Any, Ranked]] = {"worst": {}, "file": {}, "best": {}}
        found = {}
        for name, metric in self.metrics.items():
            of_ties = {}
            for ties, mean in (("worst", False), ("file", True), ("best", False)):
                ranked = self._ranked(metric, s, shared[ties], ties=ties, strict=not mean)
                of_ties[ties] = self._mean(name, metric.values(ranked, mean=mean))
            found[name] = TieInterval(of_ties["worst"], of_ties["file"], of_ties["best"])
        return found

    def _per_query(self, s: F64, shared: dict[Any, Ranked]) -> dict[str, F64]:
        return {
            name: metric.values(self._ranked(metric, s, shared))
            for name, metric in self.metrics.items()
        }

    def _ranked(
        self,
        metric: Metric,
        s: F64,
        shared: dict[Any, Ranked],
        *,
        ties: str | None = None,
        strict: bool = False,
    ) -> Ranked:
        ties = ties or str(metric.setting("ties")).replace("mean", "file")
        key = (ties, *self._needs(metric))
        if key not in shared:
            shared[key] = Ranked(self._judge(*self._needs(metric)), s, ties, strict=strict)
        return shared[key]

    @staticmethod
    def _needs(metric: Metric) -> tuple[bool, int | None, tuple[float, ...] | None, bool]:
        """Return what the grades and scores are to be like for a metric."""
        convention = metric.convention
        single = convention.score_precision == "float32"
        return convention.integer_grades, metric.max_per_group, metric.gains_by_grade, single

    def _judge(
        self,
        integer_grades: bool,
        limit: int | None,
        gains: tuple[float, ...] | None,
        float32_scores: bool,
    ) -> Judged:
        key = (integer_grades, limit, gains, float32_scores)
        if key not in self._judged:
            self._judged[key] = Judged(
                self.data,
                integer_grades=integer_grades,
                max_per_group=limit,
                gains=gains,
                float32_scores=float32_scores,
                **self._rows,
                n_jobs=self._n_jobs,
            )
        return self._judged[key]

    def query_weight(self) -> F64:
        """Return the weight of each query, 1 where none was given."""
        weight = self.data.query_weight
        return np.ones(self.data.n_queries) if weight is None else weight

    def counted_weight(self, name: str) -> F64:
        """Return the weight that the value of each query has in the sum of metric ``name``."""
        metric, weight = self.metrics[name], self.query_weight()
        if metric.key == "ndcg" and metric.convention.empty_unweighted:
            judged = self._judge(*self._needs(metric))
            return np.where(metric.nothing_to_find(judged), 1.0, weight)
        return weight

    def _mean(self, name: str, values: F64) -> float:
        return mean_over_queries(values, self.query_weight(), self.counted_weight(name))


def mean_over_queries(values: F64, weight: F64, counted: F64) -> float:
    """Return the weighted mean over the queries that are not left out (NaN).

    ``counted`` is the weight of each value in the sum, ``weight`` that in the divisor.
    """
    kept = ~np.isnan(values)
    total = ordered_sum(weight[kept])
    return ordered_sum(counted[kept] * values[kept]) / total if total else float("nan")


class TieInterval(NamedTuple):
    """A metric's mean over queries for three ways to order tied documents."""

    worst: float
    mean: float
    best: float


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, float]):
    """Means by metric, under the names that the caller gave.

    Attributes
    ----------
    per_query : dict of (Q,) arrays
        Value of each query; NaN where it is left out of the mean.
    convention : Convention
    qid : (Q,) array
        The query ids, in the order of ``per_query``: that of first appearance.
    n_queries : int
    empty_queries : int
        Queries in which every document has grade 0; of a run, those without a relevant document.
    tie_queries : int
        Queries in which documents of different grade have equal scores, so that the convention's
        rule for ties has a say.
    left_out : dict
        Of a run, the queries that do not count, each with the reason.
    """

    means: dict[str, float]
    per_query: dict[str, F64]
    convention: Convention
    qid: AnyArray = field(compare=False)
    n_queries: int
    empty_queries: int
    tie_queries: int
    _evaluator: Evaluator = field(compare=False)
    _scores: F64 = field(compare=False)
    left_out: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.means[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each query: its ``qid``, and a column for each metric.

        A query that is left out of a mean is NaN there.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame_of_columns({"qid": self.qid, **self.per_query}, backend)

    def tie_intervals(self) -> dict[str, TieInterval]:
        """Return each metric's mean for the worst, the average and the best order of ties.

        The average is exact, over all orders; under ``max_per_group`` it is that of 100 sampled
        orders.
        """
        return self._evaluator.tie_intervals(self._scores)

    def __repr__(self) -> str:
        width = max(map(len, self.means))
        lines = [f"  {name:<{width}}  {mean:.4f}" for name, mean in self.means.items()]
        about = (
            f"convention {self.convention.name}, {self.n_queries} queries, "
            f"{self.empty_queries} empty, {self.tie_queries} with ties that matter"
        )
        return "\n".join([f"Evaluation ({about})", *lines, *map("  {}".format, self.remarks())])

    def remarks(self) -> list[str]:
        """Return a sentence for each reason why queries of a run do not count."""
        by_reason: dict[str, list[str]] = {}
        for query, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(query)
        return [
            f"{len(queries)} left out, as the query {reason}: {', '.join(queries[:_MOST_QUERIES])}"
            f"{', ...' if len(queries) > _MOST_QUERIES else ''}"
            for reason, queries in by_reason.items()
        ]
