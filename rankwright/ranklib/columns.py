"""Features of a data set as RankLib sees them: float32, by their numbers from 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, FloatMatrix


def columns(X: FloatMatrix, features: Iterable[int]) -> dict[int, F64]:
    """Return features by number, rounded to float32; 0 beyond the last, and where missing."""
    by_column: Any = sparse.csc_array(X) if sparse.issparse(X) else X
    return {feature: _column(by_column, feature) for feature in set(features)}


def matrix(X: FloatMatrix, features: list[int]) -> F64:
    """Return the features of these numbers, side by side."""
    found = np.empty((X.shape[0], len(features)))
    by_number = columns(X, features)
    for place, feature in enumerate(features):
        found[:, place] = by_number[feature]
    return found


def _column(X: Any, feature: int) -> F64:
    if feature > X.shape[1]:
        return np.zeros(X.shape[0])
    taken = X[:, [feature - 1]]
    values = (taken if isinstance(taken, np.ndarray) else taken.toarray()).ravel()
    single: F64 = values.astype(np.float32).astype(np.float64)
    return np.where(np.isnan(single), 0.0, single)
