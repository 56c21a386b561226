"""Text in whole lines: chunks for the kernels, blocks of a stream, arrays of names."""

import io
import sys

import numpy as np
import pytest
from scipy import sparse

from rankwright.data import letor_kernels, letor_parts
from rankwright.data.letor import Letor, ReadOptions
from rankwright.data.letor_parts import (
    Block,
    BlockReader,
    Layout,
    Text,
    assemble,
    is_int64,
    joined,
    stream_blocks,
    text_array,
)
from rankwright.data.ranking_data import PartsDifferError


def test_chunks_end_where_lines_do(monkeypatch):
    monkeypatch.setattr(letor_parts, "_CHUNK", 4)
    monkeypatch.setattr(letor_parts, "_SAMPLE_FROM", 4)
    text = Text(b"ab\nabcdefgh\nx\ny\nz\nlast")
    (_, _, cuts), (tail, origin, tail_cuts) = text.pieces
    assert cuts.tolist() == [0, 12, 18]
    assert (tail.tobytes(), origin, tail_cuts.tolist()) == (b"last\n", 18, [0, 5])


def test_a_byte_order_mark_is_skipped_only_where_the_file_starts():
    content = b"\xef\xbb\xbf1 qid:1 1:1\n"
    assert Text(content, starts_file=True).pieces[0][2][0] == 3
    assert Text(content).pieces[0][2][0] == 0


def test_lines_are_numbered_from_any_place(monkeypatch):
    monkeypatch.setattr(letor_parts, "_CHUNK", 3)
    monkeypatch.setattr(letor_parts, "_SAMPLE_FROM", 4)
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


# --- a guess from some chunks gives what the full survey gives; errors name their line -------


class Callback:
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
    monkeypatch.setattr(letor_parts, "_CHUNK", 1)  # a chunk per line
    monkeypatch.setattr(letor_parts, "_SAMPLE_FROM", 4)
    callback = Callback(monkeypatch, "parse")
    chunks = Letor.read(path, n_jobs=1)
    assert callback.calls == (2 if parses == "twice" else 1) * len(LINES)
    assert np.array_equal(whole.X, chunks.X)
    assert whole.y.tolist() == chunks.y.tolist()
    assert whole.qid.tolist() == chunks.qid.tolist()
    assert whole.doc_id.tolist() == chunks.doc_id.tolist()


def test_a_guess_spares_the_survey_of_most_chunks(tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    path.write_bytes(b"".join(LINES))
    monkeypatch.setattr(letor_parts, "_CHUNK", 1)
    monkeypatch.setattr(letor_parts, "_SAMPLE_FROM", 4)
    callback = Callback(monkeypatch, "survey")
    Letor.read(path, n_jobs=1)
    assert callback.calls == len(LINES) // 16


def test_an_error_names_the_line_in_the_file():
    reader = BlockReader("f.txt", ReadOptions(), lines=10)
    with pytest.raises(ValueError, match=r"^f\.txt, line 12: wrong\.$"):
        reader.raise_at(Text(b"a\nb\nc\n"), 2, "wrong.")


# --- blocks put together, and rows cut into queries ------------------------------------------


def block(X, starts, ids, doc_id=None):
    y = np.arange(X.shape[0], dtype=float)
    return Block(X, y, np.array(starts), ids, doc_id, np.empty((0, 4), np.int64))


def two_blocks():
    dense = np.array([[1.0, -0.0], [0.0, 2.0]])
    wide = sparse.csr_array(np.array([[0.0, 0.0, np.nan]]))
    return [
        block(dense, [0, 1], ["a", "b"], np.array(["x", "yy"])),
        block(wide, [0], ["b"]),
    ]


@pytest.mark.parametrize("layout", [Layout(3, sparse=False), Layout(3, sparse=True)])
def test_blocks_of_any_layout_become_one(layout):
    both = joined(two_blocks(), layout, ReadOptions())
    if layout.sparse:
        assert both.X.indptr.tolist() == [0, 2, 3, 4]
        assert both.X.indices.tolist() == [0, 1, 1, 2]
        assert both.X.data.tobytes() == np.array([1.0, -0.0, 2.0, np.nan]).tobytes()
        assert both.X.shape == (3, 3)
    else:
        expected = np.array([[1.0, -0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, np.nan]])
        assert both.X.tobytes() == expected.tobytes()
    assert both.y.tolist() == [0, 1, 0]
    assert both.run_starts.tolist() == [0, 1, 2]
    assert both.doc_id.tolist() == ["x", "yy", ""]


def test_features_beyond_a_blocks_own_are_missing_where_asked():
    both = joined(two_blocks(), Layout(3, sparse=False), ReadOptions(absent="missing"))
    assert np.isnan(both.X[:2]).tolist() == [[False, False, True]] * 2


def test_runs_that_meet_where_blocks_do_are_one_list():
    both = joined(two_blocks(), Layout(3, sparse=False), ReadOptions())
    for lists in ("by_id", "adjacent"):
        data = assemble(both, ReadOptions(lists=lists), None, integers=False)
        assert data.indptr.tolist() == [0, 1, 3]
        assert data.qid.tolist() == ["a", "b"]


def test_integers_are_those_that_python_writes_so():
    good = ["0", "7", "-7", str(2**63 - 1), str(-(2**63))]
    bad = ["", "-0", "+7", "07", "7.0", "1_0", "٣", str(2**63), str(-(2**63) - 1), "9" * 30]
    assert all(map(is_int64, good))
    assert not any(map(is_int64, bad))


# --- a file in parts: whole queries, of one number of features, with the data of the whole ---


@pytest.fixture
def letor_file(tmp_path):
    def write(content):
        path = tmp_path / "data.txt"
        path.write_bytes(content)
        return path

    return write


def test_parts_are_whole_queries_with_the_same_features(letor_file):
    sizes = [3, 1, 40, 2, 2]
    content = b"".join(
        b"%d qid:%d %d:1%s\n" % (q, q, q + 1, b" # x" if q == 2 else b"")
        for q, size in enumerate(sizes)
        for _ in range(size)
    )
    path = letor_file(content)
    whole = Letor.read(path)
    for part_bytes, most_parts in ((1, 5), (50, 5), (10_000, 2)):
        parts = list(Letor.read_parts(path, part_bytes=part_bytes))
        assert np.array_equal(np.concatenate([part.X for part in parts]), whole.X)
        assert np.concatenate([part.qid for part in parts]).tolist() == whole.qid.tolist()
        assert np.concatenate([part.sizes for part in parts]).tolist() == sizes
        names = np.concatenate([part.doc_id for part in parts])
        assert names.tolist() == whole.doc_id.tolist()
        assert 2 <= len(parts) <= most_parts


def test_parts_agree_on_the_kind_of_ids_and_layout(letor_file):
    path = letor_file(b"1 qid:1 1:1\n1 qid:x 400:1\n")
    first, second = Letor.read_parts(path, part_bytes=1)
    assert (first.qid.tolist(), second.qid.tolist()) == (["1"], ["x"])
    assert sparse.issparse(first.X)
    assert first.X.shape == second.X.shape == (1, 400)


def test_parts_of_given_sizes(letor_file):
    path = letor_file(b"".join(b"%d 1:1\n" % k for k in range(6)))
    parts = list(Letor.read_parts(path, part_bytes=1, group_sizes=[2, 0, 3, 1]))
    assert np.concatenate([part.sizes for part in parts]).tolist() == [2, 0, 3, 1]
    assert np.concatenate([part.qid for part in parts]).tolist() == [0, 1, 2, 3]
    assert np.concatenate([part.y for part in parts]).tolist() == [0, 1, 2, 3, 4, 5]


def test_parts_of_standard_input(monkeypatch):
    content = b"2 qid:10 1:0.5\n0 qid:10 2:1e-3\n1.5 qid:11 1:7\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    assert [part.y.tolist() for part in Letor.read_parts("-", part_bytes=1)] == [[2, 0], [1.5]]


def test_a_query_that_comes_back_in_a_later_part_is_refused(letor_file):
    path = letor_file(b"1 qid:a 1:1\n1 qid:b 1:1\n\n1 qid:a 1:1\n1 qid:c 1:1\n")
    sentence = "line 4: query a comes back .* sort the file by query"
    with pytest.raises(PartsDifferError, match=sentence):
        list(Letor.read_parts(path, part_bytes=1))
    parts = list(Letor.read_parts(path, part_bytes=1, lists="adjacent"))
    assert np.concatenate([part.qid for part in parts]).tolist() == ["a", "b", "a", "c"]
