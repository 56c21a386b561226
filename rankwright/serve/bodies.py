"""Bodies of requests: JSON, or a matrix in NumPy's npy format with the other fields in the address.

A row of a matrix is a document; ``query``, ``top``, ``per_group`` and ``explain`` follow a question
mark in the address. Nothing is unpickled: an npy body must hold float32 or float64, and its size
must be that of its header, before anything is allocated.
"""

from __future__ import annotations

import io
import re
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import numpy as np

from rankwright.core.types import F64, AnyArray
from rankwright.errors import quoted
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.schemas import (
    MAX_COUNT,
    MAX_NAME,
    AskedList,
    Document,
    RankRequest,
    RequestError,
)
from rankwright.serve.settings import Settings

COUNTS = ("top", "per_group", "explain")
_MISSING = float("nan")
_MAX_HEADER = 1 << 12  # bytes of the header of an npy body


# --- JSON --------------------------------------------------------------------------------------


def parse(kind: type[Any], body: bytes) -> Any:
    """Return the request in ``body``; raise `RequestError` if it is not one."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).replace("`", "").partition(" - at $")
        place = place.removeprefix(".") or "the request"
        raise RequestError(422, f"{place}: {message[0].lower()}{message[1:]}.") from None
    except RecursionError:
        raise RequestError(400, "the JSON is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(400, f"the body is not JSON: {error}.") from None


def json_lists(kind: type[Any], body: bytes, query_string: bytes) -> list[AskedList]:
    """Return the lists of a JSON request."""
    for name in ("query", *COUNTS):
        if re.search(rb"(^|&)%s=" % name.encode(), query_string):
            raise RequestError(
                422, f"with JSON, {name} is a field of the body, not of the address."
            )
    request = parse(kind, body)
    requests = request.queries if hasattr(request, "queries") else [request]
    return [_asked(request) for request in requests]


def _asked(request: Any) -> AskedList:
    documents = request.documents
    return AskedList(
        request.query,
        len(documents),
        partial(_features, documents),
        [document.id for document in documents],
        [document.group for document in documents],
        *(getattr(request, name, None) for name in COUNTS),
    )


def _features(
    documents: list[Document], model: RuntimeModel, settings: Settings, where: str
) -> F64:
    """Return the features of documents as a matrix in the columns of the model."""
    X = None if model.coded else _numbers([document.features for document in documents], model)
    if X is None:
        rows = [
            _row(document.features, model, settings, f"{where}documents[{number}]")
            for number, document in enumerate(documents)
        ]
        X = np.array(rows, np.float64).reshape(len(rows), model.n_features)
    if settings.missing == "error":
        refuse_missing(model, X, where)
    return X


def _numbers(rows: list[Any], model: RuntimeModel) -> F64 | None:
    """Return rows of numbers as a matrix; None if some are not numbers or differ in features.

    This takes a tenth of the time of `_row` for each document.
    """
    columns = None
    if rows and isinstance(rows[0], dict):
        names = tuple(rows[0])
        if not all(isinstance(row, dict) and tuple(row) == names for row in rows):
            return None
        columns = [model.columns.get(name, -1) for name in names]
        if -1 in columns:
            return None
        rows = [list(row.values()) for row in rows]
    try:
        X = np.array(rows)
    except ValueError:  # rows of different lengths
        return None
    width = model.n_features if columns is None else len(columns)
    if X.dtype.kind not in "fb" or X.shape != (len(rows), width):
        return None
    if columns is None:
        return X.astype(np.float64, copy=False)
    whole = np.full((len(rows), model.n_features), _MISSING)
    whole[:, columns] = X
    return whole


def _row(features: Any, model: RuntimeModel, settings: Settings, which: str) -> list[float]:
    """Return the features of one document in the columns of the model."""
    if isinstance(features, dict):
        row = [_MISSING] * model.n_features
        for name, value in features.items():
            column = model.columns.get(name)
            if column is not None:
                row[column] = number_of(model, column, value, settings, which, name)
            elif settings.unknown == "error":
                raise RequestError(
                    422,
                    f"{which}: the model has no feature {quoted(name)}; leave it out, or start the "
                    "server with --unknown ignore.",
                )
        return row
    if len(features) != model.n_features:
        raise RequestError(
            422,
            f"{which} has {len(features)} features, the model has {model.n_features}; send "
            "features by name if some are missing.",
        )
    return [
        number_of(model, column, value, settings, which, column)
        for column, value in enumerate(features)
    ]


def number_of(
    model: RuntimeModel,
    column: int,
    value: float | str | bool | None,
    settings: Settings,
    which: str,
    feature: str | int,
) -> float:
    """Return the number of a value in its column: the code of a category, NaN if missing.

    A category that the model does not know counts as missing.
    """
    if value is None:
        return _MISSING
    codes = model.coded.get(column)
    if codes is None:
        if isinstance(value, str):
            place = f".features[{feature}]" if isinstance(feature, int) else f".features.{feature}"
            raise RequestError(
                422, f"{which}{place[:80]} must be a number; null is a missing value."
            )
        return float(value)  # true is 1
    code = codes.get(value)
    name = list(model.columns)[column]
    if code is None and not isinstance(value, str) and all(isinstance(k, str) for k in codes):
        raise RequestError(
            422, f"{which}: feature {quoted(name)} is a category; give it as text, not {value!r}."
        )
    if code is None and settings.missing == "error":
        raise RequestError(
            422,
            f"{which}: the model does not know the category {quoted(value)} of feature "
            f"{quoted(name)}; send one that it knows, or start the server with --missing nan.",
        )
    return _MISSING if code is None else float(code)


def refuse_missing(model: RuntimeModel, X: AnyArray, where: str) -> None:
    """Raise if a document lacks a feature."""
    missing = np.isnan(X)
    if missing.any():
        row, column = divmod(int(missing.argmax()), X.shape[1])
        raise RequestError(
            422,
            f"{where}documents[{row}] has no feature {quoted(list(model.columns)[column])}; send "
            "it, or start the server with --missing nan.",
        )


# --- npy ---------------------------------------------------------------------------------------


def npy_lists(kind: type[Any], body: bytes, query_string: bytes) -> list[AskedList]:
    """Return the one list of an npy body."""
    fields = address_fields(kind, query_string)
    X = npy_matrix(body)
    return [AskedList(fields.pop("query", None), len(X), partial(_checked, X), **fields)]


def npy_matrix(body: bytes) -> AnyArray:
    """Return the matrix of an npy body, without a copy."""
    stream = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(stream)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"version {version[0]}.{version[1]} is not 1.0 or 2.0")
        shape, fortran, dtype = readers[version](stream, max_header_size=_MAX_HEADER)
    except Exception as error:  # a damaged header can raise nearly anything in NumPy's parser
        reason = str(error).partition("\n")[0].rstrip(".")[:200]
        raise RequestError(400, f"the body is not in the npy format: {reason}.") from None
    if len(shape) != 2 or dtype.str not in ("<f4", "<f8"):
        raise RequestError(
            422, "an npy body must be a matrix of float32 or float64, a row for each document."
        )
    rows, columns = shape
    size = len(body) - stream.tell()
    if min(shape) < 0 or rows * columns * dtype.itemsize != size:
        raise RequestError(
            400,
            f"a matrix of {rows} x {columns} {dtype} does not have the {size} bytes of the body.",
        )
    values = np.frombuffer(body, dtype, rows * columns, stream.tell())
    return values.reshape(columns, rows).T if fortran else values.reshape(rows, columns)


def _checked(X: AnyArray, model: RuntimeModel, settings: Settings, where: str) -> F64:
    """Return a matrix as writable float64, for which the kernels are compiled, after checks."""
    if X.shape[1] != model.n_features:
        raise RequestError(
            422, f"{where}documents have {X.shape[1]} features, the model has {model.n_features}."
        )
    if np.isinf(X).any():
        row, column = divmod(int(np.isinf(X).argmax()), X.shape[1])
        name = quoted(list(model.columns)[column])
        raise RequestError(
            422,
            f"{where}documents[{row}]: feature {name} must be a finite number; NaN is a missing "
            "value.",
        )
    if settings.missing == "error":
        refuse_missing(model, X, where)
    for column, codes in model.coded.items():
        values, n = X[:, column], len(codes)
        wrong = ~np.isnan(values) & ((values < 0) | (values >= n) | (values != np.floor(values)))
        if wrong.any():
            raise RequestError(
                422,
                f"{where}documents[{wrong.argmax()}]: feature {quoted(list(model.columns)[column])}"
                f" is a category; in a matrix it is its number from 0 to {n - 1}.",
            )
    return np.array(X, np.float64, order="C")


def address_fields(kind: type[Any], query_string: bytes) -> dict[str, Any]:
    """Return ``query``, ``top``, ``per_group`` and ``explain`` of an address, checked."""
    allowed = ("query", *(COUNTS if kind is RankRequest else ()))
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(query_string),
            errors="strict",
            max_num_fields=len(COUNTS) + 1,
        )
    except ValueError:
        raise RequestError(
            422, f"the address must have name=value after its ?; names are {', '.join(allowed)}."
        ) from None
    fields: dict[str, Any] = {}
    for name, text in pairs:
        if name not in allowed or name in fields:
            problem = "is there twice" if name in fields else "is not a field of a request"
            raise RequestError(422, f"{quoted(name)} in the address {problem}.")
        if name == "query":
            if len(text) > MAX_NAME:
                raise RequestError(422, f"query must have at most {MAX_NAME} characters.")
            fields[name] = text
        elif not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= MAX_COUNT:
            raise RequestError(422, f"{name} must be a whole number from 1 to {MAX_COUNT}.")
        else:
            fields[name] = int(text)
    return fields
