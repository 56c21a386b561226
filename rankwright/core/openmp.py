"""Passive waiting of OpenMP threads in LightGBM and torch.

LightGBM and torch use OpenMP threads, which by default spin while they wait for each other. On a
machine with busy cores, or in a container with a CPU quota, spinning uses the time of the working
threads, and fits become 20 to 90 times slower. An OpenMP library reads its settings when it is
loaded, so `passive_waiting` sets ``OMP_WAIT_POLICY`` during the import, and restores the
environment afterwards.

``OMP_WAIT_POLICY``, ``GOMP_SPINCOUNT`` and ``KMP_BLOCKTIME`` of the user are not changed.
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
from functools import cache
from pathlib import Path

_LOG = logging.getLogger(__name__)
_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # set by the user
_LIBRARY_PATTERNS = {"win32": "*.dll", "darwin": "*.dylib"}
_lock = threading.Lock()


@contextmanager
def passive_waiting() -> Iterator[None]:
    """Set passive waiting for OpenMP libraries that are loaded in this context."""
    with _lock:
        if any(name in os.environ for name in _CHOICES):
            yield
            return
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        try:
            yield
        finally:
            del os.environ["OMP_WAIT_POLICY"]


@cache
def load_lightgbm_library() -> None:
    """Load LightGBM's library before the import of LightGBM, so that its threads wait passively.

    Only this library is loaded, so other packages that LightGBM imports are not affected.
    """
    if "lightgbm" in sys.modules:
        _LOG.debug(
            "LightGBM's OpenMP library was loaded before Rankwright could set OMP_WAIT_POLICY to "
            "PASSIVE; fits are slow while other processes use the cores."
        )
        return
    spec = importlib.util.find_spec("lightgbm")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    pattern = _LIBRARY_PATTERNS.get(sys.platform, "*.so")
    with passive_waiting():
        for path in [path for folder in folders for path in Path(folder).glob(f"*/{pattern}")]:
            with suppress(OSError, AttributeError):  # the import raises a better error
                # LLVM's OpenMP library reads its settings when it is first called.
                ctypes.CDLL(str(path)).omp_get_max_threads()
