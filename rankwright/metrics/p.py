"""Precision: share of relevant documents in the first k ranks.

    P@k = (1/k) sum_{r = 1}^{min(k, n)} [g_r >= min_grade]                                       (1)

Some conventions divide by min(k, n); without a cut-off k is n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import Grade, PositionMetric
from rankwright.metrics.ranked import BINARY, Judged


@dataclass(frozen=True, repr=False, kw_only=True)
class Precision(PositionMetric):
    """Share of relevant documents in the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "p@2", qid=[1] * 4)["p@2"]
    0.5
    """

    key: ClassVar[str] = "p"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    min_grade: Grade | None = None

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: ARG002, D102
        return BINARY, self.setting("min_grade")

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return self.ranks_asked(judged)

    def ranks_asked(self, judged: Judged) -> F64:
        """Return the number of ranks that precision is a share of."""
        cut = judged.sizes if self.k is None else self.cut(judged)
        if self.convention.precision_denominator == "min(k,n)":
            cut = np.minimum(cut, judged.sizes)
        return np.maximum(cut, 1).astype(np.float64)  # a run may have found nothing
