"""LETOR text to ranking data, some text at a time: lines, blocks of rows, queries.

- `Text` is whole lines, cut at line ends into chunks that depend on the text alone; kernels read
  the chunks on several threads.
- `BlockReader` turns a text into a `Block` of arrays: survey it, allocate, parse it, name its rows.
  It keeps what goes from block to block: whether ids start at 0 or 1, and how many lines came
  before.
- `joined` and `assemble` put blocks together and cut them into queries; `read_whole_queries` does
  so part by part, for files larger than memory.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from scipy import sparse as sp

from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.data import letor_kernels as kernels
from rankwright.data.ranking_data import PartsDifferError, RankingData, group_rows
from rankwright.errors import DataError

if TYPE_CHECKING:
    from rankwright.data.letor import ReadOptions

_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Text:
    """Whole lines, cut into chunks for the kernels; the last may lack its newline."""

    def __init__(self, buffer: bytes | mmap.mmap, *, starts_file: bool = False) -> None:
        self.buffer = buffer
        self.bytes = np.frombuffer(buffer, np.uint8)
        start = len(_BYTE_ORDER_MARK) if starts_file and buffer[:3] == _BYTE_ORDER_MARK else 0
        end = max(start, buffer.rfind(b"\n") + 1)
        self.pieces = [(self.bytes, 0, _cuts(buffer, start, end))] if start < end else []
        if end < len(buffer):  # a last line without its newline: a copy that has one
            last = buffer[end:] + b"\n"
            self.pieces.append((np.frombuffer(last, np.uint8), end, np.array([0, len(last)])))

    def line_from(self, at: int) -> bytes:
        """Return the line that starts at ``at``."""
        end = self.buffer.find(b"\n", at)
        return self.buffer[at:] if end < 0 else self.buffer[at:end]

    def start_of_line(self, at: int) -> int:
        """Return where the line that holds ``at`` starts."""
        return self.buffer.rfind(b"\n", 0, at) + 1

    def lines_before(self, at: int) -> int:
        """Count the newlines before ``at``."""
        steps = range(0, at, _CHUNK)
        return sum(int((self.bytes[i : min(i + _CHUNK, at)] == 10).sum()) for i in steps)


def stream_blocks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield whole lines in blocks of about ``size`` bytes; a longer line makes a longer block."""
    rest = b""
    while piece := stream.read(max(size, len(rest))):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join((rest, memoryview(piece)[:cut]))
            rest = piece[cut:]
        else:
            rest += piece
    if rest:
        yield rest


def text_array(strings: list[str]) -> AnyArray:
    """Return an array of fixed width, or of objects where one long text would blow that up."""
    lengths = [len(string) for string in strings]
    if wastes_memory(max(lengths, default=0), len(lengths), sum(lengths)):
        array = np.empty(len(strings), object)
        array[:] = strings
        return array
    return np.array(strings, dtype=str)


def wastes_memory(width: int, count: int, letters: int) -> bool:
    """Whether ``count`` texts of ``letters`` in all should not all be as wide as the longest."""
    return width * count > 8 * letters + (1 << 20)


def _cuts(buffer: bytes | mmap.mmap, start: int, end: int) -> I64:
    cuts = [start]
    while cuts[-1] < end:
        at = buffer.find(b"\n", cuts[-1] + _CHUNK, end)
        cuts.append(end if at < 0 else at + 1)
    return np.array(cuts, np.int64)


# --- blocks of text to arrays ----------------------------------------------------------------


_SAMPLE_FROM, _SAMPLE_STEP = 128, 16  # chunks; below, a further kernel costs more than it saves
_ROWS_PER_RANGE = 1 << 16
_SPARSE_BELOW, _SPARSE_OVER = 0.2, 256
_TOP = {"float64": np.inf, "float32": 2.0**128 - 2.0**103}  # what no longer rounds below inf
_FEATURE_ID = re.compile(rb"(?<![^ \t\r])(\d+):")


@dataclass(frozen=True, slots=True)
class Totals:
    """What has been seen of a file so far."""

    lines: int = 0
    rows: int = 0
    values: int = 0
    highest_id: int = -1
    other_ids: int = 0
    comments: int = 0

    @classmethod
    def of(cls, counts: I64) -> Totals:
        """Return the totals of what `kernels.survey` counted."""
        columns = kernels.LINES, kernels.ROWS, kernels.VALUES, kernels.OTHER_IDS, kernels.COMMENTS
        lines, rows, values, other_ids, comments = counts[:, columns].sum(axis=0).tolist()
        highest_id = int(counts[:, kernels.HIGHEST_ID].max(initial=-1))
        return cls(lines, rows, values, highest_id, other_ids, comments)

    def __add__(self, more: Totals) -> Totals:
        return Totals(
            self.lines + more.lines,
            self.rows + more.rows,
            self.values + more.values,
            max(self.highest_id, more.highest_id),
            self.other_ids + more.other_ids,
            self.comments + more.comments,
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """How features are laid out."""

    width: int
    sparse: bool


@dataclass(slots=True)
class Block:
    """Rows that were read: run r of one query id starts at row ``run_starts[r]``."""

    X: FloatMatrix
    y: F64
    run_starts: I64
    run_ids: list[str]
    doc_id: AnyArray | None
    spans: I64

    def without_spans(self) -> Block:
        """Return the rows without their places in the text."""
        return replace(self, spans=np.empty((0, 4), np.int64))

    def head(self, rows: int) -> Block:
        """Return the first ``rows`` rows, which end where a run does."""
        runs = int(np.searchsorted(self.run_starts, rows))
        doc_id = None if self.doc_id is None else self.doc_id[:rows]
        starts, ids = self.run_starts[:runs], self.run_ids[:runs]
        return Block(self.X[:rows], self.y[:rows], starts, ids, doc_id, self.spans[:rows])


@dataclass(slots=True)
class BlockReader:
    """Reads the blocks of one file in their order."""

    name: str
    options: ReadOptions
    lines: int = 0
    base: int | None = field(init=False)

    def __post_init__(self) -> None:
        zero_based = self.options.zero_based
        self.base = None if zero_based == "auto" else 1 - int(zero_based)

    @property
    def has_qid(self) -> bool:
        """Whether lines name their query."""
        return self.options.group_sizes is None

    def survey(self, text: Text) -> I64:
        """Count what each chunk of ``text`` holds; the first features decide where ids start."""
        parts = [np.empty((0, kernels.SURVEYED), np.int64)]
        for array, origin, cuts in text.pieces:
            counts = np.empty((len(cuts) - 1, kernels.SURVEYED), np.int64)
            self._map(kernels.survey, np.arange(len(cuts)), cuts, array, counts)
            counts[:, kernels.FEATURES_AT] += np.where(
                counts[:, kernels.FEATURES_AT] < 0, 0, origin
            )
            parts.append(counts)
        counts = np.concatenate(parts)
        self._settle_base(text, counts)
        return counts

    def layout(self, totals: Totals) -> Layout:
        """Choose the layout of rows with these totals."""
        options, base = self.options, self._base
        most = (
            options.max_feature_id if options.n_features is None else options.n_features - 1 + base
        )
        width = options.n_features
        if width is None:
            width = max(0, min(totals.highest_id, most) + 1 - base)
        if totals.highest_id > most:  # there is a bad line, which needs no table to be found
            return Layout(width, sparse=True)
        sparse = options.sparse
        if sparse is None:
            thin = totals.values < _SPARSE_BELOW * totals.rows * width
            sparse = options.absent == "zero" and width > _SPARSE_OVER and thin
        if not sparse:
            self._refuse_too_large(totals.rows * width * np.dtype(options.dtype).itemsize)
        return Layout(width, sparse)

    def read(self, text: Text) -> tuple[Block, Totals]:
        """Read all lines of ``text``, in the layout that suits them."""
        if (counts := self._sampled(text)) is not None:
            layout = self.layout(Totals.of(counts))
            if not layout.sparse and layout.width <= _SPARSE_OVER:
                arrays = self._parse(text, counts, layout)
                if not (arrays.spans[:, 1] == kernels.LEFT_TO_PYTHON).any():
                    return self._block(text, arrays, layout), Totals.of(counts)
        counts = self.survey(text)
        return self.read_as(text, counts, self.layout(Totals.of(counts))), Totals.of(counts)

    def read_as(self, text: Text, counts: I64, layout: Layout) -> Block:
        """Read all lines of ``text`` in this layout."""
        arrays = self._parse(text, counts, layout)
        self._read_odd_lines(text, arrays, self._rules(layout))
        return self._block(text, arrays, layout)

    def raise_at(
        self, text: Text, at: int, sentence: object, kind: type[DataError] = DataError
    ) -> NoReturn:
        """Raise `DataError` on the line of ``text`` that holds ``at``."""
        line = self.lines + text.lines_before(at) + 1
        raise kind(f"{self.name}, line {line}: {sentence}") from None

    # --- inner -------------------------------------------------------------------------------

    @property
    def _base(self) -> int:
        return 1 if self.base is None else self.base

    def _settle_base(self, text: Text, counts: I64) -> None:
        places = counts[:, kernels.FEATURES_AT]
        if self.base is None and (places >= 0).any():
            first = text.line_from(int(places[places >= 0][0])).partition(b"#")[0]
            self.base = 1 - any(not name.strip(b"0") for name in _FEATURE_ID.findall(first))

    def _rules(self, layout: Layout) -> kernels.Rules:
        options = self.options
        fill = options.absent == "missing"
        return kernels.Rules(
            self.has_qid, self._base, layout.width, float(_TOP[options.dtype]), fill
        )

    def _map(self, kernel: Any, bounds: I64, *arrays: Any) -> None:
        map_ranges(kernel, bounds, *arrays, n_jobs=self.options.n_jobs)

    def _sampled(self, text: Text) -> I64 | None:
        """Return what `survey` would, guessed from some chunks; None where that is not promising.

        Only the number of rows is sure. If a line then has a feature beyond the guessed highest,
        it is left to Python, which shows that the guess was wrong.
        """
        whole_file = isinstance(text.buffer, mmap.mmap)
        if not whole_file or len(text.pieces) != 1:
            return None
        array, _, cuts = text.pieces[0]
        n = len(cuts) - 1
        lines, others = np.empty(n, np.int64), np.empty(n, np.int64)
        if n < _SAMPLE_FROM:
            return None
        self._map(kernels.count_lines, np.arange(n + 1), cuts, array, lines, others)
        if others.any():
            return None
        counts = np.full((n, kernels.SURVEYED), -1, np.int64)
        for chunk in range(0, n, _SAMPLE_STEP):
            kernels.survey(chunk, chunk + 1, cuts, array, counts)
        self._settle_base(text, counts[:1])  # a later chunk need not hold the first features
        if self.base is None:
            return None
        counts[:, kernels.LINES] = counts[:, kernels.ROWS] = lines
        return counts

    def _parse(self, text: Text, counts: I64, layout: Layout) -> kernels.Rows:
        first = np.zeros((len(counts) + 1, 2), np.int64)
        np.cumsum(counts[:, [kernels.ROWS, kernels.VALUES]], axis=0, out=first[1:])
        n_rows, n_values = first[-1].tolist()
        rules = self._rules(layout)
        y, spans = np.empty(n_rows), np.empty((n_rows, 4), np.int64)
        index = np.int32 if max(n_values, layout.width) < 2**31 else np.int64
        ends = np.zeros(n_rows + 1 if layout.sparse else 0, index)
        indices = np.empty(n_values if layout.sparse else 0, index)
        n_stored = n_values if layout.sparse else n_rows * layout.width
        make = np.zeros if isinstance(text.buffer, mmap.mmap) else _pages
        arrays = kernels.Rows(y, make(n_stored, self.options.dtype), indices, ends, spans)
        places = (indices, ends) if layout.sparse else (None, None)
        chunk = 0
        for array, origin, cuts in text.pieces:
            into = (first[chunk:], rules, arrays, *places)
            self._map(kernels.parse, np.arange(len(cuts)), cuts, array, origin, *into)
            chunk += len(cuts) - 1
        return arrays

    def _block(self, text: Text, arrays: kernels.Rows, layout: Layout) -> Block:
        shape = (len(arrays.y), layout.width)
        X: FloatMatrix
        if layout.sparse:
            X = sp.csr_array((arrays.out, arrays.indices, arrays.ends), shape=shape)
        else:
            X = arrays.out.reshape(shape)
        starts, ids = np.empty(0, np.int64), list[str]()
        if self.has_qid:
            starts, ids = self._query_ids(text, arrays.spans)
        return Block(X, arrays.y, starts, ids, self._documents(text, arrays.spans), arrays.spans)

    def _read_odd_lines(self, text: Text, arrays: kernels.Rows, rules: kernels.Rules) -> None:
        """Read in Python the lines the kernels left, in their order; the first bad one raises."""
        y, out, indices, ends, spans = arrays
        for row in np.flatnonzero(spans[:, 1] == kernels.LEFT_TO_PYTHON).tolist():
            start = int(spans[row, 0])
            try:
                line = kernels.read_line(text.line_from(start), rules, limit=self._limit())
            except DataError as error:
                if self.has_qid:
                    self._query_ids(text, spans[:row])  # a bad id above would be the first error
                self.raise_at(text, start, error)
            y[row] = line.grade
            name, length = line.document or (0, kernels.NO_COMMENT)
            spans[row] = start + line.qid[0], line.qid[1], start + name, length
            if len(ends):
                kept = [k for k, zeros in enumerate(line.only_zeros) if not zeros]
                kept.sort(key=line.columns.__getitem__)
                slots = slice(int(ends[row]), int(ends[row + 1]))
                indices[slots] = [line.columns[k] for k in kept]
                out[slots] = [line.values[k] for k in kept]
            else:
                out[row * rules.width + np.array(line.columns, np.int64)] = line.values

    def _limit(self) -> str:
        if self.options.n_features is not None:
            return f"too high for n_features={self.options.n_features}"
        return (
            f"above {self.options.max_feature_id}; if that is meant, pass a higher "
            "max_feature_id (--read max_feature_id=...)"
        )

    def _query_ids(self, text: Text, spans: I64) -> tuple[I64, list[str]]:
        """Return where runs of one query id start, and these ids."""
        marks = np.empty(len(spans), np.bool_)
        kernels.mark_runs(text.bytes, spans, marks)
        starts = np.flatnonzero(marks)
        ids = []
        for at, length in spans[starts, :2].tolist():
            try:
                ids.append(text.buffer[at : at + length].decode())
            except UnicodeDecodeError:
                self.raise_at(text, at, "the query id is not UTF-8 text.")
        return starts, ids

    def _documents(self, text: Text, spans: I64) -> AnyArray | None:
        """Return the documents' names, None where no line has a comment."""
        lengths = np.maximum(spans[:, 3], 0)
        if not self.options.doc_ids or (spans[:, 3] == kernels.NO_COMMENT).all():
            return None
        width = max(1, int(lengths.max()))
        if not wastes_memory(width, len(lengths), int(lengths.sum())):
            letters = np.zeros((len(lengths), width), np.uint32)
            other = np.zeros(len(lengths), np.bool_)
            bounds = row_ranges(len(lengths), _ROWS_PER_RANGE)
            self._map(kernels.copy_ascii, bounds, text.bytes, spans, letters, other)
            if not other.any():
                return letters.view(f"U{width}").reshape(-1)
        places = zip(spans[:, 2].tolist(), lengths.tolist(), strict=True)
        return text_array([text.buffer[at : at + n].decode(errors="replace") for at, n in places])

    def _refuse_too_large(self, size: int) -> None:
        if hasattr(os, "sysconf") and size > os.sysconf("SC_PHYS_PAGES") * os.sysconf(
            "SC_PAGE_SIZE"
        ):
            raise DataError(
                f"{self.name} would take {size / 2**30:,.0f} GiB as a dense table, more than there "
                "is memory; pass sparse=True (--sparse), or read it in parts."
            )


def _pages(n: int, dtype: str) -> AnyArray:
    """Return zeros that go back to the system when let go; malloc would keep those of blocks."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if os.name == "posix" else {}
    pages = mmap.mmap(-1, max(1, n * np.dtype(dtype).itemsize), **private)
    return np.frombuffer(pages, dtype, count=n)


# --- blocks to data --------------------------------------------------------------------------


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_int64(text: str) -> bool:
    """Whether ``text`` is an int64 as Python writes it: 7 or -7, but not 007."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def assemble(
    block: Block, options: ReadOptions, sizes: I64 | None, *, integers: bool
) -> RankingData:
    """Cut the rows of ``block`` into queries, by ``sizes`` or else by their ids."""
    n, doc_id = len(block.y), block.doc_id
    if sizes is not None:
        return RankingData.from_arrays(block.X, block.y, group_sizes=sizes, doc_id=doc_id)
    number: dict[str, int] = {}
    run_query = np.array([number.setdefault(name, len(number)) for name in block.run_ids])
    ids = np.array(list(map(int, number)), np.int64) if integers else text_array(list(number))
    if options.lists == "adjacent":  # runs may meet where blocks do
        new = np.append(True, run_query[1:] != run_query[:-1])
        indptr = np.append(block.run_starts[new], n).astype(np.int64)
        return RankingData(block.X, block.y, indptr, ids[run_query[new]], doc_id=doc_id)
    lengths = np.diff(np.append(block.run_starts, n))
    indptr, _, row = group_rows(np.repeat(run_query, lengths))
    X, y = block.X, block.y
    if row is not None:
        X, y, doc_id = X[row], y[row], None if doc_id is None else doc_id[row]
    return RankingData(X, y, indptr, ids, doc_id=doc_id, row=row)


def joined(blocks: list[Block], layout: Layout, options: ReadOptions) -> Block:
    """Return one block with the rows of all; the features of each are let go once copied."""
    if len(blocks) == 1:
        return blocks[0]
    X = (_joined_csr if layout.sparse else _joined_dense)(blocks, layout.width, options)
    rows = [len(block.y) for block in blocks]
    first = np.cumsum([0, *rows[:-1]])
    starts = [block.run_starts + lo for block, lo in zip(blocks, first, strict=True)]
    doc_id = None
    if any(block.doc_id is not None for block in blocks):
        named = [block.doc_id for block in blocks]
        unnamed = [np.zeros(n, "U1") for n in rows]
        pairs = zip(named, unnamed, strict=True)
        doc_id = np.concatenate([b if a is None else a for a, b in pairs])
    y = np.concatenate([block.y for block in blocks])
    ids = [name for block in blocks for name in block.run_ids]
    return Block(X, y, np.concatenate(starts), ids, doc_id, np.empty((0, 4), np.int64))


def _joined_dense(blocks: list[Block], width: int, options: ReadOptions) -> FloatMatrix:
    hi = sum(len(block.y) for block in blocks)
    X = np.zeros((hi, width), options.dtype)
    for block in reversed(blocks):  # last first, as that is how memory goes back to the system
        part, block.X = block.X, X[:0]
        lo = hi - part.shape[0]
        if isinstance(part, sp.csr_array):  # toarray() would add to 0, and so lose -0.0
            X[np.repeat(np.arange(lo, hi), np.diff(part.indptr)), part.indices] = part.data
        else:
            X[lo:hi, : part.shape[1]] = part
        if options.absent == "missing":
            X[lo:hi, part.shape[1] :] = np.nan
        hi = lo
    return X


def _joined_csr(blocks: list[Block], width: int, options: ReadOptions) -> FloatMatrix:
    parts = []
    for block in blocks:
        parts.append(_csr(block.X))
        block.X = np.empty((0, width))
    row, hi = sum(part.shape[0] for part in parts), sum(part.nnz for part in parts)
    index = np.int32 if max(hi, width) < 2**31 else np.int64
    data, indices, ends = np.empty(hi, options.dtype), np.empty(hi, index), np.empty(row + 1, index)
    ends[0] = 0
    while parts:
        part = parts.pop()
        lo, first = hi - part.nnz, row - part.shape[0]
        data[lo:hi], indices[lo:hi] = part.data, part.indices
        ends[first + 1 : row + 1] = part.indptr[1:] + index(lo)
        row, hi = first, lo
    return sp.csr_array((data, indices, ends), shape=(len(ends) - 1, width))


def _csr(X: Any) -> Any:
    """Return ``X`` as CSR with -0.0, which SciPy's own conversion would drop."""
    if sp.issparse(X):
        return X
    kept = (X != 0) | np.signbit(X)
    ends = np.append(0, np.cumsum(kept.sum(axis=1)))
    return sp.csr_array((X[kept], np.nonzero(kept)[1], ends), shape=X.shape)


# --- files larger than memory ----------------------------------------------------------------


def read_whole_queries(
    stream: BinaryIO,
    size: int,
    reader: BlockReader,
    layout: Layout,
    totals: Totals,
    sizes: I64 | None,
) -> Iterator[RankingData]:
    """Yield data of about ``size`` bytes of text each; ``totals`` are those of the whole file.

    The text of a last query that may go on is kept for the next part. Where lines have no query
    ids, ``sizes`` says how many rows each query has.
    """
    seen: set[str] = set()
    first_query = 0
    blocks, kept, starts_file = stream_blocks(stream, size), b"", True
    while True:
        fresh = _at_least(blocks, len(kept))  # as much again: a long query is not read too often
        if not (kept or fresh):
            return
        text = Text(kept + fresh, starts_file=starts_file)
        block = reader.read_as(text, reader.survey(text), layout)
        taken = None if sizes is None else _whole(sizes[first_query:], len(block.y))
        rows = len(block.y)
        if taken is not None:
            rows = int(taken.sum())
        elif fresh and rows:
            rows = int(block.run_starts[-1])
        cut = len(kept) + len(fresh)
        if rows < len(block.y):
            cut = text.start_of_line(int(block.spans[rows, 0]))
        if rows:
            part = block.head(rows)
            if reader.options.lists == "by_id":
                _refuse_returning(part, seen, reader, text)
            if part.doc_id is None and reader.options.doc_ids and totals.comments:
                part.doc_id = np.zeros(rows, "U1")
            data = assemble(part, reader.options, taken, integers=totals.other_ids == 0)
            if taken is not None:
                data = replace(data, qid=data.qid + first_query)
                first_query += len(taken)
            yield data
        kept, starts_file = text.buffer[cut:], starts_file and cut == 0
        reader.lines += text.lines_before(cut)


def _at_least(blocks: Iterator[bytes], size: int) -> bytes:
    taken = []
    while size >= 0 and (block := next(blocks, b"")):
        taken.append(block)
        size -= len(block)
    return b"".join(taken)


def _whole(sizes: I64, rows: int) -> I64:
    """Return the sizes of the queries that ``rows`` rows hold wholly."""
    return sizes[: np.searchsorted(np.cumsum(sizes), rows, side="right")]


def _refuse_returning(part: Block, seen: set[str], reader: BlockReader, text: Text) -> None:
    for row, name in zip(part.run_starts.tolist(), part.run_ids, strict=True):
        if name in seen:
            reader.raise_at(
                text,
                int(part.spans[row, 0]),
                f"query {name} comes back after other queries; sort the file by query, "
                "or read it as a whole.",
                PartsDifferError,
            )
    seen.update(part.run_ids)
