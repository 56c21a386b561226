"""Damage stores, dense and sparse: bytes, numbers of their arrays, and what meta.json says."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from attack_formats import all_parts, use_data
from damage import Attack, mutated
from scipy import sparse

from rankwright.data.store import HEADER_BYTES, META, Store

_NUMBERS: list[Any] = [-1, 0, 1, 2, 7, 48, 49, 2**31 - 1, -(2**31), 2**62, -(2**63)]
_FLOATS: list[Any] = [np.nan, np.inf, -np.inf, 1e308, -1.0, 5e-324]
_VALUES = [None, -1, 0, 3, 10**18, 1e300, "x", "<f8", "<U0", "|V8", "O", [], {}, [2], [1, 10**30]]


def write(folder: Path) -> Sequence[Path]:
    """Write a store of dense and one of sparse features."""
    dense = all_parts()
    X = sparse.csr_array(np.where(dense.X > 0.3, dense.X, 0.0))
    paths = folder / "dense.store", folder / "sparse.store"
    Store().write(dense, paths[0])
    Store().write(replace(dense, X=X), paths[1])
    return paths


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy with numbers of one or two arrays, a field of meta.json, or bytes changed."""
    shutil.copytree(path, target)
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(sorted(one.name for one in path.iterdir()))
        kind = rng.random()
        if kind < 0.1:
            (target / name).write_bytes(mutated((target / name).read_bytes(), rng))
        elif kind < 0.25:
            _change_meta(target / META, rng)
        elif name != META:
            _change_numbers(target / name, rng)


def _change_meta(file: Path, rng: random.Random) -> None:
    try:
        meta = json.loads(file.read_bytes())
    except ValueError:  # damaged before
        return
    within, key = meta, rng.choice(sorted(meta))
    while isinstance(within[key], dict) and within[key] and rng.random() < 0.8:
        within, key = within[key], rng.choice(sorted(within[key]))
    within[key] = rng.choice(_VALUES)
    file.write_text(json.dumps(meta), encoding="utf-8")


def _change_numbers(file: Path, rng: random.Random) -> None:
    """Change numbers below the header, which stays as it is: a byte, or a number by another."""
    content = bytearray(file.read_bytes())
    if len(content) <= HEADER_BYTES:
        return
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(HEADER_BYTES, len(content))
        kind = rng.choice(["byte", "i4", "i8", "f8"])
        piece = rng.randbytes(1)
        if kind != "byte":
            size = int(kind[1])
            at -= (at - HEADER_BYTES) % size
            value = rng.choice(_FLOATS if kind == "f8" else _NUMBERS)
            piece = np.array([value], kind if kind == "f8" else "i8").tobytes()[:size]
        content[at : at + len(piece)] = piece
    file.write_bytes(content[: file.stat().st_size])


def use(path: Path) -> None:
    """Open a store, whole and in part, and use the data."""
    use_data(Store().read(path))
    use_data(Store().read_queries(path, 1, 5))


ATTACK = Attack("stores, dense and sparse", write, damage, use)
