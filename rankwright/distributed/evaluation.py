"""Evaluate and rank data in partitions.

Workers compute the value of each query. The driver computes the means over all queries in the order
of the partitions, so that the means have the same bits as with `rankwright.evaluate`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64, FittedModel
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking, check_limits
from rankwright.data.streams import open_target
from rankwright.distributed.partitions import Partitions
from rankwright.errors import DataError
from rankwright.metrics.base import AnyMetrics, Metric, named_metrics
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import Evaluation, Evaluator, mean_over_queries
from rankwright.rankers.base import Ranker


@dataclass(frozen=True)
class _PartValues:
    """The values of the queries of a partition by metric, and their `Evaluator.weights`."""

    values: dict[str, F64]
    weights: dict[str, tuple[F64, F64]]
    empty: int
    tied: int


def evaluate(
    ranker_or_scores: Any,
    data: Any,
    metrics: AnyMetrics,
    *,
    convention: str | Convention = "standard",
    client: Any = None,
    n_parts: int | None = None,
) -> Evaluation:
    """Return the mean of each metric over the queries of all partitions.

    Parameters
    ----------
    ranker_or_scores
        A fitted ranker, or a score for each document in the order of `predict`.
    data
        Any source of `Partitions.of`.
    metrics, convention
        As for `rankwright.evaluate`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from distributed import Client
    >>> from rankwright import distributed
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> ranker = rw.MEMR().fit(data)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     results = distributed.evaluate(ranker, data, "ndcg@10", n_parts=4)
    >>> here = rw.evaluate(data, ranker.predict(data), "ndcg@10")
    >>> abs(results["ndcg@10"] - here["ndcg@10"]) < 1e-12
    True
    """
    parts = Partitions.of(data, client=client, n_parts=n_parts)
    if isinstance(ranker_or_scores, Ranker):
        results = parts.map(_evaluate_ranker, _on_one_thread(ranker_or_scores), metrics, convention)
    else:
        scores = _split(ranker_or_scores, parts)
        rows = [(*row, metrics, convention) for row in zip(parts.parts, scores, strict=True)]
        results = parts.map_rows(_evaluate_scores, rows)
    return _joined(results, parts, metrics, Convention.named(convention))


def predict(ranker: Ranker, data: Any, *, client: Any = None, n_parts: int | None = None) -> F64:
    """Return a score for each document, in the order of the partitions.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwright as rw
    >>> from distributed import Client
    >>> from rankwright import distributed
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> ranker = rw.MEMR().fit(data)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     scores = distributed.predict(ranker, data, n_parts=4)
    >>> np.array_equal(scores, ranker.predict(data))
    True
    """
    parts = Partitions.of(data, client=client, n_parts=n_parts)
    return np.concatenate(parts.map(_scores, _on_one_thread(ranker)))


def rank(
    ranker: Ranker,
    data: Any,
    *,
    per_group: int | None = None,
    top: int | None = None,
    client: Any = None,
    n_parts: int | None = None,
) -> Ranking:
    """Return the documents of each query, best first, in the order of the partitions.

    Rows are numbered over all partitions. ``per_group`` and ``top`` are as for `Ranker.rank`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from distributed import Client
    >>> from rankwright import distributed
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> ranker = rw.MEMR().fit(data)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     ranking = distributed.rank(ranker, data, top=3, n_parts=4)
    >>> len(ranking)
    20
    """
    check_limits(top=top, per_group=per_group)
    parts = Partitions.of(data, client=client, n_parts=n_parts)
    results = parts.map(_ranked, _on_one_thread(ranker), per_group, top)
    counts = [int(sizes.sum()) for sizes in parts.sizes]
    return Ranking.joined(results, (np.cumsum(counts) - counts).tolist())


def write_run(
    ranker: Ranker,
    data: Any,
    target: str | Path,
    *,
    per_group: int | None = None,
    top: int | None = None,
    tag: str = "rankwright",
    client: Any = None,
    n_parts: int | None = None,
) -> None:
    """Write the documents of each query, best first, as a TREC run; see `Ranking.to_trec`.

    Workers rank and format the partitions; the driver fetches them one after the other.

    Examples
    --------
    >>> import rankwright as rw
    >>> from distributed import Client
    >>> from rankwright import distributed
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> ranker = rw.MEMR().fit(data)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     distributed.write_run(ranker, data, "run.txt", top=3, n_parts=4)
    """
    parts = Partitions.of(data, client=client, n_parts=n_parts)
    futures = parts.call(_as_run, _on_one_thread(ranker), per_group, top, tag)
    first = parts.backend.results(futures[:1])  # raises before any output
    with open_target(target) as stream:
        stream.write(first[0])
        for text in futures[1:]:
            stream.write(parts.backend.results([text])[0])


class PartitionedEvaluator:
    """Means of a metric for a sequence of models, as for a learning curve.

    Parameters
    ----------
    parts : Partitions
    metric : Metric
    """

    def __init__(self, parts: Partitions, metric: Metric) -> None:
        self._parts, self._metric = parts, metric

    def means(self, model: FittedModel) -> dict[str, float]:
        """Return the mean of the metric for the scores of a fitted model."""
        results = self._parts.map(_evaluate_model, model, self._metric)
        return _means(results, named_metrics(self._metric))


# --- on the workers --------------------------------------------------------------------------


def _evaluate_ranker(
    part: RankingData, ranker: Ranker, metrics: Any, convention: Any
) -> _PartValues:
    return _evaluate_scores(part, ranker.predict(part), metrics, convention)


def _evaluate_model(part: RankingData, model: FittedModel, metric: Metric) -> _PartValues:
    return _evaluate_scores(part, model.scores(part.X, n_jobs=1), metric, metric.convention)


def _evaluate_scores(part: RankingData, scores: F64, metrics: Any, convention: Any) -> _PartValues:
    evaluator = Evaluator(part, metrics, convention=convention, n_jobs=1)
    evaluation = evaluator(scores)
    return _PartValues(
        evaluation.per_query,
        {name: evaluator.weights(name) for name in evaluation.per_query},
        evaluation.empty_queries,
        evaluation.tie_queries,
    )


def _scores(part: RankingData, ranker: Ranker) -> F64:
    return ranker.predict(part)


def _ranked(part: RankingData, ranker: Ranker, per_group: int | None, top: int | None) -> Ranking:
    in_own_rows = replace(part, row=None)
    scores = ranker.predict(part)
    return Ranking.of(in_own_rows, scores, per_group=per_group, top=top, n_jobs=1)


def _as_run(
    part: RankingData, ranker: Ranker, per_group: int | None, top: int | None, tag: str
) -> bytes:
    ranking = Ranking.of(part, ranker.predict(part), per_group=per_group, top=top)
    return "".join(ranking.run_texts(tag=tag)).encode()


# --- on the driver ---------------------------------------------------------------------------


def _on_one_thread(ranker: Ranker) -> Ranker:
    """Return a copy for workers: a partition is the work of one thread."""
    single = copy(ranker)
    single.n_jobs = 1
    return single


def _split(scores: Any, parts: Partitions) -> list[F64]:
    whole = np.asarray(scores, np.float64)
    if whole.shape != (parts.n_documents,):
        raise DataError(
            f"there are {parts.n_documents} documents, but scores of shape {whole.shape}."
        )
    ends = np.cumsum([int(sizes.sum()) for sizes in parts.sizes])
    return list(np.split(whole, ends[:-1]))


def _means(results: list[_PartValues], metrics: dict[str, Metric]) -> dict[str, float]:
    means = {}
    for name, metric in metrics.items():
        values = np.concatenate([part.values[name] for part in results])
        weights = zip(*(part.weights[name] for part in results), strict=True)
        means[name] = mean_over_queries(metric, values, *map(np.concatenate, weights))
    return means


def _joined(
    results: list[_PartValues], parts: Partitions, metrics: AnyMetrics, convention: Convention
) -> Evaluation:
    named = named_metrics(metrics, convention=convention)
    return Evaluation(
        means=_means(results, named),
        per_query={name: np.concatenate([part.values[name] for part in results]) for name in named},
        convention=convention,
        qid=np.concatenate(parts.qid),
        n_queries=parts.n_queries,
        empty_queries=sum(part.empty for part in results),
        tie_queries=sum(part.tied for part in results),
        _evaluator=None,
        _scores=np.empty(0),
    )
