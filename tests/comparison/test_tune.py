"""Tuning: the planted optimum is found, the same seed gives the same trials, also after a kill."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from small_data import small_data

import rankwright as rw
from rankwright.comparison.tune import _JournalLock, tune
from rankwright.data.split import k_folds
from rankwright.errors import DataError, MissingExtraError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker
from rankwright.rankers.search_space import space_of, user_space

optuna = pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def parts():
    return small_data(queries=12, documents=10), small_data(queries=8, documents=10, seed=1)


@pytest.fixture
def planted(monkeypatch):
    """Judge a trial by how near its l2 is to 0.1, whatever the data say."""

    def value(data, scores, selects):
        return {repr(selects): value.of(value.ranker)}

    module = import_module("rankwright.comparison.tune")
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
    found = tune(ranker("ranksvm"), *parts, trials=30, space={"l2": (1e-6, 1e3, "log")})
    assert abs(np.log10(found.parameters["l2"] / 0.1)) < 0.3
    assert found.value == max(trial.value for trial in found.trials)
    assert found.ranker.l2 == found.parameters["l2"]
    assert found.ranker.predict(parts[1]).shape == parts[1].y.shape


def test_of_a_metric_that_falls_the_least_is_best(parts, planted):
    planted.of = lambda made: abs(np.log10(made.l2 / 0.1))
    made = ranker("ranksvm", metric="pair_error")
    found = tune(made, *parts, trials=20, space={"l2": (1e-6, 1e3, "log")})
    assert found.value == min(trial.value for trial in found.trials)


def first_grade(scores, grades):
    return float(grades[np.argmax(scores)])


def test_parameters_of_a_model_object_are_searched_and_a_function_judges(parts):
    loss = rw.losses.ListNet(k=2)
    made = rw.Ranker(loss=loss, model=rw.models.Trees(n_estimators=3), metric=first_grade)
    found = tune(made, *parts, trials=4)
    searched = {"model__num_leaves", "model__learning_rate", "model__min_child_samples"}
    assert set(found.parameters) == {*searched, "model__colsample_bytree"}  # n_estimators is given
    assert found.trials[0].parameters["model__num_leaves"] == 7  # the default comes first
    assert found.metric == "first_grade"
    assert (
        found.value
        == evaluate(parts[1], found.ranker.predict(parts[1]), first_grade)["first_grade"]
    )
    assert found.ranker.model.num_leaves == found.parameters["model__num_leaves"]
    assert (found.ranker.model.n_estimators, found.ranker.loss) == (3, loss)
    assert made.model == rw.models.Trees(n_estimators=3)  # the caller's object stays as it is


def test_what_is_set_for_the_model_of_a_named_ranker_is_not_searched(parts):
    made = ranker("gbdt", model__max_bins=63, num_leaves=7)
    assert made.model == rw.models.Trees(num_leaves=7, max_bins=63)
    searched = space_of(made, fixed={"model__max_bins": 63, "num_leaves": 7})
    assert "model__learning_rate" in searched
    assert not {"num_leaves", "model__num_leaves", "learning_rate"} & set(searched)
    assert "model__num_leaves" in space_of(ranker("gbdt", model__max_bins=63))  # 15 is GBDT's own


def test_the_first_trial_stands_at_the_defaults(parts):
    found = tune(ranker("ranksvm"), *parts, trials=2)
    assert found.trials[0].parameters == {"l2": 1e-3, "pairs": "uniform"}
    assert found.value >= found.trials[0].value


def test_the_same_seed_gives_the_same_trials_and_another_seed_others(parts):
    runs = [tune(ranker("ranksvm"), *parts, trials=4, random_state=seed) for seed in (0, 0, 1)]
    assert settings(runs[0]) == settings(runs[1])
    assert settings(runs[0]) != settings(runs[2])


def test_the_value_is_that_of_the_fitted_ranker_on_valid(parts):
    found = tune(ranker("ranksvm"), *parts, trials=3)
    assert found.ranker.score(parts[1]) == found.value
    assert found.metric == "ndcg@10"


def test_a_metric_without_a_value_on_valid_is_reported(parts):
    train, valid = parts
    nothing = replace(valid, y=np.zeros_like(valid.y))
    with pytest.raises(DataError, match="no trial succeeded; the last one: auc has no value"):
        tune(ranker("ranksvm", metric="auc"), train, nothing, trials=2)


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
from rankwright.comparison.tune import tune
from rankwright.rankers.base import ranker
parts = small_data(queries=12, documents=10), small_data(queries=8, documents=10, seed=1)
reported = lambda trial: print(trial.number, flush=True)
tune(ranker("gbdt", n_estimators=200), *parts, trials=40, storage=sys.argv[1], report=reported)
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
    made = ranker("gbdt", n_estimators=200)
    seen = []
    again = tune(made, *parts, trials=5, storage=storage, report=seen.append)
    assert [trial.number for trial in seen[:2]] == [0, 1]
    assert settings(again)[:5] == settings(tune(made, *parts, trials=len(again.trials)))[:5]


def test_a_journal_is_written_by_one_at_a_time(tmp_path):
    path, order = tmp_path / "trials.log", []
    path.touch()
    one, two = _JournalLock(path), _JournalLock(path)
    one.acquire()

    def write():
        two.acquire()
        order.append("two")
        two.release()

    waiting = threading.Thread(target=write)
    waiting.start()
    waiting.join(0.2)
    order.append("one")
    one.release()
    waiting.join()
    assert order == ["one", "two"]


def test_another_task_on_the_same_study_is_refused(parts, tmp_path):
    storage = tmp_path / "trials.log"
    tune(ranker("ranksvm"), *parts, trials=1, storage=storage)
    for changed in ({"random_state": 1}, {"space": {"l2": (1e-3, 1.0, "log")}}):
        with pytest.raises(UsageError, match="study 'ranksvm' of other data, settings or seed"):
            tune(ranker("ranksvm"), *parts, trials=1, storage=storage, **changed)
    with pytest.raises(UsageError, match="other data"):
        tune(ranker("ranksvm"), parts[1], parts[0], trials=1, storage=storage)
    tune(ranker("ranksvm"), *parts, trials=1, storage=storage, study="other", random_state=1)


def test_trials_whose_curve_falls_behind_are_pruned(parts):
    """Steps of nearly nothing cannot catch up with those of one tenth."""
    made = ranker("gbdt", n_estimators=40, num_leaves=4, min_child_samples=5)
    space = {"learning_rate": [0.1, 1e-12]}
    found = tune(made, *parts, trials=25, space=space)
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert {trial.parameters["learning_rate"] for trial in pruned} == {1e-12}
    assert found.parameters == {"learning_rate": 0.1}


def test_a_trial_that_fails_is_kept_with_its_sentence_and_the_others_go_on(parts):
    space = {"pairs": ["uniform", "no such pairs"]}
    found = tune(ranker("ranksvm"), *parts, trials=8, space=space)
    failed = [trial for trial in found.trials if trial.state == "failed"]
    assert failed
    assert all("no such pairs" in trial.sentence for trial in failed)
    assert found.parameters == {"pairs": "uniform"}
    with pytest.raises(DataError, match="no trial succeeded; the last one: "):
        tune(ranker("ranksvm"), *parts, trials=2, space={"pairs": ["none of these"]})


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
    found = tune(ranker("dorm"), *parts, trials=3, space={"decay": (0.5, 2.0)})
    assert all(0.5 <= trial.parameters["decay"] <= 2.0 for trial in found.trials)


# --- by name, over a space of one's own, by cross-validation ---------------------------------


def test_a_name_stands_for_the_ranker_with_its_defaults(parts):
    named, made = (tune(one, *parts, trials=2) for one in ("ranksvm", ranker("ranksvm")))
    assert settings(named) == settings(made)
    with pytest.raises(UsageError, match="no ranker 'lambdamat'; did you mean lambdamart"):
        tune("lambdamat", *parts)
    with pytest.raises(UsageError, match=r"a ranker or its name.*not RankSVM; make one: RankSVM"):
        tune(rw.RankSVM, *parts)


SPACE = {
    "num_leaves": (7, 63),
    "learning_rate": (0.01, 0.3, "log"),
    "reg_lambda": [0, 1, 10],
    "model__max_bins": (15, 255, "log"),
    "colsample_bytree": (1, 1),
    "max_depth": (2, 9),
}


def test_tuples_are_ranges_by_the_kind_of_the_parameter_and_lists_are_choices():
    assert user_space(rw.LambdaMART(), SPACE) == {
        "num_leaves": (7, 63),
        "learning_rate": (0.01, 0.3, "log"),
        "reg_lambda": [0, 1, 10],
        "model__max_bins": (15, 255, "log"),
        "colsample_bytree": (1.0, 1.0),
        "max_depth": (2, 9),
    }


def test_every_trial_lies_in_the_space_and_the_first_at_the_defaults(parts):
    made = rw.LambdaMART(n_estimators=3, min_child_samples=2)
    found = tune(made, *parts, space=SPACE, trials=6)
    assert found.trials[0].parameters["num_leaves"] == 7  # "auto" for small data
    for trial in found.trials:
        chosen = trial.parameters
        assert set(chosen) == set(SPACE)
        assert type(chosen["num_leaves"]) is int
        assert 7 <= chosen["num_leaves"] <= 63
        assert 0.01 <= chosen["learning_rate"] <= 0.3
        assert chosen["reg_lambda"] in (0, 1, 10)
    assert found.ranker.model_name == "trees"


def test_distributions_of_optuna_are_searched(parts):
    space = {
        "num_leaves": optuna.distributions.IntDistribution(3, 15, step=4),
        "learning_rate": optuna.distributions.FloatDistribution(0.01, 0.3, log=True),
        "leaves": optuna.distributions.CategoricalDistribution(["newton"]),
    }
    made = rw.Ranker(loss="ranknet", model=rw.models.Trees(n_estimators=2, num_leaves=4))
    space = {f"model__{name}": values for name, values in space.items()}
    found = tune(made, *parts, space=space, trials=5)
    assert {trial.parameters["model__num_leaves"] for trial in found.trials} <= {3, 7, 11, 15}


def test_choices_may_be_tuples_and_are_kept_in_a_storage(parts, tmp_path):
    pytest.importorskip("torch")
    made = rw.RankNet(epochs=1)
    space = {"hidden_layer_sizes": [(4,), (3, 2)]}
    runs = [tune(made, *parts, space=space, trials=3, storage=tmp_path / "t.log") for _ in "ab"]
    assert settings(runs[0]) == settings(runs[1])
    assert {trial.parameters["hidden_layer_sizes"] for trial in runs[0].trials} <= {(4,), (3, 2)}
    assert runs[1].ranker.hidden_layer_sizes in ((4,), (3, 2))


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ({}, "space is empty; name a parameter"),
        ([("num_leaves", (7, 63))], "space is a mapping.* not list"),
        (
            {"num_leafs": (7, 63)},
            "LambdaMART has no parameter 'num_leafs'; did you mean num_leaves",
        ),
        ({"max_leaves": (7, 63)}, "LambdaMART has no parameter 'max_leaves'; .* num_leaves"),
        ({"max_bins": (7, 63)}, "LambdaMART has no parameter 'max_bins', its model has: .*model__"),
        ({"model__max_bin": (7, 63)}, "Trees has no parameter 'max_bin'; it is called max_bins"),
        ({"num_leaves": (63, 7)}, r"is \(63, 7\), which is reversed; write \(7, 63\)"),
        ({"num_leaves": (7.5, 63)}, "num_leaves takes whole numbers"),
        ({"num_leaves": (1, 63)}, "num_leaves must be 2 or more, not 1"),
        ({"num_leaves": []}, "is an empty list; name the values"),
        ({"num_leaves": [1, 5]}, "num_leaves must be 2 or more, not 1"),
        ({"num_leaves": 31}, r"is 31: give a range \(low, high\).*set on the ranker itself"),
        ({"num_leaves": "7:63"}, "is '7:63': give a range"),
        ({"num_leaves": (7,)}, r"a range is \(low, high\)"),
        ({"num_leaves": (7, 15, 31)}, "after low and high comes 'log' or nothing"),
        ({"num_leaves": ("a", "b")}, "two finite numbers; choices are a list"),
        ({"learning_rate": (0.1, float("inf"))}, "two finite numbers"),
        ({"reg_lambda": (0, 1, "log")}, "a range with 'log' begins above 0"),
        ({"metric": (1, 2)}, "metric takes no numbers .* give a list of choices"),
        ({"categorical_feature": (0, 1)}, "categorical_feature takes no numbers"),
        ({"verbose": (0, 1)}, "verbose takes no numbers .* give a list of choices"),
    ],
)
def test_a_wrong_space_is_reported(parts, space, sentence):
    with pytest.raises(UsageError, match=sentence):
        tune(rw.LambdaMART(n_estimators=1), *parts, space=space, trials=1)


def test_folds_judge_by_the_mean_over_held_out_queries(parts):
    train = parts[0]
    found = tune("ranksvm", train, folds=3, trials=3, space={"l2": (1e-4, 10.0, "log")})
    for trial in found.trials:
        by_hand = []
        for fold in k_folds(train, 3, valid=False, seed=0):
            fitted = ranker("ranksvm", **trial.parameters).fit(fold.train, eval_set=fold.test)
            by_hand.append(fitted.score(fold.test))
        assert trial.value == pytest.approx(np.mean(by_hand), abs=1e-12)
    again = ranker("ranksvm").set_params(**found.parameters).fit(train)
    np.testing.assert_array_equal(found.ranker.coef_, again.coef_)


def test_after_folds_trees_have_the_rounds_that_were_best_on_average(parts, tmp_path):
    train, storage = parts[0], tmp_path / "t.log"
    given = {"space": {"num_leaves": (3, 7)}, "folds": 2, "trials": 2, "storage": storage}
    made = rw.LambdaMART(n_estimators=12, min_child_samples=2, learning_rate=0.5)
    found = tune(made, train, **given)
    assert set(found.parameters) == {"num_leaves", "n_estimators"}
    best = [
        made.__class__(
            **{**made.get_params(deep=False), "num_leaves": found.parameters["num_leaves"]}
        )
        .fit(fold.train, eval_set=fold.test)
        .best_iteration_
        for fold in k_folds(train, 2, valid=False, seed=0)
    ]
    assert found.parameters["n_estimators"] == max(1, round(np.mean(best)))
    assert found.ranker.booster_.num_trees() == found.parameters["n_estimators"]
    resumed = tune(made, train, **given)
    assert resumed.parameters == found.parameters
    np.testing.assert_array_equal(resumed.ranker.predict(train), found.ranker.predict(train))


def test_the_rounds_of_a_model_object_are_set_on_it(parts):
    made = rw.GBDT(model=rw.models.Trees(n_estimators=1, min_child_samples=2))
    found = tune(made, parts[0], space={"model__num_leaves": [3]}, folds=2, trials=1)
    assert found.parameters == {"model__num_leaves": 3, "model__n_estimators": 1}


def test_wrong_data_and_folds_are_reported(parts):
    with pytest.raises(UsageError, match="valid and folds both judge the trials"):
        tune("ranksvm", *parts, folds=3)
    with pytest.raises(UsageError, match="folds must be 2 or more, not 1"):
        tune("ranksvm", parts[0], folds=1)
    with pytest.raises(DataError, match="12 queries cannot be cut into 40 folds"):
        tune("ranksvm", parts[0], folds=40)
    with pytest.raises(UsageError, match=r"train is RankingData or \(X, y, qid\), not ndarray"):
        tune("ranksvm", parts[0].X)
    X, y = parts[0].X, parts[0].y
    qid = np.repeat(parts[0].qid, parts[0].sizes)
    tupled = tune("ranksvm", (X, y, qid), trials=1, folds=2)
    assert tupled.value == tune("ranksvm", parts[0], trials=1, folds=2).value


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_trials_are_a_frame(parts, backend):
    space = {"pairs": ["uniform", "no such pairs"], "l2": (1e-3, 1.0, "log")}
    found = tune("ranksvm", *parts, space=space, trials=8)
    frame = found.to_frame(backend)
    names = list(frame.columns if backend != "pyarrow" else frame.column_names)
    assert names == ["trial", "state", "value", "seconds", "pairs", "l2", "error"]
    values = frame["value"].to_numpy()
    assert {trial.state for trial in found.trials} == {"complete", "failed"}
    for trial, value in zip(found.trials, values.tolist(), strict=True):
        assert value == trial.value or (np.isnan(value) and trial.value is None)
