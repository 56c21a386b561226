"""The best grade in the first k ranks (RankLib's BEST@k).

    best@k = max_{r <= min(k, n)} g_r                                                            (1)

In the mean over the orders of ties, with s ranks of a block of t above the cut-off, the i-th lowest
grade of the block is the highest grade of these s ranks with probability

    C(i - 1, s - 1) / C(t, s)                                                                    (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.metrics.base import Metric
from rankwright.metrics.ranked import Judged, Ranked

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _best(lo, hi, indptr, g, ends, cut, out):
    for q in range(lo, hi):
        last = min(indptr[q] + cut[q], indptr[q + 1])
        highest = 0.0
        r = indptr[q]
        while r < last:
            end = ends[r] if len(ends) else r + 1
            if end <= last:
                highest = max(highest, g[r:end].max())
            else:
                highest = _mean_highest(np.sort(g[r:end]), last - r, highest)
            r = end
        out[q] = highest


@kernel
def _mean_highest(ascending, slots, floor):
    """Mean of the highest of ``slots`` grades sampled without return, and no less than floor."""
    chance = slots / len(ascending)
    total = 0.0
    for i in range(len(ascending), slots - 1, -1):
        total += chance * max(ascending[i - 1], floor)  # (2)
        chance *= (i - slots) / max(i - 1, 1)
    return total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class Best(Metric):
    """Highest grade in the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "best@2", qid=[1] * 4)["best@2"]
    1.0
    """

    key: ClassVar[str] = "best"

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        ranked.map(_best, ranked.grades, ranked.blocks(mean), self.cut(ranked.judged), out)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top <= 0
