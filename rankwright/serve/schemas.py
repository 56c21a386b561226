"""Requests and answers: their fields as the OpenAPI page shows them, and a list to be ranked.

A body of any encoding becomes `AskedList` objects, which is all that the handlers see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rankwright.core.types import AnyArray
from rankwright.errors import RankwrightError
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.settings import Settings

MAX_NAME = 1024
"""Characters of an id, and of a category."""
MAX_COUNT = 2**31 - 1  # kernels count in machine words
"""The highest number of documents or features that may be asked for."""


class RequestError(RankwrightError):
    """Why a request is refused, with the HTTP status that says so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class AskedList:
    """The documents of one query, and what is asked about them.

    Attributes
    ----------
    query : str, int or None
        Its id, which decides which version of the model answers.
    size : int
        Number of documents.
    features : function
        Returns the features as a matrix in the columns of a model. The last argument is how a
        refusal begins to name a document, such as ``queries[3].``.
    ids, groups : sequence or None
        Of each document.
    top, per_group, explain : int or None
        As in `RankRequest`.
    """

    query: str | int | None
    size: int
    features: Callable[[RuntimeModel, Settings, str], AnyArray]
    ids: Sequence[Any] | None = None
    groups: Sequence[Any] | None = None
    top: int | None = None
    per_group: int | None = None
    explain: int | None = None


# --- fields of requests and answers --------------------------------------------------------------
# They are also what the OpenAPI page shows.


Name = Annotated[str, Field(max_length=MAX_NAME)] | Annotated[int, Field(ge=-(2**63), lt=2**63)]
Value = Annotated[
    float | Annotated[str, Field(max_length=MAX_NAME)] | bool | None,
    Field(union_mode="left_to_right"),
]  # a text is a category
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class Strict(BaseModel):
    """A number is a number, and a field with a slip in its name is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Document(Strict):
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


class ScoreRequest(Strict):
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


class ScoreBatch(Strict):
    """Score the documents of many queries."""

    queries: list[ScoreRequest]


class RankBatch(Strict):
    """Rank the documents of many queries."""

    queries: list[RankRequest]


class ClickRequest(Strict):
    """Report a click on a document of an interleaved list."""

    session: Annotated[str, Field(max_length=64)] = Field(description="As in the answer.")
    document: Name | None = Field(None, description="Id of the document; or give its position.")
    position: Count | None = Field(None, description="Its position in the list, from 1.")


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


class Placed(BaseModel):
    """A document in its place; ``index`` is its number in the request, from 0.

    ``team`` is the number of the model that the document came from, -1 if a click on it gives no
    credit to one model.
    """

    rank: int
    index: int
    id: Name
    team: int


class InterleavedAnswer(BaseModel):
    """A list interleaved from those of all models, and the session to report clicks with."""

    session: str
    query: Name
    ranking: list[Placed]


class ClickAnswer(BaseModel):
    """Where the click was; ``recorded`` is false if it had been reported before."""

    session: str
    position: int
    recorded: bool


class Refusal(BaseModel):
    """Why a request was refused, in a sentence."""

    error: str
    request_id: str
