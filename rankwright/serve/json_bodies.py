"""Requests as JSON: numbers read by a kernel where a body is plain, checked strictly where not.

A plain body has the fields of a request, and features that are numbers or null: lists in the order
of the model's columns, or mappings that all name the same features in the same order. msgspec finds
the fields and checks the grammar, and leaves the text of the features to a kernel, which makes no
Python object of a number and lets other threads run. Of any other body, right or wrong, pydantic
makes a request or a sentence. It accepts all plain bodies too, with the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial
from typing import Annotated, Any

import msgspec
import numpy as np
from pydantic import ValidationError

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.letor_kernels import at, digit_at, read_number, stands_at
from rankwright.errors import quoted
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.schemas import (
    MAX_COUNT,
    MAX_NAME,
    AskedList,
    Document,
    RankBatch,
    RankRequest,
    RequestError,
    ScoreBatch,
    ScoreRequest,
    Strict,
)
from rankwright.serve.settings import Settings

_SPACE, _COMMA, _COLON, _MINUS = 32, 44, 58, 45
_LIST, _LIST_END, _MAPPING, _MAPPING_END = 91, 93, 123, 125
_NULL = np.frombuffer(b"null", np.uint8)
_MISSING = float("nan")

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _past_blanks(text, i):
    while at(text, i) == _SPACE or 9 <= at(text, i) <= 13:
        i += 1
    return i


@kernel
def _read_value(text, i):
    """Return the number at ``i``, NaN for null, and where it ends; infinity where neither is."""
    if at(text, i) == _MINUS or 0 <= digit_at(text, i) <= 9:
        value, i, known = read_number(text, i)
        return value if known else np.inf, i
    if stands_at(text, i, _NULL):
        return np.nan, i + 4
    return np.inf, i


@kernel
def read_features(text, names, cuts, columns, X):
    """Read a list or mapping for each row of X, with one byte between them; 0 bytes end the text.

    Mappings have the names ``names[cuts[k]:cuts[k + 1]]``, which go to ``columns[k]``, or nowhere
    if that is below 0. Return whether all was read; if not, it is left to others to say why.
    """
    i, opening = 0, at(text, 0)
    named = opening == _MAPPING
    if not named and opening != _LIST:
        return False
    for row in range(len(X)):
        if at(text, i) != opening:
            return False
        i += 1
        for k in range(len(columns) if named else X.shape[1]):
            i = _past_blanks(text, i)
            if k > 0:
                if at(text, i) != _COMMA:
                    return False
                i = _past_blanks(text, i + 1)
            column = k
            if named:
                name = names[cuts[k] : cuts[k + 1]]
                if not stands_at(text, i, name):
                    return False
                i = _past_blanks(text, i + len(name))
                if at(text, i) != _COLON:
                    return False
                i = _past_blanks(text, i + 1)
                column = columns[k]
            value, i = _read_value(text, i)
            if abs(value) == np.inf:
                return False
            if column >= 0:
                X[row, column] = value
        i = _past_blanks(text, i)
        if at(text, i) != (_MAPPING_END if named else _LIST_END):
            return False
        i += 2
    return True


# --- API -------------------------------------------------------------------------------------


def asked_lists(kind: type[Strict], body: bytes) -> list[AskedList]:
    """Return the lists of a request, or say in a sentence what is wrong with it."""
    request = parse(kind, body)
    queries = request.queries if isinstance(request, RankBatch | ScoreBatch) else [request]
    return [_asked(own, partial(_columns, own.documents)) for own in queries]


def plain_lists(kind: type[Strict], body: bytes) -> list[AskedList] | None:
    """Return the lists of a request with a plain body, or None where `asked_lists` is to read it.

    Their features may turn out not to be plain: then `NotPlainError` is raised.
    """
    try:
        request = _decoders()[kind].decode(body)
    except (ValueError, RecursionError):  # whatever it is, `asked_lists` explains it
        return None
    queries = request.queries if kind in (RankBatch, ScoreBatch) else [request]
    return [_asked(own, partial(_plain_columns, own.documents)) for own in queries]


class NotPlainError(Exception):
    """The features of a plain body are not plain; `asked_lists` is to read it."""


def prepare_kernels() -> None:
    """Compile the kernel, or load it, so that the first request does not wait for it."""
    _read([b"[1]"], (), np.empty(0, np.int64), np.empty((1, 1)))


def to_json(answer: Any) -> bytes:
    """Return an answer as JSON."""
    return msgspec.json.encode(answer)


def _asked(request: Any, features: Any) -> AskedList:
    documents = request.documents
    return AskedList(
        request.query,
        len(documents),
        features,
        [document.id for document in documents],
        [document.group for document in documents],
        getattr(request, "top", None),
        getattr(request, "per_group", None),
        getattr(request, "explain", None),
    )


# --- plain bodies ------------------------------------------------------------------------------


_PLAIN_NAME = re.compile(r'[^\x00-\x1f"\\\ud800-\udfff]*')  # stands in JSON as it is


@cache
def _decoders() -> dict[type[Strict], Any]:
    """Return a decoder for each kind of request."""
    text = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
    name = text | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None
    count = Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)] | None

    def struct(called: str, fields: list[tuple[Any, ...]]) -> Any:
        return msgspec.defstruct(called, fields, forbid_unknown_fields=True)

    document: Any = struct(
        "Document", [("features", msgspec.Raw), ("id", name, None), ("group", name, None)]
    )
    fields = [("documents", list[document]), ("query", name, None)]
    counts = [(field, count, None) for field in ("top", "per_group", "explain")]
    score: Any = struct("Score", fields)
    rank: Any = struct("Rank", fields + counts)
    kinds: dict[type[Strict], Any] = {
        ScoreRequest: score,
        RankRequest: rank,
        ScoreBatch: struct("ScoreBatch", [("queries", list[score])]),
        RankBatch: struct("RankBatch", [("queries", list[rank])]),
    }
    return {kind: msgspec.json.Decoder(own) for kind, own in kinds.items()}


def _plain_columns(
    documents: Sequence[Any],
    model: RuntimeModel,
    settings: Settings,
    where: str,  # noqa: ARG001 (whatever is refused, `asked_lists` says so)
) -> F64:
    """Return the features of documents that the kernel can read, and that are as they should be."""
    X = np.empty((len(documents), model.n_features))
    if not documents:
        return X
    if model.coded:
        raise NotPlainError
    texts = [document.features for document in documents]
    names: tuple[str, ...] = ()
    columns = np.empty(0, np.int64)
    if bytes(texts[0]).startswith(b"{"):
        try:
            names = tuple(msgspec.json.decode(texts[0], type=dict))
        except ValueError:  # a text that is not UTF-8
            raise NotPlainError from None
        columns = np.array([model.columns.get(name, -1) for name in names], np.int64)
        if settings.unknown == "error" and (columns < 0).any():
            raise NotPlainError
        X[:] = _MISSING
    if not _read(texts, names, columns, X):
        raise NotPlainError
    if settings.missing == "error" and np.isnan(X).any():
        raise NotPlainError
    return X


def _read(texts: Sequence[Any], names: tuple[str, ...], columns: I64, X: F64) -> bool:
    if not all(map(_PLAIN_NAME.fullmatch, names)):
        return False
    held = [f'"{name}"'.encode() for name in names]
    cuts = np.cumsum([0, *map(len, held)])
    text: AnyArray = np.frombuffer(b"".join([b",".join(texts), b"\0\0"]), np.uint8)
    read: bool = read_features(text, np.frombuffer(b"".join(held), np.uint8), cuts, columns, X)
    return read


# --- any body ----------------------------------------------------------------------------------


_ADVICE = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of a request",
    "finite_number": "must be a finite number; null is a missing value",
    "float_type": "must be a number; null is a missing value",
    "string_type": "must be a text or a whole number",
}
_KINDS = ("str", "int", "float", "bool", "constrained-str", "constrained-int")


def parse(kind: type[Strict], body: bytes) -> Any:
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


def _columns(
    documents: Sequence[Document], model: RuntimeModel, settings: Settings, where: str
) -> F64:
    X = np.empty((len(documents), model.n_features))
    coded = model.coded
    for number, document in enumerate(documents):
        features, which = document.features, f"{where}documents[{number}]"
        if isinstance(features, dict):
            X[number] = _MISSING
            for feature, value in features.items():
                column = model.columns.get(feature)
                if column is not None:
                    X[number, column] = number_of(model, column, value, settings, which, feature)
                elif settings.unknown == "error":
                    raise RequestError(
                        422,
                        f"{which}: the model has no feature {quoted(feature)}; leave it out, or "
                        "start the server with --unknown ignore.",
                    )
        elif len(features) == model.n_features:
            X[number] = [
                value
                if type(value) is float and column not in coded
                else number_of(model, column, value, settings, which, column)
                for column, value in enumerate(features)
            ]
        else:
            raise RequestError(
                422,
                f"{which} has {len(features)} features, the model has {model.n_features}; send "
                "features by name if some are missing.",
            )
        if settings.missing == "error":  # row by row: the first hole ends it
            refuse_holes(model, X[number : number + 1], where, number)
    return X


def number_of(
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
        if isinstance(value, str):
            place = f".features[{feature}]" if isinstance(feature, int) else f".features.{feature}"
            raise RequestError(
                422, f"{which}{place[:80]} must be a number; null is a missing value."
            )
        return float(value)  # true is 1
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


def refuse_holes(model: RuntimeModel, X: AnyArray, where: str, first: int = 0) -> None:
    """Refuse documents that lack a feature; the first of them has the number ``first``."""
    holes = np.isnan(X)
    if holes.any():
        which, feature = first_marked(model, holes, where, first)
        raise RequestError(
            422,
            f"{which} has no feature {feature}; send it, or start the server with --missing nan.",
        )


def first_marked(
    model: RuntimeModel, marked: AnyArray, where: str, first: int = 0
) -> tuple[str, str]:
    """Return the document and the feature of the first marked value, as messages name them."""
    row, column = divmod(int(marked.argmax()), marked.shape[1])
    return f"{where}documents[{first + row}]", quoted(list(model.columns)[column])
