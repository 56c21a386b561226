"""Open files for reading and writing: compressed files, standard streams, complete files or none.

A file may be compressed, as its suffix tells (``.gz``, ``.xz``, ``.bz2``, ``.zst``), and ``-`` is
standard input or output. A file is written under a hidden name in the same folder and renamed when
it is complete.
"""

from __future__ import annotations

import bz2
import difflib
import errno
import gzip
import io
import lzma
import os
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from rankwright.errors import DataError, UsageError, quoted

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
_UNSUPPORTED = {
    ".zip": "unpack the archive",
    ".7z": "unpack the archive",
    ".rar": "unpack the archive",
    ".xlsx": "save the sheet as .csv",
    ".ods": "save the sheet as .csv",
    ".z": "uncompress it",
    ".lz4": "uncompress it",
}
_UNPACKED_FREELY = 1 << 26  # bytes; repetitive text of some kilobytes may well shrink 1000-fold
_HIGHEST_RATIO = 250  # LETOR text and logs shrink 5- to 50-fold; deflate reaches 1032 on one byte
_BUFFER_BYTES = 1 << 20
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/{1,2}[^/]")  # Path makes one slash of two


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` is standard input) for reading its decompressed bytes.

    Devices are refused, and compressed files that are far larger when they are unpacked.
    """
    refuse_address(path)
    standard, path, name = str(path) == "-", Path(path), display_name(path)
    if not standard and path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    if not standard:
        refuse_device(path)
        refuse_unsupported(path)
    source: Any = nullcontext(sys.stdin.buffer)  # which stays open
    try:
        with source if standard else open(path, "rb") as raw:
            if path.suffix.lower() not in COMPRESSED:
                yield raw
                return
            limit = max(_UNPACKED_FREELY, _HIGHEST_RATIO * os.fstat(raw.fileno()).st_size)
            with _compression(raw, path.suffix.lower(), "rb") as stream:
                yield io.BufferedReader(_Limited(stream, limit, name), _BUFFER_BYTES)
    except FileNotFoundError:
        raise DataError(missing_file(path)) from None
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system, not of a codec
            raise DataError(f"{name} cannot be read: {error.strerror or error}.") from None
        raise DataError(
            f"{name} is damaged or truncated: {str(error).rstrip('.')}; fetch it again, "
            "or rename it if it is not compressed."
        ) from None


def _compression(raw: BinaryIO, suffix: str, mode: Any) -> Any:
    """Open ``raw`` to decompress (mode "rb") or compress ("wb") its bytes, if the suffix asks."""
    if suffix == ".gz":  # without time and name, so that equal data gives equal bytes
        return gzip.GzipFile("", mode, 6, raw, mtime=0)
    if suffix == ".xz":
        return lzma.open(raw, mode)
    if suffix == ".bz2":
        return bz2.open(raw, mode)
    if suffix != ".zst":
        return nullcontext(raw)
    import pyarrow as pa

    if mode == "wb":
        return pa.CompressedOutputStream(pa.PythonFile(raw, "w"), "zstd")
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"))


class _Limited(io.RawIOBase):
    """The bytes of a decompressed stream, refused beyond a limit."""

    def __init__(self, stream: BinaryIO, limit: int, name: str) -> None:
        self._stream, self._left, self._name = stream, limit, name

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self._left -= len(content)
        if self._left < 0:
            raise DataError(
                f"{self._name} unpacks to more than {_HIGHEST_RATIO} times its size, far more than "
                "data does; if it is intact, unpack it first and use the unpacked file."
            )
        return len(content)

    def readable(self) -> bool:
        return True


def plain_suffix(path: str | Path) -> str:
    """Return the suffix of the format without the suffix of a compression: ``.txt``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def packed_or_plain(path: str | Path) -> Path | None:
    """Return ``path`` or a compressed file of this name; None if there is no such file."""
    names = [Path(f"{path}{ending}") for ending in ("", *COMPRESSED)]
    return next((name for name in names if name.is_file()), None)


def beside(path: str | Path, *kinds: str) -> Path | None:
    """Return the file ``path.kind`` of the first kind that exists; ``path`` may end in ``.gz``."""
    names = [str(path)]
    if Path(path).suffix.lower() in COMPRESSED:
        names.append(str(Path(path).with_suffix("")))
    files = (Path(f"{name}.{kind}") for kind in kinds for name in names)
    return next((file for file in files if file.is_file()), None)


def missing_file(path: str | Path) -> str:
    """Return the error sentence for a missing file, with similar names in its folder."""
    path = Path(path)
    if not path.parent.is_dir():
        return f"{path} does not exist, nor does the folder {path.parent}; check the path."
    names = [file.name for file in path.parent.iterdir()]
    similar = difflib.get_close_matches(path.name, names, n=2, cutoff=0.75)
    hint = f"did you mean {' or '.join(str(path.parent / name) for name in similar)}?"
    return f"{path} does not exist; {hint if similar else 'check the path.'}"


def refuse_address(path: str | Path) -> None:
    """Raise for a web address."""
    if _ADDRESS.match(str(path)) and not Path(path).exists():
        raise DataError(
            f"{path} is an address, and files are read from this machine alone; "
            "download it first, then name the file."
        )


def refuse_device(path: str | Path) -> None:
    """Raise for a device. Reading /dev/zero would never end."""
    path = Path(path)
    if path.is_char_device() or path.is_block_device():
        raise DataError(f"{path} is a device; name a file or a pipe, or - for standard input.")


def refuse_unsupported(path: str | Path) -> None:
    """Raise for an archive or a compression format that is not supported, by its suffix."""
    if advice := _UNSUPPORTED.get(Path(path).suffix.lower()):
        raise DataError(
            f"{path} is in a compression format that is not supported; {advice} first "
            f"({', '.join(COMPRESSED)} can be read)."
        )


def reads_file(stream: BinaryIO) -> bool:
    """Return whether ``stream`` reads the bytes of a file on disk without decompression."""
    return isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)


def display_name(path: str | Path) -> str:
    """Return the name of a file in error messages."""
    return "standard input" if str(path) == "-" else str(path)


# --- writing ---------------------------------------------------------------------------------


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk, quota or file."""


@contextmanager
def partial_beside(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a new hidden file or folder next to ``path``; remove it unless it was renamed."""
    partial = _hidden_name(path)
    if folder:
        partial.mkdir()
    else:
        partial.touch(exist_ok=False)
    try:
        yield partial
    finally:
        if folder:
            shutil.rmtree(partial, ignore_errors=True)
        else:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _hidden_name(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(6)}.partial"


def replace_folder(folder: Path, path: Path) -> None:
    """Rename ``folder`` to ``path`` and remove the previous folder, if there is one.

    If several processes replace a folder at the same time, the last one wins.
    """
    previous = []
    while True:
        try:
            os.rename(folder, path)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        previous.append(_hidden_name(path))
        with suppress(FileNotFoundError):  # another writer has moved it
            os.rename(path, previous[-1])
    for name in previous:
        shutil.rmtree(name, ignore_errors=True)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path``; rename it to ``path`` if the block succeeds.

    If ``path`` is a symbolic link, its target is written and the link is not changed.
    """
    path = link_target(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    if path.exists() and not path.is_file():  # renaming would put a file in its place
        raise DataError(f"{path} is a device or a pipe; name a file to write to.")
    try:
        with partial_beside(path) as partial:
            yield partial
            os.replace(partial, path)
    except OSError as error:
        raise DataError(_not_written(path, error)) from None


def link_target(path: str | Path) -> Path:
    """Return the target of a symbolic link, or ``path`` if it is not a link."""
    path = Path(path)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def make_folder(path: str | Path) -> None:
    """Create a folder and its parents."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path} cannot be made: {error.strerror or error}.") from None


def check_target(path: str | Path | None, option: str) -> None:
    """Raise if a file cannot be written, before hours of work instead of after them."""
    if path is None:
        return
    path = link_target(path)
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
    """Open ``path`` for writing text; the file appears when it is complete."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def open_target(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` for writing bytes, compressed by its suffix; ``-`` is standard output.

    The file appears when it is complete, and not after an error.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        try:
            with path.open("wb") as stream:  # a device such as /dev/null must not be replaced
                yield stream
        except OSError as error:
            raise DataError(_not_written(path, error)) from None
        return
    with (
        atomic_path(path) as partial,
        partial.open("wb") as raw,
        _compression(raw, path.suffix.lower(), "wb") as stream,
    ):
        yield stream


def _not_written(path: Path, error: OSError) -> str:
    """Return the reason why a file could not be written, with advice."""
    reason = f"{path} cannot be written: {error.strerror or error}"
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        return f"{reason}; make the folder {path.parent} first."
    if error.errno in FULL:
        return f"{reason}; nothing was left there: free some space, or write elsewhere."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{reason}; choose a place where you may write."
    return f"{reason}."


# --- text, line by line ----------------------------------------------------------------------

_BYTE_ORDER_MARK = "\ufeff"


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line that is not blank."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            text = decoded(raw, path, number).rstrip("\r\n")
            if text.strip():
                yield number, text


def decoded(raw: bytes, path: str | Path, line: int | None = None) -> str:
    """Return the text of a file or a line, without a byte order mark."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        place = "" if line is None else f", line {line}"
        raise DataError(f"{display_name(path)}{place} is not text in UTF-8.") from None
    return text.removeprefix(_BYTE_ORDER_MARK) if line in (None, 1) else text


def number_at(text: str, path: str | Path, line: int, what: str) -> float:
    """Return a number of a text file, or raise an error with the line."""
    try:
        return float(text if "_" not in text else "")  # Python accepts 1_000
    except ValueError:
        error_at(path, line, f"{what} {quoted(text)} is not a number")


def error_at(path: str | Path, line: int, what: str) -> NoReturn:
    """Raise an error for a line of a file."""
    raise DataError(f"{display_name(path)}, line {line}: {what}.")
