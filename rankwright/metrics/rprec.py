"""R-precision: precision at R, the number of relevant documents.

    Rprec = (1/R) sum_{r = 1}^{R} [g_r >= min_grade]                                             (1)

It is recall at R as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.types import I64
from rankwright.metrics.ranked import Judged
from rankwright.metrics.recall import Recall


@dataclass(frozen=True, repr=False, kw_only=True)
class RPrec(Recall):
    """Precision at the rank that equals the number of relevant documents.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "rprec", qid=[1] * 4)["rprec"]
    0.5
    """

    key: ClassVar[str] = "rprec"
    takes_k: ClassVar[bool] = False

    def cut(self, judged: Judged) -> I64:  # noqa: D102
        return judged.relevant(self.setting("min_grade")).astype(np.int64)
