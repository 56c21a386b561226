"""Put features on a common scale within each query.

Over the values x of one feature in a query that are not missing:

- ``minmax``  (x - min) / (max - min); a constant feature becomes 0                           (1)
- ``zscore``  (x - mean) / sd with n - 1; unchanged if sd is 0 or there is one document       (2)
- ``sum``     x / sum |x|; unchanged if the sum is 0                                          (3)

These are RankLib's ``linear``, ``zscore`` and ``sum``, to the last bit of float32. They learn
nothing, so ``fit`` returns the normaliser itself. A missing value stays missing. A sparse matrix
stays sparse if zeros stay zero; otherwise an error is raised, and ``densify=True`` makes it dense.
For scales learned on the training set use scikit-learn's transformers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries
from rankwright.core.types import AnyArray, FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, quoted

# --- kernels: scales of each query -----------------------------------------------------------


@kernel
def _shift_and_scale(X, start, end, shift, scale, out):
    """Put rows start:end of ``X`` less ``shift``, over ``scale``, into ``out``."""
    for i in range(start, end):
        for f in range(X.shape[1]):
            out[i, f] = (X[i, f] - shift[f]) / scale[f]


@kernel
def _minmax_queries(lo, hi, indptr, X, highest, out):
    d = X.shape[1]
    low, high = np.empty(d, X.dtype), np.empty(d, X.dtype)
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        low[:], high[:] = np.inf, highest
        for i in range(start, end):
            for f in range(d):
                if X[i, f] < low[f]:  # False for a missing value
                    low[f] = X[i, f]
                if X[i, f] > high[f]:
                    high[f] = X[i, f]
        for f in range(d):
            high[f] = high[f] - low[f] if high[f] > low[f] else 1.0
        _shift_and_scale(X, start, end, low, high, out)  # (1)


@kernel
def _zscore_queries(lo, hi, indptr, X, out):
    d = X.shape[1]
    count, mean, sd = np.empty(d), np.empty(d), np.empty(d)
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        count[:], mean[:], sd[:] = 0.0, 0.0, 0.0
        for i in range(start, end):
            for f in range(d):
                if X[i, f] == X[i, f]:
                    count[f] += 1.0
                    mean[f] += X[i, f]
        for f in range(d):
            mean[f] /= max(count[f], 1.0)
        for i in range(start, end):
            for f in range(d):
                if X[i, f] == X[i, f]:
                    sd[f] += (X[i, f] - mean[f]) * (X[i, f] - mean[f])
        for f in range(d):
            if count[f] > 1.0 and sd[f] > 0.0:
                sd[f] = np.sqrt(sd[f] / (count[f] - 1.0))
            else:
                mean[f], sd[f] = 0.0, 1.0
        _shift_and_scale(X, start, end, mean, sd, out)  # (2)


@kernel
def _sum_queries(lo, hi, indptr, X, out):
    d = X.shape[1]
    nothing, total = np.zeros(d), np.empty(d)
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        total[:] = 0.0
        for i in range(start, end):
            for f in range(d):
                if X[i, f] == X[i, f]:
                    total[f] += abs(np.float64(X[i, f]))
        for f in range(d):
            if total[f] == 0.0:
                total[f] = 1.0
        _shift_and_scale(X, start, end, nothing, total, out)  # (3)


@kernel
def _minmax_sparse(lo, hi, indptr, row, column, x, d, highest, out, moved):
    """(1) on the stored entries; ``moved[q]`` is a feature whose zeros would not stay zero."""
    low, high = np.empty(d, x.dtype), np.empty(d, x.dtype)
    stored, zero = np.zeros(d, np.int64), np.zeros(1, x.dtype)[0]
    for q in range(lo, hi):
        first, last = row[indptr[q]], row[indptr[q + 1]]
        for e in range(first, last):
            low[column[e]], high[column[e]] = np.inf, highest
        for e in range(first, last):
            f = column[e]
            stored[f] += 1
            low[f] = x[e] if x[e] < low[f] else low[f]
            high[f] = x[e] if x[e] > high[f] else high[f]
        for e in range(first, last):
            f = column[e]
            if stored[f] < indptr[q + 1] - indptr[q]:  # the entries that are not stored are zeros
                if low[f] < 0.0:
                    moved[q] = f
                low[f], high[f] = min(low[f], zero), max(high[f], zero)
            above = x[e] - low[f]
            out[e] = above / (high[f] - low[f]) if high[f] > low[f] else above
        for e in range(first, last):
            stored[column[e]] = 0


@kernel
def _sum_sparse(lo, hi, indptr, row, column, x, d, out):
    total = np.zeros(d)
    for q in range(lo, hi):
        first, last = row[indptr[q]], row[indptr[q + 1]]
        for e in range(first, last):
            if x[e] == x[e]:
                total[column[e]] += abs(np.float64(x[e]))
        for e in range(first, last):
            t = total[column[e]]
            out[e] = x[e] / t if t > 0.0 else x[e]
        for e in range(first, last):
            total[column[e]] = 0.0


# --- API -------------------------------------------------------------------------------------


class LearnsNothing:
    """A normaliser with nothing to learn from the training set."""

    __slots__ = ()

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Self:  # noqa: ARG002
        """Return this normaliser; there is nothing to learn."""
        return self


def _dense(X: FloatMatrix, name: str, densify: bool, where: str = "") -> Any:
    """Return a dense matrix as it is, a sparse one as dense if ``densify`` allows it."""
    if not sparse.issparse(X):
        return X
    if not densify:
        raise DataError(
            f"{name} moves the zeros of a sparse matrix{where}; use sum, which keeps them, or "
            "densify=True if the dense matrix fits in memory."
        )
    return X.toarray()


def _with_entries(X: Any, entries: AnyArray) -> Any:
    """Return sparse ``X`` with other values in its stored entries."""
    return sparse.csr_array((entries, X.indices, X.indptr), shape=X.shape)


@dataclass(frozen=True, slots=True)
class QueryMinMax(LearnsNothing):
    """Scale each feature to 0..1 within each query.

    Parameters
    ----------
    ranklib
        Take the maximum over the values and 0, as RankLib does, by a slip of its own: a feature
        whose values in a query are all negative then ends below 1.
    densify
        Make a sparse matrix dense where its zeros would not stay zero.

    Examples
    --------
    >>> from rankwright.data import QueryMinMax, RankingData
    >>> data = RankingData.from_arrays([[2.0], [4.0], [3.0]], [0, 1, 0], qid=[7, 7, 7])
    >>> QueryMinMax().fit(data).transform(data).X.ravel()
    array([0. , 1. , 0.5])
    """

    ranklib: bool = False
    densify: bool = False

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with its features between 0 and 1 in every query."""
        X = data.X
        numbers = np.finfo(X.dtype)
        highest = numbers.smallest_subnormal if self.ranklib else X.dtype.type(-np.inf)
        if sparse.issparse(X):
            moved = np.full(data.n_queries, -1)
            entries = np.empty_like(X.data)
            stored = (X.indptr, X.indices, X.data, X.shape[1])
            map_queries(
                _minmax_sparse, data.indptr, *stored, highest, entries, moved, n_jobs=n_jobs
            )
            if (moved < 0).all():
                return replace(data, X=_with_entries(X, entries))
            q = int(np.flatnonzero(moved >= 0)[0])
            names, column = data.feature_names, moved[q]
            feature = f"feature column {column}" if names is None else quoted(names[column])
            where = f" (query {data.qid[q]}, {feature} has negative values)"
            X = _dense(X, "minmax", self.densify, where)
        out = np.empty_like(X)
        map_queries(_minmax_queries, data.indptr, X, highest, out, n_jobs=n_jobs)
        return replace(data, X=out)


@dataclass(frozen=True, slots=True)
class QueryZScore(LearnsNothing):
    """Give each feature mean 0 and standard deviation 1 within each query.

    Examples
    --------
    >>> from rankwright.data import QueryZScore, RankingData
    >>> data = RankingData.from_arrays([[1.0], [5.0], [3.0]], [0, 1, 0], qid=[7, 7, 7])
    >>> QueryZScore().fit(data).transform(data).X.ravel().round(2)
    array([-1.,  1.,  0.])
    """

    densify: bool = False

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with its features standardised in every query."""
        X = _dense(data.X, "zscore", self.densify)
        out = np.empty_like(X)
        map_queries(_zscore_queries, data.indptr, X, out, n_jobs=n_jobs)
        return replace(data, X=out)


@dataclass(frozen=True, slots=True)
class QuerySum(LearnsNothing):
    """Divide each feature by the sum of its absolute values within each query.

    Examples
    --------
    >>> from rankwright.data import QuerySum, RankingData
    >>> data = RankingData.from_arrays([[2.0], [5.0], [3.0]], [0, 1, 0], qid=[7, 7, 7])
    >>> QuerySum().fit(data).transform(data).X.ravel()
    array([0.2, 0.5, 0.3])
    """

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with absolute values that add up to 1 in every query."""
        X = data.X
        if sparse.issparse(X):
            entries = np.empty_like(X.data)
            stored = (X.indptr, X.indices, X.data, X.shape[1])
            map_queries(_sum_sparse, data.indptr, *stored, entries, n_jobs=n_jobs)
            return replace(data, X=_with_entries(X, entries))
        out = np.empty_like(X)
        map_queries(_sum_queries, data.indptr, X, out, n_jobs=n_jobs)
        return replace(data, X=out)
