"""Score interleaved lists: which ranker wins, by a test that can be looked at any time.

The unit is the session. The test assumes that the outcome of a session has the same mean given all
earlier ones, and that this mean is 0 if users have no preference. This holds if sessions are of
different users and queries, or if users have no preference in any single query. If a few queries
repeat often and rankers differ from query to query, the sessions of a query depend on each other,
and the next thousand sessions can be about other queries. With ``unit="query"`` each query counts
once, with the mean outcome of its sessions; ``unit="user"`` does the same for users. Later sessions
change the mean of a query that was counted before, so with these units the test is valid for one
look, at the whole log.

Weights affect the means; a session is one observation, independent of its weight. The test is valid
at any time if each session adds an outcome from -1 to 1, so weights above 1 are refused with the
unit "session". A query or user counts once, with a weighted mean.

With more than two rankers, each pair is tested at alpha divided by the number of pairs.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rankwright.clicks.figures import add_legend, import_matplotlib, line_style, new_axes
from rankwright.clicks.interleaving import method_of
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
_PLURAL = {"session": "sessions", "query": "queries", "user": "users"}
_EQUAL = 1e-12  # differences of credits up to this are ties
_POINTS = 120  # of a path
_LARGEST_LOG = 700.0  # whose exponential is finite


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The test after some of the sessions.

    Attributes
    ----------
    sessions : (m,) float64
        Number of sessions (queries, users).
    estimate, low, high : (m,) float64
        The tested quantity, with an interval that covers it at all times together.
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
    """Comparison of two rankers on interleaved lists.

    Attributes
    ----------
    first, second : str
        Names of the rankers.
    units : float
        Number of sessions (the sum of their weights), or of queries or users.
    wins, losses, ties : float
        Number of units with more credit for the first ranker, for the second, or the same.
    preference, low, high : float
        Share of wins among wins and losses, with an interval that covers at all looks together.
    outcome, outcome_low, outcome_high : float
        Mean outcome, from -1 (second) to 1 (first), with its interval; see
        `rankwright.clicks.interleaving`.
    tested : str
        "preference" or "outcome": the quantity of the test.
    alpha : float
        Level of the test, and 1 - coverage of the intervals.
    e_value, p_value : float
        Largest evidence against "no preference" so far, and the p-value that it corresponds to.
    winner : str or None
        The better ranker, if the evidence suffices.
    decided_after : float or None
        Number of sessions (queries, users) after which it did.
    needed : int or None
        Number that would suffice with the present effect; None without an effect.
    path : Path
        The test over time.

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
        Sums of the weights of all sessions, and of sessions with a click.
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
        """The ranker that is better than every other one, if the evidence suffices."""
        for name in self.interleaving.rankers:
            if all(pair.winner == name for pair in self.pairs if name in (pair.first, pair.second)):
                return name
        return None

    def verdict(self) -> list[str]:
        """Return a sentence for each pair."""
        return [_sentence(pair, _PLURAL[self.unit]) for pair in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON, without the paths."""
        return {
            "interleaving": self.interleaving.to_dict(),
            "unit": self.unit,
            "sessions": self.sessions,
            "clicked": self.clicked,
            "credit": dict(zip(self.interleaving.rankers, self.credit.tolist(), strict=True)),
            "winner": self.winner,
            "pairs": [
                {key: value for key, value in asdict(pair).items() if key != "path"}
                for pair in self.pairs
            ],
            "verdict": self.verdict(),
        }

    def __str__(self) -> str:
        names = self.interleaving.rankers
        width = max(6, *map(len, names))
        credit = zip(names, self.credit, strict=True)
        return "\n".join([
            f"{self.interleaving.method}, {self.sessions:,.0f} sessions, {self.clicked:,.0f} with "
            "a click",
            f"{'ranker':{width}s}  credit per session",
            *(f"{name:{width}s}  {value:18.4f}" for name, value in credit),
            "verdict",
            *(f"- {sentence}" for sentence in self.verdict()),
        ])  # fmt: skip


def score_interleaving(
    log: ClickLog, *, alpha: float = 0.05, unit: str = "session"
) -> InterleavingScores:
    """Return the winner on interleaved lists, by a test that can be looked at any number of times.

    Parameters
    ----------
    log : ClickLog
        With ``interleaving``, and ``team`` or ``credit``. Sessions count in the order of ``time``,
        if there is one. With the unit "session" their weights are at most 1.
    alpha : float, default 0.05
        Maximum probability of a wrong winner, over all looks together.
    unit : {"session", "query", "user"}, default "session"
        Unit of the test. With "query" and "user" look once, at the whole log; see
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
    method = method_of(log)
    assert log.interleaving is not None
    if not len(log):
        raise DataError("the log has no sessions.")
    interleaving, names = log.interleaving, log.interleaving.rankers
    if log.time is not None:
        log = log.select(_order_of(log.time))
    weight = np.ones(len(log)) if log.weight is None else log.weight
    if unit == "session" and weight.max() > 1.0:
        raise DataError(
            f"session weights are above 1 (up to {weight.max():g}), and a session counts at most "
            "once in a test that may be looked at any time: divide the weights by the largest, or "
            "count queries or users (unit='query', unit='user')."
        )
    code = _unit_of_session(log, unit)
    credit = method.credits(log)
    pairs = list(combinations(range(len(names)), 2))
    scores = []
    for i, j in pairs:
        outcome = np.clip(method.outcomes(log, credit, i, j), -1.0, 1.0)
        gap, counted = credit[:, i] - credit[:, j], weight
        if code is not None:
            total = np.bincount(code, weight)
            outcome = np.bincount(code, weight * outcome) / np.where(total > 0.0, total, 1.0)
            gap, counted = outcome, (total > 0.0).astype(np.float64)
        by_sign = method.sign and unit == "session"
        scores.append(
            _score_pair(names[i], names[j], outcome, gap, counted, by_sign, alpha / len(pairs))
        )
    clicked = np.bincount(log.session_of_impression(), log.click, len(log)) > 0.0
    total_weight = float(weight.sum())
    return InterleavingScores(
        interleaving=interleaving,
        unit=unit,
        sessions=total_weight,
        clicked=float(weight @ clicked),
        credit=weight @ credit / (total_weight or 1.0),
        pairs=tuple(scores),
    )


def _order_of(time: AnyArray) -> I64:
    """Return the order of times; texts that are not dates are sorted as texts."""
    if time.dtype.kind in "OUS":
        with suppress(TypeError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy converts time zones to UTC
            time = time.astype("datetime64[ms]")
    return np.argsort(time, kind="stable")


def _unit_of_session(log: ClickLog, unit: str) -> I64 | None:
    """Return the query or user of each session, numbered as they appear; None for sessions."""
    if unit == "session":
        return None
    ids = log.query_ids[log.query] if unit == "query" else log.user
    if ids is None:
        raise DataError("the log has no users; read it with user=..., or count queries.")
    number: dict[int, int] = {}
    codes = codes_of_ids(ids)[0].tolist()
    return np.array([number.setdefault(code, len(number)) for code in codes], np.int64)


def _score_pair(
    first: str, second: str, outcome: F64, gap: F64, weight: F64, by_sign: bool, alpha: float
) -> PairScore:
    """Return the test of two rankers from outcomes, and differences of credit, in order."""
    signs = np.sign(np.where(np.abs(gap) > _EQUAL, gap, 0.0))
    signed, mean = _running_sums(signs, weight), _running_sums(outcome, weight)
    test: Test = SignTest() if by_sign else MeanTest()
    tested = signed if by_sign else mean
    log_e = test.log_e(tested)
    decided = np.flatnonzero(log_e >= np.log(1.0 / alpha))
    low, high = confidence_sequence(SignTest(), signed.at(-1), alpha)
    mean_low, mean_high = confidence_sequence(MeanTest(), mean.at(-1), alpha)
    winner = None
    if len(decided):
        winner = first if tested.total[decided[0]] > 0.0 else second
    highest = float(np.exp(min(log_e.max(), _LARGEST_LOG)))
    points = np.linspace(0, len(log_e) - 1, min(_POINTS, len(log_e)))
    at = np.unique(points.astype(np.int64))
    path_low, path_high = confidence_sequence(test, tested.at(at), alpha)
    return PairScore(
        first=first,
        second=second,
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
        decided_after=float(mean.n[decided[0]]) if len(decided) else None,
        needed=sessions_needed(test, tested.at(-1), alpha),
        path=Path(tested.n[at], test.estimate(tested.at(at)), path_low, path_high, log_e[at]),
    )


def _running_sums(x: F64, weight: F64) -> Sums:
    return Sums(np.cumsum(weight), np.cumsum(weight * x), np.cumsum(weight * x * x))


def _sentence(pair: PairScore, units: str) -> str:
    """Return the verdict on a pair; ``units`` is the plural of the unit."""
    counts = f"{pair.wins:,.0f} wins, {pair.losses:,.0f} losses, {pair.ties:,.0f} ties"
    figures = f"{quoted(pair.first)} against {quoted(pair.second)}: {counts}; "
    if pair.tested == "preference":
        figures += f"preference {pair.preference:.1%} [{pair.low:.1%}, {pair.high:.1%}]"
    else:
        figures += (
            f"mean outcome {pair.outcome:+.5f} [{pair.outcome_low:+.5f}, {pair.outcome_high:+.5f}]"
        )
    if pair.winner is not None:
        after = f"{pair.decided_after:,.0f} {units}"
        return f"{figures}. {quoted(pair.winner)} wins, decided after {after}."
    if pair.needed is None:
        return f"{figures}. No winner yet, and no effect so far."
    if pair.needed > 100 * pair.units:  # an exact number would suggest a precision it has not
        more = f"not even 100 times as many {units}"
    else:
        more = f"about {max(pair.needed - pair.units, 1.0):,.0f} more {units}"
    return f"{figures}. No winner yet; at this effect {more} would decide."


# --- plot ------------------------------------------------------------------------------------


def plot_interleaving(scores: InterleavingScores, *, ax: Any = None) -> Any:
    """Draw the tested quantity of each pair over the sessions, with its interval; return the Axes.

    Parameters
    ----------
    scores : InterleavingScores
        The result of `score_interleaving`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default new ones.

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
    by_sign = scores.pairs[0].tested == "preference"
    middle = 0.5 if by_sign else 0.0
    widest = 0.0
    for number, pair in enumerate(scores.pairs):
        path, style = pair.path, line_style(number)
        label = f"{pair.first} against {pair.second}"
        ax.plot(path.sessions, path.estimate, label=label, **style | {"marker": ""})
        shade = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(path.sessions, path.low, path.high, **shade)
        if pair.decided_after is not None:
            ax.axvline(pair.decided_after, color=style["color"], linestyle=":", linewidth=1)
        later = np.stack([path.low, path.high])[:, len(path.low) // 20 :]
        widest = max(widest, float(np.abs(later - middle).max()))
    ax.axhline(middle, color="black", linewidth=0.8)
    ax.set_ylim(middle - 1.05 * widest, middle + 1.05 * widest)
    ax.set_xlabel(_PLURAL[scores.unit])
    ax.set_ylabel("preference for the first" if by_sign else "mean outcome")
    add_legend(ax)
    return ax
