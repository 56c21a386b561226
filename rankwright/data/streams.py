"""Files opened to read and to write: compressed ones, standard streams, whole files or none.

A file may be plain or compressed (``.gz``, ``.xz``, ``.bz2``, ``.zst``), and ``-`` is standard
input or output. What is written appears under its name when all of it is there: it is written
under another name beside its own and then renamed.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from rankwright.errors import DataError, UsageError, quoted

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


def zstandard(raw: BinaryIO, mode: str) -> Any:
    """Open ``raw`` to read (``rb``) or write (``wb``) Zstandard; pyarrow has the codec."""
    pa = import_module("pyarrow")
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
_UNPACKED_FREELY = 1 << 26  # bytes; repetitive text of some kilobytes may well shrink 1000-fold
_MOST_RATIO = 250  # LETOR text and logs shrink 5- to 50-fold; deflate reaches 1032 on one byte
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/{1,2}[^/]")  # Path makes one slash of two


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` is standard input) for reading its decompressed bytes.

    Compression is known by the name or by the first bytes; errors are one sentence with the file.
    Devices are refused, and compressed files that unpack to far more than data do.
    """
    standard = str(path) == "-"
    refuse_address(path)
    path = Path(path)
    if not standard and path.is_dir():
        raise DataError(f"{path} is a folder; a file is expected.")
    if not standard:
        refuse_device(path)
    name = display_name(path)
    try:
        with _standard_input() if standard else open(path, "rb") as raw:
            first = raw.peek(10)[:10] if hasattr(raw, "peek") else b""
            refuse_unread(path, first)
            kind = _compression(path, first)
            if kind is None:
                yield raw
            else:
                packed = _Counted(raw)
                with COMPRESSED[kind](packed, "rb") as stream:
                    yield io.BufferedReader(_Unpacked(stream, packed, name), _PIECE)
    except FileNotFoundError:
        raise DataError(missing_file(path)) from None
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's, not a codec's
            raise DataError(f"{name} cannot be read: {error.strerror or error}.") from None
        raise DataError(
            f"{name} is damaged or truncated: {str(error).rstrip('.')}; fetch it again, "
            "or rename it if it is not compressed."
        ) from None


_PIECE = 1 << 20


class _Counted(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.count = stream, 0

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes."""
        piece = self._stream.read(size)
        self.count += len(piece)
        return piece

    def readable(self) -> bool:
        """Return True."""
        return True


class _Unpacked(io.RawIOBase):
    """The decompressed bytes of a file, refused where they are far more than the compressed."""

    def __init__(self, stream: BinaryIO, packed: _Counted, name: str) -> None:
        self._stream, self._packed, self._name, self._count = stream, packed, name, 0

    def readinto(self, buffer: Any) -> int:
        """Fill a part of the buffer; return how much."""
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        self._count += len(piece)
        most = max(_UNPACKED_FREELY, _MOST_RATIO * self._packed.count)
        if self._count > most:
            raise DataError(
                f"{self._name} unpacks to more than {_MOST_RATIO} times its size, far more than "
                "data does; if it is sound, unpack it first and name the unpacked file."
            )
        return len(piece)

    def readall(self) -> bytes:
        """Return all that is left, in pieces that are checked one by one."""
        pieces = []
        while piece := self.read(_PIECE):
            pieces.append(piece)
        return b"".join(pieces)

    def readable(self) -> bool:
        """Return True."""
        return True


def plain_suffix(path: str | Path) -> str:
    """Return the suffix that names the format, without that of the compression: ``.txt``."""
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def packed_or_plain(path: str | Path) -> Path | None:
    """Return ``path``, or the file of that name with a compression's suffix; None: neither."""
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
    """Return the sentence for a file that is not there, with names in its folder that come near."""
    path = Path(path)
    if not path.parent.is_dir():
        return f"{path} does not exist, nor does the folder {path.parent}; check the path."
    names = [found.name for found in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=2, cutoff=0.75)
    hint = f"did you mean {' or '.join(str(path.parent / name) for name in near)}?"
    return f"{path} does not exist; {hint if near else 'check the path.'}"


def refuse_address(path: str | Path) -> None:
    """Say that an address on the web is not a file."""
    if _ADDRESS.match(str(path)) and not Path(path).exists():
        raise DataError(
            f"{path} is an address, and files are read from this machine alone; "
            "download it first, then name the file."
        )


def refuse_device(path: str | Path) -> None:
    """Say that a device is not a file; one such as /dev/zero never ends."""
    path = Path(path)
    if path.is_char_device() or path.is_block_device():
        raise DataError(f"{path} is a device; name a file or a pipe, or - for standard input.")


def refuse_unread(path: str | Path, first: bytes = b"") -> None:
    """Say what to do with an archive, known by its first bytes or, without any, by its name."""
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


# --- writing ---------------------------------------------------------------------------------


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk, a quota or a file that is full."""
_BEFORE = "before-"  # of the name of a folder that is being replaced


@contextmanager
def partial_beside(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a new hidden file or folder beside ``path``, removed at the end unless it was renamed.

    It is locked as long as its writer lives, so that what killed writers of ``path`` left, which is
    removed first, differs from it. Where there are no such locks, nothing is removed.
    """
    remove_leftovers(path.parent, path.name)
    while True:
        partial = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.partial"
        if folder:
            partial.mkdir()
        else:
            partial.touch(exist_ok=False)
        with locked(partial, wait=True):
            if not partial.exists():
                continue  # another writer took it for a leftover before it was locked
            try:
                yield partial
            finally:
                with suppress(OSError):
                    _remove(partial)
            return


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed writers of ``name``, or of anything, left in ``folder``.

    One killed within `replace_folder` has left the folder that it was to replace; it is put back.
    """
    hidden = "." if name is None else f".{name}."
    try:
        names = os.listdir(folder)
    except OSError:  # which writing reports
        return
    for left in (folder / n for n in names if n.startswith(hidden) and n.endswith(".partial")):
        with suppress(OSError), locked(left, wait=False) as free:
            if free:
                target = folder / left.name[1:].rsplit(".", 3)[0]
                for before in left.glob(f"{_BEFORE}*") if left.is_dir() else ():
                    if not target.exists():
                        os.rename(before, target)
                _remove(left)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock on a file or folder; yield whether there is one."""
    try:
        descriptor = None if fcntl is None else os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # another process removed it
        descriptor = None
    if descriptor is None:
        yield False
        return
    try:
        held = False
        with suppress(OSError):  # another process holds it, or the file system has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            held = True
        yield held
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replace_folder(made: Path, path: Path) -> None:
    """Rename the folder ``made`` to ``path``; others may do the same at once, and the last stays.

    A folder that is there is moved beside ``made``, where the caller removes it.
    """
    while True:
        try:
            os.rename(made, path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            with suppress(FileNotFoundError):  # another writer has moved it
                os.rename(path, made.with_name(f"{_BEFORE}{secrets.token_hex(4)}"))
        else:
            return


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path``; rename it to ``path`` if the block succeeds.

    If ``path`` is a symbolic link, the file that it names is written and the link stays.
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
    """Return the file or folder that a symbolic link names; ``path`` if it is not a link."""
    path = Path(path)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def make_folder(path: str | Path) -> None:
    """Make a folder and those above it, or say why that cannot be."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path} cannot be made: {error.strerror or error}.") from None


def check_target(path: str | Path | None, option: str) -> None:
    """Say that a file cannot be written before hours of work, not after."""
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
    """Open ``path`` for writing text that appears whole or not at all."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def open_target(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` for writing bytes, compressed as its suffix says; ``-`` is standard output.

    The file appears under its name when all is written, and not at all after an error.
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
        _compressing(raw, path.suffix.lower()) as stream,
    ):
        yield stream


def _not_written(path: Path, error: OSError) -> str:
    """Return why a file could not be written, and what to do about it."""
    why = f"{path} cannot be written: {error.strerror or error}"
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        return f"{why}; make the folder {path.parent} first."
    if error.errno in FULL:
        return f"{why}; nothing was left there: free some space, or write elsewhere."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
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


# --- text, line by line ----------------------------------------------------------------------

_BYTE_ORDER_MARK = "\ufeff"


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line that is not blank, without its end."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            text = decoded(raw, path, number).rstrip("\r\n")
            if text.strip():
                yield number, text


def decoded(raw: bytes, path: str | Path, line: int | None = None) -> str:
    """Return bytes of a file, or of one line of it, as text; a byte order mark is left out."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        where = "" if line is None else f", line {line}"
        raise DataError(f"{display_name(path)}{where} is not text in UTF-8.") from None
    return text.removeprefix(_BYTE_ORDER_MARK) if line in (None, 1) else text


def number_at(text: str, path: str | Path, line: int, what: str) -> float:
    """Return the number that ``text`` writes, or say which line of the file is wrong."""
    try:
        return float(text if "_" not in text else "")  # Python would take 1_000
    except ValueError:
        error_at(path, line, f"{what} {quoted(text)} is not a number")


def error_at(path: str | Path, line: int, what: str) -> NoReturn:
    """Raise the sentence for an error in one line of a file."""
    raise DataError(f"{display_name(path)}, line {line}: {what}.")
