"""Text in whole lines: chunks for the kernels, blocks of a stream, arrays of names."""

import io

import numpy as np
import pytest

from rankwright.data import letor_text
from rankwright.data.letor_parts import Text, stream_blocks, text_array


def test_chunks_end_where_lines_do(monkeypatch):
    monkeypatch.setattr(letor_text, "_CHUNK", 4)
    text = Text(b"ab\nabcdefgh\nx\ny\nz\nlast")
    (_, _, cuts), (tail, origin, tail_cuts) = text.pieces
    assert cuts.tolist() == [0, 12, 18]
    assert (tail.tobytes(), origin, tail_cuts.tolist()) == (b"last\n", 18, [0, 5])


def test_a_byte_order_mark_is_skipped_only_where_the_file_starts():
    content = b"\xef\xbb\xbf1 qid:1 1:1\n"
    assert Text(content, starts_file=True).pieces[0][2][0] == 3
    assert Text(content).pieces[0][2][0] == 0


def test_lines_are_numbered_from_any_place(monkeypatch):
    monkeypatch.setattr(letor_text, "_CHUNK", 3)
    text = Text(b"a\nbb\nccc\n")
    assert [text.lines_before(at) for at in (0, 1, 2, 4, 5, 9)] == [0, 0, 1, 1, 2, 3]
    assert text.start_of_line(4) == 2
    assert text.line_from(5) == b"ccc"


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_blocks_of_a_stream_are_whole_lines(size):
    content = b"a\n\nbbbbbbbbbbbbbbbbbbbb\nc\nlast"
    blocks = list(stream_blocks(io.BytesIO(content), size))
    assert b"".join(blocks) == content
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_one_long_text_makes_an_array_of_objects():
    assert text_array(["a", "bcd"]).dtype == np.dtype("U3")
    long = ["x" * 2_000_000, *["y"] * 50]
    assert text_array(long).dtype == object
    assert text_array(long).tolist() == long
