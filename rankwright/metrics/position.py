"""Metrics that are a sum over ranks: a weight by rank times a gain by document.

    value = sum_{r = 1}^{min(cut, n)} a_r b_{doc(r)} / scale                                     (1)

This is the form <a(pi), b(y)> of DORM (`le2007dorm`). The mean over the orders of tied documents
is the same sum with the mean gain of the tie block in place of b, since every document of a block
stands on each of its ranks equally often.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import Metric
from rankwright.metrics.ranked import BINARY, Judged, Ranked, gain_of
from rankwright.metrics.swap import LINEAR_SWAP, SwapForm

# --- kernels ---------------------------------------------------------------------------------


@kernel
def weighted_sums(lo, hi, indptr, g, ends, kind, level, weights, cut, out):  # type: ignore[no-untyped-def]
    """Add up (1) for each query, ranks in order."""
    for q in range(lo, hi):
        start, last = indptr[q], min(indptr[q] + cut[q], indptr[q + 1])
        total = 0.0
        r = start
        while r < last:
            end = ends[r] if len(ends) else r + 1
            if end == r + 1:
                total += weights[r - start] * gain_of(g[r], kind, level[q])
            else:
                gains = 0.0
                for i in range(r, end):
                    gains += gain_of(g[i], kind, level[q])
                for i in range(r, min(end, last)):
                    total += weights[i - start] * (gains / (end - r))
            r = end
        out[q] = total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class PositionMetric(Metric):
    """A metric of the form (1); subclasses say gain, weights and scale."""

    @abstractmethod
    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:
        """Return the kind of gain, and its level, for all queries or for each."""

    def weights(self, n: int) -> F64:
        """Return the weights of ranks 1 to n."""
        return np.ones(n)

    def scale(self, judged: Judged) -> F64:
        """Return what the sum of each query is divided by."""
        return np.ones(len(judged.sizes))

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        self._sums(ranked.judged, ranked.grades, ranked.blocks(mean), out, ranked.map)
        out /= self.scale(ranked.judged)

    def best_sums(self, judged: Judged) -> F64:
        """Return the sum of (1) for the best list."""

        def compute() -> F64:
            out = np.empty(len(judged.sizes))
            self._sums(judged, judged.ideal, np.empty(0, np.int64), out, judged.map_best)
            return out

        found: F64 = judged.once(("best", self), compute)
        return found

    def _sums(
        self, judged: Judged, grades: F64, blocks: I64, out: F64, over: Callable[..., None]
    ) -> None:
        kind, level = self.gain_rule(judged)
        levels = np.full(len(judged.sizes), level, np.float64)
        args = (grades, blocks, kind, levels, self._table(judged), self.cut(judged), out)
        over(weighted_sums, *args)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        kind, level = self.gain_rule(judged)
        return judged.top < level if kind == BINARY else judged.top <= level

    def _table(self, judged: Judged) -> F64:
        return self.weights(int(judged.best_sizes.max(initial=0)))

    def swap_form(self, data: RankingData) -> SwapForm:
        """Return what it takes to know the effect of swapping two documents."""
        judged = self.judge(data)
        gains = judged.gains(judged.grades, *self.gain_rule(judged))
        scale = self.scale(judged)
        return SwapForm.of(self, judged, LINEAR_SWAP, gains, self._table(judged), scale)


@lru_cache(maxsize=64)
def rank_weights(rule: str, n: int) -> F64:
    """Return the weights of ranks 1 to n under a rule of `Convention.discount`."""
    # RankLib's own expression, so that its figures come out to the last digit.
    log2 = [math.log(rank) / math.log(2) for rank in range(1, n + 2)]
    if rule == "log2":
        table = [1 / log2[rank] for rank in range(1, n + 1)]
    elif rule == "letor":
        table = [1 / log2[rank - 1] if rank > 2 else 1.0 for rank in range(1, n + 1)]
    else:
        table = [1 / rank for rank in range(1, n + 1)]
    weights = np.array(table, np.float64)
    weights.setflags(write=False)
    return weights
