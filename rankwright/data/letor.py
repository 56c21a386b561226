"""LETOR and svmlight text: ``<grade> qid:<query id> <feature id>:<value> ... # comment``.

- Feature column j is the id j + 1, or j where ids start at 0; an id that a line does not name is 0
  (or missing, with ``absent="missing"``); ``NULL``, ``null``, ``NaN``, ``nan``, ``NA`` are missing.
- Numbers are read exactly as ``float`` reads them; float32 is the rounding of that.
- Query ids are any text without blanks; where all are integers they become int64. Rows of one
  query may stand anywhere in the file.
- Comments name documents: by the word after ``docid =``, or else by the whole comment.
- Blank lines, lines of comment, CRLF, tabs and a byte order mark are welcome.

A plain file is mapped into memory and never copied: one pass of kernels counts, arrays of the
right size are made, a second pass fills them. Compressed files and pipes are read block by block.
The way of a file, from bytes to data:

- here             the format: its options, opened files, and which text is read when
- `letor_text`     text cut where lines end, for the kernels
- `letor_blocks`   a block of text to arrays: survey it, make room, parse it, name its rows
- `letor_kernels`  lines, fast; `letor_numbers` the numbers in them, and numbers to be written
- `letor_line`     a line that the kernels leave, in Python: what it says, or what is wrong with it
- `letor_join`     blocks put together, and cut into queries
- `letor_parts`    the same, part by part, for files larger than memory

`letor_options` checks the options, `letor_write` writes, `letor_fold` finds the files of a fold.
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
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

from rankwright.core.types import I64
from rankwright.data.grouping import checked_sizes
from rankwright.data.letor_blocks import BlockReader, Layout, Totals
from rankwright.data.letor_join import assemble, is_int64, joined
from rankwright.data.letor_options import ReadOptions
from rankwright.data.letor_parts import read_whole_queries
from rankwright.data.letor_text import Text, stream_blocks
from rankwright.data.letor_write import LetorWriter
from rankwright.data.ranking_data import RankingData
from rankwright.data.source import display_name, open_bytes, reads_file
from rankwright.errors import DataError, UsageError

_STREAM_BLOCK = 1 << 23
_NO_GRADE = re.compile(rb"^(\xef\xbb\xbf)?[ \t]*qid:", re.MULTILINE)
_LINES_IN_A_LINE = re.compile(rb"qid:[^\r]*\r[ \t]*[^ \t\r]+[ \t]+qid:")


class Letor:
    """LETOR and svmlight text files with ``qid:``, plain or compressed."""

    extensions: ClassVar[tuple[str, ...]] = (
        ".txt",
        ".letor",
        ".svmlight",
        ".svm",
        ".libsvm",
        ".dat",
    )

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
            features decides: if it names 0, ids start at 0. A 0 later on is then a fault.
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
            A higher id is taken for a fault.
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
        first to learn how many features there are. A query that comes back in a later part is a
        fault, as it cannot be put together.

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
