"""Files that appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import gzip
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from rankwright.data.source import COMPRESSED
from rankwright.errors import DataError, UsageError


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path``; rename it to ``path`` if the block succeeds."""
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    if path.exists() and not path.is_file():  # renaming would put a file in its place
        raise DataError(f"{path} is a device or a pipe; name a file to write to.")
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as fault:
        raise DataError(_not_written(path, fault)) from None
    finally:
        with suppress(OSError):  # a folder that is not there, or not ours, is told above
            partial.unlink(missing_ok=True)


def make_folder(path: str | Path) -> None:
    """Make a folder and those above it, or say why that cannot be."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise DataError(f"{path} cannot be made: {fault.strerror or fault}.") from None


def check_target(path: str | Path | None, option: str) -> None:
    """Say that a file cannot be written before hours of work, not after."""
    if path is None:
        return
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; {option} takes the name of a file.")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a folder; make it, or choose another {option}.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path.parent} is not writable; choose another {option}.")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is a device or a pipe; {option} takes the name of a file.")


@contextmanager
def atomic_text(path: str | Path) -> Iterator[TextIO]:
    """Open ``path`` for writing text that appears whole or not at all."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def open_target(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` for writing bytes, compressed as its suffix says; ``-`` is standard output.

    The file appears under its name when all is written, and not at all after a fault.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as stream:  # a device such as /dev/null must not be replaced
            yield stream
        return
    with (
        atomic_path(path) as partial,
        partial.open("wb") as raw,
        _compressing(raw, path.suffix.lower()) as stream,
    ):
        yield stream


def _not_written(path: Path, fault: OSError) -> str:
    """Return why a file could not be written, and what to do about it."""
    why = f"{path} cannot be written: {fault.strerror or fault}"
    if fault.errno == errno.ENOENT and not path.parent.is_dir():
        return f"{why}; make the folder {path.parent} first."
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{why}; nothing was left there: free some space, or write elsewhere."
    if fault.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{why}; choose a place where you may write."
    return f"{why}."


@contextmanager
def _compressing(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":  # without the time and the name, so that equal data gives equal bytes
        with gzip.GzipFile("", "wb", fileobj=raw, compresslevel=6, mtime=0) as stream:
            yield stream  # type: ignore[misc]
    elif suffix in COMPRESSED:
        with COMPRESSED[suffix](raw, "wb") as stream:
            yield stream
    else:
        yield raw
