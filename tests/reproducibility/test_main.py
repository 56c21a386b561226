import json
from types import SimpleNamespace

import pytest
from reproduce import run, run_json, sentence
from rich.console import Console
from tiny_experiment import FIGURE, TABLE, write_folds, write_toml
from tiny_reuters import write_reuters
from tiny_topics import TOPICS

from reproducibility.__main__ import _group_table


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    return write_toml(folder / "tiny.toml"), write_folds(folder / "data")


def test_list_names_the_experiments():
    found = run_json("list")["experiments"]
    assert found["intervalrank-table1"] == "IntervalRank, Table 1: OHSUMED"
    assert "intervalrank-figure3" in found
    assert "intervalrank-table1   IntervalRank, Table 1" in run("list").stdout


def test_a_table_is_printed_with_the_paper_s_figures_ours_and_intervals(tiny):
    path, folder = tiny
    done = run(path, "--data", folder, alone=True)
    for words in (
        "Tiny, Table 0",
        "(0.7000)",
        "In parentheses: author2010.",
        "selected on validation data by ndcg@5 (standard)",
        "95 % bootstrap interval over 18 test queries",
        "significantly above or below GBDT",
    ):
        assert words in done.stdout
    assert "1 of 12: tiny fold 1 of 3, GBDT: ndcg@5 0." in done.stderr


def test_long_names_of_columns_are_folded_and_not_cut():
    columns = [SimpleNamespace(name=f"p(min_grade=2)@{k}") for k in range(1, 7)]
    result = SimpleNamespace(cells=[], experiment=SimpleNamespace(row_names=[]))
    console = Console(width=60)
    with console.capture() as shown:
        console.print(_group_table(result, SimpleNamespace(columns=columns), "Table"))
    assert "…" not in shown.get()
    assert all(str(k) in shown.get() for k in range(1, 7))


def test_json_is_one_object_and_the_file_holds_all_that_lies_behind(tiny, tmp_path):
    path, folder = tiny
    found = run_json(path, "-o", tmp_path / "t.json", RANKWRIGHT_DATA=str(folder))
    assert list(found) == ["table", "rows"]
    record = json.loads((tmp_path / "t.json").read_text())
    assert record["rows"] == found["rows"]
    assert {"chosen", "tests", "missed"} <= set(record)


def test_some_rows_alone_can_be_run(tiny):
    path, folder = tiny
    found = run_json(path, "--data", folder, "--rows", "IntervalRank")
    assert {row["row"] for row in found["rows"]} == {"Oracle", "IntervalRank"}


def test_a_missed_figure_is_reported_and_exits_with_1(tiny, tmp_path):
    _, folder = tiny
    bound = '\n[[expected_metrics]]\nrow = "GBDT"\ncolumn = "map"\nvalue = 2.0\ntolerance = 0.1\n'
    path = write_toml(tmp_path / "high.toml", TABLE + bound)
    done = run(path, "--data", folder, "--json", code=1)
    assert json.loads(done.stdout)["table"] == "high"
    assert "missed: GBDT, map: 0." in done.stderr


def test_a_figure_is_drawn_with_its_curves_beside_it(tiny, tmp_path):
    _, folder = tiny
    path = write_toml(tmp_path / "figure0.toml", FIGURE)
    figure = tmp_path / "out.png"
    found = run_json(path, "--data", folder, "-o", figure)
    assert found["figure"] == str(figure)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out.json").read_text())["curves"] == found["curves"]


def test_wrong_input_is_one_sentence(tiny):
    path, _ = tiny
    assert "did you mean intervalrank-table1" in sentence("intervalrank-tabel1")
    assert "pass --data DIR" in sentence(path, RANKWRIGHT_DATA="")
    assert "a figure ends in" in sentence("intervalrank-figure3", "-o", "a.txt")


# --- test_main_topics ---


@pytest.fixture(scope="module")
def tiny_topics(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_reuters(folder / "data" / "Reuters21578")
    return write_toml(folder / "tiny.toml", TOPICS), folder / "data"


def test_a_table_over_topics_is_printed_with_the_paper_s_figures(tiny_topics):
    path, folder = tiny_topics
    done = run(path, "--data", folder)
    for words in (
        "Tiny, Table 5",
        "(0.7000)",
        "(90.00)",
        "selected on validation data by map (standard)",
        "95 % bootstrap interval over 3 topics.",
    ):
        assert words in done.stdout
    assert "1 of 8: random, sparse: 3 of 3 topics" in done.stderr


def test_json_is_one_object_also_for_some_rows(tiny_topics):
    path, folder = tiny_topics
    found = run_json(path, "--data", folder, "--rows", "pairs")
    assert list(found) == ["table", "rows"]
    assert {row["row"] for row in found["rows"]} == {"Oracle", "sparse", "pairs"}
    assert all(
        set(row) == {"row", "column", "paper", "ours", "low", "high"} for row in found["rows"]
    )


def test_the_tables_of_the_paper_are_listed():
    found = run_json("list")["experiments"]
    assert {"sparse-table12", "sparse-table13"} <= set(found)
