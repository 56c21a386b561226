"""Log of interleaved lists and clicks: JSON lines for `rankwright.clicks.load_log`.

A separate thread appends whole lines, so that no ranking waits for a disk. An incomplete line,
after a crash or on a full disk, is removed. Lines that cannot be written, or not fast enough, are
counted and dropped. Python's rotating log handlers do not remove incomplete lines, do not lock the
file against a second server, and delete the oldest files.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankwright.data.streams import link_target
from rankwright.errors import UsageError
from rankwright.serve.monitoring import log_event

_MAX_WAITING = 10_000  # lines
_MAX_AT_ONCE = 256
_SECONDS_BETWEEN_WARNINGS = 10.0
_TAIL = 1 << 20  # longest line in bytes
_BEGIN = b'{"session"'  # each line begins so


class ImpressionLog:
    """A file to which lines are appended; at ``max_size`` bytes it is renamed.

    ``on_lost`` is called with a reason, ``queue`` or ``disk``, and the number of dropped lines.
    """

    def __init__(self, path: Path, max_size: int, on_lost: Callable[[str, int], None]) -> None:
        self.path, self._max_size, self._on_lost = link_target(path), max_size, on_lost
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_MAX_WAITING)
        self._warned = -_SECONDS_BETWEEN_WARNINGS
        self._file, self._size = _open_log(self.path)
        self._thread = threading.Thread(target=self._run, name="rankwright-impressions")
        self._thread.daemon = True
        self._thread.start()

    def append(self, line: dict[str, Any]) -> None:
        """Write a line soon, or drop it if too many are waiting."""
        try:
            self._waiting.put_nowait(json.dumps(line).encode() + b"\n")
        except queue.Full:
            self._lose("queue", 1, f"{_MAX_WAITING} lines are waiting")

    def close(self) -> None:
        """Write the waiting lines and close the file."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=5)
        self._thread.join(10)
        if not self._thread.is_alive():  # otherwise a write that hangs still uses the descriptor
            os.close(self._file)

    # --- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        ended = False
        while not ended:
            lines = [self._waiting.get()]
            with suppress(queue.Empty):
                while len(lines) < _MAX_AT_ONCE:
                    lines.append(self._waiting.get_nowait())
            ended = None in lines
            self._write([line for line in lines if line is not None])

    def _write(self, lines: Sequence[bytes]) -> None:
        try:
            if self._size > self._max_size:
                self._put_aside()
            written = self._write_whole(lines)
        except (OSError, UsageError) as error:  # the next lines may be written again
            self._lose("disk", len(lines), str(error))
        else:
            if written < len(lines):
                self._lose("disk", len(lines) - written, "the disk is full")

    def _write_whole(self, lines: Sequence[bytes]) -> int:
        """Append lines and return how many were written completely."""
        content = b"".join(lines)
        try:
            taken = os.write(self._file, content) if content else 0
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        whole = content.rfind(b"\n", 0, taken) + 1
        if whole < taken:
            os.ftruncate(self._file, self._size + whole)
        self._size += whole
        return content.count(b"\n", 0, whole)

    def _put_aside(self) -> None:
        """Rename the file to a name with the time, and begin a new one."""
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        aside = self.path.with_name(f"{self.path.stem}-{when}{self.path.suffix}")
        number = 1
        while aside.exists():
            number += 1
            aside = self.path.with_name(f"{self.path.stem}-{when}-{number}{self.path.suffix}")
        with suppress(FileNotFoundError):  # it was moved, or no new one could be opened
            os.rename(self.path, aside)
        before = self._file
        self._file, self._size = _open_log(self.path)
        os.close(before)
        log_event("impressions put aside", file=str(aside))

    def _lose(self, reason: str, lines: int, why: str) -> None:
        self._on_lost(reason, lines)
        if time.monotonic() - self._warned > _SECONDS_BETWEEN_WARNINGS:
            self._warned = time.monotonic()
            log_event("impressions lost", level=logging.ERROR, lines=lines, error=why)


def _open_log(path: Path) -> tuple[int, int]:
    """Open a log exclusively and remove an incomplete line; return its descriptor and size."""
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError as error:
        raise UsageError(f"--impressions: {path} cannot be written: {error.strerror}.") from None
    try:
        _lock(file, path)
        return file, _remove_incomplete_line(file, path)
    except BaseException:
        os.close(file)
        raise


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(
            f"--impressions: another server writes to {path}; give each server another file."
        ) from None


def _remove_incomplete_line(file: int, path: Path) -> int:
    size = os.fstat(file).st_size
    tail = os.pread(file, _TAIL, max(0, size - _TAIL)) if hasattr(os, "pread") else b"\n"
    half = len(tail) - (tail.rfind(b"\n") + 1)
    begun = tail[len(tail) - half :][: len(_BEGIN)]
    if half == _TAIL or not _BEGIN.startswith(begun):  # the file is something else
        raise UsageError(
            f"--impressions: {path} does not end as a log of impressions does; choose another file."
        )
    if half:
        os.ftruncate(file, size - half)
        log_event("half a line cut off", level=logging.WARNING, file=str(path), bytes=half)
    return size - half
