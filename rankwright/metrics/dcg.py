"""Discounted cumulative gain: sum of the gains of documents, discounted by rank.

    DCG@k = sum_{r = 1}^{min(k, n)} gain(g_r) discount(r)                                        (1)

with the gain 2^g - 1, g or a gain for each grade, and the discount of the convention
(`jarvelin2002ndcg`). Under the ``rax`` and ``tf_ranking`` conventions the weight of a document
multiplies its gain. TensorFlow Ranking then divides DCG by the weight of the query,

    w_q = sum_i w_i gain(g_i) / sum_i gain(g_i)                                                  (2)

which is also the weight of the query in the mean over queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64
from rankwright.metrics.base import Clause, Gain, PositionMetric, check_exp2_gains
from rankwright.metrics.ranked import EXP2, LINEAR, Judged, rank_weights


@dataclass(frozen=True, repr=False, kw_only=True)
class DCG(PositionMetric):
    """Discounted cumulative gain of the first k ranks.

    Examples
    --------
    >>> from rankwright import evaluate
    >>> round(evaluate([2, 0, 1, 0], [0.1, 0.4, 0.3, 0.2], "dcg@3", qid=[1] * 4)["dcg@3"], 4)
    0.6309
    """

    key: ClassVar[str] = "dcg"

    gain: Gain | None = None
    discount: Clause | None = None

    @property
    def gains_by_grade(self) -> tuple[float, ...] | None:  # noqa: D102
        gain = self.setting("gain")
        return gain if isinstance(gain, tuple) else None

    def judged_options(self) -> dict[str, Any]:  # noqa: D102
        options = super().judged_options()
        if self.convention.document_weights != "none":
            options["weighted_gains"] = EXP2 if self.setting("gain") == "exp2" else LINEAR
        return options

    def gain_rule(self, judged: Judged) -> tuple[int, float | F64]:  # noqa: D102
        if self.setting("gain") != "exp2":
            return LINEAR, 0.0
        advice = f"write {self.key}(gain=linear), or "
        judged.once("exp2", lambda: check_exp2_gains(judged.data.y.max(initial=0.0), advice))
        return (EXP2, 0.0) if judged.grades is judged.unweighted else (LINEAR, 0.0)

    def relevance(self, judged: Judged) -> F64:  # noqa: D102
        return judged.unweighted  # gains, because documents have weights

    def scale(self, judged: Judged) -> F64:  # noqa: D102
        if not self.convention.weighs_queries or judged.data.sample_weight is None:
            return super().scale(judged)
        weight = judged.mean_weights(self.relevance(judged))
        return np.where(weight > 0, weight, 1.0)  # (2)

    def weights(self, n: int) -> F64:  # noqa: D102
        return rank_weights(self.setting("discount"), n)
