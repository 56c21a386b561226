"""``@kernel``: a Numba function whose cache can never be stale.

Numba checks only the file a function stands in, so a kernel kept its old machine code after a
helper in another file changed. Here all kernels share one cache folder named by a hash of every
source file that holds a kernel: edit one and all are compiled anew.

Write kernels as plain module-level functions that call other kernels by name; no closures, no
function arguments, no jitclasses, since those do not load from the cache. ``NUMBA_DISABLE_JIT=1``
runs them as Python. ``RANKWRIGHT_CACHE`` moves the folder. That kernels are being compiled is
told once, to the logger ``rankwright.core.jit``.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import config, event

_LOG = logging.getLogger(__name__)
_PACKAGE = Path(__file__).resolve().parents[1]
_KEEP_SECONDS = 30 * 86_400
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # for callers in C: there are none, and it takes time to compile
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call, without the GIL, and keep the machine code on disk."""
    return _compiled(function, fastmath=False)


def quick_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, and sums may be added in another order: several at a time, alike each time."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Callable[..., Any], fastmath: bool | set[str]) -> Callable[..., Any]:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(all="ignore")(function)  # hashes wrap around, as compiled ones do
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]
    try:  # Numba chooses the folder while it decorates; nobody else's kernels move
        compiled: Callable[..., Any] = numba.njit(**_OPTIONS, fastmath=fastmath)(function)
        return compiled
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]


class _FirstCompiled(event.Listener):
    """Tells why the first fit takes seconds longer: Numba says so of what the cache has not."""

    told = False

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__ or ""  # none where code was executed
        ours = module.startswith("rankwright.")
        if ours and not self.told:
            self.told = True
            _LOG.info("Compiling for this machine, once for each kind of task: 5 to 30 seconds.")

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _FirstCompiled())  # type: ignore[no-untyped-call]


def kernel_hash(package: Path = _PACKAGE) -> str:
    """Return a digest of every source file below ``package`` that defines a kernel."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source or b"@quick_kernel" in source:
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(source)
    return digest.hexdigest()[:16]


@cache
def _cache_folder() -> Path:
    folder = cache_root() / f"kernels-{kernel_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # in use; and refused where the folder is another user's
    except OSError:  # a read-only home: compile into a folder that lasts as long as the machine
        folder = Path(tempfile.gettempdir()) / f"rankwright-{os.getuid()}" / folder.name
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    _drop_old_folders(folder)
    return folder


def cache_root() -> Path:
    """Return the user's folder for what can be computed again."""
    if chosen := os.environ.get("RANKWRIGHT_CACHE"):
        return Path(chosen)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "rankwright"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwright"


def _drop_old_folders(current: Path) -> None:
    now = time.time()
    for other in current.parent.glob("kernels-*"):
        with suppress(FileNotFoundError):  # another process may drop it at the same time
            if other != current and now - other.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
