"""Rank-biased precision: gain of a reader who continues to the next rank with probability p.

    RBP@k = (1 - p) sum_{r = 1}^{min(k, n)} p^(r - 1) gain(g_r)                                  (1)

with gain 1 for a relevant document (`moffat2008rbp`); in ranx the gain is the grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import Grade, PositionMetric, number_between
from rankwright.metrics.ranked import BINARY, LINEAR, Judged


@dataclass(frozen=True, repr=False, kw_only=True)
class RBP(PositionMetric):
    """Rank-biased precision of a reader with persistence p.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> round(evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "rbp", qid=[1] * 4)["rbp"], 4)
    0.2624
    """

    key: ClassVar[str] = "rbp"

    p: Annotated[float, number_between(0, 1)] = 0.8
    min_grade: Grade | None = None

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: ARG002, D102
        if self.convention.rbp_gain == "linear":
            return LINEAR, 0.0
        return BINARY, self.setting("min_grade")

    def weights(self, n: int) -> F64:  # noqa: D102
        return (1 - self.p) * self.p ** np.arange(n, dtype=np.float64)
