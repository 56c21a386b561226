"""How much memory a run takes, and a bound on it: ``with memory_limit("2GB") as gauge: ...``.

What is counted is anonymous memory, that which no file backs (Linux's RssAnon). Pages of mapped
files, such as the features of a store, do not count: the system takes them back when it needs the
room. A thread looks every `EVERY` seconds and records the peak; where the bound is passed by more
than `SLACK` of it, the run ends with a sentence.

Code that would copy features asks `scratch` for room, and code that can do with less looks at
`memory_bound`.
"""

from __future__ import annotations

import _thread
import ctypes
import math
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from rankwright.core.types import AnyArray, FloatMatrix
from rankwright.errors import DataError, MemoryLimitError, UsageError

EVERY = 0.01
SLACK = 0.05

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_BLOCK_BYTES = 1 << 24
_SPARSE_ROWS = 1 << 14
_SMALL_SHARE = 32  # of the bound: what is smaller is not worth a file
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STATM = Path("/proc/self/statm")

memory_bound: ContextVar[int | None] = ContextVar("memory bound", default=None)
"""The bytes that are allowed here, None where there is no bound."""


# --- sizes -----------------------------------------------------------------------------------


def parse_size(size: str | float) -> int:
    """Return the bytes that "2GB", "500 MB" (powers of 1000) or "1.5GiB" (of 1024) stand for."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None:
            raise UsageError(f"'{size}' is not an amount of memory; write 2GB, 500MB or 1.5GiB.")
        number, power, binary = match.groups()
        found = float(number) * (1024 if binary else 1000) ** _POWERS[power.lower()]
    else:
        found = size
    if not found < sys.maxsize:  # neither is NaN
        raise UsageError("an amount of memory must be realistic, such as 2GB.")
    if found < 1:
        raise UsageError(f"an amount of memory must be more than nothing, not {size}.")
    return int(found)


def shown_size(size: float) -> str:
    """Return a number of bytes as people write it: "1.53 GB"."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.3g} {unit}"
    return f"{size:.0f} bytes"


# --- measuring -------------------------------------------------------------------------------


def anonymous_bytes() -> int:
    """Return the anonymous memory that this process has in use."""
    try:
        _, resident, mapped, *_ = _STATM.read_bytes().split()
    except OSError:
        raise UsageError(
            "memory is measured by /proc/self/statm, which this system does not have; "
            "leave --memory out."
        ) from None
    return (int(resident) - int(mapped)) * _PAGE


def trim_memory() -> None:
    """Hand memory that was freed back to the system, where the C library keeps it (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Gauge:
    """Looks at anonymous memory from time to time; a context manager.

    Attributes
    ----------
    limit : int or None
        The bound in bytes.
    peak : int
        The most that was in use.
    passed : bool
        Whether that was more than the bound and its slack.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.peak = anonymous_bytes()
        self.passed = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory gauge", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        try:
            self._end.set()
            self._thread.join()
            self.look()
        except KeyboardInterrupt:  # our own, which came late
            if not self.passed:
                raise
        if kind is None:
            self.check()

    def look(self) -> int:
        """Take in what is in use at this moment; return the peak so far."""
        self._take_in()
        return self.peak

    def _take_in(self) -> int:
        in_use = anonymous_bytes()
        self.peak = max(self.peak, in_use)
        return in_use

    def check(self, more: str = "") -> None:
        """End the run with a sentence, and ``more``, where the bound was passed."""
        if self.passed and self.limit is not None:
            raise MemoryLimitError(
                f"the run was stopped: it used {shown_size(self.peak)} of anonymous memory, more "
                f"than the {shown_size(self.limit)} allowed and {SLACK:.0%} of slack; allow more, "
                f"or use a model that needs less{more}."
            )

    def _watch(self) -> None:
        while not self._end.wait(EVERY):
            in_use = self._take_in()
            if self.limit is None or self.passed or in_use <= self.limit:
                continue
            trim_memory()
            if in_use > (1 + SLACK) * self.limit < self._take_in():
                self.passed = True
                _thread.interrupt_main()


# --- the bound -------------------------------------------------------------------------------


@contextmanager
def memory_limit(limit: str | int | None) -> Iterator[Gauge]:
    """Bound the anonymous memory of what runs inside, and measure it.

    Parameters
    ----------
    limit
        Bytes, or "2GB", "500MB", "1.5GiB"; None measures without a bound.

    Raises
    ------
    MemoryLimitError
        If the bound was passed by more than `SLACK` of it. The run is interrupted as by Ctrl-C.
    UsageError
        In a thread other than the main one, which alone can be interrupted.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> with rw.memory_limit("8GB"):
    ...     ranker = rw.MEMR().fit(data)
    """
    size = None if limit is None else parse_size(limit)
    if size is not None and threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "a bound on memory holds in the main thread alone; bound the memory of the process."
        )
    gauge = Gauge(size)
    before = memory_bound.set(size)
    try:
        with _interruptible(size), gauge:
            yield gauge
    except KeyboardInterrupt:
        gauge.check()  # our own: raised with its reason
        raise
    finally:
        memory_bound.reset(before)


@contextmanager
def _interruptible(size: int | None) -> Iterator[None]:
    """Let an interrupt through where a shell started us in the background and so ignores it."""
    if size is None or signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, signal.SIG_DFL):
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def room() -> int | None:
    """Return how much of the bound is not in use; None where there is no bound."""
    most = memory_bound.get()
    return None if most is None else max(0, most - anonymous_bytes())


def scratch(shape: tuple[int, ...], dtype: Any) -> AnyArray:
    """Return an array to be filled: a mapped file without a name where memory is bounded.

    The file lies where temporary files do (``TMPDIR``) and is gone with the array.
    """
    most, size = memory_bound.get(), math.prod(shape) * np.dtype(dtype).itemsize
    if most is None or size * _SMALL_SHARE <= most:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(prefix="rankwright-") as stream:
            os.posix_fallocate(
                stream.fileno(), 0, size
            )  # a full disk is reported here, not when used
            return np.asarray(np.memmap(stream, dtype, mode="r+", shape=shape))
    except OSError as error:
        raise DataError(
            f"{shown_size(size)} of temporary space cannot be had in {tempfile.gettempdir()}: "
            f"{error.strerror or error}; let TMPDIR name a folder with more room."
        ) from None


def blocks(X: FloatMatrix) -> Iterator[slice]:
    """Yield the rows of a matrix in slices of about `_BLOCK_BYTES` each."""
    n, d = X.shape
    step = max(1, _BLOCK_BYTES // max(1, d * X.dtype.itemsize))
    for lo in range(0, n, step):
        yield slice(lo, min(lo + step, n))


def taken_rows(X: FloatMatrix, rows: AnyArray) -> FloatMatrix:
    """Return ``X[rows]``, in room from `scratch`."""
    if memory_bound.get() is None:
        return X[rows]
    if isinstance(X, np.ndarray):
        out = scratch((len(rows), X.shape[1]), X.dtype)
        for block in blocks(out):
            out[block] = X[rows[block]]
        return out
    counts = np.diff(X.indptr)[rows]
    starts = np.concatenate(([0], np.cumsum(counts))).astype(X.indptr.dtype)
    values, columns = (scratch((int(starts[-1]),), part.dtype) for part in (X.data, X.indices))
    for lo in range(0, len(rows), _SPARSE_ROWS):
        some = X[rows[lo : lo + _SPARSE_ROWS]]
        held = slice(starts[lo], starts[lo] + some.nnz)
        values[held], columns[held] = some.data, some.indices
    return _as_csr(values, columns, starts, X)


def taken_columns(X: FloatMatrix, columns: Sequence[int]) -> FloatMatrix:
    """Return ``X[:, columns]``, dense features in room from `scratch`."""
    if not isinstance(X, np.ndarray):
        return X[:, columns]
    out = scratch((X.shape[0], len(columns)), X.dtype)
    for block in blocks(X):
        out[block] = X[block, columns]
    return out


def like_csr(values: AnyArray, like: Any) -> FloatMatrix:
    """Return a sparse matrix with other values in the places of ``like``."""
    return _as_csr(values, like.indices, like.indptr, like)


def _as_csr(values: AnyArray, columns: AnyArray, starts: AnyArray, like: Any) -> FloatMatrix:
    made: Any = type(like)((len(starts) - 1, like.shape[1]), dtype=values.dtype)
    made.data, made.indices, made.indptr = values, columns, starts  # unread, as they are
    made.has_canonical_format = like.has_canonical_format
    return made  # type: ignore[no-any-return]
