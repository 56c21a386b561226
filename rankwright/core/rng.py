"""Named random streams: a seed and a name determine the numbers, in any order of use.

A name is a path such as ``("boost", "rows", 17)``. Each stream has its own counter-based generator,
so streams do not affect each other, and a resumed run samples the same numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator of ``name`` and ``seed``."""
    return np.random.Generator(np.random.Philox(key=_digest(seed, name)))


def _digest(seed: int, name: tuple[str | int, ...]) -> int:
    text = "\x1f".join([str(int(seed)), *(f"{type(part).__name__}:{part}" for part in name)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
