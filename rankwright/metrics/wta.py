"""Winner takes all: whether the first document is one of the best.

    WTA = [g_1 = max_i g_i]                                                                      (1)

(equation (9) of `le2007dorm`). ``modified`` is the metric that section 6.4 there optimises instead,
NDCG at a cut-off of the query's own,

    mWTA = NDCG@m,   m = 3 if the three highest grades are not all equal,
                     else the rank at which the next lower grade begins in the best list         (2)

(n without a lower grade).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.metrics.base import PositionMetric, check_exp2_gains
from rankwright.metrics.ranked import BINARY, EXP2, LINEAR, Judged, rank_weights

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _own_cut_offs(lo, hi, indptr, ideal, out):
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        r = start
        while r < end and ideal[r] == ideal[start]:
            r += 1
        out[q] = min(max(r - start + 1, 3), end - start)  # (2)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class WTA(PositionMetric):
    """Whether the first document is one of the best; ``modified``: DORM's mWTA.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "wta", qid=[1] * 4)["wta"]
    0.0
    """

    key: ClassVar[str] = "wta"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    takes_k: ClassVar[bool] = False
    when_empty: ClassVar[str] = "convention"

    modified: bool = False

    @property
    def gains_by_grade(self) -> tuple[float, ...] | None:  # noqa: D102
        gain = self.setting("gain")
        return gain if self.modified and isinstance(gain, tuple) else None

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: D102
        if not self.modified:
            return BINARY, np.where(judged.top > 0, judged.top, np.inf)
        if self.setting("gain") != "exp2":
            return LINEAR, 0.0
        judged.once("exp2", lambda: check_exp2_gains(judged.top.max(initial=0.0)))
        return EXP2, 0.0

    def weights(self, n: int) -> F64:  # noqa: D102
        return rank_weights(self.setting("discount"), n) if self.modified else np.ones(n)

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return self.best_sums(judged) if self.modified else super().scale(judged)

    def cut(self, judged: Judged) -> I64:  # noqa: D102
        if not self.modified:
            return np.ones(len(judged.sizes), np.int64)
        out = np.empty(len(judged.sizes), np.int64)
        judged.map_best(_own_cut_offs, judged.ideal, out)
        return out
