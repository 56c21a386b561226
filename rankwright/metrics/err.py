"""Expected reciprocal rank: one over the rank of the document that satisfies the reader.

A document of grade g satisfies the reader, who then stops, with probability R(g):

    ERR@k = sum_{r = 1}^{min(k, n)} (1/r) R(g_r) prod_{i < r} (1 - R(g_i)),
    R(g) = (2^g - 1) / 2^max                                                                     (1)

with ``max`` the highest possible grade (`chapelle2009err`). The mean over the orders of ties
needs only the mean product of j of the block's factors 1 - R, the elementary symmetric polynomial
e_j over the number of subsets: with E_j that mean, c documents before the block and S the product
of their factors, the block contributes

    S sum_{j = 1}^{t} (E_{j - 1} - E_j) / (c + j),    E_j by `rankwright.metrics.swap`           (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError
from rankwright.metrics.base import Grade, Metric, check_exp2_gains
from rankwright.metrics.ranked import EXP2, Judged, Ranked
from rankwright.metrics.swap import ERR_SWAP, SwapForm, mean_products

# --- kernels ---------------------------------------------------------------------------------


@kernel
def stopping_sums(lo, hi, indptr, stop, ends, divisors, cut, out):
    """Add up 1 / divisor over ranks, by the probability that the reader stops there."""
    for q in range(lo, hi):
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        alive, total = 1.0, 0.0
        r = start
        while r < last:
            end = ends[r] if len(ends) else r + 1
            if end == r + 1:
                total += alive * stop[r] / divisors[r - start]  # (1)
                alive *= 1.0 - stop[r]
            else:
                depth = min(end, last) - r
                products = mean_products(stop[r:end], depth)
                for j in range(1, depth + 1):
                    stops = products[j - 1] - products[j]
                    total += alive * stops / divisors[r - start + j - 1]  # (2)
                alive *= products[depth]
            r = end
        out[q] = total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class ERR(Metric):
    """Expected reciprocal rank of the document a reader stops at; ``max``: the highest grade.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> round(evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "err@3", qid=[1] * 4)["err@3"], 4)
    0.0312
    """

    key: ClassVar[str] = "err"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    max: Grade | None = None

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        stop = self._probabilities(ranked.judged, ranked.grades)
        divisors = np.arange(1.0, len(stop) + 1)
        ranked.map(stopping_sums, stop, ranked.blocks(mean), divisors, self.cut(ranked.judged), out)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.top <= 0

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return the data from which kernels compute the effect of swapping two documents."""
        judged = self.judge(data)
        stop = self._probabilities(judged, judged.grades)
        return SwapForm.of(self, judged, ERR_SWAP, stop, np.empty(0), np.ones(data.n_queries))

    def _probabilities(self, judged: Judged, grades: F64) -> F64:
        """Return R(g) for grades in the order of the queries."""
        label = self.convention.err_gain == "label" and self.max is None
        highest = 1.0 if label else float(self.max or self.convention.err_max)
        if self.convention.err_above_max == "refuse" or self.max is not None:
            self._refuse_above(judged, highest)
        if label:
            return grades
        top = max(highest, judged.top.max(initial=0.0))
        judged.once(("exp2", top), lambda: check_exp2_gains(top))
        stop: F64 = judged.gains(grades, EXP2, 0.0) / 2.0**highest
        return stop

    def _refuse_above(self, judged: Judged, highest: float) -> None:
        above = judged.top > highest
        if above.any():
            query = int(above.argmax())
            needed = int(np.ceil(judged.top.max()))
            raise DataError(
                f"query {judged.data.qid[query]} has a document of grade {judged.top[query]:g}, "
                f"above the highest grade {highest:g} that ERR assumes; "
                f"write err(max={needed})."
            )
