"""Metric a ranking: ``evaluate(y, scores, "ndcg@1:5,map", qid=qid)``.

Scores are sorted once for all metrics that order ties alike; what the grades alone say (the best
possible list, the number of relevant documents) is worked out once per data set by an `Evaluator`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np

from rankwright.core.dtypes import refuse_masked
from rankwright.core.parallel import ordered_sum
from rankwright.core.types import F64, AnyArray
from rankwright.data.frames import (
    USUAL_NAMES,
    Columns,
    columns_of_frame,
    frame_columns,
    frame_of_columns,
    match_columns,
    refuse_other_index,
)
from rankwright.data.ranking_data import RankingData, refuse_second_columns
from rankwright.data.trec import judge_run
from rankwright.errors import DataError, UsageError, brief, counted
from rankwright.metrics.base import (
    AnyMetrics,
    Metric,
    checked_scores,
    named_metrics,
)
from rankwright.metrics.convention import Convention
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
        One score per row, higher is better; of `RankingData` in its own order of rows. A torch
        tensor on a GPU is copied to the CPU. A document with the score ``-inf`` is ranked last and
        counts as retrieved; if ``-inf`` marks documents that were not retrieved, use
        ``Evaluator(data, metrics, retrieved=scores > -np.inf)(scores)`` or `evaluate_run`. For this
        and all below, the name of a column if ``data`` is a frame.
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

    Examples
    --------
    >>> from rankwright.data import RankingData
    >>> from rankwright.metrics import Evaluator
    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> evaluate = Evaluator(data, "mrr")
    >>> evaluate([0.1, 0.9])["mrr"], evaluate([0.9, 0.1])["mrr"]
    (1.0, 0.5)
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
        self._rows: dict[str, Any] = {"retrieved": retrieved, "judged": judged}
        self.convention = Convention.named(convention)
        self.metrics = named_metrics(metrics, convention=self.convention)
        self._n_jobs = n_jobs
        # What does not depend on the scores is computed once: curves have many points.
        self._judged: dict[Any, Judged] = {}
        self._judged_for = {name: self.judge(metric) for name, metric in self.metrics.items()}
        self._ties = {
            name: str(metric.setting("ties")).replace("mean", "file")
            for name, metric in self.metrics.items()
        }
        self._weights: dict[str, tuple[F64, F64]] = {}

    def __call__(self, scores: Any) -> Evaluation:
        """Return the metrics of these scores."""
        s = checked_scores(scores, self.data)
        rankings: dict[Any, Ranked] = {}
        per_query = self._per_query(s, rankings)
        means = {name: self._mean(name, values) for name, values in per_query.items()}
        of_grades = [ranked for ranked in rankings.values() if ranked.judged.keeps_grades]
        if of_grades:
            ranked = of_grades[0]
        else:
            ranked = Ranked(Judged(self.data, **self._rows, n_jobs=self._n_jobs), s, "file")
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

    def judge(self, metric: Metric) -> Judged:
        """Return the grades as a metric uses them."""
        options = metric.judged_options()
        key = tuple(options.values())
        if key not in self._judged:
            self._judged[key] = Judged(self.data, **options, **self._rows, n_jobs=self._n_jobs)
        return self._judged[key]

    def tie_intervals(self, s: F64) -> dict[str, TieInterval]:
        """Return each metric's mean for the worst, the average and the best order of ties."""
        worst, mean, best = (
            self._per_query(s, {}, ties, mean=mean)
            for ties, mean in (("worst", False), ("file", True), ("best", False))
        )
        return {
            name: TieInterval(*(self._mean(name, values[name]) for values in (worst, mean, best)))
            for name in self.metrics
        }

    def _per_query(
        self,
        s: F64,
        rankings: dict[Any, Ranked],
        ties: str | None = None,
        *,
        mean: bool | None = None,
    ) -> dict[str, F64]:
        """Return the values of each query by metric; metrics share the ``rankings`` of documents.

        ``ties`` and ``mean`` replace the convention's rule for equal scores.
        """
        values = {}
        for name, metric in self.metrics.items():
            judged, rule = self._judged_for[name], ties or self._ties[name]
            if (judged, rule) not in rankings:
                rankings[judged, rule] = Ranked(judged, s, rule, strict=mean is False)
            values[name] = metric.values(rankings[judged, rule], mean=mean)
        return values

    def query_weight(self) -> F64:
        """Return the weight of each query, 1 where none was given."""
        weight = self.data.query_weight
        return np.ones(self.data.n_queries) if weight is None else weight

    def counted_weight(self, name: str) -> F64:
        """Return the weight that the value of each query has in the sum of metric ``name``."""
        metric, weight = self.metrics[name], self.query_weight()
        if metric.key == "ndcg" and metric.convention.empty_unweighted:
            nothing = metric.nothing_to_find(self._judged_for[name])
            return np.where(nothing, 1.0, weight)
        return weight

    def _mean(self, name: str, values: F64) -> float:
        if name not in self._weights:
            self._weights[name] = self.query_weight(), self.counted_weight(name)
        return mean_over_queries(values, *self._weights[name])


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

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import RankingData
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0], qid=["a", "a", "b"])
    >>> found = rw.evaluate(data, data.X.ravel(), "ndcg@10,map")
    >>> found["ndcg@10"], found.per_query["map"], found.empty_queries
    (0.5, array([1., 0.]), 1)
    """

    means: dict[str, float]
    per_query: dict[str, F64]
    convention: Convention
    qid: AnyArray = field(compare=False)
    n_queries: int
    empty_queries: int
    tie_queries: int
    _evaluator: Evaluator | None = field(compare=False)  # None if data are in partitions
    _scores: F64 = field(compare=False)
    left_out: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.means[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    @property
    def counts(self) -> dict[str, int]:
        """The number of queries that each mean is over: those with a value of the metric."""
        return {name: int((~np.isnan(values)).sum()) for name, values in self.per_query.items()}

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
        if self._evaluator is None:
            raise UsageError("tie intervals are computed in one process; use rankwright.evaluate.")
        return self._evaluator.tie_intervals(self._scores)

    def __repr__(self) -> str:
        width = max(map(len, self.means))
        lines = [
            f"  {name:<{width}}  {mean:.4f}{over_fewer(self.counts[name], self.n_queries)}"
            for name, mean in self.means.items()
        ]
        about = (
            f"convention {self.convention.name}, {counted(self.n_queries, 'query')}, "
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


def over_fewer(count: int, n_queries: int) -> str:
    """Return the words behind a mean that is not over all queries."""
    return "" if count == n_queries else f"  over {counted(count, 'query')}"


# --- what evaluate accepts -------------------------------------------------------------------
#
# Grades and scores in arrays, columns of a frame, or RankingData.


_USE = "evaluate(y, scores, metrics, qid=qid)"


def evaluated_data(
    data: Any, scores: Any, y: Any, columns: Mapping[str, Any]
) -> tuple[RankingData, F64]:
    """Return grades as ranking data, and the scores in the order of its rows.

    Parameters
    ----------
    data, scores, y
        As for `rankwright.evaluate`.
    columns
        Its other arguments on rows and queries, None where not given.
    """
    _refuse_ranker(data, scores)
    if isinstance(data, tuple) and any(map(_has_parts, data)):
        data, columns = _grades_of_tuple(data, columns)
    if isinstance(data, RankingData):
        refuse_second_columns(y=y, **columns)
        return data, checked_scores(scores, data)
    names = frame_columns(data)
    if names is not None:
        column = columns_of_frame(data)
        if y is None:
            raise UsageError(_grades_of_frame(names))
        refuse_other_index(data, "frame", scores=scores, y=y, **columns)
        grades, values = _column(column, y, "y"), _column(column, scores, "scores")
        taken = {name: _column(column, given, name) for name, given in columns.items()}
    else:
        if y is not None:
            raise UsageError(
                f"grades are given twice, as the first argument and as y=...; write {_USE}."
            )
        for name, given in {"scores": scores, **columns}.items():
            if isinstance(given, str):
                raise UsageError(
                    f"{name}={brief(given)} names a column, but the first argument is not a frame; "
                    f"give {name} as an array with a value for each row."
                )
        refuse_other_index(data, "y", scores=scores, **columns)
        grades, values, taken = _grades(data), scores, dict(columns)
    return _grouped(grades, values, taken)


def _grouped(y: AnyArray, scores: Any, columns: dict[str, Any]) -> tuple[RankingData, F64]:
    n = len(y)
    if n == 0:
        raise DataError("there is no row to evaluate.")
    if columns["qid"] is None and columns["group_sizes"] is None:
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=...",
            stacklevel=4,
        )
        columns["group_sizes"] = [n]
    data = RankingData.from_arrays(np.zeros((n, 1), np.float32), y, **columns)
    return data, checked_scores(scores, data, caller_order=True)


def _refuse_ranker(data: Any, scores: Any) -> None:
    """Refuse a ranker in the place of grades or scores."""
    for place, given in (("first argument", data), ("scores argument", scores)):
        if callable(getattr(given, "predict", None)):
            raise UsageError(
                f"the {place} is a {type(given).__name__}; give what it predicts: evaluate(y, "
                "ranker.predict(X), metrics, qid=qid)."
            )


def _has_parts(part: Any) -> bool:
    """Whether a part of a tuple has parts itself, so that the tuple is not one of grades."""
    return not isinstance(part, str | bytes) and hasattr(part, "__len__")


def _grades_of_tuple(
    given: tuple[Any, ...], columns: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Return the grades of (X, y, qid), as ``eval_set`` has it, and the columns with its qid."""
    if len(given) != 3:
        raise UsageError(
            f"the first argument is a tuple of {len(given)} parts; give the grades alone, with the "
            f"query of each row as qid, {_USE}, or (X, y, qid)."
        )
    for name in ("qid", "group_sizes"):
        if columns[name] is not None:
            raise UsageError(f"the first argument (X, y, qid) has the queries; omit {name}=....")
    _, y, qid = given
    return _grades(y), {**columns, "qid": qid}


def _grades(y: Any) -> AnyArray:
    """Return grades as a one-dimensional array, or say what they are instead."""
    if isinstance(y, str | PathLike):
        raise UsageError(f"the first argument is a text ({y}); read a file with rankwright.load.")
    if y is None:
        raise UsageError(f"the grades are None; write {_USE}.")
    refuse_masked(y, "y")
    try:
        array = np.asarray(y)
    except ValueError:  # lists of different lengths
        raise DataError(f"the grades are lists of different lengths; write {_USE}.") from None
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim == 0:
        raise UsageError(f"the grades are {type(y).__name__}, where an array is expected: {_USE}.")
    if array.ndim != 1:
        raise DataError(
            f"the grades have the shape {array.shape}, where one for each row is expected; "
            f"put all queries end to end and write {_USE}."
        )
    return array


def _column(column: Columns, given: Any, name: str) -> Any:
    """Return the column of that name, or the array that was given instead."""
    if not isinstance(given, str):
        return given if name != "y" else _grades(given)
    return column(given)


def _grades_of_frame(names: list[str]) -> str:
    example = match_columns(names, {"label": USUAL_NAMES["label"]}).get("label", "grade")
    return (
        f"the column of the grades is not named; write evaluate(frame, 'score', metrics, "
        f"y={example!r}, qid='query')."
    )


# --- run files -------------------------------------------------------------------------------
#
# Evaluate a run: ``evaluate_run(run, qrels, "ndcg@10,map")``, as trec_eval does.
#
# A run lists the documents that a system retrieved, and the judgments (qrels) grade some documents,
# not the same ones. So a metric looks at three kinds of documents:
#
# - retrieved and judged: as in `rankwright.evaluate`;
# - judged but not retrieved: they are in the best possible list of NDCG and in R, the number of
#   relevant documents, and earn nothing;
# - retrieved but not judged, which includes those with a negative judgment: they are not relevant,
#   except that bpref passes over them.
#
# A query counts if it is in the run and has judgments; with ``complete`` (``-c`` of trec_eval)
# every query that has judgments counts, one that the run does not have as having retrieved nothing.


def evaluate_run(
    run: Any,
    qrels: Any,
    metrics: AnyMetrics = "ndcg@10,map",
    *,
    convention: str | Convention = "trec_eval",
    complete: bool = False,
    relevance_level: float | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the mean of each metric of a run over its judged queries, and the values behind it.

    The figures are those of trec_eval. Documents that the run did not retrieve count in the best
    possible list and in the number of relevant documents; queries without judgments do not count,
    and ``left_out`` of the result names them.

    Parameters
    ----------
    run : path, mapping or frame
        A TREC run, lines ``qid Q0 docid rank score tag``; a table in a file (csv, tsv, Parquet,
        Arrow) or a pandas or polars frame or an Arrow table with the columns ``qid``, ``doc_id``
        and ``score``; or a mapping ``{qid: {docid: score}}``. Documents are ranked by their scores
        alone, whatever ranks the run has.
    qrels : path, mapping or frame
        The judgments, lines ``qid iteration docid grade``, or a table or a mapping with grades for
        scores. A document with a negative grade is not judged.
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        As for `evaluate`. What trec_eval calls ndcg_cut_10, map_cut_100, P_5, recall_100, Rprec,
        recip_rank, success_1, set_P, set_recall and set_F is ``ndcg@10``, ``map@100``, ``p@5``,
        ``recall@100``, ``rprec``, ``mrr``, ``hit@1``, ``p``, ``recall`` and ``f1`` here.
    convention : str or Convention
        What metrics mean where their names leave it open; by default as trec_eval computes them.
    complete : bool
        Count every query that has judgments, as ``trec_eval -c``. An empty run then gives 0 for
        each judged query, and empty judgments NaN over no query, as in ir_measures.
    relevance_level : float
        Lowest grade that counts as relevant, ``-l`` of trec_eval; by default that of the
        convention, which is 1 for trec_eval. It does not change the gains of NDCG.

    See Also
    --------
    evaluate : where every document has a grade and a score.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 0, "d2": 2, "d7": 1}, "q2": {"d4": 1, "d5": 0}, "q4": {"d1": 1}}
    >>> run = {"q1": {"d1": 3, "d2": 2, "d3": 1}, "q2": {"d4": 2, "d5": 1}, "q3": {"d9": 1}}
    >>> evaluate_run(run, qrels, "ndcg@10,map")
    Evaluation (convention trec_eval, 2 queries, 0 empty, 0 with ties that matter)
      ndcg@10  0.7398
      map      0.6250
      1 left out, as the query has no judgments: q3
      1 left out, as the query is not in the run: q4
    """
    chosen = with_relevance_level(Convention.named(convention), relevance_level)
    for name, metric in named_metrics(metrics, convention=chosen).items():
        if not metric.takes_runs:
            raise UsageError(
                f"{name} compares the scores of all documents, and a run has none for those it did "
                "not retrieve; use evaluate with a score for every document."
            )
    both = judge_run(run, qrels, complete=complete)
    evaluator = Evaluator(
        both.data,
        metrics,
        convention=chosen,
        retrieved=both.retrieved,
        judged=both.judged,
        n_jobs=n_jobs,
    )
    relevant = both.data.y >= chosen.min_grade
    empty = both.data.n_queries - len(np.unique(both.data.query_of_row()[relevant]))
    return replace(evaluator(both.scores), empty_queries=empty, left_out=both.left_out)


def with_relevance_level(convention: Convention, level: float | None) -> Convention:
    """Return the convention with another lowest grade that is relevant; its name says so."""
    if level is None:
        return convention
    if isinstance(level, bool) or not isinstance(level, int | float) or not level > 0:
        raise UsageError(f"relevance_level must be a number above 0, not {level!r}.")
    if level == convention.min_grade:
        return convention
    name = f"{convention.name}(min_grade={level:g})"
    return replace(convention, name=name, min_grade=level)
