"""Run one task with several tools in turns; keep the least time and the quality of each."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Any

from .timing import Clock, seconds_of

OURS = "Rankwright"
HELD_OUT = "NDCG@10 on held-out queries"


@dataclass(frozen=True)
class Row:
    """The result of one tool on one task: a line of the printed table.

    The package of a tool is its name up to a comma, as in "LightGBM, xendcg".
    """

    task: str
    tool: str
    settings: str
    seconds: float | None = None
    quality: float | None = None
    measure: str = HELD_OUT
    megabytes: float | None = None


@dataclass
class Results:
    """The results of an area: ratios between tools, rows, absent tools and failures."""

    ratios: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: Results) -> None:
        """Merge other results into these."""
        self.ratios |= other.ratios
        self.rows += other.rows
        self.absent |= other.absent
        self.failed |= other.failed

    def set_ratio(self, name: str, above: str, below: str) -> None:
        """Store the seconds of one tool over those of another, if both ran."""
        seconds = {row.tool: row.seconds for row in self.rows if row.seconds}
        if above in seconds and below in seconds:
            self.ratios[name] = seconds[above] / seconds[below]

    def add_failure(self, tool: str, error: Exception) -> None:
        """Store an exception: a package that is not installed is absent, anything else failed."""
        if isinstance(error, ImportError) and not version(tool):
            self.absent[tool] = f"{package_of(tool)} is not installed"
        else:
            self.failed[tool] = one_line(error)


@dataclass(frozen=True)
class Contender:
    """A tool and how it does the task.

    ``prepare`` imports the tool, converts the data and returns the call that is timed. ``quality``
    gets the result of the call, and returns a number or raises if the result is wrong. ``rounds``
    limits the timed calls of a slow tool; ``warm_up=False`` skips its first call that is not timed.
    """

    tool: str
    settings: str
    prepare: Callable[[], Callable[[], Any]]
    quality: Callable[[Any], float | None] | None = None
    rounds: int | None = None
    warm_up: bool = True


def contest(
    task: str,
    contenders: Iterable[Contender],
    *,
    rounds: int,
    measure: str = HELD_OUT,
    clock: Clock = time.perf_counter,
) -> Results:
    """Let every contender do the task ``rounds`` times, in turns, after a round not timed.

    A tool that is not installed is stored as absent, and one that raises as failed; the others
    continue.
    """
    results, calls = Results(), dict[Contender, Callable[[], Any]]()
    seconds, outputs = dict[Contender, float](), dict[Contender, Any]()
    for contender in contenders:
        try:
            calls[contender] = contender.prepare()
        except Exception as error:
            results.add_failure(contender.tool, error)
    for turn in range(rounds + 1):
        for contender, call in list(calls.items()):
            if turn > (contender.rounds or rounds) or (turn == 0 and not contender.warm_up):
                continue
            try:
                taken = seconds_of(lambda f=call, c=contender: outputs.update({c: f()}), clock)
            except Exception as error:
                results.failed[contender.tool] = one_line(error)
                del calls[contender]
                continue
            if turn > 0:
                seconds[contender] = min(seconds.get(contender, math.inf), taken)
    for contender in calls:
        tool = contender.tool
        try:
            quality = contender.quality(outputs[contender]) if contender.quality else None
        except Exception as error:
            results.failed[tool] = one_line(error)
            continue
        row = Row(task, tool, contender.settings, seconds[contender], quality, measure)
        results.rows.append(row)
    return results


def package_of(tool: str) -> str:
    """Return the name of a tool's package."""
    return tool.partition(",")[0].lower()


def version(tool: str) -> str:
    """Return the version of a tool's package, or an empty text if it is not installed."""
    try:
        return installed_version(package_of(tool))
    except PackageNotFoundError:
        return ""


def one_line(error: BaseException) -> str:
    """Return an exception as one line of text."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def call_area(area: str) -> Results:
    """Import an area and run it."""
    return importlib.import_module(f"benchmarks.{area}").run()
