"""Missing feature values (NaN) for models that need a number in every place."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwright.core.memory import blocks, like_csr, scratch
from rankwright.core.products import transposed_times_vector
from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.errors import DataError, UsageError

_VALUES = 1 << 20  # of a sparse matrix that are looked at together


def fill_values(X: FloatMatrix, missing: str | None) -> F64 | None:
    """Return what stands for a missing value of each feature: its mean, zero, or None at all."""
    if missing is None:
        return None
    if missing == "zero":
        return np.zeros(X.shape[1])
    if missing != "mean":
        raise UsageError(f"missing must be 'mean', 'zero' or None, not {missing!r}.")
    means: F64 = transposed_times_vector(X, np.ones(X.shape[0])) / max(1, X.shape[0])
    for column in _columns_with_gaps(X):
        values = X[:, [column]].toarray().ravel() if sparse.issparse(X) else X[:, column]
        known = values[~np.isnan(values)]
        means[column] = known.mean(dtype=np.float64) if len(known) else 0.0
    return means


def filled(X: FloatMatrix, fill: F64 | None, model: str) -> FloatMatrix:
    """Return X with ``fill`` in its gaps: X itself where there are none.

    Raises
    ------
    DataError
        If values are missing and there is nothing to fill in.
    """
    columns = _columns_with_gaps(X)
    if not len(columns):
        return X
    if fill is None:
        raise _gaps(
            columns,
            model,
            "pass missing='mean' or missing='zero', or use model='trees' "
            "(--set missing=mean, --model trees)",
        )
    if sparse.issparse(X):
        values = scratch(X.data.shape, X.data.dtype)
        for lo in range(0, X.nnz, _VALUES):
            block = slice(lo, lo + _VALUES)
            values[block] = X.data[block]
            gaps = lo + np.flatnonzero(np.isnan(values[block]))
            values[gaps] = fill[X.indices[gaps]]
        return like_csr(values, X)
    out = scratch(X.shape, X.dtype)
    for block in blocks(X):
        out[block] = X[block]
        rows, column = np.nonzero(np.isnan(out[block]))
        out[block][rows, column] = fill[column]
    return out


def without_gaps(X: FloatMatrix, model: str) -> FloatMatrix:
    """Return X, which a model takes without missing values alone."""
    columns = _columns_with_gaps(X)
    if len(columns):
        raise _gaps(columns, model, "leave those rows out, or put numbers there")
    return X


def _gaps(columns: I64, model: str, advice: str) -> DataError:
    return DataError(
        f"feature column {columns[0]} has missing values (NaN), which a {model} model does not "
        f"take; {advice}."
    )


def _columns_with_gaps(X: FloatMatrix) -> I64:
    """Return the columns that hold NaN: their sum is NaN too, which needs no copy of X."""
    return np.flatnonzero(np.isnan(transposed_times_vector(X, np.ones(X.shape[0]))))
