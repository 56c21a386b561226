"""Rankings: against sorting in plain Python, and what is made of them."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking, read_scores
from rankwright.errors import DataError, UsageError

QID = ["b", "a", "b", "a", "b"]
SCORES = [
    0.2,
    5.0,
    0.9,
    5.0,
    0.4,
]  # by caller's row: b is 2, 4, 0 and a is 1, 3 (equal: as they came)


def data_of(qid, **columns):
    return RankingData.from_arrays(np.zeros((len(qid), 1)), None, qid=qid, **columns)


def ranking_of(qid=QID, scores=SCORES, *, limits=None, **columns):
    data = data_of(qid, **columns)
    own = np.asarray(scores) if data.row is None else np.asarray(scores)[data.row]
    return Ranking.of(data, own, **(limits or {}))


def by_hand(qid, scores, group=None, per_group=None, top=None):
    """Rows of each query, best first: plain Python, queries in order of first appearance."""
    found = {}
    for query in dict.fromkeys(qid):
        rows = [row for row, one in enumerate(qid) if one == query]
        rows.sort(key=lambda row: -scores[row])  # stable
        if per_group is not None:
            kept = []
            for row in rows:
                if sum(group[other] == group[row] for other in kept) < per_group:
                    kept.append(row)
            rows = kept
        found[query] = rows[:top]
    return found


# --- the order -------------------------------------------------------------------------------


def test_rows_are_the_callers_best_first_query_after_query():
    found = ranking_of()
    assert found.order.tolist() == [2, 4, 0, 1, 3]
    assert found.indptr.tolist() == [0, 3, 5]
    assert found.scores.tolist() == [0.9, 0.4, 0.2, 5.0, 5.0]
    assert found.qid.tolist() == ["b", "a"]


documents = st.tuples(
    st.integers(0, 4), st.sampled_from([-1.0, 0.0, -0.0, 0.5, 2.0]), st.integers(0, 2)
)


@given(
    st.lists(documents, min_size=1, max_size=30),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 3]),
)
def test_any_rows_are_ranked_as_by_hand(rows, per_group, top):
    qid, scores, group = (list(column) for column in zip(*rows, strict=True))
    found = ranking_of(
        qid, scores, group=group, limits={"per_group": per_group, "top": top, "n_jobs": 1}
    )
    expected = by_hand(qid, scores, group, per_group, top)
    assert {query.qid: query.rows.tolist() for query in found} == expected
    assert found.order.tolist() == [row for rows in expected.values() for row in rows]
    assert found.scores.tolist() == [scores[row] for row in found.order]
    assert [qid[row] for row in found.order] == np.repeat(found.qid, np.diff(found.indptr)).tolist()
    assert len(set(found.order.tolist())) == len(found.order)
    if per_group is None and top is None:
        assert sorted(found.order.tolist()) == list(range(len(rows)))


@given(st.lists(documents, min_size=1, max_size=30), st.integers(1, 5))
def test_top_k_is_the_beginning_of_each_query(rows, k):
    qid, scores, _ = zip(*rows, strict=True)
    whole = ranking_of(qid, scores, doc_id=np.arange(len(rows)))
    for first in (whole.top(k), ranking_of(qid, scores, limits={"top": k})):
        assert [q.qid for q in first] == [q.qid for q in whole]
        for short, long in zip(first, whole, strict=True):
            assert short.rows.tolist() == long.rows.tolist()[:k]
            assert short.scores.tolist() == long.scores.tolist()[:k]
    assert whole.top(k).doc_id.tolist() == whole.top(k).order.tolist()


def test_a_missing_score_ranks_last():
    assert ranking_of(scores=[np.nan, 1, -9, 2, np.nan]).order.tolist() == [2, 0, 4, 3, 1]


def test_a_query_without_documents_is_there_and_empty():
    data = RankingData.from_arrays(np.zeros((3, 1)), None, group_sizes=[2, 0, 1])
    found = Ranking.of(data, [1, 2, 3])
    assert [query.rows.tolist() for query in found] == [[1, 0], [], [2]]
    assert len(found[1]) == 0
    assert found.to_trec().count("\n") == 3


def test_groups_may_be_given_beside_the_data():
    data = data_of(["a"] * 4)
    found = Ranking.of(data, [4, 3, 2, 1], group=["x", "x", "y", "x"], per_group=1)
    assert found.order.tolist() == [0, 2]
    with pytest.raises(DataError, match="a limit per group needs the group of each document"):
        Ranking.of(data, [4, 3, 2, 1], per_group=1)
    with pytest.raises(DataError, match="group has 2 values, where 4 are expected"):
        Ranking.of(data, [4, 3, 2, 1], group=[1, 2], per_group=1)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"top": 0}, "top must be 1 or more, not 0"),
        ({"per_group": -1}, "per_group must be 1 or more, not -1"),
        ({"top": 2.5}, "top must be a whole number, not 2.5"),
        ({"top": True}, "top must be a whole number, not True"),
        ({"top": 2**63}, "top must be 9223372036854775807 or less, not 9.22"),
    ],
)
def test_wrong_limits_are_refused(limits, sentence):
    with pytest.raises(UsageError, match=sentence):
        ranking_of(limits=limits)
    if "top" in limits:
        with pytest.raises(UsageError, match=sentence.replace("top", "k")):
            ranking_of().top(limits["top"])


def test_the_number_of_scores_is_checked():
    with pytest.raises(DataError, match="scores has 2 values, where 5 are expected"):
        Ranking.of(data_of(QID), [1, 2])


# --- queries ---------------------------------------------------------------------------------


def test_a_ranking_is_taken_apart_by_query():
    found = ranking_of(doc_id=list("vwxyz"))
    assert len(found) == 2
    assert [query.qid for query in found] == ["b", "a"]
    assert found["a"].rows.tolist() == [1, 3]
    assert found["a"].doc_id.tolist() == ["w", "y"]
    assert "a" in found
    assert "c" not in found
    with pytest.raises(KeyError, match="there is no query 'c'; the ids of the 2 queries are"):
        found["c"]
    with pytest.raises(KeyError, match=r"takes the id of one query.*row numbers are in its order"):
        found[:2]


def test_where_an_array_is_expected_it_is_the_order():
    found = ranking_of()
    grades = np.array([10, 11, 12, 13, 14])
    assert grades[found].tolist() == [12, 14, 10, 11, 13]
    assert np.asarray(found) is found.order
    assert np.asarray(found, np.float32).dtype == np.float32
    copied = np.array(found)
    copied[:] = 0
    assert found.order.tolist() == [2, 4, 0, 1, 3]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(found, np.float32, copy=False)


def test_the_repr_is_one_line_and_pickling_keeps_all():
    found = ranking_of(doc_id=list("vwxyz"))
    assert repr(found) == "Ranking(2 queries, 5 documents)"
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again.to_trec() == found.to_trec()


# --- frames and files --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_row_for_each_document(backend):
    frame = ranking_of(doc_id=list("vwxyz")).to_frame(backend)
    columns = {"pandas": "columns", "polars": "columns", "pyarrow": "column_names"}
    assert list(getattr(frame, columns[backend])) == ["qid", "row", "rank", "score", "doc_id"]
    values = {name: list(np.asarray(frame[name])) for name in getattr(frame, columns[backend])}
    assert values["qid"] == ["b", "b", "b", "a", "a"]
    assert values["row"] == [2, 4, 0, 1, 3]
    assert values["rank"] == [1, 2, 3, 1, 2]
    assert values["score"] == [0.9, 0.4, 0.2, 5.0, 5.0]
    assert values["doc_id"] == ["x", "z", "v", "w", "y"]
    assert "doc_id" not in ranking_of().to_frame().columns


def test_a_frame_ranked_by_its_order_is_sorted():
    frame = pd.DataFrame({"query": QID, "score": SCORES})
    by_pandas = frame.sort_values(["query", "score"], ascending=[False, False], kind="stable")
    pd.testing.assert_frame_equal(frame.iloc[ranking_of().order], by_pandas)


def test_a_run_has_the_documents_by_name_or_place():
    named = ranking_of(doc_id=["d 1", "d2", "", "d4", "d5"]).to_trec(tag="my run")
    assert named.splitlines() == [
        "b Q0 1 1 0.9 my_run",
        "b Q0 d5 2 0.4 my_run",
        "b Q0 d_1 3 0.2 my_run",
        "a Q0 d2 1 5.0 my_run",
        "a Q0 d4 2 5.0 my_run",
    ]
    assert ranking_of().top(1).to_trec() == "b Q0 1 1 0.9 rankwright\na Q0 0 1 5.0 rankwright\n"


def test_a_run_goes_to_a_path_or_a_file(tmp_path):
    found = ranking_of()
    assert found.to_trec(tmp_path / "run.txt") is None
    text, binary = io.StringIO(), io.BytesIO()
    found.to_trec(text)
    found.to_trec(binary)
    whole = found.to_trec()
    assert (tmp_path / "run.txt").read_text() == text.getvalue() == whole
    assert binary.getvalue().decode() == whole
    with pytest.raises(DataError, match="cannot be written"):
        found.to_trec(tmp_path / "nowhere" / "run.txt")


def test_a_run_is_read_back_as_the_scores(tmp_path):
    data = data_of(QID, doc_id=list("vwxyz"))
    Ranking.of(data, np.asarray(SCORES)[data.row]).to_trec(tmp_path / "run.txt")
    assert read_scores(tmp_path / "run.txt", data).tolist() == np.asarray(SCORES)[data.row].tolist()


def test_names_that_a_run_cannot_hold_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"'a b' has a blank in it"):
        ranking_of(["a b"] * 5).to_trec(tmp_path / "run.txt")
    with pytest.raises(DataError, match="query b has two documents named 'v'"):
        ranking_of(doc_id=list("vwvyz")).to_trec(tmp_path / "run.txt")
    assert not (tmp_path / "run.txt").exists()


# --- score files of three kinds give each document its score, or say which has none ----------


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


def test_comments_and_text_after_the_tag_of_a_run_are_skipped(path):
    lines = "b Q0 z 1 5 t\nb Q0 y 2 4 t\na Q0 x 1 3 t\na Q0 w 2 2 t\na Q0 v 3 1 t\n"
    path.write_text("# a run\n" + lines.replace("t\n", "t more text\n") + " # the end\n")
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
        (
            "a\t0\t1\na\t3\t1\n",
            "line 2: document '3' of query a is not in the data; documents are numbered from 0",
        ),
        ("a\t0\t1\na\t-1\t1\n", "line 2: document '-1' of query a is not in the data"),
        ("a\t0\t1\na\t0\t1\n", r"line 2: document 0 \('v'\) of query a has a score already"),
        ("a\t0\t1\na\t1\thigh\n", "line 2: the score 'high' is not a number"),
        ("a\t0\t1\na\t1\n", "line 2: it has 2 columns, but line 1 has 3"),
        ("a\t0\t1\na\t1\t2\n", r"has no score for document 2 \('x'\) of query a"),
        ("a Q0 v 1 1 t\nc Q0 v 1 1 t\n", "line 2: query c is not in the data"),
        ("a Q0 v 1 1 t\na Q0 q 1 1 t\n", "line 2: document 'q' of query a is not in the data"),
        ("a Q0 v 1 1 t\na Q0 v 1 1 t\n", r"line 2: document 0 \('v'\) of query a has a score"),
        ("a Q0 v 1 1 t\n", r"has no score for document 1 \('w'\) of query a"),
    ],
)
def test_errors_name_the_line_or_the_document(path, text, sentence):
    path.write_text(text)
    with pytest.raises(DataError, match=f"scores.txt,? ?{sentence}"):
        read_scores(path, some_data())


def test_queries_that_lay_apart_must_be_on_the_lines_of_the_data(path):
    path.write_text("a\t0\t1\na\t1\t2\na\t2\t3\nb\t0\t4\nb\t1\t5\n")
    with pytest.raises(DataError, match="line 2: the same line of the data is not of query a"):
        read_scores(path, some_data(qid=["a", "b", "a", "b", "a"]))


def test_a_run_is_sorted_with_ties_in_the_order_of_the_rows(path):
    Ranking.of(some_data(), [1, 2, 2, 0.1, 1 / 3]).to_trec(path, tag="my run")
    assert path.read_text().splitlines() == [
        "a Q0 w 1 2.0 my_run",
        "a Q0 x 2 2.0 my_run",
        "a Q0 v 3 1.0 my_run",
        "b Q0 z 1 0.3333333333333333 my_run",
        "b Q0 y 2 0.1 my_run",
    ]


def test_blanks_in_names_become_underscores_and_no_name_a_number(path):
    data = some_data(doc_id=["a title", "", "x", "y", ""])
    Ranking.of(data, [5, 4, 3, 2, 1]).to_trec(path)
    assert [line.split()[2] for line in path.read_text().splitlines()] == [
        "a_title", "1", "x", "y", "1",
    ]  # fmt: skip
    assert read_scores(path, data).tolist() == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("names", [["v", "v", "x", "y", "z"], ["a b", "a_b", "x", "y", "z"]])
def test_two_documents_of_one_name_are_refused(path, names):
    with pytest.raises(DataError, match="query a has two documents named"):
        Ranking.of(some_data(doc_id=names), np.zeros(5)).to_trec(path)
    assert not path.exists()


def test_a_query_id_with_a_blank_is_refused(path):
    with pytest.raises(DataError, match="the query id 'b c' has a blank"):
        Ranking.of(some_data(qid=["a", "a", "a", "b c", "b c"]), np.zeros(5)).to_trec(path)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5))
def test_written_scores_come_back_bit_for_bit(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("run") / "r"
    Ranking.of(some_data(), scores).to_trec(path)
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
