"""The verdict on interleaved lists: counts, units, order, several rankers, simulated users."""

import json
import warnings
from itertools import product

import numpy as np
import pytest
from cases import each

from rankwright import clicks
from rankwright.clicks.sequential_test import MeanTest, SignTest, Sums
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError


def drafted(first, second, *, rankers=("A", "B"), **arrays):
    """Return a log of team draft lists of two documents; who is clicked, by session."""
    n = len(first)
    return clicks.ClickLog.from_arrays(
        arrays.pop("query", ["q"] * n),
        ["a", "b"] * n,
        np.column_stack([first, second]).ravel(),
        session_sizes=[2] * n,
        team=[0, 1] * n,
        interleaving=clicks.Interleaving("team_draft", rankers),
        **arrays,
    )


def test_wins_losses_and_ties_are_counted():
    log = drafted([1, 1, 0, 1, 0], [0, 0, 1, 1, 0])
    found = clicks.score_interleaving(log)
    (one,) = found.pairs
    assert (one.wins, one.losses, one.ties) == (2, 1, 2)
    assert one.preference == pytest.approx(2 / 3)
    assert one.outcome == pytest.approx(1 / 5)
    assert one.tested == "preference"
    assert one.low < 0.5 < one.high
    assert one.winner is None
    assert found.winner is None
    assert found.credit.tolist() == [3 / 5, 2 / 5]
    assert (found.sessions, found.clicked) == (5, 4)
    assert found.verdict() == [
        f"'A' against 'B': 2 wins, 1 losses, 2 ties; preference 66.7% [{one.low:.1%}, "
        f"{one.high:.1%}]. No winner yet; at this effect about {one.needed - 5} more sessions "
        "would decide."
    ]


def test_an_effect_of_next_to_nothing_has_no_number_of_sessions():
    won = np.arange(201) % 2 == 0  # 101 wins and 100 losses
    (one,) = (found := clicks.score_interleaving(drafted(won, ~won))).pairs
    assert one.needed > 100 * 201
    assert found.verdict()[0].endswith(
        "No winner yet; at this effect not even 100 times as many sessions would decide."
    )


def test_weights_above_one_are_refused():
    """Two sessions with weights of 500 are a tie, and no evidence about anything."""
    log = drafted([1, 0], [0, 1], weight=[500, 500])
    with pytest.raises(DataError, match=r"above 1 \(up to 500\).*divide.*unit='query'"):
        clicks.score_interleaving(log)
    (one,) = clicks.score_interleaving(log._replace(weight=log.weight / 500)).pairs
    assert (one.wins, one.losses, one.winner) == (1, 1, None)
    (one,) = clicks.score_interleaving(log, unit="query").pairs  # one query, whose mean is 0
    assert (one.units, one.outcome, one.winner) == (1, 0, None)


@each("test", [SignTest(), MeanTest()])
def test_weights_up_to_one_leave_the_expectation_of_an_e_value_at_most_one(test):
    """Over all outcomes of eight sessions with weights; so a winner of a tie is as rare."""
    weight = np.array([1.0, 0.2, 0.7, 1.0, 0.05, 0.5, 0.9, 0.3])
    x = np.array(list(product((-1.0, 1.0), repeat=8)))
    sums = Sums(*(np.cumsum(weight * x**power, axis=1).ravel() for power in range(3)))
    e = np.exp(test.log_e(sums)).reshape(x.shape)
    assert e.mean(axis=0).max() <= 1.0 + 1e-12
    assert e.mean(axis=0)[-1] > 0.5


def test_weights_below_one_leave_the_means_what_they_are():
    few = clicks.score_interleaving(drafted([1, 1, 0], [0, 0, 1], weight=[0.01] * 3))
    assert few.credit.tolist() == pytest.approx([2 / 3, 1 / 3])
    assert few.pairs[0].outcome == pytest.approx(1 / 3)


@each(
    "times",
    [
        ["2024-05-01T12:00Z", "2024-05-01T12:30:00+02:00", "2024-05-01T11:00:00Z"],
        ["10", "8", "9"],
        [10, 8, 9],
    ],
)
def test_sessions_count_in_order_of_time(times, tmp_path):
    """The third, the second and the first to come are those of 10:30, 11 and 12 o'clock."""
    path = tmp_path / "log.jsonl"
    line = drafted([0], [0]).interleaving.to_dict()
    path.write_text(
        "".join(
            json.dumps(
                {
                    "query": "q",
                    "documents": ["a", "b"],
                    "clicks": [n == 0, n == 1],
                    "teams": [0, 1],
                    "time": time,
                    "interleaving": line,
                }
            )
            + "\n"
            for n, time in enumerate(times)
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (one,) = clicks.score_interleaving(clicks.load_log(path)).pairs
    assert one.path.estimate.tolist() == pytest.approx([0.0, 0.0, 0.5])


def test_a_winner_is_named_and_stays_named():
    won = [1] * 60 + [0] * 60
    log = drafted(won, [1 - one for one in won])
    (one,) = clicks.score_interleaving(log).pairs
    assert one.winner == "A"  # though both have won as often at the end
    assert one.decided_after < 60
    assert one.p_value < 0.05
    (shuffled,) = clicks.score_interleaving(
        log.select(np.arange(120).reshape(2, 60).T.ravel())
    ).pairs
    assert shuffled.winner is None
    late = drafted(won, [1 - one for one in won], time=-np.arange(120))
    assert clicks.score_interleaving(late).pairs[0].winner == "B"


def test_a_file_is_scored_as_its_log_is(tmp_path):
    rng = np.random.default_rng(0)
    log = drafted(*(rng.random((2, 50)) < [[0.7], [0.3]]))
    clicks.save_log(log, tmp_path / "log.jsonl")
    again = clicks.score_interleaving(clicks.load_log(tmp_path / "log.jsonl"))
    assert again.to_dict() == clicks.score_interleaving(log).to_dict()


def test_queries_that_repeat_count_once():
    query = ["x"] * 8 + ["y", "z"]
    log = drafted([1] * 8 + [0, 0], [0] * 8 + [1, 1], query=query)
    (one,) = clicks.score_interleaving(log, unit="query").pairs
    assert (one.units, one.wins, one.losses) == (3, 1, 2)
    assert one.outcome == pytest.approx(-1 / 3)
    assert one.tested == "outcome"


def test_users_that_repeat_count_once():
    by_user = drafted([1, 0], [0, 1], user=["u", "u"])
    assert clicks.score_interleaving(by_user, unit="user").pairs[0].units == 1


def test_few_queries_that_differ_are_no_evidence_about_queries():
    """Each of 30 queries prefers one ranker by itself; there is nothing to prefer overall."""
    rng = np.random.default_rng(0)
    named = {"session": 0, "query": 0}
    for _ in range(24):
        likes = rng.choice([0.1, 0.9], 30)
        asked = rng.integers(30, size=600)
        won = rng.random(600) < likes[asked]
        log = drafted(won, ~won, query=asked)
        for unit in named:
            named[unit] += clicks.score_interleaving(log, unit=unit).winner is not None
    assert named["query"] <= 4
    assert named["session"] > 8


def test_every_pair_of_several_rankers_is_tested_at_a_share_of_the_level():
    n = 400
    rng = np.random.default_rng(0)
    click = rng.random((n, 3)) < [0.6, 0.3, 0.28]
    log = clicks.ClickLog.from_arrays(
        ["q"] * n,
        list("abc") * n,
        click.ravel(),
        session_sizes=[3] * n,
        team=[0, 1, 2] * n,
        interleaving=clicks.Interleaving("team_draft", ("best", "second", "third")),
    )
    found = clicks.score_interleaving(log)
    assert [(one.first, one.second) for one in found.pairs] == [
        ("best", "second"),
        ("best", "third"),
        ("second", "third"),
    ]
    assert all(one.alpha == pytest.approx(0.05 / 3) for one in found.pairs)
    assert found.winner == "best"
    assert found.pairs[2].winner is None
    assert len(found.verdict()) == 3


# --- simulated users -------------------------------------------------------------------------


def graded(seed=0, n_queries=40):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n_queries * 12)
    X = np.column_stack([y + rng.normal(size=len(y)), y + 3 * rng.normal(size=len(y))])
    return RankingData.from_arrays(X, y, group_sizes=[12] * n_queries)


@each("method", ["optimised", "probabilistic", "team_draft"])
def test_the_better_ranker_wins(method):
    data = graded()
    lists = clicks.interleave(data, {"good": 1, "poor": 2}, method, k=5, sessions=60)
    log = clicks.simulate_clicks(lists, noise=0.05)
    found = clicks.score_interleaving(log)
    assert found.winner == "good"
    assert found.pairs[0].outcome > 0
    back = clicks.interleave(data, {"poor": 2, "good": 1}, method, k=5, sessions=60)
    assert clicks.score_interleaving(clicks.simulate_clicks(back, noise=0.05)).winner == "good"


@each("method", ["optimised", "probabilistic", "team_draft"])
def test_clicks_at_random_name_no_winner(method):
    lists = clicks.interleave(graded(), {"good": 1, "poor": 2}, method, k=5, sessions=100)
    click = np.random.default_rng(0).random(lists.n_impressions) < 1 / lists.position
    found = clicks.score_interleaving(lists._replace(click=click))
    assert found.winner is None
    assert found.pairs[0].outcome_low < 0 < found.pairs[0].outcome_high


def test_more_relevant_documents_are_clicked_in_every_model_of_users():
    lists = clicks.interleave(graded(), [1, 2], k=5, sessions=30)
    for model in ("pbm", "trust", "cascade", "dbn"):
        log = clicks.simulate_clicks(lists, model=model, noise=0.0, random_state=1)
        y = log.features.y[log.row]
        assert log.click[y == 3].mean() > 2 * log.click[y == 1].mean()
        again = clicks.simulate_clicks(lists, model=model, noise=0.0, random_state=1)
        assert (again.click == log.click).all()


# --- refusals and pictures -------------------------------------------------------------------


def test_bad_arguments_are_refused():
    log = drafted([1], [0])
    with pytest.raises(UsageError, match="alpha must be"):
        clicks.score_interleaving(log, alpha=1.0)
    with pytest.raises(UsageError, match="unit must be"):
        clicks.score_interleaving(log, unit="day")
    with pytest.raises(DataError, match="has no users"):
        clicks.score_interleaving(log, unit="user")
    with pytest.raises(DataError, match="interleaving method"):
        clicks.score_interleaving(log._replace(interleaving=None))
    with pytest.raises(UsageError, match="'draft'"):
        clicks.score_interleaving(
            log._replace(interleaving=clicks.Interleaving("draft", ("A", "B")))
        )
    with pytest.raises(DataError, match="no sessions"):
        clicks.score_interleaving(log.select([]))
    with pytest.raises(DataError, match="no features"):
        clicks.simulate_clicks(log)


def test_the_plot_shows_each_pair():
    won = np.arange(300) % 3 > 0
    ax = clicks.plot_interleaving(clicks.score_interleaving(drafted(won, ~won)))
    assert ax.lines[0].get_label() == "A against B"
    assert ax.get_ylabel() == "preference for the first"
    low, high = ax.get_ylim()
    assert 0.0 < (low + high) / 2 - 0.5 + 1e-9 < 0.01
