"""``rankwright convert``: formats by suffix or by name, options, pipes, one line of report."""

import json
import subprocess
import sys

import lightgbm
import numpy as np
import pandas as pd
import pytest
import typer
from command import run_json
from typer.testing import CliRunner

import rankwright
from rankwright.cli.convert import convert
from rankwright.errors import DataError, UsageError

LETOR = "0 qid:1 1:1.5 2:2\n2 qid:1 1:0.1 2:3\n1 qid:2 1:7\n"

app = typer.Typer()
app.command()(convert)


def run(*arguments, **more):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **more)


def refused(*arguments):
    """Return the error that the command line would print."""
    error = run(*arguments).exception
    assert isinstance(error, UsageError | DataError), error
    return str(error)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(LETOR)
    return path


def test_one_line_says_what_was_done(text, tmp_path):
    result = run(text, tmp_path / "t.csv")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "3 documents of 2 queries, 2 features" in result.stderr
    assert rankwright.load(tmp_path / "t.csv").X.tolist() == [[1.5, 2], [0.1, 3], [7, 0]]


def test_json_is_one_object(text, tmp_path):
    result = run(text, tmp_path / "t.parquet", "--json")
    assert json.loads(result.stdout) == {
        "source": str(text),
        "target": str(tmp_path / "t.parquet"),
        "queries": 2,
        "documents": 3,
        "features": 2,
    }


def test_a_feature_log_takes_its_grades_from_a_judgment_list(tmp_path):
    log, judgments, table = (tmp_path / name for name in ("log.jsonl", "judged.txt", "t.csv"))
    features = [{"name": "bm25", "value": 1.5}, {"name": "age"}]
    hits = [{"_id": doc, "fields": {"_ltrlog": [{"qid:1": features}]}} for doc in "ab"]
    log.write_text(json.dumps({"hits": {"hits": hits}}))
    judgments.write_text("# qid:1: rambo\n\n3 qid:1 # a\n")
    result = run(log, table, "--judgments", judgments, "--absent", "zero")
    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "documents without a judgment, omitted of 2 " in result.stderr
    assert rankwright.load(table).to_frame().to_dict("list") == {
        "qid": [1],
        "label": [3],
        "doc_id": ["a"],
        "bm25": [1.5],
        "age": [0],
    }
    assert "name its judgment list with judgments=FILE" in refused(log, table)


def test_formats_and_columns_can_be_named(tmp_path):
    (tmp_path / "table").write_text("session,stars,a\n1,3,5\n")
    result = run(
        tmp_path / "table", tmp_path / "out", "--from", "csv", "--to", "letor",
        "--qid", "session", "--label", "stars",
    )  # fmt: skip
    assert result.exit_code == 0
    assert (tmp_path / "out").read_text() == "3 qid:1 1:5\n"
    assert "cannot hold feature_names" in result.stderr


def test_options_of_reader_and_writer(text, tmp_path):
    run(text, tmp_path / "a.csv", "--absent", "missing", "--dtype", "float32")
    assert (tmp_path / "a.csv").read_text().splitlines()[-1] == "2,1,7,nan"
    run(text, tmp_path / "b.txt", "--zero-based")
    assert rankwright.load(tmp_path / "b.txt").n_features == 3
    run(text, tmp_path / "c.txt", "--write", "zero_based=true", "--write", "zeros=false")
    assert (tmp_path / "c.txt").read_text().splitlines()[-1] == "1 qid:2 0:7"
    run(tmp_path / "a.csv", tmp_path / "d.csv", "--read", "drop=f1")
    assert (tmp_path / "d.csv").read_text().startswith('"qid","label","f2"')


def test_errors_are_sentences(text, tmp_path):
    assert "no option 'speed'" in refused(text, tmp_path / "t.csv", "--read", "speed=9")
    assert "takes key=value, not 'speed'" in refused(text, tmp_path / "t.csv", "--read", "speed")
    assert "has the unknown file extension '.xyz'" in refused(text, tmp_path / "t.xyz")
    assert "no format 'cvs'; did you mean csv" in refused(text, tmp_path / "t", "--to", "cvs")
    assert "does not exist" in refused(tmp_path / "none.txt", tmp_path / "t.csv")
    assert "both write to standard output" in refused(text, "-", "--to", "csv", "--json")


def test_pipes():
    """From standard input to standard output, where nothing but the data goes."""
    command = [sys.executable, "-m", "rankwright", "convert", "-", "-", "--to", "csv"]
    done = subprocess.run(command, input=LETOR.encode(), capture_output=True, check=True)
    assert done.stdout == b'"qid","label","f1","f2"\n1,0,1.5,2\n1,2,0.1,3\n2,1,7,0\n'
    assert b"3 documents" in done.stderr


def test_exit_code_of_bad_input(tmp_path):
    (tmp_path / "t.txt").write_text("0 qid:1 1:abc\n")
    command = [sys.executable, "-m", "rankwright", "convert", "t.txt", "t.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "t.txt, line 1" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]


def test_synthetic_data_are_written_in_parts(tmp_path):
    store = tmp_path / "t.store"
    found = run_json("synthetic", "mq2008", store, "--queries", 8, "--first", 2)
    assert found["queries"] == 8
    assert rankwright.load(store).qid.tolist() == list(range(3, 11))


def test_a_model_of_lightgbm_becomes_a_model_file_with_its_categories(tmp_path):
    towns = pd.Categorical(np.resize(["York", "Bonn", "Zug"], 60), ["Zug", "York", "Bonn"])
    frame = pd.DataFrame({"price": np.linspace(0, 1, 60), "town": towns})
    grades = (frame["town"] == "Bonn").astype(int)
    booster = lightgbm.LGBMRanker(n_estimators=3, verbose=-1).fit(frame, grades, group=[30, 30])
    text, model = tmp_path / "model.txt", tmp_path / "model.rw"
    booster.booster_.save_model(text)
    result = run(text, model, "--categories", "town", "--json")
    assert json.loads(result.stdout) == {
        "source": str(text), "target": str(model), "features": 2, "categories": ["town"],
    }  # fmt: skip
    other = frame.assign(town=frame["town"].cat.reorder_categories(["York", "Bonn", "Zug"]))
    np.testing.assert_array_equal(rankwright.load_model(model).predict(other),
                                  booster.predict(frame))  # fmt: skip
    assert (
        "a model of 2 features, 1 column of categories"
        in run(text, model, "--categories", "town").stderr
    )
    assert "no such feature; known: price, town" in refused(text, model, "--categories", "city")
    assert "options of data" in refused(text, model, "--from", "letor")
    assert "name a file" in refused(text, "-")


def test_categories_are_refused_for_data(text, tmp_path):
    message = refused(text, tmp_path / "t.csv", "--categories", "town")
    assert message == f"categories= is for models of LightGBM, and {text} is not one."
