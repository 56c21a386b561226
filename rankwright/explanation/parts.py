"""Scores as sums over features: the model's own contributions, or Shapley values of a difference.

A linear model's contributions are exact, a tree model's are SHAP values, and a network's come from
DeepLIFT's rescale rule; each sums to the score. The difference of two documents is that of their
contributions, but where a model can do better: a network's is integrated along the way from the
lower document B to the upper A (integrated gradients, `sundararajan2017axiomatic`),

    d_f = (A_f - B_f) * integral over t in [0, 1] of  ds/dx_f at B + t (A - B),                (1)

and for a kernel model, which has no contributions, features of B become those of A one after
another,

    d_f = mean over orders of  s(with f changed) - s(before),                                  (2)

over orders drawn at random, each with its reverse. The d_f sum to s(A) - s(B): in (2) whatever the
orders, in (1) up to what the sum for the integral misses, which is shown as the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.explanation.query_view import QueryView
from rankwright.models.linear import filled

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker

_ORDERS = 32
_NODES = 64


def document_parts(ranker: Ranker, data: RankingData) -> F64:
    """Return what each feature adds to the score of each document, and the rest last.

    The data has the columns of the ranker, as a `QueryView` has them.
    """
    model = ranker.model_
    if hasattr(model, "contributions_of"):
        parts: F64 = model.contributions_of(data)
        return parts
    return model.contributions(data.X)


def difference_parts(view: QueryView, upper: int, lower: int) -> tuple[F64, str]:
    """Return what each feature adds to the lead of ``upper``, the rest last, and the method."""
    model: Any = view.ranker.model_
    if hasattr(model, "gradients") and not model.looks_at_list:
        return _along_the_way(view, upper, lower), "integrated gradients"
    try:
        parts = document_parts(view.ranker, view.data)
    except UsageError:  # no contributions
        return _by_orders(view, upper, lower), "Shapley values over sampled orders"
    method = "weights" if hasattr(model, "coef") else getattr(model, "split_by", "SHAP values")
    return parts[upper] - parts[lower], method


def _along_the_way(view: QueryView, upper: int, lower: int) -> F64:
    model: Any = view.ranker.model_
    whole = filled(view.X[[lower, upper]], model.fill, "network").astype(np.float64)
    B, way = whole[0], whole[1] - whole[0]
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    slopes = model.gradients(B + np.outer((points + 1.0) / 2.0, way))
    parts = way * (weights / 2.0 @ slopes)  # (1)
    lead = view.scores[upper] - view.scores[lower]
    return np.append(parts, lead - parts.sum())


def _by_orders(view: QueryView, upper: int, lower: int) -> F64:
    A, B = view.X[upper], view.X[lower]
    differ = np.flatnonzero(~((A == B) | (np.isnan(A) & np.isnan(B))))
    parts = np.zeros(view.data.n_features + 1)
    rng = stream(0, "explain", "orders")
    for _ in range(_ORDERS // 2):
        drawn = rng.permutation(differ)
        for order in (drawn, drawn[::-1]):
            X = np.repeat(B[None, :], len(order) + 1, axis=0)
            for k, column in enumerate(order):
                X[k + 1 :, column] = A[column]
            parts[order] += np.diff(view.ranker.model_.scores(X)) / _ORDERS  # (2)
    return parts
