"""95 % intervals of off-policy estimates cover the true value in 93 to 97 % of 1,000 evaluations.

Arms are 1,000 rounds of ten actions, sampled evenly, and a target with weights up to 2.6. Logs have
4,000 sessions with lists of two of five documents, sampled by a Plackett-Luce logger and clicked by
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
    assert {name: share for name, share in shares.items() if not 0.93 <= share <= 0.97} == {}


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
