"""Hit rate, also called success: whether a relevant document is in the first k ranks.

    hit@k = [g_r >= min_grade for some r <= k]                                                   (1)

Over the orders of ties, with m relevant documents in a block of t that has s ranks above the
cut-off, the probability of none is

    prod_{i < s} (t - m - i) / (t - i)                                                           (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.metrics.base import RelevanceMetric
from rankwright.metrics.ranked import Ranked, first_relevant

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _hit(lo, hi, indptr, g, ends, min_grade, cut, out):
    for q in range(lo, hi):
        last = min(indptr[q] + cut[q], indptr[q + 1])
        r, end, relevant = first_relevant(indptr[q], last, g, ends, min_grade)
        none = 1.0
        for i in range(r, min(end, last)):
            none *= max(end - i - relevant, 0) / (end - i)  # (2)
        out[q] = 1.0 - none


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class Hit(RelevanceMetric):
    """Whether a relevant document is in the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "hit@2", qid=[1] * 4)["hit@2"]
    1.0
    """

    key: ClassVar[str] = "hit"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        min_grade, cut = float(self.setting("min_grade")), self.cut(ranked.judged)
        ranked.map(_hit, ranked.grades, ranked.blocks(mean), min_grade, cut, out)
