"""Summary of a click log: sizes, clicks by position, and problems that mislead.

Click rates by position mix two effects: documents at the top are seen more often, and are better. A
position-based model separates them if the same document of a query was shown at several positions.
`PositionClicks.examination` is its estimate, relative to the first position, by
``estimate_propensity(log, "pbm")``. It uses documents that a query showed at least 20 times, if
these were shown at every position: each document has a parameter, and many documents with few
impressions bias examination, however long the log is. Of very many documents, it uses the most
shown ones.
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
_MANY_SESSIONS = 20  # of a query; without any click they are suspicious
_MUCH_OF_LOG = 0.5
_ENOUGH_MOVED = 0.05  # share of impressions of pairs that were shown at several positions
_LONG_LIST = 5  # a click on every document is suspicious
_ALL_CLICKED_TIMES = 10  # as often as click rates by position let expect
_BUSY = 100  # times the sessions of the median user
_PRINTED_POSITIONS = 20
_BAR = 30


@dataclass(frozen=True, slots=True)
class PositionClicks:
    """Clicks at one position.

    Attributes
    ----------
    position : int
    impressions, clicks : float
    rate, low, high : float
        Click rate with Wilson's 95 % interval.
    examination, examination_low, examination_high : float
        Examination relative to the first position shown, by a position-based model, with its 95 %
        interval; NaN if the log does not determine it.
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

    def line(self, highest: float) -> str:
        """Return a row of a table, with a bar; ``highest`` is the click rate of a full bar."""
        rate = f"{self.rate:.4f} [{self.low:.4f}, {self.high:.4f}]"
        examined = "not known" if np.isnan(self.examination) else f"{self.examination:.3f}"
        if not np.isnan(self.examination_low):
            examined += f" [{self.examination_low:.3f}, {self.examination_high:.3f}]"
        bar = "#" * round(_BAR * self.rate / highest)
        return f"{self.position:8d}  {self.impressions:11,.0f}  {rate}  {examined:22s} {bar}"


@dataclass(frozen=True, slots=True)
class LogProfile:
    """Summary of a click log; ``print`` shows it.

    Attributes
    ----------
    sessions, impressions, clicks : float
        Sums of session weights.
    queries, documents, pairs : int
        Number of different queries, documents, and pairs of both.
    shortest, longest : int
        Lengths of the shortest and the longest list.
    without_click : float
        Share of sessions without a click.
    moved : float
        Share of impressions whose query and document were shown at several positions.
    unclicked_queries : int
        Number of queries with 20 sessions or more and no click.
    unclicked_share : float
        Share of the sessions of these queries.
    positions : tuple of PositionClicks
    findings : tuple of str
        Problems that mislead, in sentences, the most harmful first.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abba"), [1, 0, 0, 0], session_sizes=[2, 2])
    >>> profile = clicks.inspect_log(log)
    >>> profile.sessions, profile.pairs, profile.without_click, profile.moved
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
        """Return a dictionary for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lengths = f"{self.shortest} to {self.longest}"
        if self.shortest == self.longest:
            lengths = str(self.shortest)
        highest = max(row.rate for row in self.positions) or 1.0
        rows = [row.line(highest) for row in self.positions[:_PRINTED_POSITIONS]]
        more = len(self.positions) - _PRINTED_POSITIONS
        if more > 0:
            rows.append(f"... and {more} positions more")
        return "\n".join([
            f"{counted(round(self.sessions), 'session')}, "
            f"{counted(round(self.impressions), 'impression')}, "
            f"{counted(round(self.clicks), 'click')}, {counted(self.queries, 'query')}, "
            f"{counted(self.documents, 'document')}",
            f"lists of {lengths} documents; {self.without_click:.1%} of sessions without a click; "
            f"{self.moved:.1%} of impressions of documents shown at several positions",
            "position  impressions  click rate (95 %)       examination (95 %)",
            *rows,
            "findings",
            *(f"- {sentence}" for sentence in self.findings or ["no problems found."]),
        ])  # fmt: skip

    def plot(self, *, ax: Any = None) -> Any:
        """Draw examination by position with its 95 % interval; return the Axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new ones.

        Examples
        --------
        >>> import rankwright as rw
        >>> from rankwright import clicks
        >>> data = rw.synthetic("mq2008", queries=30)
        >>> log = clicks.simulate(data, 41, sessions=20, positions=5, swaps="all")
        >>> ax = clicks.inspect_log(log).plot()
        >>> ax.figure.savefig("examination.svg")
        """
        position = [row.position for row in self.positions]
        value = [row.examination for row in self.positions]
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
        low = [row.examination_low for row in self.positions]
        high = [row.examination_high for row in self.positions]
        ax.fill_between(position, low, high, color=style["color"], alpha=0.15, linewidth=0)
        ax.set_xlabel("position")
        ax.set_ylabel("examination, relative to the first")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.xaxis.get_major_locator().set_params(integer=True)
        return plain_axes(ax)


def inspect_log(log: ClickLog) -> LogProfile:
    """Return a summary of a log, with findings about problems that mislead.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=20)
    >>> profile = clicks.inspect_log(log)
    >>> profile.findings[0]
    'only 0.0% of impressions are of documents that a query showed at several ...
    """
    check_log(log)
    if not log.n_impressions:
        raise DataError("the log has no impressions.")
    counts = log.counts()
    new = (np.diff(counts.query) != 0) | (np.diff(counts.document) != 0)
    pair = np.concatenate(([0], np.cumsum(new)))  # of each count
    several = (np.bincount(pair) > 1)[pair]
    weight = np.ones(log.n_sessions) if log.weight is None else log.weight
    sessions = float(weight.sum())
    of_query = sums_of(log.query, weight, log.n_queries)
    clicks_of_query = sums_of(counts.query, counts.clicks, log.n_queries)
    unclicked = (clicks_of_query == 0.0) & (of_query >= _MANY_SESSIONS)
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
        positions=_clicks_by_position(counts, pair),
        findings=(),
    )
    return replace(profile, findings=tuple(_findings(profile, log, weight, of_query)))


def _clicks_of_session(log: ClickLog) -> I64:
    session = log.session_of_impression()
    return np.bincount(session, log.click, log.n_sessions).astype(np.int64)


def _clicks_by_position(counts: ClickCounts, pair: I64) -> tuple[PositionClicks, ...]:
    shown = sums_of(counts.position, counts.impressions)
    clicked = sums_of(counts.position, counts.clicks)
    position = np.flatnonzero(shown > 0)
    shown, clicked = shown[position], clicked[position]
    columns = (
        *(shown, clicked, clicked / shown, *wilson(clicked, shown)),
        *_relative_examination(counts, pair, position),
    )
    rows = np.stack(columns, axis=1).tolist()
    return tuple(PositionClicks(k, *row) for k, row in zip(position.tolist(), rows, strict=True))


def wilson(successes: F64, trials: F64) -> tuple[F64, F64]:
    """Return Wilson's 95 % intervals of probabilities."""
    z = norm.ppf(0.5 + _CONFIDENCE / 2.0)
    rate, total = successes / trials, 1.0 + z * z / trials
    centre = (rate + z * z / (2.0 * trials)) / total
    half = z * np.sqrt(rate * (1.0 - rate) / trials + z * z / (4.0 * trials**2)) / total
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def _relative_examination(counts: ClickCounts, pair: I64, positions: I64) -> AnyArray:
    """Return examination relative to the first position shown, and the ends of its interval."""
    unknown = np.full((3, len(positions)), np.nan)
    used = _well_known(counts, pair)
    place = np.searchsorted(positions, counts.position[used])
    impressions, clicks = counts.impressions[used], counts.clicks[used]
    clicked = np.bincount(place, clicks, len(positions)) > 0.0
    if not clicked[0]:
        return unknown
    log = ClickLog.from_arrays(  # a session of one impression for the clicks of each count, ...
        np.tile(counts.query[used], 2),
        np.tile(counts.document[used], 2),
        np.repeat([True, False], len(used)),
        session_sizes=np.ones(2 * len(used), np.int64),
        position=np.tile(place + 1, 2),
        weight=np.concatenate(
            (clicks, impressions - clicks)
        ),  # ... and one for further impressions
    )
    try:
        propensity = estimate_propensity(log, "pbm")
    except DataError:  # no document was shown at several positions
        return unknown
    low, high = (unknown[0] if end is None else end for end in (propensity.low, propensity.high))
    return np.where(clicked, np.stack((propensity.examination, low, high)), np.nan)


def _well_known(counts: ClickCounts, pair: I64) -> I64:
    """Return the counts of the pairs that were shown most, at several positions.

    Return the counts of further pairs if these do not cover every position.
    """
    size, shown = np.bincount(pair), np.bincount(pair, counts.impressions)
    several = size > 1
    often = several & (shown >= _SHOWN_OFTEN)
    order = np.argsort(np.where(often, -shown, 0.0), kind="stable")
    most = np.zeros(len(size), bool)
    most[order[np.cumsum(size[order]) <= _MOST_COUNTS]] = True
    positions = len(np.unique(counts.position))
    for pairs in (often & most, often, several):
        used = np.flatnonzero(pairs[pair])
        if len(np.unique(counts.position[used])) == positions:
            return used
    return np.arange(len(pair))


def _findings(profile: LogProfile, log: ClickLog, weight: F64, of_query: F64) -> list[str]:
    """Return problems as sentences; ``of_query`` is the weight of the sessions of each query."""
    if profile.clicks == 0.0:
        return ["the log contains no click: nothing can be learnt from it."]
    findings = []
    if len(profile.positions) == 1:
        findings.append(
            f"all documents were shown at position {profile.positions[0].position}: position bias "
            "can be neither seen nor corrected; check that positions were logged."
        )
    elif profile.moved < _ENOUGH_MOVED:
        findings.append(
            f"only {profile.moved:.1%} of impressions are of documents that a query showed at "
            "several positions: position bias and relevance can hardly be separated; randomise "
            "results, or use a model with features."
        )
    rates = np.cumprod([1.0, *(row.rate for row in profile.positions)])
    long = log.sizes >= _LONG_LIST
    expected = float(rates[np.minimum(log.sizes[long], len(rates) - 1)] @ weight[long])
    throughout = float(weight[long & (_clicks_of_session(log) == log.sizes)].sum())
    if throughout > _ALL_CLICKED_TIMES * expected:
        findings.append(
            f"in {throughout:,.0f} sessions every one of {_LONG_LIST} or more documents was "
            "clicked, probably by bots: remove these sessions."
        )
    if log.user is not None:
        sessions = np.array(list(Counter(log.user.tolist()).values()))
        busy = sessions > _BUSY * np.median(sessions)
        if busy.any():
            findings.append(
                f"{counted(int(busy.sum()), 'user')} with more than {_BUSY} times the sessions of "
                f"the median user ({sessions[busy].sum() / sessions.sum():.1%} of sessions), "
                "probably bots: remove them."
            )
    if profile.unclicked_queries:
        findings.append(
            f"{counted(profile.unclicked_queries, 'query')} with {_MANY_SESSIONS} sessions or more "
            f"({profile.unclicked_share:.1%} of sessions) had no click: the answer may be on the "
            "result page, or clicks were not logged."
        )
    if profile.queries > 1 and of_query.max() > _MUCH_OF_LOG * profile.sessions:
        busiest = log.query_ids[int(of_query.argmax())]
        findings.append(
            f"query {quoted(busiest)} has {of_query.max() / profile.sessions:.0%} of all "
            "sessions: results are mostly about it."
        )
    if profile.clicks < _FEW_CLICKS:
        findings.append(f"there are only {profile.clicks:,.0f} clicks: intervals are wide.")
    later = profile.positions[1:]
    if later and all(row.examination_low <= 1.0 <= row.examination_high for row in later):
        findings.append(
            "examination does not differ between positions (all intervals contain 1): correcting "
            "position bias would change little."
        )
    return findings
