"""Trials spread over workers: the same choices as the same number at once anywhere."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small_data import small_data

from rankwright.comparison.tune import tune
from rankwright.distributed import executor
from rankwright.errors import UsageError
from rankwright.rankers.base import ranker

pytest.importorskip("optuna")

TRAIN = small_data(queries=8, documents=6, features=4)
VALID = small_data(queries=6, documents=6, features=4, seed=1)
SPACE = {"l2": (1e-4, 1e2, "log")}


def as_json(found):
    return [(trial.state, trial.parameters["l2"], trial.value) for trial in found.trials]


def test_trials_on_workers_are_those_of_threads(client):
    settings = {"trials": 7, "space": SPACE, "at_once": 3}
    over = tune(ranker("ranksvm"), TRAIN, VALID, executor=executor(client), **settings)
    with ThreadPoolExecutor(2) as pool:
        here = tune(ranker("ranksvm"), TRAIN, VALID, executor=pool, **settings)
    assert as_json(over) == as_json(here)
    assert len(over.trials) == 7
    assert over.value == max(trial.value for trial in over.trials)
    np.testing.assert_array_equal(over.ranker.coef_, here.ranker.coef_)
    one_by_one = tune(ranker("ranksvm"), TRAIN, VALID, trials=7, space=SPACE)
    assert as_json(over) == as_json(one_by_one)  # the first ones are drawn whatever came before


def test_a_trial_that_fails_elsewhere_is_kept_with_its_sentence():
    space = {"pairs": ["uniform", "no such pairs"]}
    with ThreadPoolExecutor(2) as pool:
        found = tune(
            ranker("ranksvm"), TRAIN, VALID, trials=6, space=space, executor=pool, at_once=3
        )
    of_state = {trial.state: trial for trial in found.trials}
    assert set(of_state) == {"complete", "failed"}
    assert "no such pairs" in of_state["failed"].sentence


def test_one_at_once_on_a_worker_is_what_tuning_here_finds(client):
    over = tune(ranker("ranksvm"), TRAIN, VALID, trials=4, space=SPACE, executor=executor(client))
    assert as_json(over) == as_json(tune(ranker("ranksvm"), TRAIN, VALID, trials=4, space=SPACE))


def test_several_at_once_need_an_executor(client):
    found = tune(
        ranker("ranksvm", solver="lbfgs"),
        TRAIN,
        VALID,
        trials=3,
        space={"l2": (1e-4, 1e2, "log")},
        executor=executor(client),
        at_once=2,
    )
    assert {trial.state for trial in found.trials} == {"complete"}
    with pytest.raises(UsageError, match="at_once must be 1, or more with an executor"):
        tune(ranker("ranksvm"), TRAIN, VALID, space=SPACE, at_once=2)
