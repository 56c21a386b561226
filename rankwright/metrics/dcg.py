"""Discounted cumulative gain: what the documents earn, less the further down they stand.

    DCG@k = sum_{r = 1}^{min(k, n)} gain(g_r) discount(r)                                        (1)

with the gain 2^g - 1 or g and the discount of the convention (`jarvelin2002ndcg`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.core.types import F64
from rankwright.errors import DataError
from rankwright.metrics.position import PositionMetric, rank_weights
from rankwright.metrics.ranked import EXP2, LINEAR, Judged

_HIGHEST = 1000.0  # 2^1024 is infinite, and a list may hold many


@dataclass(frozen=True, repr=False, kw_only=True)
class DCG(PositionMetric):
    """Discounted cumulative gain of the first k ranks."""

    key: ClassVar[str] = "dcg"

    gain: str | None = None
    discount: str | None = None

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: D102
        if self.setting("gain") != "exp2":
            return LINEAR, 0.0
        highest = judged.once("highest grade", lambda: judged.grades.max(initial=0.0))
        if highest > _HIGHEST:
            raise DataError(
                f"grade {highest:g} has a gain of 2^{highest:g} - 1, beyond all numbers; write "
                f"{self.key}(gain=linear), or make the grades 0, 1, 2, ... up to a few."
            )
        return EXP2, 0.0

    def weights(self, n: int) -> F64:  # noqa: D102
        return rank_weights(self.setting("discount"), n)
