"""Score files of three kinds give each document its score, or say which has none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import read_scores, write_run
from rankwright.errors import DataError


def some_data(**more):
    arrays = {"X": np.ones((5, 1)), "y": np.zeros(5), "qid": ["a", "a", "a", "b", "b"]}
    return RankingData.from_arrays(**{**arrays, "doc_id": list("vwxyz"), **more})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.txt"


def test_a_score_per_line(path):
    path.write_text("1\n-2.5e-3\n  0.1 \nnan\n-inf\n\n\n")
    got = read_scores(path, some_data())
    np.testing.assert_array_equal(got, [1, -2.5e-3, 0.1, np.nan, -np.inf])


def test_a_byte_order_mark_carriage_returns_and_blank_lines(path):
    path.write_bytes(b"\xef\xbb\xbf1\r\n2\r\n3\r\n4\r\n5\r\n\r\n")
    assert read_scores(path, some_data()).tolist() == [1, 2, 3, 4, 5]
    run = "\ufeff\nb Q0 z 1 5 t\nb Q0 y 2 5 t\n\na Q0 x 1 3 t\na Q0 w 2 3 t\na Q0 v 3 3 t\n"
    path.write_text(run, encoding="utf-8")
    assert read_scores(path, some_data()).tolist() == [3, 3, 3, 5, 5]


def test_lines_go_with_the_rows_that_the_data_came_from(path):
    path.write_text("0\n1\n2\n3\n4\n")
    data = some_data(qid=["a", "b", "a", "b", "a"])
    assert read_scores(path, data).tolist() == [0, 2, 4, 1, 3]
    assert data.in_caller_order(read_scores(path, data)).tolist() == [0, 1, 2, 3, 4]


def test_ranklibs_columns_in_any_order(path):
    path.write_text("b\t1\t5\na\t0\t1\na\t2\t3\na\t1\t2\nb\t0\t4\n")
    assert read_scores(path, some_data()).tolist() == [1, 2, 3, 4, 5]


def test_ranklibs_columns_of_queries_that_lay_apart_go_by_their_lines(path):
    """RankLib makes two lists of them and numbers both from 0."""
    path.write_text("a\t0\t1\nb\t0\t2\na\t0\t3\nb\t0\t4\na\t0\t5\n")
    data = some_data(qid=["a", "b", "a", "b", "a"])
    assert read_scores(path, data).tolist() == [1, 3, 5, 2, 4]


def test_a_run_is_matched_by_name(path):
    path.write_text("b Q0 z 1 5 t\nb Q0 y 2 4 t\na Q0 x 1 3 t\na Q0 w 2 2 t\na Q0 v 3 1 t\n")
    assert read_scores(path, some_data()).tolist() == [1, 2, 3, 4, 5]


def test_a_run_of_documents_without_names_goes_by_their_numbers(path):
    path.write_text("b Q0 1 1 5 t\nb Q0 0 2 4 t\na Q0 2 1 3 t\na Q0 1 2 2 t\na Q0 0 3 1 t\n")
    assert read_scores(path, some_data(doc_id=None)).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; a score for each document"),
        ("1\n2\n", "has 2 lines for 5 documents"),
        ("1\n2\n3\n4\n5\n6\n", "has 6 lines for 5 documents"),
        ("1\n2\nx\n4\n5\n", "line 3: the score 'x' is not a number"),
        ("1\n2\n\n4\n5\n", "line 3: the score '' is not a number"),
        ("1 2\n", "line 1 has 2 columns"),
        ("a\t0\t1\nc\t0\t1\n", "line 2: query c is not in the data"),
        ("a\t0\t1\na\t3\t1\n", "line 2: query a has no document 3, counted from 0"),
        ("a\t0\t1\na\t-1\t1\n", "line 2: the document number '-1' is not a whole number"),
        ("a\t0\t1\na\t0\t1\n", r"line 2: document 0 \('v'\) of query a has a score already"),
        ("a\t0\t1\na\t1\thigh\n", "line 2: the score 'high' is not a number"),
        ("a\t0\t1\na\t1\n", "line 2: it has 2 columns, where line 1 has 3"),
        ("a\t0\t1\na\t1\t2\n", r"has no score for document 2 \('x'\) of query a"),
        ("a Q0 v 1 1 t\nc Q0 v 1 1 t\n", "line 2: query c is not in the data"),
        ("a Q0 v 1 1 t\na Q0 q 1 1 t\n", "line 2: document 'q' of query a is not in the data"),
        ("a Q0 v 1 1 t\na Q0 v 1 1 t\n", r"line 2: document 0 \('v'\) of query a has a score"),
        ("a Q0 v 1 1 t\n", r"has no score for document 1 \('w'\) of query a"),
    ],
)
def test_faults_name_the_line_or_the_document(path, text, sentence):
    path.write_text(text)
    with pytest.raises(DataError, match=f"scores.txt,? ?{sentence}"):
        read_scores(path, some_data())


def test_queries_that_lay_apart_must_be_on_the_lines_of_the_data(path):
    path.write_text("a\t0\t1\na\t1\t2\na\t2\t3\nb\t0\t4\nb\t1\t5\n")
    with pytest.raises(DataError, match="line 2: query a is not that of the same line of the data"):
        read_scores(path, some_data(qid=["a", "b", "a", "b", "a"]))


def test_a_run_is_sorted_with_ties_in_the_order_of_the_rows(path):
    write_run(some_data(), [1, 2, 2, 0.1, 1 / 3], path, tag="my run")
    assert path.read_text().splitlines() == [
        "a Q0 w 1 2.0 my_run",
        "a Q0 x 2 2.0 my_run",
        "a Q0 v 3 1.0 my_run",
        "b Q0 z 1 0.3333333333333333 my_run",
        "b Q0 y 2 0.1 my_run",
    ]


def test_blanks_in_names_become_underscores_and_no_name_a_number(path):
    data = some_data(doc_id=["a title", "", "x", "y", ""])
    write_run(data, [5, 4, 3, 2, 1], path)
    assert [line.split()[2] for line in path.read_text().splitlines()] == [
        "a_title", "1", "x", "y", "1",
    ]  # fmt: skip
    assert read_scores(path, data).tolist() == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("names", [["v", "v", "x", "y", "z"], ["a b", "a_b", "x", "y", "z"]])
def test_two_documents_of_one_name_are_refused(path, names):
    with pytest.raises(DataError, match="query a has two documents named"):
        write_run(some_data(doc_id=names), np.zeros(5), path)
    assert not path.exists()


def test_a_query_id_with_a_blank_is_refused(path):
    with pytest.raises(DataError, match="the query id 'b c' has a blank"):
        write_run(some_data(qid=["a", "a", "a", "b c", "b c"]), np.zeros(5), path)


def test_the_number_of_scores_is_checked(path):
    with pytest.raises(DataError, match="scores has 2 values, where 5 are expected"):
        write_run(some_data(), [1, 2], path)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5))
def test_written_scores_come_back_bit_for_bit(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("run") / "r"
    write_run(some_data(), scores, path)
    assert read_scores(path, some_data()).tobytes() == np.array(scores).tobytes()


def test_ranklibs_own_files(golden_dir):
    """RankLib's scores, and its run of the same model: five digits, by doc id."""
    from rankwright import load

    data = load(golden_dir / "ranklib" / "test.txt")
    scores = read_scores(golden_dir / "ranklib" / "lambdamart" / "scores.txt", data)
    first = (golden_dir / "ranklib" / "lambdamart" / "scores.txt").read_text().split()[2]
    assert scores[0] == float(first)
    run = read_scores(golden_dir / "ranklib" / "lambdamart" / "indri.txt", data)
    np.testing.assert_allclose(run, scores, atol=6e-6, rtol=0)
