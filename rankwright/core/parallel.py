"""Threads over queries, with the same bytes for any number of threads.

Work is divided into ranges of whole queries that depend only on the data. Each range runs a serial
``nogil`` kernel, so kernels do not need ``parallel=True`` and results do not depend on the threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
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
    """Return the number of threads for ``n_jobs``, with joblib's meaning of negative numbers.

    None is ``RANKWRIGHT_THREADS`` if it is set, and otherwise, like -1, all cores that the process
    may use, by its CPU affinity and the CPU quota of its container.
    """
    if n_jobs is None:
        text = os.environ.get("RANKWRIGHT_THREADS", "")
        if not text:
            return _usable_cores()
        if not text.isdecimal():
            raise UsageError(f"RANKWRIGHT_THREADS must be a whole number from 1, not '{text}'.")
        n_jobs = int(text)
    if n_jobs < 0:
        return max(1, _usable_cores() + 1 + n_jobs)
    if n_jobs == 0:
        raise UsageError("the number of threads must be 1 or more, or -1 for all CPUs, not 0.")
    return n_jobs


def map_queries(
    kernel: Callable[..., None], indptr: I64, *args: Any, n_jobs: int | None = None
) -> None:
    """Call ``kernel(lo, hi, indptr, *args)`` for disjoint ranges of queries, which cover all."""
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
    futures = [_pools[threads].submit(run, first) for first in range(1, threads)]
    try:
        run(0)  # the calling thread would only wait
    finally:
        for future in futures:
            future.result()


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, and compute the next item in a thread meanwhile."""
    context, ended = copy_context(), object()

    def step() -> Any:
        return context.run(next, items, ended)

    with ThreadPoolExecutor(1, thread_name_prefix="rankwright-read") as reader:
        waiting = reader.submit(step)
        while (item := waiting.result()) is not ended:
            waiting = reader.submit(step)
            yield item


def query_ranges(indptr: I64, per_range: int | None = None) -> I64:
    """Return query numbers that divide the queries into ranges with similar numbers of documents.

    A range has at most about ``per_range`` documents, 16,384 by default.
    """
    documents = int(indptr[-1] - indptr[0])
    pieces = math.ceil(documents / (per_range or _DOCUMENTS_PER_RANGE))
    if pieces == 1:  # fast path: called in each round of small models
        return np.array([0, len(indptr) - 1])
    goals = indptr[0] + documents * np.arange(1, pieces) / max(1, pieces)
    cuts = np.searchsorted(indptr, goals)
    return np.unique(np.concatenate(([0], cuts, [len(indptr) - 1]))).astype(np.int64)


@contextmanager
def documents_per_range(documents: int) -> Iterator[None]:
    """Set the number of documents per range, to test threads on small data."""
    global _DOCUMENTS_PER_RANGE
    before, _DOCUMENTS_PER_RANGE = _DOCUMENTS_PER_RANGE, documents
    try:
        yield
    finally:
        _DOCUMENTS_PER_RANGE = before


def row_ranges(n: int, rows: int) -> I64:
    """Return row numbers that divide ``n`` rows into ranges of ``rows``; the last is shorter."""
    return np.append(np.arange(0, n, rows), n).astype(np.int64)


def ordered_sum(values: F64) -> float:
    """Return the sum in fixed chunks from left to right, equal for any number of threads."""
    starts = np.arange(0, len(values), _CHUNK)
    return math.fsum(np.add.reduceat(values, starts)) if len(values) else 0.0


@cache
def _usable_cores() -> int:
    """Return the number of cores by CPU affinity and the quota of the container."""
    from joblib import cpu_count  # slow to import

    return int(cpu_count())
