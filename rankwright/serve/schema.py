"""Requests and answers as JSON: checked strictly, and what the OpenAPI page shows."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rankwright.serve.faults import RequestError

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


class Fault(BaseModel):
    """Why a request was refused, in a sentence."""

    error: str
    request_id: str


def parse(kind: type[_Strict], body: bytes) -> Any:
    """Return the request in ``body``, or say in a sentence what is wrong with it."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as fault:
        # Of the alternatives of a field, the one that went furthest is what was meant.
        first = max(fault.errors(include_url=False), key=_how_far)
        if first["type"] == "json_invalid":
            raise RequestError(400, f"{first['msg']}.") from None
        said = _ADVICE.get(first["type"], _sentence(first["msg"]))
        raise RequestError(422, f"{_place(first['loc'])} {said}.") from None


def _how_far(error: Any) -> tuple[int, bool]:
    return len(error["loc"]), not error["type"].endswith("_type")


def _place(path: tuple[int | str, ...]) -> str:
    """Return where a fault is, such as ``documents[3].features[5]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step not in _KINDS and "[" not in step:
            text += f".{step[:64]}"
    return text.removeprefix(".") or "the request"


def _sentence(message: str) -> str:
    return message.replace("Input should be", "must be", 1)
