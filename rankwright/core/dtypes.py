"""Convert features, grades, ids and groups of the caller to arrays.

Errors name the row and the column of the first bad value.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.checks import check_csr
from rankwright.core.types import F64, AnyArray, FloatMatrix
from rankwright.errors import DataError, DataTypeError, brief, quoted

_BLOCK_BYTES = 1 << 24
_COMPLEX = "Complex data not supported: X must be real numbers."
_WHOLE = 1 << 53  # up to here a double holds every whole number


class FeatureError(DataError):
    """Invalid value of a feature; the message names the "feature column" by its number, from 0."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column

    def __reduce__(self) -> tuple[type[FeatureError], tuple[str, int]]:
        return type(self), (str(self), self.column)


class FeatureTypeError(FeatureError, DataTypeError):
    """A value of a feature has a type that cannot be converted to a number."""


@contextmanager
def naming_features(names: Sequence[Any] | None) -> Iterator[None]:
    """Replace the number of the column in a `FeatureError` by the name of the feature."""
    try:
        yield
    except FeatureError as error:
        if names is None:
            raise
        column = f"feature column {error.column}"
        message = str(error).replace(column, f"feature {quoted(names[error.column])}", 1)
        kind = DataTypeError if isinstance(error, DataTypeError) else DataError
        raise kind(message) from None


def refuse_lazy(X: Any) -> None:
    """Raise for a lazy frame, which has not been read yet."""
    if hasattr(X, "collect"):
        raise DataError("X is a lazy frame; collect it first: X.collect().")


def as_feature_matrix(X: Any) -> FloatMatrix:
    """Return ``X`` as C-contiguous float32 or float64, or as CSR.

    Missing values are NaN: None, pandas.NA and the masked values of a NumPy masked array.
    """
    if sparse.issparse(X):
        return _as_csr(X)
    if isinstance(X, str | PathLike):
        raise DataError(f"X is a path ({X}); read the file first: rankwright.load(path).")
    refuse_lazy(X)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    try:
        array = np.asarray(X)
    except ValueError:  # lists of different lengths
        raise DataError(
            "X must be a table of rows and features; its rows have different lengths."
        ) from None
    if array.ndim == 1 and array.dtype != object:
        raise DataError(
            f"X must have two dimensions, not the shape {array.shape}. Reshape your data: "
            "X.reshape(-1, 1) is one feature, X.reshape(1, -1) one document."
        )
    if array.ndim != 2:
        raise DataError(f"X must be a table of rows and features, not of shape {array.shape}.")
    if array.dtype not in (np.float32, np.float64):
        array = _to_float64(array)
    array = np.ascontiguousarray(array)
    _refuse_infinite(array)
    return array


def blocks(X: FloatMatrix) -> Iterator[slice]:
    """Yield the rows of a matrix in slices of about `_BLOCK_BYTES` each."""
    n, d = X.shape
    step = max(1, _BLOCK_BYTES // max(1, d * X.dtype.itemsize))
    for lo in range(0, n, step):
        yield slice(lo, min(lo + step, n))


def refuse_masked(values: Any, name: str) -> None:
    """Raise if ``values`` is a NumPy masked array with masked values, because they are unset."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = np.argwhere(np.ma.getmaskarray(values))[0]
        raise DataError(
            f"the value of {name} at row {int(at[0])} is masked; leave out such rows, or fill in "
            "the values."
        )


def as_vector(values: Any, name: str, length: int) -> AnyArray:
    """Return ``values`` as a one-dimensional array of the given length."""
    refuse_masked(values, name)
    array = as_array(values, name)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.shape != (length,):
        raise DataError(
            f"{name} has {array.shape[0] if array.ndim == 1 else array.shape} values, "
            f"where {length} are expected, one for each row."
        )
    return array


def as_array(values: Any, name: str) -> AnyArray:
    """Return ``values`` as an array; raise for texts that NumPy would truncate."""
    array = np.asarray(values)
    if array.dtype.kind in "US" and array.ndim == 1 and not isinstance(values, np.ndarray):
        refuse_trailing_nul(values, name)
    return array


def refuse_trailing_nul(values: Collection[Any], what: str) -> None:
    """Raise for ids that end in NUL, which NumPy drops, so that two ids would be equal."""
    with suppress(TypeError):  # some are not text
        if "\0" not in "".join(values):  # five times as fast as a loop
            return
    for value in values:
        if isinstance(value, str | bytes) and value[-1:] in ("\0", b"\0"):
            raise DataError(
                f"the {what} {quoted(value)} ends in a NUL character, which would be dropped, and "
                "two ids might become one; remove it from the ids."
            )


def as_groups(values: Any, name: str, length: int) -> AnyArray:
    """Return ``values`` as a vector of groups, or a matrix as shares of documents x topics.

    Shares are 0 or 1, or any number from 0.
    """
    refuse_masked(values, name)
    array = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if array.ndim != 2 or 1 in array.shape:
        return as_vector(array, name, length)
    if len(array) != length:
        raise DataError(f"{name} has {len(array)} rows, where {length} are expected.")
    if array.dtype.kind not in "fiub" or not (np.isfinite(array) & (array >= 0)).all():
        raise DataError(f"{name} as a matrix holds shares of documents in topics: numbers from 0.")
    return np.ascontiguousarray(array, np.float64)


def as_float_vector(values: Any, name: str, length: int) -> F64:
    """Return ``values`` as float64 of the given length."""
    array = as_vector(values, name, length)
    if array.dtype.kind not in "fiub":
        wrong = _first_non_number(array.tolist() if isinstance(values, np.ndarray) else values)
        if wrong is not None:
            row, shown, is_text = wrong
            message = f"{name} must be numbers; row {row} holds {shown}"
            if not is_text:
                raise DataTypeError(message)
            raise DataError(
                f"{message}: turn text into numbers first, higher for better documents."
            )
    return np.ascontiguousarray(array, np.float64)


def _as_csr(X: Any) -> sparse.csr_array[Any]:
    if X.ndim != 2:
        raise DataError(f"X must be a table of rows and features, not of shape {X.shape}.")
    if X.dtype.kind == "c":
        raise DataError(_COMPLEX)
    matrix = _to_csr(X)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if np.shares_memory(matrix.data, X.data) else matrix
        matrix.sum_duplicates()
    if np.isinf(matrix.data).any():
        at = int(np.flatnonzero(np.isinf(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise _infinite(row, int(matrix.indices[at]))
    return matrix


def _to_csr(X: Any) -> sparse.csr_array[Any]:
    """Return a sparse matrix as CSR. SciPy's conversions check no bounds, so check them first."""
    try:
        if X.format == "csr":
            check_csr(X)
            return sparse.csr_array(X)
        if X.format == "csc":
            check_csr(X.T)
        elif hasattr(X, "check_format"):
            X.check_format()
        elif X.format == "coo":
            X = sparse.coo_array((X.data, (X.row, X.col)), X.shape)  # which checks its numbers
        matrix = sparse.csr_array(X)
        check_csr(matrix)
    except DataError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"X is not a valid {X.format.upper()} matrix: {error}.") from None
    return matrix


def _to_float64(array: AnyArray) -> AnyArray:
    if array.dtype.kind == "c":
        raise DataError(_COMPLEX)
    if array.dtype.kind == "O":  # None instead of pandas.NA, which float() refuses
        is_na = np.reshape([type(value).__name__ == "NAType" for value in array.flat], array.shape)
        array = array.copy()
        array[is_na.astype(bool)] = None
    if array.dtype.kind not in "fiub":
        wrong = _first_non_number(array.ravel().tolist())
        if wrong is not None:
            row, column = divmod(wrong[0], array.shape[1])
            message = f"X must be numbers; row {row}, feature column {column} holds {wrong[1]}"
            if not wrong[2]:
                raise FeatureTypeError(message, column)
            raise FeatureError(f"{message}. Encode text first, or drop the column.", column)
    whole = array.dtype.kind in "iu" and array.size > 0
    if whole and max(int(array.max()), -int(array.min())) > _WHOLE:
        warnings.warn(
            "X holds whole numbers beyond 2^53, which are rounded; leave ids out of the features.",
            stacklevel=3,
        )
    return array.astype(np.float64)


def _refuse_infinite(array: AnyArray) -> None:
    for block in blocks(array):
        infinite = np.isinf(array[block])
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise _infinite(block.start + int(row), int(column))


def _infinite(row: int, column: int) -> DataError:
    return FeatureError(
        f"X is infinite at row {row}, feature column {column}; use NaN for a missing value.", column
    )


def _first_non_number(values: Iterable[Any]) -> tuple[int, str, bool] | None:
    """Return the index of the first value that is not a number, or None.

    It is followed by the description for the error, and whether the value is text. The value None
    is NaN.
    """
    for index, value in enumerate(values):
        if isinstance(value, str | bytes):
            return index, brief(value), True
        try:
            float(0.0 if value is None else value)
        except (TypeError, ValueError):
            # the sentence of Python, which scikit-learn expects
            wanted = "float() argument must be a string or a real number"
            return index, f"{quoted(value)}: {wanted}, not {quoted(type(value).__name__)}.", False
    return None
