"""Expected rank utility: grades above neutral, halved every alpha - 1 ranks.

    ERU = sum_{r = 1}^{n} 2^((1 - r)/(alpha - 1)) max(g_r - d, 0)                                (1)

(equation (16) of `le2007dorm`): d is the neutral grade and alpha the rank that is seen half as
often as the first. ``normalised`` divides by the ERU of the best list, as NDCG does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import PositionMetric, number_between
from rankwright.metrics.ranked import ABOVE, Judged


@dataclass(frozen=True, repr=False, kw_only=True)
class ERU(PositionMetric):
    """Expected rank utility, with half-life alpha and neutral grade d.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> round(evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "eru", qid=[1] * 4)["eru"], 4)
    2.0301
    """

    key: ClassVar[str] = "eru"

    alpha: Annotated[float, number_between(1)] = 5
    d: Annotated[float, number_between(-np.inf)] = 0
    normalised: bool = False

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: ARG002, D102
        return ABOVE, self.d

    def weights(self, n: int) -> F64:  # noqa: D102
        return np.exp2(-np.arange(n) / (self.alpha - 1))

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return self.best_sums(judged) if self.normalised else super().scale(judged)

    def value_when_empty(self) -> float:  # noqa: D102
        value = super().value_when_empty()
        return float(self.setting("empty")) if self.normalised and value == 0 else value
