"""Average ranks over data sets: places by hand, ties, rows outside the paper, and a small run."""

from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data

from rankwright.data.split import Fold
from rankwright.errors import UsageError
from reproducibility.average_rank import (
    average_rank,
    run_ranks,
    with_rank_columns,
)
from reproducibility.experiment import (
    AVERAGE_RANK,
    Column,
    ColumnGroup,
    Experiment,
    Row,
    Study,
)

METRICS = ("ndcg@5", "map")


def study(name, prefix="", metrics=METRICS):
    columns = tuple(Column(prefix + metric, metric, "standard") for metric in metrics)
    return Study(name, name, None, "ndcg@5", "standard", (ColumnGroup("", columns),))


def tiny(**more):
    rows = (
        Row("Regression", "linear_regression", ({},), "Regression"),
        Row("RankSVM", "ranksvm", ({},), "RankSVM"),
        Row("Nonsense", "linear_regression", ({"l2": 1e9, "targets": "gain"},), "Nonsense"),
    )
    printed = {"Regression": {"map": 1.5}, "Nonsense": {"map": 1.5}}
    made = Experiment("t", "T", "p", "ranks", (study("A"), study("B", "B ")), rows, printed)
    return replace(made, **more)


def folds():
    parts = [small_data(queries=8, seed=seed) for seed in range(3)]
    return {"A": [Fold(*parts)], "B": [Fold(*parts[::-1])]}


def test_ranks_count_those_above_and_half_of_those_level():
    means = np.array([0.5, 0.7, 0.5, 0.1])
    assert average_rank(means, np.full(4, True)).tolist() == [2.5, 1.0, 2.5, 4.0]


def test_a_row_outside_the_paper_is_ranked_and_moves_no_other():
    among = np.array([True, False, True])
    assert average_rank(np.array([0.5, 0.7, 0.6]), among).tolist() == [2.0, 1.0, 1.0]
    assert average_rank(np.array([0.5, 0.1, 0.6]), among).tolist() == [2.0, 3.0, 1.0]


def test_the_last_study_has_the_ranks_under_the_names_of_the_first():
    shown = with_rank_columns(tiny())
    names = [[column.name for column in one.columns] for one in shown.studies]
    assert names == [["A ndcg@5", "A map"], ["B ndcg@5", "B map"], ["ndcg@5", "map"]]
    assert shown.studies[-1].name == AVERAGE_RANK


def test_studies_of_different_measures_are_reported():
    other = tiny(studies=(study("A"), study("B", "B ", ("map", "ndcg@5"))))
    with pytest.raises(UsageError, match="'B' and 'A' differ in their measures"):
        with_rank_columns(other)


def test_a_run_has_the_means_of_each_study_and_the_average_ranks():
    result = run_ranks(tiny(), folds())
    rows = ("Regression", "Nonsense")
    for metric in METRICS:
        places = []
        for name in "AB":
            a, b = (result.cell(row, f"{name} {metric}").ours for row in rows)
            places.append((1.0, 2.0) if a > b else (2.0, 1.0) if a < b else (1.5, 1.5))
        for row, expected in zip(rows, np.mean(places, axis=0), strict=True):
            cell = result.cell(row, metric)
            assert cell.ours == expected
            assert 1.0 <= cell.low <= cell.high <= 2.0
    assert result.cell("Regression", "map").paper == 1.5
    assert result.cell("RankSVM", "map").paper is None
    assert 1.0 <= result.cell("RankSVM", "map").ours <= 3.0
    assert result.queries == {"A": 8, "B": 8, AVERAGE_RANK: 16}
    assert result.record()["missed"] == []
