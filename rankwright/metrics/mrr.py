"""Mean reciprocal rank: one over the rank of the first relevant document.

    RR@k = 1/f if f <= k else 0,     f = min { r : g_r >= min_grade }                            (1)

Over the orders of ties (`mcsherry2008ties`), with the first relevant documents in a block of t, m
of them relevant, the first is the j-th of the block with probability

    C(t - j, m - 1) / C(t, m)                                                                    (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError
from rankwright.metrics.base import Metric
from rankwright.metrics.position import PositionForm, rank_weights
from rankwright.metrics.ranked import BINARY, Judged, Ranked
from rankwright.metrics.swap import MRR_SWAP, SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _reciprocal_rank(lo, hi, indptr, g, ends, min_grade, cut, out):  # type: ignore[no-untyped-def]
    for q in range(lo, hi):
        out[q] = 0.0
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        r = start
        while r < last:
            end = ends[r] if len(ends) else r + 1
            found = 0
            for i in range(r, end):
                found += g[i] >= min_grade
            if found:
                not_yet = 1.0
                for i in range(r, min(last, end - found + 1)):
                    here = found / (end - i)
                    out[q] += not_yet * here / (i + 1 - start)  # (2)
                    not_yet *= 1.0 - here
                break
            r = end


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class MRR(Metric):
    """Reciprocal rank of the first relevant document."""

    key: ClassVar[str] = "mrr"

    min_grade: float | None = None

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        min_grade, cut = float(self.setting("min_grade")), self.cut(ranked.judged)
        ranked.map(_reciprocal_rank, ranked.grades, ranked.blocks(mean), min_grade, cut, out)
        if self.convention.mrr_precision == "float32":
            out[:] = out.astype(np.float32)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top < self.setting("min_grade")

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return what it takes to know the effect of swapping two documents."""
        judged = self.judge(data)
        gains = judged.gains(judged.grades, BINARY, self.setting("min_grade"))
        once = np.ones(data.n_queries)
        return SwapForm.of(self, judged, MRR_SWAP, gains, np.empty(0), once)

    def position_form(self, data: RankingData) -> PositionForm:
        """Return this measure as a sum over ranks, where at most one document is relevant."""
        form = self.swap_form(data)
        several = np.add.reduceat(np.append(form.gain, 0), form.indptr[:-1]) > 1
        several &= data.sizes > 0
        if several.any():
            query = data.qid[int(several.argmax())]
            raise IncompatibleError(
                f"mrr is a sum over ranks only where one document is relevant, and query {query} "
                "has several; a higher min_grade may leave one."
            )
        return PositionForm(
            rank_weights("reciprocal", int(data.sizes.max(initial=0))), form.gain, form.cut
        )
