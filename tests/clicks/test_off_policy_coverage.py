"""95 % intervals of off-policy estimates cover the true value in 93 % or more of evaluations.

Each share is over 1,000 evaluations and at most 98 %, unless the test has other numbers. Arms are
1,000 rounds of ten actions, sampled evenly, and a target with weights up to 2.6. Logs have 4,000
sessions with lists of two of five documents, sampled by a Plackett-Luce logger and clicked by
position-based users; the target shows its two best. With the unit query, 100 queries are sampled
anew for each evaluation, and the value is that of all queries. With the unit session the queries
stay the same, and the value is theirs.
"""

from collections import defaultdict

import numpy as np
import pytest

from rankwright import RankingData, clicks

pytestmark = pytest.mark.slow

EVALUATIONS = 1000
ARMS, ROUNDS = 10, 1000
QUERIES, DOCUMENTS, TOP, PER_QUERY = 100, 5, 2, 40
TEMPERATURE = 2.0
LOGGED = {"ips": "slot", "snips": "slot", "dr": "slot"}
LOGGED |= {"rips": "conditional", "cascade_dr": "conditional"}


def check(covered):
    shares = {name: np.mean(values) for name, values in covered.items()}
    assert all(len(values) == EVALUATIONS for values in covered.values())
    assert {name: share for name, share in shares.items() if not 0.93 <= share <= 0.98} == {}


def test_intervals_of_single_actions_cover():
    rng, covered = np.random.default_rng(0), defaultdict(list)
    target = np.exp(np.linspace(0.0, 2.5, ARMS))
    target /= target.sum()
    rate = np.linspace(0.3, 0.05, ARMS)
    guess = rate + 0.05
    for _ in range(EVALUATIONS):
        action = rng.integers(0, ARMS, ROUNDS)
        reward = rng.random(ROUNDS) < rate[action]
        model = {"predicted": guess[action], "expected": np.full(ROUNDS, target @ guess)}
        for name in ("ips", "snips", "dr"):
            arguments = model if name == "dr" else {}
            value = clicks.estimate_value(
                reward, target[action] * ARMS, estimator=name, **arguments
            )
            covered[name].append(value.low <= target @ rate <= value.high)
    check(covered)


def even_weights(rng, sessions):
    """Return weights of a target that shows one of three things, and rewards without relation."""
    chosen = rng.random(sessions) < 1 / 3
    return 3.0 * chosen, rng.random(sessions) < 0.3, 0.3


def softmax_weights(rng, sessions):
    target = np.exp(np.linspace(0.0, 3.0, ARMS))
    target /= target.sum()
    rate = np.linspace(0.6, 0.2, ARMS)
    arm = rng.integers(0, ARMS, sessions)
    return target[arm] * ARMS, rng.random(sessions) < rate[arm], target @ rate


def heavy_weights(deviation):
    """Return weights with a log-normal distribution; users like what the target likes."""

    def sample(rng, sessions):
        x = rng.normal(size=sessions)
        weight = np.exp(deviation * x - deviation**2 / 2)
        z = np.linspace(-8.0, 8.0, 4001)
        density = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
        true = density @ (0.6 / (1.0 + np.exp(-0.5 * (z + deviation))))
        return weight, rng.random(sessions) < 0.6 / (1.0 + np.exp(-0.5 * x)), true

    return sample


@pytest.mark.parametrize(
    ("sample", "sessions"),
    [
        (even_weights, 35 * 3),
        (softmax_weights, 35 * 3),
        (heavy_weights(0.7), round(35 * np.exp(0.7**2))),
        (heavy_weights(1.0), round(35 * np.exp(1.0))),
        (heavy_weights(1.4), round(35 * np.exp(1.4**2))),
        (heavy_weights(1.8), round(35 * np.exp(1.8**2))),
    ],
)
def test_intervals_of_about_35_effective_sessions_cover(sample, sessions):
    """Those that are given, with at least 30; with heavy weights up to 99.5 % of them cover."""
    rng, covered = np.random.default_rng(4), defaultdict(list)
    for _ in range(EVALUATIONS):
        weight, reward, true = sample(rng, sessions)
        for name in ("ips", "snips", "dr"):
            model = np.full(sessions, 0.3)
            arguments = {"predicted": model, "expected": model} if name == "dr" else {}
            value = clicks.estimate_value(reward, weight, estimator=name, **arguments)
            if not np.isnan(value.low):
                covered[name].append(value.low <= true <= value.high)
    assert all(len(values) > 0.4 * EVALUATIONS for values in covered.values())
    shares = {name: np.mean(values) for name, values in covered.items()}
    assert {name: share for name, share in shares.items() if not 0.93 <= share <= 0.995} == {}


def sample_queries(rng, count):
    """Return queries with grades 0 to 2, the logger's score as feature, and a target's scores."""
    grade = rng.integers(0, 3, count * DOCUMENTS).astype(float)
    feature = grade + rng.normal(0.0, 2.0, len(grade))
    data = RankingData.from_arrays(feature[:, None], grade, group_sizes=np.full(count, DOCUMENTS))
    return data, grade + rng.normal(0.0, 1.0, len(grade))


def true_value(data, scores):
    """Return ctr@2 of the target for the users of `clicks.simulate`."""
    attraction = (0.1 + 0.9 * (np.exp2(data.y) - 1.0) / 3.0).reshape(-1, DOCUMENTS)
    best = np.argsort(-scores.reshape(-1, DOCUMENTS), axis=1, kind="stable")[:, :TOP]
    shown = np.take_along_axis(attraction, best, axis=1)
    return float((shown / np.arange(1, TOP + 1)).sum(axis=1).mean() / TOP)


def simulate(data, sessions, seed):
    """Return a log with each kind of probability."""
    log = clicks.simulate(
        data,
        1,
        sessions=sessions,
        positions=TOP,
        temperature=TEMPERATURE,
        propensity="slot",
        random_state=seed,
    )
    by_rank = np.argsort(np.argsort(-data.X.reshape(-1, DOCUMENTS), axis=1), axis=1).ravel() + 1.0
    rate = (by_rank ** (-1.0 / TEMPERATURE))[log.row].reshape(-1, TOP)
    total = (np.arange(1.0, DOCUMENTS + 1) ** (-1.0 / TEMPERATURE)).sum()
    conditional = rate / (total - np.cumsum(rate, axis=1) + rate)
    return {"slot": log, "conditional": log._replace(propensity=conditional.ravel())}


def add_covered(covered, logs, scores, true, unit):
    for name, logged in LOGGED.items():
        value = clicks.evaluate_policy(
            logs[logged],
            scores,
            f"ctr@{TOP}",
            estimator=name,
            logged=logged,
            min_support=0.0,
            unit=unit,
        )
        covered[name].append(value.low <= true <= value.high)


def test_intervals_over_queries_cover_the_value_of_all_queries():
    covered, true = (
        defaultdict(list),
        true_value(*sample_queries(np.random.default_rng(0), 400_000)),
    )
    for seed in range(EVALUATIONS):
        data, scores = sample_queries(np.random.default_rng([1, seed]), QUERIES)
        add_covered(covered, simulate(data, PER_QUERY, seed), scores, true, "query")
    check(covered)


@pytest.mark.parametrize(("per_query", "support"), [(10, 0.9), (20, 0.95), (40, 0.99)])
def test_intervals_without_logged_probabilities_cover(per_query, support):
    """300 logs; the probabilities are shares of sessions, and the log lacks up to 10 %."""
    true = true_value(*sample_queries(np.random.default_rng(0), 400_000))
    covered, shown = defaultdict(list), []
    for seed in range(300):
        data, scores = sample_queries(np.random.default_rng([1, seed]), QUERIES)
        log = simulate(data, per_query, seed)["slot"]
        for name in LOGGED:
            try:
                value = clicks.evaluate_policy(
                    log, scores, f"ctr@{TOP}", estimator=name, logged=None
                )
            except clicks.SupportError:
                continue
            shown.append(value.support)
            covered[name].append(value.low <= true <= value.high)
    assert min(shown) >= 0.9
    assert np.median(shown) >= support
    assert all(np.mean(values) >= 0.93 for values in covered.values() if len(values) > 50)
    assert {"ips", "snips", "dr"} <= {name for name in covered if len(covered[name]) > 50}


def test_intervals_over_sessions_cover_the_value_of_the_same_queries():
    data, scores = sample_queries(np.random.default_rng(2), QUERIES)
    covered, true, rng = defaultdict(list), true_value(data, scores), np.random.default_rng(3)
    most = 3 * PER_QUERY
    for seed in range(EVALUATIONS):
        logs = simulate(data, most, seed)
        counts = np.minimum(rng.multinomial(PER_QUERY * QUERIES, [1 / QUERIES] * QUERIES), most)
        rows = np.flatnonzero(logs["slot"].time < np.repeat(counts, most))
        selected = {kind: log.select(rows) for kind, log in logs.items()}
        add_covered(covered, selected, scores, true, "session")
    check(covered)


@pytest.mark.parametrize(("sessions", "logs"), [(1_000, 300), (10_000, 60)])
def test_cascade_dr_has_smaller_errors_than_rips(sessions, logs):
    """Lists of three of eight documents; users go from the top and stop at a click."""
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 3, 80).astype(float)
    data = RankingData.from_arrays(rng.normal(size=(80, 1)), grade, group_sizes=[8] * 10)
    scores = grade + rng.normal(size=80)
    values = defaultdict(list)
    for seed in range(logs):
        log = clicks.simulate(
            data,
            1,
            model="cascade",
            sessions=sessions // 10,
            positions=3,
            temperature=1.5,
            propensity="conditional",
            random_state=10_000 + seed,
        )
        for name in ("rips", "cascade_dr"):
            value = clicks.evaluate_policy(
                log,
                scores,
                "clicks@3",
                estimator=name,
                temperature=1.0,
                logged="conditional",
                min_support=0.0,
            )
            values[name].append(value.value)
    true = np.mean(values["rips"])  # without bias
    assert np.var(values["cascade_dr"]) < np.var(values["rips"])
    assert np.mean(values["cascade_dr"]) == pytest.approx(
        true, abs=4 * np.std(values["rips"]) / np.sqrt(logs)
    )
