"""Scores as sums over features: the model's own contributions, or Shapley values of a difference.

A linear model's contributions are exact, a tree model's are SHAP values and a network's integrated
gradients; each sums to the score. A kernel model has none. For it the difference of two documents
is split by letting features of the lower one become those of the upper, one after another,

    d_f = mean over orders of  s(with f changed) - s(before),                                  (1)

over orders drawn at random, each with its reverse; whatever the orders, the d_f sum to s(A) - s(B).
"""

from __future__ import annotations

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.explanation.query_view import QueryView

_ORDERS = 32


def document_parts(view: QueryView) -> F64:
    """Return what each feature adds to the score of each document, and the rest last."""
    model = view.ranker.model_
    if hasattr(model, "contributions_of"):
        parts: F64 = model.contributions_of(view.data)
        return parts
    return model.contributions(view.data.X)


def difference_parts(view: QueryView, upper: int, lower: int, *, seed: int = 0) -> tuple[F64, str]:
    """Return what each feature adds to the lead of ``upper``, the rest last, and the method."""
    try:
        parts = document_parts(view)
    except UsageError:  # no contributions
        return _by_orders(view, upper, lower, seed), "Shapley values over sampled orders"
    model = view.ranker.model_
    method = "weights" if hasattr(model, "coef") else getattr(model, "split_by", "SHAP values")
    return parts[upper] - parts[lower], method


def _by_orders(view: QueryView, upper: int, lower: int, seed: int) -> F64:
    A, B = view.X[upper], view.X[lower]
    differ = np.flatnonzero(~((A == B) | (np.isnan(A) & np.isnan(B))))
    parts = np.zeros(view.data.n_features + 1)
    rng = stream(seed, "explain", "orders")
    for _ in range(_ORDERS // 2):
        drawn = rng.permutation(differ)
        for order in (drawn, drawn[::-1]):
            X = np.repeat(B[None, :], len(order) + 1, axis=0)
            for k, column in enumerate(order):
                X[k + 1 :, column] = A[column]
            parts[order] += np.diff(view.ranker.model_.scores(X)) / _ORDERS  # (1)
    return parts
