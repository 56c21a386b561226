"""Ctrl-C between the rounds of models that call back."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager

from rankwright.core.types import Callback


@contextmanager
def until_interrupted(callback: Callback, rounds: Sized) -> Iterator[None]:
    """Let Ctrl-C end what runs inside, and inform the callback; not before there are ``rounds``."""
    try:
        yield
    except KeyboardInterrupt:
        if not len(rounds):
            raise
        callback.interrupted = True
