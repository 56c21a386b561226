"""Normalised discounted cumulative gain: DCG divided by the DCG of the best possible list.

    NDCG@k = DCG@k / IDCG@k,      IDCG@k the DCG@k of the documents in order of grade            (1)

The ideal list has all documents of the query (under ``max_per_group``, at most that number of each
group), not only its first k ranks. Under LETOR 4.0's convention NDCG without a cut-off is a mean,

    MeanNDCG = (1/n) sum_{k = 1}^{n} NDCG@k                                                      (2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.metrics.convention import SKIP
from rankwright.metrics.dcg import DCG
from rankwright.metrics.ranked import Judged, gain_of
from rankwright.metrics.swap import SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _mean_over_ranks(lo, hi, indptr, g, ends, kind, level, weights, ideal, out):
    for q in range(lo, hi):
        start = indptr[q]
        dcg = best = total = 0.0
        r = start
        while r < indptr[q + 1]:
            end = ends[r] if len(ends) else r + 1
            gain = 0.0
            for i in range(r, end):
                gain += gain_of(g[i], kind, level[q])
            gain /= end - r
            for i in range(r, end):
                dcg += weights[i - start] * gain
                best += weights[i - start] * gain_of(ideal[i], kind, level[q])
                total += dcg / best
            r = end
        out[q] = total / (r - start)  # (2)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class NDCG(DCG):
    """Normalised discounted cumulative gain of the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> round(evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "ndcg@3", qid=[1] * 4)["ndcg@3"], 4)
    0.1738
    """

    key: ClassVar[str] = "ndcg"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    when_empty: ClassVar[str] = "convention"

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return self.best_sums(judged)

    def form(self, judged: Judged) -> tuple[Callable[..., None], tuple[Any, ...], F64]:  # noqa: D102
        if not self._is_mean_over_ranks:
            return super().form(judged)
        terms = *self.terms(judged)[:3], judged.ideal_of_ranks()
        return _mean_over_ranks, terms, np.ones(len(judged.sizes))

    def settled(self, judged: Judged) -> tuple[Any, F64]:  # noqa: D102
        mask, values = super().settled(judged)
        if self.k is not None and self.convention.short_list == "zero":
            short = ~mask & (judged.sizes < self.k)
            values[short] = 0.0
            mask = mask | short
        if self.convention.one_document == SKIP:
            single = judged.best_sizes == 1
            values[single] = np.nan
            mask = mask | single
        return mask, values

    def swap_form(self, data: RankingData) -> SwapForm:  # noqa: D102
        if self._is_mean_over_ranks:
            raise IncompatibleError(
                "under this convention ndcg without a cut-off is a mean over all cut-offs, which "
                "has no weights by rank; write for example ndcg@10."
            )
        form = super().swap_form(data)
        if self.k is not None and self.convention.short_list == "zero":
            form.scale[data.sizes < self.k] = 0.0
        return form

    @property
    def _is_mean_over_ranks(self) -> bool:
        return self.k is None and self.convention.ndcg_without_k == "mean"
