"""Coverage error: the number of documents a reader has to see to find all relevant ones.

    coverage = |{ j : s_j >= min_{relevant i} s_i }|                                             (1)

(`tsoumakas2010multilabel`), as in scikit-learn: 0 without a relevant document. Equal scores are
part of the definition under every convention. In the mean over the orders of ties, the last
relevant document of a block of t documents, with m relevant documents has the mean place

    m (t + 1) / (m + 1)                                                                          (2)

in its block. Lower is better.
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
def _coverage_error(lo, hi, indptr, g, ends, mean, min_grade, out):
    for q in range(lo, hi):
        r = indptr[q]
        while r < indptr[q + 1]:
            relevant = 0
            for i in range(r, ends[r]):
                relevant += g[i] >= min_grade
            if relevant and mean:
                out[q] = r - indptr[q] + relevant * (ends[r] - r + 1) / (relevant + 1.0)  # (2)
            elif relevant:
                out[q] = ends[r] - indptr[q]  # (1)
            r = ends[r]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class CoverageError(RelevanceMetric):
    """Number of documents down to the last relevant one.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> y, scores = [2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2]
    >>> evaluate(y, scores, "coverage_error", qid=[1] * 4)["coverage_error"]
    4.0
    """

    key: ClassVar[str] = "coverage_error"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    maximise: ClassVar[bool] = False
    takes_k: ClassVar[bool] = False
    takes_limit: ClassVar[bool] = False
    takes_runs: ClassVar[bool] = False

    @property
    def own_ties(self) -> bool:  # noqa: D102
        return self.ties != "mean"

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        min_grade = float(self.setting("min_grade"))
        ranked.map(_coverage_error, ranked.grades, ranked.ends, mean, min_grade, out)
