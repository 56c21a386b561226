"""LETOR text larger than memory: whole queries, some text at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from rankwright.core.types import I64
from rankwright.data.letor_blocks import Block, BlockReader, Layout, Totals
from rankwright.data.letor_join import assemble
from rankwright.data.letor_text import Text, stream_blocks
from rankwright.data.parts import PartsDifferError
from rankwright.data.ranking_data import RankingData


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
    ids, ``sizes`` tells how many rows each query has.
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
            reader.fault(
                text,
                int(part.spans[row, 0]),
                f"query {name} comes back after other queries; sort the file by query, "
                "or read it as a whole.",
                PartsDifferError,
            )
    seen.update(part.run_ids)
