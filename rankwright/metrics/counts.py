"""Counts of documents, summed over queries as in trec_eval.

    num_ret = n,    num_rel = R,    num_rel_ret = sum_{r = 1}^{n} [g_r >= min_grade]             (1)

with n the length of the ranked list and R the number of relevant documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import Metric, RelevanceMetric
from rankwright.metrics.p import Precision
from rankwright.metrics.ranked import Judged, Ranked


@dataclass(frozen=True, repr=False, kw_only=True)
class NumRet(Metric):
    """Number of retrieved documents.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "num_ret", qid=[1] * 4)["num_ret"]
    4.0
    """

    key: ClassVar[str] = "num_ret"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    takes_k: ClassVar[bool] = False
    summary: ClassVar[str] = "sum"

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: ARG002, D102
        out[:] = ranked.judged.sizes

    def nothing_to_find(self, judged: Judged) -> Any:  # noqa: D102
        return judged.sizes == 0


@dataclass(frozen=True, repr=False, kw_only=True)
class NumRel(RelevanceMetric):
    """Number of relevant documents.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "num_rel", qid=[1] * 4)["num_rel"]
    2.0
    """

    key: ClassVar[str] = "num_rel"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    takes_k: ClassVar[bool] = False
    summary: ClassVar[str] = "sum"

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: ARG002, D102
        out[:] = ranked.judged.relevant(self.setting("min_grade"))


@dataclass(frozen=True, repr=False, kw_only=True)
class NumRelRet(Precision):
    """Number of relevant documents among the retrieved ones, or in the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "num_rel_ret@2", qid=[1] * 4)["num_rel_ret@2"]
    1.0
    """

    key: ClassVar[str] = "num_rel_ret"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    summary: ClassVar[str] = "sum"

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        return np.ones(len(judged.sizes))
