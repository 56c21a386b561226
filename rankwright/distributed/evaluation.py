"""Evaluate and rank data in partitions: what needs the documents is done where they are.

The value of each query comes from its worker, the means are taken here over all queries in the
order of the parts, as `rankwright.evaluate` takes them over one data set: the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking, check_limits, run_texts
from rankwright.data.streams import open_target
from rankwright.distributed.partitions import Partitions, partitions
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import AnyMetrics, Metric
from rankwright.metrics.convention import Convention
from rankwright.metrics.evaluation import Evaluation, Evaluator, mean_over_queries
from rankwright.models.linear import product_with_gaps
from rankwright.rankers.base import Ranker


@dataclass(frozen=True)
class _PartValues:
    """The values of the queries of a part by metric, and their weights."""

    values: dict[str, F64]
    weight: F64
    counted: dict[str, F64]
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
    """Return the mean of each metric over the queries of all parts.

    Parameters
    ----------
    ranker_or_scores
        A fitted ranker, or scores as `predict` gives them: one for each document, in order.
    data
        Anything that `rankwright.distributed.partitions.partitions` takes.
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
    ...     found = distributed.evaluate(ranker, data, "ndcg@10", n_parts=4)
    >>> here = rw.evaluate(data, ranker.predict(data), "ndcg@10")
    >>> abs(found["ndcg@10"] - here["ndcg@10"]) < 1e-12
    True
    """
    parts = partitions(data, client=client, n_parts=n_parts)
    if isinstance(ranker_or_scores, Ranker):
        found = parts.map(_of_ranker, _on_one_thread(ranker_or_scores), metrics, convention)
    else:
        scores = _cut(ranker_or_scores, parts)
        columns = [metrics] * len(parts), [convention] * len(parts)
        found = parts.backend.results(parts.backend.call(_of_scores, parts.parts, scores, *columns))
    return _joined(found, parts, convention)


def predict(ranker: Ranker, data: Any, *, client: Any = None, n_parts: int | None = None) -> F64:
    """Return a score for each document, in the order of the parts.

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
    parts = partitions(data, client=client, n_parts=n_parts)
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
    """Return the documents of each query, best first, in the order of the parts.

    Rows are counted over all parts. ``per_group`` and ``top`` are as for `Ranker.rank`.

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
    parts = partitions(data, client=client, n_parts=n_parts)
    found = parts.map(_ranked, _on_one_thread(ranker), per_group, top)
    counts = [int(sizes.sum()) for sizes in parts.sizes]
    return Ranking.joined(found, (np.cumsum(counts) - counts).tolist())


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
    """Write the documents of each query, best first, as `rankwright.data.rankings.write_run` does.

    Each part is ranked and formatted where it is, and fetched in its turn.

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
    parts = partitions(data, client=client, n_parts=n_parts)
    held = parts.call(_as_run, _on_one_thread(ranker), per_group, top, tag)
    first = parts.backend.results(held[:1])  # an error of all parts comes before any output
    with open_target(target) as stream:
        stream.write(first[0])
        for text in held[1:]:
            stream.write(parts.backend.results([text])[0])


class PartitionedEvaluator:
    """Means of a metric for a sequence of models, such as those of a learning curve.

    Parameters
    ----------
    parts
    metric
    scorer
        Makes scores on a worker, from the part and what `means` is given.
    """

    def __init__(
        self,
        parts: Partitions,
        metric: Metric,
        *,
        scorer: Callable[..., F64],
    ) -> None:
        self._parts, self._metric, self._scorer = parts, metric, scorer

    def means(self, given: Any) -> dict[str, float]:
        """Return the mean of each metric for the scores that ``given`` makes."""
        found = self._parts.map(_of_scorer, self._scorer, given, self._metric)
        return _means(found)


def linear_scores(part: RankingData, weights: tuple[F64, F64 | None]) -> F64:
    """Return X w, given the weights and what stands for missing values."""
    w, fill = weights
    return product_with_gaps(part.X, w, fill, "linear", n_jobs=1)


# --- on the workers --------------------------------------------------------------------------


def _of_ranker(part: RankingData, ranker: Ranker, metrics: Any, convention: Any) -> _PartValues:
    return _of_scores(part, _scores(part, ranker), metrics, convention)


def _of_scorer(
    part: RankingData, scorer: Callable[..., F64], given: Any, metric: Metric
) -> _PartValues:
    return _of_scores(part, scorer(part, given), metric, metric.convention)


def _of_scores(part: RankingData, scores: F64, metrics: Any, convention: Any) -> _PartValues:
    evaluator = Evaluator(part, metrics, convention=convention, n_jobs=1)
    found = evaluator(scores)
    return _PartValues(
        found.per_query,
        evaluator.query_weight(),
        {name: evaluator.counted_weight(name) for name in found.per_query},
        found.empty_queries,
        found.tie_queries,
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
    return b"".join(run_texts(part, ranker.predict(part), per_group=per_group, top=top, tag=tag))


# --- here ------------------------------------------------------------------------------------


def _on_one_thread(ranker: Ranker) -> Ranker:
    """Return the ranker as workers use it: a part is the work of one thread."""
    alike = copy(ranker)
    alike.n_jobs = 1
    return alike


def _cut(scores: Any, parts: Partitions) -> list[F64]:
    whole = np.asarray(scores, np.float64)
    if whole.shape != (parts.n_documents,):
        raise DataError(
            f"there are {parts.n_documents} documents, but scores of shape {whole.shape}."
        )
    ends = np.cumsum([int(sizes.sum()) for sizes in parts.sizes])
    return list(np.split(whole, ends[:-1]))


def _means(found: list[_PartValues]) -> dict[str, float]:
    means = {}
    weight = np.concatenate([one.weight for one in found])
    for name in found[0].values:
        values = np.concatenate([one.values[name] for one in found])
        counted = np.concatenate([one.counted[name] for one in found])
        means[name] = mean_over_queries(values, weight, counted)
    return means


def _joined(
    found: list[_PartValues], parts: Partitions, convention: str | Convention
) -> Evaluation:
    names = list(found[0].values)
    return Evaluation(
        means=_means(found),
        per_query={name: np.concatenate([one.values[name] for one in found]) for name in names},
        convention=convention
        if isinstance(convention, Convention)
        else Convention.preset(convention),
        qid=np.concatenate(parts.qid),
        n_queries=parts.n_queries,
        empty_queries=sum(one.empty for one in found),
        tie_queries=sum(one.tied for one in found),
        _evaluator=_NoTieIntervals(),  # type: ignore[arg-type]
        _scores=np.empty(0),
    )


class _NoTieIntervals:
    """Stands where an evaluation in one process has its evaluator."""

    def tie_intervals(self, _: F64) -> Any:
        """Say where they can be had."""
        raise UsageError("tie intervals are found in one process; use rankwright.evaluate.")
