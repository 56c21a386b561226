import json

import numpy as np
import pytest
from scipy import stats
from small_data import small_data
from tiny_experiment import TABLE, write_folds, write_toml

from rankwright.data.split import Fold
from rankwright.errors import DataError
from rankwright.metrics.significance import bootstrap_interval, holm, randomisation
from reproducibility.experiment import (
    AVERAGE_RANK,
    SOLVES,
    TIMES,
    Column,
    ColumnGroup,
    Contrast,
    Expected,
    Experiment,
    Row,
    Study,
)
from reproducibility.experiment_file import experiment
from reproducibility.folds_run import judge, load_folds
from reproducibility.reproduction import verdict
from reproducibility.table import Cell, TableResult, contrasted, run_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folds(tmp_path_factory.mktemp("tiny"))


def run(folder, tmp_path, text=TABLE, changes=None, **options):
    made = experiment(write_toml(tmp_path / "tiny.toml", text, changes=changes or {}))
    folds = load_folds(made, folder)
    return run_table(made, folds, **options), folds


@pytest.fixture(scope="module")
def result(folder, tmp_path_factory):
    return run(folder, tmp_path_factory.mktemp("toml"))


def test_the_json_is_that_of_the_design(result):
    found = result[0].as_json()
    assert list(found) == ["table", "rows"]
    assert found["table"] == "tiny"
    assert all(
        list(row) == ["row", "column", "paper", "ours", "low", "high"] for row in found["rows"]
    )
    places = [(row["row"], row["column"]) for row in found["rows"]]
    ours = ["ndcg@1", "ndcg@2", "map", "ndcg@3 standard"]
    assert places == [
        *(("Oracle", name) for name in ("ndcg@1", "map")),  # the paper has no more of it
        *(("IntervalRank", name) for name in ours),
        *(("GBDT", name) for name in ours),
    ]
    json.dumps(found, allow_nan=False)


def test_a_row_that_only_the_paper_has_shows_its_figure_alone(result):
    cell = result[0].cell("Oracle", "map")
    assert (cell.paper, cell.ours, cell.low, cell.high) == (0.8, None, None, None)


def test_ours_is_the_mean_over_pooled_test_queries_with_its_bootstrap_interval(result):
    table, folds = result
    study = table.experiment.studies[0]
    values = judge(study.columns, table.choices["tiny"], folds["tiny"])
    for row in ("GBDT", "IntervalRank"):
        for column in ("map", "ndcg@3 standard"):
            cell, expected = table.cell(row, column), bootstrap_interval(values[row][column])
            assert (cell.ours, cell.low, cell.high) == (
                expected.mean, expected.low, expected.high,
            )  # fmt: skip
            assert cell.low < cell.ours < cell.high
    assert table.cell("GBDT", "ndcg@3 standard").ours > 1  # in the paper's units
    assert table.queries == {"tiny": 18}


def test_rows_are_tested_against_the_baseline_with_holm_s_correction(folder, tmp_path):
    third = '\n[[rows]]\nname = "XE-NDCG"\nranker = "xendcg"\nuse = "trees"\n'
    table, folds = run(folder, tmp_path, TABLE + third)
    values = judge(table.experiment.studies[0].columns, table.choices["tiny"], folds["tiny"])
    others = ("IntervalRank", "XE-NDCG")
    tests = {row: randomisation(values[row]["map"], values["GBDT"]["map"]) for row in others}
    adjusted = holm({row: test.p_value for row, test in tests.items()})
    for row in others:
        cell = table.cell(row, "map")
        assert cell.difference == pytest.approx(cell.ours - table.cell("GBDT", "map").ours)
        assert cell.p_value == adjusted[row]
        assert cell.significant == (adjusted[row] <= 0.05)
    assert table.cell("GBDT", "map").p_value is None


def test_the_record_says_what_was_chosen_in_each_fold(result, tmp_path):
    table = result[0]
    table.write(tmp_path / "table.json")
    record = json.loads((tmp_path / "table.json").read_text())
    assert record["rows"] == table.as_json()["rows"]
    assert [(one["fold"], one["row"]) for one in record["chosen"]] == [
        (fold, row) for fold in (1, 2, 3) for row in ("GBDT", "IntervalRank")
    ]
    first = record["chosen"][0]
    assert first["setting"]["num_leaves"] in (2, 5)
    assert 1 <= first["rounds"] <= 4
    assert {test["row"] for test in record["tests"]} == {"IntervalRank"}
    assert record["missed"] == []


def test_the_same_seed_gives_the_same_table_for_any_number_of_threads(folder, tmp_path):
    sampled = {
        "min_child_samples = 5": 'min_child_samples = 5, "model.query_fraction" = 0.5, '
        '"model.colsample_bytree" = 0.5'
    }
    one, two, again = (
        run(folder, tmp_path, changes=sampled, n_jobs=n)[0].record() for n in (1, 2, 1)
    )
    assert one == two == again
    other = run(folder, tmp_path, changes=sampled, seed=1)[0].record()
    assert other["rows"] != one["rows"]


@pytest.mark.parametrize(
    ("column", "better", "worse"), [("map", 0.1, 2.0), ("pair_error", 1.0, -1.0)]
)
def test_a_figure_worse_than_expected_by_more_than_the_tolerance_is_missed(
    folder, tmp_path, column, better, worse
):
    def missed(value, tolerance):
        bound = (
            f'\n[[expected_metrics]]\nrow = "GBDT"\ncolumn = "{column}"\n'
            f"value = {value}\ntolerance = {tolerance}\n"
        )
        changes = {'"ndcg@1:2,map"': '"ndcg@1:2,map,pair_error"'}
        return run(folder, tmp_path, TABLE + bound, changes)[0].missed()

    assert missed(better, 0.0) == []  # better than expected is no miss
    (sentence,) = missed(worse, 0.01)
    assert sentence.startswith(f"GBDT, {column}: 0.")
    assert f"where {worse:.4f} is expected (tolerance 0.01)" in sentence
    assert missed(worse, 10.0) == []


def test_a_query_left_out_of_a_measure_is_left_out_of_its_mean(folder, tmp_path):
    table, folds = run(folder, tmp_path, changes={'"ndcg@1:2,map"': '"ndcg@1:2,map,pair_error"'})
    values = judge(table.experiment.studies[0].columns, table.choices["tiny"], folds["tiny"])
    assert table.cell("GBDT", "pair_error").ours == pytest.approx(
        np.nanmean(values["GBDT"]["pair_error"])
    )


@pytest.mark.parametrize(
    ("metric", "study", "more_is_better"),
    [
        ("map", "OHSUMED", True),
        ("pair_error", "OHSUMED", False),
        ("zero_weights", "Reuters", True),
        ("seconds", "two threads", False),
        ("iterations", "two threads", False),
        ("speedup", "two threads", True),
        ("map", AVERAGE_RANK, False),  # first is best
    ],
)
def test_what_falls_short_depends_on_which_figure_is_better(metric, study, more_is_better):
    column = Column("it", metric, "time" if metric in TIMES else "standard")
    made = Experiment(
        "tiny", "Tiny", "author2010", "table",
        (Study(study, None, {}, "map", "standard", (ColumnGroup("", (column,)),)),),
        (Row("ours", "gbdt", ({},), "ours"),),
        {}, expected=(Expected("ours", "it", 2.0, tolerance=0.5),),
    )  # fmt: skip

    def missed(ours):
        return bool(TableResult(made, (Cell("ours", "it", None, ours, 0.0, 9.0),), {}, {}).missed())

    assert [missed(1.0), missed(1.6), missed(2.4), missed(3.0)] == [
        more_is_better, False, False, not more_is_better,
    ]  # fmt: skip
    paper = Cell("ours", "it", 5.0, 2.0, 1.0, 3.0)  # where the paper has more
    expected = "worse" if more_is_better else "better"
    assert verdict(paper, made.studies[0], column) == ("lower" if metric in SOLVES else expected)


# --- test_contrasts ---


CONTRAST = """
[[contrasts]]
row = "IntervalRank"
against = "GBDT"
columns = ["ndcg@1", "map"]
"""


def made(tmp_path, test="randomisation", columns='["map"]'):
    text = CONTRAST.replace('["ndcg@1", "map"]', columns) + f'test = "{test}"\n'
    return experiment(write_toml(tmp_path / "t.toml", TABLE + text))


def folds_of(*queries):
    data = small_data(queries=max(queries))
    return {"tiny": [Fold(data, data, data.select(np.arange(n))) for n in queries]}


def test_a_paired_contrast_is_over_the_pooled_queries(tmp_path):
    a, b = np.array([0.9, 0.8, 0.7, 0.9, 0.6, 0.8]), np.array([0.1, 0.2, 0.1, 0.3, 0.2, 0.1])
    values = {"IntervalRank": {"map": a}, "GBDT": {"map": b}}
    (found,) = contrasted(made(tmp_path), values, folds_of(4, 2))
    assert found.difference == pytest.approx((a - b).mean())
    assert found.p_value == randomisation(a, b).p_value == 2 / 2**6
    assert found.low < found.difference < found.high
    assert found.verdict == "IntervalRank is better"
    assert "over 6 test queries): IntervalRank is better." in found.sentence


def test_an_unpaired_contrast_is_over_the_means_of_draws(tmp_path):
    a, b = np.array([1.0, 3.0, 5.0, 4.0, 6.0]), np.array([2.0, 2.0, 1.0, 3.0, 5.0])
    values = {"IntervalRank": {"map": a}, "GBDT": {"map": b}}
    (found,) = contrasted(made(tmp_path, "welch_t"), values, folds_of(2, 1, 2))
    theirs = stats.ttest_ind([2.0, 5.0, 5.0], [2.0, 1.0, 4.0], equal_var=False)
    assert found.n == 3
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert [found.low, found.high] == pytest.approx(list(theirs.confidence_interval(0.95)))
    assert found.verdict == "no significant difference"


def test_p_values_are_adjusted_for_the_columns_and_the_worse_row_is_named_so(tmp_path):
    low, high = np.zeros(8), np.ones(8)
    values = {
        "IntervalRank": {"ndcg@1": low, "map": high},
        "GBDT": {"ndcg@1": high, "map": high},
    }
    first, second = contrasted(made(tmp_path, columns='["ndcg@1", "map"]'), values, folds_of(8))
    assert first.p_value == pytest.approx(2 * 2 / 2**8)  # the smaller of two, times two
    assert first.verdict == "GBDT is better"
    assert second.p_value == 1.0


def test_a_table_tells_its_contrasts(tmp_path):
    table = made(tmp_path, columns='["ndcg@1", "map"]')
    result = run_table(table, load_folds(table, write_folds(tmp_path)))
    assert [one["column"] for one in result.as_json()["contrasts"]] == ["ndcg@1", "map"]
    ours = {row: result.cell(row, "map").ours for row in ("IntervalRank", "GBDT")}
    assert result.contrasts[1].difference == pytest.approx(ours["IntervalRank"] - ours["GBDT"])
    assert table.with_rows(["GBDT"]).contrasts == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({'row = "IntervalRank"\nagainst': 'row = "Oracle"\nagainst'}, "no row (in study 'tiny')"),
        ({'"ndcg@1", "map"]\n\n': '"ndcg@1", "mapp"]\n\n'}, "no column (of a contrast) 'mapp'"),
        ({'against = "GBDT"': 'against = "GBDT"\ntest = "coin"'}, "no test of a contrast 'coin'"),
    ],
)
def test_a_contrast_of_what_is_not_there_is_refused(tmp_path, changes, says):
    with pytest.raises(DataError) as caught:
        experiment(write_toml(tmp_path / "t.toml", TABLE + CONTRAST + "\n", changes=changes))
    assert says in str(caught.value)


def test_columns_are_a_tuple(tmp_path):
    assert made(tmp_path).contrasts == (Contrast("IntervalRank", "GBDT", ("map",)),)
