"""Scores, rankings and explanations of the lists of a request.

All of this is plain computation in a worker thread, away from the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.order import shown
from rankwright.core.types import F64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.model_store import LoadedModel, ModelStore, can_explain, explain_list
from rankwright.serve.schemas import AskedList, RequestError
from rankwright.serve.settings import Settings


@dataclass(frozen=True, slots=True)
class Scored:
    """A query, the version that answers it, and the features and scores of its documents."""

    asked: AskedList
    loaded: LoadedModel
    model: RuntimeModel
    X: AnyArray
    scores: F64


def score_answers(scored: Sequence[Scored]) -> list[dict[str, Any]]:
    """Return the scores of each query."""
    return [{**_about(one), "scores": one.scores.tolist()} for one in scored]


def rank_answers(scored: Sequence[Scored]) -> list[dict[str, Any]]:
    """Return the ranking of each query, best first."""
    return [{**_about(one), "ranking": list(_ranking(one))} for one in scored]


def score_queries(
    store: ModelStore,
    name: str,
    lists: Sequence[AskedList],
    settings: Settings,
    *,
    default_id: str,
) -> list[Scored]:
    """Score the documents of each query with the version that its id selects.

    ``default_id`` is used for queries without an id.
    """
    if len(lists) > settings.max_queries:
        raise RequestError(
            413, f"{len(lists)} queries are more than the {settings.max_queries} allowed."
        )
    selected, n_values = [], 0
    for number, asked in enumerate(lists):
        where = f"queries[{number}]." if len(lists) > 1 else ""
        check_length(asked, settings, where)
        loaded = store.pick(name, default_id if asked.query is None else str(asked.query))
        model = loaded.model  # read once: the file may be replaced meanwhile
        selected.append((asked, loaded, model, where))
        n_values += asked.size * model.n_features
    check_work(lists, n_values, settings)
    return [
        score_list(asked, loaded, model, settings, where=where)
        for asked, loaded, model, where in selected
    ]


def check_length(asked: AskedList, settings: Settings, where: str = "") -> None:
    """Raise if a list has too many documents."""
    if asked.size > settings.max_documents:
        raise RequestError(
            413,
            f"{where}documents: {asked.size} are more than the {settings.max_documents} allowed.",
        )


def check_work(lists: Sequence[AskedList], n_values: int, settings: Settings) -> None:
    """Raise if a request has too many documents times features, or documents to explain."""
    if n_values > settings.max_values:
        raise RequestError(
            413,
            f"the request has {n_values} documents times features, more than the "
            f"{settings.max_values} allowed; send fewer documents at a time.",
        )
    n_explained = sum(asked.size for asked in lists if asked.explain is not None)
    if n_explained > settings.max_explained:
        raise RequestError(
            413,
            f"explain: {n_explained} documents are more than the {settings.max_explained} that can "
            "be explained at a time; send only the best ones, or leave explain out.",
        )


def score_list(
    asked: AskedList,
    loaded: LoadedModel,
    model: RuntimeModel,
    settings: Settings,
    X: AnyArray | None = None,
    *,
    where: str = "",
) -> Scored:
    """Score the documents of one query; ``X`` is their features if they are known."""
    if X is None:
        X = asked.features(model, settings, where)
    return Scored(asked, loaded, model, X, _scores(asked, model, X, where))


def _scores(asked: AskedList, model: RuntimeModel, X: AnyArray, where: str) -> F64:
    if asked.size == 0:
        return np.empty(0)
    fitted: Any = model.model
    with np.errstate(all="ignore"):
        if hasattr(fitted, "scores_of"):  # a model of whole lists or of users
            scores = model.scores_of(_data(asked, model, X), n_jobs=1)
        else:
            scores = fitted.scores(X, n_jobs=1)
    is_infinite = ~np.isfinite(scores)
    if is_infinite.any():
        row = is_infinite.argmax()
        raise RequestError(
            422, f"{where}documents[{row}] has no finite score; its features are too large."
        )
    return scores


def _data(asked: AskedList, model: RuntimeModel, X: AnyArray) -> RankingData:
    return RankingData(
        X,
        np.zeros(len(X)),
        np.array([0, len(X)]),
        np.array([asked.query], object),
        feature_names=model.feature_names,
        categories=model.categories,
    )


def _about(scored: Scored) -> dict[str, Any]:
    version = scored.loaded.version
    return {"model": version.name, "version": version.version, "query": scored.asked.query}


def _ranking(scored: Scored) -> Iterator[dict[str, Any]]:
    asked = scored.asked
    if asked.size == 0:
        return
    order, _ = shown(
        scored.scores,
        np.array([0, asked.size]),
        group=None if asked.per_group is None else _groups(asked),
        per_group=asked.per_group,
        top=asked.top,
        n_jobs=1,
    )
    explanations = None if asked.explain is None else _explanations(scored, asked.explain)
    for rank, row in enumerate(order.tolist(), 1):
        document = {
            "rank": rank,
            "index": row,
            "id": None if asked.ids is None else asked.ids[row],
            "score": float(scored.scores[row]),
        }
        if explanations is not None:
            document["explanation"] = explanations[row]
        yield document


def _groups(asked: AskedList) -> Any:
    numbers: dict[Any, int] = {}
    groups = asked.groups or [None] * asked.size
    for row, group in enumerate(groups):
        if group is None:
            raise RequestError(422, f"per_group needs a group; documents[{row}] has none.")
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)


def _explanations(scored: Scored, n_features: int) -> dict[int, dict[str, Any]]:
    """Return the largest contributions of features to the rank of each document, by its row."""
    if not can_explain(scored.model):
        raise UsageError(f"{scored.model.ranker} has no features to explain its rankings by.")
    data = _data(scored.asked, scored.model, scored.X)
    explained = explain_list(scored.model, data, scored.scores)
    return {
        row: {
            "above_mean": document.above_mean,
            "parts": dict(list(document.parts.items())[:n_features]),
        }
        for row, document in explained.items()
    }
