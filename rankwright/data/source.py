"""Bytes of a file, whatever it is wrapped in: plain, ``.gz``, ``.xz``, ``.bz2``; ``-`` is stdin."""

from __future__ import annotations

import bz2
import difflib
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rankwright.errors import DataError

COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
}
_FIRST_BYTES = {".gz": b"\x1f\x8b\x08", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}
_BZ2_BLOCK = b"1AY&SY"
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/{1,2}[^/]")  # Path makes one slash of two


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` is standard input) for reading its decompressed bytes.

    Compression is known by the name or by the first bytes; faults are one sentence with the file.
    """
    standard = str(path) == "-"
    refuse_address(path)
    path = Path(path)
    if not standard and path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    name = display_name(path)
    try:
        with _standard_input() if standard else open(path, "rb") as raw:
            kind = _compression(path, raw.peek(10)[:10] if hasattr(raw, "peek") else b"")
            if kind is None:
                yield raw
            else:
                with COMPRESSED[kind](raw, "rb") as stream:
                    yield stream
    except FileNotFoundError:
        raise DataError(missing_file(path)) from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as fault:
        raise DataError(
            f"{name} is damaged or cut short: {str(fault).rstrip('.')}; fetch it again, "
            "or rename it if it is not compressed."
        ) from None
    except OSError as fault:
        raise DataError(f"{name} cannot be read: {fault.strerror or fault}.") from None


def plain_suffix(path: str | Path) -> str:
    """Return the suffix that tells the format, without that of the compression: ``.txt``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def missing_file(path: str | Path) -> str:
    """Return the sentence for a file that is not there, with names in its folder that come near."""
    path = Path(path)
    if not path.parent.is_dir():
        return f"{path} does not exist, nor does the folder {path.parent}; check the path."
    names = [found.name for found in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=2, cutoff=0.75)
    hint = f"did you mean {' or '.join(str(path.parent / name) for name in near)}?"
    return f"{path} does not exist; {hint if near else 'check the path.'}"


def refuse_address(path: str | Path) -> None:
    """Say that an address on the net is not a file."""
    if _ADDRESS.match(str(path)) and not Path(path).exists():
        raise DataError(
            f"{path} is an address, and files are read from this machine alone; "
            "download it first, then name the file."
        )


def display_name(path: str | Path) -> str:
    """Return ``path`` as an error message names it."""
    return "standard input" if str(path) == "-" else str(path)


@contextmanager
def _standard_input() -> Iterator[Any]:
    yield sys.stdin.buffer  # not ours to close


def _compression(path: Path, first: bytes) -> str | None:
    for suffix, magic in _FIRST_BYTES.items():
        if first.startswith(magic) and (suffix != ".bz2" or first[4:] == _BZ2_BLOCK):
            return suffix
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSED else None
