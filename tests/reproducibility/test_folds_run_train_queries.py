"""Measures and time against the number of training queries."""

import numpy as np
import pytest
from tiny_experiment import TABLE, drawn_curves, write_toml

from rankwright.errors import DataError
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker
from reproducibility.experiment import parameters
from reproducibility.experiment_file import experiment
from reproducibility.figure import draw
from reproducibility.folds_run import fits, with_train_queries

STUDY = """
[[studies]]
name = "sizes"
folds = "TINY"
select = "ndcg@5"
train_queries = [12, 4]
rows = ["GBDT"]
[[studies.columns]]
title = "NDCG@5"
metrics = "ndcg@5"
name = "NDCG@5 of {queries}"
[[studies.columns]]
title = "time"
metrics = "seconds"
name = "seconds of {queries}"
"""
FIGURE = (TABLE + STUDY).replace('kind = "table"', 'kind = "figure"').replace(
    'metrics = "ndcg@1:2,map"', 'metrics = "ndcg@1:2"'
).replace('["ndcg@1", "map"]', '["ndcg@1", "ndcg@2"]')  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return drawn_curves(tmp_path_factory.mktemp("tiny"), FIGURE)


def test_smaller_training_sets_are_parts_of_larger_ones(run):
    folds = run[1]["sizes"]
    few, more = (with_train_queries(folds, n, seed=3) for n in (4, 7))
    for small, large, whole in zip(few, more, folds, strict=True):
        assert (small.train.n_queries, large.train.n_queries) == (4, 7)
        assert set(small.train.qid) < set(large.train.qid) < set(whole.train.qid)
        assert small.test is whole.test
    assert [set(a.train.qid) for a in few] != [
        set(a.train.qid) for a in with_train_queries(folds, 4, seed=4)
    ]
    with pytest.raises(DataError, match="fold 1 has 12 training queries, not 13"):
        with_train_queries(folds, 13)


def test_each_column_is_one_for_each_number_and_is_learnt_from_so_many(run):
    result, folds, _ = run
    study = result.experiment.studies[1]
    assert [column.name for column in study.columns] == [
        "NDCG@5 of 4", "NDCG@5 of 12", "seconds of 4", "seconds of 12",
    ]  # fmt: skip
    chosen = [one for one in result.table.record()["chosen"] if one["study"] == "sizes"]
    assert [(one["train_queries"], one["fold"]) for one in chosen] == [
        *((4, n) for n in (1, 2, 3)),
        *((12, n) for n in (1, 2, 3)),
    ]
    values = []
    for fold, one in zip(with_train_queries(folds["sizes"], 4), chosen, strict=False):
        made = ranker("gbdt", metric="ndcg@5", **parameters(one["setting"]))
        made.fit(fold.train, eval_set=fold.valid)
        values.append(evaluate(fold.test, made.predict(fold.test), "ndcg@5").per_query["ndcg@5"])
    assert result.table.cell("GBDT", "NDCG@5 of 4").ours == pytest.approx(
        np.concatenate(values).mean(), abs=1e-12
    )


def test_a_row_that_a_study_leaves_out_has_no_cells_and_no_curve_there(run):
    result = run[0]
    places = {(cell.row, cell.column) for cell in result.table.cells}
    assert ("GBDT", "NDCG@5 of 4") in places
    assert ("IntervalRank", "NDCG@5 of 4") not in places
    assert ("IntervalRank", "ndcg@1") in places
    assert {curve.row for curve in result.curves if curve.study == "sizes"} == {"GBDT"}


def test_curves_are_over_the_numbers_and_seconds_are_means_over_folds(run, tmp_path):
    result = run[0]
    quality, seconds = (curve for curve in result.curves if curve.study == "sizes")
    assert (quality.over, quality.x) == ("training queries", (4, 12))
    taken = [choices[0].seconds for choices in result.table.choices["sizes"]]
    assert seconds.ours == pytest.approx((np.mean(taken[:3]), np.mean(taken[3:])))
    assert min(taken) > 0.0
    draw(result, tmp_path / "figure.svg")
    assert "IntervalRank" in (tmp_path / "figure.svg").read_text()


def test_every_fit_is_counted_beforehand(run):
    result, folds, lines = run
    assert len(lines) == fits(result.experiment, folds) == 3 * (2 + 2) + 2 * 3 * 2
    assert lines[-1].startswith("12 queries of sizes fold 3 of 3, GBDT: ndcg@5 0.")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"[12, 4]": "[0, 4]"}, "train_queries are numbers from 1"),
        ({'rows = ["GBDT"]': 'rows = ["GBTD"]'}, "no row (of study 'sizes') 'GBTD'"),
        ({"[12, 4]": "[12, 4]\ntrees = [1]"}, "train_queries are for tables, and figures without"),
        ({"train_queries = [12, 4]\n": ""}, "measures time, which needs kind"),
        ({'name = "NDCG@5 of {queries}"': 'name = "NDCG@5"'}, "two columns are called 'NDCG@5'"),
    ],
)
def test_a_fault_is_one_sentence(tmp_path, changes, says):
    with pytest.raises(DataError) as caught:
        experiment(write_toml(tmp_path / "t.toml", TABLE + STUDY, changes=changes))
    assert says in str(caught.value)
