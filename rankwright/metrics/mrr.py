"""Mean reciprocal rank: one over the rank of the first relevant document.

    RR@k = 1/f if f <= k else 0,     f = min { r : g_r >= min_grade }                            (1)

Over the orders of ties (`mcsherry2008ties`), with the first relevant documents in a block of t, m
of them relevant, the first is the j-th of the block with probability

    C(t - j, m - 1) / C(t, m)                                                                    (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import RelevanceMetric
from rankwright.metrics.ranked import BINARY, Ranked, first_relevant
from rankwright.metrics.swap import MRR_SWAP, SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _reciprocal_rank(lo, hi, indptr, g, ends, min_grade, cut, out):
    for q in range(lo, hi):
        out[q] = 0.0
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        r, end, relevant = first_relevant(start, last, g, ends, min_grade)
        not_yet = 1.0
        for i in range(r, min(last, end - relevant + 1)):
            chance = relevant / (end - i)
            out[q] += not_yet * chance / (i + 1 - start)  # (2)
            not_yet *= 1.0 - chance


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class MRR(RelevanceMetric):
    """Reciprocal rank of the first relevant document.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "mrr", qid=[1] * 4)["mrr"]
    0.5
    """

    key: ClassVar[str] = "mrr"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        min_grade, cut = float(self.setting("min_grade")), self.cut(ranked.judged)
        ranked.map(_reciprocal_rank, ranked.grades, ranked.blocks(mean), min_grade, cut, out)
        if self.convention.mrr_precision == "float32":
            out[:] = out.astype(np.float32)

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return the data from which kernels compute the effect of swapping two documents."""
        judged = self.judge(data)
        gains = judged.gains(judged.grades, BINARY, self.setting("min_grade"))
        once = np.ones(data.n_queries)
        return SwapForm.of(self, judged, MRR_SWAP, gains, np.empty(0), once)
