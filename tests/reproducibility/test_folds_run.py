from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data
from tiny_experiment import write_folds, write_toml

from rankwright.errors import DataError
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import Ranker, ranker
from reproducibility import folds_run
from reproducibility.experiment import Row
from reproducibility.experiment_file import experiment
from reproducibility.folds_run import (
    Training,
    choose,
    choose_all,
    fits,
    judge,
    load_folds,
    staged_scores,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    made = experiment(write_toml(folder / "tiny.toml"))
    return made, load_folds(made, write_folds(folder))


def test_test_data_is_not_seen_before_everything_is_chosen(tiny, monkeypatch):
    made, folds = tiny
    study, parts = made.studies[0], folds["tiny"]
    seen = []

    def part_of(data):
        return next(
            f"{part} {i}"
            for i, fold in enumerate(parts)
            for part, one in zip(("train", "valid", "test"), fold, strict=True)
            if one is data
        )

    def watched(name):
        original = getattr(Ranker, name)

        def spy(self, X, *args, **more):
            seen.append((name, part_of(X)))
            if more.get("eval_set") is not None:
                seen.append(("eval_set", part_of(more["eval_set"])))
            return original(self, X, *args, **more)

        monkeypatch.setattr(Ranker, name, spy)

    watched("fit")
    watched("predict")

    def noted(data, *args, **more):
        seen.append(("evaluate", part_of(data)))
        return evaluate(data, *args, **more)

    monkeypatch.setattr(folds_run, "evaluate", noted)
    chosen = choose_all(made.rows, study, parts)
    assert {part.split()[0] for how, part in seen if how == "fit"} == {"train"}
    assert not [part for _, part in seen if part.startswith("test")]

    seen.clear()
    judge(study.columns, chosen, parts)
    assert {how for how, _ in seen} == {"predict", "evaluate"}
    assert {part for _, part in seen} == {"test 0", "test 1", "test 2"}
    assert sum(how == "predict" for how, _ in seen) == 2 * 3  # each row once in each fold


def test_the_setting_that_is_best_on_valid_is_kept(tiny):
    made, folds = tiny
    study, fold = made.studies[0], folds["tiny"][0]
    row = made.rows[0]
    found = choose(Training(row, study, fold.train), fold.valid)
    values = []
    for setting in row.settings:
        fitted = ranker(row.ranker, metric="ndcg@5", **setting).fit(fold.train, eval_set=fold.valid)
        values.append(evaluate(fold.valid, fitted.predict(fold.valid), "ndcg@5")["ndcg@5"])
    assert values[0] != values[1]
    assert found.valid == max(values)
    assert found.setting == row.settings[int(np.argmax(values))]


def test_of_equally_good_settings_the_first_is_kept(tiny):
    made, folds = tiny
    study, fold = made.studies[0], folds["tiny"][0]
    setting = dict(made.rows[0].settings[0])
    twice = Row("GBDT", "gbdt", (setting, {**setting, "verbose": False}), "GBDT")
    assert choose(Training(twice, study, fold.train), fold.valid).setting is setting


def test_with_rounds_named_valid_chooses_among_these_numbers_of_trees_alone(tiny):
    made, folds = tiny
    study, fold = made.studies[0], folds["tiny"][0]
    row = replace(made.rows[0], rounds=(2, 5, 7))
    found = choose(Training(row, study, fold.train), fold.valid)
    values = {}
    for setting in row.settings:
        for t in row.rounds:
            tried = {**setting, "n_estimators": t}
            scores = ranker(row.ranker, **tried).fit(fold.train).predict(fold.valid)
            values[t, setting["num_leaves"]] = evaluate(fold.valid, scores, "ndcg@5")["ndcg@5"]
    best = max(values, key=values.get)
    assert found.valid == pytest.approx(values[best], abs=1e-12)
    assert (found.setting["model.n_estimators"], found.setting["num_leaves"]) == best
    assert found.ranker.booster_.num_trees() == best[0]


LONG = {"n_estimators": 40, "early_stopping_rounds": None}


def test_with_no_rounds_named_valid_chooses_the_round_and_with_none_left_it_does_not(tiny):
    made, folds = tiny
    study, fold = made.studies[0], folds["tiny"][2]
    row = replace(made.rows[0], settings=({**made.rows[0].settings[0], **LONG},))
    free = choose(Training(row, study, fold.train), fold.valid)
    own = choose(Training(replace(row, rounds=()), study, fold.train), fold.valid)
    assert free.ranker.best_iteration_ < own.ranker.best_iteration_ == 40
    assert free.valid > own.valid


def test_staged_scores_are_those_of_models_with_so_many_trees():
    data = small_data()
    full = ranker("gbdt", n_estimators=7, num_leaves=4).fit(data)
    for t, scores in zip((1, 4, 7, 9), staged_scores(full, data.X, (1, 4, 7, 9)), strict=True):
        small = ranker("gbdt", n_estimators=min(t, 7), num_leaves=4).fit(data).predict(data)
        np.testing.assert_allclose(scores - scores[0], small - small[0], atol=1e-12)


def test_a_measure_that_falls_as_rankings_improve_is_minimised(tiny, tmp_path):
    path = write_toml(tmp_path / "t.toml", changes={'select = "ndcg@5"': 'select = "pair_error"'})
    study = experiment(path).studies[0]
    made, folds = tiny
    fold, row = folds["tiny"][0], made.rows[0]
    found = choose(Training(row, study, fold.train), fold.valid)
    alone = [
        choose(Training(replace(row, settings=(one,)), study, fold.train), fold.valid).valid
        for one in row.settings
    ]
    assert alone[0] != alone[1]
    assert found.valid == min(alone)


def test_test_queries_are_pooled_and_scaled_to_the_paper_s_units(tiny):
    made, folds = tiny
    study, parts = made.studies[0], folds["tiny"]
    chosen = choose_all(made.rows, study, parts)
    values = judge(study.columns, chosen, parts)
    expected = [
        100
        * evaluate(fold.test, choices[0].ranker.predict(fold.test), "ndcg@3").per_query["ndcg@3"]
        for choices, fold in zip(chosen, parts, strict=True)
    ]
    np.testing.assert_array_equal(values["GBDT"]["ndcg@3 standard"], np.concatenate(expected))
    assert len(values["GBDT"]["map"]) == 3 * 6


def test_every_fit_is_reported_once_and_counted_beforehand(tiny):
    made, folds = tiny
    lines = []
    choose_all(made.rows, made.studies[0], folds["tiny"], report=lines.append)
    assert len(lines) == fits(made, folds) == 3 * (2 + 2)
    assert lines[0].startswith("tiny fold 1 of 3, GBDT: ndcg@5 0.")
    assert lines[-1].startswith("tiny fold 3 of 3, IntervalRank: ndcg@5 0.")


def test_an_interrupted_fit_ends_the_experiment(tiny, monkeypatch):
    made, folds = tiny
    monkeypatch.setattr(
        Ranker, "fit", lambda self, X, **_: setattr(self, "interrupted_", True) or self
    )
    with pytest.raises(KeyboardInterrupt):
        choose_all(made.rows, made.studies[0], folds["tiny"])


def test_missing_data_is_a_sentence_with_what_to_do(tiny, tmp_path):
    made, _ = tiny
    with pytest.raises(DataError, match="tiny needs its data: pass --data DIR"):
        load_folds(made, None)
    with pytest.raises(DataError, match="nowhere is not a folder"):
        load_folds(made, tmp_path / "nowhere")
    with pytest.raises(DataError, match="has no folder TINY; --data is the folder that holds it"):
        load_folds(made, tmp_path)


def test_small_data_differs_between_the_parts():
    """The folds of these tests share no query, or choosing on test would go unnoticed."""
    assert not np.array_equal(small_data(seed=14).y, small_data(seed=15).y)
