"""What an attack is: whole inputs, a way to damage one, and what reads it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PIECES = [b"", b" ", b"\n", b"\t", b",", b":", b"#", b"<split>", b"</split>", b"0", b"-1", b"1e999"]
PIECES += [b"nan", b"9" * 20, b"\0", b"\xff", b'"', b"{", b"}", b"null", b"-0.5", b"1 2 3"]


@dataclass(frozen=True)
class Attack:
    """One kind of input that is read.

    Attributes
    ----------
    about : str
        What is damaged, for the table of `make soak`.
    write : callable
        Called once with an empty folder: writes whole inputs, files or folders, and returns them.
    damage : callable
        Writes a damaged copy of a whole input to another path, as the random numbers have it.
    use : callable
        Reads an input and uses it in every way there is; raises a `RankwrightError` to refuse it.
    """

    about: str
    write: Callable[[Path], Sequence[Path]]
    damage: Callable[[Path, Path, random.Random], None]
    use: Callable[[Path], object]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return ``content`` with pieces put in, taken out, replaced, moved or cut off."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(changed) + 1), rng.choice([0, 1, 1, 2, 9, 60])
        piece = rng.choice([rng.choice(PIECES), rng.randbytes(1), bytes(changed[:length])])
        changed[at : at + length] = piece
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)
