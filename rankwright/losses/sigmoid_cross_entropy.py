"""Sigmoid cross entropy of each document: logistic regression on its label.

With y_i the label of document i, limited to 1, w_i its weight and p_i = 1 / (1 + exp(-s_i)), the
loss of a query is

    L(s) = - sum_i w_i [y_i log p_i + (1 - y_i) log(1 - p_i)]
         = sum_i w_i [log(1 + exp(s_i)) - y_i s_i]                                              (1)

with gradient w_i (p_i - y_i) and Hessian diag(w p (1 - p)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import log1p_exp, sigmoid
from rankwright.core.types import F64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight


@kernel
def _sigmoid_cross_entropy(queries, indptr, s, y, w, value, grad, curv):
    for q in queries:
        for i in range(indptr[q], indptr[q + 1]):
            p = sigmoid(s[i])
            value[q] += w[i] * (log1p_exp(s[i]) - y[i] * s[i])  # (1)
            grad[i] = w[i] * (p - y[i])
            curv[i] = w[i] * p * (1.0 - p)


@dataclass(frozen=True, slots=True, repr=False)
class SigmoidCrossEntropy(KernelLoss):
    """Logistic loss of each document: scores are log odds of relevance or of a click.

    Labels from 0 to 1 are probabilities, and grades above 1 count as 1. The value of a query is the
    sum over its documents, as ``pointwise_sigmoid_loss`` of Rax (`jagerman2022rax`) with
    ``reduce_fn=jnp.sum``. Rax and TensorFlow Ranking return the mean over documents by default, and
    TensorFlow Ranking does not limit labels to 1. As for every loss here, queries whose labels are
    all equal contribute nothing.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.SigmoidCrossEntropy(), model="trees")
    Ranker(loss=SigmoidCrossEntropy(), model='trees')
    """

    traits = Traits(convex=True, shift_invariant=False)
    run = staticmethod(_sigmoid_cross_entropy)

    def terms(self, data: RankingData) -> tuple[F64, F64]:
        """Return y and w of (1)."""
        return np.minimum(data.y, 1.0), document_weight(data)
