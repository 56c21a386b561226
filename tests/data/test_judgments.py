"""Judgment lists of hello-ltr, Quepid and TREC become grades by query and document."""

import pandas as pd
import pytest

from rankwright.data.judgments import read_judgments
from rankwright.errors import DataError, RankwrightError, UsageError

HELLO_LTR = """\
# qid:1: rambo*1
# qid:2: rocky balboa*3
# qid:3: c* search
#
# https://example.org/judging

4\tqid:1\t # 7555\trambo
0\tqid:1\t1:12.5\t2:0.25 # 1370\trambo
3\tqid:2\t # 1366\trocky balboa
"""
QUEPID_LTR = '3    qid:12 #    doc1; "star wars"\n1 qid:12 # doc2 star wars\n'


def read(tmp_path, text, name="judgments.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_judgments(path)


def test_a_list_of_hello_ltr_has_grades_texts_and_weights(tmp_path):
    found = read(tmp_path, HELLO_LTR)
    assert found.grades == {"1": {"7555": 4.0, "1370": 0.0}, "2": {"1366": 3.0}}
    assert found.weights == {"2": 3.0}
    assert found.find("2") == "2"
    assert found.find(" rocky balboa ") == "2"
    assert found.find("c* search") == "3"  # a star of the text is not a weight
    assert found.find("unheard of") is None


def test_a_text_of_two_queries_names_neither(tmp_path):
    found = read(tmp_path, "# qid:1: rambo\n# qid:2: rambo\n1 qid:1 # a\n1 qid:2 # b\n")
    with pytest.raises(DataError, match=r"queries 1 and 2 .* same text 'rambo'; give their ids"):
        found.find("rambo")


def test_lists_of_quepid_are_read(tmp_path):
    assert read(tmp_path, QUEPID_LTR).grades == {"12": {"doc1": 3.0, "doc2": 1.0}}


def test_trec_judgments_are_read_and_negative_ones_are_zero(tmp_path):
    assert read(tmp_path, "7 0 d1 2\n7 0 d2 -2\n").grades == {"7": {"d1": 2.0, "d2": 0.0}}


@pytest.mark.parametrize(
    "text",
    [
        "query,docid,rating\nstar wars,11,3\nstar wars,12,0\nnever rated,,\nrambo,13,\n",
        "query,doc_id,rating\nstar wars,11,3.0\nstar wars,12,0\n",
        "Team Name,Case Name,Case ID,Query Text,Doc ID,Title,Rating\n"
        'OSC,Films,6,star wars,11,"A New Hope, remade",3\nOSC,Films,6,star wars,12,Solo,0\n',
        "query,docid,Ann,Bob\nstar wars,11,4,2\nstar wars,12,,0\nstar wars,13,,\n",
    ],
)
def test_tables_of_quepid_leave_out_what_is_not_rated(tmp_path, text):
    assert read(tmp_path, text, "quepid.csv").grades == {"star wars": {"11": 3.0, "12": 0.0}}


def test_frames_and_mappings_are_read():
    frame = pd.DataFrame({"query": ["a", "a", "b"], "docid": [1, None, 2], "rating": [2, 1, 0]})
    assert read_judgments(frame).grades == {"a": {"1": 2.0}, "b": {"2": 0.0}}
    found = read_judgments({1: {"x": 2}})
    assert found.grades == {"1": {"x": 2.0}}
    assert read_judgments(found) is found


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("j.txt", "2 qid:1 # a\n3 qid:1\n", "line 2: a judgment is 'grade qid:QUERY # DOCUMENT'"),
        ("j.txt", "good qid:1 # a\n", "line 1: the grade 'good' is not a number"),
        ("j.txt", "inf qid:1 # a\n", "line 1: the grade inf is not finite"),
        ("j.txt", "2 qid:1 # a\n1 qid:1 # a\n", "line 2: document 'a' of query 1 has two grades"),
        ("j.txt", "", "is empty"),
        ("j.csv", "query,rating\na,1\n", "no document id column found .* 'query', 'rating'"),
        ("j.csv", "query,docid\na,1\n", "no grade column found"),
        ("j.csv", "query,docid,Ann\na,1,fine\n", "column 'Ann' has 'fine' at row 0"),
        ("j.csv", "query,docid,rating\na,,\n", "no row has a query, a document and a rating"),
        ("j.csv", "query,docid,rating\na,1,2\na,1,3\n", "has two grades, the second at row 1"),
    ],
)
def test_errors_name_the_place(tmp_path, name, text, sentence):
    with pytest.raises(RankwrightError, match=sentence):
        read(tmp_path, text, name)


def test_what_is_no_list_is_refused():
    with pytest.raises(UsageError, match=r"of type int; give a file .*, a mapping"):
        read_judgments(3)
