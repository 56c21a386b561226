"""The caller's watch, as a fit on mapped features needs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.core.types import F64, I64, Kept, Watch
from rankwright.data.ranking_data import RankingData


class MappedWatch:
    """A watch whose valid data has mapped features, and whose rows stand in the caller's order.

    Parameters
    ----------
    watch
        The caller's.
    rows
        The row of the caller's data that each row of the fit is.
    valid
        The caller's valid data with mapped features, where there is any.
    """

    def __init__(self, watch: Watch, rows: I64, valid: RankingData | None) -> None:
        self._watch, self._rows, self.valid = watch, rows, valid
        self.interrupted, self.keeps = False, watch.keeps

    @property
    def wants_train(self) -> bool:
        """Whether scores on the training data are looked at."""
        return self._watch.wants_train

    def seen(self, t: int, value: float, train: F64 | None, valid: F64 | None) -> bool:
        """Show a round to the caller's watch."""
        if train is not None:
            back = np.empty(len(train))
            back[self._rows] = train
            train = back
        return self._watch.seen(t, value, train, valid)

    def best(self) -> int:
        """Return the round to keep."""
        return self._watch.best()

    def resumed(self) -> Kept | None:
        """Return what an earlier run kept."""
        return self._watch.resumed()

    def keep(self, *offered: Any) -> None:
        """Offer what a later run needs."""
        self._watch.keep(*offered)
