"""Requests as arrays: a matrix in NumPy's npy format, or a table as an Arrow IPC stream.

A row is a document. What JSON has beside the documents (``query``, ``top``, ``per_group``,
``explain``) is in the address, behind a question mark. Nothing is unpickled: the header of an npy
body is matched against the one form that a matrix of floats has, and its size against that of the
body, before anything is allocated. Of an Arrow stream, compressed buffers are refused before they
are read, as their size is not that of the body; then Arrow checks all offsets and texts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.errors import quoted
from rankwright.persist.runtime import RuntimeModel
from rankwright.serve.json_bodies import first_marked, number_of, refuse_holes
from rankwright.serve.schemas import (
    MAX_COUNT,
    MAX_NAME,
    AskedList,
    RankBatch,
    RankRequest,
    RequestError,
    ScoreBatch,
    Strict,
)
from rankwright.serve.settings import Settings

_COUNTS = ("top", "per_group", "explain")
_MANY = (RankBatch, ScoreBatch)


def address_schema(kind: type[Strict]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field that an address may have for a kind of request."""
    fields = RankRequest.model_json_schema()["properties"]
    return {name: fields[name] for name in _allowed(kind)}


def _allowed(kind: type[Strict]) -> tuple[str, ...]:
    counts = _COUNTS if kind in (RankRequest, RankBatch) else ()
    return counts if kind in _MANY else ("query", *counts)


def refuse_fields(query_string: bytes) -> None:
    """Refuse the address of a JSON request that has fields of a request."""
    for name in ("query", *_COUNTS):
        if re.search(rb"(^|&)%s=" % name.encode(), query_string):
            raise RequestError(
                422, f"with JSON, {name} is a field of the body, not of the address."
            )


def address_fields(kind: type[Strict], query_string: bytes) -> dict[str, Any]:
    """Return ``query``, ``top``, ``per_group`` and ``explain`` of an address, checked."""
    found: dict[str, Any] = {}
    allowed = _allowed(kind)
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(query_string),
            errors="strict",
            max_num_fields=len(_COUNTS) + 1,
        )
    except ValueError:
        raise RequestError(
            422,
            f"behind its ? the address has name=value; names are {', '.join(allowed) or 'none'}.",
        ) from None
    for name, text in pairs:
        if name not in allowed or name in found:
            problem = "is there twice" if name in found else "is not a field of a request"
            raise RequestError(422, f"{quoted(name)} in the address {problem}.")
        if name == "query":
            if len(text) > MAX_NAME:
                raise RequestError(422, f"query must have at most {MAX_NAME} characters.")
            found[name] = text
        elif not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= MAX_COUNT:
            raise RequestError(422, f"{name} must be a whole number from 1 to {MAX_COUNT}.")
        else:
            found[name] = int(text)
    return found


# --- npy ---------------------------------------------------------------------------------------


_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    rb"\{\s*'descr':\s*'<(f[48])',\s*'fortran_order':\s*(True|False),\s*"
    rb"'shape':\s*\((\d{1,10}),\s*(\d{1,10}),?\s*\),?\s*\}\s*"
)
_LONGEST_HEADER = 1 << 12


def npy_lists(kind: type[Strict], body: bytes, query_string: bytes) -> list[AskedList]:
    """Return the one list of an npy body."""
    if kind in _MANY:
        raise RequestError(
            415, "an npy body holds one list; send many as JSON, or as Arrow with a column 'query'."
        )
    fields = address_fields(kind, query_string)
    X = npy_matrix(body)
    return [AskedList(fields.pop("query", None), len(X), partial(_checked, X), **fields)]


def npy_matrix(body: bytes) -> AnyArray:
    """Return the matrix of an npy body, which is not copied."""
    if not body.startswith(_MAGIC) or len(body) < 12:
        raise RequestError(400, "the body does not begin as an npy file does.")
    wide = body[6] in (2, 3)
    if not wide and body[6] != 1:
        raise RequestError(400, f"the npy version {body[6]} is not known; send 1, 2 or 3.")
    first = 12 if wide else 10
    length = struct.unpack_from("<I" if wide else "<H", body, 8)[0]
    if length > _LONGEST_HEADER or first + length > len(body):
        raise RequestError(400, "the header of the npy body is too long.")
    match = _HEADER.fullmatch(body, first, first + length)
    if match is None:
        raise RequestError(
            422, "an npy body must be a matrix of float32 or float64, a row for each document."
        )
    kind, fortran, rows, columns = (
        match[1].decode(),
        match[2] == b"True",
        int(match[3]),
        int(match[4]),
    )
    held = len(body) - first - length
    if rows * columns * int(kind[1]) != held:
        raise RequestError(
            400,
            f"a matrix of {rows} x {columns} {kind} does not have the {held} bytes of the body.",
        )
    values = np.frombuffer(body, f"<{kind}", rows * columns, first + length)
    return values.reshape(columns, rows).T if fortran else values.reshape(rows, columns)


def _checked(X: AnyArray, model: RuntimeModel, settings: Settings, where: str) -> AnyArray:
    """Return a matrix in the columns of a model, its values checked, and as the kernels are ready.

    That is as doubles, which hold every single-precision number and are scored alike, and as a copy
    that may be written to: for a read-only array Numba would compile all kernels once more.
    """
    if X.shape[1] != model.n_features:
        raise RequestError(
            422, f"{where}documents have {X.shape[1]} features, the model has {model.n_features}."
        )
    finite = np.isfinite(X)
    if not finite.all():
        infinite = np.isinf(X)
        if infinite.any():
            which, feature = first_marked(model, infinite, where)
            raise RequestError(
                422,
                f"{which}: feature {feature} must be a finite number; NaN is a missing value.",
            )
        if settings.missing == "error":
            refuse_holes(model, X, where)
    for column, known in model.coded.items():
        _refuse_codes(model, X[:, column], column, len(known), where)
    return np.array(X, np.float64, order="C")


def _refuse_codes(
    model: RuntimeModel, codes: AnyArray, column: int, known: int, where: str
) -> None:
    """Refuse what is not the code of a category: whole numbers from 0, in the model's order."""
    with np.errstate(invalid="ignore"):
        bad = ~((codes >= 0) & (codes < known) & (codes == np.floor(codes)) | np.isnan(codes))
    if bad.any():
        raise RequestError(
            422,
            f"{where}documents[{bad.argmax()}]: feature {quoted(list(model.columns)[column])} is a "
            f"category; in a matrix it is its number from 0 to {known - 1}.",
        )


# --- Arrow -------------------------------------------------------------------------------------


_HEADER_KINDS = {1: "schema", 2: "dictionary", 3: "record batch"}
_ROLES = ("query", "id", "group")
_CATEGORIES = "texts, numbers or truth values"
_CATEGORY_KINDS = ("is_integer", "is_floating", "is_boolean")


def arrow_lists(kind: type[Strict], body: bytes, query_string: bytes) -> list[AskedList]:
    """Return the lists of an Arrow stream; in a batch, a list is a run of rows of one query."""
    fields = address_fields(kind, query_string)
    table = arrow_table(body)
    if kind not in _MANY:
        return [_asked(table, _one_query(table, fields.pop("query", None)), fields)]
    if "query" not in table.schema.names:
        raise RequestError(422, "a batch needs a column 'query', the query of each document.")
    names = _names(table, "query")
    if None in names:
        raise RequestError(422, f"documents[{names.index(None)}] has no query.")
    starts = [row for row, name in enumerate(names) if row == 0 or name != names[row - 1]]
    if len(starts) != len(set(names)):
        raise RequestError(422, "the documents of a query must stand together.")
    return [
        _asked(table.slice(first, end - first), names[first], fields)
        for first, end in pairwise([*starts, len(names)])
    ]


def _one_query(table: Any, given: str | None) -> Any:
    """Return the query of a list: that of the address, or of the column 'query'."""
    held = set(_names(table, "query")) if "query" in table.schema.names else set()
    if len(held) > 1 or (held and given is not None and {given} != set(map(str, held))):
        raise RequestError(
            422,
            "the column 'query' holds another query than the address, or several; send "
            "several to the address that ends in /batch.",
        )
    return held.pop() if held and given is None else given


def arrow_table(body: bytes) -> Any:
    """Return the rows of an Arrow stream as one record batch whose contents are checked."""
    pa = import_module("pyarrow")
    ipc = import_module("pyarrow.ipc")
    buffer = pa.py_buffer(body)
    options = ipc.IpcReadOptions(use_threads=False)
    try:
        for metadata in _messages(ipc, buffer):
            if _is_compressed(metadata):
                raise RequestError(422, "the Arrow stream is compressed; send it as it is.")
        with ipc.open_stream(buffer, options=options) as stream:
            batches = list(stream)
            schema = stream.schema
        if len(batches) == 1:
            table = batches[0]
        else:
            whole = pa.Table.from_batches(batches, schema).combine_chunks()
            table = (whole.to_batches() or [pa.RecordBatch.from_pylist([], schema)])[0]
        table.validate(full=True)
        names = table.schema.names
    except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise RequestError(400, f"the body is not an Arrow stream: {said}.") from None
    if len(set(names)) < len(names):
        raise RequestError(422, "the Arrow stream has two columns of the same name.")
    return table


def _messages(ipc: Any, buffer: Any) -> Iterator[bytes]:
    reader = ipc.MessageReader.open_stream(buffer)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        yield message.metadata.to_pybytes()


def _is_compressed(metadata: bytes) -> bool:
    """Whether a message of an Arrow stream has compressed buffers.

    Its metadata is a flatbuffer: a table begins with the offset of its list of fields, which holds
    the place of each. Arrow has verified it; reading elsewhere raises an error all the same.
    """
    root = struct.unpack_from("<I", metadata)[0]
    (kind,) = struct.unpack_from("<B", metadata, _field(metadata, root, 1) or root)
    header = _field(metadata, root, 2)
    if header is None or _HEADER_KINDS.get(kind) not in ("record batch", "dictionary"):
        return False
    batch: int | None = header + struct.unpack_from("<I", metadata, header)[0]
    if _HEADER_KINDS[kind] == "dictionary":
        assert batch is not None
        data = _field(metadata, batch, 1)
        batch = None if data is None else data + struct.unpack_from("<I", metadata, data)[0]
    return batch is not None and _field(metadata, batch, 3) is not None


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Return the place of a field of a table, or None where it is left out."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, fields + entry)[0] if entry + 2 <= size else 0
    return table + offset if offset else None


def _asked(table: Any, query: Any, fields: dict[str, Any]) -> AskedList:
    ids, groups = (
        _names(table, role) if role in table.schema.names else None for role in ("id", "group")
    )
    return AskedList(query, table.num_rows, partial(_arrow_columns, table), ids, groups, **fields)


def _names(table: Any, role: str) -> list[Any]:
    """Return the texts or whole numbers of a column."""
    found = _values(table, role, "texts or whole numbers", ("is_integer",))
    if any(type(name) is str and len(name) > MAX_NAME for name in found):
        raise RequestError(422, f"column {quoted(role)}: at most {MAX_NAME} characters each.")
    return found


def _values(table: Any, name: str, wanted: str, kinds: Sequence[str]) -> list[Any]:
    """Return the values of a column of texts or of the kinds named; no text is copied twice."""
    column, types = table.column(name), import_module("pyarrow").types
    coded = types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    if not any(getattr(types, test)(kind) for test in ("is_string", "is_large_string", *kinds)):
        raise RequestError(422, f"column {quoted(name)} holds {column.type}; send {wanted}.")
    if not coded:
        return list(column.to_pylist())
    known = column.dictionary.to_pylist()
    return [None if code is None else known[code] for code in column.indices.to_pylist()]


def _arrow_columns(table: Any, model: RuntimeModel, settings: Settings, where: str) -> AnyArray:
    """Return the features of a table: one column of vectors, or a column for each feature."""
    pa = import_module("pyarrow")
    names = table.schema.names
    if "features" in names and "features" not in model.columns:
        vectors = table.column("features")
        kind = vectors.type
        if not pa.types.is_fixed_size_list(kind) or not _is_float(pa, kind.value_type):
            raise RequestError(
                422, f"column 'features' holds {kind}; send fixed-size lists of float or double."
            )
        if vectors.null_count:
            raise RequestError(422, f"{where}documents[{_first_null(vectors)}] has no features.")
        others = [name for name in names if name != "features"]
        _refuse_unknown(others, {}, settings)
        flat = vectors.flatten().to_numpy(zero_copy_only=False)
        return _checked(flat.reshape(len(vectors), kind.list_size), model, settings, where)
    _refuse_unknown(names, model.columns, settings)
    return _checked(_by_name(pa, table, model, settings, where), model, settings, where)


def _by_name(pa: Any, table: Any, model: RuntimeModel, settings: Settings, where: str) -> AnyArray:
    """Return the columns of the model's features; those that are not there hold NaN."""
    kinds = {field.name: field.type for field in table.schema if field.name in model.columns}
    numeric = [
        name
        for name, column in model.columns.items()
        if name in kinds and column not in model.coded
    ]
    for name in numeric:
        if pa.types.is_boolean(kinds[name]):  # true is 1
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.uint8()))
        elif not _is_float(pa, kinds[name]) and not pa.types.is_integer(kinds[name]):
            raise RequestError(422, f"column {quoted(name)} holds {kinds[name]}; send numbers.")
    X: AnyArray = np.full((table.num_rows, model.n_features), np.nan)
    if numeric:
        values = table.select(numeric).to_tensor(null_to_nan=True, row_major=True).to_numpy()
        X[:, [model.columns[name] for name in numeric]] = values
    for name in kinds:
        column = model.columns[name]
        if column in model.coded:
            X[:, column] = [
                number_of(model, column, value, settings, f"{where}documents[{row}]", name)
                for row, value in enumerate(_values(table, name, _CATEGORIES, _CATEGORY_KINDS))
            ]
    return X


def _refuse_unknown(names: Sequence[str], known: dict[str, int], settings: Settings) -> None:
    for name in names:
        if name not in known and name not in _ROLES and settings.unknown == "error":
            raise RequestError(
                422,
                f"the model has no feature {quoted(name)}; leave the column out, or start the "
                "server with --unknown ignore.",
            )


def _is_float(pa: Any, kind: Any) -> bool:
    return kind in (pa.float32(), pa.float64())


def _first_null(column: Any) -> int:
    return int(column.is_null().to_numpy(zero_copy_only=False).argmax())
