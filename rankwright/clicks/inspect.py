"""What a click log holds, how clicks fall by position, and what in it will mislead.

Click rates by position mix two things: documents on top are seen more, and are better. A
position-based model separates them if the same document of a query was shown at several positions.
`PositionClicks.examination` is its estimate, relative to the first position, by
``estimate_propensity(log, "pbm")``. It is fitted to documents that a query showed 20 times or more,
if these were shown at every position: each document has a parameter of its own, and many documents
with a few impressions bias examination however long the log is. Of very many such documents it
takes those that were shown most.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from rankwright.clicks.figures import import_matplotlib, line_style, new_axes, plain_axes
from rankwright.clicks.pairs import check_log, sums_of
from rankwright.clicks.propensity import estimate_propensity
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickCounts, ClickLog
from rankwright.errors import DataError, counted, quoted

_CONFIDENCE = 0.95
_FEW_CLICKS = 100
_SHOWN_OFTEN = 20
_MOST_COUNTS = 20_000  # of pairs at positions: more hardly narrow the interval, but take long
_SESSIONS_TO_JUDGE = 20  # of a query, before it is strange that it has no click
_MUCH_OF_LOG = 0.5
_MOVED_ENOUGH = 0.05  # share of impressions of pairs that were shown at several positions
_ALL_CLICKED_LENGTH = 5  # of a list, from which it is strange that all of it is clicked
_ALL_CLICKED_TIMES = 10  # as often as click rates by position would give
_BUSY = 100  # times the median user


@dataclass(frozen=True, slots=True)
class PositionClicks:
    """Clicks at one position.

    Attributes
    ----------
    position : int
    impressions, clicks : float
    rate, low, high : float
        Click rate, and Wilson's interval of 95 %.
    examination, examination_low, examination_high : float
        Examination relative to the first position shown, by a position-based model, with an
        interval of 95 %; NaN where the log cannot tell.
    """

    position: int
    impressions: float
    clicks: float
    rate: float
    low: float
    high: float
    examination: float
    examination_low: float
    examination_high: float


@dataclass(frozen=True, slots=True)
class LogProfile:
    """What a click log holds.

    Attributes
    ----------
    sessions, impressions, clicks : float
        Weighted as the log says.
    queries, documents, pairs : int
        Numbers of different ones; a pair is a query and a document.
    shortest, longest : int
        Lengths of lists.
    without_click : float
        Share of sessions without a click.
    moved : float
        Share of impressions whose query and document were shown at several positions.
    unclicked_queries : int
        Queries with 20 sessions or more and no click, and
    unclicked_share : float
        their share of all sessions.
    positions : tuple of PositionClicks
    findings : tuple of str
        What will mislead, the most harmful first.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 0], session_sizes=[2, 2])
    >>> found = clicks.inspect_log(log)
    >>> found.sessions, found.pairs, found.without_click, found.moved
    (2.0, 2, 0.5, 1.0)
    """

    sessions: float
    impressions: float
    clicks: float
    queries: int
    documents: int
    pairs: int
    shortest: int
    longest: int
    without_click: float
    moved: float
    unclicked_queries: int
    unclicked_share: float
    positions: tuple[PositionClicks, ...]
    findings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON holds it."""
        return asdict(self)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw examination by position with its 95 % interval; return the Axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.

        Examples
        --------
        >>> import rankwright as rw
        >>> from rankwright import clicks
        >>> data = rw.synthetic("mq2008", queries=30)
        >>> log = clicks.simulate(data, 41, sessions=20, positions=5, swaps="all")
        >>> ax = clicks.inspect_log(log).plot()
        >>> ax.figure.savefig("examination.svg")
        """
        position = [one.position for one in self.positions]
        value = [one.examination for one in self.positions]
        if np.isnan(value).all():
            raise DataError(
                "examination is not known: no document of a query was shown at several positions, "
                "or nothing was clicked. Randomise some lists, or estimate it from features by "
                "estimate_propensity(log, 'dual')."
            )
        import_matplotlib()
        ax = new_axes(ax)
        style = line_style(0)
        ax.plot(position, value, **style)
        low = [one.examination_low for one in self.positions]
        high = [one.examination_high for one in self.positions]
        ax.fill_between(position, low, high, color=style["color"], alpha=0.15, linewidth=0)
        ax.set_xlabel("position")
        ax.set_ylabel("examination, relative to the first")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.xaxis.get_major_locator().set_params(integer=True)
        return plain_axes(ax)


def inspect_log(log: ClickLog) -> LogProfile:
    """Count what a log holds, and return it with findings on what in it will mislead.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=20)
    >>> found = clicks.inspect_log(log)
    >>> found.findings[0]
    'only 0.0% of impressions are of documents that a query showed at several ...
    """
    check_log(log)
    if not log.n_impressions:
        raise DataError("the log has no impressions.")
    counts = log.counts()
    pair = _pair_of_count(counts)
    weight = np.ones(log.n_sessions) if log.weight is None else log.weight
    sessions = float(weight.sum())
    of_query = sums_of(log.query, weight, log.n_queries)
    clicks_of_query = sums_of(counts.query, counts.clicks, log.n_queries)
    unclicked = (clicks_of_query == 0.0) & (of_query >= _SESSIONS_TO_JUDGE)
    several = (np.bincount(pair) > 1)[pair]
    profile = LogProfile(
        sessions=sessions,
        impressions=float(counts.impressions.sum()),
        clicks=float(counts.clicks.sum()),
        queries=log.n_queries,
        documents=log.n_documents,
        pairs=int(pair[-1]) + 1,
        shortest=int(log.sizes.min()),
        longest=int(log.sizes.max()),
        without_click=float(weight[_clicks_of_session(log) == 0].sum()) / sessions,
        moved=float(counts.impressions[several].sum() / counts.impressions.sum()),
        unclicked_queries=int(unclicked.sum()),
        unclicked_share=float(of_query[unclicked].sum() / sessions),
        positions=_by_position(counts, pair),
        findings=(),
    )
    return replace(profile, findings=tuple(_findings(profile, log, weight, of_query)))


def _clicks_of_session(log: ClickLog) -> I64:
    session = log.session_of_impression()
    return np.bincount(session, log.click, log.n_sessions).astype(np.int64)


def _pair_of_count(counts: ClickCounts) -> I64:
    """Return the number of the (query, document) pair of each count, which are in its order."""
    new = (np.diff(counts.query) != 0) | (np.diff(counts.document) != 0)
    return np.concatenate(([0], np.cumsum(new)))


def _by_position(counts: ClickCounts, pair: I64) -> tuple[PositionClicks, ...]:
    shown = sums_of(counts.position, counts.impressions)
    clicked = sums_of(counts.position, counts.clicks)
    here = np.flatnonzero(shown > 0)
    low, high = wilson(clicked[here], shown[here])
    examination = _relative_examination(counts, pair, here)
    return tuple(
        PositionClicks(
            int(k),
            float(shown[k]),
            float(clicked[k]),
            float(clicked[k] / shown[k]),
            float(low[i]),
            float(high[i]),
            *(float(values[i]) for values in examination),
        )
        for i, k in enumerate(here)
    )


def wilson(successes: F64, trials: F64) -> tuple[F64, F64]:
    """Return Wilson's interval of probabilities, with 95 % confidence."""
    z = norm.ppf(0.5 + _CONFIDENCE / 2.0)
    rate, total = successes / trials, 1.0 + z * z / trials
    centre = (rate + z * z / (2.0 * trials)) / total
    half = z * np.sqrt(rate * (1.0 - rate) / trials + z * z / (4.0 * trials**2)) / total
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def _relative_examination(counts: ClickCounts, pair: I64, positions: I64) -> AnyArray:
    """Return examination at the positions shown, relative to the first, and its interval."""
    unknown = np.full((3, len(positions)), np.nan)
    kept = _well_known(counts, pair)
    place = np.searchsorted(positions, counts.position[kept])
    impressions, clicks = counts.impressions[kept], counts.clicks[kept]
    clicked = np.bincount(place, clicks, len(positions)) > 0.0
    if not clicked[0]:
        return unknown
    log = ClickLog.from_arrays(  # a session of one impression for the clicks of each count, ...
        np.tile(counts.query[kept], 2),
        np.tile(counts.document[kept], 2),
        np.repeat([True, False], len(kept)),
        session_sizes=np.ones(2 * len(kept), np.int64),
        position=np.tile(place + 1, 2),
        weight=np.concatenate((clicks, impressions - clicks)),  # ... and one for the others
    )
    try:
        found = estimate_propensity(log, "pbm")
    except DataError:  # no document was shown at several positions
        return unknown
    nothing = unknown[0]
    low, high = (nothing if one is None else one for one in (found.low, found.high))
    return np.where(clicked, np.stack((found.examination, low, high)), np.nan)


def _well_known(counts: ClickCounts, pair: I64) -> I64:
    """Return the counts of pairs at several positions that were shown most, or else all."""
    size, shown = np.bincount(pair), np.bincount(pair, counts.impressions)
    several = size > 1
    often = several & (shown >= _SHOWN_OFTEN)
    order = np.argsort(np.where(often, -shown, 0.0), kind="stable")
    most = np.zeros(len(size), bool)
    most[order[np.cumsum(size[order]) <= _MOST_COUNTS]] = True
    positions = len(np.unique(counts.position))
    for pairs in (often & most, often, several):
        kept = np.flatnonzero(pairs[pair])
        if len(np.unique(counts.position[kept])) == positions:
            return kept
    return np.arange(len(pair))


def _findings(profile: LogProfile, log: ClickLog, weight: F64, of_query: F64) -> list[str]:
    """Return what will mislead, as sentences."""
    found = []
    if profile.clicks == 0.0:
        return ["there is no click: nothing can be learnt from this log."]
    if len(profile.positions) == 1:
        found.append(
            f"all documents were shown at position {profile.positions[0].position}: position bias "
            "can be neither seen nor corrected; check that positions were logged."
        )
    elif profile.moved < _MOVED_ENOUGH:
        found.append(
            f"only {profile.moved:.1%} of impressions are of documents that a query showed at "
            "several positions: position bias and relevance can hardly be separated; randomise "
            "results, or use a model with features."
        )
    rates = np.cumprod([1.0, *(one.rate for one in profile.positions)])
    long = log.sizes >= _ALL_CLICKED_LENGTH
    by_chance = float(rates[np.minimum(log.sizes[long], len(rates) - 1)] @ weight[long])
    throughout = float(weight[long & (_clicks_of_session(log) == log.sizes)].sum())
    if throughout > _ALL_CLICKED_TIMES * by_chance:
        found.append(
            f"in {throughout:,.0f} sessions every one of {_ALL_CLICKED_LENGTH} or more "
            "documents was clicked, as bots do: leave these sessions out."
        )
    if log.user is not None:
        found += _busy_users(log.user)
    if profile.unclicked_queries:
        found.append(
            f"{counted(profile.unclicked_queries, 'query')} with {_SESSIONS_TO_JUDGE} sessions or "
            f"more ({profile.unclicked_share:.1%} of sessions) had no click: the answer may be "
            "on the result page, or clicks were not logged."
        )
    if profile.queries > 1 and of_query.max() > _MUCH_OF_LOG * profile.sessions:
        busiest = log.query_ids[int(of_query.argmax())]
        found.append(
            f"query {quoted(busiest)} has {of_query.max() / profile.sessions:.0%} of all "
            "sessions: what is learnt is mostly about it."
        )
    if profile.clicks < _FEW_CLICKS:
        found.append(f"there are only {profile.clicks:,.0f} clicks: intervals are wide.")
    return found + _no_bias(profile)


def _busy_users(users: AnyArray) -> list[str]:
    counts = np.array(list(Counter(users.tolist()).values()))
    busy = counts > _BUSY * np.median(counts)
    if not busy.any():
        return []
    return [
        f"{int(busy.sum()):,} users have more than {_BUSY} times the sessions of the median user "
        f"({counts[busy].sum() / counts.sum():.1%} of sessions), as bots do: leave them out."
    ]


def _no_bias(profile: LogProfile) -> list[str]:
    later = profile.positions[1:]
    if later and all(one.examination_low <= 1.0 <= one.examination_high for one in later):
        return [
            "examination does not differ between positions (all intervals hold 1): correcting for "
            "position bias would change little."
        ]
    return []
