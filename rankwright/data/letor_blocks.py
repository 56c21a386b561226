"""Blocks of LETOR text to arrays: survey a block, make room, parse it, name its rows.

A block is whole lines, cut at line ends into chunks that depend on the text alone; kernels read
the chunks on several threads. `BlockReader` keeps what goes from block to block: whether ids
start at 0 or 1, and how many lines came before.
"""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse as sp

from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.data import letor_kernels as kernels
from rankwright.data.letor_line import Rules, read_line
from rankwright.data.letor_options import ReadOptions
from rankwright.data.letor_text import Text, text_array, wastes_room
from rankwright.errors import DataError

_SAMPLE_FROM, _SAMPLE_STEP = 4, 16  # chunks
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


class _Arrays(NamedTuple):
    """What `kernels.parse` fills."""

    y: F64
    out: AnyArray
    indices: AnyArray
    ends: AnyArray
    spans: I64


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
        """Count what each chunk of ``text`` holds; the first features tell where ids start."""
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

    def fault(
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

    def _rules(self, layout: Layout) -> Rules:
        options = self.options
        fill = options.absent == "missing"
        return Rules(self.has_qid, self._base, layout.width, float(_TOP[options.dtype]), fill)

    def _map(self, kernel: Any, bounds: I64, *arrays: Any) -> None:
        map_ranges(kernel, bounds, *arrays, n_jobs=self.options.n_jobs)

    def _sampled(self, text: Text) -> I64 | None:
        """Return what `survey` would, guessed from some chunks; None where that is not promising.

        Only the number of rows is sure. If a line then has a feature beyond the guessed highest,
        it is left to Python, which tells that the guess was wrong.
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

    def _parse(self, text: Text, counts: I64, layout: Layout) -> _Arrays:
        first = np.zeros((len(counts) + 1, 2), np.int64)
        np.cumsum(counts[:, [kernels.ROWS, kernels.VALUES]], axis=0, out=first[1:])
        n_rows, n_values = first[-1].tolist()
        rules = self._rules(layout)
        y, spans = np.empty(n_rows), np.empty((n_rows, 4), np.int64)
        index = np.int32 if max(n_values, layout.width) < 2**31 else np.int64
        ends = np.zeros(n_rows + 1 if layout.sparse else 0, index)
        indices = np.empty(n_values if layout.sparse else 0, index)
        room = n_values if layout.sparse else n_rows * layout.width
        make = np.zeros if isinstance(text.buffer, mmap.mmap) else _pages
        arrays = _Arrays(y, make(room, self.options.dtype), indices, ends, spans)
        places = (indices, ends) if layout.sparse else (None, None)
        chunk = 0
        for array, origin, cuts in text.pieces:
            into = (first[chunk:], tuple(rules), y, arrays.out, *places, spans)
            self._map(kernels.parse, np.arange(len(cuts)), cuts, array, origin, *into)
            chunk += len(cuts) - 1
        return arrays

    def _block(self, text: Text, arrays: _Arrays, layout: Layout) -> Block:
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

    def _read_odd_lines(self, text: Text, arrays: _Arrays, rules: Rules) -> None:
        """Read in Python the lines the kernels left, in their order; the first bad one raises."""
        y, out, indices, ends, spans = arrays
        for row in np.flatnonzero(spans[:, 1] == kernels.LEFT_TO_PYTHON).tolist():
            start = int(spans[row, 0])
            try:
                line = read_line(text.line_from(start), rules, limit=self._limit())
            except DataError as fault:
                if self.has_qid:
                    self._query_ids(text, spans[:row])  # a bad id above would be the first fault
                self.fault(text, start, fault)
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
                self.fault(text, at, "the query id is not UTF-8 text.")
        return starts, ids

    def _documents(self, text: Text, spans: I64) -> AnyArray | None:
        """Return the documents' names, None where no line has a comment."""
        lengths = np.maximum(spans[:, 3], 0)
        if not self.options.doc_ids or (spans[:, 3] == kernels.NO_COMMENT).all():
            return None
        width = max(1, int(lengths.max()))
        if not wastes_room(width, len(lengths), int(lengths.sum())):
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
