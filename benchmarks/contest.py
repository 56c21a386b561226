"""One task given to us and to peers: in turns, the least time of each, quality beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any

from .findings import HELD_OUT, Findings, Record
from .timing import Clock, seconds_of


@dataclass(frozen=True)
class Contender:
    """A tool and how it does the task.

    ``prepare`` imports the tool, brings the data into its own form and returns the call that is
    timed; what that call returns goes to ``quality``, which measures it or raises where it is
    wrong, and ``same`` says what was found equal. ``peer`` is the name on the page, unlike those of
    other contenders of the task; ``package`` tells the version. ``warm_up`` is for code that is
    compiled or loaded on its first call; a slow tool that is neither goes without.
    """

    peer: str
    package: str
    settings: str
    prepare: Callable[[], Callable[[], Any]]
    quality: Callable[[Any], float | None] | None = None
    rounds: int | None = None
    warm_up: bool = True
    same: str = ""
    note: str = ""


def contest(
    task: str,
    contenders: Iterable[Contender],
    *,
    rounds: int,
    measure: str = HELD_OUT,
    clock: Clock = time.perf_counter,
) -> Findings:
    """Let every contender do the task ``rounds`` times, in turns.

    One that is not installed is noted as absent, one that raises as failed, each with the reason;
    the others go on. A contender with its own ``rounds`` takes part in the first turns only; the
    turn before them is not timed.
    """
    found, calls = Findings(), dict[Contender, Callable[[], Any]]()
    seconds, results = dict[Contender, float](), dict[Contender, Any]()
    for one in contenders:
        try:
            calls[one] = one.prepare()
        except Exception as fault:
            if isinstance(fault, ImportError) and not is_installed(one.package):
                found.absent[one.peer] = f"{one.package} is not installed"
            else:
                found.failed[one.peer] = reason(fault)
    for turn in range(rounds + 1):
        for one, call in list(calls.items()):
            if turn > (one.rounds or rounds) or (turn == 0 and not one.warm_up):
                continue
            try:
                taken = seconds_of(lambda c=call, o=one: results.update({o: c()}), clock=clock)
            except Exception as fault:
                found.failed[one.peer] = reason(fault)
                del calls[one]
                continue
            if turn > 0:
                seconds[one] = min(seconds.get(one, math.inf), taken)
    for one in calls:
        try:
            quality = one.quality(results[one]) if one.quality else None
        except Exception as fault:
            found.failed[one.peer] = reason(fault)
            continue
        found.records.append(
            Record(
                task, one.peer, version(one.package), one.settings, seconds[one], quality, measure,
                same=one.same, note=one.note,
            )
        )  # fmt: skip
    return found


def version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return installed(package)
    except PackageNotFoundError:
        return "unknown version"


def reason(fault: BaseException) -> str:
    """Return what went wrong as one line."""
    return " ".join(f"{type(fault).__name__}: {fault}".split())[:300]


def is_installed(package: str) -> bool:
    """Return whether there is such a package, be it broken or not."""
    try:
        installed(package)
    except PackageNotFoundError:
        return False
    return True
