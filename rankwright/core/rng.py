"""Named random streams: the same seed and the same name give the same numbers, in any order.

A stream's name is a path such as ``("boost", "rows", 17)``. Because each has its own counter-based
generator, sampling in one place never moves another, and a resumed run samples as the first did.
"""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import Any

import numpy as np

from rankwright.errors import UsageError


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator called ``name`` under ``seed``."""
    return np.random.Generator(np.random.Philox(key=_digest(seed, name)))


def _digest(seed: int, name: tuple[str | int, ...]) -> int:
    text = "\x1f".join([str(int(seed)), *(f"{type(part).__name__}:{part}" for part in name)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def seed_of(random_state: Any) -> int:
    """Return the seed of a ``random_state``: itself, a sample from it, or for None a fresh one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    raise UsageError(
        "random_state must be a whole number, a RandomState, a Generator or None, not "
        f"{random_state!r}."
    )
