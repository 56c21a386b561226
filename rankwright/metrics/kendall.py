"""Kendall's tau-b between scores and grades, as SciPy computes it.

    tau_b = (C - D) / sqrt((P - T_s) (P - T_g)),      P = n (n - 1) / 2                          (1)

with C pairs in the same order by score and by grade, D in opposite order, T_s pairs with equal
scores and T_g with equal grades. Equal scores are part of the metric under every convention; since
tau-b rewards scores that are tied where grades are, its value may lie outside the interval over
tied orders, where T_s = 0. A query with a single grade, or a single score, is omitted.
`pair_error` looks only at pairs that the grades put in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import PairMetric
from rankwright.metrics.pair_error import pair_counts
from rankwright.metrics.ranked import Ranked


@dataclass(frozen=True, repr=False, kw_only=True)
class Kendall(PairMetric):
    """Kendall's rank correlation tau-b between scores and grades.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> round(evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "kendall", qid=[1] * 4)["kendall"], 4)
    -0.5477
    """

    key: ClassVar[str] = "kendall"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: D102
        graded, wrong, tied, tied_scores = pair_counts(ranked).T
        sizes = ranked.judged.sizes.astype(np.float64)
        pairs = sizes * (sizes - 1) / 2
        ordered = pairs if mean else pairs - tied_scores
        out[:] = (graded - tied - 2 * wrong) / np.sqrt(ordered * graded)  # (1)
