"""`rankwright inspect` says what is wrong in sentences, the most harmful first."""

import gzip
import json
import os

import pytest
import typer
from command import sentence
from typer.testing import CliRunner

from rankwright.cli.inspect import inspect
from rankwright.errors import DataError, UsageError

app = typer.Typer()
app.command()(inspect)


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


CLEAN = (
    "0 qid:1 1:0.1 2:5",
    "1 qid:1 1:0.2 2:3",
    "0 qid:1 1:0.3 2:4",
    "0 qid:2 1:0.4 2:1",
    "1 qid:2 1:0.5 2:2",
)


def test_the_shape_is_reported_first(tmp_path):
    text = run(write(tmp_path / "a.txt", *CLEAN))
    assert "5 documents, 2 queries, 2 features, dense" in text
    assert "lists of 2 to 3 documents, median 2.5" in text
    assert "grades 0: 3 (60.0%), 1: 2 (40.0%)" in text


def test_counts_as_grades_are_warned_of(tmp_path):
    path = write(tmp_path / "a.txt", *CLEAN)
    assert "outweigh" not in run(path)
    path.write_text(path.read_text() + "200 qid:9 1:0.5 2:0.25\n0 qid:9 1:0.5 2:0.5\n")
    assert "- the highest grade is 200: with gains of 2^grade - 1, which NDCG and" in run(path)


def test_a_name_with_brackets_is_printed_as_it_is(tmp_path):
    path = write(tmp_path / "fold[1].txt", *CLEAN)
    assert run(path).startswith(f"{path}\n")


def test_what_lies_beside_the_files_of_a_fold_is_not_one_of_them(tmp_path):
    for name in ("train.txt", "vali.txt", "test.txt"):
        write(tmp_path / name, *CLEAN)
    write(tmp_path / "train.txt-old", "this is no data")
    (tmp_path / "train.txt").rename(tmp_path / "train.txt.gz")
    raw = (tmp_path / "train.txt.gz").read_bytes()
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(raw))
    named = [line for line in run(tmp_path).splitlines() if line.startswith(str(tmp_path))]
    assert named == [str(tmp_path / name) for name in ("train.txt.gz", "vali.txt", "test.txt")]


def test_clean_data_leaves_nothing_to_remark(tmp_path):
    assert run(write(tmp_path / "a.txt", *CLEAN)).endswith("findings\n- no problems found.\n")


def test_features_are_named_as_in_the_file(tmp_path):
    lines = [f"{i % 2} qid:{q} 1:7 2:{i} 3:{i} 4:{q}" for q in (1, 2) for i in range(3)]
    text = run(write(tmp_path / "a.txt", *lines))
    assert "- 1 of 4 features is constant: 1." in text
    assert "- 1 of 4 features is the same for all documents of a query: 4." in text
    assert "- 1 of 4 features is a copy of another: 2 = 3." in text


def test_long_lists_of_features_are_cut(tmp_path):
    lines = [f"{i} qid:1 " + " ".join(f"{f}:1" for f in range(1, 14)) + f" 14:{i}" for i in (0, 1)]
    text = run(write(tmp_path / "a.txt", *lines))
    assert "13 of 14 features are constant: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more." in text


def test_missing_values_name_the_features_that_lack_most(tmp_path):
    lines = ("0 qid:1 1:NULL 2:NULL 3:1", "1 qid:1 1:1 2:NULL 3:2", "0 qid:1 1:3 2:4 3:3")
    text = run(write(tmp_path / "a.txt", *lines))
    assert "3 values (33.33%) are missing, in 2 of 3 features, most in 2, 1." in text


def test_named_features_below_zero_are_no_scores_of_a_query(tmp_path):
    path = write(tmp_path / "a.csv", "qid,label,up,down", "1,0,0,-1", "1,1,2,0", "2,0,1,-0.0")
    assert "1 of 2 features has values below 0, which a query of Elasticsearch" in run(path)
    assert "as its score: down." in run(path)
    text = run(write(tmp_path / "a.txt", "0 qid:1 1:-1 2:5", "1 qid:1 1:2 2:3"))
    assert "below 0" not in text  # LETOR text has no names, and is not an engine's


def test_errors_of_lists_are_reported(tmp_path):
    lines = (
        "0 qid:1 1:1",
        "0 qid:2 1:3",
        "0 qid:1 1:2",
        "2 qid:3 1:4",
        "1 qid:2 1:3",
        "2 qid:3 1:5",
    )
    text = run(write(tmp_path / "a.txt", *lines))
    assert "the rows of 3 queries are not contiguous (1, 2, 3)" in text
    assert "1 of 3 queries has no relevant document" in text
    assert "1 of 3 queries has a single grade above 0: every order of it is as good" in text
    assert "1 document in 1 query equals another of the same query in every feature; 1 set" in text


def test_a_file_sorted_by_grade_is_warned_of(tmp_path):
    lines = [f"{9 - i} qid:{q} 1:{(7 * i + q) % 10}" for q in (1, 2) for i in range(10)]
    text = run(write(tmp_path / "a.txt", *lines))
    assert "in 2 of 2 lists with several grades the rows stand best first (by chance 0)" in text


def test_leakage_between_files_comes_first(tmp_path):
    train = write(tmp_path / "train.txt", "0 qid:1 1:7 2:1", "1 qid:1 1:7 2:2", "1 qid:2 1:7 2:3")
    test = write(tmp_path / "test.txt", "0 qid:2 1:7 2:9", "1 qid:3 1:7 2:1", "0 qid:3 1:7 2:4")
    findings = json.loads(run(train, test, "--json"))["findings"]
    assert findings[0].startswith(f"{train} and {test} share 1 query (2):")
    assert findings[1] == f"1 document of {test} has the features of one of {train}."
    assert all(not one.endswith("constant: 1.") for one in findings[:2])
    assert f"{train}: 1 of 2 features is constant: 1." in findings


def test_a_fold_folder_stands_for_its_three_files(tmp_path):
    for part, qid in (("train", 1), ("vali", 2), ("test", 1)):
        write(tmp_path / f"Fold1/{part}.txt", f"0 qid:{qid} 1:{qid}", f"1 qid:{qid} 1:5")
    found = json.loads(run(tmp_path / "Fold1", "--json"))
    assert [one["queries"] for one in found["data"]] == [1, 1, 1]
    shared = {(o["first"][-9:], o["second"][-8:]): o["queries"] for o in found["overlaps"]}
    assert shared["train.txt", "test.txt"] == 1


def test_json_is_one_object_and_nothing_else(tmp_path):
    found = json.loads(run(write(tmp_path / "a.txt", *CLEAN), "--json"))
    assert found["findings"] == []
    (one,) = found["data"]
    assert (one["documents"], one["queries"], one["features"]) == (5, 2, 2)
    assert one["grades"]["counts"] == {"0": 3, "1": 2}
    assert one["list_lengths"] == {"shortest": 2, "median": 2.5, "longest": 3}


def test_embedded_data_goes_by_its_name():
    text = run("digits/train", "digits/test")
    assert "5,000 documents, 50 queries, 64 features, dense" in text
    assert "share" not in text


def test_what_is_no_data_is_refused(tmp_path):
    with pytest.raises((DataError, UsageError), match=r"nowhere\.txt does not exist"):
        run(tmp_path / "nowhere.txt")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="Linux has these files")
@pytest.mark.parametrize("kind", ["letor", "csv", "parquet"])
@pytest.mark.parametrize("path", ["/dev/zero", "/proc/self/mem"])
def test_devices_and_memory_are_no_data(path, kind):
    said = sentence("inspect", path, "--format", kind)
    assert said.startswith(path)
    assert "is a device" in said or "/proc" in path
