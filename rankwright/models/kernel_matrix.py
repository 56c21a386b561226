"""Matrices of likeness between documents: kernels by name, and their inverse roots."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from rankwright.core.types import F64, FloatMatrix
from rankwright.errors import DataError

KERNELS = ("rbf", "linear", "polynomial", "precomputed")
_FEW_COLUMNS = 1000


def named_kernel(kernel: str, A: Any, B: Any, *, gamma: float, degree: int, coef0: float) -> F64:
    """Return k of each row of ``A`` and each row of ``B``, dense or sparse."""
    if A.shape[1] <= _FEW_COLUMNS:  # the same bits from sparse data as from dense
        A, B = dense(A), dense(B)
    products = dense(A @ B.T)
    if kernel == "linear":
        return products
    if kernel == "polynomial":
        return np.asarray((gamma * products + coef0) ** degree, np.float64)
    distance = _squares(A)[:, None] + _squares(B)[None, :] - 2.0 * products
    return np.asarray(np.exp(-gamma * np.maximum(distance, 0.0)), np.float64)


def inverse_root(K: F64) -> F64:
    """Return P with K P P' K = K, for a symmetric K without negative directions.

    With K = Q L Q' it is Q L^-1/2, without the directions that have no extent but for rounding.
    """
    if not np.isfinite(K).all():
        raise DataError("the kernel gives values that are not finite.")
    size = float(np.abs(K).max(initial=0.0))
    if float(np.abs(K - K.T).max(initial=0.0)) > 1e-8 * size:
        raise DataError(
            "the kernel matrix of the training documents is not symmetric; with 'precomputed', "
            "column j must belong to the same document as row j."
        )
    extent, Q = eigh(0.5 * (K + K.T), check_finite=False)
    top = float(extent[-1])
    if extent[0] < -1e-6 * max(top, size):
        raise DataError(
            f"the kernel is not positive: its matrix has the eigenvalue {extent[0]:.3g} beside "
            f"{top:.3g}."
        )
    kept = extent > max(top, 0.0) * len(K) * np.finfo(np.float64).eps
    if not kept.any():
        return np.zeros((len(K), 1))  # all documents alike: every score is 0
    return np.ascontiguousarray(Q[:, kept] / np.sqrt(extent[kept]))


def divided(X: FloatMatrix, deviation: F64) -> Any:
    """Return X with each column divided by its deviation, in float64."""
    if isinstance(X, np.ndarray):
        return X / deviation
    scaled = X.astype(np.float64)
    scaled.data /= deviation[scaled.indices]
    return scaled


def dense(X: Any) -> F64:
    """Return X as an array, whatever it is."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)


def _squares(X: Any) -> F64:
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X), np.float64)
    return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
