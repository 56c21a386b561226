"""Named random streams: the same seed and the same name give the same numbers, whoever asks first.

A stream's name is a path such as ``("boost", "rows", 17)``. Because each has its own counter-based
generator, drawing in one place never moves another, and a resumed run draws as the first did.
"""

from __future__ import annotations

import hashlib

import numpy as np

from rankwright.errors import UsageError

RandomState = int | np.integer | np.random.Generator | np.random.RandomState | None
"""What ``random_state`` takes, as in scikit-learn."""


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator called ``name`` under ``seed``."""
    return np.random.Generator(np.random.Philox(key=_digest(seed, name)))


def generator(random_state: RandomState, *name: str | int) -> np.random.Generator:
    """Return the generator of ``random_state``: of a seed the stream called ``name``.

    A Generator is used as it is, a RandomState seeds one, and None gives another each time.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise UsageError(
            "random_state must be a whole number, a NumPy Generator or RandomState, or None, "
            f"not {random_state!r}."
        )
    return stream(int(random_state), *name)


def _digest(seed: int, name: tuple[str | int, ...]) -> int:
    text = "\x1f".join([str(int(seed)), *(f"{type(part).__name__}:{part}" for part in name)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
