"""Validation data chooses, test data is looked at once, and seeds fix folds and draws."""

import numpy as np
import pytest
from small_data import small_data

import rankwright as rw
from rankwright.data import Fold
from reproducibility.protocol import (
    Column,
    Run,
    Study,
    choose,
    choose_all,
    columns,
    evaluate_test,
    first_queries,
    generator,
    row,
    staged_scores,
    time_fits,
)

RUN = Run(data=None, n_jobs=1)


def make_fold(seed=0):
    return Fold(*(small_data(queries=8, seed=10 * seed + part) for part in range(3)))


class Probe:
    """Score by one feature and record which data is scored."""

    log: list = []

    def __init__(self, *, feature=0):
        self.feature = feature

    def fit(self, X):
        return self

    def predict(self, X):
        self.log.append(X)
        return X.X[:, self.feature]


@pytest.fixture
def log():
    Probe.log = []
    return Probe.log


def test_a_row_has_a_setting_for_each_point_of_its_grid():
    one = row("MEMR", "memr", l2=0.1, grid={"size": [1, 2], "margin": ["sqrt", "constant"]})
    assert [(s["size"], s["margin"]) for s in one.settings] == [
        (1, "sqrt"), (1, "constant"), (2, "sqrt"), (2, "constant"),
    ]  # fmt: skip
    assert all(setting["l2"] == 0.1 for setting in one.settings)


def test_validation_chooses_and_test_is_looked_at_once_at_the_end(log):
    folds = [make_fold(0), make_fold(1)]
    rows = [row(name, Probe, grid={"feature": [5, 0]}) for name in "ab"]
    study = Study("small", folds, "ndcg@5", [Column("NDCG", "ndcg@5", scale=100.0)])
    chosen = choose_all(study, rows, RUN)
    assert all(data in (fold.valid for fold in folds) for data in log)
    assert [choices["a"].setting["feature"] for choices in chosen] == [0, 0]
    log.clear()
    values = evaluate_test(study, chosen)
    assert [id(data) for data in log] == [id(folds[0].test)] * 2 + [id(folds[1].test)] * 2
    for fold, part in zip(folds, values["a"]["NDCG"], strict=True):
        expected = rw.evaluate(fold.test, fold.test.X[:, 0], "ndcg@5").per_query["ndcg@5"]
        np.testing.assert_array_equal(part, 100.0 * expected)


def test_of_equally_good_settings_the_first_is_kept():
    study = Study("small", [make_fold()], "ndcg@5", columns("ndcg@5"))
    one = row("a", Probe, grid={"feature": [0, -6]})  # the same column
    assert choose(one, study, study.folds[0], RUN).setting == {"feature": 0}


@pytest.mark.parametrize("convention", ["standard", "ranklib", "letor3"])
def test_tied_scores_count_as_the_mean_over_their_orders(convention):
    """A tree that may not split ties all documents, which file order would call ideal."""
    rng = np.random.default_rng(0)
    y = np.tile([2.0, 1, 1, 0, 0, 0, 0, 0], 12)
    X = [np.stack([y + 0.8 * rng.normal(size=96), rng.normal(size=96)], axis=1) for _ in range(2)]
    parts = [rw.RankingData.from_arrays(part, y, group_sizes=[8] * 12) for part in X]
    one = row("trees", "gbdt", rounds=(), n_estimators=20, grid={"min_child_samples": [9_999, 3]})
    study = Study("sorted", [], "ndcg@3", [], convention)
    assert choose(one, study, Fold(*parts, None), RUN).setting["min_child_samples"] == 3


def test_the_best_number_of_trees_is_chosen_among_the_rounds():
    fold, metric, rounds = make_fold(), "ndcg(ties=mean)@5", (1, 10)
    study = Study("small", [fold], "ndcg@5", columns("ndcg@5"))
    choice = choose(row("trees", "gbdt", rounds=rounds, min_child_samples=5), study, fold, RUN)
    values = []
    for count, scores in zip(rounds, staged_scores(choice.fitted, fold.valid, rounds), strict=True):
        values.append(rw.evaluate(fold.valid, scores, metric)[metric])
        alone = rw.ranker("gbdt", n_estimators=count, min_child_samples=5, n_jobs=1)
        difference = alone.fit(fold.train).predict(fold.valid) - scores
        np.testing.assert_allclose(difference, difference[0], rtol=1e-9)  # the constant start
    assert choice.trees == rounds[int(np.argmax(values))]
    assert choice.valid == max(values)


def test_smaller_training_sets_are_parts_of_the_larger_ones():
    folds = [make_fold(0), make_fold(1)]
    two, five = (first_queries(folds, count, seed=0) for count in (2, 5))
    for fold, small, large in zip(folds, two, five, strict=True):
        assert set(small.train.qid) < set(large.train.qid) < set(fold.train.qid)
        assert small.test is fold.test
    again = first_queries(folds, 5, seed=0)
    np.testing.assert_array_equal(again[1].train.qid, five[1].train.qid)


def test_random_numbers_are_those_of_version_0_2():
    drawn = generator(0, "train_queries", 1).permutation(8)
    assert drawn.tolist() == [4, 5, 1, 0, 2, 3, 7, 6]
    assert generator(1, "train_queries", 1).permutation(8).tolist() != drawn.tolist()


def test_the_first_fit_of_each_row_is_not_timed(log):
    timed = time_fits([row("a", Probe), row("b", Probe)], make_fold().train, RUN, repeats=3)
    assert [len(seconds) for _, seconds in timed.values()] == [3, 3]
    assert all(b >= 0.0 for _, seconds in timed.values() for b in seconds)
