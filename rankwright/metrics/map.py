"""Mean average precision: precision at the rank of every relevant document, averaged.

    AP@k = (1/D) sum_{r = 1}^{min(k, n)} rel_r C_r / r,     C_r = rel_1 + ... + rel_r            (1)

with D = R or min(R, k). Over the orders of ties (`mcsherry2008ties`), rank r = c + j in a
block that starts after c documents and holds t, m of them relevant, contributes

    (m/t) (C_c + 1 + (j - 1)(m - 1)/(t - 1)) / r                                                 (2)

Taken together, as scikit-learn does, the block contributes m C_{c + t} / (c + t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import RelevanceMetric
from rankwright.metrics.ranked import BINARY, Judged, Ranked
from rankwright.metrics.swap import MAP_SWAP, SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _average_precision(lo, hi, indptr, g, ends, together, min_grade, cut, out):
    for q in range(lo, hi):
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        seen = total = 0.0
        r = start
        while r < last:
            end = ends[r] if len(ends) else r + 1
            found = 0
            for i in range(r, end):
                found += g[i] >= min_grade
            if found == 1 and end == r + 1:
                total += (seen + 1.0) / (end - start)  # (1)
            elif found and together:
                share = (min(end, last) - r) / (end - r)
                total += share * found * (seen + found) / (end - start)
            elif found:
                slope = (found - 1) / (end - r - 1)
                for i in range(r, min(end, last)):
                    total += found / (end - r) * (seen + 1.0 + (i - r) * slope) / (i + 1 - start)
            seen += found
            r = end
        out[q] = total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class MAP(RelevanceMetric):
    """Average precision over the relevant documents, of the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "map", qid=[1] * 4)["map"]
    0.5
    """

    key: ClassVar[str] = "map"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    when_empty: ClassVar[str] = "convention"

    def setting(self, clause: str) -> Any:  # noqa: D102
        if clause == "empty" and self.empty is None and self.convention.empty_map is not None:
            return self.convention.empty_map
        return super().setting(clause)

    @property
    def own_ties(self) -> bool:  # noqa: D102
        return self.ties is None and self.convention.map_ties == "together"

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        together = self.own_ties and not mean
        blocks = ranked.blocks(mean or together)
        min_grade, cut = float(self.setting("min_grade")), self.cut(ranked.judged)
        ranked.map(_average_precision, ranked.grades, blocks, together, min_grade, cut, out)
        out /= self._divisor(ranked.judged)

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return what it takes to know the effect of swapping two documents."""
        judged = self.judge(data)
        gains = judged.gains(judged.grades, BINARY, self.setting("min_grade"))
        return SwapForm.of(self, judged, MAP_SWAP, gains, np.empty(0), self._divisor(judged))

    def _divisor(self, judged: Judged) -> F64:
        relevant = judged.relevant(self.setting("min_grade"))
        if self.k is not None and self.convention.map_denominator == "min(R,k)":
            return np.minimum(relevant, self.k)
        return relevant
