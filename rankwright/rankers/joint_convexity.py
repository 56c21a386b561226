"""Test whether monotone retargeting is convex in targets and weights together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isinf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.retarget import Retarget
from rankwright.models.linear import Linear, deviations, ridges
from rankwright.models.linear_objective import spectral_norm
from rankwright.models.missing import fill_values, filled
from rankwright.rankers.inputs import ranking_data

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


@dataclass(frozen=True, slots=True)
class JointConvexity:
    """Result of `joint_convexity`; as text, a sentence.

    Attributes
    ----------
    l2 : float
        The penalty.
    needed : float
        The smallest penalty that is sufficient; infinite if none is.
    holds : bool
        Whether ``l2`` is at least ``needed``. If not, the objective may still be convex.
    """

    l2: float
    needed: float

    @property
    def holds(self) -> bool:
        """Whether the penalty is sufficient."""
        return self.l2 >= self.needed

    def __str__(self) -> str:
        if self.needed == 0.0:
            return "jointly convex, whatever l2"
        if isinf(self.needed):
            return "no l2 makes sure of joint convexity"
        verdict = "jointly convex" if self.holds else "perhaps not jointly convex"
        return f"{verdict}: l2 is {self.l2:g}, and {self.needed:g} is enough"


def joint_convexity(ranker: Ranker, X: Any, y: Any = None, *, qid: Any = None) -> JointConvexity:
    """Test whether the objective of ``memr`` or ``mr`` is convex in targets and weights at once.

    With F(r, w) the objective in the targets r of all queries and the weights w, the ranker
    minimises G(w) = min over r of F(r, w). If F is jointly convex, G is convex, and alternating
    minimisation ends in the global minimum from any start. This holds if

        l2 >= sum_i omega_i sigma_max(A_i)^2 / (s (1 + C_r))

    with A_i the features of query i (divided by their deviations where ``scale=True``), sigma_max
    their largest singular value, omega_i the query's share of the objective (its weight times
    |V_i|^-query_weight_exponent, divided by the sum of weights), and s = 1 for KL on the simplex,
    where r <= 1. The square divergence needs no l2. On the cone r has no bound, so no l2 is
    sufficient for KL. The condition is sufficient, not necessary. (Corollary 1 of
    [acharyya2014memr] without its misprint: it lacks A_i.)

    Parameters
    ----------
    ranker : Ranker
        A linear model with the loss ``retarget``. If it was fitted with ``l2="auto"``, the selected
        penalty is tested.
    X, y, qid
        The training data, as for `Ranker.fit`.

    Returns
    -------
    JointConvexity
        ``holds``, ``l2`` and ``needed``, the smallest l2 that is sufficient.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> rw.joint_convexity(rw.MEMR(l2=1000.0), data).holds
    True
    """
    data = ranking_data(X, y, qid).present()
    loss, model = ranker.make_loss(), ranker.make_model()
    if not isinstance(loss, Retarget) or not isinstance(model, Linear):
        raise UsageError(
            "joint convexity is a property of memr and mr on a linear model, whose loss is a "
            f"minimum over targets; this is {ranker.name} on model '{ranker.model_name}'."
        )
    l2 = _penalty(ranker, model)
    convex_targets = replace(loss, divergence="square").traits.convex
    on_cone = loss.divergence == "kl" and loss.domain == "cone"
    if on_cone or not (convex_targets and loss.traits.integrable):
        return JointConvexity(l2, inf)
    if loss.divergence == "square":
        return JointConvexity(l2, 0.0)
    weight, of_documents = order_weight(data), document_weight(data)
    size = np.bincount(data.query_of_row(), of_documents, data.n_queries)
    share = weight * np.maximum(size, 1e-300) ** -loss.query_weight_exponent
    X = _scaled(data.X, model, of_documents)
    return JointConvexity(
        l2, sufficient_l2(X, data.indptr, share / (weight.sum() or 1.0), loss.C_r)
    )


def sufficient_l2(X: FloatMatrix, indptr: I64, omega: F64, C_r: float) -> float:
    """Return sum_i omega_i sigma_max(A_i)^2 / (1 + C_r), with query i's rows of X as A_i."""
    top = [spectral_norm(X[lo:hi]) ** 2 for lo, hi in pairwise(indptr.tolist())]
    return float(omega @ np.array(top)) / (1.0 + C_r)


def _scaled(X: FloatMatrix, model: Linear, weight: F64) -> FloatMatrix:
    """Return the features in the scale of the penalty."""
    X = filled(X, fill_values(X, model.missing), "linear")
    deviation = deviations(X, weight, scale=model.scale)
    if isinstance(X, np.ndarray):
        scaled: FloatMatrix = X / deviation
        return scaled
    return sparse.csr_array(X @ sparse.diags_array(1.0 / deviation))


def _penalty(ranker: Ranker, model: Linear) -> float:
    """Return l2, or the value that the fit has selected."""
    tried = ridges(model.l2)
    if len(tried) > 1 and not hasattr(ranker, "model_"):
        raise UsageError("l2='auto' is chosen by a fit: fit the ranker first, or give a number.")
    return tried[ranker.best_iteration_ - 1] if len(tried) > 1 else tried[0]
