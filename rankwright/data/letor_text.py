"""LETOR text before it is read: whole lines, cut where lines end; and arrays of text."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from rankwright.core.types import I64, AnyArray

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
    if wastes_room(max(lengths, default=0), len(lengths), sum(lengths)):
        array = np.empty(len(strings), object)
        array[:] = strings
        return array
    return np.array(strings, dtype=str)


def wastes_room(width: int, count: int, letters: int) -> bool:
    """Whether ``count`` texts of ``letters`` in all should not each take the longest's room."""
    return width * count > 8 * letters + (1 << 20)


def _cuts(buffer: bytes | mmap.mmap, start: int, end: int) -> I64:
    cuts = [start]
    while cuts[-1] < end:
        at = buffer.find(b"\n", cuts[-1] + _CHUNK, end)
        cuts.append(end if at < 0 else at + 1)
    return np.array(cuts, np.int64)
