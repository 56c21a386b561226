"""Simulated users: rates by the formulas of each model, seeds, interventions and refusals."""

import numpy as np
import pytest
from cases import each
from small_data import small_data

from rankwright import clicks
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError

GRADES = np.array([2.0, 0.0, 1.0])
SESSIONS = 40_000


def one_query(**arrays):
    """Return a query of three documents, shown in this order by feature 1."""
    return RankingData.from_arrays([[3.0], [2.0], [1.0]], GRADES, group_sizes=[3], **arrays)


def rates(log):
    return np.bincount(log.position - 1, log.click) / log.n_sessions


def near(found, expected):
    """Within five standard deviations of a binomial rate."""
    expected = np.asarray(expected)
    return (np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / SESSIONS)).all()


def test_pbm_clicks_at_examination_times_attraction():
    log = clicks.simulate(one_query(), 1, eta=2, noise=0.2, sessions=SESSIONS)
    p = 0.2 + 0.8 * np.array([1.0, 0.0, 1 / 3])
    assert near(rates(log), p / np.array([1, 4, 9]))


def test_trust_brings_clicks_without_relevance_most_at_the_top():
    log = clicks.simulate(one_query(), 1, model="trust", sessions=SESSIONS)
    r, k = np.array([1.0, 0.0, 1 / 3]), np.array([1, 2, 3])
    assert near(rates(log), ((1 - (k + 1) / 100) * r + 0.65 / k * (1 - r)) / k)


def test_cascade_ends_with_the_first_click():
    data = one_query()._replace(y=np.array([1.0, 1.0, 2.0]))
    log = clicks.simulate(data, 1, model="cascade", noise=0.1, sessions=SESSIONS)
    assert np.bincount(log.session_of_impression(), log.click).max() == 1
    assert near(rates(log), [0.4, 0.6 * 0.4, 0.36])


def test_dbn_goes_on_unless_satisfied():
    data = one_query()._replace(y=np.array([1.0, 0.0, 2.0]))
    log = clicks.simulate(data, 1, model="dbn", noise=0.1, continuation=0.5, sessions=SESSIONS)
    third = (1 - 0.4 / 3) * 0.5 * 0.5  # not satisfied by the first, and twice gone on
    assert near(rates(log), [0.4, 0.1 * (1 - 0.4 / 3) * 0.5, third])


def test_a_log_carries_what_learning_needs():
    data = one_query(doc_id=["a", "b", "c"])
    log = clicks.simulate(data, 1, sessions=5, positions=2)
    assert log.features is data
    assert log.row[:2].tolist() == [0, 1]
    assert log.document_ids[log.document[:2]].tolist() == ["a", "b"]
    assert log.time.tolist() == [0, 1, 2, 3, 4]
    rows = log.to_ranking_data("query")
    assert rows.position.tolist() == [1, 2]
    assert rows.sample_weight.tolist() == [5.0, 5.0]


def two_queries(first_size=3):
    rng = np.random.default_rng(0)
    n = first_size + 4
    return RankingData.from_arrays(
        rng.normal(size=(n, 2)), rng.integers(0, 3, n) + 0.0, group_sizes=[first_size, 4]
    )


def test_what_is_sampled_for_a_query_depends_on_seed_and_number_alone():
    few, many = two_queries(3), two_queries(5)
    same = many._replace(
        X=np.concatenate([many.X[:5], few.X[3:]]), y=np.concatenate([many.y[:5], few.y[3:]])
    )
    a, b = (clicks.simulate(data, 2, sessions=50) for data in (few, same))
    assert a.click[a.indptr[50] :].tolist() == b.click[b.indptr[50] :].tolist()
    again = clicks.simulate(few, 2, sessions=50, random_state=1)
    assert a.click.tolist() == clicks.simulate(few, 2, sessions=50).click.tolist()
    assert a.click.tolist() != again.click.tolist()


def test_loggers_of_a_list_take_turns():
    data = one_query()._replace(feature_names=("score",))
    log = clicks.simulate(
        data, ["score", lambda d: -d.X[:, 0], np.array([0.0, 1.0, 0.0])], sessions=9
    )
    first = log.row.reshape(9, 3)[:, 0]
    assert first.tolist() == [0] * 3 + [2] * 3 + [1] * 3


def test_temperature_samples_lists_from_plackett_luce():
    log = clicks.simulate(one_query(), 1, temperature=1.0, sessions=SESSIONS)
    first = np.bincount(log.row.reshape(-1, 3)[:, 0]) / SESSIONS
    weight = 1 / np.arange(1, 4)
    assert near(first, weight / weight.sum())


def test_swaps_randomise_all_positions_or_the_first_with_another():
    lists = clicks.simulate(one_query(), 1, swaps="all", sessions=SESSIONS).row.reshape(-1, 3)
    for place in range(3):
        assert near(np.bincount(lists[:, place]) / SESSIONS, np.full(3, 1 / 3))
    lists = clicks.simulate(one_query(), 1, swaps="first", sessions=SESSIONS).row.reshape(-1, 3)
    kinds = {tuple(one) for one in lists.tolist()}
    assert kinds == {(0, 1, 2), (1, 0, 2), (2, 1, 0)}
    assert near(np.bincount(lists[:, 0]) / SESSIONS, np.full(3, 1 / 3))


@each(
    "case",
    [
        ({"logger": 2}, "numbered from 1 to 1"),
        ({"logger": "bm25"}, 'no feature called "bm25"|bm25'),
        ({"logger": [np.zeros(2)]}, "one score for each of the 3"),
        ({"model": "ubm"}, "ubm"),
        ({"noise": 1.5}, "noise is a probability"),
        ({"sessions": 0}, "sessions"),
        ({"swaps": "some"}, "some"),
    ],
)
def test_what_makes_no_sense_is_refused(case):
    given, says = case
    with pytest.raises(UsageError, match=says):
        clicks.simulate(one_query(), **{"logger": 1, **given})


def test_grades_of_no_relevance_are_refused():
    with pytest.raises(DataError, match="all grades are 0"):
        clicks.simulate(one_query()._replace(y=np.zeros(3)), 1)


def test_logged_probabilities_are_those_of_the_lists():
    """Shares of many sessions come near them, and products of one kind sum to the other."""
    data = small_data(queries=2, documents=4)
    for more in ({"temperature": 0.7}, {"swaps": "all"}):
        made = {
            kind: clicks.simulate(data, 1, sessions=4000, positions=3, propensity=kind, **more)
            for kind in ("slot", "conditional")
        }
        log = made["slot"]
        place = log.row * 3 + log.position - 1
        chance = np.zeros(data.n_documents * 3)
        chance[place] = log.propensity
        shares = np.bincount(place, minlength=len(chance)) / 4000
        np.testing.assert_allclose(shares, chance, atol=0.03)
        np.testing.assert_array_equal(made["conditional"].row, log.row)
        first = log.position == 1
        np.testing.assert_allclose(
            made["conditional"].propensity[first], log.propensity[first], rtol=1e-8
        )
        whole = made["conditional"].propensity.reshape(-1, 3).prod(axis=1)
        lists, at = np.unique(log.row.reshape(-1, 3), axis=0, return_index=True)
        shown = [(log.row.reshape(-1, 3) == one).all(axis=1).mean() * 2 for one in lists]
        np.testing.assert_allclose(shown, whole[at], atol=0.03)
    for bad in ({}, {"temperature": 1.0, "swaps": "all"}, {"swaps": "first"}):
        with pytest.raises(UsageError, match="propensity"):
            clicks.simulate(data, 1, propensity="slot", **bad)


def test_logged_probabilities_of_lists_that_hardly_vary_are_near_one():
    data = small_data(queries=2, documents=60)
    for kind in ("slot", "conditional"):
        log = clicks.simulate(data, 1, positions=50, temperature=1e-3, propensity=kind)
        assert log.propensity.min() > 0.9
