"""Folders of the compiled kernels.

Numba saves the machine code of kernels as pickles. Each kernel has a folder below ``kernels-HASH``
in the user's cache (`cache_root`). HASH covers the source of every kernel: after an edit of any
kernel all are compiled again, so that no kernel contains stale code of a kernel that it calls.

**Security.** Numba unpickles the files and runs the code in them. Therefore the cache is used only
if it belongs to this user and no other user can write to it. Folders are created with mode 0700. If
the cache belongs to another user, is a link, or other users can write to it, kernels are saved in a
private temporary folder until the process ends. Digests of the files detect damage.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("rankwright.core.jit")
_PACKAGE = Path(__file__).resolve().parents[1]
_KEEP_SECONDS = 30 * 86_400
_DIGESTS = "digests.json"
_threads = threading.RLock()


def cache_root() -> Path:
    """Return the user's folder for data that can be computed again."""
    if path := os.environ.get("RANKWRIGHT_CACHE"):
        return Path(path)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "rankwright"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwright"


def kernel_hash(package: Path = _PACKAGE) -> str:
    """Return a digest of every source file below ``package`` that defines a kernel."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if re.search(rb"^@\w*kernel$", source, re.MULTILINE):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(source)
    return digest.hexdigest()[:16]


@cache
def kernels_folder() -> Path:
    """Return the folder of all kernels of this version of the sources."""
    name = f"kernels-{kernel_hash()}"
    _close_default_root()
    for root in (cache_root().resolve(), _temporary_root()):
        try:
            path = private_folder(root / name)
            os.utime(path)  # marks it as in use
        except OSError as error:
            LOG.debug("kernels are not kept in %s: %s", root, error)
            continue
        _delete_old_folders(path)
        return path
    path = Path(tempfile.mkdtemp(prefix="rankwright-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    warn_once(
        f"other users can write to {cache_root()}, or you cannot, so compiled kernels are deleted "
        "after this run; set RANKWRIGHT_CACHE to a private folder."
    )
    return path


def private_folder(path: Path) -> Path:
    """Create a folder and its parent with mode 0700; raise if other users can write to them."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "geteuid"):
        for level in (path.parent, path):
            status = os.lstat(level)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise PermissionError(f"{level} is not a folder of this user.")
            if stat.S_IMODE(status.st_mode) & 0o022:
                raise PermissionError(f"other users can write to {level}.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} is not writable.")
    return path


def _close_default_root() -> None:
    """Make the default root private if a permissive umask let other users write to it."""
    if os.name != "nt" and not os.environ.get("RANKWRIGHT_CACHE"):
        with suppress(OSError):
            root = cache_root()
            if stat.S_IMODE(os.lstat(root).st_mode) & 0o022:
                root.chmod(0o700)  # fails if it belongs to another user


def _temporary_root() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"rankwright-{user}"


def _delete_old_folders(current: Path) -> None:
    for path in current.parent.glob("kernels-*"):
        with suppress(FileNotFoundError):  # another process may delete it at the same time
            if path != current and time.time() - path.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


@cache
def warn_once(sentence: str) -> None:
    """Log a problem of the cache, which affects nothing but the time to compile."""
    LOG.warning(sentence)


# --- the files of one kernel -------------------------------------------------------------------


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one thread of one process at a time use a folder.

    Two processes that save code for different argument types at the same time could overwrite each
    other's files, after which Numba would load code for the wrong types.
    """
    with _threads:
        descriptor = None
        with suppress(OSError):
            if fcntl is not None:
                folder.mkdir(mode=0o700, exist_ok=True)
                descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)


def has_code(folder: Path) -> bool:
    """Return whether Numba has saved code of a kernel."""
    return bool(_code_files(folder))


def is_intact(folder: Path) -> bool:
    """Return whether the files of a kernel are unchanged since `sign`, or there are none."""
    digests = _digests(folder)
    if not digests:
        return True
    try:
        return bool(digests == json.loads((folder / _DIGESTS).read_text(encoding="ascii")))
    except (OSError, ValueError):
        return False


def sign(folder: Path) -> None:
    """Write the digests of the files of a kernel."""
    path = folder / f"{_DIGESTS}.part"
    path.write_text(json.dumps(_digests(folder)), encoding="ascii")
    path.replace(folder / _DIGESTS)


def delete_code(folder: Path) -> None:
    """Delete the files that Numba wrote."""
    for path in folder.glob("*/"):
        shutil.rmtree(path, ignore_errors=True)


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in _code_files(folder)
    }


def _code_files(folder: Path) -> list[Path]:
    """Return the files that Numba wrote, which are in a folder for the path of the source."""
    return sorted(folder.glob("*/*.nb[ci]"))
