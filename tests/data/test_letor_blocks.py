"""Text in chunks and blocks; the guess from some chunks gives what the full survey gives."""

import io

import numpy as np
import pytest

from rankwright.data import letor_blocks, letor_kernels
from rankwright.data.letor import Letor
from rankwright.data.letor_blocks import BlockReader, ReadOptions, Text, stream_blocks, text_array


def test_chunks_end_where_lines_do(monkeypatch):
    monkeypatch.setattr(letor_blocks, "_CHUNK", 4)
    text = Text(b"ab\nabcdefgh\nx\ny\nz\nlast")
    (_, _, cuts), (tail, origin, tail_cuts) = text.pieces
    assert cuts.tolist() == [0, 12, 18]
    assert (tail.tobytes(), origin, tail_cuts.tolist()) == (b"last\n", 18, [0, 5])


def test_a_byte_order_mark_is_skipped_only_where_the_file_starts():
    content = b"\xef\xbb\xbf1 qid:1 1:1\n"
    assert Text(content, starts_file=True).pieces[0][2][0] == 3
    assert Text(content).pieces[0][2][0] == 0


def test_lines_are_numbered_from_any_place(monkeypatch):
    monkeypatch.setattr(letor_blocks, "_CHUNK", 3)
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


class Watch:
    """Counts how often a kernel is called."""

    def __init__(self, monkeypatch, name):
        self.calls, kernel = 0, getattr(letor_kernels, name)

        def counted(*args):
            self.calls += 1
            return kernel(*args)

        monkeypatch.setattr(letor_kernels, name, counted)


LINES = [b"%d qid:%d 1:%d 5:0.25 # %d\n" % (k % 3, k // 4, k, k) for k in range(64)]


@pytest.mark.parametrize(
    ("special", "parses"),
    [
        ({}, "once"),
        ({63: b"1 qid:99 9:7 # a wider line, where no sample is\n"}, "twice"),
        ({50: b"1 qid:99 1:4.9e-324 # left to Python\n"}, "twice"),
        ({50: b"# a comment\n"}, "once"),
        ({0: b"1 qid:0 0:3 # ids from 0\n"}, "once"),
        ({0: b"1 qid:0 # no features\n", 1: b"1 qid:0 0:3 # ids from 0\n"}, "once"),
    ],
    ids=["regular", "wider", "odd", "comment", "zero-based", "zero-based later"],
)
def test_a_guess_from_some_chunks_reads_the_same(tmp_path, monkeypatch, special, parses):
    path = tmp_path / "data.txt"
    path.write_bytes(b"".join(special.get(k, line) for k, line in enumerate(LINES)))
    whole = Letor.read(path)
    monkeypatch.setattr(letor_blocks, "_CHUNK", 1)  # a chunk per line
    watch = Watch(monkeypatch, "parse")
    chunks = Letor.read(path, n_threads=1)
    assert watch.calls == (2 if parses == "twice" else 1) * len(LINES)
    assert np.array_equal(whole.X, chunks.X)
    assert whole.y.tolist() == chunks.y.tolist()
    assert whole.qid.tolist() == chunks.qid.tolist()
    assert whole.doc_id.tolist() == chunks.doc_id.tolist()


def test_a_guess_spares_the_survey_of_most_chunks(tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    path.write_bytes(b"".join(LINES))
    monkeypatch.setattr(letor_blocks, "_CHUNK", 1)
    watch = Watch(monkeypatch, "survey")
    Letor.read(path, n_threads=1)
    assert watch.calls == len(LINES) // 16


def test_a_fault_names_the_line_in_the_file():
    reader = BlockReader("f.txt", ReadOptions(), lines=10)
    with pytest.raises(ValueError, match=r"^f\.txt, line 12: wrong\.$"):
        reader.fault(Text(b"a\nb\nc\n"), 2, "wrong.")
