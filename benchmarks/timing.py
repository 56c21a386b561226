"""Fair timing: calls in turns, the least time of each; memory of one process.

A busy machine makes a call slower and never faster, so the least of several times is the time that
the work takes. Calls in turns share what disturbs them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Clock = Callable[[], float]


def seconds_of(call: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """Return the seconds of one call."""
    start = clock()
    call()
    return clock() - start


def least(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int,
    *,
    warm_up: bool = True,
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Return the least seconds of each call, made in turns; a first turn is not timed."""
    seconds = dict.fromkeys(calls, math.inf)
    for turn in range(rounds + warm_up):
        for name, call in calls.items():
            taken = seconds_of(call, clock)
            if turn >= warm_up:
                seconds[name] = min(seconds[name], taken)
    return seconds


def in_new_process(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a function of a module, called in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def reset_peak_memory() -> int:
    """Reset the recorded peak of memory of this process; return the bytes in use (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return bytes_of("VmRSS:")


def peak_memory() -> int:
    """Return the peak of bytes in use since the last reset (Linux)."""
    return bytes_of("VmHWM:")


def bytes_of(name: str, process: int | str = "self") -> int:
    """Return an entry of a process's status in bytes, such as ``"VmRSS:"`` (Linux)."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(name)[2].split()[0]) * 1024
