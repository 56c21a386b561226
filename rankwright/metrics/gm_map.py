"""Geometric mean average precision: the geometric mean of `MAP` over queries.

    gm_map = exp( (1/Q) sum_q log max(AP_q, 0.00001) )                                           (1)

(`robertson2006gmap`), with trec_eval's lower limit for the average precision of a query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankwright.metrics.map import MAP


@dataclass(frozen=True, repr=False, kw_only=True)
class GMMAP(MAP):
    """Geometric mean of the average precision of queries; ``per_query`` has the precisions.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> y, scores = [2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2]
    >>> round(evaluate(y, scores, "gm_map", qid=[1, 1, 2, 2])["gm_map"], 4)
    0.7071
    """

    key: ClassVar[str] = "gm_map"
    summary: ClassVar[str] = "geometric mean"
