"""Bytes of a file, plain or compressed (``.gz``, ``.xz``, ``.bz2``, ``.zst``); ``-`` is stdin."""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from rankwright.errors import DataError, MissingExtraError


def zstandard(raw: BinaryIO, mode: str) -> Any:
    """Open ``raw`` to read (``rb``) or write (``wb``) Zstandard; pyarrow has the codec."""
    try:
        pa = import_module("pyarrow")
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", "parquet", "a .zst file") from None
    if mode == "wb":
        return pa.CompressedOutputStream(pa.PythonFile(raw, "w"), "zstd")
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"))


COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": zstandard,
}
_FIRST_BYTES = {
    ".gz": b"\x1f\x8b\x08",
    ".xz": b"\xfd7zXZ\x00",
    ".bz2": b"BZh",
    ".zst": b"\x28\xb5\x2f\xfd",
}
_UNREAD = (  # suffixes, first bytes, what to do
    ((".zip", ".xlsx", ".ods"), b"PK\x03\x04", "unpack the archive, or save the sheet as .csv"),
    ((".7z",), b"7z\xbc\xaf\x27\x1c", "unpack the archive"),
    ((".rar",), b"Rar!", "unpack the archive"),
    ((".z",), b"\x1f\x9d", "uncompress it"),
    ((".lz4",), b"\x04\x22\x4d\x18", "uncompress it"),
)
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
            first = raw.peek(10)[:10] if hasattr(raw, "peek") else b""
            refuse_unread(path, first)
            kind = _compression(path, first)
            if kind is None:
                yield raw
            else:
                with COMPRESSED[kind](raw, "rb") as stream:
                    yield stream
    except FileNotFoundError:
        raise DataError(missing_file(path)) from None
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as fault:
        if isinstance(fault, OSError) and fault.errno is not None:  # the system's, not a codec's
            raise DataError(f"{name} cannot be read: {fault.strerror or fault}.") from None
        raise DataError(
            f"{name} is damaged or truncated: {str(fault).rstrip('.')}; fetch it again, "
            "or rename it if it is not compressed."
        ) from None


def plain_suffix(path: str | Path) -> str:
    """Return the suffix that tells the format, without that of the compression: ``.txt``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def packed_or_plain(path: str | Path) -> Path | None:
    """Return ``path``, or the file of that name with a compression's suffix; None: neither."""
    names = [Path(f"{path}{ending}") for ending in ("", *COMPRESSED)]
    return next((name for name in names if name.is_file()), None)


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


def refuse_unread(path: str | Path, first: bytes = b"") -> None:
    """Say what to do with an archive, told by its first bytes or, without any, by its name."""
    for suffixes, magic, advice in _UNREAD:
        if first.startswith(magic) or (not first and Path(path).suffix.lower() in suffixes):
            read = ", ".join(COMPRESSED)
            raise DataError(
                f"{display_name(path)} is in a compression format that is not supported; "
                f"{advice} first ({read} are read as they are)."
            )


def reads_file(stream: BinaryIO) -> bool:
    """Whether ``stream`` gives the bytes of a file as they lie on disk, not decompressed."""
    return isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)


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
