"""TREC runs and judgments are read and written."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.data.rankings import Ranking
from rankwright.data.trec import judge_run, read_qrels, read_run, write_qrels
from rankwright.errors import DataError

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
    assert read_run(run) == {"q1": {"d1": 2.5, "d2": 1.5, "d3": 1.5}, "q2": {"d1": -1e-3}}
    assert read_qrels(qrels) == {
        "q1": {"d1": 0.0, "d3": 2.0, "d9": 1.0}, "q2": {"d1": -2.0}, "q3": {"d5": 1.0}
    }  # fmt: skip
    both = judge_run(run, qrels)
    assert both.data.doc_id.tolist() == ["d1", "d2", "d3", "d9", "d1"]
    assert both.data.y.tolist() == [0, 0, 2, 1, 0]  # unjudged and negative: 0
    assert both.judged.tolist() == [True, False, True, True, False]
    assert both.left_out == {"q3": "is not in the run"}


def test_ids_are_text_as_in_the_files(tmp_path):
    (tmp_path / "a.run").write_text("301 Q0 12 1 7 t\n302 Q0 007 1 7 t\n")
    assert read_run(tmp_path / "a.run") == {"301": {"12": 7.0}, "302": {"007": 7.0}}


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ("", "is empty"),
        ("q1 Q0 d1 1 2.5\n", r"line 1: lines are 'qid Q0 docid rank score tag', not 5"),
        (RUN + "q2 Q0 d2 2 high tag\n", r"line 6: the score 'high' is not a number"),
        (RUN + "q2 Q0 d2 2 1_0 tag\n", r"line 6: the score '1_0' is not a number"),
        (RUN + "q1 Q0 d2 2 1 tag\n", r"line 6: document 'd2' of query q1 appears twice"),
    ],
)
def test_errors_in_runs_name_the_line(files, run, sentence):
    files[0].write_text(run)
    with pytest.raises(DataError, match=sentence):
        read_run(files[0])


def test_comments_and_text_after_the_tag_are_skipped_as_by_trec_eval(files):
    plain = read_run(files[0]), read_qrels(files[1])
    run = RUN.replace(" tag\n", " tag and more text\n")
    files[0].write_text("# system: bm25\n" + run + "\n  # the end\n")
    files[1].write_text("# judges: a and b\n#\n" + QRELS)
    assert (read_run(files[0]), read_qrels(files[1])) == plain


def test_a_query_id_that_would_be_a_comment_is_not_written(tmp_path):
    data = RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=["#1", "#1"])
    with pytest.raises(DataError, match="the query id '#1' begins with '#', which marks a comment"):
        Ranking.of(data, [1.0, 2.0]).to_trec(tmp_path / "a.run")


def test_a_run_and_judgments_without_a_common_document_are_warned_about(files):
    files[1].write_text("q1 0 d1.0 1\nq2 0 d2.0 1\n")
    says = "no document of the run is judged.* query 'q1' the run has documents such as 'd1', the"
    with pytest.warns(UserWarning, match=says):
        both = judge_run(*files)
    assert not both.data.y[both.retrieved].any()


@pytest.mark.parametrize(
    ("qrels", "sentence"),
    [
        (QRELS + "q1 0 d1\n", r"line 6: lines are 'qid iteration docid grade', not 3 columns"),
        (QRELS + "q1 0 d2 good\n", r"line 6: the grade 'good' is not a number"),
        (QRELS + "q1 0 d2 nan\n", r"line 6: the grade nan is not a number"),
        (QRELS + "q1 0 d1 1\n", r"line 6: document 'd1' of query q1 appears twice"),
    ],
)
def test_errors_in_judgments_name_the_line(files, qrels, sentence):
    files[1].write_text(qrels)
    with pytest.raises(DataError, match=sentence):
        read_qrels(files[1])


def test_bytes_that_are_not_text_name_the_line(files):
    files[1].write_bytes(QRELS.encode() + b"q1 0 \xff 1\n")
    with pytest.raises(DataError, match=r"a\.qrels, line 6 is not text in UTF-8"):
        read_qrels(files[1])


def test_grades_are_written_whole_where_they_are_and_else_with_all_digits(tmp_path):
    data = RankingData.from_arrays(np.ones((3, 1)), [2, 0.1, 1 / 3], qid=[1, 1, 2])
    write_qrels(data, tmp_path / "q")
    lines = ["1 0 0 2", "1 0 1 0.1", "2 0 0 0.3333333333333333", ""]
    assert (tmp_path / "q").read_text().split("\n") == lines
    assert read_qrels(tmp_path / "q") == {"1": {"0": 2.0, "1": 0.1}, "2": {"0": 1 / 3}}


def test_judgments_of_quepid_are_found_by_its_columns(tmp_path):
    path = tmp_path / "case.csv"
    path.write_text("Case ID,Query Text,Doc ID,Rating\n6,star wars,11,3\n6,rambo,12,0\n")
    assert read_qrels(path) == {"star wars": {"11": 3.0}, "rambo": {"12": 0.0}}


PIECES = st.sampled_from(["q1", "Q0", "0", "d1", "d2", "1", "-2.5", "nan", "1e999", "#", "\ufeff"])
SEPARATORS = st.sampled_from([" ", " ", "\t", "\n", "\r\n"])
LINES = st.lists(st.tuples(PIECES, SEPARATORS).map("".join), max_size=40)


@pytest.mark.parametrize("read", [read_run, read_qrels])
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=60) | LINES.map("".join).map(str.encode))
def test_any_content_gives_numbers_or_a_sentence(read, content, tmp_path):
    (tmp_path / "t").write_bytes(content)
    try:
        numbers = read(tmp_path / "t")
    except DataError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert not any(np.isnan(list(documents.values())).any() for documents in numbers.values())
