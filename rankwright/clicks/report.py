"""A click log as one HTML page that needs nothing else: `write_log_report`.

The page has what `inspect_log` finds, position bias by every method that the log allows, how well
each click model predicts sessions that it was not fitted to, and whether a ranker gains by the
correction of position bias. Counts are of the whole log; what is fitted is fitted to its
first sessions, as many as the page says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.clicks.gain import DebiasingGain, debiasing_gain
from rankwright.clicks.inspect import LogProfile, inspect_log
from rankwright.clicks.models import MODELS, model
from rankwright.clicks.propensity import estimate_propensity
from rankwright.clicks.sessions import LogParts, parts_of
from rankwright.core.types import F64
from rankwright.data.click_log import ClickLog, concatenate_logs
from rankwright.data.propensity import Propensity
from rankwright.data.ranking_data import RankingData
from rankwright.errors import RankwrightError
from rankwright.pages import write_page
from rankwright.rankers.base import Ranker
from rankwright.rankers.trees import LambdaMART

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_SESSIONS = 100_000  # that models and position bias are fitted to
_HELD_OUT = 4  # every fourth session judges click models
_ITERATIONS = 50  # of EM
_GROUPS = 10  # of queries, for the intervals of position bias
_WIDEST = 100.0  # times the lower end of an interval, from which it says nothing
_MOST_POSITIONS = 30  # in plots and tables
_BEST_MODELS, _RATES = 3, ("rctr", "dctr")  # click models in the plot
_OF_DOCUMENTS = {"pbm": "position-based model", "harvest": "intervention harvesting"}
_OF_FEATURES = {"dual": "dual learning"}


def write_log_report(
    log: LogParts | Sequence[ClickLog],
    path: str | Path,
    *,
    features: RankingData | None = None,
    ranker: Ranker | None = None,
    title: str | None = None,
    n_jobs: int | None = None,
) -> None:
    """Write what a click log holds as one HTML page that needs nothing else, whole or not at all.

    Parameters
    ----------
    log : ClickLog, list of these, or what `open_log` returns
    path : str or Path
        Of the page.
    features : RankingData or None
        Features of the documents, unless the log has them: with them position bias is estimated
        where documents never moved too, and the page says whether its correction helps.
    ranker : Ranker or None
        Which the correction should help, not fitted; by default `LambdaMART`.
    title : str or None
    n_jobs : int or None
        Number of threads.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> log = clicks.simulate(rw.synthetic("mq2008", queries=30), 1, sessions=20, swaps="all")
    >>> clicks.write_log_report(log, "clicks.html")  # doctest: +SKIP
    """
    content = log_content(log, features=features, ranker=ranker, n_jobs=n_jobs)
    write_page(
        path,
        "rankwright.clicks",
        "clicks",
        title=title or f"Clicks of {content['profile'].sessions:,.0f} sessions",
        **content,
    )


def log_content(
    log: LogParts | Sequence[ClickLog],
    *,
    features: RankingData | None = None,
    ranker: Ranker | None = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Return all that the page shows."""
    profile = inspect_log(log)
    some = first_sessions(log, _MOST_SESSIONS)
    if features is not None and some.features is None:
        some = some.with_features(features)
    found, missing = position_bias(some, n_jobs=n_jobs)
    gain, reason = _gain(some, ranker or LambdaMART(n_jobs=n_jobs), n_jobs)
    scores, held_out = click_models(some, n_jobs=n_jobs)
    return {
        "profile": profile,
        "conclusion": _conclusion(profile, found, gain),
        "fitted": some.n_sessions,
        "held_out": held_out,
        "curve": click_curve(profile),
        "bias": found,
        "missing": missing,
        "bias_plot": _bias_plot(found),
        "models": scores,
        "models_plot": _models_plot(scores),
        "gain": None if gain is None else str(gain).splitlines(),
        "no_gain": reason,
        "names": {**_OF_DOCUMENTS, **_OF_FEATURES},
        "most": _MOST_POSITIONS,
    }


def first_sessions(log: LogParts | Sequence[ClickLog], most: int) -> ClickLog:
    """Return the first sessions of a log, at most so many."""
    kept: list[ClickLog] = []
    for part in parts_of(log):
        room = most - sum(one.n_sessions for one in kept)
        kept.append(part if part.n_sessions <= room else part.select(np.arange(room)))
        if part.n_sessions >= room:
            break
    return kept[0] if len(kept) == 1 else concatenate_logs(kept)


# --- what is fitted --------------------------------------------------------------------------


def position_bias(
    log: ClickLog, *, n_jobs: int | None = None
) -> tuple[dict[str, Propensity], dict[str, str]]:
    """Return the propensity by each method that the log allows, and why others are missing."""
    found, missing = {}, {}
    for method in (*_OF_DOCUMENTS, *_OF_FEATURES):
        if method in _OF_FEATURES and log.features is None:
            missing[method] = "the log has no features; give them with --features, or features=."
            continue
        try:
            one = estimate_propensity(log, method, groups=_GROUPS, n_jobs=n_jobs)
        except RankwrightError as error:
            missing[method] = str(error)
            continue
        if _is_known(one):
            found[method] = one
        else:
            missing[method] = "its intervals are so wide that this log says nothing by it."
    return found, missing


def _is_known(one: Propensity) -> bool:
    """Whether the ends of most intervals are within a factor that says something."""
    if one.low is None or one.high is None:
        return True
    return bool(np.median(one.high / np.maximum(one.low, 1e-300)) < _WIDEST)


@dataclass(frozen=True, slots=True)
class ModelScores:
    """How well a click model predicts sessions that it was not fitted to."""

    name: str
    log_likelihood: float
    perplexity: float
    conditional_perplexity: float
    by_position: F64


def click_models(log: ClickLog, *, n_jobs: int | None = None) -> tuple[list[ModelScores], int]:
    """Return the scores of click models, the best first, and the number of sessions judged on."""
    held_out = np.arange(log.n_sessions) % _HELD_OUT == _HELD_OUT - 1
    if held_out.all() or not held_out.any():
        return [], 0
    train, test = (log.select(np.flatnonzero(part)) for part in (~held_out, held_out))
    clicks = np.bincount(test.session_of_impression(), test.click, test.n_sessions)
    names = [name for name in MODELS if name != "cascade" or clicks.max() <= 1]
    scores = []
    for name in names:
        options = {"max_iter": _ITERATIONS} if "max_iter" in model(name).get_params() else {}
        found = model(name, **options, n_jobs=n_jobs).fit(train).evaluate(test)
        scores.append(
            ModelScores(
                name,
                found.log_likelihood,
                found.perplexity,
                found.conditional_perplexity,
                found.perplexity_by_position[:_MOST_POSITIONS],
            )
        )
    return sorted(scores, key=lambda one: -one.log_likelihood), int(held_out.sum())


def _gain(
    log: ClickLog, ranker: Ranker, n_jobs: int | None
) -> tuple[DebiasingGain | None, str | None]:
    if log.features is None:
        return None, (
            "This needs features of the documents: rankwright clicks inspect LOG --features DATA, "
            "or features=."
        )
    try:
        return debiasing_gain(ranker, log, n_jobs=n_jobs), None
    except RankwrightError as error:
        return None, f"This could not be said: {error}"


def _conclusion(
    profile: LogProfile, found: dict[str, Propensity], gain: DebiasingGain | None
) -> tuple[str, str]:
    """Return what the log says of positions, and what to do about it."""
    order = ("dual", "pbm", "harvest")
    method = next((name for name in order if name in found), None)
    if method is None:
        first = "How much users look at each position cannot be said from this log."
        then = "Randomise some result lists, or give features of the documents."
        return first, profile.findings[0].capitalize() if profile.findings else then
    known = found[method].examination
    last, times = len(known), known[0] / known[-1]
    first = (
        f"Users look {times:,.1f} times as often at position 1 as at position {last}, by "
        f"{({**_OF_DOCUMENTS, **_OF_FEATURES})[method]}."
    )
    if gain is not None:
        return first, f"On held-out queries, {gain.verdict}."
    count = len(profile.findings)
    if count:
        return first, f"See the finding{'s' if count > 1 else ''} below before learning from it."
    return first, "Nothing was found that would mislead."


# --- plots, as SVG ---------------------------------------------------------------------------


_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 40
_SHAPES: tuple[Callable[[float, float], str], ...] = (
    lambda x, y: f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>',
    lambda x, y: f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>',
    lambda x, y: f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z"/>',
    lambda x, y: f'<path d="M{x:.1f} {y - 4:.1f}l4 4-4 4-4-4z"/>',
    lambda x, y: f'<path d="M{x:.1f} {y + 4:.1f}l4-7h-8z"/>',
)


@dataclass(frozen=True, slots=True)
class Line:
    """Values by position, with intervals where they are known."""

    name: str
    values: F64
    low: F64 | None = None
    high: F64 | None = None


def plot_lines(lines: list[Line], label: str, *, logarithmic: bool = False) -> Markup | None:
    """Return lines by position as an SVG element, None where there is nothing to draw."""
    from markupsafe import Markup, escape

    shown = [line for line in lines if np.isfinite(line.values).any()]
    if not shown:
        return None
    n = max(len(line.values) for line in shown)
    low, high = _extent(shown, logarithmic)
    ticks = _ticks(low, high, logarithmic)
    bottom, top = ticks[0], ticks[-1]

    def place(value: float) -> float:
        return math.log(max(value, bottom)) if logarithmic else value

    span = (place(top) - place(bottom)) or 1.0

    def x(position: int) -> float:
        return _LEFT + 14 + (position - 1) * (_WIDTH - _LEFT - _RIGHT - 28) / max(1, n - 1)

    def y(value: float) -> float:
        share = (place(min(max(value, bottom), top)) - place(bottom)) / span
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick):.1f}" '
        f'y2="{y(tick):.1f}"/><text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" '
        f'text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    parts += [
        f'<text x="{x(position):.1f}" y="{_HEIGHT - _BOTTOM + 16}" '
        f'text-anchor="middle">{position}</text>'
        for position in range(1, n + 1, max(1, math.ceil(n / 15)))
    ]
    parts.append(
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 4}" text-anchor="middle">position</text>'
    )
    parts += [_drawn(line, number, len(shown), x, y) for number, line in enumerate(shown)]
    return Markup(  # names are escaped, all else is numbers
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>{_legend(shown)}"
    )


def _extent(lines: list[Line], logarithmic: bool) -> tuple[float, float]:
    """Return the least and the highest value; of intervals, what is near the values."""
    values = np.concatenate([line.values for line in lines])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    near = (low / 3.0, high * 3.0) if logarithmic else (2.0 * low - high, 2.0 * high - low)
    ends = [end for line in lines for end in (line.low, line.high) if end is not None]
    if ends:
        within = np.concatenate(ends)
        within = np.clip(within[~np.isnan(within)], max(near[0], 0.0), near[1])
        low, high = min(low, float(within.min())), max(high, float(within.max()))
    return low, high


def _drawn(
    line: Line, number: int, count: int, x: Callable[[int], float], y: Callable[[float], float]
) -> str:
    """Return a line with its marks and intervals, a little beside those of others."""
    aside = (number - (count - 1) / 2) * min(3.0, 12.0 / count)
    at = [(k + 1, float(v)) for k, v in enumerate(line.values) if math.isfinite(v)]
    points = " ".join(f"{x(k) + aside:.1f},{y(v):.1f}" for k, v in at)
    marks = "".join(_SHAPES[number % len(_SHAPES)](x(k) + aside, y(v)) for k, v in at)
    bars = ""
    if line.low is not None and line.high is not None:
        bars = "".join(
            f'<line x1="{x(k) + aside:.1f}" x2="{x(k) + aside:.1f}" '
            f'y1="{y(line.low[k - 1]):.1f}" y2="{y(line.high[k - 1]):.1f}"/>'
            for k, _ in at
            if math.isfinite(line.low[k - 1]) and not math.isnan(line.high[k - 1])
        )
    return f'<g class="line{number % 6}"><polyline points="{points}"/>{bars}{marks}</g>'


def _legend(lines: list[Line]) -> str:
    from markupsafe import escape

    entries = "".join(
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true"><g class="line{number % 6}">'
        f'<polyline points="1,6 25,6"/>{_SHAPES[number % len(_SHAPES)](13, 6)}</g></svg>'
        f"{escape(line.name)}</li>"
        for number, line in enumerate(lines)
    )
    return f'<ul class="legend">{entries}</ul>'


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Return round numbers whose first and last hold the values."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(max(high, low * 1.01)))
        every = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 5)]
        begin = max((k for k, tick in enumerate(every) if tick <= low), default=0)
        end = min((k for k, tick in enumerate(every) if tick >= high), default=len(every) - 1)
        fine = every[begin : end + 1]
        return fine if len(fine) <= 12 else [10.0**e for e in range(first, last + 1)]
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if (high - low) / s <= 6)
    return [step * k for k in range(math.floor(low / step), math.ceil(high / step) + 1)]


def click_curve(profile: LogProfile) -> Markup | None:
    """Return the plot of click rates by position."""
    size = min(profile.positions[-1].position, _MOST_POSITIONS)
    columns = np.full((3, size), np.nan)
    for one in profile.positions:
        if one.position <= size:
            columns[:, one.position - 1] = one.rate, one.low, one.high
    return plot_lines([Line("click rate", *columns)], "Click rate by position")


def _bias_plot(found: dict[str, Propensity]) -> Markup | None:
    names = {**_OF_DOCUMENTS, **_OF_FEATURES}
    lines = [
        Line(
            names[method],
            one.examination[:_MOST_POSITIONS],
            None if one.low is None else one.low[:_MOST_POSITIONS],
            None if one.high is None else one.high[:_MOST_POSITIONS],
        )
        for method, one in found.items()
    ]
    return plot_lines(lines, "Examination by position, relative to the first", logarithmic=True)


def _models_plot(scores: list[ModelScores]) -> Markup | None:
    """Return perplexity by position of the best models, and of rates to compare them with."""
    kept = [one for k, one in enumerate(scores) if k < _BEST_MODELS or one.name in _RATES]
    lines = [Line(one.name, one.by_position) for one in kept]
    return plot_lines(lines, "Perplexity of clicks by position")
