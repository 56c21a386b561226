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

from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse

from rankwright.core.types import AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, quoted


class QueryScale:
    """Base of the normalisers. A subclass scales the features of one query."""

    __slots__ = ()

    @abstractmethod
    def _scaled(self, x: AnyArray) -> AnyArray:
        """Return the scaled features of the documents of a query."""

    def fit(self, data: RankingData) -> Self:  # noqa: ARG002
        """Return this normaliser; there is nothing to learn."""
        return self

    def transform(self, data: RankingData) -> RankingData:
        """Return ``data`` with the features of every query scaled."""
        X: Any = data.X
        if not isinstance(X, np.ndarray):
            entries = self._scaled_entries(data)
            if entries is not None:
                matrix = sparse.csr_array((entries, X.indices, X.indptr), shape=X.shape)
                return replace(data, X=matrix)
            X = X.toarray()
        out = np.empty_like(X)
        for start, end in pairwise(data.indptr.tolist()):
            if start < end:
                out[start:end] = self._scaled(X[start:end])
        return replace(data, X=out)

    def _scaled_entries(self, data: RankingData) -> AnyArray | None:
        """Return the scaled entries of a sparse matrix, or None if it must be dense."""
        X: Any = data.X
        entries: AnyArray = np.empty_like(X.data)
        for query, (start, end) in enumerate(pairwise(data.indptr.tolist())):
            here = slice(X.indptr[start], X.indptr[end])
            columns, column = np.unique(X.indices[here], return_inverse=True)
            row = np.repeat(np.arange(end - start), np.diff(X.indptr[start : end + 1]))
            x = np.zeros((end - start, len(columns)), X.dtype)
            x[row, column] = X.data[here]
            scaled = self._scaled(x) if x.size else x
            entries[here] = scaled[row, column]
            scaled[row, column] = 0.0
            moved = np.flatnonzero(scaled.any(axis=0))
            if len(moved) and getattr(self, "densify", False):
                return None
            if len(moved):
                names, number = data.feature_names, columns[moved[0]]
                feature = f"feature column {number}" if names is None else quoted(names[number])
                raise DataError(
                    f"{type(self).__name__} moves the zeros of a sparse matrix (query "
                    f"{data.qid[query]}, {feature}); use QuerySum, which keeps them, or "
                    "densify=True if the dense matrix fits in memory."
                )
        return entries


@dataclass(frozen=True, slots=True)
class QueryMinMax(QueryScale):
    """Scale each feature to 0..1 within each query.

    Parameters
    ----------
    ranklib
        Take the maximum over the values and 0, as RankLib does, by a slip of its own: a feature
        whose values in a query are all negative then ends below 1.
    densify
        Make a sparse matrix dense if its zeros would not stay zero.

    Examples
    --------
    >>> from rankwright.data import QueryMinMax, RankingData
    >>> data = RankingData.from_arrays([[2.0], [4.0], [3.0]], [0, 1, 0], qid=[7, 7, 7])
    >>> QueryMinMax().fit(data).transform(data).X.ravel()
    array([0. , 1. , 0.5])
    """

    ranklib: bool = False
    densify: bool = False

    def _scaled(self, x: AnyArray) -> AnyArray:
        low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
        if self.ranklib:
            high = np.fmax(high, np.finfo(x.dtype).smallest_subnormal)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = high - low
            spread[~(spread > 0.0)] = 1.0
            scaled: AnyArray = (x - low) / spread  # (1)
            return scaled


@dataclass(frozen=True, slots=True)
class QueryZScore(QueryScale):
    """Give each feature mean 0 and standard deviation 1 within each query.

    Parameters
    ----------
    densify
        Make a sparse matrix dense, because its zeros do not stay zero.

    Examples
    --------
    >>> from rankwright.data import QueryZScore, RankingData
    >>> data = RankingData.from_arrays([[1.0], [5.0], [3.0]], [0, 1, 0], qid=[7, 7, 7])
    >>> QueryZScore().fit(data).transform(data).X.ravel().round(2)
    array([-1.,  1.,  0.])
    """

    densify: bool = False

    def _scaled(self, x: AnyArray) -> AnyArray:
        x = x.astype(np.float64)
        count = np.count_nonzero(~np.isnan(x), axis=0)
        mean = _sum(x) / np.maximum(count, 1)
        squares = _sum((x - mean) ** 2)
        varies = (count > 1) & (squares > 0.0)
        sd = np.sqrt(squares / np.maximum(count - 1, 1))
        return (x - np.where(varies, mean, 0.0)) / np.where(varies, sd, 1.0)  # (2)


@dataclass(frozen=True, slots=True)
class QuerySum(QueryScale):
    """Divide each feature by the sum of its absolute values within each query.

    Examples
    --------
    >>> from rankwright.data import QuerySum, RankingData
    >>> data = RankingData.from_arrays([[2.0], [5.0], [3.0]], [0, 1, 0], qid=[7, 7, 7])
    >>> QuerySum().fit(data).transform(data).X.ravel()
    array([0.2, 0.5, 0.3])
    """

    def _scaled(self, x: AnyArray) -> AnyArray:
        total = _sum(np.abs(x.astype(np.float64)))
        return x / np.where(total == 0.0, 1.0, total)  # (3)


def _sum(x: AnyArray) -> AnyArray:
    """Return the sum of each column without missing values, added from top to bottom."""
    x = np.where(np.isnan(x), 0.0, x)
    total: AnyArray = x.sum(axis=0)
    if x.shape[1] == 1:  # which NumPy adds in another order
        total = np.cumsum(x, axis=0)[-1]
    return total
