"""Missing feature values (NaN) for models that need a number in every place."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import FeatureError, blocks
from rankwright.core.products import times_vector, transposed_times_vector
from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.errors import UsageError

_ROWS_WITH_GAPS = 1 << 14  # rows that are copied and filled together


def fill_values(X: FloatMatrix, missing: str | None) -> F64 | None:
    """Return the number that replaces missing values of each feature: its mean or 0.

    None if ``missing`` is None: missing values are refused.
    """
    if missing is None:
        return None
    if missing == "zero":
        return np.zeros(X.shape[1])
    if missing != "mean":
        raise UsageError(f"missing must be 'mean', 'zero' or None, not {missing!r}.")
    means: F64 = transposed_times_vector(X, np.ones(X.shape[0])) / max(1, X.shape[0])
    for column in _columns_with_gaps(X):
        values = column_of(X, column)
        present = values[~np.isnan(values)]
        means[column] = present.mean() if len(present) else 0.0
    return means


def column_of(X: FloatMatrix, column: int) -> F64:
    """Return the values of one feature as an array of float64."""
    values = X[:, [column]].toarray().ravel() if sparse.issparse(X) else X[:, column]
    return np.asarray(values, np.float64)


def filled(X: FloatMatrix, fill: F64 | None, model: str) -> FloatMatrix:
    """Return X with missing values replaced by ``fill``: X itself if there are none.

    Raises
    ------
    DataError
        If values are missing and ``fill`` is None.
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
        copy = X.copy()
        gaps = np.flatnonzero(np.isnan(copy.data))
        copy.data[gaps] = fill[copy.indices[gaps]]
        return copy
    out = np.empty(X.shape, X.dtype)
    for block in blocks(X):
        out[block] = X[block]
        rows, column = np.nonzero(np.isnan(out[block]))
        out[block][rows, column] = fill[column]
    return out


def product_with_gaps(
    X: FloatMatrix, w: F64, fill: F64 | None, model: str, *, n_jobs: int | None = None
) -> F64:
    """Return ``X @ w`` with missing values of X replaced by ``fill``.

    X is read only once if no value is missing: a missing value makes the sum of its row NaN,
    also with a weight of 0, so the sums show which rows need filling.

    Raises
    ------
    DataError
        If values are missing and ``fill`` is None.
    """
    out = times_vector(X, w, n_jobs=n_jobs)
    with_gaps = np.flatnonzero(np.isnan(out))
    if len(with_gaps) and fill is None:
        filled(X, fill, model)  # raises for missing values; infinite values give NaN too
        return out
    for lo in range(0, len(with_gaps), _ROWS_WITH_GAPS):
        rows = with_gaps[lo : lo + _ROWS_WITH_GAPS]
        out[rows] = times_vector(filled(X[rows], fill, model), w, n_jobs=n_jobs)
    return out


def without_gaps(X: FloatMatrix, model: str) -> FloatMatrix:
    """Return X; raise if values are missing, for models that cannot fill them."""
    columns = _columns_with_gaps(X)
    if len(columns):
        raise _gaps(columns, model, "drop these rows or replace the missing values")
    return X


def _gaps(columns: I64, model: str, advice: str) -> FeatureError:
    return FeatureError(
        f"feature column {columns[0]} has missing values (NaN), which a {model} model does not "
        f"take; {advice}.",
        int(columns[0]),
    )


def _columns_with_gaps(X: FloatMatrix) -> I64:
    """Return the columns that contain NaN: their sum is NaN, which needs no copy of X."""
    return np.flatnonzero(np.isnan(transposed_times_vector(X, np.ones(X.shape[0]))))
