"""Lines of text files come without their ends and marks; a fault names file and line."""

import pytest

from rankwright.data.lightgbm import LightGBMText
from rankwright.data.streams import decoded, number_at, text_lines
from rankwright.data.trec import Trec
from rankwright.errors import DataError


def test_lines_are_numbered_and_blank_ones_passed_over(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone \r\n\r\n \t\nt\xc3\xa9n")
    assert list(text_lines(path)) == [(1, "one "), (4, "tén")]


def test_only_the_first_line_has_a_byte_order_mark():
    assert decoded(b"\xef\xbb\xbfa", "a.txt") == "a"
    assert decoded(b"\xef\xbb\xbfa", "a.txt", 1) == "a"
    assert decoded(b"\xef\xbb\xbfa", "a.txt", 2) == "\ufeffa"


def test_faults_name_the_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2 is not text in UTF-8\.$"):
        list(text_lines(path))
    with pytest.raises(DataError, match=r"a\.txt, line 7: the score '1_0' is not a number\.$"):
        number_at("1_0", path, 7, "the score")


def test_a_run_saved_on_windows_keeps_its_first_query(tmp_path):
    """With the mark taken for a letter, the first line would be a query of its own."""
    (tmp_path / "a.run").write_bytes(b"\xef\xbb\xbf1 Q0 a 1 2 t\r\n1 Q0 b 2 1 t\r\n")
    (tmp_path / "a.qrels").write_bytes(b"\xef\xbb\xbf1 0 a 2\r\n1 0 b 1\r\n")
    data = Trec().read(tmp_path / "a.run", qrels=tmp_path / "a.qrels")
    assert (data.qid.tolist(), data.y.tolist()) == ([1], [2, 1])


def test_sizes_saved_on_windows_are_read(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 0:1\r\n0 0:2\r\n2 0:3\r\n")
    (tmp_path / "a.txt.query").write_bytes(b"\xef\xbb\xbf2\r\n1\r\n")
    assert LightGBMText().read(tmp_path / "a.txt").sizes.tolist() == [2, 1]
