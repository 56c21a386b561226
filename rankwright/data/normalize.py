"""Put features on a common scale, within each query or over all of the training set.

Within a query, over the values x of one feature that are not missing:

- ``minmax``  (x - min) / (max - min); a constant feature becomes 0                           (1)
- ``zscore``  (x - mean) / sd with n - 1; left alone where sd is 0 or there is one document   (2)
- ``sum``     x / sum |x|; left alone where the sum is 0                                      (3)

These are RankLib's ``linear``, ``zscore`` and ``sum``, to the last bit of float32. They learn
nothing, so ``fit`` returns the normaliser itself. These are the same for all queries, learned on
the training set:

- ``global_zscore``  (x - mean) / sd with the training set's mean and sd, n - 1              (4)
- ``quantile``       the share of the training values that are smaller, between 0 and 1      (5)
- ``log``            sign(x) log(1 + |x|), which learns nothing                              (6)

A missing value stays missing. A sparse matrix stays sparse where zeros stay zero; elsewhere the
error says so, and ``densify=True`` makes it dense.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_queries, map_ranges, row_ranges
from rankwright.core.types import F64, AnyArray, FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown

_ROWS = 16_384

# --- kernels: scales of the training set -----------------------------------------------------


@kernel
def shift_and_scale(X, start, end, shift, scale, out):  # type: ignore[no-untyped-def]
    """Put rows start:end of ``X`` less ``shift``, over ``scale``, into ``out``."""
    for i in range(start, end):
        for f in range(X.shape[1]):
            out[i, f] = (X[i, f] - shift[f]) / scale[f]


@kernel
def _add_rows(lo, hi, X, center, power, sums, counts):  # type: ignore[no-untyped-def]
    """Add (x - center) ** power over rows lo:hi to the sums of their own piece of the rows."""
    piece = lo // _ROWS
    for i in range(lo, hi):
        for f in range(X.shape[1]):
            if X[i, f] == X[i, f]:
                deviation = X[i, f] - center[f]
                sums[piece, f] += deviation if power == 1 else deviation * deviation
                counts[piece, f] += 1.0


@kernel
def _scale_rows(lo, hi, X, shift, scale, out):  # type: ignore[no-untyped-def]
    shift_and_scale(X, lo, hi, shift, scale, out)  # (4)


@kernel
def _share_below(x, reference):  # type: ignore[no-untyped-def]
    """(5) by linear interpolation; among equal references the middle one counts."""
    k = len(reference) - 1
    if not x > reference[0]:
        return 0.0
    if x >= reference[k]:
        return 1.0
    right, n = 0, k
    while n > 1:  # half the time of np.searchsorted: no branch to mispredict
        half = n // 2
        right += half if reference[right + half] <= x else 0
        n -= half
    if reference[right] == x:
        return 0.5 * (np.searchsorted(reference, x) + right) / k
    step = (x - reference[right]) / (reference[right + 1] - reference[right])
    return (right + step) / k


@kernel
def _rank_rows(lo, hi, X, references, out):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        for f in range(X.shape[1]):
            x = np.float64(X[i, f])
            out[i, f] = _share_below(x, references[f]) if x == x else x


# --- scales of the training set --------------------------------------------------------------


class Fitted(Protocol):
    """A normaliser that has seen its training data."""

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with its features on the new scale."""


class Normalizer(Protocol):
    """What a normaliser is asked to be, before it has seen any data."""

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Fitted:
        """Learn from the training set alone."""


class LearnsNothing:
    """A normaliser with nothing to learn from the training set."""

    __slots__ = ()

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Any:  # noqa: ARG002
        """Return this normaliser; there is nothing to learn."""
        return self


@dataclass(frozen=True, slots=True)
class Log(LearnsNothing):
    """Shrink large values: sign(x) log(1 + |x|)."""

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with its features on a logarithmic scale."""
        values = data.X.data if sparse.issparse(data.X) else data.X
        out = np.empty_like(values)
        map_ranges(_log_rows, _row_bounds(len(values)), values, out, n_jobs=n_jobs)
        return replace(data, X=with_entries(data.X, out) if sparse.issparse(data.X) else out)


@dataclass(frozen=True, slots=True)
class GlobalZScore:
    """Give each feature mean 0 and standard deviation 1 over the training set."""

    densify: bool = False

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> FittedZScore:
        """Learn the mean and standard deviation (n - 1) of each feature."""
        X = dense(data.X, "global_zscore", self.densify)
        mean, count = _sum_columns(X, np.zeros(X.shape[1]), 1, n_jobs)
        mean /= np.maximum(count, 1)
        scale, count = _sum_columns(X, mean, 2, n_jobs)
        scale = np.sqrt(scale / np.maximum(count - 1, 1))
        scale[scale == 0] = 1.0
        return FittedZScore(mean, scale, self.densify)


@dataclass(frozen=True, slots=True, eq=False)
class FittedZScore:
    """(x - mean) / scale, so a linear model w on it is w / scale on x, less (w / scale) . mean.

    Attributes
    ----------
    mean, scale : (d,) float64
        A constant feature has scale 1, one that is always missing mean 0.
    """

    mean: F64
    scale: F64
    densify: bool = False

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` on the training set's scale."""
        X = dense(data.X, "global_zscore", self.densify)
        _check_width(X, len(self.mean))
        out = np.empty_like(X)
        bounds = _row_bounds(len(X))
        map_ranges(_scale_rows, bounds, X, self.mean, self.scale, out, n_jobs=n_jobs)
        return replace(data, X=out)


@dataclass(frozen=True, slots=True)
class Quantile:
    """Replace each value by the share of training values below it.

    Parameters
    ----------
    n_quantiles
        How many evenly spaced quantiles of each feature are kept; values between two are
        interpolated. Values outside the training range become 0 or 1.
    """

    n_quantiles: int = 1000
    densify: bool = False

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> FittedQuantile:
        """Learn the quantiles of each feature."""
        if self.n_quantiles < 2:
            raise UsageError(f"n_quantiles must be 2 or more, not {self.n_quantiles}.")
        X = dense(data.X, "quantile", self.densify)
        levels = np.linspace(0, 1, min(self.n_quantiles, max(len(X), 2)))
        references = np.empty((X.shape[1], len(levels)))
        columns = np.arange(X.shape[1] + 1)
        map_ranges(_learn_columns, columns, X, levels, references, n_jobs=n_jobs)
        return FittedQuantile(references, self.densify)


@dataclass(frozen=True, slots=True, eq=False)
class FittedQuantile:
    """The share of the training values below x.

    Attributes
    ----------
    references : (d, k) float64
        Quantiles of each feature at k evenly spaced levels from 0 to 1.
    """

    references: F64
    densify: bool = False

    def transform(self, data: RankingData, *, n_jobs: int | None = None) -> RankingData:
        """Return ``data`` with its features between 0 and 1."""
        X = dense(data.X, "quantile", self.densify)
        _check_width(X, len(self.references))
        out = np.empty_like(X)
        map_ranges(_rank_rows, _row_bounds(len(X)), X, self.references, out, n_jobs=n_jobs)
        return replace(data, X=out)


def _log_rows(lo: int, hi: int, values: AnyArray, out: AnyArray) -> None:
    np.log1p(np.abs(values[lo:hi]), out=out[lo:hi])
    np.copysign(out[lo:hi], values[lo:hi], out=out[lo:hi])  # (6)


def _learn_columns(lo: int, hi: int, X: AnyArray, levels: F64, references: F64) -> None:
    for f in range(lo, hi):
        column = X[:, f].astype(np.float64)
        column = column[~np.isnan(column)]
        references[f] = np.quantile(column, levels) if len(column) else 0.0
        np.maximum.accumulate(references[f], out=references[f])  # rounding may cross by a bit


def _sum_columns(X: AnyArray, center: F64, power: int, n_jobs: int | None) -> tuple[F64, F64]:
    bounds = _row_bounds(len(X))
    sums = np.zeros((len(bounds) - 1, X.shape[1]))
    counts = np.zeros_like(sums)
    map_ranges(_add_rows, bounds, X, center, power, sums, counts, n_jobs=n_jobs)
    return sums.sum(axis=0), counts.sum(axis=0)


def _row_bounds(n: int) -> Any:
    return row_ranges(n, _ROWS)


def _check_width(X: AnyArray, expected: int) -> None:
    if X.shape[1] != expected:
        raise DataError(
            f"the normaliser was fitted on {expected} features, but the data has {X.shape[1]}."
        )


# --- shared with the normalisers of each query -----------------------------------------------


def dense(X: FloatMatrix, name: str, densify: bool, where: str = "") -> Any:
    """Return a dense matrix as it is, a sparse one as dense if ``densify`` allows it."""
    if not sparse.issparse(X):
        return X
    if not densify:
        raise DataError(
            f"{name} moves the zeros of a sparse matrix{where}; use sum or log, which keep them, "
            "or densify=True where the dense matrix fits in memory."
        )
    return X.toarray()


def with_entries(X: Any, entries: AnyArray) -> Any:
    """Return sparse ``X`` with other values in its stored entries."""
    return sparse.csr_array((entries, X.indices, X.indptr), shape=X.shape)


# --- kernels: scales of each query -----------------------------------------------------------


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


# --- scales of each query, and all normalisers by name ---------------------------------------


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
                return replace(data, X=with_entries(X, entries))
            q = int(np.flatnonzero(moved >= 0)[0])
            where = f" (query {data.qid[q]}, feature column {moved[q]} has negative values)"
            X = dense(X, "minmax", self.densify, where)
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
        X = dense(data.X, "zscore", self.densify)
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
