"""Judged: the share of the first k documents that have a judgment.

    judged@k = (1/min(k, n)) sum_{r = 1}^{min(k, n)} [doc(r) has a judgment]                     (1)

as in ir_measures. Only documents of a run can be without a judgment (`rankwright.evaluate_run`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import PositionMetric
from rankwright.metrics.ranked import LINEAR, Judged


@dataclass(frozen=True, repr=False, kw_only=True)
class JudgedShare(PositionMetric):
    """Share of the first k documents that have a judgment.

    Examples
    --------
    >>> from rankwright import evaluate_run
    >>> run, qrels = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 0, "c": 1}}
    >>> evaluate_run(run, qrels, "judged@2")["judged@2"]
    0.5
    """

    key: ClassVar[str] = "judged"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: ARG002, D102
        return LINEAR, 0.0

    def row_grades(self, judged: Judged) -> F64:  # noqa: D102
        flags = np.ones(len(judged.grades)) if judged.judged is None else judged.judged
        return flags.astype(np.float64)

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return np.maximum(np.minimum(self.cut(judged), judged.sizes), 1).astype(np.float64)

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.sizes == 0
