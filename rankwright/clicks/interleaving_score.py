"""Which ranker wins: credit of the clicks on interleaved lists, and a test that may be watched.

The unit is the session: the test assumes that the outcome of a session has the same mean given all
that came before, which is 0 where users have no preference. That is so where sessions are of
different users and queries, or where for each query by itself there is nothing to prefer. Where a
few queries repeat often, and rankers differ for better and worse from query to query, sessions of
a query go together, and the next thousand sessions may bring other queries: with ``unit="query"``
each query counts once, with the mean of its sessions. ``unit="user"`` does so for users. A later
session changes the mean of a query that was counted before, so with these units the test is valid
for one look, at the whole log.

Weights say how much a session counts in means; a session is one observation, whatever its weight.
The test may be looked at any time if a session adds an outcome from -1 to 1, so that weights above
1 are refused with the unit "session". A query or user counts once, by a weighted mean.

With several rankers, each pair is tested at alpha divided by the number of pairs.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rankwright.clicks.figures import add_legend, import_matplotlib, line_style, new_axes
from rankwright.clicks.interleaving import InterleavingMethod, method_of
from rankwright.clicks.sequential_test import (
    MeanTest,
    SignTest,
    Sums,
    Test,
    confidence_sequence,
    sessions_needed,
)
from rankwright.core.parameters import check_choice
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog, Interleaving, codes_of_ids
from rankwright.errors import DataError, UsageError, quoted

UNITS = ("session", "query", "user")
_EQUAL = 1e-12  # credits that differ less are equal
_POINTS = 120  # of a path


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """How the test went.

    Attributes
    ----------
    sessions : (m,) float64
        After so many sessions (queries, users).
    estimate, low, high : (m,) float64
        What is tested, and its interval, which covers at all times at once.
    log_e : (m,) float64
        Logarithm of the e-value.
    """

    sessions: F64
    estimate: F64
    low: F64
    high: F64
    log_e: F64


@dataclass(frozen=True, slots=True, eq=False)
class PairScore:
    """Two rankers compared on interleaved lists.

    Attributes
    ----------
    first, second : str
        Names of the rankers.
    units : float
        Number of sessions (the sum of their weights), or of queries or users.
    wins, losses, ties : float
        How many gave the first more credit, the second, or both the same.
    preference, low, high : float
        Share of wins among wins and losses, with an interval that covers at every look at once.
    outcome, outcome_low, outcome_high : float
        Mean outcome, from -1 (second) to 1 (first), with its interval; see
        `rankwright.clicks.interleaving`.
    tested : str
        "preference" or "outcome": what the verdict is about.
    alpha : float
        Level of the test, and one less the coverage of the intervals.
    e_value, p_value : float
        Evidence against "no preference": the highest so far, and what that is as a p-value.
    winner : str or None
        The better ranker, once the evidence suffices.
    decided_after : float or None
        After how many sessions (queries, users) it did.
    needed : int or None
        How many would suffice at the present effect; None where there is none.
    path : Path

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays(
    ...     [1] * 40, list("ab") * 20, [1, 0] * 20, session_sizes=[2] * 20, team=[0, 1] * 20,
    ...     interleaving=clicks.Interleaving("team_draft", ("new", "old")),
    ... )
    >>> pair = clicks.score_interleaving(log).pairs[0]
    >>> pair.first, pair.wins, pair.losses, pair.winner, pair.decided_after
    ('new', 20.0, 0.0, 'new', 20.0)
    """

    first: str
    second: str
    units: float
    wins: float
    losses: float
    ties: float
    preference: float
    low: float
    high: float
    outcome: float
    outcome_low: float
    outcome_high: float
    tested: str
    alpha: float
    e_value: float
    p_value: float
    winner: str | None
    decided_after: float | None
    needed: int | None
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class InterleavingScores:
    """Credit of each ranker on interleaved lists, and the verdict on each pair.

    Attributes
    ----------
    interleaving : Interleaving
        Method and rankers.
    unit : str
        "session", "query" or "user".
    sessions, clicked : float
        Number of sessions, and of those with a click; the sums of their weights.
    credit : (R,) float64
        Mean credit of each ranker per session.
    pairs : tuple of PairScore
        Each pair of rankers, the earlier one first.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays(
    ...     [1] * 40, list("ab") * 20, [1, 0] * 20, session_sizes=[2] * 20, team=[0, 1] * 20,
    ...     interleaving=clicks.Interleaving("team_draft", ("new", "old")),
    ... )
    >>> clicks.score_interleaving(log).credit
    array([1., 0.])
    """

    interleaving: Interleaving
    unit: str
    sessions: float
    clicked: float
    credit: F64
    pairs: tuple[PairScore, ...]

    @property
    def winner(self) -> str | None:
        """The ranker that is better than every other, once the evidence suffices."""
        for name in self.interleaving.rankers:
            own = [one for one in self.pairs if name in (one.first, one.second)]
            if all(one.winner == name for one in own):
                return name
        return None

    def verdict(self) -> list[str]:
        """Return a sentence for each pair."""
        return [_sentence(one, self.unit) for one in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the paths, for JSON."""
        pairs = [{k: v for k, v in asdict(one).items() if k != "path"} for one in self.pairs]
        return {
            "interleaving": self.interleaving.to_dict(),
            "unit": self.unit,
            "sessions": self.sessions,
            "clicked": self.clicked,
            "credit": dict(zip(self.interleaving.rankers, self.credit.tolist(), strict=True)),
            "winner": self.winner,
            "pairs": pairs,
            "verdict": self.verdict(),
        }


def score_interleaving(
    log: ClickLog,
    *,
    alpha: float = 0.05,
    unit: str = "session",
) -> InterleavingScores:
    """Return who wins on interleaved lists, by a test that may be looked at as often as you like.

    Parameters
    ----------
    log : ClickLog
        With ``interleaving``, and ``team`` or ``credit``. Sessions count in order of ``time``,
        where there is one. With the unit "session" their weights are at most 1.
    alpha : float, default 0.05
        How often, at most, a winner is named where there is none, over all looks together.
    unit : {"session", "query", "user"}, default "session"
        What counts once. With "query" and "user" look once, at the whole log; see
        `rankwright.clicks.interleaving_score`.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays(
    ...     [1] * 40, list("ab") * 20, [1, 0] * 20, session_sizes=[2] * 20, team=[0, 1] * 20,
    ...     interleaving=clicks.Interleaving("team_draft", ("new", "old")),
    ... )
    >>> clicks.score_interleaving(log).winner
    'new'
    """
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must be above 0 and below 1, not {alpha}.")
    check_choice("unit", unit, UNITS)
    found = _sessions_of(log, unit)
    pairs = list(combinations(range(len(found.interleaving.rankers)), 2))
    number = None if unit == "session" else _in_order_of_appearance(found.owner)
    total = float(found.weight.sum())
    return InterleavingScores(
        interleaving=found.interleaving,
        unit=unit,
        sessions=total,
        clicked=float(found.weight @ found.clicked),
        credit=found.weight @ found.credits / (total or 1.0),
        pairs=tuple(
            _pair_score(found, number, at, (i, j), alpha / len(pairs))
            for at, (i, j) in enumerate(pairs)
        ),
    )


# --- sessions --------------------------------------------------------------------------------


class _Sessions(NamedTuple):
    """What is needed of the sessions of a log, in order of time."""

    interleaving: Interleaving
    method: InterleavingMethod
    credits: F64
    outcomes: F64  # (pairs, sessions)
    weight: F64
    clicked: AnyArray
    owner: I64  # number of the query or user


def _sessions_of(log: ClickLog, unit: str) -> _Sessions:
    method = method_of(log)
    assert log.interleaving is not None
    if not len(log):
        raise DataError("there are no sessions.")
    earned = method.credits(log)
    outcomes = [
        np.clip(method.outcomes(log, earned, i, j), -1.0, 1.0)
        for i, j in combinations(range(len(log.interleaving.rankers)), 2)
    ]
    weight = np.ones(len(log)) if log.weight is None else log.weight
    if unit == "session" and weight.max() > 1.0:
        raise DataError(
            f"session weights are above 1 (up to {weight.max():g}), and a session counts at most "
            "once in a test that may be looked at any time: divide the weights by the largest, or "
            "count queries or users (unit='query', unit='user')."
        )
    sessions = _Sessions(
        log.interleaving,
        method,
        earned,
        np.stack(outcomes),
        weight,
        np.bincount(log.session_of_impression()[log.click], minlength=len(log)) > 0,
        codes_of_ids(_owner(log, unit))[0].astype(np.int64),
    )
    return sessions if log.time is None else _in_order(sessions, _order_of(log.time))


def _order_of(time: AnyArray) -> I64:
    """Return the order of times; of texts that are not dates, the order of texts."""
    if time.dtype.kind in "OUS":
        with suppress(TypeError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # time zones are turned into UTC
            time = time.astype("datetime64[ms]")
    return np.argsort(time, kind="stable")


def _in_order(found: _Sessions, order: I64) -> _Sessions:
    return found._replace(
        credits=found.credits[order],
        outcomes=found.outcomes[:, order],
        weight=found.weight[order],
        clicked=found.clicked[order],
        owner=found.owner[order],
    )


def _owner(log: ClickLog, unit: str) -> AnyArray:
    if unit == "query":
        return log.query_ids[log.query]
    if unit == "user":
        if log.user is None:
            raise DataError("the log has no users; read it with user=..., or count queries.")
        return log.user
    return np.zeros(len(log), np.int64)


def _in_order_of_appearance(owner: I64) -> I64:
    """Return the owner of each session, numbered as they appear."""
    _, first, code = np.unique(owner, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[code]


# --- a pair ----------------------------------------------------------------------------------


def _pair_score(
    found: _Sessions, number: I64 | None, at: int, pair: tuple[int, int], alpha: float
) -> PairScore:
    i, j = pair
    names = found.interleaving.rankers
    if number is None:
        outcome, weight = found.outcomes[at], found.weight
        gap = found.credits[:, i] - found.credits[:, j]
    else:
        count = np.bincount(number, found.weight)
        total = np.bincount(number, found.weight * found.outcomes[at])
        outcome = gap = total / np.where(count > 0.0, count, 1.0)
        weight = (count > 0.0).astype(np.float64)
    signs = np.sign(np.where(np.abs(gap) > _EQUAL, gap, 0.0))
    by_sign = number is None and found.method.sign
    signed, mean = _running(signs, weight), _running(outcome, weight)
    test: Test = SignTest() if by_sign else MeanTest()
    tested = signed if by_sign else mean
    log_e = test.log_e(tested)
    over = np.flatnonzero(log_e >= np.log(1.0 / alpha))
    low, high = confidence_sequence(SignTest(), signed.at(-1), alpha)
    mean_low, mean_high = confidence_sequence(MeanTest(), mean.at(-1), alpha)
    winner = None
    if len(over):
        winner = names[i] if tested.total[over[0]] > 0.0 else names[j]
    highest = float(np.exp(min(log_e.max(), 700.0)))
    return PairScore(
        first=names[i],
        second=names[j],
        units=float(weight.sum()),
        wins=float(weight[signs > 0].sum()),
        losses=float(weight[signs < 0].sum()),
        ties=float(weight[signs == 0].sum()),
        preference=float(SignTest().estimate(signed)[-1]),
        low=float(low[0]),
        high=float(high[0]),
        outcome=float(MeanTest().estimate(mean)[-1]),
        outcome_low=float(mean_low[0]),
        outcome_high=float(mean_high[0]),
        tested="preference" if by_sign else "outcome",
        alpha=alpha,
        e_value=highest,
        p_value=min(1.0, 1.0 / highest),
        winner=winner,
        decided_after=float(mean.n[over[0]]) if len(over) else None,
        needed=sessions_needed(test, tested.at(-1), alpha),
        path=_path(test, tested, log_e, alpha),
    )


def _running(x: F64, weight: F64) -> Sums:
    return Sums(np.cumsum(weight), np.cumsum(weight * x), np.cumsum(weight * x * x))


def _path(test: Test, sums: Sums, log_e: F64, alpha: float) -> Path:
    at = np.unique(np.linspace(0, len(log_e) - 1, min(_POINTS, len(log_e))).astype(np.int64))
    some = sums.at(at)
    low, high = confidence_sequence(test, some, alpha)
    return Path(some.n, test.estimate(some), low, high, log_e[at])


def _sentence(one: PairScore, unit: str) -> str:
    several = {"session": "sessions", "query": "queries", "user": "users"}[unit]
    counts = f"{one.wins:,.0f} wins, {one.losses:,.0f} losses, {one.ties:,.0f} ties"
    figures = f"{quoted(one.first)} against {quoted(one.second)}: {counts}; "
    if one.tested == "preference":
        figures += f"preference {one.preference:.1%} [{one.low:.1%}, {one.high:.1%}]"
    else:
        figures += (
            f"mean outcome {one.outcome:+.5f} [{one.outcome_low:+.5f}, {one.outcome_high:+.5f}]"
        )
    if one.winner is not None:
        after = f"{one.decided_after:,.0f} {several}"
        return f"{figures}. {quoted(one.winner)} wins, decided after {after}."
    if one.needed is None:
        return f"{figures}. No winner yet, and no effect to go by."
    if one.needed > 100 * one.units:  # a figure would be that of chance, and look precise
        much = f"not even 100 times as many {several}"
    else:
        much = f"about {max(one.needed - one.units, 1.0):,.0f} more {several}"
    return f"{figures}. No winner yet; at this effect {much} would decide."


# --- plot ------------------------------------------------------------------------------------


def plot_interleaving(scores: InterleavingScores, *, ax: Any = None) -> Any:
    """Draw what is tested of each pair, with its interval, by the sessions; return the Axes.

    Parameters
    ----------
    scores : InterleavingScores
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays(
    ...     [1] * 40, list("ab") * 20, [1, 0] * 20, session_sizes=[2] * 20, team=[0, 1] * 20,
    ...     interleaving=clicks.Interleaving("team_draft", ("new", "old")),
    ... )
    >>> ax = clicks.plot_interleaving(clicks.score_interleaving(log))
    >>> ax.figure.savefig("interleaving.svg")
    """
    import_matplotlib()
    ax = new_axes(ax)
    for number, one in enumerate(scores.pairs):
        style = line_style(number)
        label = f"{one.first} against {one.second}"
        ax.plot(one.path.sessions, one.path.estimate, label=label, **style | {"marker": ""})
        shade = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(one.path.sessions, one.path.low, one.path.high, **shade)
        if one.decided_after is not None:
            ax.axvline(one.decided_after, color=style["color"], linestyle=":", linewidth=1)
    sign = scores.pairs[0].tested == "preference"
    ax.axhline(0.5 if sign else 0.0, color="black", linewidth=0.8)
    widest = max(
        np.abs(
            np.stack([one.path.low, one.path.high])[:, len(one.path.low) // 20 :] - 0.5 * sign
        ).max()
        for one in scores.pairs
    )
    ax.set_ylim(0.5 * sign - 1.05 * widest, 0.5 * sign + 1.05 * widest)
    ax.set_xlabel({"session": "sessions", "query": "queries", "user": "users"}[scores.unit])
    ax.set_ylabel("preference for the first" if sign else "mean outcome")
    add_legend(ax)
    return ax
