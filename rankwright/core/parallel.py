"""Threads over queries, with the same bytes for any number of threads.

Work is cut into ranges of whole queries that depend on the data alone; each range runs a serial
``nogil`` kernel, so no kernel needs ``parallel=True`` and no result depends on who ran it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import UsageError

Item = TypeVar("Item")

_DOCUMENTS_PER_RANGE = 16_384
_CHUNK = 4_096

_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork


def thread_count(n_jobs: int | None = None) -> int:
    """Return the number of threads: ``n_jobs``, as in joblib one less than all for each below -1.

    None is ``RANKWRIGHT_THREADS``, or else, as -1, all the cores that we may use: those that the
    process is bound to, and no more than the CPU quota of its container pays for.
    """
    if n_jobs is None:
        text = os.environ.get("RANKWRIGHT_THREADS", "")
        if not text:
            return _cores()
        if not text.isdecimal():
            raise UsageError(f"RANKWRIGHT_THREADS must be a whole number from 1, not '{text}'.")
        n_jobs = int(text)
    if n_jobs < 0:
        return max(1, _cores() + 1 + n_jobs)
    if n_jobs == 0:
        raise UsageError("the number of threads must be 1 or more, or -1 for all CPUs, not 0.")
    return n_jobs


def map_queries(
    kernel: Callable[..., None], indptr: I64, *args: Any, n_jobs: int | None = None
) -> None:
    """Call ``kernel(lo, hi, indptr, *args)`` for ranges of queries that cover all of them once."""
    bounds = query_ranges(indptr)
    map_ranges(kernel, bounds, indptr, *args, n_jobs=n_jobs)


def map_ranges(
    kernel: Callable[..., None], bounds: I64, *args: Any, n_jobs: int | None = None
) -> None:
    """Call ``kernel(bounds[i], bounds[i + 1], *args)`` for every i, on up to ``n_jobs``."""
    threads = max(1, min(thread_count(n_jobs), len(bounds) - 1))
    ranges = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

    def run(first: int) -> None:
        for lo, hi in ranges[first::threads]:
            kernel(lo, hi, *args)

    if threads == 1:
        run(0)
        return
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads - 1, thread_name_prefix="rankwright")
    others = [_pools[threads].submit(run, first) for first in range(1, threads)]
    try:
        run(0)  # the caller works too: it would only wait
    finally:
        for future in others:
            future.result()


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, each next one made in a thread while one is in use."""
    context, ended = copy_context(), object()  # what bounds memory here bounds it there

    def step() -> Any:
        return context.run(next, items, ended)

    with ThreadPoolExecutor(1, thread_name_prefix="rankwright-read") as reader:
        waiting = reader.submit(step)
        while (item := waiting.result()) is not ended:
            waiting = reader.submit(step)
            yield item


def query_ranges(indptr: I64, per_range: int | None = None) -> I64:
    """Return query numbers that cut the queries into ranges of about equal documents.

    A range has about ``per_range`` documents at most, 16,384 by default.
    """
    documents = int(indptr[-1] - indptr[0])
    pieces = math.ceil(documents / (per_range or _DOCUMENTS_PER_RANGE))
    if pieces == 1:  # asked for again and again while a small model is fitted
        return np.array([0, len(indptr) - 1])
    goals = indptr[0] + documents * np.arange(1, pieces) / max(1, pieces)
    cuts = np.searchsorted(indptr, goals)
    return np.unique(np.concatenate(([0], cuts, [len(indptr) - 1]))).astype(np.int64)


@contextmanager
def documents_per_range(documents: int) -> Iterator[None]:
    """Cut queries into ranges of about so many documents: for checks of threads on small data."""
    global _DOCUMENTS_PER_RANGE
    before, _DOCUMENTS_PER_RANGE = _DOCUMENTS_PER_RANGE, documents
    try:
        yield
    finally:
        _DOCUMENTS_PER_RANGE = before


def row_ranges(n: int, rows: int) -> I64:
    """Return row numbers that cut ``n`` rows into ranges of ``rows``, the last one shorter."""
    return np.append(np.arange(0, n, rows), n).astype(np.int64)


def ordered_sum(values: F64) -> float:
    """Add ``values`` in fixed chunks from left to right: one result, however they were computed."""
    starts = np.arange(0, len(values), _CHUNK)
    return math.fsum(np.add.reduceat(values, starts)) if len(values) else 0.0


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _cpu_quota()
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


@cache
def _cpu_quota(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float | None:
    """Return the cores' worth of time that control groups leave us, None where they set no limit.

    The least of our group and those above it: ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of
    version 1. Asked once: a limit that is changed later is not seen.
    """
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None  # not Linux
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folders = [root, root / "unified"]
        elif "cpu" in controllers.split(","):
            folders = [root / controllers, root / "cpu"]
        else:
            continue
        for folder in folders:
            place = folder / path.lstrip("/")
            limits += [
                _group_limit(up) for up in (place, *place.parents) if up.is_relative_to(folder)
            ]
    return min((limit for limit in limits if limit is not None), default=None)


def _group_limit(folder: Path) -> float | None:
    """Return the limit of one control group in cores."""
    try:
        if (modern := folder / "cpu.max").exists():
            quota, period = modern.read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):  # no such file, or "max"
        return None
