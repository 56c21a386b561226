"""X w and X' g in fixed blocks of rows: float64 results, the same bytes for any thread count.

Products are summed in float64 for any type of X. They are kernels because BLAS either sums in
float32 or needs a float64 copy of X, and its threads would change the bytes. For 69,623 x 46 a
product takes 0.4 ms, and 0.8 to 1.1 ms with BLAS in float64.

Indices in CSR arrays are read as unsigned numbers: Numba checks whether a signed index is negative,
to count from the end, which takes more time than the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, FloatMatrix

_ROWS = 1 << 14

# --- kernels ---------------------------------------------------------------------------------


@quick_kernel
def _dense_rows(lo, hi, X, w, out):
    for i in range(lo, hi):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * w[j]
        out[i] = total


@quick_kernel
def _sparse_rows(lo, hi, indptr, indices, values, w, out):
    for i in range(lo, hi):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += values[k] * w[np.uint64(indices[k])]
        out[i] = total


@kernel
def _dense_columns(lo, hi, X, g, parts):
    out = parts[lo // _ROWS]
    for i in range(lo, hi):
        for j in range(X.shape[1]):
            out[j] += X[i, j] * g[i]


@kernel
def _sparse_columns(lo, hi, indptr, indices, values, g, parts):
    out = parts[lo // _ROWS]
    for i in range(lo, hi):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(indices[k])] += values[k] * g[i]


@kernel
def _dense_squares(lo, hi, X, g, parts):
    out = parts[lo // _ROWS]
    for i in range(lo, hi):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            out[j] += x * x * g[i]


@kernel
def _sparse_squares(lo, hi, indptr, indices, values, g, parts):
    out = parts[lo // _ROWS]
    for i in range(lo, hi):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            x = np.float64(values[k])
            out[np.uint64(indices[k])] += x * x * g[i]


# --- API -------------------------------------------------------------------------------------


def times_vector(X: FloatMatrix, w: F64, *, n_jobs: int | None = None) -> F64:
    """Return ``X @ w``."""
    return _over_blocks(_dense_rows, _sparse_rows, X, w, np.empty(X.shape[0]), n_jobs)


def transposed_times_vector(X: FloatMatrix, g: F64, *, n_jobs: int | None = None) -> F64:
    """Return ``X.T @ g``, the blocks added in order."""
    parts = np.zeros((math.ceil(X.shape[0] / _ROWS), X.shape[1]))
    total: F64 = _over_blocks(_dense_columns, _sparse_columns, X, g, parts, n_jobs).sum(axis=0)
    return total


def transposed_squares_times_vector(X: FloatMatrix, g: F64, *, n_jobs: int | None = None) -> F64:
    """Return ``(X**2).T @ g``, the blocks added in order."""
    parts = np.zeros((math.ceil(X.shape[0] / _ROWS), X.shape[1]))
    total: F64 = _over_blocks(_dense_squares, _sparse_squares, X, g, parts, n_jobs).sum(axis=0)
    return total


def _over_blocks(
    dense: Callable[..., None],
    sparse: Callable[..., None],
    X: FloatMatrix,
    vector: F64,
    out: F64,
    n_jobs: int | None,
) -> F64:
    """Call a kernel for each block of rows and return its output."""
    arrays = (X,) if isinstance(X, np.ndarray) else (X.indptr, X.indices, X.data)
    kernel = dense if len(arrays) == 1 else sparse
    map_ranges(kernel, row_ranges(X.shape[0], _ROWS), *arrays, vector, out, n_jobs=n_jobs)
    return out


# --- BLAS on one thread ----------------------------------------------------------------------
#
# On the short vectors of a solver, BLAS's threads wait more than they work. The limit applies to
# the whole process: threads inside the context share it, and the last one to leave lifts it.

_entering = Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's and SciPy's BLAS use one thread inside the context."""
    global _inside, _limit
    with _entering:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
            _let_others_set_limits()
        _inside += 1
    try:
        yield
    finally:
        with _entering:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
                _let_others_set_limits()


def _let_others_set_limits() -> None:
    """Leave a context of threadpoolctl, which until then lets only one thread change limits."""
    with _controller().limit(limits=None):
        pass


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # cached because finding the libraries takes milliseconds
