"""Sequential tests: e-values against sums over paths, level under watching, coverage, power."""

import math
from itertools import product

import numpy as np
import pytest
from cases import each
from scipy import integrate, stats

from rankwright.clicks.sequential_test import (
    MeanTest,
    SignTest,
    Sums,
    confidence_sequence,
    sessions_needed,
)


def running(x):
    x = np.asarray(x, float)
    return Sums(np.arange(1.0, len(x) + 1), np.cumsum(x), np.cumsum(x * x))


def last(x):
    return running(x).at(-1)


def test_the_sign_test_is_a_mean_of_likelihood_ratios():
    wins, losses, null = 7, 3, 0.4
    prior = stats.beta(20, 20).pdf
    mean, _ = integrate.quad(lambda p: prior(p) * p**wins * (1 - p) ** losses, 0, 1)
    x = [1] * wins + [-1] * losses + [0] * 5
    found = SignTest().log_e(last(x), null)
    assert found == pytest.approx(math.log(mean / (null**wins * (1 - null) ** losses)))
    assert SignTest().estimate(last(x)) == pytest.approx(0.7)


@each(("test", "values", "odds", "null"), [
    (SignTest(), (-1, 1), (0.5, 0.5), 0.5),
    (SignTest(), (-1, 1), (0.3, 0.7), 0.7),
    (MeanTest(), (-1, 0, 1), (0.2, 0.6, 0.2), 0.0),
    (MeanTest(), (-0.1, 0.9), (0.9, 0.1), 0.0),
    (MeanTest(), (-1.0, 0.5, 1.0), (0.25, 0.5, 0.25), 0.25),
    (MeanTest(), (-1.0, 0.0), (0.5, 0.5), -0.5),
])  # fmt: skip
def test_the_expectation_of_an_e_value_is_at_most_one(test, values, odds, null):
    """Over all paths of six sessions, where the mean is what the test says."""
    if isinstance(test, MeanTest):
        assert np.dot(values, odds) == pytest.approx(null)
    expected = [0.0] * 6
    for path in product(range(len(values)), repeat=6):
        e = np.exp(test.log_e(running([values[i] for i in path]), null))
        p = math.prod(odds[i] for i in path)
        expected = [before + p * one for before, one in zip(expected, e, strict=True)]
    assert max(expected) <= 1.0 + 1e-9
    assert expected[-1] > 0.5  # and not a test that never speaks


def test_watching_every_session_names_a_winner_too_often_in_few_experiments():
    """At most 5 % of 400 experiments, with three deviations of a binomial number of them."""
    rng = np.random.default_rng(0)
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
    for test, x in (
        (SignTest(), rng.choice([-1.0, 0.0, 1.0], (400, 1500), p=[0.3, 0.4, 0.3])),
        (MeanTest(), np.where(rng.random((400, 1500)) < 0.1, 0.9, -0.1)),
    ):
        highest = [test.log_e(running(one)).max() for one in x]
        assert np.mean(np.array(highest) >= math.log(20)) <= most


def test_a_fixed_test_looked_at_again_and_again_does_not_hold_its_level():
    """What the sequential test is for: a z-test after every tenth session."""
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (400, 1500))
    z = np.abs(np.cumsum(x, axis=1)) / np.sqrt(np.arange(1, 1501))
    assert (z[:, 49::10] > 1.96).any(axis=1).mean() > 0.25


@each(("test", "values", "odds"), [
    (SignTest(), (-1.0, 1.0), (0.4, 0.6)),
    (MeanTest(), (-0.3, 0.0, 0.4), (0.2, 0.3, 0.5)),
])  # fmt: skip
def test_intervals_cover_at_all_looks_and_shrink(test, values, odds):
    rng = np.random.default_rng(1)
    truth = odds[1] if isinstance(test, SignTest) else np.dot(values, odds)
    missed = 0
    for _ in range(60):
        sums = running(rng.choice(values, 1200, p=odds)).at(np.arange(20, 1200, 20))
        low, high = confidence_sequence(test, sums, 0.05)
        missed += bool(((truth < low) | (truth > high)).any())
        assert (low <= test.estimate(sums)).all()
        assert (test.estimate(sums) <= high).all()
        assert high[-1] - low[-1] < 0.5 * (high[3] - low[3])
    assert missed <= 0.05 * 60 + 3 * math.sqrt(60 * 0.05 * 0.95)


def test_the_ends_of_an_interval_are_where_the_test_stops_to_exclude():
    sums = last(np.random.default_rng(2).choice([-1.0, 0.2, 1.0], 300, p=[0.2, 0.4, 0.4]))
    (low,), (high,) = confidence_sequence(MeanTest(), sums, 0.05)
    for end, outwards in ((low, -1e-6), (high, 1e-6)):
        assert MeanTest().log_e(sums, end) == pytest.approx(math.log(20), abs=1e-3)
        assert MeanTest().log_e(sums, end + outwards) > math.log(20)
    low, high = confidence_sequence(SignTest(), last([0.0]), 0.05)
    assert (low[0], high[0]) == (0.0, 1.0)


def test_better_rankers_are_found_and_how_many_sessions_that_takes():
    rng = np.random.default_rng(3)
    stopped = []
    for _ in range(60):
        e = SignTest().log_e(running(np.where(rng.random(3000) < 0.56, 1.0, -1.0)))
        assert e.max() >= math.log(20)
        stopped.append(int(np.argmax(e >= math.log(20))) + 1)
    needed = sessions_needed(SignTest(), Sums(100.0, 12.0, 100.0), 0.05)
    assert 0.5 * needed < np.median(stopped) < 1.5 * needed
    assert sessions_needed(SignTest(), Sums(100.0, 0.0, 100.0), 0.05) is None
    assert sessions_needed(MeanTest(), Sums(0.0, 0.0, 0.0), 0.05) is None
    half = sessions_needed(MeanTest(), Sums(100.0, 20.0, 50.0), 0.05)
    assert half < sessions_needed(MeanTest(), Sums(100.0, 10.0, 50.0), 0.05)
