"""Named random streams: the same seed and the same name give the same numbers, in any order.

A stream's name is a path such as ``("boost", "rows", 17)``. Because each has its own counter-based
generator, sampling in one place never moves another, and a resumed run samples as the first did.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator called ``name`` under ``seed``."""
    return np.random.Generator(np.random.Philox(key=_digest(seed, name)))


def _digest(seed: int, name: tuple[str | int, ...]) -> int:
    text = "\x1f".join([str(int(seed)), *(f"{type(part).__name__}:{part}" for part in name)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
