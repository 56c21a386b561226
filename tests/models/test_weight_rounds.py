"""Rounds of weights: what the callback is shown, and which of them are kept."""

from dataclasses import replace

import numpy as np
import pytest
from small_data import Onlooker, small_data

from rankwright.models.weight_rounds import WeightRounds

DATA, VALID = small_data(queries=4, documents=3), small_data(queries=2, documents=3, seed=1)
ROUNDS = [np.eye(6)[k] for k in range(3)]


def test_each_round_is_shown_with_its_loss_and_its_scores():
    callback = Onlooker(valid=VALID)
    rounds = WeightRounds(DATA, callback, None, n_jobs=1)
    assert [rounds.see(coef, -float(k)) for k, coef in enumerate(ROUNDS)] == [False] * 3
    assert callback.values == [0.0, -1.0, -2.0]
    for k in range(3):
        assert (callback.train_scores[k] == DATA.X[:, k]).all()
        assert (callback.valid_scores[k] == VALID.X[:, k]).all()
    assert len(rounds) == 3


def test_the_round_that_the_watch_likes_best_is_kept():
    rounds = WeightRounds(DATA, Onlooker(keep=2), None, n_jobs=1)
    for coef in ROUNDS:
        rounds.see(coef, 0.0)
    assert rounds.best() == 2
    assert (rounds.fitted().coef == ROUNDS[1]).all()


def test_scores_that_are_known_are_shown_as_they_are_and_only_where_they_are_wanted():
    callback, known = Onlooker(), np.arange(12.0)
    WeightRounds(DATA, callback, None, n_jobs=1).see(ROUNDS[0], 0.0, known)
    assert callback.train_scores[0] is known
    callback = Onlooker()
    callback.wants_train = False
    assert not WeightRounds(DATA, callback, None, n_jobs=1).see(ROUNDS[0], 0.0, known)
    assert (callback.train_scores, callback.valid_scores) == ([None], [None])


def test_the_watch_may_end_the_run():
    assert WeightRounds(DATA, Onlooker(stop_at=1), None, n_jobs=1).see(ROUNDS[0], 0.0)


def test_gaps_of_train_and_valid_get_the_means_of_train():
    X, other = DATA.X.copy(), VALID.X.copy()
    X[0, 0] = other[0, 0] = np.nan
    callback = Onlooker(valid=replace(VALID, X=other))
    rounds = WeightRounds(replace(DATA, X=X), callback, "mean", n_jobs=1)
    rounds.see(ROUNDS[0], 0.0)
    mean = DATA.X[1:, 0].mean()
    assert callback.train_scores[0][0] == callback.valid_scores[0][0] == pytest.approx(mean)
    assert rounds.fitted().fill[0] == pytest.approx(mean)
