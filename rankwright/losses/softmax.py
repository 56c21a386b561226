"""Softmax cross entropy with the labels as weights.

With label y_i and weight w_i of document i, the loss of a query is (`bruch2019analysis`)

    L(s) = sum_i w_i y_i (log sum_j w_j exp(s_j) - s_i)                                         (1)

which is ListNet's loss with the shares t_i = w_i y_i and uses its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight
from rankwright.losses.listnet import softmax_cross_entropy


@dataclass(frozen=True, slots=True, repr=False)
class Softmax(KernelLoss):
    """Softmax cross entropy with the labels as weights, such as clicks or gains.

    Without document weights, the value of a query is ``softmax_loss`` of Rax and the softmax loss
    of TensorFlow Ranking.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.Softmax(), model="linear")
    Ranker(loss=Softmax())
    """

    traits = Traits(convex=True)
    run = staticmethod(softmax_cross_entropy)

    def terms(self, data: RankingData) -> tuple[F64, F64]:
        """Return the weighted labels and the weights of (1)."""
        w = document_weight(data)
        return w * data.y, w
