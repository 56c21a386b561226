"""Callbacks of a fit, as models need them: Ctrl-C between rounds, and mapped features."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64, Callback, CheckpointState
from rankwright.data.ranking_data import RankingData


@contextmanager
def until_interrupted(callback: Callback, rounds: Sized) -> Iterator[None]:
    """Let Ctrl-C end what runs inside, and inform the callback; not before there are ``rounds``."""
    try:
        yield
    except KeyboardInterrupt:
        if not len(rounds):
            raise
        callback.interrupted = True


class MappedCallback:
    """A callback with mapped features of the validation data, and rows in the caller's order.

    Parameters
    ----------
    callback
        The caller's.
    rows
        The row of the caller's data that each row of the fit is.
    valid
        The caller's validation data with mapped features, where there is any.
    """

    def __init__(self, callback: Callback, rows: I64, valid: RankingData | None) -> None:
        self._callback, self._rows, self.valid = callback, rows, valid
        self.interrupted, self.wants_state = False, callback.wants_state

    @property
    def wants_train(self) -> bool:
        """Whether scores on the training data are looked at."""
        return self._callback.wants_train

    def on_iteration(self, t: int, value: float, train: F64 | None, valid: F64 | None) -> bool:
        """Show a round to the caller's callback."""
        if train is not None:
            back = np.empty(len(train))
            back[self._rows] = train
            train = back
        return self._callback.on_iteration(t, value, train, valid)

    def best(self) -> int:
        """Return the round to keep."""
        return self._callback.best()

    def load_state(self) -> CheckpointState | None:
        """Return what an earlier run kept."""
        return self._callback.load_state()

    def save_state(self, *offered: Any) -> None:
        """Offer what a later run needs."""
        self._callback.save_state(*offered)
