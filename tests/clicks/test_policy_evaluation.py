"""Rankers evaluated on the log of another: exact expectations, intervals, refusals, sentences."""

import math
from itertools import pairwise

import numpy as np
import pytest
from cases import case, each
from click_sessions import random_log
from listed_policies import (
    ATTRACTION,
    EXAMINATION,
    cascade,
    pbm,
    value,
    whole_log,
)
from small_data import small_data

from rankwright import RankSVM, clicks
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError, UsageError

NEW = np.array([0.9, 0.1, 0.5, 0.2, 0.8, 1.2, -0.4])
GAINS = {
    "ctr@2": np.full(2, 0.5),
    "clicks@2": np.ones(2),
    "dcg@2": 1 / np.log2([2, 3]),
}
PROPENSITY = clicks.Propensity(EXAMINATION)
MODEL = clicks.PBM().fit(random_log(documents=7, queries=2))  # wrong, but of other sessions


def needed(estimator):
    """Return the propensity or model that an estimator takes."""
    if estimator == "pbm":
        return {"propensity": PROPENSITY}
    return {"model": MODEL} if estimator in ("dr", "cascade_dr") else {}


@each("temperature", [0.0, 0.8])
def test_estimates_are_exact_on_the_whole_distribution_of_a_log(temperature):
    """What each estimator assumes is true here: its expectation is the value."""
    log = {kind: whole_log(pbm, propensity=kind) for kind in ("slot", "conditional")}
    for metric in ("ctr@2", "clicks@2", "dcg@2"):
        true = value(NEW, pbm, GAINS[metric], temperature=temperature)
        for estimator, kinds in {
            "ips": ["slot", None],
            "snips": ["slot", None],
            "dr": ["slot", None],
            "rips": ["conditional", None],
            "cascade_dr": ["conditional", None],
            "sips": ["conditional", None],
            "pbm": [None],
        }.items():
            for kind in kinds:
                found = clicks.evaluate_policy(
                    log[kind or "slot"], NEW, metric, estimator=estimator, logged=kind,
                    temperature=temperature, unit="session", **needed(estimator),
                )  # fmt: skip
                with case(metric, estimator, kind):
                    assert found.value == pytest.approx(true, rel=1e-6)
                    assert found.support == pytest.approx(1.0, abs=1e-6)


@each("temperature", [0.0, 0.8])
def test_users_who_go_from_the_top_are_for_estimators_of_prefixes(temperature):
    log = whole_log(cascade, propensity="conditional")
    true = value(NEW, cascade, GAINS["dcg@2"], temperature=temperature)
    for estimator in ("rips", "cascade_dr", "sips"):
        for logged in ("conditional", None):
            found = clicks.evaluate_policy(
                log, NEW, "dcg@2", estimator=estimator, temperature=temperature, logged=logged,
                unit="session", **needed(estimator),
            )  # fmt: skip
            with case(estimator, logged):
                assert found.value == pytest.approx(true, rel=1e-6)
    # a click depends on what is above, which weights of slots do not know
    found = clicks.evaluate_policy(
        log, NEW, "dcg@2", estimator="ips", temperature=temperature, logged=None
    )
    assert found.value != pytest.approx(true, rel=1e-3)


def test_cross_fitting_leaves_the_value_right_on_average():
    """The model of each fold sees other sessions, so that its errors do not move the mean."""
    data = small_data(queries=12, documents=6)
    rng = np.random.default_rng(0)
    new = rng.normal(size=data.n_documents)
    gain = np.exp2(data.y) - 1.0
    p = 0.1 + 0.9 * gain / gain.max()
    top = [lo + int(np.argmax(new[lo:hi])) for lo, hi in pairwise(data.indptr)]
    true, found = p[top].mean(), []
    for seed in range(40):
        log = clicks.simulate(
            data, 1, sessions=60, positions=3, temperature=1.0, propensity="slot",
            random_state=seed,
        )  # fmt: skip
        found.append(clicks.evaluate_policy(log, new, "ctr@1", min_support=0.5))
    values = np.array([one.value for one in found])
    assert abs(values.mean() - true) < 3 * values.std() / math.sqrt(40)
    assert np.mean([one.standard_error for one in found]) > values.std() * 0.8


def test_trust_in_positions_is_taken_off():
    offset = np.array([0.0, 0.1])

    def trusting(rows):
        attraction = 0.9 * EXAMINATION * ATTRACTION[rows]
        return lambda clicked: attraction[len(clicked)] + offset[len(clicked)]

    propensity = clicks.Propensity(EXAMINATION * 0.9, offset=offset)
    found = clicks.evaluate_policy(
        whole_log(trusting), NEW, "dcg@2", estimator="pbm", propensity=propensity
    )
    assert found.value == pytest.approx(value(NEW, trusting, GAINS["dcg@2"]), rel=1e-9)


@each("estimator", ["ips", "snips", "dr", "rips", "cascade_dr", "sips", "pbm"])
def test_sessions_without_weight_change_nothing(estimator):
    """Some that the log has, and all of a query, which would be divided by nothing."""
    log = whole_log(pbm)
    session = np.arange(log.n_sessions)
    weight = np.where((log.query == 0) | (session % 7 == 0), 0.0, log.weight)
    found = [
        clicks.evaluate_policy(
            one, NEW, "ctr@2", estimator=estimator, logged=None, min_support=0.0,
            **needed(estimator),
        )
        for one in (log._replace(weight=weight), log._replace(weight=weight).select(weight > 0.0))
    ]  # fmt: skip
    assert math.isfinite(found[0].value)
    assert found[0].to_dict() == found[1].to_dict()


def test_a_log_without_the_first_positions_is_refused():
    log = whole_log(pbm)
    low = log._replace(position=log.position + 2)
    with pytest.raises(clicks.SupportError, match="down to each position"):
        clicks.evaluate_policy(low, NEW, "ctr@2", estimator="rips", logged=None)


def test_low_temperatures_are_those_of_the_highest_scores_first():
    log = whole_log(pbm)
    for estimator in ("ips", "rips", "cascade_dr"):
        best, sampled = (
            clicks.evaluate_policy(
                log, NEW * scale, "dcg@2", estimator=estimator, temperature=temperature,
                logged=None, **needed(estimator),
            ).value
            for scale, temperature in ((1.0, 0.0), (1e6, 1.0))
        )  # fmt: skip
        assert sampled == pytest.approx(best, rel=1e-9)


def test_a_limit_makes_weights_smaller():
    log = whole_log(pbm)
    for estimator in ("ips", "dr"):
        free = clicks.evaluate_policy(log, NEW, "ctr@2", estimator=estimator)
        short = clicks.evaluate_policy(log, NEW, "ctr@2", estimator=estimator, limit=1.0)
        assert short.value < free.value or estimator == "dr"
        assert any("limited" in one for one in short.remarks)


def test_a_log_that_never_showed_it_is_refused_with_what_would_help():
    data = small_data(queries=20, documents=6)
    log = clicks.simulate(data, 1, sessions=20, positions=3)
    other = -data.X[:, 0]
    with pytest.raises(clicks.SupportError, match=r"at their positions.*shuffled or sampled.*pbm"):
        clicks.evaluate_policy(log, other, "ctr@3")
    with pytest.raises(clicks.SupportError, match="down to each position"):
        clicks.evaluate_policy(log, other, "ctr@3", estimator="rips")
    with pytest.raises(clicks.SupportError, match="lists of the first 3"):
        clicks.evaluate_policy(log, other, "ctr@3", estimator="sips")
    with pytest.raises(clicks.SupportError, match="at any position"):
        clicks.evaluate_policy(
            log, other, "ctr@3", estimator="pbm", propensity=clicks.Propensity.power(1, positions=3)
        )
    with pytest.raises(clicks.SupportError, match="shows 3 positions and ctr@5 needs 5: use ctr@3"):
        clicks.evaluate_policy(log, 1, "ctr@5")
    assert clicks.evaluate_policy(log, 1, "ctr@3", estimator="ips").value == pytest.approx(
        log.click.sum() / 3 / log.n_sessions
    )
    low = clicks.evaluate_policy(log, other, "ctr@3", estimator="ips", min_support=0.0)
    assert low.support < 0.5
    assert "counts as without clicks" in str(low)


@each("estimator", ["ips", "snips", "dr", "rips", "cascade_dr", "sips", "pbm"])
def test_what_the_log_has_not_shown_has_up_to_twice_the_clicks_in_the_interval(estimator):
    log = clicks.simulate(
        small_data(queries=40, documents=5), 1, sessions=12, positions=2, temperature=1.0,
    )  # fmt: skip
    log = log.select(np.arange(log.n_sessions) % 7 > 0)
    found = clicks.evaluate_policy(
        log, -log.features.X[:, 0], "ctr@2", estimator=estimator, min_support=0.0,
        propensity=clicks.Propensity.power(1, positions=2) if estimator == "pbm" else None,
    )  # fmt: skip
    missing = 1.0 - found.support
    assert missing > 0.01
    part = missing * found.value
    wider = (part, part) if estimator in ("snips", "dr", "cascade_dr") else (
        0.0, 2 * part / found.support
    )  # fmt: skip
    assert found.widened == pytest.approx(wider)
    assert "twice as many per document" in str(found)


def test_probabilities_of_another_kind_are_noticed():
    log = clicks.simulate(
        small_data(queries=30, documents=8), 1, sessions=100, positions=4, temperature=1.0,
        propensity="slot",
    )  # fmt: skip
    wrong = log._replace(propensity=log.propensity / 2)
    with pytest.raises(DataError, match=r"mean of the weights is .* instead of 1"):
        clicks.evaluate_policy(wrong, 1, "ctr@2")
    with pytest.raises(UsageError, match="logged='conditional'"):
        clicks.evaluate_policy(log, 1, "ctr@2", estimator="rips")
    assert clicks.evaluate_policy(log, 1, "ctr@2", estimator="rips", logged=None).support > 0.9


def test_a_fitted_ranker_and_pairs_of_rankers():
    data = small_data(queries=30, documents=8)
    log = clicks.simulate(data, 1, sessions=100, positions=4, temperature=1.0, propensity="slot")
    ranker = RankSVM().fit(data)
    found = clicks.evaluate_policy(log, ranker, "ctr@2", estimator="snips")
    assert found.name == "ranksvm"
    assert found.low < found.value < found.high
    assert (found.unit, found.units) == ("query", 30)
    both = clicks.compare_policies(
        log, {"good": ranker, "bad": -ranker.predict(data)}, "ctr@2", estimator="snips"
    )
    assert both.values["good"].value == found.value
    (difference,) = both.differences
    assert (difference.name, difference.baseline) == ("bad", "good")
    assert difference.high < 0.0
    assert "worse" in str(both)
    assert both.to_dict()["differences"][0]["significant"]
    listed = clicks.compare_policies(log, [ranker, ranker.predict(data)], "ctr@2")
    assert list(listed.values) == ["ranksvm 1", "ndarray 2"]
    assert not listed.differences[0].significant
    by_session = clicks.evaluate_policy(log, ranker, "ctr@2", estimator="snips", unit="session")
    assert by_session.units == log.n_sessions
    assert by_session.standard_error < found.standard_error


def test_a_refusal_of_one_of_several_is_reported_beside_the_others():
    data = small_data(queries=20, documents=6)
    log = clicks.simulate(data, 1, sessions=20, positions=3)
    found = clicks.compare_policies(log, {"old": 1, "new": -data.X[:, 0]}, "ctr@3")
    assert list(found.values) == ["old"]
    assert "at their positions" in found.refused["new"]
    assert "new: the log has shown" in str(found)


def test_what_is_wrong_is_one_sentence():
    log = whole_log(pbm)
    bare = log._replace(features=None, row=None)
    gaps = ClickLog.from_arrays(
        [0, 0], [0, 1], [1, 0], session_sizes=[2], position=[1, 3], features=log.features
    )
    for given, error, match in (
        ({"metric": "ndcg@5"}, UsageError, "not a metric of clicks"),
        ({"metric": "ctr"}, UsageError, "cut-off"),
        ({"metric": "ctr@99999"}, UsageError, "from 1 to 10,000"),
        ({"metric": "ctr@" + 5000 * "9"}, UsageError, "not a metric of clicks"),
        (
            {"estimator": "pbm", "propensity": PROPENSITY, "limit": 3.0},
            UsageError,
            "no weights to limit",
        ),
        ({"estimator": "drr"}, UsageError, "estimator must be"),
        ({"metric": "hit@2"}, UsageError, "not a metric of clicks"),
        ({"estimator": "pbm"}, UsageError, "estimate_propensity"),
        ({"log": bare}, DataError, "with_features"),
        ({"min_support": 2}, UsageError, "a share"),
        ({"temperature": -1}, UsageError, "temperature"),
        ({"log": gaps, "estimator": "rips", "metric": "ctr@3"}, DataError, "without gaps"),
        ({"ranker": NEW * math.nan, "temperature": 1.0}, DataError, "not finite"),
        (
            {"estimator": "pbm", "propensity": clicks.Propensity([1.0])},
            DataError,
            "propensity knows 1",
        ),
    ):
        used = {"log": log, "ranker": NEW, "metric": "ctr@2", **given}
        with case(given), pytest.raises(error, match=match):
            clicks.evaluate_policy(**used)
    with pytest.raises(UsageError, match="no ranker"):
        clicks.compare_policies(log, [])
