"""Passive waiting of OpenMP threads in LightGBM and torch.

LightGBM and torch use OpenMP threads, which by default spin while they wait for each other. On a
machine with busy cores, or in a container with a CPU quota, spinning uses the time of the working
threads, and fits become 20 to 90 times slower. An OpenMP library reads its settings when it is
loaded, so `passive_waiting` sets ``OMP_WAIT_POLICY`` during the import, and restores the
environment afterwards.

``OMP_WAIT_POLICY``, ``GOMP_SPINCOUNT`` and ``KMP_BLOCKTIME`` of the user are not changed. If
LightGBM was imported before, it is too late for settings, and `spare_threads` avoids busy cores.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from threadpoolctl import ThreadpoolController

_LOG = logging.getLogger(__name__)
_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # set by the user
_STAT = Path("/proc/stat")
_lock = threading.Lock()
_passive: set[str] = set()  # OpenMP libraries with passive waiting, which Rankwright loaded
_lightgbm_spins: bool | None = None  # None until its library is loaded


@contextmanager
def passive_waiting() -> Iterator[None]:
    """Set passive waiting for OpenMP libraries that are loaded in this context."""
    with _lock:
        if _user_chose():
            yield
            return
        before = _openmp_libraries()
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        try:
            yield
        finally:
            del os.environ["OMP_WAIT_POLICY"]
        _passive.update(_openmp_libraries() - before)


def load_lightgbm_library() -> None:
    """Load LightGBM's library before the import of LightGBM, so that its threads wait passively.

    Only this library is loaded, so other packages that LightGBM imports are not affected.
    """
    global _lightgbm_spins
    if _lightgbm_spins is not None:
        return
    if "lightgbm" not in sys.modules:
        with passive_waiting():
            for path in _library_files("lightgbm"):
                with suppress(OSError, AttributeError):  # the import raises a better error
                    # LLVM's OpenMP library reads its settings when it is first called.
                    ctypes.CDLL(str(path)).omp_get_max_threads()
    _lightgbm_spins = not _user_chose() and not _passive
    if _lightgbm_spins:
        _LOG.debug(
            "LightGBM's OpenMP library was loaded before Rankwright could set OMP_WAIT_POLICY to "
            "PASSIVE; fits use no more threads than there are idle cores."
        )


def spare_threads(threads: int) -> int:
    """Return ``threads``, or at most the number of idle cores if LightGBM's threads spin."""
    if not _lightgbm_spins:
        return threads
    running = _running_tasks()
    if running is None:
        return threads
    return max(1, min(threads, (os.cpu_count() or 1) - (running - 1)))  # minus this process


def _running_tasks() -> int | None:
    """Return the number of tasks that run or wait for a core; None except on Linux."""
    with suppress(OSError, ValueError):
        for line in _STAT.read_text(encoding="ascii").splitlines():
            if line.startswith("procs_running"):
                return int(line.split()[1])
    return None


def _library_files(package: str) -> list[Path]:
    """Return the shared libraries in the folder of a package that is not imported."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    endings = {"win32": "*.dll", "darwin": "*.dylib"}
    ending = endings.get(sys.platform, "*.so")
    return [path for folder in folders for path in sorted(Path(folder).glob(f"*/{ending}"))]


def _user_chose() -> bool:
    return any(name in os.environ for name in _CHOICES)


def _openmp_libraries() -> frozenset[str]:
    libraries = ThreadpoolController().select(user_api="openmp").info()
    return frozenset(str(library["filepath"]) for library in libraries)
