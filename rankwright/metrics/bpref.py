"""Binary preference: number of judged non-relevant documents above each relevant one.

    bpref = (1/R) sum_{relevant i} (1 - min(N_i, R) / min(N, R))                                 (1)

with N the number of documents judged non-relevant and N_i the number of these above document i.
Documents without a judgment are ignored, as in trec_eval (`buckley2004bpref`). Over the orders of
ties, each number of non-relevant documents of the block above i, from 0 to all, is equally likely
(2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.metrics.base import RelevanceMetric
from rankwright.metrics.ranked import Ranked

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _bpref(lo, hi, indptr, g, ends, min_grade, relevant, others_judged, out):
    for q in range(lo, hi):
        R = relevant[q]
        most = min(others_judged[q], R)
        above = 0
        total = 0.0
        r = indptr[q]
        while r < indptr[q + 1]:
            end = ends[r] if len(ends) else r + 1
            hits = misses = 0
            for i in range(r, end):
                hits += g[i] >= min_grade
                misses += 0 <= g[i] < min_grade  # documents without a judgment are below 0
            if hits:
                cost = 0.0
                for n in range(above, above + misses + 1):
                    cost += min(n, R)
                cost /= misses + 1  # (2)
                total += hits * (1.0 - cost / most if cost > 0 else 1.0)  # (1)
            above += misses
            r = end
        out[q] = total / R


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class BPref(RelevanceMetric):
    """Preference of relevant over non-relevant documents, cut at R of the latter.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "bpref", qid=[1] * 4)["bpref"]
    0.25
    """

    key: ClassVar[str] = "bpref"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    takes_k: ClassVar[bool] = False
    takes_limit: ClassVar[bool] = False
    when_empty: ClassVar[str] = "convention"

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        min_grade = float(self.setting("min_grade"))
        judged, grades = ranked.judged, ranked.grades
        if judged.judged is not None:
            grades = np.where(judged.judged[ranked.order], grades, -1.0)
        counts = judged.relevant(min_grade), judged.other_judged(min_grade)
        ranked.map(_bpref, grades, ranked.blocks(mean), min_grade, *counts, out)
