"""Mean average precision: precision at the rank of every relevant document, averaged.

    AP@k = (1/D) sum_{r = 1}^{min(k, n)} rel_r C_r / r,     C_r = rel_1 + ... + rel_r            (1)

with D = R or min(R, k). Under the ``tf_ranking`` convention the weight of the document multiplies
each term of the sum, and D = R is a sum of weights. In the mean over the orders of ties
(`mcsherry2008ties`), rank r = c + j in a block that starts after c documents and has t documents, m
of them relevant, contributes

    (m/t) (C_c + 1 + (j - 1)(m - 1)/(t - 1)) / r                                                 (2)

If tied documents are ranked together, as in scikit-learn, the block contributes
m C_{c + t} / (c + t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.metrics.base import RelevanceMetric
from rankwright.metrics.ranked import BINARY, Judged, Ranked
from rankwright.metrics.swap import MAP_SWAP, SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _average_precision(lo, hi, indptr, g, w, ends, together, min_grade, cut, out):
    for q in range(lo, hi):
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        hits = total = 0.0
        r = start
        while r < last:
            end = ends[r] if len(ends) else r + 1
            relevant, weight = 0, 0.0
            for i in range(r, end):
                if g[i] >= min_grade:
                    relevant += 1
                    weight += w[i]
            if relevant == 1 and end == r + 1:
                total += weight * (hits + 1.0) / (end - start)  # (1)
            elif relevant and together:
                share = (min(end, last) - r) / (end - r)
                total += share * weight * (hits + relevant) / (end - start)
            elif relevant:
                slope = (relevant - 1) / (end - r - 1)
                for i in range(r, min(end, last)):
                    total += weight / (end - r) * (hits + 1.0 + (i - r) * slope) / (i + 1 - start)
            hits += relevant
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
        weight = self._document_weight(ranked.judged)
        if self._is_weighted(ranked.judged):  # otherwise all weights are 1, in any order
            weight = weight[ranked.order]
        args = ranked.grades, weight, blocks, together, min_grade, cut
        ranked.map(_average_precision, *args, out)
        out /= self._divisor(ranked.judged)

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return the data from which kernels compute the effect of swapping two documents."""
        judged = self.judge(data)
        if self._is_weighted(judged):
            raise IncompatibleError(
                f"the convention {self.convention.name} weighs the documents of map, so a swap of "
                "two has no known effect; use another convention."
            )
        gains = judged.gains(judged.grades, BINARY, self.setting("min_grade"))
        return SwapForm.of(self, judged, MAP_SWAP, gains, np.empty(0), self._divisor(judged))

    def _divisor(self, judged: Judged) -> F64:
        relevant = judged.relevant(self.setting("min_grade"))
        if self._is_weighted(judged):
            weights = self.relevance(judged) * self._document_weight(judged)
            sums = np.bincount(judged.data.query_of_row(), weights, judged.data.n_queries)
            return np.where(sums > 0, sums, 1.0)  # without weights the terms are 0
        if self.k is not None and self.convention.map_denominator == "min(R,k)":
            return np.minimum(relevant, self.k)
        return relevant

    def _is_weighted(self, judged: Judged) -> bool:
        return self.convention.weighs_queries and judged.data.sample_weight is not None

    def _document_weight(self, judged: Judged) -> F64:
        """Return the weight of each row."""
        weight = judged.data.sample_weight if self._is_weighted(judged) else None
        return (
            judged.once("ones", lambda: np.ones(len(judged.grades))) if weight is None else weight
        )
