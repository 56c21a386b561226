"""F1: the harmonic mean of precision and recall.

    F1@k = 2 P recall / (P + recall) = 2 hits / (k + R)                                          (1)

with k as precision counts it and hits the relevant documents in the first k ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.core.types import F64
from rankwright.metrics.p import Precision
from rankwright.metrics.ranked import Judged


@dataclass(frozen=True, repr=False, kw_only=True)
class F1(Precision):
    """Harmonic mean of precision and recall in the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "f1@2", qid=[1] * 4)["f1@2"]
    0.5
    """

    key: ClassVar[str] = "f1"
    when_empty: ClassVar[str] = "convention"

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        relevant = judged.relevant(self.setting("min_grade"))
        return (self.ranks_asked(judged) + relevant) / 2
