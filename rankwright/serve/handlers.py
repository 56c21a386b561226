"""Scores, rankings and explanations of the lists of a request.

All of this is plain computation on one thread, away from the event loop.
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
from rankwright.serve.model_store import (
    LoadedModel,
    ModelStore,
    can_explain,
    explain_list,
)
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
    otherwise: str,
) -> list[Scored]:
    """Score the documents of each query with the version that its id selects.

    For a query without an id, it is selected by the text ``otherwise``.
    """
    if len(lists) > settings.max_queries:
        raise RequestError(
            413, f"{len(lists)} queries are more than the {settings.max_queries} allowed."
        )
    selected, values = [], 0
    for number, asked in enumerate(lists):
        where = f"queries[{number}]." if len(lists) > 1 else ""
        refuse_long(asked, settings, where)
        loaded = store.pick(name, otherwise if asked.query is None else str(asked.query))
        model = loaded.model  # kept, whatever happens to the file meanwhile
        selected.append((asked, loaded, model, where))
        values += asked.size * model.n_features
    refuse_many(values, settings)
    return [
        score_list(asked, loaded, model, settings, where=where)
        for asked, loaded, model, where in selected
    ]


def refuse_long(asked: AskedList, settings: Settings, where: str = "") -> None:
    """Raise if a list has too many documents, to be scored or to be explained."""
    if asked.size > settings.max_documents:
        raise RequestError(
            413,
            f"{where}documents: {asked.size} are more than the {settings.max_documents} allowed.",
        )
    if asked.explain is not None and asked.size > settings.max_explained:
        raise RequestError(
            413,
            f"{where}explain: {asked.size} documents are more than the {settings.max_explained} "
            "that are explained; send the best ones only, or leave explain out.",
        )


def refuse_many(values: int, settings: Settings) -> None:
    """Raise if a request has too many documents times features."""
    if values > settings.max_values:
        raise RequestError(
            413,
            f"documents times features come to {values}, more than the {settings.max_values} "
            "allowed; send fewer documents at a time.",
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
    """Score the documents of one query; X holds their features where these are known already."""
    if X is None:
        X = asked.features(model, settings, where)
    return Scored(asked, loaded, model, X, _scores(asked, model, X, where))


def _scores(asked: AskedList, model: RuntimeModel, X: AnyArray, where: str) -> F64:
    if asked.size == 0:
        return np.empty(0)
    of_rows: Any = model.model
    with np.errstate(all="ignore"):
        if hasattr(of_rows, "scores_of"):  # of whole lists, or of users
            scores = model.scores_of(_data(asked, model, X), n_jobs=1)
        else:
            scores = of_rows.scores(X, n_jobs=1)
    bad = ~np.isfinite(scores)
    if bad.any():
        raise RequestError(
            422,
            f"{where}documents[{bad.argmax()}] has no finite score; its features are too large.",
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


def _about(one: Scored) -> dict[str, Any]:
    own = one.loaded.version
    return {"model": own.name, "version": own.version, "query": one.asked.query}


def _ranking(one: Scored) -> Iterator[dict[str, Any]]:
    asked = one.asked
    if asked.size == 0:
        return
    order, _ = shown(
        one.scores,
        np.array([0, asked.size]),
        group=None if asked.per_group is None else _groups(asked),
        per_group=asked.per_group,
        top=asked.top,
        n_jobs=1,
    )
    why = None if asked.explain is None else _explanations(one, asked.explain)
    for rank, (row, score) in enumerate(
        zip(order.tolist(), one.scores[order].tolist(), strict=True), 1
    ):
        name = None if asked.ids is None else asked.ids[row]
        place = {"rank": rank, "index": row, "id": name, "score": score}
        yield place if why is None else {**place, "explanation": why[row]}


def _groups(asked: AskedList) -> Any:
    number: dict[Any, int] = {}
    groups = asked.groups or [None] * asked.size
    for row, group in enumerate(groups):
        if group is None:
            raise RequestError(422, f"per_group needs a group; documents[{row}] has none.")
    return np.array([number.setdefault(group, len(number)) for group in groups], np.int64)


def _explanations(one: Scored, features: int) -> dict[int, dict[str, Any]]:
    """Return the largest contributions of features to the rank of each document, by its row."""
    if not can_explain(one.model):
        raise UsageError(f"{one.model.ranker} has no features to explain its rankings by.")
    explained = explain_list(one.model, _data(one.asked, one.model, one.X), one.scores)
    return {
        row: {
            "above_mean": standing.above_mean,
            "parts": dict(list(standing.parts.items())[:features]),
        }
        for row, standing in explained.items()
    }
