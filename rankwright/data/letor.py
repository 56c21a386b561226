"""LETOR and svmlight text: ``<grade> qid:<query id> <feature id>:<value> ... # comment``.

- Feature column j has the id j + 1, or j if a line of the file has a feature with id 0. Features
  that a line omits are 0, or missing with ``absent="missing"``. ``NULL``, ``null``, ``NaN``,
  ``nan`` and ``NA`` are missing values.
- Numbers are parsed exactly as by ``float``; float32 features are these numbers, rounded.
- Query ids are any text without blanks. They become int64 if all are integers. The rows of a query
  need not be adjacent.
- Document ids are comments: the word after ``docid =``, or else the whole comment.
- Blank lines, lines with only a comment, CRLF, tabs and a byte order mark are allowed.

A file is mapped into memory. Compressed files and pipes are first copied to a temporary file. The
text is cut into chunks of lines: one pass over the chunks counts rows and values, a second pass
parses them into arrays, both with several threads. `rankwright.data.letor_kernels` has the parser.
Written numbers have the fewest digits that identify them, so reading them gives the same bits.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

import msgspec
import numpy as np
from scipy import sparse

from rankwright.core.parallel import map_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.data import letor_kernels as kernels
from rankwright.data.formats import Format
from rankwright.data.ranking_data import (
    FeatureIds,
    PartsDifferError,
    RankingData,
    checked_sizes,
    group_rows,
)
from rankwright.data.streams import display_name, open_bytes, open_target, reads_file
from rankwright.errors import DataError, UsageError, brief
from rankwright.registry import EXTENSIONS

_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OLD_MAC_LINES = re.compile(rb"qid:[^\r]*\r[ \t]*[^ \t\r]+[ \t]+qid:")
_HIGHEST_ID = 1 << 26
_SPARSE_BELOW, _SPARSE_OVER = 0.2, 256
_LIMIT = {"float64": np.inf, "float32": 2.0**128 - 2.0**103}  # which float32 rounds to infinity


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of `Letor.read`; invalid values raise `UsageError`.

    Parameters
    ----------
    dtype
        Type of the features: float64 or float32.
    zero_based
        Whether feature ids start at 0 (True) or 1 (False). By default they start at 0 if the file
        has a feature with id 0.
    absent
        Value of features that a line omits: ``"zero"`` or ``"missing"`` (NaN).
    sparse
        CSR (True) or dense (False). By default dense, unless there are more than 256 features and
        less than 20 % of the values are not 0. CSR omits zeros.
    n_features
        Number of features, if the file may lack the last ones.
    lists
        ``"by_id"`` joins all rows with the same query id. With ``"adjacent"`` only adjacent rows
        are one list, as in RankLib.
    group_sizes
        Number of rows of each query, for a file without ``qid:``.
    grades
        If False, lines may begin with ``qid:``, for documents that are only ranked.
    n_jobs
        Number of threads; None uses all cores.
    """

    dtype: Literal["float64", "float32"] = "float64"
    zero_based: bool | Literal["auto"] = "auto"
    absent: Literal["zero", "missing"] = "zero"
    sparse: bool | None = None
    n_features: int | None = None
    lists: Literal["by_id", "adjacent"] = "by_id"
    group_sizes: AnyArray | None = None
    grades: bool = True
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        choices = {
            "dtype": ("float64", "float32"),
            "zero_based": ("auto", True, False),
            "absent": ("zero", "missing"),
            "sparse": (None, True, False),
            "lists": ("by_id", "adjacent"),
        }
        with suppress(TypeError):
            object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name} must be one of {', '.join(map(repr, allowed))}, "
                    f"not {getattr(self, name)!r}."
                )
        if self.sparse and self.absent == "missing":
            raise UsageError("absent='missing' makes a dense table; leave out sparse=True.")
        if self.n_features is not None and self.n_features < 0:
            raise UsageError(f"n_features must be 0 or more, not {self.n_features}.")
        if self.group_sizes is not None:
            object.__setattr__(self, "group_sizes", checked_sizes(self.group_sizes))


class Letor:
    """LETOR and svmlight text files with ``qid:``, plain or compressed."""

    @staticmethod
    def read(path: str | Path, **options: Any) -> RankingData:
        """Read a file (``-`` is standard input) with the options of `ReadOptions`."""
        file = _File(path, ReadOptions(**options))
        rows = file.parse(file.chunks, file.counts)
        file.refuse_empty()
        return file.to_ranking_data(rows, all(map(_is_int64, rows.ids)))

    @staticmethod
    def read_parts(
        path: str | Path, *, part_bytes: int = 1 << 26, **options: Any
    ) -> Iterator[RankingData]:
        """Yield a file larger than memory in parts of whole queries, of one number of features.

        The text is read twice, first to find the number of features. A query with rows in two
        parts is an error. A file without query ids is one part.

        Parameters
        ----------
        part_bytes
            Approximate bytes of text in a part. A part with a longer query is longer.
        **options
            As for `read`.
        """
        if part_bytes < 1:
            raise UsageError(f"part_bytes must be 1 or more, not {part_bytes}.")
        file = _File(path, ReadOptions(**options))
        if file.options.group_sizes is not None:
            part_bytes = len(file.text)
        yield from _parts(file, part_bytes)
        file.refuse_empty()  # last, because an error in a line says more

    @staticmethod
    def starts_at_zero(path: str | Path, *, n_jobs: int | None = None) -> bool:
        """Return whether a feature has the id 0."""
        return _File(path, ReadOptions(sparse=True, n_jobs=n_jobs)).first_id == 0

    @staticmethod
    def write(
        data: RankingData, path: str | Path, *, zeros: bool | None = None, zero_based: bool = False
    ) -> None:
        """Write ``data`` to a file (``-`` is standard output).

        The format has no weights, groups, positions, feature names or queries without documents.

        Parameters
        ----------
        zeros
            Whether to write zeros. By default those of dense features and those that a sparse
            matrix stores.
        zero_based
            Whether feature ids start at 0 instead of 1.
        """
        with Letor.open_writer(path, zeros=zeros, zero_based=zero_based) as writer:
            writer.append(data)

    @staticmethod
    @contextmanager
    def open_writer(
        path: str | Path, *, zeros: bool | None = None, zero_based: bool = False
    ) -> Iterator[LetorWriter]:
        """Open a file to which `LetorWriter.append` writes queries; options as for `write`."""
        with open_target(path) as stream:
            yield LetorWriter(stream, zeros, 0 if zero_based else 1)


# --- reading ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rows:
    """Parsed lines, which are runs of rows with the same query id.

    Parameters
    ----------
    X, y
        Features and grades.
    spans
        Start and end of the query id and of the document id in the text, see `kernels.parse`.
    starts, ids
        First row and query id of each run.
    """

    X: FloatMatrix
    y: F64
    spans: I64
    starts: I64
    ids: list[str]

    def head(self, n: int) -> _Rows:
        """Return the first ``n`` rows, which end with a run."""
        runs = int(np.searchsorted(self.starts, n))
        return _Rows(self.X[:n], self.y[:n], self.spans[:n], self.starts[:runs], self.ids[:runs])


class _File:
    """The text of a file, and the number, first id and layout of its features."""

    def __init__(self, path: str | Path, options: ReadOptions) -> None:
        self.name, self.options, self.text = display_name(path), options, _mapped(path)
        self.start = len(_BYTE_ORDER_MARK) if self.text[:3] == _BYTE_ORDER_MARK else 0
        if _OLD_MAC_LINES.search(self.text[: self.text.find(b"\n")]):
            raise DataError(
                f"{self.name}, line 1: lines end in carriage returns only, as on old Macs; "
                "convert them to newlines first (tr '\\r' '\\n')."
            )
        self.chunks = self.cut(self.start, len(self.text))
        self.counts = counts = self.survey(self.chunks)
        self.n_rows, n_values = counts[:, [kernels.ROWS, kernels.VALUES]].sum(axis=0).tolist()
        self.has_comments = bool(counts[:, kernels.COMMENTS].any())
        lowest = counts[:, kernels.LOWEST_ID].min(initial=1)
        highest = int(counts[:, kernels.HIGHEST_ID].max(initial=-1))
        starts_at_zero = lowest == 0 if options.zero_based == "auto" else options.zero_based
        self.first_id: Literal[0, 1] = 0 if starts_at_zero else 1
        limit, width = _HIGHEST_ID, options.n_features
        if width is None:
            width = max(0, min(highest, limit) + 1 - self.first_id)
        else:
            limit = width - 1 + self.first_id
        self.width: int = width
        self.sparse = bool(options.sparse)
        if highest > limit:  # an error, which can be found without a dense table
            self.sparse = True
        elif options.sparse is None:
            thin = n_values < _SPARSE_BELOW * self.n_rows * self.width
            self.sparse = options.absent == "zero" and self.width > _SPARSE_OVER and thin
        size = self.n_rows * self.width * np.dtype(options.dtype).itemsize
        if not self.sparse and size > _memory_bytes():
            raise DataError(
                f"{self.name} would take {size / 2**30:,.0f} GiB as a dense table, more than there "
                "is memory; pass sparse=True (--sparse), or read it in parts."
            )
        sizes = options.group_sizes
        if self.n_rows and sizes is not None and sizes.sum() != self.n_rows:
            raise DataError(
                f"{self.name} has {self.n_rows} data lines, but the sizes of the queries add up to "
                f"{sizes.sum()}."
            )

    def cut(self, start: int, end: int) -> list[tuple[int, AnyArray]]:
        """Cut lines into chunks that end with a newline; return their positions and bytes."""
        content, chunks = np.frombuffer(self.text, np.uint8), []
        while start < end:
            stop = self.text.find(b"\n", start + _CHUNK, end) + 1 or end
            chunk = content[start:stop]
            if chunk[-1] != ord("\n"):
                chunk = np.frombuffer(self.text[start:stop] + b"\n", np.uint8)
            chunks.append((start, chunk))
            start = stop
        return chunks

    def survey(self, chunks: list[tuple[int, AnyArray]]) -> I64:
        """Return the counts of `kernels.survey` for each chunk."""
        counts = np.empty((len(chunks), kernels.N_COUNTS), np.int64)

        def survey(chunk: int, _: int) -> None:
            kernels.survey(chunks[chunk][1], counts[chunk])

        map_ranges(survey, np.arange(len(chunks) + 1), n_jobs=self.options.n_jobs)
        return counts

    def parse(self, chunks: list[tuple[int, AnyArray]], counts: I64) -> _Rows:
        """Parse chunks with the counts of `survey`."""
        options = self.options
        cuts = np.zeros((len(chunks) + 1, 2), np.int64)
        np.cumsum(counts[:, [kernels.ROWS, kernels.VALUES]], axis=0, out=cuts[1:])
        n, n_values = cuts[-1].tolist()
        y, spans = np.empty(n), np.empty((n, 4), np.int64)
        index = np.int32 if max(n_values, self.width) < 2**31 else np.int64
        values = np.zeros(n_values if self.sparse else n * self.width, options.dtype)
        indices = np.empty(n_values if self.sparse else 0, index)
        ends = np.zeros(n + 1, index)
        errors: list[tuple[int, int, str] | None] = [None] * len(chunks)

        def parse(chunk: int, _: int) -> None:
            position, lines = chunks[chunk]
            (row, k), (last_row, last_k) = cuts[chunk : chunk + 2].tolist()
            rows, here = slice(row, last_row), ends[row + 1 : last_row + 1]
            matrix: _Matrix = values[k:last_k], indices[k:last_k], here
            if not self.sparse:
                matrix = values[row * self.width : last_row * self.width], None, None
                if options.absent == "missing":
                    matrix[0][:] = np.nan
            error = self._parse_chunk(lines, y[rows], spans[rows], *matrix)
            spans[rows] += np.where(spans[rows] < 0, 0, position)
            here += index(k)
            if error is not None:
                errors[chunk] = row + error[0], position + error[1], error[2]

        map_ranges(parse, np.arange(len(chunks) + 1), n_jobs=options.n_jobs)
        error = next((error for error in errors if error is not None), None)
        runs = self._runs(spans[: n if error is None else error[0]])
        if error is not None:
            self.raise_at(*error[1:])
        shape = n, self.width
        X = sparse.csr_array((values, indices, ends), shape) if self.sparse else None
        return _Rows(values.reshape(shape) if X is None else X, y, spans, *runs)

    def _parse_chunk(
        self,
        lines: AnyArray,
        y: F64,
        spans: I64,
        values: AnyArray,
        indices: AnyArray | None,
        ends: AnyArray | None,
    ) -> tuple[int, int, str] | None:
        """Fill the arrays of a chunk; return row, position and reason of the first invalid line."""
        options, content = self.options, lines.tobytes()
        limit = float(_LIMIT[options.dtype])
        has_qid = options.group_sizes is None
        rules = kernels.Rules(options.grades, has_qid, self.first_id, self.width, limit)
        position = row = k = 0
        while True:
            position, row, k = kernels.parse(
                lines, position, row, k, rules, y, spans, values, indices, ends
            )
            if position == len(content):
                return None
            end = content.index(b"\n", position)
            try:
                line = kernels.read_line(content[position:end], rules, self._highest_id())
            except DataError as reason:
                return row, position, str(reason)
            y[row] = line.grade
            spans[row] = [place if place < 0 else position + place for place in line.spans]
            if indices is None or ends is None:
                values[row * self.width + np.array(line.columns, np.int64)] = line.values
            else:
                for column, value, stored in zip(*line[1:4], strict=True):
                    if stored:
                        values[k], indices[k] = value, column
                        k += 1
                ends[row] = k
            position, row = end + 1, row + 1

    def _runs(self, spans: I64) -> tuple[I64, list[str]]:
        """Return the first row and the query id of each run of rows with the same id."""
        starts: list[int] = []
        ids: list[str] = []
        rows = np.flatnonzero(spans[:, 0] < spans[:, 1])
        for row, (start, end) in zip(rows.tolist(), spans[rows, :2].tolist(), strict=True):
            try:
                query_id = self.text[start:end].decode()
            except UnicodeDecodeError:
                self.raise_at(start, "the query id is not UTF-8 text.")
            if not ids or ids[-1] != query_id:  # a run may continue in the next chunk
                starts.append(row)
                ids.append(query_id)
        return np.array(starts, np.int64), ids

    def _highest_id(self) -> str:
        if self.options.n_features is not None:
            return f"too high for n_features={self.options.n_features}"
        return f"above {_HIGHEST_ID}; number the features from 1 without gaps"

    def raise_at(self, position: int, reason: str, kind: type[DataError] = DataError) -> NoReturn:
        """Raise an error on the line at a position."""
        content, line = np.frombuffer(self.text, np.uint8), 1
        for start in range(0, position, _CHUNK):
            stop = min(start + _CHUNK, position)
            line += int(np.count_nonzero(content[start:stop] == ord("\n")))
        raise kind(f"{self.name}, line {line}: {reason}")

    def refuse_empty(self) -> None:
        """Raise if there are no data lines, or no features."""
        if not self.n_rows:
            raise DataError(f"{self.name} has no data lines.")
        if not self.width and self.options.n_features is None:
            raise DataError(f"{self.name} names no feature on any line; is it a LETOR file?")

    def to_ranking_data(self, rows: _Rows, integers: bool) -> RankingData:
        """Group rows into queries, by their sizes or else by their query ids."""
        X, y, doc_id, sizes = (
            rows.X,
            rows.y,
            self._document_ids(rows.spans),
            self.options.group_sizes,
        )
        feature_ids = FeatureIds(self.first_id, self.options.zero_based == "auto")
        if sizes is not None:
            data = RankingData.from_arrays(X, y, group_sizes=sizes, doc_id=doc_id)
            return replace(data, feature_ids=feature_ids)
        number: dict[str, int] = {}
        query = np.array([number.setdefault(name, len(number)) for name in rows.ids])
        ids = np.array(list(map(int, number)), np.int64) if integers else _strings(list(number))
        indptr = np.append(rows.starts, len(y))
        if self.options.lists == "adjacent":
            return RankingData(X, y, indptr, ids[query], doc_id=doc_id, feature_ids=feature_ids)
        indptr, _, row = group_rows(np.repeat(query, np.diff(indptr)))
        if row is not None:
            X, y, doc_id = X[row], y[row], None if doc_id is None else doc_id[row]
        return RankingData(X, y, indptr, ids, doc_id=doc_id, row=row, feature_ids=feature_ids)

    def _document_ids(self, spans: I64) -> AnyArray | None:
        if not self.has_comments:
            return None
        lengths = spans[:, 3] - spans[:, 2]
        ids = _text_array(len(lengths), int(lengths.max(initial=0)), int(lengths.sum()))
        for first in range(0, len(spans), _ROWS_PER_BLOCK):  # few Python strings at a time
            block = spans[first : first + _ROWS_PER_BLOCK]
            places = zip(block[:, 2].tolist(), block[:, 3].tolist(), strict=True)
            texts = [self.text[start:end].decode(errors="replace") for start, end in places]
            ids[first : first + _ROWS_PER_BLOCK] = texts
        return ids


_ROWS_PER_BLOCK = 1 << 14
_Matrix = tuple[AnyArray, AnyArray | None, AnyArray | None]
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def _mapped(path: str | Path) -> mmap.mmap | bytes:
    """Return a file mapped into memory; a compressed file or a pipe is copied to disk first."""
    with open_bytes(path) as stream, tempfile.TemporaryFile() as copy:
        file: Any = stream
        is_plain = reads_file(stream) and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
        if not is_plain or stream.tell():
            shutil.copyfileobj(stream, copy, _CHUNK)
            copy.flush()
            file = copy
        empty = os.fstat(file.fileno()).st_size == 0  # which cannot be mapped
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _memory_bytes() -> float:
    """Return the size of the main memory; infinity if the system does not tell."""
    if not hasattr(os, "sysconf"):
        return np.inf
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _is_int64(text: str) -> bool:
    """Return whether ``text`` is an int64 as Python writes it: 7 or -7, but not 007."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def _strings(texts: list[str]) -> AnyArray:
    lengths = [len(text) for text in texts]
    array = _text_array(len(texts), max(lengths, default=0), sum(lengths))
    array[:] = texts
    return array


def _text_array(count: int, longest: int, total: int) -> AnyArray:
    """Return an array for texts: of fixed width unless one long text would waste memory."""
    if longest * count > 8 * total + (1 << 20):
        return np.empty(count, object)
    return np.empty(count, f"U{max(1, longest)}")


# --- files larger than memory ----------------------------------------------------------------

_UNUSUAL_ID = re.compile(rb"qid:(?!(?:0|-?[1-9][0-9]{0,17})[ \t\r\n#])([^ \t\r\n#]*)")


def _parts(file: _File, part_bytes: int) -> Iterator[RankingData]:
    """Yield the queries in parts; the last query of a part may continue, so it is parsed again."""
    position, size, integers = file.start, part_bytes, not _has_text_ids(file)
    ids: set[str] = set()
    while position < len(file.text):
        end = file.text.find(b"\n", position + size) + 1 or len(file.text)
        chunks = file.cut(position, end)
        rows = file.parse(chunks, file.survey(chunks))
        n = len(rows.y)
        if end < len(file.text) and n:
            n = int(rows.starts[-1])
        if n < len(rows.y):
            end = file.text.rfind(b"\n", 0, rows.spans[n, 0]) + 1
        size = part_bytes if n else 2 * size
        position = end if n or not len(rows.y) else position
        if n and (file.width or file.options.n_features is not None):
            rows = rows.head(n)
            if file.options.lists == "by_id":
                _refuse_known_ids(file, rows, ids)
            yield file.to_ranking_data(rows, integers)


def _has_text_ids(file: _File) -> bool:
    """Return whether a query id is not an int64; comments may contain ``qid:`` too."""
    for match in _UNUSUAL_ID.finditer(file.text):
        line = file.text[file.text.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        if b"#" not in line and not _is_int64(match[1].decode(errors="replace")):
            return True
    return False


def _refuse_known_ids(file: _File, rows: _Rows, ids: set[str]) -> None:
    for row, query_id in zip(rows.starts.tolist(), rows.ids, strict=True):
        if query_id in ids:
            file.raise_at(
                int(rows.spans[row, 0]),
                f"query {query_id} appears again after other queries; sort the file by query, "
                "or read it as a whole.",
                PartsDifferError,
            )
    ids.update(rows.ids)


# --- writing ---------------------------------------------------------------------------------

_VALUES_PER_BLOCK = 1 << 18
_BAD_QUERY_ID = re.compile(r"[\x00-\x20#]|\A\Z")
_BAD_DOC_ID = re.compile(r"[\x00\n]|\A[ \t\r]|[ \t\r]\Z|\Adocid[ \t\r]*=[ \t\r]*[^ \t\r]")


class LetorWriter:
    """Write queries to a LETOR file, part after part; see `Letor.open_writer`."""

    def __init__(self, stream: BinaryIO, zeros: bool | None, first_id: int) -> None:
        self._stream, self._zeros, self._first_id = stream, zeros, first_id
        self._last_query: str | None = None

    def append(self, data: RankingData) -> None:
        """Write the queries of ``data``."""
        starts_file = self._last_query is None
        queries = [name.encode() for name in self._checked_ids(data)]
        query_of_row = data.query_of_row().tolist()
        values = data.X.nnz if sparse.issparse(data.X) else data.X.size
        step = max(1, _VALUES_PER_BLOCK * data.n_documents // max(1, values))
        for first in range(0, data.n_documents, step):
            rows = slice(first, min(first + step, data.n_documents))
            lines = zip(
                _texts(data.y[rows]),
                [queries[query] for query in query_of_row[rows]],
                self._features(data.X[rows], starts_file and first == 0),
                _comments(data.doc_id, rows),
                strict=True,
            )
            self._stream.write(b"".join([b"%b qid:%b%b%b\n" % line for line in lines]))

    def _checked_ids(self, data: RankingData) -> list[str]:
        ids = [str(name) for name in data.qid.tolist()]
        for name, size in zip(ids, data.sizes.tolist(), strict=True):
            if _BAD_QUERY_ID.search(name) or not _is_unicode(name):
                raise DataError(
                    f"query id {brief(name)} cannot be written as LETOR text, which needs one "
                    "word without '#'; use other query ids."
                )
            if size and name == self._last_query:
                raise DataError(
                    f"two lists in a row have the query id {name}, which LETOR text would make "
                    "one list; give them different ids."
                )
            self._last_query = name if size else self._last_query
        return ids

    def _features(self, X: Any, starts_file: bool) -> list[bytes]:
        """Return the features of each row, each after a blank."""
        is_dense = not sparse.issparse(X)
        if is_dense if self._zeros is None else self._zeros:
            X = X if is_dense else X.toarray()
            ids, values = np.tile(np.arange(X.shape[1]), len(X)), X.reshape(-1)
            ends = np.arange(1, len(X) + 1) * X.shape[1]
        else:
            X = sparse.csr_array(X)
            ids, values, ends = X.indices, X.data, X.indptr[1:]
        texts = list(zip((ids + np.int64(self._first_id)).tolist(), _texts(values), strict=True))
        cuts = [0, *ends.tolist()]
        rows = [texts[start:end] for start, end in pairwise(cuts)]
        if starts_file and X.shape[1]:  # so that readers find the first and the last feature id
            edges = {0, self._first_id + X.shape[1] - 1} if self._first_id == 0 else {X.shape[1]}
            rows[0] = sorted({**dict.fromkeys(edges, b"0"), **dict(rows[0])}.items())
        return [b"".join([b" %d:%b" % feature for feature in row]) for row in rows]


def _texts(values: AnyArray) -> list[bytes]:
    """Return the shortest decimal of each number that is read as the same number."""
    if np.isinf(values).any():
        raise DataError("a feature is infinite; use NaN for a missing value.")
    numbers = values.astype(np.float64)
    if values.dtype == np.float32:
        short = values.astype("S32").astype(np.float64)
        numbers = np.where(short.astype(np.float32) == values, short, numbers)
    text = msgspec.json.encode(numbers.tolist())[1:-1] + b","
    return text.replace(b".0,", b",").replace(b"null", b"NaN").split(b",")[: len(values)]


def _comments(doc_id: AnyArray | None, rows: slice) -> list[bytes]:
    if doc_id is None:
        return [b""] * (rows.stop - rows.start)
    names = [str(name) for name in doc_id[rows].tolist()]
    for row, name in enumerate(names, rows.start):
        if _BAD_DOC_ID.search(name) or not _is_unicode(name):
            raise DataError(
                f"doc id {brief(name)} of row {row} cannot be written as a LETOR comment, which "
                "must be one line without blanks at its ends and without 'docid ='; give the "
                "documents other ids."
            )
    return [b" # %b" % name.encode() if name else b" #" for name in names]


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace").decode() == text


LETOR = Format(
    description="LETOR and svmlight text files with ``qid:``, plain or compressed.",
    extensions=EXTENSIONS["letor"],
    read=Letor.read,
    read_options=tuple(option.name for option in fields(ReadOptions)),
    write=Letor.write,
    write_options=("zeros", "zero_based"),
    read_parts=Letor.read_parts,
    open_writer=Letor.open_writer,
)
