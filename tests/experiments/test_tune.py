"""Tuning: the planted optimum is found, the same seed gives the same trials, also after a kill."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data

from rankwright.errors import DataError, MissingExtraError, UsageError
from rankwright.experiments import tune_trials as module
from rankwright.experiments.tune import tune
from rankwright.rankers.base import ranker
from rankwright.rankers.search_space import Choice, Floats, Log

optuna = pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def parts():
    return small_data(queries=12, documents=10), small_data(queries=8, documents=10, seed=1)


@pytest.fixture
def planted(monkeypatch):
    """Judge a trial by how near its l2 is to 0.1, whatever the data say."""

    def value(data, scores, chosen):
        return {repr(chosen): value.of(value.ranker)}

    original = module.clone

    def watched(made):
        value.ranker = original(made)
        return value.ranker

    value.of = lambda made: -abs(np.log10(made.l2 / 0.1))
    monkeypatch.setattr(module, "clone", watched)
    monkeypatch.setattr(module, "evaluate", value)
    return value


def settings(found):
    return [(trial.state, dict(trial.parameters), trial.value) for trial in found.trials]


def test_the_planted_optimum_is_found(parts, planted):
    found = tune(ranker("ranksvm"), *parts, trials=30, space={"l2": Log(1e-6, 1e3)})
    assert abs(np.log10(found.parameters["l2"] / 0.1)) < 0.3
    assert found.value == max(trial.value for trial in found.trials)
    assert found.ranker.l2 == found.parameters["l2"]
    assert found.ranker.predict(parts[1]).shape == parts[1].y.shape


def test_of_a_metric_that_falls_the_least_is_best(parts, planted):
    planted.of = lambda made: abs(np.log10(made.l2 / 0.1))
    made = ranker("ranksvm", select_metric="pair_error")
    found = tune(made, *parts, trials=20, space={"l2": Log(1e-6, 1e3)})
    assert found.value == min(trial.value for trial in found.trials)


def test_the_first_trial_stands_at_the_defaults(parts):
    found = tune(ranker("ranksvm"), *parts, trials=2)
    assert found.trials[0].parameters == {"l2": 1e-3, "pairs": "uniform"}
    assert found.value >= found.trials[0].value


def test_the_same_seed_gives_the_same_trials_and_another_seed_others(parts):
    runs = [tune(ranker("ranksvm"), *parts, trials=4, seed=seed) for seed in (0, 0, 1)]
    assert settings(runs[0]) == settings(runs[1])
    assert settings(runs[0]) != settings(runs[2])


def test_the_value_is_that_of_the_fitted_ranker_on_valid(parts):
    found = tune(ranker("ranksvm"), *parts, trials=3)
    assert found.ranker.score(parts[1]) == found.value
    assert found.metric == "ndcg@10"


def test_a_metric_without_a_value_on_valid_is_told(parts):
    train, valid = parts
    nothing = replace(valid, y=np.zeros_like(valid.y))
    with pytest.raises(DataError, match="no trial succeeded; the last one: auc has no value"):
        tune(ranker("ranksvm", select_metric="auc"), train, nothing, trials=2)


def test_the_ranker_given_is_left_as_it_is(parts):
    made = ranker("ranksvm")
    before = made.get_params()
    tune(made, *parts, trials=2)
    assert made.get_params() == before
    assert not hasattr(made, "model_")


@pytest.mark.parametrize("storage", ["trials.log", "sqlite"])
def test_a_study_goes_on_where_it_was(parts, tmp_path, storage):
    kept = f"sqlite:///{tmp_path}/trials.db" if storage == "sqlite" else tmp_path / storage
    whole = tune(ranker("ranksvm"), *parts, trials=6)
    first = tune(ranker("ranksvm"), *parts, trials=3, storage=kept)
    seen = []
    second = tune(ranker("ranksvm"), *parts, trials=6, storage=kept, report=seen.append)
    assert settings(first) == settings(whole)[:3]
    assert settings(second) == settings(whole)
    assert len(seen) == 6
    np.testing.assert_array_equal(second.ranker.coef_, whole.ranker.coef_)
    again = tune(ranker("ranksvm"), *parts, trials=6, storage=kept)
    assert settings(again) == settings(whole)
    np.testing.assert_array_equal(again.ranker.coef_, whole.ranker.coef_)


KILLED = """
import sys
from small_data import small_data
from rankwright.experiments.tune import tune
from rankwright.rankers.base import ranker
parts = small_data(queries=12, documents=10), small_data(queries=8, documents=10, seed=1)
told = lambda trial: print(trial.number, flush=True)
tune(ranker("gbdt", n_trees=200), *parts, trials=40, storage=sys.argv[1], report=told)
"""


def test_a_study_killed_in_a_trial_makes_that_trial_again(parts, tmp_path):
    storage = tmp_path / "trials.log"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(storage)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert [run.stdout.readline() for _ in range(2)] == ["0\n", "1\n"]
        time.sleep(0.1)
        run.kill()
    made = ranker("gbdt", n_trees=200)
    seen = []
    again = tune(made, *parts, trials=5, storage=storage, report=seen.append)
    assert [trial.number for trial in seen[:2]] == [0, 1]
    assert settings(again)[:5] == settings(tune(made, *parts, trials=len(again.trials)))[:5]


def test_another_task_on_the_same_study_is_refused(parts, tmp_path):
    storage = tmp_path / "trials.log"
    tune(ranker("ranksvm"), *parts, trials=1, storage=storage)
    for changed in ({"seed": 1}, {"space": {"l2": Log(1e-3, 1.0)}}):
        with pytest.raises(UsageError, match="study 'ranksvm' of other data, settings or seed"):
            tune(ranker("ranksvm"), *parts, trials=1, storage=storage, **changed)
    with pytest.raises(UsageError, match="other data"):
        tune(ranker("ranksvm"), parts[1], parts[0], trials=1, storage=storage)
    tune(ranker("ranksvm"), *parts, trials=1, storage=storage, study="other", seed=1)


def test_trials_whose_curve_falls_behind_are_pruned(parts):
    """Steps of nearly nothing cannot catch up with those of one tenth."""
    made = ranker("gbdt", n_trees=40, num_leaves=4, min_documents=5)
    space = {"learning_rate": Choice(0.1, 1e-12)}
    found = tune(made, *parts, trials=25, space=space)
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert {trial.parameters["learning_rate"] for trial in pruned} == {1e-12}
    assert found.parameters == {"learning_rate": 0.1}


def test_a_trial_that_fails_is_kept_with_its_sentence_and_the_others_go_on(parts):
    space = {"pairs": Choice("uniform", "no such pairs")}
    found = tune(ranker("ranksvm"), *parts, trials=8, space=space)
    failed = [trial for trial in found.trials if trial.state == "failed"]
    assert failed
    assert all("no such pairs" in trial.sentence for trial in failed)
    assert found.parameters == {"pairs": "uniform"}
    with pytest.raises(DataError, match="no trial succeeded; the last one: "):
        tune(ranker("ranksvm"), *parts, trials=2, space={"pairs": Choice("none of these")})


def test_no_trial_begins_after_the_timeout_but_one_is_made(parts):
    assert len(tune(ranker("ranksvm"), *parts, trials=50, timeout=0).trials) == 1


def test_wrong_options_are_refused(parts, tmp_path):
    with pytest.raises(UsageError, match="trials must be 1 or more"):
        tune(ranker("ranksvm"), *parts, trials=0)
    with pytest.raises(UsageError, match="nothing to search"):
        tune(ranker("ranksvm"), *parts, fixed=("l2", "pairs"))
    with pytest.raises(UsageError, match="is a folder; --storage takes the name of a file"):
        tune(ranker("ranksvm"), *parts, storage=tmp_path)
    with pytest.raises(UsageError, match="is not a folder; make it"):
        tune(ranker("ranksvm"), *parts, storage=tmp_path / "no" / "trials.log")
    with pytest.raises(UsageError, match="cannot be opened"):
        tune(ranker("ranksvm"), *parts, storage="sqlite:////no/such/folder/trials.db")


def test_without_optuna_the_extra_is_named(parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankwright\[tune\]'"):
        tune(ranker("ranksvm"), *parts)


def test_floats_stay_within_their_bounds(parts):
    found = tune(ranker("dorm"), *parts, trials=3, space={"decay": Floats(0.5, 2.0)})
    assert all(0.5 <= trial.parameters["decay"] <= 2.0 for trial in found.trials)
