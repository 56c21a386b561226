"""Requests and answers: the structs that bodies are decoded into and the OpenAPI page shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from rankwright.core.types import AnyArray
from rankwright.errors import RankwrightError
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.settings import Settings

MAX_NAME = 1024
"""Maximum number of characters of an id or a category."""
MAX_COUNT = 2**31 - 1  # kernels count in machine words
"""Maximum number of documents or features that can be asked for."""

Name = Annotated[str, Meta(max_length=MAX_NAME)] | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Value = float | Annotated[str, Meta(max_length=MAX_NAME)] | bool | None  # a text is a category
Count = Annotated[int, Meta(ge=1, le=MAX_COUNT)]


class RequestError(RankwrightError):
    """Why a request is refused, with the HTTP status that says so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class AskedList:
    """The documents of one query, from a body of any encoding.

    Attributes
    ----------
    query : str, int or None
        Its id, which decides which version of the model answers.
    size : int
        Number of documents.
    features : function
        Returns the features as a matrix in the columns of a model. The last argument is a prefix
        for messages about a document, such as ``queries[3].``.
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


# --- requests ----------------------------------------------------------------------------------


class Document(Struct, forbid_unknown_fields=True):
    """A document."""

    features: Annotated[
        list[Value] | dict[str, Value],
        Meta(
            description="Features by name, or all of them in the order of training.",
            examples=[[0.3, 12.0], {"bm25": 12.0, "shop": "a"}],
        ),
    ]
    id: Annotated[Name | None, Meta(description="Id of the document, returned in the answer.")] = (
        None
    )
    group: Annotated[
        Name | None, Meta(description="Group of the document, such as its host, for per_group.")
    ] = None


class ScoreRequest(Struct, forbid_unknown_fields=True):
    """Score the documents of one query."""

    documents: Annotated[list[Document], Meta(description="The documents to rank or score.")]
    query: Annotated[
        Name | None,
        Meta(description="Id of the query; it decides which version of the model answers."),
    ] = None


class RankRequest(ScoreRequest, forbid_unknown_fields=True):
    """Rank the documents of one query."""

    top: Annotated[
        Count | None, Meta(description="Maximum number of documents to return, the best ones.")
    ] = None
    per_group: Annotated[
        Count | None, Meta(description="Maximum number of documents of each group.")
    ] = None
    explain: Annotated[
        Count | None,
        Meta(description="Number of features whose contributions are given, per document."),
    ] = None


class ScoreBatch(Struct, forbid_unknown_fields=True):
    """Score the documents of many queries."""

    queries: list[ScoreRequest]


class RankBatch(Struct, forbid_unknown_fields=True):
    """Rank the documents of many queries."""

    queries: list[RankRequest]


class ClickRequest(Struct, forbid_unknown_fields=True):
    """Report a click on a document of an interleaved list."""

    session: Annotated[str, Meta(max_length=64, description="As in the answer.")]
    document: Annotated[
        Name | None, Meta(description="Id of the document; or give its position.")
    ] = None
    position: Annotated[Count | None, Meta(description="Its position in the list, from 1.")] = None


# --- answers -----------------------------------------------------------------------------------


class Explanation(Struct):
    """Why a document has its rank: the contribution of each feature to its lead over the mean."""

    above_mean: float
    parts: dict[str, float]


class Ranked(Struct, omit_defaults=True):
    """A document in the ranking; ``index`` is its number in the request, from 0."""

    rank: int
    index: int
    id: Name | None
    score: float
    explanation: Explanation | None = None


class RankAnswer(Struct):
    """Documents, best first."""

    model: str
    version: str
    query: Name | None
    ranking: list[Ranked]


class ScoreAnswer(Struct):
    """A score for each document, in the order of the request."""

    model: str
    version: str
    query: Name | None
    scores: list[float]


class RankBatchAnswer(Struct):
    """An answer for each query, in the order of the request."""

    results: list[RankAnswer]


class ScoreBatchAnswer(Struct):
    """An answer for each query, in the order of the request."""

    results: list[ScoreAnswer]


class Placed(Struct):
    """A document in an interleaved list; ``index`` is its number in the request, from 0.

    ``team`` is the number of the model that the document came from, or -1 if a click on it gives
    no credit to one model.
    """

    rank: int
    index: int
    id: Name
    team: int


class InterleavedAnswer(Struct):
    """A list interleaved from those of all models, and the session to report clicks with."""

    session: str
    query: Name
    ranking: list[Placed]


class ClickAnswer(Struct):
    """Position of the click; ``recorded`` is false if it was reported before."""

    session: str
    position: int
    recorded: bool


class Refusal(Struct):
    """Why a request was refused, in a sentence."""

    error: str
    request_id: str
