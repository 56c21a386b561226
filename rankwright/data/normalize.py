"""Put features on a common scale within each query, and find any normaliser by its name.

Within a query, over the values x of one feature that are not missing:

- ``minmax``  (x - min) / (max - min); a constant feature becomes 0                           (1)
- ``zscore``  (x - mean) / sd with n - 1; left alone where sd is 0 or there is one document   (2)
- ``sum``     x / sum |x|; left alone where the sum is 0                                      (3)

These are RankLib's ``linear``, ``zscore`` and ``sum``, to the last bit of float32. They learn
nothing, so ``fit`` returns the normaliser itself. `rankwright.data.scaling` has ``global_zscore``,
``quantile`` and ``log``, which are the same for all queries.

A missing value stays missing. A sparse matrix stays sparse where zeros stay zero; elsewhere the
refusal says so, and ``densify=True`` makes it dense.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries
from rankwright.data.ranking_data import RankingData
from rankwright.data.scaling import (
    GlobalZScore,
    LearnsNothing,
    Log,
    Normalizer,
    Quantile,
    dense,
    shift_and_scale,
    with_entries,
)
from rankwright.errors import UsageError
from rankwright.registry import unknown

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _minmax_queries(lo, hi, indptr, X, highest, out):  # type: ignore[no-untyped-def]
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
        shift_and_scale(X, start, end, low, high, out)  # (1)


@kernel
def _zscore_queries(lo, hi, indptr, X, out):  # type: ignore[no-untyped-def]
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
        shift_and_scale(X, start, end, mean, sd, out)  # (2)


@kernel
def _sum_queries(lo, hi, indptr, X, out):  # type: ignore[no-untyped-def]
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
        shift_and_scale(X, start, end, nothing, total, out)  # (3)


@kernel
def _minmax_sparse(lo, hi, indptr, row, column, x, d, highest, out, moved):  # type: ignore[no-untyped-def]
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
def _sum_sparse(lo, hi, indptr, row, column, x, d, out):  # type: ignore[no-untyped-def]
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
                return replace(data, X=with_entries(X, entries))
            q = int(np.flatnonzero(moved >= 0)[0])
            where = f" (query {data.qid[q]}, feature column {moved[q]} has negative values)"
            X = dense(X, "minmax", self.densify, where)
        out = np.empty_like(X)
        map_queries(_minmax_queries, data.indptr, X, highest, out, n_jobs=n_jobs)
        return replace(data, X=out)


@dataclass(frozen=True, slots=True)
class QueryZScore(LearnsNothing):
    """Give each feature mean 0 and standard deviation 1 within each query."""

    densify: bool = False

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with its features standardised in every query."""
        X = dense(data.X, "zscore", self.densify)
        out = np.empty_like(X)
        map_queries(_zscore_queries, data.indptr, X, out, n_jobs=n_jobs)
        return replace(data, X=out)


@dataclass(frozen=True, slots=True)
class QuerySum(LearnsNothing):
    """Divide each feature by the sum of its absolute values within each query."""

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with absolute values that add up to 1 in every query."""
        X = data.X
        if sparse.issparse(X):
            entries = np.empty_like(X.data)
            stored = (X.indptr, X.indices, X.data, X.shape[1])
            map_queries(_sum_sparse, data.indptr, *stored, entries, n_jobs=n_jobs)
            return replace(data, X=with_entries(X, entries))
        out = np.empty_like(X)
        map_queries(_sum_queries, data.indptr, X, out, n_jobs=n_jobs)
        return replace(data, X=out)


NORMALIZERS: dict[str, type[Any]] = {
    "minmax": QueryMinMax,
    "zscore": QueryZScore,
    "sum": QuerySum,
    "global_zscore": GlobalZScore,
    "quantile": Quantile,
    "log": Log,
}


def normalizer(name: str, **parameters: Any) -> Normalizer:
    """Return the normaliser called ``name``: minmax, zscore, sum, global_zscore, quantile, log."""
    if name not in NORMALIZERS:
        raise UsageError(unknown("normaliser", name, NORMALIZERS))
    chosen: Normalizer = NORMALIZERS[name](**parameters)
    return chosen
