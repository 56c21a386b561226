"""What a click log holds, how clicks fall by position, and what in it will mislead.

Click rates by position mix two things: documents on top are seen more, and are better. A
position-based model separates them where the same document of a query was shown at several
positions; `PositionClicks.examination` is its answer, relative to the first position. It is fitted
to documents that a query showed 20 times or more, as far as these were at every position: each
document has a parameter of its own, and many that are known from a few impressions bias examination
however long the log is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from rankwright.clicks.base import add_at
from rankwright.clicks.examination import PBM
from rankwright.clicks.figures import import_matplotlib, line_style, new_axes, plain_axes
from rankwright.clicks.sessions import CellCounter, Cells, LogParts, PairTable, parts_of
from rankwright.core.types import F64, I64
from rankwright.data.click_log import ClickLog
from rankwright.errors import DataError, counted, quoted

_CONFIDENCE = 0.95
_FEW_CLICKS = 100
_SHOWN_OFTEN = 20
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
        ax.xaxis.get_major_locator().set_params(integer=True)
        return plain_axes(ax)


def inspect_log(log: LogParts | Sequence[ClickLog]) -> LogProfile:
    """Look through a log, once, and return what it holds and what in it will mislead.

    Parameters
    ----------
    log
        A `ClickLog`, a list of these, or what `open_log` returns, which is read in parts.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 41, sessions=20)
    >>> found = clicks.inspect_log(log)
    >>> found.findings[0]
    'only 0.0% of impressions are of documents that a query showed at several ...
    """
    counter = CellCounter(lambda part: part.position.astype(np.int64) - 1)
    seen = _Sessions(counter.table)
    for part in parts_of(log):
        counter.add(part)
        seen.add(part)
    cells = counter.cells()
    if not len(cells.context):
        raise DataError("the log has no impressions.")
    pair, table = cells.pair(), counter.table
    clicks_of_query = np.bincount(table.query[pair], cells.clicked, len(seen.of_query))
    unclicked = (clicks_of_query == 0.0) & (seen.of_query >= _SESSIONS_TO_JUDGE)
    several = np.diff(cells.indptr) > 1
    positions = _by_position(cells, table, moved=bool(several.any()))
    profile = LogProfile(
        sessions=seen.sessions,
        impressions=float(cells.shown.sum()),
        clicks=float(cells.clicked.sum()),
        queries=len(table.query_ids),
        documents=len(table.document_ids),
        pairs=len(table),
        shortest=seen.shortest,
        longest=seen.longest,
        without_click=seen.unclicked / seen.sessions,
        moved=float(cells.shown[several[pair]].sum() / cells.shown.sum()),
        unclicked_queries=int(unclicked.sum()),
        unclicked_share=float(seen.of_query[unclicked].sum() / seen.sessions),
        positions=positions,
        findings=(),
    )
    findings = tuple(_findings(profile, seen))
    return replace(profile, findings=findings)


class _Sessions:
    """What is added up session by session."""

    def __init__(self, table: PairTable) -> None:
        self.table = table
        self.sessions = self.unclicked = 0.0
        self.long: F64 = np.zeros(0)  # sessions by length, and those clicked throughout
        self.all_clicked: F64 = np.zeros(0)
        self.shortest, self.longest = 1 << 62, 0
        self.of_query: F64 = np.zeros(0)
        self.users: Counter[Any] = Counter()

    def add(self, part: ClickLog) -> None:
        """Take the sessions of a part, whose queries are in the table."""
        if not part.n_sessions:
            return
        weight = np.ones(part.n_sessions) if part.weight is None else part.weight
        clicks: I64 = np.bincount(part.session_of_impression(), part.click, part.n_sessions).astype(
            np.int64
        )
        long = part.sizes >= _ALL_CLICKED_LENGTH
        self.sessions += float(weight.sum())
        self.unclicked += float(weight[clicks == 0].sum())
        self.long = add_at(self.long, part.sizes[long], weight[long])
        throughout = long & (clicks == part.sizes)
        self.all_clicked = add_at(self.all_clicked, part.sizes[throughout], weight[throughout])
        self.shortest = min(self.shortest, int(part.sizes.min()))
        self.longest = max(self.longest, int(part.sizes.max()))
        self.of_query = add_at(self.of_query, self.table.query_codes(part), weight)
        if part.user is not None:
            self.users.update(part.user.tolist())


def _by_position(cells: Cells, pairs: PairTable, *, moved: bool) -> tuple[PositionClicks, ...]:
    n = int(cells.context.max()) + 1
    shown = add_at(np.zeros(n), cells.context, cells.shown)
    clicked = add_at(np.zeros(n), cells.context, cells.clicked)
    here = np.flatnonzero(shown > 0)
    low, high = wilson(clicked[here], shown[here])
    relative = np.full((3, n), np.nan)
    if moved and clicked.any():
        relative = relative_examination(cells, pairs, int(here[0]))
    return tuple(
        PositionClicks(
            int(k) + 1,
            float(shown[k]),
            float(clicked[k]),
            float(clicked[k] / shown[k]),
            float(low[i]),
            float(high[i]),
            *(float(values[k]) for values in relative),
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


def relative_examination(cells: Cells, pairs: PairTable, first: int) -> F64:
    """Return examination relative to a position, and the ends of its interval of 95 %."""
    model = PBM(max_iter=500).fit_cells(_well_known(cells), pairs)
    examination, used = model.parameters_["examination"], np.unique(cells.context)
    gamma, at = examination[used], int(np.searchsorted(used, first))
    log_covariance = model.covariance_ / np.outer(gamma, gamma)
    own = np.diag(log_covariance)
    with np.errstate(invalid="ignore"):
        error = np.sqrt(own + own[at] - 2.0 * log_covariance[at])
    spread = np.exp(norm.ppf(0.5 + _CONFIDENCE / 2.0) * error)
    ratio = gamma / gamma[at]
    found = np.full((3, len(examination)), np.nan)
    found[:, used] = ratio, ratio / spread, ratio * spread
    return found


def _well_known(cells: Cells) -> Cells:
    """Return the cells of pairs at several positions that were shown often, or else all."""
    sizes = np.diff(cells.indptr)
    shown = np.add.reduceat(cells.shown, cells.indptr[:-1])
    for enough in (shown >= _SHOWN_OFTEN, shown > 0.0):
        kept = enough & (sizes > 1)
        here = np.repeat(kept, sizes)
        if len(np.unique(cells.context[here])) == len(np.unique(cells.context)):
            indptr = np.concatenate(([0], np.cumsum(sizes[kept]))).astype(np.int64)
            return Cells(indptr, cells.context[here], cells.shown[here], cells.clicked[here])
    return cells


def _findings(profile: LogProfile, seen: _Sessions) -> list[str]:
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
    throughout = float(seen.all_clicked.sum())
    rates = np.cumprod([1.0, *(one.rate for one in profile.positions)])
    rates = rates[np.minimum(np.arange(len(seen.long)), len(rates) - 1)]
    if throughout > _ALL_CLICKED_TIMES * float(rates @ seen.long):
        found.append(
            f"in {throughout:,.0f} sessions every one of {_ALL_CLICKED_LENGTH} or more "
            "documents was clicked, as bots do: leave these sessions out."
        )
    if seen.users:
        found += _busy_users(seen.users)
    if profile.unclicked_queries:
        found.append(
            f"{counted(profile.unclicked_queries, 'query')} with {_SESSIONS_TO_JUDGE} sessions or "
            f"more ({profile.unclicked_share:.1%} of sessions) had no click: the answer may be "
            "on the result page, or clicks were not logged."
        )
    if profile.queries > 1 and seen.of_query.max() > _MUCH_OF_LOG * profile.sessions:
        busiest = seen.table.query_ids[int(seen.of_query.argmax())]
        found.append(
            f"query {quoted(busiest)} has {seen.of_query.max() / profile.sessions:.0%} of all "
            "sessions: what is learnt is mostly about it."
        )
    if profile.clicks < _FEW_CLICKS:
        found.append(f"there are only {profile.clicks:,.0f} clicks: intervals are wide.")
    return found + _no_bias(profile)


def _busy_users(users: Counter[Any]) -> list[str]:
    counts = np.array(sorted(users.values()))
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
