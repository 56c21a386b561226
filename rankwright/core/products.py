"""X w and X' g in fixed blocks of rows: float64 results, the same bytes for any thread count.

BLAS is held to one thread meanwhile: on small blocks two of its threads were twenty times slower
than one, and its sums would depend on their number.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from rankwright.core.parallel import map_ranges
from rankwright.core.types import F64, I64, FloatMatrix

_ROWS = 1 << 14


def times_vector(X: FloatMatrix, w: F64, *, n_threads: int | None = None) -> F64:
    """Return ``X @ w``."""
    out = np.empty(X.shape[0])

    def block(lo: int, hi: int) -> None:
        out[lo:hi] = _float64(X[lo:hi]) @ w

    with threadpool_limits(1, "blas"):
        map_ranges(block, _bounds(X.shape[0]), n_threads=n_threads)
    return out


def transposed_times_vector(X: FloatMatrix, g: F64, *, n_threads: int | None = None) -> F64:
    """Return ``X.T @ g``, the blocks added in order."""
    bounds = _bounds(X.shape[0])
    parts = np.zeros((len(bounds) - 1, X.shape[1]))

    def block(lo: int, hi: int) -> None:
        parts[lo // _ROWS] = _float64(X[lo:hi]).T @ g[lo:hi]

    with threadpool_limits(1, "blas"):
        map_ranges(block, bounds, n_threads=n_threads)
    total: F64 = parts.sum(axis=0)
    return total


def _bounds(n: int) -> I64:
    return np.append(np.arange(0, n, _ROWS), n).astype(np.int64)


def _float64(block: FloatMatrix) -> FloatMatrix:
    return block if block.dtype == np.float64 else block.astype(np.float64)
