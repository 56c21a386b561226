"""Writing LETOR text that reads back bit for bit: each number in the fewest digits that tell it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse as sp

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import I64, AnyArray
from rankwright.data.letor_numbers import WRITING, write_integer, write_number
from rankwright.data.ranking_data import RankingData
from rankwright.data.target import open_target
from rankwright.errors import DataError

_VALUES_PER_BLOCK = 1 << 18
_ROWS_PER_RANGE = 256
_ROOM = 40  # for a blank, an id of ten digits, a colon and a number
_BAD_QUERY_ID = re.compile(r"[\x00-\x20#]|\A\Z")
_BAD_DOC_ID = re.compile(r"[\x00\n]|\A[ \t\r]|[ \t\r]\Z|\Adocid[ \t\r]*=[ \t\r]*[^ \t\r]")
_LEFT_TO_PYTHON = -1

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _write_rows(lo, hi, ends, ids, values, how, text, stops):  # type: ignore[no-untyped-def]
    """Write `` <id>:<value>`` for every value of rows ``lo:hi``; row r has those up to ``ends[r]``.

    It goes to ``text[ends[r - 1] * room :]``, up to ``stops[r]``.
    """
    for row in range(lo, hi):
        start = ends[row - 1] if row > 0 else 0
        i = start * _ROOM
        for k in range(start, ends[row]):
            text[i] = 32
            i = write_integer(ids[k], text, i + 1)
            text[i] = 58
            i = write_number(np.float64(values[k]), how, text, i + 1)
            if i < 0:
                break
        stops[row] = i


# --- API -------------------------------------------------------------------------------------


class LetorWriter:
    """Writes queries to a LETOR file, part after part; see `Letor.open_writer`."""

    def __init__(
        self, path: str | Path, *, zeros: bool | None = None, zero_based: bool = False
    ) -> None:
        self._path, self._zeros, self._base = path, zeros, 0 if zero_based else 1
        self._last_query: str | None = None
        self._opened = ExitStack()
        self._stream: BinaryIO

    def __enter__(self) -> LetorWriter:
        self._stream = self._opened.enter_context(open_target(self._path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._opened.__exit__(kind, fault, trace)

    def append(self, data: RankingData) -> None:
        """Write the queries of ``data``."""
        starts_file = self._last_query is None
        queries = [name.encode() for name in self._checked_ids(data)]
        query_of_row = data.query_of_row()
        step = max(1, _VALUES_PER_BLOCK // max(1, _values_per_row(data.X)))
        for lo in range(0, data.n_documents, step):
            rows = slice(lo, min(lo + step, data.n_documents))
            grades = [_number(grade) for grade in data.y[rows].tolist()]
            features = self._features(data.X[rows], starts_file and lo == 0)
            names = _comments(data.doc_id, rows, len(grades))
            places = query_of_row[rows].tolist()
            lines = [
                b"%b qid:%b%b%b\n" % (grade, queries[q], feature, name)
                for grade, q, feature, name in zip(grades, places, features, names, strict=True)
            ]
            self._stream.write(b"".join(lines))

    def _checked_ids(self, data: RankingData) -> list[str]:
        ids = [str(name) for name in data.qid.tolist()]
        for name, size in zip(ids, data.sizes.tolist(), strict=True):
            if _BAD_QUERY_ID.search(name) or not _is_unicode(name):
                raise DataError(
                    f"query id {name!r} cannot be written as LETOR text, where an id is one word "
                    "without '#'; give the queries other ids."
                )
            if size and name == self._last_query:
                raise DataError(
                    f"two lists in a row have the query id {name}, which LETOR text would make "
                    "one list; give them different ids."
                )
            self._last_query = name if size else self._last_query
        return ids

    def _features(self, X: Any, starts_file: bool) -> list[bytes]:
        """Return the features of each row, with a blank before each."""
        every_id = not isinstance(X, sp.csr_array) if self._zeros is None else self._zeros
        if every_id:
            X = _dense(X) if isinstance(X, sp.csr_array) else X
            counts, ids = np.full(*X.shape), np.tile(np.arange(X.shape[1]), X.shape[0])
            values = np.asarray(X).reshape(-1)
        else:
            counts, ids, values = _stored(X)
            if starts_file and X.shape[1]:
                counts, ids, values = _with(X.shape[1] - 1, counts[0], counts, ids, values)
                if self._base == 0:
                    counts, ids, values = _with(0, 0, counts, ids, values)
        ends = np.cumsum(counts, dtype=np.int64)
        ids = ids + self._base
        text = np.empty(int(ends[-1]) * _ROOM, np.uint8)
        stops = np.empty(len(ends), np.int64)
        bounds = row_ranges(len(ends), _ROWS_PER_RANGE)
        map_ranges(_write_rows, bounds, ends, ids, values, WRITING[X.dtype.name], text, stops)
        starts = np.append(0, ends[:-1])
        written, places = text.data, zip((starts * _ROOM).tolist(), stops.tolist(), strict=True)
        features = [bytes(written[start:stop]) for start, stop in places]
        for row in np.flatnonzero(stops == _LEFT_TO_PYTHON).tolist():
            pairs = [(ids[k], values[k]) for k in range(starts[row], ends[row])]
            features[row] = b"".join(b" %d:%b" % (name, _number(value)) for name, value in pairs)
        return features


def _values_per_row(X: Any) -> int:
    return int(X.nnz // max(1, X.shape[0])) if isinstance(X, sp.csr_array) else int(X.shape[1])


def _dense(X: Any) -> AnyArray:
    """Return CSR as a table; ``toarray`` would add its values to 0, and so lose -0.0."""
    table = np.zeros(X.shape, X.dtype)
    table[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return table


def _stored(X: Any) -> tuple[I64, I64, AnyArray]:
    """Return how many values each row has that are not +0.0, their columns and themselves."""
    if isinstance(X, sp.csr_array):
        return np.diff(X.indptr), X.indices.astype(np.int64), np.asarray(X.data)
    kept = (X != 0) | np.signbit(X)
    return kept.sum(axis=1), np.nonzero(kept)[1], np.asarray(X[kept])


def _with(
    column: int, place: int, counts: I64, columns: I64, values: AnyArray
) -> tuple[I64, I64, AnyArray]:
    """Let the first row name ``column``, as its ``place``-th, so that a reader knows of it."""
    if column in columns[: counts[0]]:
        return counts, columns, values
    more = np.zeros_like(counts)
    more[0] = 1
    return counts + more, np.insert(columns, place, column), np.insert(values, place, 0.0)


def _comments(doc_id: AnyArray | None, rows: slice, n: int) -> list[bytes]:
    if doc_id is None:
        return [b""] * n
    names = [str(name) for name in doc_id[rows].tolist()]
    for row, name in enumerate(names):
        if _BAD_DOC_ID.search(name) or not _is_unicode(name):
            raise DataError(
                f"doc id {name!r} of row {rows.start + row} cannot be written as a LETOR comment, "
                "where it must be one line without blanks at its ends and without 'docid ='; give "
                "the documents other ids."
            )
    return [b" # %b" % name.encode() if name else b" #" for name in names]


def _number(value: Any) -> bytes:
    """Return ``value`` as `write_number` does, by Python's and NumPy's own means."""
    if np.isinf(value):
        raise DataError("a feature is infinite; use NaN for a missing value.")
    if np.isnan(value):
        return b"NaN"
    shortest = float(str(value))
    if type(value)(shortest) != value:  # a float32 whose digits a double rounds the other way
        shortest = float(value)
    return repr(shortest).removesuffix(".0").encode()


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace").decode() == text
