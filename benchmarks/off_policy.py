"""Off-policy evaluation: how often intervals cover, and errors and speed beside obp's.

Coverage is the share of 1,000 simulated evaluations (RANKWRIGHT_EVALUATIONS) whose 95 % interval
holds the true value. ``..._arms`` are 1,000 rounds of ten actions, sampled evenly, and a target
with weights up to 2.6; the others are logs of 4,000 sessions with lists of two of five documents,
sampled by a logger of Plackett-Luce and clicked by position-based users, and a target that shows
its two best. With the unit query, 100 queries are sampled anew for each evaluation, and the value
is that of all queries; with ``..._sessions`` the queries stay, and the value is theirs. ips, dr and
pi ``..._shares`` are given no probabilities, and take shares of sessions.

Errors are squared ones of the estimated clicks in lists of three of eight documents, over logs of
1,000 and 10,000 sessions of ten queries with users who go from the top and stop at a click; logger
and target sample from Plackett-Luce. obp (Open Bandit Pipeline) is given the same sessions,
probabilities and a one-hot query as context; its Cascade-DR has the regression of its paper, a
decision tree of depth 3, or one that fits better, of depth 8 with 20 sessions in a leaf. On the
first log obp itself runs; on the others the same trees and sums without its loops in Python, which
must give the same on the first. Its other estimators equal ours (tests/clicks). Seconds are those
of Cascade-DR from given predictions, 10,000 lists.

obp asks for old versions of other packages: pip install --no-deps --ignore-requires-python obp.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from rankwright import RankingData, clicks

from .contest import Contender, contest, version
from .findings import OURS, Findings, Record

EVALUATIONS = int(os.environ.get("RANKWRIGHT_EVALUATIONS", "1000"))
SIZES = {1_000: 300, 10_000: 60}  # sessions -> logs of so many
ARMS, ROUNDS = 10, 1_000
QUERIES, DOCUMENTS, TOP, PER_QUERY = 100, 5, 2, 40
FEW_QUERIES, ACTIONS, SHOWN = 10, 8, 3
TEMPERATURE = 2.0
PROPENSITY = clicks.Propensity.power(1.0, positions=TOP)
MEASURE = "minus the mean squared error, times 10,000"


def run() -> Findings:
    found = Findings()
    for name, share in {**_arms(), **_logs(), **_sessions()}.items():
        found.figures[f"coverage_{name}"] = share
    for sessions, logs in SIZES.items():
        found.add(_errors(sessions, logs))
    one = found.add(_speed())
    found.note_figure("cascade_dr_vs_obp", one.ratio("obp", OURS))
    return found


# --- coverage ------------------------------------------------------------------------------------


def _arms() -> dict[str, float]:
    """Return how often intervals of single actions cover."""
    rng = np.random.default_rng(0)
    target = np.exp(np.linspace(0.0, 2.5, ARMS))
    target /= target.sum()
    rate = np.linspace(0.3, 0.05, ARMS)
    guess = rate + 0.05
    inside: dict[str, int] = defaultdict(int)
    for _ in range(EVALUATIONS):
        action = rng.integers(0, ARMS, ROUNDS)
        reward = rng.random(ROUNDS) < rate[action]
        model = {"predicted": guess[action], "expected": np.full(ROUNDS, target @ guess)}
        for name in ("ips", "snips", "dr", "sndr"):
            used = {} if "ips" in name else model
            found = clicks.estimate_value(reward, target[action] * ARMS, estimator=name, **used)
            inside[f"{name}_arms"] += bool(found.low <= target @ rate <= found.high)
    return {name: count / EVALUATIONS for name, count in inside.items()}


def _queries(rng: np.random.Generator, count: int) -> tuple[RankingData, np.ndarray]:
    """Return queries with grades 0 to 2, a logger's score as feature, and scores of a target."""
    grade = rng.integers(0, 3, count * DOCUMENTS).astype(float)
    feature = grade + rng.normal(0.0, 2.0, len(grade))
    data = RankingData.from_arrays(feature[:, None], grade, group_sizes=np.full(count, DOCUMENTS))
    return data, grade + rng.normal(0.0, 1.0, len(grade))


def _true_value(data: RankingData, scores: np.ndarray) -> float:
    """Return ctr@2 of a target, whose users are those of `clicks.simulate`."""
    gain = (np.exp2(data.y) - 1.0) / 3.0
    attraction = (0.1 + 0.9 * gain).reshape(-1, DOCUMENTS)
    best = np.argsort(-scores.reshape(-1, DOCUMENTS), axis=1, kind="stable")[:, :TOP]
    taken = np.take_along_axis(attraction, best, axis=1)
    return float((taken / np.arange(1, TOP + 1)).sum(axis=1).mean() / TOP)


ESTIMATED = {
    "ips": "slot",
    "snips": "slot",
    "dr": "slot",
    "rips": "conditional",
    "cascade_dr": "conditional",
    "sips": "conditional",
    "pi_shares": None,
    "pbm": None,
    "ips_shares": None,
    "dr_shares": None,
}


def _covered(log: Any, other: Any, scores: np.ndarray, true: float, unit: str) -> dict[str, bool]:
    """Return whether the interval of each estimator covers; logs differ in what was logged.

    Over sessions, those with shares of sessions are left out: their intervals are too wide.
    """
    found = {}
    for name, logged in ESTIMATED.items():
        if unit == "session" and logged is None:
            continue
        value = clicks.evaluate_policy(
            other if logged == "conditional" else log, scores, f"ctr@{TOP}",
            estimator=name.removesuffix("_shares"), logged=logged, propensity=PROPENSITY,
            min_support=0.0, unit=unit,
        )  # fmt: skip
        found[name] = value.low <= true <= value.high
    return found


def _simulated(data: RankingData, sessions: int, seed: int) -> tuple[Any, Any]:
    """Return one log with each kind of probability."""
    log = clicks.simulate(
        data, 1, sessions=sessions, positions=TOP, temperature=TEMPERATURE, propensity="slot",
        random_state=seed,
    )  # fmt: skip
    by_rank = np.argsort(np.argsort(-data.X.reshape(-1, DOCUMENTS), axis=1), axis=1).ravel() + 1.0
    rate = (by_rank ** (-1.0 / TEMPERATURE))[log.row].reshape(-1, TOP)
    total = (np.arange(1.0, DOCUMENTS + 1) ** (-1.0 / TEMPERATURE)).sum()
    conditional = rate / (total - np.cumsum(rate, axis=1) + rate)
    return log, log._replace(propensity=conditional.ravel())


def _logs() -> dict[str, float]:
    """Return how often intervals over queries cover the value of all queries."""
    true = _true_value(*_queries(np.random.default_rng(0), 400_000))
    inside: dict[str, int] = defaultdict(int)
    for seed in range(EVALUATIONS):
        data, scores = _queries(np.random.default_rng([1, seed]), QUERIES)
        logs = _simulated(data, PER_QUERY, seed)
        for name, covered in _covered(*logs, scores, true, "query").items():
            inside[name] += covered
    return {name: count / EVALUATIONS for name, count in inside.items()}


def _sessions() -> dict[str, float]:
    """Return how often intervals over sessions cover the value of the same queries."""
    data, scores = _queries(np.random.default_rng(2), QUERIES)
    true, rng = _true_value(data, scores), np.random.default_rng(3)
    inside: dict[str, int] = defaultdict(int)
    most = 3 * PER_QUERY
    for seed in range(EVALUATIONS):
        logs = _simulated(data, most, seed)
        counts = np.minimum(rng.multinomial(PER_QUERY * QUERIES, [1 / QUERIES] * QUERIES), most)
        kept = np.flatnonzero(logs[0].time < np.repeat(counts, most))
        chosen = [log.select(kept) for log in logs]
        for name, covered in _covered(*chosen, scores, true, "session").items():
            inside[f"{name}_sessions"] += covered
    return {name: count / EVALUATIONS for name, count in inside.items()}


# --- errors beside obp ---------------------------------------------------------------------------


class _Slates:
    """Ten queries of eight documents, a logger, a target, and the target's true value."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        grade = rng.integers(0, 3, FEW_QUERIES * ACTIONS).astype(float)
        self.data = RankingData.from_arrays(
            rng.normal(size=(len(grade), 1)), grade,
            group_sizes=np.full(FEW_QUERIES, ACTIONS),
        )  # fmt: skip
        self.scores = (grade + rng.normal(size=len(grade))).reshape(FEW_QUERIES, ACTIONS)
        gain = (np.exp2(grade) - 1.0) / 3.0
        attraction = (0.1 + 0.9 * gain).reshape(FEW_QUERIES, ACTIONS)
        total = 0.0
        for lists in permutations(range(ACTIONS), SHOWN):
            chance, left, missed = np.ones(FEW_QUERIES), np.exp(self.scores).sum(axis=1), 1.0
            for d in lists:
                rate = np.exp(self.scores[:, d])
                chance, left = chance * rate / left, left - rate
                missed = missed * (1.0 - attraction[:, d])
            total += float((chance * (1.0 - missed)).mean())
        self.true = total

    def log(self, sessions: int, seed: int) -> Any:
        return clicks.simulate(
            self.data, 1, model="cascade", sessions=sessions // FEW_QUERIES, positions=SHOWN,
            temperature=1.5, propensity="conditional", random_state=seed,
        )  # fmt: skip

    def ours(self, log: Any, estimator: str) -> float:
        return clicks.evaluate_policy(
            log, self.scores.ravel(), f"clicks@{SHOWN}", estimator=estimator, temperature=1.0,
            logged="conditional", min_support=0.0,
        ).value  # fmt: skip

    def as_obp(self, log: Any) -> dict[str, np.ndarray]:
        """Return the log as obp takes it."""
        action = (log.row % ACTIONS).reshape(-1, SHOWN)
        rates = np.exp(self.scores)[log.query]
        left, dist = rates.copy(), []
        for slot in range(SHOWN):
            dist.append(left / left.sum(axis=1, keepdims=True))
            left[np.arange(len(left)), action[:, slot]] = 0.0
        target = np.stack(dist, axis=1)
        own = np.take_along_axis(target, action[:, :, None], axis=2)[:, :, 0]
        return {
            "slate_id": np.repeat(np.arange(log.n_sessions), SHOWN),
            "action": action.ravel(),
            "reward": log.click.astype(float),
            "position": np.tile(np.arange(SHOWN), log.n_sessions),
            "pscore_cascade": np.cumprod(log.propensity.reshape(-1, SHOWN), axis=1).ravel(),
            "evaluation_policy_pscore_cascade": np.cumprod(own, axis=1).ravel(),
            "evaluation_policy_action_dist": target.ravel(),
        }


def _tree_values(given: dict[str, np.ndarray], query: np.ndarray, **tree: Any) -> np.ndarray:
    """Return the predictions of obp's regression: a tree for each slot, from the last up."""
    from sklearn.tree import DecisionTreeRegressor

    n = len(query)
    context = np.eye(FEW_QUERIES)[query]
    action, reward = given["action"].reshape(n, SHOWN), given["reward"].reshape(n, SHOWN)
    target = given["evaluation_policy_action_dist"].reshape(n, SHOWN, ACTIONS)
    q, onward = np.empty((n, SHOWN, ACTIONS)), np.zeros(n)
    for slot in range(SHOWN - 1, -1, -1):
        own = np.concatenate((context, action[:, : slot + 1]), axis=1)
        fitted = DecisionTreeRegressor(random_state=0, **tree).fit(own, reward[:, slot] + onward)
        every = np.repeat(own, ACTIONS, axis=0)
        every[:, -1] = np.tile(np.arange(ACTIONS), n)
        q[:, slot] = fitted.predict(every).reshape(n, ACTIONS)
        onward = (target[:, slot] * q[:, slot]).sum(axis=1)
    return q


def _tree_value(given: dict[str, np.ndarray], q: np.ndarray) -> float:
    """Return Cascade-DR with these predictions."""
    return clicks.estimate_value(
        given["reward"],
        given["evaluation_policy_pscore_cascade"] / given["pscore_cascade"],
        estimator="cascade_dr",
        predicted=q.reshape(-1, ACTIONS)[np.arange(q.shape[0] * SHOWN), given["action"]],
        expected=(given["evaluation_policy_action_dist"] * q.ravel()).reshape(-1, ACTIONS).sum(1),
        session_sizes=np.full(len(q), SHOWN),
    ).value


def _obp_value(given: dict[str, np.ndarray], query: np.ndarray, **tree: Any) -> float:
    """Return what obp's regression and its Cascade-DR give."""
    from obp.ope import SlateCascadeDoublyRobust, SlateRegressionModel
    from sklearn.tree import DecisionTreeRegressor

    model = SlateRegressionModel(
        DecisionTreeRegressor(random_state=0, **tree), len_list=SHOWN, n_unique_action=ACTIONS
    )
    names = ("action", "reward", "pscore_cascade", "evaluation_policy_pscore_cascade",
             "evaluation_policy_action_dist")  # fmt: skip
    q = model.fit_predict(
        context=np.eye(FEW_QUERIES)[query], **{name: given[name] for name in names}
    )
    estimator = SlateCascadeDoublyRobust(len_list=SHOWN, n_unique_action=ACTIONS)
    return float(estimator.estimate_policy_value(**given, q_hat=q))


TREES = {
    "obp, tree of depth 3": {"max_depth": 3},
    "obp, tree of depth 8": {"max_depth": 8, "min_samples_leaf": 20},
}


def _errors(sessions: int, logs: int) -> Findings:
    """Return mean squared errors on the same logs."""
    found, problem = Findings(), _Slates()
    values: dict[str, list[float]] = defaultdict(list)
    for seed in range(logs):
        log = problem.log(sessions, 10_000 + seed)
        for name in ("sips", "rips", "cascade_dr"):
            values[f"{OURS}, {name}"].append(problem.ours(log, name))
        given = problem.as_obp(log)
        for name, tree in TREES.items():
            values[name].append(_tree_value(given, _tree_values(given, log.query, **tree)))
            if seed > 0:
                continue
            try:
                theirs = _obp_value(given, log.query, **tree)
            except ImportError:
                found.absent["obp"] = "obp is not installed"
                continue
            if not np.isclose(theirs, values[name][0], rtol=1e-9):
                found.failed["obp"] = f"{name}: {theirs} and not {values[name][0]}"
    error = {name: float(np.mean((np.array(v) - problem.true) ** 2)) for name, v in values.items()}
    task = f"clicks in lists of {SHOWN} of {ACTIONS}, {sessions:,} sessions"
    for name, value in error.items():
        package = "obp" if name in TREES else "rankwright"
        bias = float(np.mean(values[name])) - problem.true
        peer = OURS if name == f"{OURS}, cascade_dr" else name
        found.records.append(
            Record(task, peer, version(package), f"{logs} logs", None, -1e4 * value, MEASURE,
                   note=f"cascade_dr; mean error {bias:+.4f}" if peer in (OURS, *TREES)
                   else f"mean error {bias:+.4f}")
        )  # fmt: skip
    mine = error[f"{OURS}, cascade_dr"]
    found.figures[f"mse_over_rips_{sessions}"] = mine / error[f"{OURS}, rips"]
    found.figures[f"mse_over_obp_{sessions}"] = mine / min(error[name] for name in TREES)
    return found


# --- speed ---------------------------------------------------------------------------------------


def _speed() -> Findings:
    """Return seconds of Cascade-DR with given predictions, and whether the values are the same."""
    problem = _Slates()
    log = problem.log(10_000, 0)
    given = problem.as_obp(log)
    q = np.random.default_rng(0).random(10_000 * SHOWN * ACTIONS)
    target = given["evaluation_policy_action_dist"]
    predicted = q.reshape(-1, ACTIONS)[np.arange(10_000 * SHOWN), given["action"]]

    def ours() -> Callable[[], Any]:
        def call() -> float:
            expected = (target * q).reshape(-1, ACTIONS).sum(axis=1)
            weight = given["evaluation_policy_pscore_cascade"] / given["pscore_cascade"]
            return clicks.estimate_value(
                given["reward"], weight, estimator="cascade_dr", predicted=predicted,
                expected=expected, session_sizes=np.full(10_000, SHOWN),
            ).value  # fmt: skip

        return call

    def theirs() -> Callable[[], Any]:
        from obp.ope import SlateCascadeDoublyRobust

        made = SlateCascadeDoublyRobust(len_list=SHOWN, n_unique_action=ACTIONS)
        return lambda: made.estimate_policy_value(**given, q_hat=q)

    value = ours()()

    def same(other: float) -> None:
        if not np.isclose(other, value, rtol=1e-10):
            raise ValueError(f"the values differ: {other} and {value}")

    return contest(
        "Cascade-DR from given predictions, 10,000 lists",
        [
            Contender(OURS, "rankwright", "with its interval", ours, same=f"{value:.6f}"),
            Contender("obp", "obp", "without one", theirs, same, same=f"{value:.6f}"),
        ],
        rounds=5,
    )
