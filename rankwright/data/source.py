"""Bytes of a file, whatever it is wrapped in: plain, ``.gz``, ``.xz``, ``.bz2``; ``-`` is stdin."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rankwright.errors import DataError

COMPRESSED = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` for reading its decompressed bytes; faults name the file in one sentence."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    opener = COMPRESSED.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as stream:
            yield stream  # type: ignore[misc]
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as fault:
        raise DataError(f"{path} is damaged or cut short: {fault}.") from None
    except OSError as fault:
        raise DataError(f"{path} cannot be read: {fault.strerror or fault}.") from None


def plain_suffix(path: str | Path) -> str:
    """Return the suffix that tells the format, without that of the compression: ``.txt``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()
