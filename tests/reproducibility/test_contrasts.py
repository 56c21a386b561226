"""Which of two rows is better, from values that are easy to check."""

import numpy as np
import pytest
from scipy import stats
from small_data import small_data
from tiny_experiment import TABLE, write_folds, write_toml

from rankwright.data.split import Fold
from rankwright.errors import DataError
from reproducibility.contrasts import contrasted
from reproducibility.experiment import Contrast, experiment
from reproducibility.folds_run import load_folds
from reproducibility.table import run_table
from rankwright.metrics.significance import randomisation

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
    assert found.verdict == "no difference beyond luck"


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
