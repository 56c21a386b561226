"""``rankwright rank`` part by part: the same bytes as of the whole, whatever the parts."""

import re

import numpy as np
import pandas as pd
import pytest
from cases import each
from command import run, run_json, sentence

import rankwright as rw
from rankwright.data import ranking_data, tables
from rankwright.data.files import document_parts

rng = np.random.default_rng(5)
ROWS = 60
FRAME = pd.DataFrame(
    {
        "qid": np.repeat([f"q{number}" for number in range(12)], 5),
        "doc_id": [f"doc{number}" for number in range(ROWS)],
        "bm25": rng.normal(size=ROWS),
        "age": rng.normal(size=ROWS),
    }
)
GRADES = (FRAME["bm25"] + rng.normal(size=ROWS) > 0).astype(int)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.rw"
    fitted = rw.LinearRegression().fit(FRAME[["bm25", "age"]], GRADES, qid=FRAME["qid"].to_numpy())
    fitted.save(path)
    return path


@pytest.fixture
def small_parts(monkeypatch):
    """Let tables and stores come in parts of about eight rows."""
    monkeypatch.setattr(tables, "_ROWS_PER_BATCH", 8)
    monkeypatch.setattr(ranking_data, "_CELLS_PER_PART", 16)
    monkeypatch.setattr(ranking_data, "_FEWEST_ROWS_PER_PART", 8)


def written(folder, kind, frame=FRAME):
    """Return a file of documents with no grades."""
    path = folder / f"new.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "arrow":
        frame.reset_index(drop=True).to_feather(path, chunksize=8)
    else:
        data = rw.RankingData.from_frame(
            frame.assign(label=0), qid="qid", label="label", doc_id="doc_id"
        )
        rw.data.save(data, path)
    return path


@each("kind", ["parquet", "arrow", "store"])
@each("options", [(), ("--top", 2), ("--tag", "mine")])
def test_a_run_in_parts_is_the_run_of_the_whole(model, tmp_path, small_parts, kind, options):
    path = written(tmp_path, kind)
    assert len(list(document_parts(path).parts)) > 3
    whole = run("rank", model, path, *options).stdout
    reported = run_json("rank", model, path, "-o", tmp_path / "run.txt", *options)
    assert (reported["queries"], reported["documents"]) == (12, ROWS)
    assert (tmp_path / "run.txt").read_text() == whole


@each("kind", ["parquet", "store"])
def test_tables_and_scores_count_rows_over_all_parts(model, tmp_path, small_parts, kind):
    path = written(tmp_path, kind)
    for name in ("a.csv", "a.parquet", "a.scores"):
        run("rank", model, path, "-o", tmp_path / name)
    table = pd.read_parquet(tmp_path / "a.parquet")
    assert sorted(table["row"]) == list(range(ROWS))
    assert (table["doc_id"] == [f"doc{row}" for row in table["row"]]).all()
    scores = np.loadtxt(tmp_path / "a.scores")
    assert (scores[table["row"]] == table["score"]).all()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv"), table)


def test_rows_of_a_query_that_lie_apart_are_ranked_together(model, tmp_path, small_parts):
    mixed = FRAME.iloc[rng.permutation(ROWS)]
    path = written(tmp_path, "parquet", mixed)
    run("rank", model, path, "-o", tmp_path / "run.txt")
    assert (tmp_path / "run.txt").read_text() == run("rank", model, path).stdout


def test_an_error_in_a_later_part_leaves_the_old_file(model, tmp_path, small_parts):
    twice = FRAME.assign(doc_id=[*FRAME["doc_id"][:-1], FRAME["doc_id"].iloc[-2]])
    (tmp_path / "run.txt").write_text("old\n")
    reported = sentence(
        "rank", model, written(tmp_path, "parquet", twice), "-o", tmp_path / "run.txt"
    )
    assert "query q11 has two documents named 'doc58'" in reported
    assert (tmp_path / "run.txt").read_text() == "old\n"


def test_parts_whose_weights_are_all_zero_are_read_together(model, tmp_path, small_parts):
    weighted = FRAME.assign(query_weight=(FRAME.index >= 30).astype(float))
    path = written(tmp_path, "parquet", weighted)
    run("rank", model, path, "-o", tmp_path / "run.txt")
    assert len((tmp_path / "run.txt").read_text().splitlines()) == ROWS


def test_progress_is_said_in_lines_where_there_is_no_terminal(
    model, tmp_path, small_parts, monkeypatch
):
    from rankwright.cli import console

    monkeypatch.setattr(console, "SECONDS_PER_LINE", 0.0)
    path = written(tmp_path, "parquet")
    said = run("rank", model, path, "-o", tmp_path / "run.txt").stderr
    assert re.search(rf"ranking: \d+ of {ROWS}, documents", said)


@each("kind", ["parquet", "arrow"])
def test_a_file_without_documents_is_reported(kind, model, tmp_path):
    path = written(tmp_path, kind, FRAME.iloc[:0])
    reported = sentence("rank", model, path, "-o", tmp_path / "out.run")
    assert f"{path}: there are no rows." in reported
    assert not (tmp_path / "out.run").exists()
