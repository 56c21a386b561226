"""``@kernel``: compile a function with Numba and cache the machine code.

Kernels are plain module-level functions that call other kernels by name. Closures, function
arguments and jitclasses are not allowed, because Numba cannot load them from its cache.
``NUMBA_DISABLE_JIT=1`` runs kernels as Python. `rankwright.core.kernel_cache` describes the folder
of the machine code; ``rankwright warmup`` compiles all kernels at once.

To leave out a part of a kernel that a run does not use, pass None for an argument and test it with
``is None``: Numba removes such a branch before it compiles the kernel.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.types import IntegerLiteral, unliteral

from rankwright.core.kernel_cache import (
    LOG,
    cache_root,
    delete_code,
    has_code,
    is_intact,
    kernel_hash,
    kernels_folder,
    locked,
    sign,
    warn_once,
)

__all__ = [
    "Stopwatch",
    "cache_root",
    "compile_seconds",
    "duration",
    "inline_kernel",
    "is_kernel",
    "kernel",
    "kernel_hash",
    "quick_kernel",
    "without_collecting",
]

_DISPATCHER = type(numba.njit(lambda: None))


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first call, without the GIL, and keep the machine code on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwright.losses import kernel
    >>> @kernel
    ... def total(lo, hi, values):
    ...     s = 0.0
    ...     for i in range(lo, hi):
    ...         s += values[i]
    ...     return s
    >>> total(0, 2, np.array([1.0, 2.0, 3.0]))
    3.0
    """
    return _compiled(function)


def inline_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Insert a short function into the kernels that call it instead of compiling it separately."""
    return _compiled(function, inline="always")


def quick_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as `kernel` does, and allow sums in another order: several terms at a time."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def is_kernel(value: Any) -> bool:
    """Return whether a value is a compiled function."""
    return isinstance(value, _DISPATCHER) and not numba.config.DISABLE_JIT


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # hashes wrap around, as compiled ones do
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    dispatcher, folder = _in_folder(function, options)
    _compile_safely(dispatcher, folder)
    compiled: Callable[..., Any] = dispatcher
    return compiled


def _in_folder(function: Callable[..., Any], options: dict[str, Any]) -> tuple[Any, Path | None]:
    """Return the dispatcher of a function and the folder of its code; None: it is not kept."""
    if Path(function.__code__.co_filename).is_file():  # not in a notebook or an example
        folder = kernels_folder() / f"{function.__module__}.{function.__qualname__}"[:200]
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            dispatcher = numba.njit(cache=True, **options)(function)
            # If nothing can be written to our folder, Numba chooses another one, which is not ours.
            if Path(dispatcher.stats.cache_path).is_relative_to(folder):
                return dispatcher, folder
        except RuntimeError:  # Numba found no folder at all, for example on a full disk
            pass
        finally:
            numba.config.CACHE_DIR = before
    return numba.njit(**options)(function), None


def _compile_safely(dispatcher: Any, folder: Path | None) -> None:
    """Measure the time of ``dispatcher.compile``, and survive damaged files and a full disk.

    Numba calls this method on the first call with arguments of new types; it loads the machine
    code or compiles and saves it. Numba raises any kind of exception if a file is damaged, and
    cannot detect damage within machine code.
    """
    compile_or_load = dispatcher.compile

    def compile_(types: Sequence[Any]) -> Any:
        # Numba would compile a kernel for a constant argument 0 and again for other integers.
        types = tuple(unliteral(t) if isinstance(t, IntegerLiteral) else t for t in types)
        if types in dispatcher.overloads:
            return compile_or_load(types)
        with _timed(), without_collecting():
            if folder is None:
                return compile_or_load(types)
            with locked(folder):
                return from_folder(types, folder)

    def from_folder(types: tuple[Any, ...], folder: Path) -> Any:
        if not is_intact(folder):
            delete_code(folder)
            warn_once(f"the compiled kernel in {folder} was damaged; it is compiled again.")
        if not has_code(folder):
            _report_compiling()
        loaded_before = sum(dispatcher.stats.cache_hits.values())
        try:
            entry = compile_or_load(types)
            if sum(dispatcher.stats.cache_hits.values()) == loaded_before:
                sign(folder)
        except OSError as error:
            warn_once(f"compiled kernels cannot be kept ({error}); they are compiled in each run.")
            entry = compile_or_load(types)  # it is in memory by now
        return entry

    dispatcher.compile = compile_


@cache
def _report_compiling() -> None:
    LOG.info("Compiling for this machine, once for each kind of work.")


@contextmanager
def without_collecting() -> Iterator[None]:
    """Stop the garbage collector: it takes a tenth of the time of compiling and finds little."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# --- time --------------------------------------------------------------------------------------

_of_thread = threading.local()


def compile_seconds() -> float:
    """Return the seconds that this thread has waited for kernels to be compiled or loaded."""
    return float(getattr(_of_thread, "seconds", 0.0))


@contextmanager
def _timed() -> Iterator[None]:
    if getattr(_of_thread, "is_compiling", False):  # a kernel that another kernel calls
        yield
        return
    _of_thread.is_compiling, start = True, time.perf_counter()
    try:
        yield
    finally:
        _of_thread.is_compiling = False
        _of_thread.seconds = compile_seconds() + time.perf_counter() - start


class Stopwatch:
    """Seconds since it was created, without the time that this thread waited for the compiler."""

    def __init__(self) -> None:
        self._start, self._compiled = time.perf_counter(), compile_seconds()

    @property
    def compile_seconds(self) -> float:
        """Seconds in which kernels were compiled or loaded."""
        return compile_seconds() - self._compiled

    @property
    def seconds(self) -> float:
        """Seconds of the work itself."""
        return max(0.0, time.perf_counter() - self._start - self.compile_seconds)


def duration(seconds: float, compiling: float) -> str:
    """Return a text with the seconds of a fit, and the seconds of compiling if they matter."""
    more = f", and {compiling:.2f} s of compiling" if compiling >= 0.05 else ""
    return f"{seconds:.2f} s{more}"
