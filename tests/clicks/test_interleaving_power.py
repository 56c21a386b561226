"""A test of interleaved lists that is looked at every day: false winners and power.

1,000 experiments of 20 days with 100 sessions each. Without a better ranker, users click positions
regardless of documents, and at most 5 % of the experiments may name a winner at any look. With one,
users click by a position-based model.
"""

import math

import numpy as np
import pytest

from rankwright import RankingData, clicks
from rankwright.clicks.interleaving import METHODS
from rankwright.clicks.sequential_test import MeanTest, SignTest, Sums

pytestmark = pytest.mark.slow

K, EXPERIMENTS, DAYS, PER_DAY, AT_ONCE, ALPHA = 10, 1000, 20, 100, 100, 0.05
FAIR = ("team_draft", "probabilistic", "optimised")


@pytest.fixture(scope="module")
def rankers():
    """Return graded documents of 300 queries, and the scores of a good and a poorer ranker."""
    rng = np.random.default_rng(1)
    y = rng.choice(5, 300 * 20, p=[0.55, 0.2, 0.13, 0.08, 0.04]).astype(np.float64)
    data = RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[20] * 300)
    good, poor = (y + spread * rng.normal(size=len(y)) for spread in (1.0, 1.25))
    return data, {"good": good, "poor": poor}


def experiments(name, data, rankers, click):
    """Yield outcomes: a row for each of some experiments, a column for each session.

    The lists are the same in each turn, with other clicks and in another order.
    """
    method, rng = METHODS[name](k=K), np.random.default_rng(2)
    sessions = AT_ONCE * DAYS * PER_DAY // data.n_queries + 1
    lists = clicks.interleave(data, rankers, method, sessions=sessions)
    for turn in range(EXPERIMENTS // AT_ONCE):
        log = click(lists, turn)
        outcome = method.outcomes(log, method.credits(log), 0, 1)
        shuffled = rng.permutation(outcome)[: AT_ONCE * DAYS * PER_DAY]
        yield shuffled.reshape(AT_ONCE, DAYS * PER_DAY)


def decisions(name, outcome):
    """Return the first day on which each experiment names a winner (0: never), and its sign."""
    n = np.broadcast_to(np.arange(1.0, outcome.shape[1] + 1), outcome.shape)
    ends = np.arange(PER_DAY - 1, outcome.shape[1], PER_DAY)
    running = n, np.cumsum(outcome, axis=1), np.cumsum(outcome * outcome, axis=1)
    sums = Sums(*(values[:, ends].ravel() for values in running))
    test = SignTest() if METHODS[name].sign else MeanTest()
    decided = (test.log_e(sums) >= math.log(1.0 / ALPHA)).reshape(len(outcome), DAYS)
    day = np.where(decided.any(axis=1), decided.argmax(axis=1) + 1, 0)
    total = sums.total.reshape(len(outcome), DAYS)
    sign = np.sign(total[np.arange(len(outcome)), np.maximum(day, 1) - 1])
    return day, np.where(day > 0, sign, 0.0)


@pytest.mark.parametrize("name", FAIR)
def test_at_most_five_percent_of_experiments_name_a_false_winner(name, rankers):
    def at_random(lists, turn):
        rng = np.random.default_rng((3, turn))
        return lists._replace(click=rng.random(lists.n_impressions) < 0.6 / lists.position)

    named = [decisions(name, some)[0] > 0 for some in experiments(name, *rankers, at_random)]
    # Two standard deviations of 1,000 experiments above 5 %.
    assert np.mean(named) <= 0.0638


def test_daily_looks_save_sessions_and_cost_little_power(rankers):
    days, right, right_at_end = [], [], []
    for outcome in experiments(
        "team_draft",
        *rankers,
        lambda lists, turn: clicks.simulate_clicks(lists, random_state=turn),
    ):
        day, winner = decisions("team_draft", outcome)
        days.append(np.where(day > 0, day, DAYS) / DAYS)
        right.append(winner > 0)
        sign = np.sign(outcome)
        right_at_end.append(sign.sum(axis=1) / np.sqrt((sign != 0).sum(axis=1)) > 1.96)
    assert np.mean(days) <= 0.8
    assert np.mean(right) - np.mean(right_at_end) >= -0.35
