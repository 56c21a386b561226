"""Area under the ROC curve: share of pairs of a relevant and another document in the right order.

    AUC = (1/(R N)) sum_{relevant i, other j} [s_i > s_j] + [s_i = s_j] / 2                      (1)

with N = n - R. It compares scores, so a tie counts one half under every convention. Queries with
only one kind of document are omitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.metrics.base import Grade, PairMetric
from rankwright.metrics.ranked import Judged, Ranked

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _auc(lo, hi, indptr, g, ends, min_grade, out):
    for q in range(lo, hi):
        relevant = irrelevant = lost = 0.0
        r = indptr[q]
        while r < indptr[q + 1]:
            hits = 0
            for i in range(r, ends[r]):
                hits += g[i] >= min_grade
            misses = ends[r] - r - hits
            lost += hits * (irrelevant + misses / 2)
            relevant += hits
            irrelevant += misses
            r = ends[r]
        out[q] = 1.0 - lost / (relevant * irrelevant)  # (1)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class AUC(PairMetric):
    """Share of pairs of a relevant and another document that are in the right order.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "auc", qid=[1] * 4)["auc"]
    0.25
    """

    key: ClassVar[str] = "auc"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    min_grade: Grade | None = None

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: ARG002, D102
        ranked.map(_auc, ranked.grades, ranked.ends, float(self.setting("min_grade")), out)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        relevant = judged.relevant(self.setting("min_grade"))
        return (relevant == 0) | (relevant == judged.sizes)
