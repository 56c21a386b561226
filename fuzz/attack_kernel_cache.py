"""Damage files of compiled kernels: one gives the right numbers, or the kernel is compiled anew.

They hold pickles and machine code, and are the user's own, so they are damaged as a disk or a
killed writer does it, and not sealed again.
"""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from damage import Attack, mutated

from rankwright.core import kernel_cache
from rankwright.core.kernels import copy_values
from rankwright.errors import DataError

_SIGNATURE = (numba.float64[::1], numba.float64[::1])


class _OwnCache(kernel_cache.KernelCache):
    """The cache of `copy_values`, in one place with one entry."""

    def __init__(self, place: Any, entry: str) -> None:
        super().__init__(copy_values.py_func)
        self._place, self._own_entry = place, entry

    def _stored(self, codegen: Any) -> Any:  # noqa: ARG002
        return self._place

    def _entry(self, sig: Any) -> str:  # noqa: ARG002
        return self._own_entry


def write(folder: Path) -> Sequence[Path]:
    """Write an entry of a folder."""
    entry = folder / "entry.kernel"
    place = kernel_cache.Folder(folder)
    result = copy_values._compiler.compile(_SIGNATURE, None)
    _OwnCache(place, entry.name).save_overload(_SIGNATURE, result)
    return [entry]


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a file with some bytes changed, cut off, or swapped for a run of zeros."""
    content = path.read_bytes()
    if rng.random() < 0.3:  # what is left after a power cut
        at = rng.randrange(len(content))
        content = content[:at] + bytes(len(content) - at)
    target.write_bytes(mutated(content, rng))


def use(path: Path) -> None:
    """Load a kernel from a copy of the file and call it."""
    logging.disable()
    folder = path.parent / "in-use"  # damaged entries are removed
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / "entry.kernel")
    place = kernel_cache.Folder(folder)
    cache = _OwnCache(place, "entry.kernel")
    loaded = cache.load_overload(_SIGNATURE, copy_values.targetctx)
    if loaded is None:
        raise DataError("the kernel is compiled anew.")
    given, copied = np.array([1.0, 2.0]), np.zeros(2)
    loaded.entry_point(given, copied)
    if not np.array_equal(given, copied):
        raise AssertionError(f"{copied} instead of {given}")


ATTACK = Attack("compiled kernels", write, damage, use)
