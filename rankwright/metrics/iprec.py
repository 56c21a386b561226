"""Interpolated precision at a level of recall, and its mean over eleven levels.

    iprec(recall=x) = max_{r >= f(x)} C_r / r,     C_r relevant documents up to rank r           (1)

with f(x) the rank of the relevant document with the number floor(x R + 0.9), as in trec_eval 9, and
R the number of relevant documents. The value is 0 if the list does not reach the level. Without
``recall`` the metric is the mean over the levels 0, 0.1, ..., 1, the 11-point average precision
(section 8.4 of `manning2008ir`). The mean over the orders of ties uses sampled orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.metrics.base import RelevanceMetric, number_between
from rankwright.metrics.convention import Convention
from rankwright.metrics.ranked import Ranked

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _interpolated_precision(lo, hi, indptr, g, min_grade, levels, relevant, out):
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        hits = 0
        for r in range(start, end):
            hits += g[r] >= min_grade
        total, best = 0.0, 0.0
        level = len(levels) - 1
        needed = np.int64(levels[level] * relevant[q] + 0.9)
        for r in range(end - 1, start - 1, -1):
            best = max(best, hits / (r + 1 - start))
            if g[r] >= min_grade:
                while level >= 0 and needed >= hits:
                    if needed == hits:
                        total += best  # (1)
                    level -= 1
                    needed = np.int64(levels[level] * relevant[q] + 0.9)
                hits -= 1
        out[q] = (total + best * (level + 1)) / len(levels)  # levels that need no document


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class IPrec(RelevanceMetric):
    """Interpolated precision at a level of recall; without ``recall`` the mean over 11 levels.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "iprec@0.1", qid=[1] * 4)["iprec@0.1"]
    0.5
    """

    key: ClassVar[str] = "iprec"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    takes_k: ClassVar[bool] = False
    exact_ties: ClassVar[bool] = False

    recall: Annotated[float, number_between(0, 1, inclusive=True)] | None = None

    @classmethod
    def build(cls, parameters: dict[str, str], cut: str | None, convention: Convention) -> Self:
        """Build from the texts in a name; the number after ``@`` is the level of recall."""
        level = {} if cut is None else {"recall": cut}
        return super().build({**parameters, **level}, None, convention)

    def compute(self, ranked: Ranked, mean: bool, out: F64) -> None:  # noqa: ARG002, D102
        levels = np.arange(11) / 10 if self.recall is None else np.array([float(self.recall)])
        min_grade = float(self.setting("min_grade"))
        relevant = ranked.judged.relevant(min_grade)
        args = ranked.grades, min_grade, levels, relevant, out
        ranked.map(_interpolated_precision, *args)
