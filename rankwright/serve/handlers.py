"""Requests and answers: JSON checked strictly, then scores, ranks and explanations.

All of this is plain computation on one thread, away from the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rankwright.core.order import shown
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError, UsageError, quoted
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.model_store import LoadedModel, ModelStore
from rankwright.serve.settings import Settings


class RequestError(RankwrightError):
    """Why a request is refused, with the HTTP status that says so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


# --- requests and answers as JSON --------------------------------------------------------------
# They are also what the OpenAPI page shows.


_ADVICE = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of a request",
    "finite_number": "must be a finite number; null is a missing value",
    "float_type": "must be a number; null is a missing value",
    "string_type": "must be a text or a whole number",
}
_KINDS = ("str", "int", "float", "bool", "constrained-str", "constrained-int")
_MOST = 2**31 - 1  # kernels count in machine words
Name = Annotated[str, Field(max_length=1024)] | Annotated[int, Field(ge=-(2**63), lt=2**63)]
Value = Annotated[
    float | Annotated[str, Field(max_length=1024)] | bool | None, Field(union_mode="left_to_right")
]  # a text is a category
Count = Annotated[int, Field(ge=1, le=_MOST)]


class _Strict(BaseModel):
    """A number is a number, and a field with a slip in its name is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Document(_Strict):
    """A document: features in the order of the model's columns, or by name."""

    features: Annotated[
        list[Value] | dict[str, Value],
        Field(
            union_mode="left_to_right",
            examples=[[0.3, 12.0], {"bm25": 12.0, "shop": "a"}],
            description="Features by name, or all of them in the order of training.",
        ),
    ]
    id: Name | None = Field(None, description="Id of the document, returned in the answer.")
    group: Name | None = Field(
        None, description="Group of the document, such as its host, for per_group."
    )


class ScoreRequest(_Strict):
    """Score the documents of one query."""

    documents: list[Document] = Field(description="The documents to rank or score.")
    query: Name | None = Field(
        None, description="Id of the query; it decides which version of the model answers."
    )


class RankRequest(ScoreRequest):
    """Rank the documents of one query."""

    top: Count | None = Field(
        None, description="Maximum number of documents to return, the best ones."
    )
    per_group: Count | None = Field(None, description="Maximum number of documents of each group.")
    explain: Count | None = Field(
        None, description="Number of features whose contributions are given, per document."
    )


class ScoreBatch(_Strict):
    """Score the documents of many queries."""

    queries: list[ScoreRequest]


class RankBatch(_Strict):
    """Rank the documents of many queries."""

    queries: list[RankRequest]


class Explanation(BaseModel):
    """Why a document has its rank: the part of each feature in its lead over the mean score."""

    above_mean: float
    parts: dict[str, float]


class Ranked(BaseModel):
    """A document in its place; ``index`` is its number in the request, from 0."""

    rank: int
    index: int
    id: Name | None
    score: float
    explanation: Explanation | None = None


class RankAnswer(BaseModel):
    """Documents, best first."""

    model: str
    version: str
    query: Name | None
    ranking: list[Ranked]


class ScoreAnswer(BaseModel):
    """A score for each document, in the order of the request."""

    model: str
    version: str
    query: Name | None
    scores: list[float]


class RankBatchAnswer(BaseModel):
    """An answer for each query, in the order of the request."""

    results: list[RankAnswer]


class ScoreBatchAnswer(BaseModel):
    """An answer for each query, in the order of the request."""

    results: list[ScoreAnswer]


class Refusal(BaseModel):
    """Why a request was refused, in a sentence."""

    error: str
    request_id: str


def parse(kind: type[_Strict], body: bytes) -> Any:
    """Return the request in ``body``, or say in a sentence what is wrong with it."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        # Of the alternatives of a field, the one that went furthest is what was meant.
        first = max(error.errors(include_url=False), key=_how_far)
        if first["type"] == "json_invalid":
            raise RequestError(400, f"{first['msg']}.") from None
        said = _ADVICE.get(first["type"], first["msg"].replace("Input should be", "must be", 1))
        raise RequestError(422, f"{_place(first['loc'])} {said}.") from None


def _how_far(error: Any) -> tuple[int, bool]:
    return len(error["loc"]), not error["type"].endswith("_type")


def _place(path: tuple[int | str, ...]) -> str:
    """Return where a error is, such as ``documents[3].features[5]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step not in _KINDS and "[" not in step:
            text += f".{step[:64]}"
    return text.removeprefix(".") or "the request"


# --- handlers ----------------------------------------------------------------------------------


_MISSING = float("nan")


@dataclass(frozen=True, slots=True)
class Scored:
    """A query with the version that answers it, its documents as rows, and their scores."""

    request: ScoreRequest
    loaded: LoadedModel
    model: RuntimeModel
    data: RankingData
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
    requests: Sequence[ScoreRequest],
    settings: Settings,
    *,
    otherwise: str,
) -> list[Scored]:
    """Score the documents of each query with the version that its id selects.

    For a query without an id, it is selected by the text ``otherwise``.
    """
    if len(requests) > settings.max_queries:
        raise RequestError(
            413, f"{len(requests)} queries are more than the {settings.max_queries} allowed."
        )
    selected, values = [], 0
    for number, request in enumerate(requests):
        where = f"queries[{number}]." if len(requests) > 1 else ""
        if len(request.documents) > settings.max_documents:
            raise RequestError(
                413,
                f"{where}documents: {len(request.documents)} are more than the "
                f"{settings.max_documents} allowed.",
            )
        loaded = store.pick(name, otherwise if request.query is None else str(request.query))
        model = loaded.model  # kept, whatever happens to the file meanwhile
        selected.append((request, loaded, model, where))
        values += len(request.documents) * model.n_features
    if values > settings.max_values:
        raise RequestError(
            413,
            f"documents times features come to {values}, more than the {settings.max_values} "
            "allowed; send fewer documents at a time.",
        )
    found = []
    for request, loaded, model, where in selected:
        X = _columns(model, request.documents, settings, where)
        n = len(X)
        ids = np.array([request.query], object)
        data = RankingData(
            X,
            np.zeros(n),
            np.array([0, n]),
            ids,
            feature_names=model.feature_names,
            categories=model.categories,
        )
        found.append(Scored(request, loaded, model, data, _scores(model, data, where)))
    return found


def _scores(model: RuntimeModel, data: RankingData, where: str) -> F64:
    if data.n_documents == 0:
        return np.empty(0)
    with np.errstate(all="ignore"):
        scores = model.scores_of(data, n_jobs=1)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise RequestError(
            422,
            f"{where}documents[{bad[0]}] has no finite score; its features are too large.",
        )
    return scores


def _columns(
    model: RuntimeModel, documents: Sequence[Document], settings: Settings, where: str
) -> F64:
    X = np.empty((len(documents), model.n_features))
    for number, document in enumerate(documents):
        features = document.features
        if isinstance(features, dict):
            X[number] = _MISSING
            for feature, value in features.items():
                column = model.columns.get(feature)
                if column is not None:
                    X[number, column] = _number(
                        model, column, value, settings, f"{where}documents[{number}]", feature
                    )
                elif settings.unknown == "error":
                    raise RequestError(
                        422,
                        f"{where}documents[{number}]: the model has no feature {quoted(feature)}; "
                        "leave it out, or start the server with --unknown ignore.",
                    )
        elif len(features) == model.n_features:
            X[number] = [
                _number(model, column, value, settings, f"{where}documents[{number}]", column)
                for column, value in enumerate(features)
            ]
        else:
            raise RequestError(
                422,
                f"{where}documents[{number}] has {len(features)} features, the model has "
                f"{model.n_features}; send features by name if some are missing.",
            )
        if settings.missing == "error":  # row by row: the first hole ends it
            _refuse_hole(model, X[number], f"{where}documents[{number}]")
    return X


def _number(
    model: RuntimeModel,
    column: int,
    value: float | str | bool | None,
    settings: Settings,
    which: str,
    feature: str | int,
) -> float:
    """Return a value as it stands in its column: a category by its code, NaN where it is missing.

    A category that the model does not know counts as missing, and is refused where holes are.
    """
    if value is None:
        return _MISSING
    known = model.coded.get(column)
    if known is None:
        if isinstance(value, str | bool):
            place = f".features[{feature}]" if isinstance(feature, int) else f".features.{feature}"
            raise RequestError(
                422, f"{which}{place[:80]} must be a number; null is a missing value."
            )
        return value
    code = known.get(value)
    name = list(model.columns)[column]
    if code is None and not isinstance(value, str) and all(isinstance(k, str) for k in known):
        raise RequestError(
            422, f"{which}: feature {quoted(name)} is a category; give it as text, not {value!r}."
        )
    if code is None and settings.missing == "error":
        raise RequestError(
            422,
            f"{which}: the model does not know the category {quoted(value)} of feature "
            f"{quoted(name)}; send one of its own, or start the server with --missing nan.",
        )
    return _MISSING if code is None else float(code)


def _refuse_hole(model: RuntimeModel, row: F64, which: str) -> None:
    holes = np.isnan(row)
    column = int(holes.argmax())
    if holes[column]:
        feature = list(model.columns)[column]
        raise RequestError(
            422,
            f"{which} has no feature {quoted(feature)}; send it, or start the server with "
            "--missing nan.",
        )


def _about(one: Scored) -> dict[str, Any]:
    own = one.loaded.version
    return {"model": own.name, "version": own.version, "query": one.request.query}


def _ranking(one: Scored) -> Iterator[dict[str, Any]]:
    request = one.request
    assert isinstance(request, RankRequest)
    if not request.documents:
        return
    order, _ = shown(
        one.scores,
        one.data.indptr,
        group=None if request.per_group is None else _groups(request),
        per_group=request.per_group,
        top=request.top,
        n_jobs=1,
    )
    why = None if request.explain is None else _explanations(one, request.explain)
    for rank, row in enumerate(order.tolist(), 1):
        document = request.documents[row]
        place = {"rank": rank, "index": row, "id": document.id, "score": float(one.scores[row])}
        yield place if why is None else {**place, "explanation": why[row]}


def _groups(request: RankRequest) -> Any:
    number: dict[Any, int] = {}
    for row, document in enumerate(request.documents):
        if document.group is None:
            raise RequestError(422, f"per_group needs a group; documents[{row}] has none.")
    return np.array([number.setdefault(d.group, len(number)) for d in request.documents], np.int64)


@dataclass(frozen=True, slots=True)
class _Known:
    """What explanations ask of a ranker: its model, and scores that are there already."""

    model_: Any
    scores: F64

    def predict(self, data: RankingData) -> F64:  # noqa: ARG002
        return self.scores


def _explanations(one: Scored, features: int) -> dict[int, dict[str, Any]]:
    """Return why each document stands where it does, by its row."""
    from rankwright.explanation.query import QueryView, explain_query

    model: Any = one.model.model
    if hasattr(model, "scores_of") and not hasattr(model, "contributions_of"):
        raise UsageError(f"{one.model.ranker} has no features to explain its rankings by.")
    known: Any = _Known(model, one.scores)
    view = QueryView(known, one.data)
    standings = explain_query(view).documents
    return {
        row: {
            "above_mean": standing.above_mean,
            "parts": dict(list(standing.parts.items())[:features]),
        }
        for row, standing in zip(view.order.tolist(), standings, strict=True)
    }
