"""Interleaved lists per second, and a test that is looked at every day: false winners, power.

Lists of 10 from two rankings of 100 documents, ours on one thread, with the rankings made from
scores and the log that is returned; lists per second are of processor time. mpkato/interleaving
gets rankings as lists of ids. It is installed from its repository: the package of this name on PyPI
is another one.

False positives are the share of 1,000 experiments, of 20 days with 100 sessions each, that name a
winner at any daily look where users click on positions without regard to documents. Power is the
share that names the better ranker where users click by a position-based model; a sign test at the
end of the 20 days, which may be looked at once, is beside it, and ``sessions_of_fixed_horizon`` is
how many sessions are seen, on average, of those that it needs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwright import clicks
from rankwright.clicks.interleaving import METHODS
from rankwright.clicks.sequential_test import MeanTest, SignTest, Sums
from rankwright.data.ranking_data import RankingData

from .contest import Contender, contest
from .findings import OURS, Findings, Record

MPKATO = "mpkato/interleaving"
PEER_CLASSES = {
    "team_draft": "TeamDraft",
    "balanced": "Balanced",
    "probabilistic": "Probabilistic",
    "pairwise": "PairwisePreference",
}
QUERIES, DOCUMENTS, SESSIONS, K = 50, 100, 40, 10
MANY = 500  # sessions of each query, for lists per second
EXPERIMENTS, DAYS, PER_DAY, AT_ONCE = 1_000, 20, 100, 100
ALPHA = 0.05


def run() -> Findings:
    found = Findings()
    data, scores = _rankings(QUERIES, DOCUMENTS)
    for name in METHODS:
        one = found.add(_lists(name, data, scores))
        found.note_figure(f"{name}_vs_mpkato", one.ratio(MPKATO, OURS))
        many = contest(
            f"{name}, {QUERIES * MANY:,} lists",
            [Contender(OURS, "rankwright", "one thread", _ours(name, data, scores, MANY))],
            rounds=3,
            clock=time.process_time,
        )
        seconds = found.add(many).seconds(OURS)
        if seconds is not None:
            found.figures[f"{name}_lists_per_second"] = QUERIES * MANY / seconds
    graded, rankers = _graded()
    for name in METHODS:
        if METHODS[name].fair:
            found.figures[f"{name}_false_positives"] = _false_positives(name, graded, rankers)
    _power(found, graded, rankers)
    return found


# --- speed -----------------------------------------------------------------------------------


def _rankings(queries: int, documents: int) -> tuple[RankingData, list[Any]]:
    rng = np.random.default_rng(0)
    n = queries * documents
    data = RankingData.from_arrays(np.zeros((n, 1)), np.zeros(n), group_sizes=[documents] * queries)
    quality = rng.normal(size=n)
    return data, [quality + rng.normal(size=n) for _ in range(2)]


def _lists(name: str, data: RankingData, scores: list[Any]) -> Findings:
    contenders = [Contender(OURS, "rankwright", "one thread", _ours(name, data, scores, SESSIONS))]
    if name in PEER_CLASSES:
        contenders.append(
            Contender(
                MPKATO,
                "interleaving",
                "Python, one thread",
                lambda: _peer(PEER_CLASSES[name], data, scores),
                rounds=1,
                warm_up=False,
            )
        )
    return contest(
        f"{name}, {QUERIES * SESSIONS:,} lists of {K} from {DOCUMENTS} documents",
        contenders,
        rounds=5,
    )


def _ours(
    name: str, data: RankingData, scores: list[Any], sessions: int
) -> Callable[[], Callable[[], Any]]:
    return lambda: lambda: clicks.interleave(data, scores, name, k=K, sessions=sessions, n_jobs=1)


def _peer(kind: str, data: RankingData, scores: list[Any]) -> Callable[[], Any]:
    import interleaving

    if not hasattr(interleaving, kind):
        raise ImportError("this is another package called interleaving")
    rankings = []
    for q in range(data.n_queries):
        rows = slice(int(data.indptr[q]), int(data.indptr[q + 1]))
        rankings.append([np.argsort(-one[rows], kind="stable").tolist() for one in scores])

    def draw() -> list[Any]:
        made = [getattr(interleaving, kind)(lists, max_length=K) for lists in rankings]
        return [one.interleave() for one in made for _ in range(SESSIONS)]

    return draw


# --- experiments -----------------------------------------------------------------------------


def _graded() -> tuple[RankingData, dict[str, Any]]:
    """Return graded documents of 300 queries, and the scores of a good and a poorer ranker."""
    rng = np.random.default_rng(1)
    y = rng.choice(5, 300 * 20, p=[0.55, 0.2, 0.13, 0.08, 0.04]).astype(np.float64)
    data = RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[20] * 300)
    good, poor = (y + spread * rng.normal(size=len(y)) for spread in (1.0, 1.25))
    return data, {"good": good, "poor": poor}


def _experiments(
    name: str, data: RankingData, rankers: dict[str, Any], click: Callable[[Any, int], Any]
) -> Any:
    """Yield outcomes, a row for each experiment and a column for each session, some at once."""
    method, rng = METHODS[name](k=K), np.random.default_rng(2)
    sessions = AT_ONCE * DAYS * PER_DAY // data.n_queries + 1
    for turn in range(EXPERIMENTS // AT_ONCE):
        lists = clicks.interleave(data, rankers, method, sessions=sessions, random_state=turn)
        log = click(lists, turn)
        outcome = method.outcomes(log, method.credits(log), 0, 1)
        shuffled = rng.permutation(outcome)[: AT_ONCE * DAYS * PER_DAY]
        yield shuffled.reshape(AT_ONCE, DAYS * PER_DAY)


def _daily(outcome: Any) -> Sums:
    """Return the sums at the end of each day, of each experiment."""
    n = np.broadcast_to(np.arange(1.0, outcome.shape[1] + 1), outcome.shape)
    at = np.arange(PER_DAY - 1, outcome.shape[1], PER_DAY)
    sums = n, np.cumsum(outcome, axis=1), np.cumsum(outcome * outcome, axis=1)
    return Sums(*(one[:, at].ravel() for one in sums))


def _decided(name: str, outcome: Any) -> tuple[Any, Any]:
    """Return the first day, from 1, on which each experiment names a winner (0: never), and who."""
    sums, test = _daily(outcome), SignTest() if METHODS[name].sign else MeanTest()
    over = (test.log_e(sums) >= math.log(1.0 / ALPHA)).reshape(len(outcome), DAYS)
    day = np.where(over.any(axis=1), over.argmax(axis=1) + 1, 0)
    total = sums.total.reshape(len(outcome), DAYS)
    ahead = np.sign(total[np.arange(len(outcome)), np.maximum(day, 1) - 1])
    return day, np.where(day > 0, ahead, 0.0)


def _false_positives(name: str, data: RankingData, rankers: dict[str, Any]) -> float:
    def at_random(lists: clicks.ClickLog, turn: int) -> clicks.ClickLog:
        rng = np.random.default_rng((3, turn))
        return lists._replace(click=rng.random(lists.n_impressions) < 0.6 / lists.position)

    named = [
        (_decided(name, some)[0] > 0).mean()
        for some in _experiments(name, data, rankers, at_random)
    ]
    return float(np.mean(named))


def _power(found: Findings, data: RankingData, rankers: dict[str, Any]) -> None:
    def by_model(lists: clicks.ClickLog, turn: int) -> clicks.ClickLog:
        return clicks.simulate_clicks(lists, random_state=turn)

    fixed: list[float] = []
    for name in METHODS:
        days, right = [], []
        for outcome in _experiments(name, data, rankers, by_model):
            day, winner = _decided(name, outcome)
            days.append(np.where(day > 0, day, DAYS).mean() / DAYS)
            right.append((winner > 0).mean())
            if name == "team_draft":
                sign = np.sign(outcome)
                z = sign.sum(axis=1) / np.sqrt((sign != 0).sum(axis=1))
                fixed.append((z > 1.96).mean())
        power, seen = float(np.mean(right)), float(np.mean(days))
        found.figures[f"{name}_power"] = power
        found.records.append(
            Record(
                f"power within {DAYS * PER_DAY:,} sessions, {EXPERIMENTS:,} experiments",
                f"{OURS}, {name}",
                "",
                "looked at every day",
                quality=power,
                measure="share of experiments that name the better ranker",
                note=f"{seen * DAYS * PER_DAY:,.0f} sessions until then, on average",
            )
        )
        if name == "team_draft":
            found.figures["sessions_of_fixed_horizon"] = seen
    found.records.append(
        Record(
            f"power within {DAYS * PER_DAY:,} sessions, {EXPERIMENTS:,} experiments",
            "sign test, team_draft",
            "",
            "looked at once, at the end",
            quality=float(np.mean(fixed)),
            measure="share of experiments that name the better ranker",
            note=f"{DAYS * PER_DAY:,} sessions",
        )
    )
    found.figures["power_less_fixed_horizon"] = found.figures["team_draft_power"] - float(
        np.mean(fixed)
    )
