"""Timing that is fair to everyone: calls in turns, the least time of each; memory; growth.

A busy machine makes a call slower and never quicker, so the least of several runs is the time that
the work takes; runs in turns share what disturbs them. Memory is looked at in a process of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

Clock = Callable[[], float]


def seconds_of(call: Callable[..., Any], *args: Any, clock: Clock = time.perf_counter) -> float:
    """Return the seconds that one call takes."""
    start = clock()
    call(*args)
    return clock() - start


def least(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int,
    *,
    warm_up: bool = True,
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Return the least seconds of each of ``calls``, made in turns; a first turn is not timed."""
    seconds = dict.fromkeys(calls, math.inf)
    for turn in range(rounds + warm_up):
        for name, call in calls.items():
            taken = seconds_of(call, clock=clock)
            if turn >= warm_up:
                seconds[name] = min(seconds[name], taken)
    return seconds


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log time over log size: 1 where twice the work takes twice the time."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function of a module returns in a fresh process, where it may even crash."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def memory_in_use() -> int:
    """Forget the most memory that this process used so far; return the bytes in use (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS:")


def peak_memory() -> int:
    """Return the most bytes in use since `memory_in_use` was asked (Linux)."""
    return _status("VmHWM:")


def _status(name: str) -> int:
    return int(Path("/proc/self/status").read_text().partition(name)[2].split()[0]) * 1024
