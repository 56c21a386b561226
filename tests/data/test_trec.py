"""TREC runs and judgments become ranking data and come back."""

import numpy as np
import pytest
from reference.same_data import assert_same

from rankwright.data.ranking_data import RankingData
from rankwright.data.trec import Trec, read_qrels, read_run, write_qrels, write_run
from rankwright.errors import DataError, UsageError

RUN = """\
q1 Q0 d1 1 2.5 tag
q1 Q0 d2 2 1.5 tag
q1 Q0 d3 3 1.5 tag

q2 Q0 d1 1 -1e-3 tag
"""
QRELS = """\
q1 0 d1 0
q1 0 d3 2
q1 0 d9 1
q2\t0\td1\t-2
q3 0 d5 1
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    return tmp_path / "a.run", tmp_path / "a.qrels"


def test_a_run_and_its_judgments(files):
    run, qrels = files
    data = Trec().read(run, qrels=qrels)
    assert data.qid.tolist() == ["q1", "q2"]
    assert data.doc_id.tolist() == ["d1", "d2", "d3", "d1"]
    assert data.feature_names == ("score", "rank")
    assert data.X.tolist() == [[2.5, 1], [1.5, 1 / 2], [1.5, 1 / 3], [-1e-3, 1]]
    assert data.y.tolist() == [0, 0, 2, 0]  # unjudged and negative: 0


def test_unjudged_documents_can_be_dropped(files):
    run, qrels = files
    data = Trec().read(run, qrels=qrels, unjudged="drop")
    assert data.doc_id.tolist() == ["d1", "d3", "d1"]
    assert data.X[:, 1].tolist() == [1, 1 / 2, 1]


def test_judged_documents_and_queries_that_the_run_lacks_can_be_appended(files):
    run, qrels = files
    data = Trec().read(run, qrels=qrels, missing="append")
    assert data.qid.tolist() == ["q1", "q2", "q3"]
    assert data.doc_id.tolist() == ["d1", "d2", "d3", "d9", "d1", "d5"]
    assert data.y.tolist() == [0, 0, 2, 1, 0, 1]
    np.testing.assert_array_equal(data.X[3], [np.nan, 0])


def test_equal_scores_are_ranked_by_the_runs_own_rank(tmp_path):
    (tmp_path / "a.run").write_text("1 Q0 a 3 7 t\n1 Q0 b 1 7 t\n1 Q0 c 2 9 t\n")
    data = Trec().read(tmp_path / "a.run", qrels="")
    assert data.X[:, 1].tolist() == [1 / 3, 1 / 2, 1]


def test_ids_are_numbers_where_all_are(tmp_path):
    (tmp_path / "a.run").write_text("301 Q0 12 1 7 t\n302 Q0 007 1 7 t\n")
    data = Trec().read(tmp_path / "a.run", qrels="")
    assert data.qid.tolist() == [301, 302]
    assert data.doc_id.tolist() == ["12", "007"]


def test_the_judgments_must_be_named(files):
    with pytest.raises(UsageError, match=r"a\.run is a run; name its judgments with qrels=FILE"):
        Trec().read(files[0])


@pytest.mark.parametrize("option", ["unjudged", "missing"])
def test_options_say_what_they_take(files, option):
    with pytest.raises(UsageError, match=f"{option} must be '.*' or '.*', not 'none'"):
        Trec().read(files[0], qrels=files[1], **{option: "none"})


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ("", "is empty"),
        ("q1 Q0 d1 1 2.5\n", r"line 1: a line of a run is 'qid Q0 docid rank score tag', not 5"),
        (RUN + "q2 Q0 d2 2 high tag\n", r"line 6: the score 'high' is not a number"),
        (RUN + "q2 Q0 d2 - 1 tag\n", r"line 6: the rank '-' is not a number"),
        (RUN + "q2 Q0 d2 2 1_0 tag\n", r"line 6: the score '1_0' is not a number"),
        (RUN + "q1 Q0 d2 2 1 tag\n", r"line 6: document 'd2' of query q1 appears twice"),
    ],
)
def test_errors_in_runs_name_the_line(files, run, sentence):
    files[0].write_text(run)
    with pytest.raises(DataError, match=sentence):
        Trec().read(files[0], qrels=files[1])


def test_comments_and_text_after_the_tag_are_skipped_as_by_trec_eval(files):
    plain = read_run(files[0]), read_qrels(files[1])
    data = Trec().read(files[0], qrels=files[1])
    run = RUN.replace(" tag\n", " tag and more text\n")
    files[0].write_text("# system: bm25\n" + run + "\n  # the end\n")
    files[1].write_text("# judges: a and b\n#\n" + QRELS)
    assert (read_run(files[0]), read_qrels(files[1])) == plain
    again = Trec().read(files[0], qrels=files[1])
    assert again.y.tolist() == data.y.tolist()
    assert again.doc_id.tolist() == data.doc_id.tolist()


def test_a_query_id_that_would_be_a_comment_is_not_written(tmp_path):
    data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["#1", "#1"])
    with pytest.raises(DataError, match="the query id '#1' begins with '#', which marks a comment"):
        write_run(data, [1.0, 2.0], tmp_path / "a.run")


def test_a_run_and_judgments_without_a_common_document_are_warned_about(files):
    files[1].write_text("q1 0 d1.0 1\nq2 0 d2.0 1\n")
    says = "no document of the run is judged.* query 'q1' the run has documents such as 'd1', the"
    with pytest.warns(UserWarning, match=says):
        data = Trec().read(files[0], qrels=files[1])
    assert not data.y.any()


@pytest.mark.parametrize(
    ("qrels", "sentence"),
    [
        (QRELS + "q1 0 d1\n", r"line 6: a judgment is 'qid iteration docid grade', not 3 columns"),
        (QRELS + "q1 0 d2 good\n", r"line 6: the grade 'good' is not a number"),
        (QRELS + "q1 0 d2 nan\n", r"line 6: the grade nan is not finite"),
        (QRELS + "q1 0 d1 1\n", r"line 6: document 'd1' of query q1 is judged twice"),
    ],
)
def test_errors_in_judgments_name_the_line(files, qrels, sentence):
    files[1].write_text(qrels)
    with pytest.raises(DataError, match=sentence):
        Trec().read(files[0], qrels=files[1])


def test_bytes_that_are_not_text_name_the_line(files):
    files[1].write_bytes(QRELS.encode() + b"q1 0 \xff 1\n")
    with pytest.raises(DataError, match=r"a\.qrels, line 6 is not text in UTF-8"):
        read_qrels(files[1])


def test_nothing_judged_is_refused_where_the_unjudged_are_dropped(files):
    files[1].write_text("q7 0 d1 1\n")
    with pytest.raises(DataError, match=r"judges no document"):
        Trec().read(*files[:1], qrels=files[1], unjudged="drop")


def test_data_of_a_run_comes_back(files, tmp_path):
    data = Trec().read(files[0], qrels=files[1])
    Trec().write(data, tmp_path / "b.run", qrels=tmp_path / "b.qrels")
    assert_same(Trec().read(tmp_path / "b.run", qrels=tmp_path / "b.qrels"), data)


def test_grades_are_written_whole_where_they_are_and_else_with_all_digits(tmp_path):
    data = RankingData.from_arrays(np.ones((3, 1)), [2, 0.1, 1 / 3], qid=[1, 1, 2])
    write_qrels(data, tmp_path / "q")
    lines = ["1 0 0 2", "1 0 1 0.1", "2 0 0 0.3333333333333333", ""]
    assert (tmp_path / "q").read_text().split("\n") == lines


def test_the_feature_that_is_the_score_can_be_named(tmp_path):
    X = np.array([[1.0, 5], [2, 4]])
    data = RankingData.from_arrays(X, [0, 1], qid=[1, 1], feature_names=["bm25", "age"])
    with pytest.raises(UsageError, match="which of the 2 features is the score"):
        Trec().write(data, tmp_path / "r")
    for feature, best in (("age", "0"), (2, "0"), ("bm25", "1"), ("1", "1")):
        with pytest.warns(UserWarning, match="1 others are left out"):
            Trec().write(data, tmp_path / "r", feature=feature, qrels=tmp_path / "q")
        assert (tmp_path / "r").read_text().split()[2] == best
    with pytest.raises(UsageError, match=r"no feature 'agee'; did you mean age"):
        Trec().write(data, tmp_path / "r", feature="agee")


def test_leaving_the_grades_out_is_warned_about(tmp_path):
    data = RankingData.from_arrays(np.ones((1, 1)), [2], qid=[1])
    with pytest.warns(UserWarning, match="a run holds no grades"):
        Trec().write(data, tmp_path / "r")


def test_judgments_of_quepid_are_found_by_its_columns(tmp_path):
    path = tmp_path / "case.csv"
    path.write_text("Case ID,Query Text,Doc ID,Rating\n6,star wars,11,3\n6,rambo,12,0\n")
    assert read_qrels(path) == {"star wars": {"11": 3.0}, "rambo": {"12": 0.0}}
