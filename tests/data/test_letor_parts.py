"""LETOR text in chunks, and in parts for files larger than memory."""

import gzip
import io
import sys

import numpy as np
import pytest
from scipy import sparse

from rankwright.data import letor
from rankwright.data.letor import Letor
from rankwright.data.ranking_data import PartsDifferError


@pytest.fixture
def letor_file(tmp_path):
    def write(content):
        path = tmp_path / "data.txt"
        path.write_bytes(content)
        return path

    return write


# --- chunks ------------------------------------------------------------------------------------

LINES = [b"%d qid:%d 1:%d 5:0.25 # %d\n" % (k % 3, k // 4, k, k) for k in range(64)]


@pytest.mark.parametrize(
    "special",
    [
        {},
        {63: b"1 qid:99 9:7 # a wider line"},
        {50: b"1 qid:12 1:4.9e-324 # parsed in Python\n"},
        {50: b"# a comment\n"},
        {40: b"1 qid:10 0:3 # ids from 0\n"},
        {0: b"1 qid:0 # no features\n", 1: b"1 qid:0 3:0 2:5 # descending\n"},
    ],
    ids=["regular", "wider", "unusual", "comment", "zero-based", "descending"],
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_chunks_do_not_change_the_data(letor_file, monkeypatch, special, is_sparse):
    path = letor_file(b"".join(special.get(k, line) for k, line in enumerate(LINES)))
    whole = Letor.read(path, sparse=is_sparse)
    for size in (1, 100):
        monkeypatch.setattr(letor, "_CHUNK", size)
        chunks = Letor.read(path, n_jobs=2, sparse=is_sparse)
        a, b = (x.toarray() if is_sparse else x for x in (whole.X, chunks.X))
        assert a.tobytes() == b.tobytes()
        assert whole.y.tolist() == chunks.y.tolist()
        assert whole.qid.tolist() == chunks.qid.tolist()
        assert whole.indptr.tolist() == chunks.indptr.tolist()
        assert whole.doc_id.tolist() == chunks.doc_id.tolist()


@pytest.mark.parametrize("lists", ["by_id", "adjacent"])
def test_queries_may_span_chunks(letor_file, monkeypatch, lists):
    monkeypatch.setattr(letor, "_CHUNK", 1)
    data = Letor.read(letor_file(b"1 qid:a 1:1\n0 qid:a 1:2\n1 qid:b 1:3\n"), lists=lists)
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.qid.tolist() == ["a", "b"]


def test_a_byte_order_mark_is_only_allowed_at_the_start(letor_file):
    line = b"\xef\xbb\xbf1 qid:1 1:1\n"
    assert Letor.read(letor_file(line)).n_documents == 1
    with pytest.raises(ValueError, match="line 2: grade"):
        Letor.read(letor_file(line + line))


def test_one_long_query_id_makes_an_array_of_objects(letor_file):
    long = "x" * 2_000_000
    ids = [long, *[f"y{k}" for k in range(50)]]
    data = Letor.read(letor_file(b"".join(b"1 qid:%b 1:1\n" % name.encode() for name in ids)))
    assert data.qid.dtype == object
    assert data.qid.tolist() == ids


# --- parts: whole queries, with the number of features of the file -----------------------------


def test_parts_are_whole_queries_with_the_same_features(letor_file):
    sizes = [3, 1, 40, 2, 2]
    content = b"".join(
        b"%d qid:%d %d:1%s\n" % (q, q, q + 1, b" # x" if q == 2 else b"")
        for q, size in enumerate(sizes)
        for _ in range(size)
    )
    path = letor_file(content)
    whole = Letor.read(path)
    for part_bytes, most_parts in ((1, 5), (50, 5), (10_000, 1)):
        parts = list(Letor.read_parts(path, part_bytes=part_bytes))
        assert np.array_equal(np.concatenate([part.X for part in parts]), whole.X)
        assert np.concatenate([part.qid for part in parts]).tolist() == whole.qid.tolist()
        assert np.concatenate([part.sizes for part in parts]).tolist() == sizes
        names = np.concatenate([part.doc_id for part in parts])
        assert names.tolist() == whole.doc_id.tolist()
        assert min(2, most_parts) <= len(parts) <= most_parts


def test_parts_agree_on_the_kind_of_ids_and_layout(letor_file):
    path = letor_file(5 * b"1 qid:1 1:1\n" + 5 * b"1 qid:x 400:1\n")
    first, second = Letor.read_parts(path, part_bytes=1)
    assert (first.qid.tolist(), second.qid.tolist()) == (["1"], ["x"])
    assert sparse.issparse(first.X)
    assert first.X.shape == second.X.shape == (5, 400)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"1 qid:1 1:1\n1 qid:9223372036854775807 1:1 # qid:x\n", "i"),
        (b"1 qid:1 1:1\n1 qid:9223372036854775808 1:1\n", "U"),
        (b"1 qid:1 1:1\n# qid:x\n1 qid:7 1:1\n", "i"),
        (b"1 qid:1 1:1\n1 qid:007", "U"),
        (b"1 qid:1 1:1\n1 qid:7#qid:7", "i"),
    ],
)
def test_parts_have_the_type_of_ids_of_the_file(letor_file, content, kind):
    path = letor_file(content)
    assert Letor.read(path).qid.dtype.kind == kind
    assert {part.qid.dtype.kind for part in Letor.read_parts(path, part_bytes=1)} == {kind}


def test_parts_of_a_compressed_file(tmp_path):
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(b"".join(LINES)))
    parts = list(Letor.read_parts(path, part_bytes=100))
    assert len(parts) > 5
    assert np.concatenate([part.y for part in parts]).tolist() == Letor.read(path).y.tolist()


def test_parts_of_given_sizes(letor_file):
    path = letor_file(b"".join(b"%d 1:1\n" % k for k in range(6)))
    parts = list(Letor.read_parts(path, part_bytes=1, group_sizes=[2, 0, 3, 1]))
    assert np.concatenate([part.sizes for part in parts]).tolist() == [2, 0, 3, 1]
    assert np.concatenate([part.qid for part in parts]).tolist() == [0, 1, 2, 3]
    assert np.concatenate([part.y for part in parts]).tolist() == [0, 1, 2, 3, 4, 5]


def test_parts_of_standard_input(monkeypatch):
    content = 3 * b"2 qid:10 1:0.5\n" + 3 * b"1.5 qid:11 2:7\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    assert [part.y.tolist() for part in Letor.read_parts("-", part_bytes=1)] == [[2] * 3, [1.5] * 3]


def test_a_query_that_comes_back_in_a_later_part_is_refused(letor_file):
    path = letor_file(b"1 qid:a 1:1\n1 qid:b 1:1\n\n1 qid:a 1:1\n1 qid:c 1:1\n")
    sentence = "line 4: query a appears again .* sort the file by query"
    with pytest.raises(PartsDifferError, match=sentence):
        list(Letor.read_parts(path, part_bytes=1))
    parts = list(Letor.read_parts(path, part_bytes=1, lists="adjacent"))
    assert np.concatenate([part.qid for part in parts]).tolist() == ["a", "b", "a", "c"]
