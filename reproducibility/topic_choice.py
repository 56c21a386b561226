"""Which of the weights that a method offers for a topic are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.types import F64


@dataclass(frozen=True)
class Candidate:
    """Weights that a method offers for a topic, and how they were found."""

    coef: F64
    setting: dict[str, float]
    optimality: float = np.nan


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate with its weights as a sparse row, and its value on valid, larger is better."""

    coef: Any
    setting: dict[str, float]
    optimality: float
    value: float

    @property
    def zero_share(self) -> float:
        """The share of weights that are 0."""
        return 1.0 - float(self.coef.nnz) / float(self.coef.shape[1])


def packed(measured: tuple[Candidate, float]) -> Offer:
    """Return a candidate and its value as an offer."""
    one, value = measured
    return Offer(sparse.csr_array(one.coef[None]), one.setting, one.optimality, value)


@dataclass(frozen=True, slots=True)
class Rule:
    """Keep the best on valid of those that are sparse enough; or the first that is near it.

    Parameters
    ----------
    within
        How near, as a share of the best value; 0: the best itself, the first of equals.
    early_stopping_rounds
        Look no further after this many candidates without a better one.
    min_zero
        The share of weights 0 that makes a candidate sparse enough.
    """

    within: float
    early_stopping_rounds: int | None
    min_zero: float

    def choose(self, measured: Iterable[tuple[Candidate, float]]) -> list[Offer]:
        """Return the one that is kept for a topic, none where there is none."""
        kept: list[Offer] = []
        best, best_at = -np.inf, 0
        for number, one in enumerate(measured):
            offer = packed(one)
            if offer.zero_share < self.min_zero:
                continue
            if np.isnan(offer.value):  # without valid the last is kept
                kept = [offer]
                continue
            if offer.value > best:
                best, best_at = offer.value, number
                kept = [before for before in kept if self._near(before.value, best)]
            if self._near(offer.value, best):
                kept.append(offer)
            if (
                self.early_stopping_rounds is not None
                and number - best_at >= self.early_stopping_rounds
            ):
                break
        return kept[:1]

    def choose_together(self, offers: Sequence[Sequence[Offer]]) -> list[list[Offer]]:
        """Return for each topic the one whose number is best on average."""
        able = [found for found in offers if found]
        numbers = range(min(map(len, able), default=0))
        mean = {
            k: float(np.mean([found[k].value for found in able]))
            for k in numbers
            if np.mean([found[k].zero_share for found in able]) >= self.min_zero
        }
        if not mean:
            return [[] for _ in offers]
        best = max(mean.values())
        chosen = next(k for k, value in mean.items() if self._near(value, best))
        return [[found[chosen]] if found else [] for found in offers]

    def _near(self, value: float, best: float) -> bool:
        return value >= best - self.within * abs(best)
