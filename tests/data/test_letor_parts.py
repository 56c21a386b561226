"""A file in parts: whole queries, of one number of features, with the data of the whole."""

import io
import sys

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.letor import Letor
from rankwright.data.ranking_data import PartsDifferError


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
