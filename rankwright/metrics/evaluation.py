"""Evaluate rankings: ``evaluate(y, scores, "ndcg@1:5,map", qid=qid)``.

An `Evaluator` sorts the scores once for all metrics with the same order of ties. Everything that
depends only on the grades (the best possible list, the number of relevant documents) is computed
once per data set.
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
    frame_columns,
    frame_of_columns,
    match_columns,
    refuse_other_index,
)
from rankwright.data.judgments import BySubtopic, read_subtopics
from rankwright.data.ranking_data import RankingData, refuse_second_columns
from rankwright.data.trec import judge_run
from rankwright.errors import DataError, UsageError, brief, counted
from rankwright.metrics.base import AnyMetrics, Metric, checked_scores, named_metrics
from rankwright.metrics.convention import Convention
from rankwright.metrics.ranked import Judged, Ranked

_MOST_QUERIES = 5  # in a remark
_LEAST_IN_GEOMETRIC_MEAN = 1e-5  # as in trec_eval


def evaluate(
    data: Any,
    scores: Any,
    metrics: AnyMetrics = "ndcg@10,map",
    *,
    qid: Any = None,
    group_sizes: Any = None,
    query_weight: Any = None,
    sample_weight: Any = None,
    doc_id: Any = None,
    group: Any = None,
    convention: str | Convention = "standard",
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the mean of each metric over queries, and the values of each query.

    Grades and scores are lists, NumPy arrays, Series or Arrow arrays, with rows in any order, or
    belong to `RankingData`::

        evaluate(y, scores, "ndcg@10,map", qid=qid)
        evaluate(frame["grade"], frame["score"], "ndcg@10,map", qid=frame["query"])
        evaluate(data, ranker.predict(data), "ndcg@10,map")

    Without ``qid`` or ``group_sizes`` all rows are one query, with a warning, as in `fit`.

    Parameters
    ----------
    data : array-like (n,) or RankingData
        Grades, 0 or more, a higher one is better.
    scores : array-like (n,)
        One score per row, higher is better; for `RankingData` in the order of its rows. A torch
        tensor on a GPU is copied to the CPU. A document with the score ``-inf`` is ranked last and
        counts as retrieved; if ``-inf`` marks documents that were not retrieved, use
        ``Evaluator(data, metrics, retrieved=scores > -np.inf)(scores)`` or `evaluate_run`.
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        For example ``"ndcg@1:5,map"``. A function of the scores and grades of one query is a metric
        too (`rankwright.metrics.from_function`).
    qid : array-like (n,)
        Query id of each row: strings, integers or categories, sorted or not.
    group_sizes : array-like (Q,)
        Number of consecutive rows of each query, instead of ``qid``.
    query_weight : array-like
        One weight per query in order of first appearance, or one per row, equal in a query.
    sample_weight : array-like (n,)
        Weight of each document, used under the ``rax`` and ``tf_ranking`` conventions.
    doc_id : array-like (n,)
        Document ids, which order equal scores under the ``trec_eval`` convention.
    group : array-like (n,) or (n, topics)
        Diversity group (host, topic) of each row, for ``max_per_group`` in the name of a metric.
    convention : str or Convention
        Values of the parameters that the names of the metrics leave open.

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
        "sample_weight": sample_weight,
        "doc_id": doc_id,
        "group": group,
    }
    graded, in_order = _evaluated_data(data, scores, columns)
    return Evaluator(graded, metrics, convention=convention, n_jobs=n_jobs)(in_order)


class Evaluator:
    """Metrics of one data set, for many score vectors.

    The parameters are as for `evaluate` and, ``retrieved`` and ``judged``, for
    `rankwright.metrics.ranked.Judged`. Call the object with scores.

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
        self._judged: dict[Any, Judged] = {}  # by the options of `Judged`
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
        ranked = next((r for r in rankings.values() if r.judged.keeps_grades), None)
        if ranked is None:
            ranked = Ranked(Judged(self.data, **self._rows, n_jobs=self._n_jobs), s, "file")
        return Evaluation(
            means={name: self._mean(name, values) for name, values in per_query.items()},
            per_query=per_query,
            convention=self.convention,
            qid=self.data.qid,
            n_queries=self.data.n_queries,
            empty_queries=int((ranked.judged.top <= 0).sum()),
            tie_queries=ranked.tied_queries(),
            _evaluator=self,
            _scores=s.copy(),  # the caller may change its array
        )

    def means(self, scores: Any) -> dict[str, float]:
        """Return only the means, which takes less time, for example for learning curves."""
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
        """Return the values of each query by metric, and add the rankings to ``rankings``.

        ``ties`` and ``mean`` replace the convention's rule for equal scores.
        """
        values = {}
        for name, metric in self.metrics.items():
            judged, rule = self._judged_for[name], ties or self._ties[name]
            if (judged, rule) not in rankings:
                rankings[judged, rule] = Ranked(judged, s, rule, strict=mean is False)
            values[name] = metric.values(rankings[judged, rule], mean=mean)
        return values

    def weights(self, name: str) -> tuple[F64, F64]:
        """Return the weight of each query in the divisor and in the sum of metric ``name``."""
        if name not in self._weights:
            metric, judged = self.metrics[name], self._judged_for[name]
            weight = metric.query_weight(judged)
            in_sum = weight
            if metric.key == "ndcg" and metric.convention.empty_unweighted:
                in_sum = np.where(metric.nothing_to_find(judged), 1.0, weight)
            self._weights[name] = weight, in_sum
        return self._weights[name]

    def _mean(self, name: str, values: F64) -> float:
        return mean_over_queries(self.metrics[name], values, *self.weights(name))


def mean_over_queries(metric: Metric, values: F64, weight: F64, weight_in_sum: F64) -> float:
    """Return the weighted mean over the queries whose value is not NaN.

    Metrics whose ``summary`` is not a mean return their sum or geometric mean.

    Parameters
    ----------
    metric
    values
        The value of each query.
    weight, weight_in_sum
        The weight of each query in the divisor and in the sum; see `Evaluator.weights`. NaN means
        the mean of the weights above 0.
    """
    if np.isnan(weight).any():
        usual = weight[weight > 0].mean() if (weight > 0).any() else 1.0
        weight = weight_in_sum = np.where(np.isnan(weight), usual, weight)
    counts = ~np.isnan(values)
    total = ordered_sum(weight[counts])
    if not total:
        return float("nan")
    values, weight_in_sum = values[counts], weight_in_sum[counts]
    if metric.summary == "geometric mean":
        logs = np.log(np.maximum(values, _LEAST_IN_GEOMETRIC_MEAN))
        return float(np.exp(ordered_sum(weight_in_sum * logs) / total))
    return ordered_sum(weight_in_sum * values) / (1.0 if metric.summary == "sum" else total)


class TieInterval(NamedTuple):
    """The mean of a metric over queries for the worst, the average and the best order of ties."""

    worst: float
    mean: float
    best: float


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, float]):
    """Means over queries by metric, under the names that the caller used.

    Attributes
    ----------
    per_query : dict of (Q,) arrays
        Value of each query; NaN if the query is omitted from the mean.
    convention : Convention
    qid : (Q,) array
        The query ids in the order of ``per_query``: by first appearance.
    n_queries : int
    empty_queries : int
        Number of queries with only documents of grade 0; of a run, the number of queries without
        a relevant document.
    tie_queries : int
        Number of queries with equal scores of documents of different grade, so that the value
        depends on the convention's rule for ties.
    left_out : dict
        The queries of a run that are not evaluated, each with the reason.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import RankingData
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0], qid=["a", "a", "b"])
    >>> result = rw.evaluate(data, data.X.ravel(), "ndcg@10,map")
    >>> result["ndcg@10"], result.per_query["map"], result.empty_queries
    (0.5, array([1., 0.]), 1)
    """

    means: dict[str, float]
    per_query: dict[str, F64]
    convention: Convention
    qid: AnyArray = field(compare=False)
    n_queries: int
    empty_queries: int
    tie_queries: int
    _evaluator: Evaluator | None = field(compare=False)  # None if the data has partitions
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
        """The number of queries in each mean."""
        return {name: int((~np.isnan(values)).sum()) for name, values in self.per_query.items()}

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each query: its ``qid``, and a column for each metric.

        The value of a query that is omitted from the mean is NaN.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame_of_columns({"qid": self.qid, **self.per_query}, backend)

    def tie_intervals(self) -> dict[str, TieInterval]:
        """Return each metric's mean for the worst, the average and the best order of ties.

        The average is over all orders. Only for ``max_per_group`` and ``iprec`` it is over 100
        sampled orders.
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
        """Return a sentence for each reason why queries of a run are not evaluated."""
        by_reason: dict[str, list[str]] = {}
        for query, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(query)
        return [
            f"{len(queries)} left out, as the query {reason}: {', '.join(queries[:_MOST_QUERIES])}"
            f"{', ...' if len(queries) > _MOST_QUERIES else ''}"
            for reason, queries in by_reason.items()
        ]


def over_fewer(count: int, n_queries: int) -> str:
    """Return the text after a mean over ``count`` queries; empty if these are all queries."""
    return "" if count == n_queries else f"  over {counted(count, 'query')}"


# --- what evaluate accepts -------------------------------------------------------------------


_USE = "evaluate(y, scores, metrics, qid=qid)"


def _evaluated_data(data: Any, scores: Any, columns: Mapping[str, Any]) -> tuple[RankingData, F64]:
    """Return the grades as ranking data, and the scores in the order of its rows.

    ``columns`` has the other arguments on rows and queries by name; None if not passed.
    """
    for place, argument in (("first argument", data), ("scores argument", scores)):
        if callable(getattr(argument, "predict", None)):
            raise UsageError(
                f"the {place} is a {type(argument).__name__}; pass its predictions: evaluate(y, "
                "ranker.predict(X), metrics, qid=qid)."
            )
    if isinstance(data, RankingData):
        refuse_second_columns(**columns)
        return data, checked_scores(scores, data)
    names = frame_columns(data)
    if names is not None:
        raise UsageError(f"the first argument is a frame; write {_call_with_columns(names)}.")
    for name, values in {"scores": scores, **columns}.items():
        if isinstance(values, str):
            raise UsageError(
                f"{name} is a text, {brief(values)}; pass an array with a value for each row."
            )
    refuse_other_index(data, "y", scores=scores, **columns)
    y = _grades(data)
    if len(y) == 0:
        raise DataError("there are no rows to evaluate.")
    if columns["qid"] is None and columns["group_sizes"] is None:
        warnings.warn(
            "no qid was given: all rows are taken as one query; pass qid=... or group_sizes=...",
            stacklevel=3,
        )
        columns = {**columns, "group_sizes": [len(y)]}
    graded = RankingData.from_arrays(np.zeros((len(y), 1), np.float32), y, **columns)
    return graded, checked_scores(scores, graded, caller_order=True)


def _call_with_columns(names: list[str]) -> str:
    """Return the call of `evaluate` with the columns of a frame."""
    usual = {"y": USUAL_NAMES["label"], "scores": ("score",), "qid": USUAL_NAMES["qid"]}
    columns = {"y": "grade", "scores": "score", "qid": "query"} | match_columns(names, usual)
    y, scores, qid = (f"frame[{columns[role]!r}]" for role in usual)
    return f"evaluate({y}, {scores}, metrics, qid={qid})"


def _grades(y: Any) -> AnyArray:
    """Return grades as a one-dimensional array, or raise an error that describes them."""
    if isinstance(y, str | PathLike):
        raise UsageError(f"the first argument is a text ({y}); read a file with rankwright.load.")
    if y is None:
        raise UsageError(f"the grades are None; write {_USE}.")
    if isinstance(y, tuple) and any(np.ndim(part) for part in y):
        raise UsageError(f"the first argument is a tuple of {len(y)} arrays; write {_USE}.")
    refuse_masked(y, "y")
    try:
        array = np.asarray(y)
    except ValueError:  # lists of different lengths
        raise DataError(f"the grades are lists of different lengths; write {_USE}.") from None
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim == 0:
        raise UsageError(f"the grades are {type(y).__name__}, not an array; write {_USE}.")
    if array.ndim != 1:
        raise DataError(
            f"the grades have the shape {array.shape}, not one value for each row; put all queries "
            f"end to end and write {_USE}."
        )
    return array


# --- run files -------------------------------------------------------------------------------


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
    """Return the mean of each metric of a run over its judged queries, and the values per query.

    The results are the same as of trec_eval. A document of a query can be

    - retrieved and judged: ranked with its grade;
    - judged, but not retrieved: part of the best possible list of NDCG and of the number of
      relevant documents;
    - retrieved, but not judged, or judged with a negative grade: not relevant, and ignored by
      bpref.

    Queries without judgments are omitted; ``left_out`` of the result has their ids.

    Parameters
    ----------
    run : path, mapping or frame
        A TREC run, lines ``qid Q0 docid rank score tag``; a table in a file (csv, tsv, Parquet,
        Arrow) or a pandas or polars frame or an Arrow table with the columns ``qid``, ``doc_id``
        and ``score``; or a mapping ``{qid: {docid: score}}``. Documents are ranked by score; the
        rank of the run is ignored.
    qrels : path, mapping or frame
        The judgments, lines ``qid iteration docid grade``, or a table or a mapping with grades
        instead of scores. A document with a negative grade counts as not judged. If a metric of
        subtopics is among the metrics, lines ``qid subtopic docid grade`` or a mapping
        ``{qid: {docid: {subtopic: grade}}}``; the grade of a document is then the highest one of
        its subtopics.
    metrics : str, Metric, callable, an iterable of them, or a mapping from names to them
        As for `evaluate`; names of trec_eval and ir_measures, such as ``ndcg_cut_10`` and
        ``nDCG@10``, are accepted.
    convention : str or Convention
        Values of the parameters that the names of the metrics leave open; by default the
        ``trec_eval`` convention.
    complete : bool
        Include every query that has judgments, like ``trec_eval -c``. An empty run then gives 0
        for each judged query, and empty judgments give NaN, as in ir_measures.
    relevance_level : float
        Lowest grade of a relevant document, ``-l`` of trec_eval; by default that of the
        convention, which is 1 for trec_eval. It does not change the gains of NDCG.

    See Also
    --------
    evaluate : for data with a grade and a score for every document.

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
    used = with_relevance_level(Convention.named(convention), relevance_level)
    named = named_metrics(metrics, convention=used)
    for name, metric in named.items():
        if not metric.takes_runs:
            raise UsageError(
                f"{name} compares the scores of all documents, but a run only has scores "
                "of retrieved documents; use evaluate with a score for every document."
            )
    subtopics = None
    if any(metric.takes_subtopics for metric in named.values()):
        subtopics = read_subtopics(qrels)
        qrels = {
            query: {doc: max(grades.values()) for doc, grades in documents.items()}
            for query, documents in subtopics.items()
        }
    graded = judge_run(run, qrels, complete=complete)
    if subtopics is not None:
        group = _subtopic_matrix(graded.data, subtopics, used.min_grade)
        graded = replace(graded, data=replace(graded.data, group=group))
    evaluator = Evaluator(
        graded.data,
        named,
        convention=used,
        retrieved=graded.retrieved,
        judged=graded.judged,
        n_jobs=n_jobs,
    )
    relevant = graded.data.y >= used.min_grade
    n_queries = graded.data.n_queries
    empty = n_queries - len(np.unique(graded.data.query_of_row()[relevant]))
    return replace(evaluator(graded.scores), empty_queries=empty, left_out=graded.left_out)


def _subtopic_matrix(data: RankingData, subtopics: BySubtopic, min_grade: float) -> F64:
    """Return a matrix of shape (n, topics): 1 if a row is relevant to the subtopic, else 0.

    The subtopics of each query are numbered in the order of their first appearance.
    """
    numbers: dict[tuple[str, str], int] = {}
    counts: dict[str, int] = {}
    cells = []
    assert data.doc_id is not None, "a run has document ids"
    rows = zip(data.qid[data.query_of_row()].tolist(), data.doc_id.tolist(), strict=True)
    for row, (query, doc) in enumerate(rows):
        for subtopic, grade in subtopics[query].get(doc, {}).items():
            if (query, subtopic) not in numbers:
                numbers[query, subtopic] = counts.get(query, 0)
                counts[query] = counts.get(query, 0) + 1
            if grade >= min_grade:
                cells.append((row, numbers[query, subtopic]))
    matrix = np.zeros((data.n_documents, max(counts.values(), default=1)))
    matrix[tuple(np.array(cells, np.int64).reshape(-1, 2).T)] = 1.0
    return matrix


def with_relevance_level(convention: Convention, level: float | None) -> Convention:
    """Return the convention with another lowest relevant grade, which is added to its name."""
    if level is None:
        return convention
    if isinstance(level, bool) or not isinstance(level, int | float) or not level > 0:
        raise UsageError(f"relevance_level must be a number above 0, not {level!r}.")
    if level == convention.min_grade:
        return convention
    name = f"{convention.name}(min_grade={level:g})"
    return replace(convention, name=name, min_grade=level)
