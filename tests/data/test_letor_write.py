"""What the LETOR writer writes, to the letter; that it reads back is in the properties."""

import sys

import numpy as np
import pytest
from scipy import sparse

from rankwright.data.letor import Letor
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError


def data_of(X, **parts):
    parts = {"y": np.zeros(len(X) if isinstance(X, list) else X.shape[0]), **parts}
    parts.setdefault("qid", np.ones(len(parts["y"]), int))
    return RankingData.from_arrays(np.array(X) if isinstance(X, list) else X, **parts)


@pytest.fixture
def written(tmp_path):
    def write(data, **options):
        path = tmp_path / "out.txt"
        Letor.write(data, path, **options)
        return path.read_text(encoding="utf-8")

    return write


def test_numbers_are_as_short_as_they_can_be(written):
    data = data_of([[0.1, 3.0, -0.0, np.nan, 1e-7, 1e22]], y=[2.0], qid=["a"])
    assert written(data) == "2 qid:a 1:0.1 2:3 3:-0 4:NaN 5:1e-07 6:1e+22\n"


def test_a_float32_is_as_short_as_a_float32_can_be(written):
    X = np.array([[0.1, 16777216.0, 1e-40, 3.4028235e38]], np.float32)
    assert written(data_of(X)) == "0 qid:1 1:0.1 2:16777216 3:1e-40 4:3.4028235e+38\n"


def test_documents_are_named_in_comments(written):
    data = data_of([[1.0], [2.0], [3.0]], doc_id=["D 1", "", "ü"])
    assert written(data) == "0 qid:1 1:1 # D 1\n0 qid:1 1:2 #\n0 qid:1 1:3 # ü\n"


def test_zeros_are_written_or_not(written):
    X = np.array([[0.0, 1.0, 0.0], [-0.0, 0.0, 0.0]])
    assert written(data_of(X)) == "0 qid:1 1:0 2:1 3:0\n0 qid:1 1:-0 2:0 3:0\n"
    assert written(data_of(X), zeros=False) == "0 qid:1 2:1 3:0\n0 qid:1 1:-0\n"
    csr = sparse.csr_array(X)
    assert written(data_of(csr)) == "0 qid:1 2:1 3:0\n0 qid:1\n"
    assert written(data_of(csr), zeros=True) == "0 qid:1 1:0 2:1 3:0\n0 qid:1 1:0 2:0 3:0\n"


def test_the_first_line_tells_where_ids_start_and_end(written):
    csr = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    assert written(data_of(csr), zero_based=True) == "0 qid:1 0:0 1:1 2:0\n0 qid:1 0:1\n"


def test_rows_are_written_query_after_query(written):
    data = data_of([[1.0], [2.0], [3.0]], qid=["a", "b", "a"])
    assert written(data) == "0 qid:a 1:1\n0 qid:a 1:3\n0 qid:b 1:2\n"


def test_parts_are_written_one_after_the_other(tmp_path):
    path = tmp_path / "out.txt"
    thin = sparse.csr_array(np.array([[1.0, 0.0]]))
    with Letor.open_writer(path) as writer:
        writer.append(data_of(thin, qid=["a"]))
        writer.append(data_of(thin, qid=["b"]))
    assert path.read_text() == "0 qid:a 1:1 2:0\n0 qid:b 1:1\n"


def test_a_dash_is_standard_output(capfdbinary):
    Letor.write(data_of([[1.0]]), "-")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"0 qid:1 1:1\n"


def test_equal_data_makes_equal_compressed_bytes(tmp_path):
    paths = tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"
    for path in paths:
        Letor.write(data_of([[1.0]]), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert Letor.read(paths[0]).X.tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["", "a b", "a#b", "a\nb", "\ud800", "a\x00b", "\tq"])
def test_query_ids_that_would_not_read_back_are_refused(tmp_path, name):
    data = data_of([[1.0], [2.0]], qid=np.array(["ok", name], object))
    with pytest.raises(DataError, match=r"query id .* cannot be written as LETOR text"):
        Letor.write(data, tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [" a", "a\t", "a\nb", "docid = 7", "docid=7", "\ud800", "a\x00b"])
def test_doc_ids_that_would_not_read_back_are_refused(tmp_path, name):
    (tmp_path / "out.txt").write_text("older")
    data = data_of([[1.0], [2.0]], doc_id=np.array(["docid", name], object))
    with pytest.raises(DataError, match=r"doc id .* of row 1 cannot be written"):
        Letor.write(data, tmp_path / "out.txt")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


def test_two_lists_of_one_id_in_a_row_are_refused(tmp_path):
    data = data_of([[1.0], [2.0]], qid=None, group_sizes=[1, 1])
    twins = RankingData(data.X, data.y, data.indptr, np.array(["a", "a"]))
    with pytest.raises(DataError, match="two lists in a row have the query id a"):
        Letor.write(twins, tmp_path / "out.txt")


def test_infinite_features_are_refused(tmp_path):
    data = RankingData(np.array([[np.inf]]), np.zeros(1), np.array([0, 1]), np.array([1]))
    with pytest.raises(DataError, match="a feature is infinite"):
        Letor.write(data, tmp_path / "out.txt")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        Letor.write(data_of([[1.0]]), tmp_path / "none" / "out.txt")
