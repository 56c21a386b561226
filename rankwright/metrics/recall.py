"""Recall: share of the relevant documents in the first k ranks.

    recall@k = (1/R) sum_{r = 1}^{min(k, n)} [g_r >= min_grade]                                  (1)

with R the number of relevant documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.core.types import F64
from rankwright.metrics.p import Precision
from rankwright.metrics.ranked import Judged


@dataclass(frozen=True, repr=False, kw_only=True)
class Recall(Precision):
    """Share of the relevant documents that are in the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "recall@2", qid=[1] * 4)["recall@2"]
    0.5
    """

    key: ClassVar[str] = "recall"
    when_empty: ClassVar[str] = "convention"

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return judged.relevant(self.setting("min_grade"))
