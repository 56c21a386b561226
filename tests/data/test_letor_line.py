"""One line read in Python: what it says, and where its names stand."""

import math

import pytest

from rankwright.data.letor_kernels import Rules, read_line
from rankwright.errors import DataError

RULES = Rules(has_qid=True, base=1, width=10, top=math.inf, fill=False)


def test_a_line_is_taken_apart():
    line = b"1.5 qid:ab 3:-2e3 1:NULL 2:0.00#docid = D7 inc = 1"
    read = read_line(line, RULES)
    assert read.grade == 1.5
    assert line[read.qid[0] :][: read.qid[1]] == b"ab"
    assert read.columns == [2, 0, 1]
    assert read.values[0] == -2000.0
    assert math.isnan(read.values[1])
    assert read.only_zeros == [False, False, True]
    assert line[read.document[0] :][: read.document[1]] == b"D7"


def test_a_line_without_comment_names_no_document():
    assert read_line(b"1 qid:a", RULES).document is None
    assert read_line(b"1 qid:a #", RULES).document[1] == 0


def test_without_query_ids_the_features_follow_the_grade():
    read = read_line(b"1 2:5", RULES._replace(has_qid=False))
    assert (read.qid[1], read.columns) == (0, [1])


def test_columns_count_from_the_lowest_id():
    assert read_line(b"1 qid:a 0:1 9:1", RULES._replace(base=0)).columns == [0, 9]
    assert read_line(b"1 qid:a 1:1 10:1", RULES).columns == [0, 9]


def test_numbers_of_any_length_are_exact():
    text = "0.1000000000000000055511151231257827021181583404541015625"  # 0.1, written out
    read = read_line(f"1 qid:a 1:{text} 2:{text}1".encode(), RULES)
    assert read.values == [0.1, 0.1]


def test_the_limit_says_what_to_do():
    with pytest.raises(DataError, match=r"^feature id 11 is above all\.$"):
        read_line(b"1 qid:a 11:1", RULES, limit="above all")


def test_what_is_shown_of_a_long_token_is_short():
    with pytest.raises(DataError, match=rf"^feature value '{'z' * 40}…' is not a number\.$"):
        read_line(b"1 qid:a 1:" + b"z" * 1000, RULES)
