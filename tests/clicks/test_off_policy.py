"""Estimators of a policy's value: by hand, by sums written out, intervals, and refusals."""

import math

import numpy as np
import pytest
from cases import each

from rankwright import clicks
from rankwright.clicks.off_policy import TERMS, _interval
from rankwright.errors import DataError, UsageError

REWARD = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
WEIGHT = np.array([0.5, 2.0, 1.0, 0.0, 4.0, 0.25])
PREDICTED = np.array([0.5, 0.2, 0.4, 0.1, 0.3, 0.6])
EXPECTED = np.array([0.4, 0.4, 0.3, 0.2, 0.2, 0.5])
MODEL = {"predicted": PREDICTED, "expected": EXPECTED}


def estimated(estimator, **more):
    used = {} if "ips" in estimator else MODEL
    return clicks.estimate_value(REWARD, WEIGHT, estimator=estimator, **used, **more).value


def test_values_are_the_means_of_their_equations():
    error = REWARD - PREDICTED
    by_hand = {
        "ips": np.mean([WEIGHT[i] * REWARD[i] for i in range(len(REWARD))]),
        "snips": (WEIGHT @ REWARD) / WEIGHT.sum(),
        "dr": np.mean(EXPECTED + WEIGHT * error),
        "cascade_dr": np.mean(EXPECTED + WEIGHT * error),  # of lists with one slot
    }
    for name, value in by_hand.items():
        assert estimated(name) == pytest.approx(value, rel=1e-14)
    ips = clicks.estimate_value(REWARD, WEIGHT, estimator="ips")
    assert ips.effective_sample_size == pytest.approx(WEIGHT.sum() ** 2 / (WEIGHT @ WEIGHT))
    assert (ips.maximum_weight, ips.sessions, ips.units) == (4.0, 6.0, 6)


def test_a_limit_makes_weights_smaller():
    error = REWARD - PREDICTED
    weight = np.minimum(WEIGHT, 1.5)
    assert estimated("dr", limit=1.5) == pytest.approx(np.mean(EXPECTED + weight * error))
    assert estimated("ips", limit=1.5) == pytest.approx(np.mean(weight * REWARD))
    assert "bias" in str(clicks.estimate_value(REWARD, WEIGHT, estimator="ips", limit=1.5))
    assert estimated("dr", limit=1e300) == estimated("dr")


def test_lists_are_sums_over_slots_and_means_over_lists():
    sizes = [2, 3, 1]
    at = [[0, 1], [2, 3, 4], [5]]
    ips = clicks.estimate_value(REWARD, WEIGHT, estimator="ips", session_sizes=sizes)
    assert ips.value == pytest.approx(WEIGHT @ REWARD / 3)
    slots = [[0, 2, 5], [1, 3], [4]]
    snips = sum(len(one) / 3 * (WEIGHT[one] @ REWARD[one]) / WEIGHT[one].sum() for one in slots)
    found = clicks.estimate_value(REWARD, WEIGHT, estimator="snips", session_sizes=sizes)
    assert found.value == pytest.approx(snips)
    total = 0.0
    for rows in at:
        above = 1.0
        for i in rows:
            total += WEIGHT[i] * (REWARD[i] - PREDICTED[i]) + above * EXPECTED[i]
            above = WEIGHT[i]
    assert estimated("cascade_dr", session_sizes=sizes) == pytest.approx(total / 3)


@each("estimator", list(TERMS))
def test_a_weight_of_sessions_counts_in_the_value_as_their_repetition(estimator):
    times = np.array([2, 1, 3, 1, 1, 2])
    again = np.repeat(np.arange(6), times)
    used = {} if "ips" in estimator else {name: values[again] for name, values in MODEL.items()}
    repeated = clicks.estimate_value(REWARD[again], WEIGHT[again], estimator=estimator, **used)
    assert estimated(estimator, sample_weight=times) == pytest.approx(repeated.value)


@each("estimator", ["ips", "snips"])
def test_a_session_is_one_observation_whatever_its_weight(estimator):
    """A common factor changes nothing; ten sessions do not become 5,000 by their weights."""
    rng = np.random.default_rng(0)
    reward, weight, own = rng.random(300), rng.exponential(size=300), rng.random(300)
    once = clicks.estimate_value(reward, weight, estimator=estimator, sample_weight=own)
    often = clicks.estimate_value(reward, weight, estimator=estimator, sample_weight=500 * own)
    for name in ("value", "low", "high", "standard_error", "effective_sample_size", "support"):
        assert getattr(often, name) == pytest.approx(getattr(once, name), rel=1e-12)
    assert once.sessions == 300
    plain = clicks.estimate_value(reward, weight, estimator=estimator)
    assert once.effective_sample_size < plain.effective_sample_size
    few = clicks.estimate_value(
        reward[:10], weight[:10], estimator=estimator, sample_weight=np.full(10, 500.0)
    )
    assert few.effective_sample_size <= 10
    assert math.isnan(few.low)


def test_weights_of_sessions_widen_the_interval_as_far_as_they_differ():
    """The deviation of the estimate over 400 logs with weights, against its standard error."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        own = rng.exponential(size=200)
        reward = rng.random(200) < 0.3
        found.append(
            clicks.estimate_value(reward, np.ones(200), estimator="ips", sample_weight=own)
        )
    deviation = np.std([one.value for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(deviation, rel=0.1)
    effective = np.mean([one.effective_sample_size for one in found])
    assert effective == pytest.approx(100, rel=0.1)


def test_standard_errors_are_those_of_the_mean_and_of_sums_of_clusters():
    rng = np.random.default_rng(0)
    reward, weight = rng.random(300), rng.exponential(size=300)
    found = clicks.estimate_value(reward, weight, estimator="ips")
    assert found.standard_error == pytest.approx((reward * weight).std(ddof=1) / math.sqrt(300))
    cluster = np.repeat(np.arange(50), 6)
    found = clicks.estimate_value(reward, weight, estimator="ips", cluster=cluster)
    means = (reward * weight).reshape(50, 6).mean(axis=1)
    assert found.standard_error == pytest.approx(means.std(ddof=1) / math.sqrt(50))
    assert (found.units, found.unit) == (50, "cluster")


def test_clusters_may_be_ids_of_any_kind():
    reward, weight = np.arange(60.0), np.ones(60)
    mixed = np.array([None, "a", 3] * 20, object)
    for kinds in (mixed, np.tile([0, 1, 2], 20)):
        found = clicks.estimate_value(reward, weight, estimator="ips", cluster=kinds)
        assert found.units == 3


def test_without_skewness_the_interval_is_students():
    from scipy import stats

    z = np.concatenate((np.linspace(-1, 1, 40), [0.0]))
    low, high, error = _interval(2.0, z, None)
    t = stats.t.ppf(0.975, 40)
    assert (low, high) == pytest.approx((2.0 - t * error, 2.0 + t * error))


def test_with_skewness_it_reaches_further_to_the_long_side():
    z = np.random.default_rng(0).exponential(size=200) - 1.0
    low, high, _ = _interval(0.0, z - z.mean(), None)
    assert high > -low > 0.0


def test_heavy_weights_have_few_degrees_of_freedom():
    """The quantile is that of Student's with half of (sum w^2)^2 / sum w^4 degrees."""
    from scipy import stats

    weight = np.concatenate((np.full(300, 0.1), np.full(30, 8.0), [20.0]))
    reward = np.tile([1.0, 0.0, 1.0], 111)[: len(weight)]
    found = clicks.estimate_value(reward, weight)
    assert found.freedom == pytest.approx((weight**2).sum() ** 2 / (weight**4).sum() / 2)
    assert found.freedom < 10
    ratio = (found.high - found.low) / (2 * stats.t.ppf(0.975, 330) * found.standard_error)
    assert ratio > 1.05
    even = clicks.estimate_value(reward, np.ones(len(weight)))
    assert even.freedom == len(weight) / 2


def test_few_rewards_are_remarked():
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=300)
    for clicked, remarked in ((6, True), (60, False)):
        found = clicks.estimate_value(np.arange(300) < clicked, weight, estimator="snips")
        assert not math.isnan(found.low)
        assert ("Few rewards: they count as" in str(found)) is remarked


def test_what_a_log_has_not_shown_widens_intervals_and_differences():
    rng = np.random.default_rng(0)
    reward, weight = rng.random(200), rng.exponential(size=200)
    a = clicks.estimate_value(reward, weight, estimator="ips")
    b = clicks.estimate_value(reward, weight[::-1], estimator="ips")
    wide, plain = a.widen(0.1, 0.2), a.difference(b)
    assert (wide.low, wide.high) == pytest.approx((a.low - 0.1, a.high + 0.2))
    found = wide.difference(b.widen(0.01, 0.02))
    assert (found.low, found.high) == pytest.approx((plain.low - 0.12, plain.high + 0.21))
    assert found.difference == plain.difference


@each("estimator", ["ips", "snips", "dr"])
def test_intervals_cover(estimator):
    """Three hundred evaluations with skewed weights; test_off_policy_coverage.py has a thousand."""
    rng = np.random.default_rng(1)
    n, actions = 500, 10
    target = np.exp(np.linspace(0, 3, actions))
    target /= target.sum()
    rate = np.linspace(0.5, 0.05, actions)
    guess = np.clip(rate + 0.1, 0, 1)
    inside = 0
    for _ in range(300):
        action = rng.integers(0, actions, n)
        reward = rng.random(n) < rate[action]
        model = {"predicted": guess[action], "expected": np.full(n, target @ guess)}
        used = {} if "ips" in estimator else model
        found = clicks.estimate_value(reward, target[action] * actions, estimator=estimator, **used)
        inside += found.low <= target @ rate <= found.high
    assert 0.92 <= inside / 300 <= 0.98


def test_differences_are_paired():
    rng = np.random.default_rng(0)
    reward, weight = rng.random(200), rng.exponential(size=200)
    a = clicks.estimate_value(reward, weight, estimator="ips")
    b = clicks.estimate_value(reward, weight + 0.01, estimator="ips")
    found = b.difference(a)
    assert found.difference == pytest.approx(0.01 * reward.mean())
    assert found.standard_error == pytest.approx(0.01 * reward.std(ddof=1) / math.sqrt(200))
    assert found.significant
    assert "better" in str(found)
    assert not a.difference(a).significant
    with pytest.raises(UsageError, match="paired"):
        a.difference(clicks.estimate_value(reward[:50], weight[:50], estimator="ips"))


def test_too_little_has_no_interval():
    reward, weight = np.zeros(500), np.ones(500)
    reward[:3] = 1.0
    found = clicks.estimate_value(reward, weight, estimator="ips")
    assert math.isnan(found.low)
    assert "collect more" in str(found)
    assert found.to_dict()["low"] is None
    one = clicks.estimate_value(reward, np.eye(1, 500).ravel() * 9, estimator="ips")
    assert math.isnan(one.standard_error)


def test_what_is_wrong_is_one_sentence():
    for given, error, match in (
        ({"estimator": "isp"}, UsageError, "estimator must be"),
        ({"estimator": "dr"}, UsageError, "needs predicted"),
        ({"estimator": "ips", **MODEL}, UsageError, "takes no model"),
        ({"estimator": "switch_dr", **MODEL}, UsageError, "estimator must be"),
        ({"weight": -WEIGHT}, DataError, "weight must be finite and 0 or more; row 0"),
        ({"reward": REWARD * math.nan}, DataError, "reward must be finite"),
        ({"limit": -1}, UsageError, "limit must be above 0"),
        ({"reward": [], "weight": []}, DataError, "no rewards"),
    ):
        with pytest.raises(error, match=match):
            clicks.estimate_value(**{"reward": REWARD, "weight": WEIGHT, **given})


def test_wrong_sizes_of_sessions_are_named_as_they_were_given():
    """Here and in a click log; group_sizes and qid are parameters of other functions."""
    for build in (
        lambda sizes: clicks.estimate_value([1, 0], [1, 1], session_sizes=sizes),
        lambda sizes: clicks.ClickLog.from_arrays([1, 1], [1, 2], [0, 1], session_sizes=sizes),
    ):
        for sizes, match in (
            ([3], r"^session_sizes add up to 3, but there are 2 rows; give the .* each session"),
            ([1, -1, 2], "^session_sizes must be whole numbers, 0 or more, one per session"),
            ("ab", "^session_sizes must be whole numbers"),
        ):
            with pytest.raises(DataError, match=match) as raised:
                build(sizes)
            assert "group" not in str(raised.value)
            assert "qid" not in str(raised.value)


def test_values_are_drawn_with_their_intervals():
    rng = np.random.default_rng(0)
    found = clicks.estimate_value(rng.random(200), rng.exponential(size=200), estimator="ips")
    bare = clicks.estimate_value([1.0, 0.0], [1.0, 1.0])
    ax = clicks.plot_values({"ips": found, "snips": bare})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ips", "snips"]
    (line,) = [one for one in ax.containers if one.has_xerr]
    (segment,) = line[2][0].get_segments()
    assert segment[:, 0] == pytest.approx([found.low, found.high])
    assert ax.get_xlabel().startswith("reward, estimated")
    with pytest.raises(UsageError, match="nothing to draw"):
        clicks.plot_values({})
