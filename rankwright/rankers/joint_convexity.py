"""Whether monotone retargeting is convex in targets and weights together, for a ranker and data."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, FloatMatrix
from rankwright.errors import UsageError
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.retarget import Retarget
from rankwright.models.linear import Linear, fill_values, filled, ridges
from rankwright.rankers.inputs import ranking_data
from rankwright.solvers.alternating import JointConvexity
from rankwright.solvers.alternating import joint_convexity as of_features

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


def joint_convexity(ranker: Ranker, X: Any, y: Any = None, *, qid: Any = None) -> JointConvexity:
    """Test whether the objective of ``memr`` or ``mr`` is convex in targets and weights at once.

    With F(r, w) the objective in the targets r of all queries and the weights w, the ranker
    minimises G(w) = min over r of F(r, w). Where F is jointly convex, G is convex, and alternating
    minimisation ends in the one minimum, wherever it starts. This is so if

        l2 >= sum_i omega_i sigma_max(A_i)^2 / (s (1 + C_r))

    with A_i the features of query i (divided by their deviations where ``scale=True``), sigma_max
    their largest singular value, omega_i the query's share of the objective (its weight times
    |V_i|^-query_weight_exponent, over the sum of weights), and s = 1 for KL on the simplex. The
    square divergence needs no l2; for KL on the cone none is enough. The condition is sufficient,
    not necessary. (Corollary 1 of [acharyya2014memr] without its misprint: it lacks A_i.)

    Parameters
    ----------
    ranker : Ranker
        On a linear model with the loss ``retarget``. Fitted with ``l2="auto"``, the penalty that
        was chosen is taken.
    X, y, qid
        The data that it is fitted to: as for `Ranker.fit`.

    Returns
    -------
    JointConvexity
        ``holds``, ``l2`` and ``needed``, the least l2 that is enough; as text, a sentence.

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
    if not (convex_targets and loss.traits.integrable):
        return JointConvexity(l2, inf)
    weight, of_documents = order_weight(data), document_weight(data)
    size = np.bincount(data.query_of_row(), of_documents, data.n_queries)
    share = weight * np.maximum(size, 1e-300) ** -loss.query_weight_exponent
    return of_features(
        _scaled(data.X, model, of_documents),
        data.indptr,
        l2=l2,
        divergence=loss.divergence,
        domain=loss.domain,
        C_r=loss.C_r,
        query_weight=share / (weight.sum() or 1.0),
    )


def _scaled(X: FloatMatrix, model: Linear, weight: F64) -> FloatMatrix:
    """Return the features as the penalty sees them."""
    X = filled(X, fill_values(X, model.missing), "linear")
    deviation = model.deviations(X, weight)
    if isinstance(X, np.ndarray):
        scaled: FloatMatrix = X / deviation
        return scaled
    return sparse.csr_array(X @ sparse.diags_array(1.0 / deviation))


def _penalty(ranker: Ranker, model: Linear) -> float:
    """Return l2: the number given, or the one that a fit has chosen."""
    tried = ridges(model.l2)
    if len(tried) > 1 and not hasattr(ranker, "model_"):
        raise UsageError("l2='auto' is chosen by a fit: fit the ranker first, or give a number.")
    return tried[ranker.best_iteration_ - 1] if len(tried) > 1 else tried[0]
