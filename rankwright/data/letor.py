"""LETOR and svmlight text: ``<grade> qid:<query id> <feature id>:<value> ... # comment``.

- Feature column j is the id j + 1, or j where ids start at 0; an id that a line does not name is 0
  (or missing, with ``absent="missing"``); ``NULL``, ``null``, ``NaN``, ``nan``, ``NA`` are missing.
- Numbers are read exactly as ``float`` reads them; float32 is the rounding of that.
- Query ids are any text without blanks; where all are integers they become int64. Rows of one
  query may stand anywhere in the file.
- Comments name documents: by the word after ``docid =``, or else by the whole comment.
- Blank lines, lines of comment, CRLF, tabs and a byte order mark are allowed.

A plain file is mapped into memory and never copied: one pass of kernels counts, arrays of the
right size are made, a second pass fills them. Compressed files and pipes are read block by block.
From bytes to data: this file opens the text and chooses what is read when, `letor_parts` turns text
into arrays and arrays into data, `letor_kernels` parses lines and numbers. What is written is read
back bit for bit: each number has the fewest digits that identify it.
"""

from __future__ import annotations

import io
import mmap
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from scipy import sparse as sp

from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import I64, AnyArray
from rankwright.data import letor_kernels as kernels
from rankwright.data.formats import Format
from rankwright.data.letor_parts import (
    BlockReader,
    Layout,
    Text,
    Totals,
    assemble,
    is_int64,
    joined,
    read_whole_queries,
    stream_blocks,
)
from rankwright.data.ranking_data import RankingData, checked_sizes
from rankwright.data.streams import display_name, open_bytes, open_target, reads_file
from rankwright.errors import DataError, UsageError, brief
from rankwright.registry import EXTENSIONS

_STREAM_BLOCK = 1 << 23
_NO_GRADE = re.compile(rb"^(\xef\xbb\xbf)?[ \t]*qid:", re.MULTILINE)
_LINES_IN_A_LINE = re.compile(rb"qid:[^\r]*\r[ \t]*[^ \t\r]+[ \t]+qid:")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What `Letor.read` takes; a value that cannot be raises `UsageError`."""

    dtype: Literal["float64", "float32"] = "float64"
    zero_based: bool | Literal["auto"] = "auto"
    absent: Literal["zero", "missing"] = "zero"
    sparse: bool | None = None
    n_features: int | None = None
    doc_ids: bool = True
    lists: Literal["by_id", "adjacent"] = "by_id"
    max_feature_id: int = 1 << 26
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
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))
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
        if not 0 < self.max_feature_id < 2**31 - 1:
            raise UsageError(
                f"max_feature_id must be from 1 to 2^31 - 2, not {self.max_feature_id}."
            )


def _dtype_name(dtype: object) -> str:
    try:
        return np.dtype(dtype).name  # type: ignore[call-overload, no-any-return]
    except TypeError:
        return str(dtype)


class Letor:
    """LETOR and svmlight text files with ``qid:``, plain or compressed."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["letor"]

    @staticmethod
    def read(
        path: str | Path,
        *,
        dtype: Literal["float64", "float32"] = "float64",
        zero_based: bool | Literal["auto"] = "auto",
        absent: Literal["zero", "missing"] = "zero",
        sparse: bool | None = None,
        n_features: int | None = None,
        doc_ids: bool = True,
        lists: Literal["by_id", "adjacent"] = "by_id",
        max_feature_id: int = 1 << 26,
        group_sizes: Any = None,
        grades: bool = True,
        n_jobs: int | None = None,
    ) -> RankingData:
        """Read a file (``-`` is standard input).

        Parameters
        ----------
        dtype
            Of the features: float64 or float32.
        zero_based
            Whether the lowest feature id is 0 (True) or 1 (False). By default the first line with
            features decides: if it names 0, ids start at 0. A 0 later on is then an error.
        absent
            What a feature is that a line does not name: ``"zero"`` or ``"missing"`` (NaN).
        sparse
            CSR (True) or dense (False); by default dense, unless fewer than 20 % of the values
            are other than 0 and there are over 256 features. CSR leaves out written zeros.
        n_features
            How many features there are, where the file may not name the last ones.
        doc_ids
            Whether to keep the comments as names of documents.
        lists
            ``"by_id"`` puts all rows of one id together; with ``"adjacent"`` an id that comes
            back after others is a list of its own, as in RankLib.
        max_feature_id
            A higher id is an error.
        group_sizes
            For a file without ``qid:``: how many rows each query has.
        grades
            False: lines may begin with ``qid:``, where documents are only to be ranked.
        """
        options = ReadOptions(
            dtype=dtype,
            zero_based=zero_based,
            absent=absent,
            sparse=sparse,
            n_features=n_features,
            doc_ids=doc_ids,
            lists=lists,
            max_feature_id=max_feature_id,
            group_sizes=group_sizes,
            grades=grades,
            n_jobs=n_jobs,
        )
        reader = BlockReader(display_name(path), options)
        blocks, totals = [], Totals()
        with open_bytes(path) as opened:
            stream = opened if grades else _with_grades(opened)
            for text in _texts(stream, reader.name):
                block, here = reader.read(text)
                blocks.append(block.without_spans())
                totals += here
                reader.lines = totals.lines
        layout = reader.layout(totals)
        _refuse_empty(reader, totals, layout)
        sizes = _checked_sizes(reader, totals)
        block = joined(blocks, layout, options)
        return assemble(block, options, sizes, integers=all(map(is_int64, set(block.run_ids))))

    @staticmethod
    def read_parts(
        path: str | Path, *, part_bytes: int = 1 << 26, **options: Any
    ) -> Iterator[RankingData]:
        """Yield a file larger than memory in parts of whole queries, of one number of features.

        The file is read twice, ``part_bytes`` of text at a time (more where one query has more):
        first to learn how many features there are. A query that comes back in a later part is
        an error, as it cannot be put together.

        Parameters
        ----------
        part_bytes
            About how much text a part holds.
        **options
            As of `read`.
        """
        if part_bytes < 1:
            raise UsageError(f"part_bytes must be 1 or more, not {part_bytes}.")
        chosen = ReadOptions(**options)
        reader = BlockReader(display_name(path), chosen)
        with _readable_twice(path) as reopen:
            totals = Totals()
            with reopen() as opened:
                stream = opened if chosen.grades else _with_grades(opened)
                for text in _texts(stream, reader.name, part_bytes):
                    totals += Totals.of(reader.survey(text))
            layout = reader.layout(totals)
            with reopen() as opened:
                stream = opened if chosen.grades else _with_grades(opened)
                sizes = _checked_sizes(reader, totals)
                parts = read_whole_queries(stream, part_bytes, reader, layout, totals, sizes)
                yield from (part for part in parts if _is_meant(layout, reader))
        _refuse_empty(reader, totals, layout)  # last, as a bad line says more

    @staticmethod
    def write(
        data: RankingData, path: str | Path, *, zeros: bool | None = None, zero_based: bool = False
    ) -> None:
        """Write ``data`` (to ``-``, standard output) so that reading it gives the same bits.

        Query and document weights, groups, positions, feature names and queries without documents
        have no place in this format.

        Parameters
        ----------
        zeros
            Whether values of 0 are written; by default all of dense features, and what a sparse
            matrix stores. Left out or not, they are read as 0, and their sign is kept.
        zero_based
            Whether feature ids start at 0; by default they start at 1.
        """
        with LetorWriter(path, zeros=zeros, zero_based=zero_based) as writer:
            writer.append(data)

    @staticmethod
    def open_writer(
        path: str | Path, *, zeros: bool | None = None, zero_based: bool = False
    ) -> LetorWriter:
        """Return a context manager whose ``append`` writes queries; options as of `write`."""
        return LetorWriter(path, zeros=zeros, zero_based=zero_based)


# --- text ------------------------------------------------------------------------------------


def _texts(stream: BinaryIO, name: str, size: int | None = None) -> Iterator[Text]:
    """Yield a plain file as one text, mapped into memory; all else, or with ``size``, in blocks."""
    blocks: Iterator[bytes | mmap.mmap] = stream_blocks(stream, size or _STREAM_BLOCK)
    if size is None and _is_plain_file(stream):
        empty = os.fstat(stream.fileno()).st_size == 0  # which cannot be mapped
        blocks = iter([] if empty else [mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)])
    for number, block in enumerate(blocks):
        text = Text(block, starts_file=number == 0)
        if number == 0 and _LINES_IN_A_LINE.search(text.line_from(0)):
            raise DataError(
                f"{name}, line 1: lines end in carriage returns alone, as on old Macs; let them "
                "end in newlines first (tr '\\r' '\\n')."
            )
        yield text


def _with_grades(stream: BinaryIO) -> BinaryIO:
    """Return a stream whose lines all begin with a grade, 0 where they began with ``qid:``."""
    if _is_plain_file(stream):
        head = stream.read(_STREAM_BLOCK)
        stream.seek(0)
        if not _NO_GRADE.search(head):
            return stream
    return _Graded(stream)  # type: ignore[return-value]


class _Graded(io.RawIOBase):
    """The text of a stream with a grade of 0 before each ``qid:`` that begins a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._blocks = stream_blocks(stream, _STREAM_BLOCK)
        self._held = b""

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        if not self._held:
            self._held = _NO_GRADE.sub(rb"\g<1>0 qid:", next(self._blocks, b""))
        piece = self._held if size < 0 else self._held[:size]
        self._held = self._held[len(piece) :]
        return piece


def _is_plain_file(stream: BinaryIO) -> bool:
    if not reads_file(stream) or not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return False
    return stream.tell() == 0


@contextmanager
def _readable_twice(
    path: str | Path,
) -> Iterator[Callable[[], AbstractContextManager[BinaryIO]]]:
    """Yield what opens ``path`` from its start, again and again; a pipe is first put on disk."""
    if str(path) != "-" and not Path(path).is_fifo():
        yield lambda: open_bytes(path)
        return
    with tempfile.TemporaryFile() as copy:
        with open_bytes(path) as stream:
            shutil.copyfileobj(stream, copy, _STREAM_BLOCK)

        def reopen() -> AbstractContextManager[BinaryIO]:
            copy.seek(0)
            return nullcontext(copy)

        yield reopen


# --- from blocks to data ---------------------------------------------------------------------


def _is_meant(layout: Layout, reader: BlockReader) -> bool:
    """Whether there are features, or none are asked for."""
    return layout.width > 0 or reader.options.n_features is not None


def _refuse_empty(reader: BlockReader, totals: Totals, layout: Layout) -> None:
    if not totals.rows:
        raise DataError(f"{reader.name} has no data lines.")
    if not _is_meant(layout, reader):
        raise DataError(f"{reader.name} names no feature on any line; is it a LETOR file?")


def _checked_sizes(reader: BlockReader, totals: Totals) -> I64 | None:
    if reader.options.group_sizes is None:
        return None
    sizes = checked_sizes(reader.options.group_sizes)
    if int(sizes.sum()) != totals.rows:
        raise DataError(
            f"{reader.name} has {totals.rows} data lines, but the sizes of the queries add up to "
            f"{int(sizes.sum())}."
        )
    return sizes


# --- writing ---------------------------------------------------------------------------------

_VALUES_PER_BLOCK = 1 << 18
_ROWS_PER_RANGE = 256
_BAD_QUERY_ID = re.compile(r"[\x00-\x20#]|\A\Z")
_BAD_DOC_ID = re.compile(r"[\x00\n]|\A[ \t\r]|[ \t\r]\Z|\Adocid[ \t\r]*=[ \t\r]*[^ \t\r]")


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
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._opened.__exit__(kind, error, trace)

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
                    f"query id {brief(name)} cannot be written as LETOR text, where an id is one "
                    "word without '#'; give the queries other ids."
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
        text = np.empty(int(ends[-1]) * kernels.ROOM, np.uint8)
        stops = np.empty(len(ends), np.int64)
        bounds = row_ranges(len(ends), _ROWS_PER_RANGE)
        map_ranges(
            kernels.write_rows,
            bounds,
            ends,
            ids,
            values,
            kernels.WRITING[X.dtype.name],
            text,
            stops,
        )
        starts = np.append(0, ends[:-1])
        written, places = (
            text.data,
            zip((starts * kernels.ROOM).tolist(), stops.tolist(), strict=True),
        )
        features = [bytes(written[start:stop]) for start, stop in places]
        for row in np.flatnonzero(stops == kernels.LEFT_TO_PYTHON).tolist():
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
                f"doc id {brief(name)} of row {rows.start + row} cannot be written as a LETOR "
                "comment, where it must be one line without blanks at its ends and without "
                "'docid ='; give the documents other ids."
            )
    return [b" # %b" % name.encode() if name else b" #" for name in names]


def _number(value: Any) -> bytes:
    """Return ``value`` as `letor_kernels.write_number` does, by Python's and NumPy's own means."""
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


LETOR = Format(
    description="LETOR and svmlight text files with ``qid:``, plain or compressed.",
    extensions=Letor.extensions,
    read=Letor.read,
    read_options=tuple(option.name for option in fields(ReadOptions)),
    write=Letor.write,
    write_options=("zeros", "zero_based"),
    read_parts=Letor.read_parts,
    open_writer=Letor.open_writer,
)
