import json
from contextlib import nullcontext

import pytest
import typer
from tiny_experiment import FIGURE, TABLE, write_folds, write_toml

from rankwright.errors import DataError
from reproducibility import experiment_file as experiments
from reproducibility.__main__ import reproduce
from reproducibility.experiment import Column, Study
from reproducibility.reproduction import (
    Results,
    outcome,
    overall,
    page,
    run_all,
    run_experiment,
    summary,
    verdict,
)
from reproducibility.table import Cell

RANKS = (
    TABLE.replace('kind = "table"', 'kind = "ranks"')
    .replace('"ndcg@1", "map"]', '"ndcg@1"]')
    .replace("Oracle = [0.9, 0.8]\n", "")
    .replace("[0.7, 0.6]", "[1.0]")
)
MEASURED = Study("s", None, None, "ndcg@10", "standard", ())


def cell(paper, low, high):
    return Cell("r", "c", paper, (low + high) / 2, low, high)


def column(metric):
    return Column("c", metric, "standard")


def silent(_name, _steps):
    return nullcontext(lambda _line: None)


def run(results, folder, **more):
    failures = {}
    run_all(results, folder, progress=silent, failed=failures.__setitem__, **more)
    return failures


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_folds(tmp_path_factory.mktemp("data"))


@pytest.fixture
def three(tmp_path, monkeypatch):
    """A table, a figure and a table of ranks as the only experiments there are."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    for name, text in (("a_table", TABLE), ("b_figure", FIGURE), ("c_ranks", RANKS)):
        write_toml(folder / f"{name}.toml", text)
    monkeypatch.setattr(experiments, "_TABLES", folder)
    return folder


@pytest.mark.parametrize(
    ("metric", "paper", "said"),
    [
        ("ndcg@10", 0.5, "within"),
        ("ndcg@10", 0.3, "better"),
        ("ndcg@10", 0.7, "worse"),
        ("pair_error", 0.3, "worse"),
        ("pair_error", 0.7, "better"),
        ("seconds", 0.7, "better"),
        ("speedup", 0.7, "worse"),
        ("zero_weights", 0.3, "better"),
        ("iterations", 0.3, "higher"),
        ("active", 0.7, "lower"),
        ("ndcg@10", None, None),
    ],
)
def test_a_printed_figure_is_compared_with_our_interval(metric, paper, said):
    assert verdict(cell(paper, 0.4, 0.6), MEASURED, column(metric)) == said


def test_a_lower_average_rank_is_better():
    ranks = Study("average rank", None, None, "ndcg@10", "standard", ())
    assert verdict(cell(3.0, 1.0, 2.0), ranks, column("ndcg@10")) == "better"


def test_every_experiment_is_run_and_its_figures_are_kept(three, data, tmp_path):
    results = Results(tmp_path / "out")
    assert run(results, data) == {}
    found = results.read()
    assert list(found) == ["a-table", "b-figure", "c-ranks"]
    rows = found["a-table"]["rows"]
    keys = ["row", "column", "paper", "ours", "low", "high", "verdict"]
    assert all(list(row) == keys for row in rows)
    assert {row["row"] for row in rows if row["ours"] is None} == {"Oracle"}
    assert [r["paper"] for r in rows if (r["row"], r["column"]) == ("IntervalRank", "map")] == [0.6]
    assert {c["study"] for c in found["c-ranks"]["columns"]} == {"tiny", "average rank"}


def test_what_is_there_is_not_run_again_unless_its_file_or_the_seed_changed(three, data, tmp_path):
    results = Results(tmp_path / "out")
    run(results, data)
    assert list(results.missing(0)) == []
    assert list(results.missing(1)) == ["a-table", "b-figure", "c-ranks"]
    with (three / "a_table.toml").open("a") as stream:
        stream.write("\n# changed\n")
    assert list(results.missing(0)) == ["a-table"]


def test_one_that_fails_stops_none_of_the_others(three, data, tmp_path):
    write_toml(three / "a_table.toml", changes={'"TINY"': '"ELSEWHERE"'})
    results = Results(tmp_path / "out")
    failures = run(results, data)
    assert list(failures) == ["a-table"]
    assert "has no folder ELSEWHERE" in failures["a-table"]
    assert list(results.read()) == ["b-figure", "c-ranks"]


def test_figures_of_other_data_have_no_verdict(three, data, tmp_path):
    write_toml(three / "a_table.toml", changes={"[printed]\n": '[printed]\non = "the moon"\n'})
    results = Results(tmp_path / "out")
    run(results, data)
    found = results.read()["a-table"]
    assert {row["verdict"] for row in found["rows"]} == {None}
    assert overall(found) == "printed figures are of other data"
    assert "of the moon" in page({"a-table": found}, {"a-table": {"title": "T"}})


def test_the_page_has_paper_ours_interval_and_verdict_and_says_what_was_not_run():
    figures = {"paper": 0.5, "ours": 0.45, "low": 0.4, "high": 0.6, "verdict": "within"}
    found = {
        "title": "Table 0",
        "paper": "author2010",
        "printed_on": None,
        "seed": 0,
        "version": "1.0",
        "ran": "2010-02-04",
        "seconds": 12.3,
        "columns": [{"study": "tiny", "group": "letor3", "names": ["map"]}],
        "missed": ["GBDT, map: 0.4, where 2.0 is expected"],
        "contrasts": ["map: A against B +0.1: A is better."],
        "rows": [{"row": "GBDT", "column": "map", **figures}],
    }
    about = {"a-table": {"title": "Table 0", "note": "A note."}, "b-figure": {"title": "Figure 0"}}
    text = page({"a-table": found}, about)
    for words in (
        "1 printed figures: 1 within; ours is higher in 0, lower in 1; 1 expected figures missed",
        "| GBDT | **0.4500**<br>0.4000–0.6000<br>paper 0.5, within |",
        "| b-figure | Figure 0 | not run | |",
        "\nA note.\n",
        "- map: A against B +0.1: A is better.",
        "Run on 2010-02-04 with rankwright 1.0, seed 0, in 12 s",
    ):
        assert words in text


def test_figures_of_an_earlier_file_are_marked(three, data, tmp_path):
    results, marked = Results(tmp_path / "out"), "an earlier version of the experiment's file"
    run(results, data)
    assert marked not in page(results.read(), experiments.overview())
    with (three / "a_table.toml").open("a") as stream:
        stream.write("\n# changed\n")
    assert page(results.read(), experiments.overview()).count(marked) == 1


def figures(**columns):
    """Return a result: the figures of rows A, B, ... by column."""
    return {
        "rows": [
            {"row": row, "column": column, "ours": value}
            for column, values in columns.items()
            for row, value in zip("ABC", values, strict=True)
        ]
    }


@pytest.mark.parametrize(
    ("against", "said"),
    [
        ([], "1 of 3 columns, and not in p (C 0.6000 against 0.5000), map (B 0.9000 and 1 more "),
        (["B"], "2 of 3 columns, and not in map (B 0.9000 against 0.5000)."),
        (["C"], "1 of 3 columns, and not in p (C 0.6000 against 0.5000), map (C 0.5000 against"),
    ],
)
def test_a_papers_claim_is_counted_in_our_figures(against, said):
    found = figures(ndcg=[0.5, 0.4, None], p=[0.5, 0.4, 0.6], map=[0.5, 0.9, 0.5])
    columns = ["ndcg", "p", "map", "not run"]
    claim = {"says": "A is best", "row": "A", "columns": columns, "against": against}
    holds, sentence = outcome(claim, found)
    assert not holds
    assert sentence.startswith(f"The paper: A is best. Here that holds in {said}")


def test_a_claim_that_holds_everywhere_says_so():
    claim = {"says": "A is best", "row": "A", "columns": ["p"]}
    assert outcome(claim, figures(p=[0.5, 0.4, 0.3])) == (
        True,
        "The paper: A is best. Here that holds in 1 of 1 columns.",
    )


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ('row = "Oracle"\ncolumns = ["map"]', "no row \\(in study 'tiny'\\) 'Oracle'"),
        ('row = "GBDT"\ncolumns = ["mrr"]', "no column \\(of a claim\\) 'mrr'"),
        ('row = "GBDT"\ncolumns = ["map"]\nagainst = ["X"]', "no row .* 'X'"),
    ],
)
def test_a_claim_about_nothing_is_refused(entry, sentence, tmp_path):
    path = tmp_path / "own.toml"
    write_toml(path, f'{TABLE}\n[[claims]]\nsays = "so"\n{entry}\n')
    with pytest.raises(DataError, match=sentence):
        experiments.experiment(path)


def test_a_broken_result_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DataError, match=r"a\.json is no result of reproduce"):
        Results(tmp_path).read()


def test_the_command_writes_the_page_and_exits_with_1_if_one_fails(three, data, tmp_path, capsys):
    write_toml(three / "a_table.toml", changes={'"TINY"': '"ELSEWHERE"'})
    with pytest.raises(typer.Exit) as left:
        reproduce("all", data=data, results=tmp_path / "out", json=True)
    assert left.value.exit_code == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["page"] == str(tmp_path / "out.md")
    assert "| a-table | Tiny, Table 0 | not run | |" in (tmp_path / "out.md").read_text()
    assert list(printed["failed"]) == ["a-table"]
    assert printed["verdicts"]["b-figure"] == "no printed figures"


def test_a_file_of_ones_own_does_not_pass_for_the_experiment_of_its_name(three, data, tmp_path):
    own = tmp_path / "a_table.toml"
    own.write_text((three / "a_table.toml").read_text() + "\n# mine\n")
    results = Results(tmp_path / "results")
    result = run_experiment(experiments.experiment(own), data, progress=silent)
    results.keep(summary(result, seconds=0.0, seed=0))
    assert "a-table" in list(results.missing(0))
    result = run_experiment(experiments.experiment("a-table"), data, progress=silent)
    results.keep(summary(result, seconds=0.0, seed=0))
    assert "a-table" not in list(results.missing(0))
