"""`RankingData`: features, grades and query boundaries, the only container between modules.

Rows of query q are ``indptr[q]:indptr[q + 1]``. Rows that came unsorted are grouped by query, in
order of first appearance and stably within a query; ``row`` remembers where each came from, and
`RankingData.in_caller_order` puts any per-document result back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import as_feature_matrix, as_float_vector, as_vector
from rankwright.core.memory import scratch, taken_rows
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.errors import DataError

_PER_DOCUMENT = ("y", "sample_weight", "doc_id", "group", "position")


@dataclass(frozen=True, slots=True, eq=False)
class RankingData:
    """Documents of many queries, grouped by query. Build it with `from_arrays` or `from_frame`.

    Attributes
    ----------
    X : (n, d) float32 or float64 array, C-contiguous, or CSR
        Features; NaN is a missing value.
    y : (n,) float64
        Grades, any non-negative real; a higher one is better.
    indptr : (Q + 1,) int64
        Query boundaries.
    qid : (Q,) array
        The caller's query ids, of any type.
    query_weight : (Q,) float64 or None
    sample_weight : (n,) float64 or None
        Weight of each document.
    doc_id, group, position : (n,) arrays or None
        Names; diversity group (host, topic); position at which the document was shown.
    feature_names : tuple of str or None
    row : (n,) int64 or None
        The caller's row number of each row; None where the order was kept.
    """

    X: FloatMatrix
    y: F64
    indptr: I64
    qid: AnyArray
    query_weight: F64 | None = None
    sample_weight: F64 | None = None
    doc_id: AnyArray | None = None
    group: AnyArray | None = None
    position: AnyArray | None = None
    feature_names: tuple[str, ...] | None = None
    row: I64 | None = None

    # --- building ----------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group_sizes: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        doc_id: Any = None,
        group: Any = None,
        position: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> RankingData:
        """Check and group arrays; rows may come in any order.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix, (n, d)
        y : array-like (n,) or None
            Grades. None stands for documents that are only to be ranked: all grades are 0.
        qid : array-like (n,)
            Query id of each row: strings, integers or categories, sorted or not.
        group_sizes : array-like (Q,)
            Instead of ``qid``: how many consecutive rows each query has.
        query_weight : array-like
            One weight per query in order of first appearance, or one per row, equal in a query.
        sample_weight, doc_id, group, position : array-like (n,)
        feature_names : sequence of str, of length d
        """
        features = as_feature_matrix(X)
        n = features.shape[0]
        if 0 in features.shape:
            what = "sample(s)" if n == 0 else "feature(s)"
            raise DataError(
                f"X has 0 {what} (shape={features.shape}) while a minimum of 1 is required."
            )
        if (qid is None) == (group_sizes is None):
            raise DataError(
                "give the query of each row as qid=..., or the number of rows of each query as "
                f"group_sizes=...{'' if qid is None else ', not both'}."
            )
        if group_sizes is not None:
            indptr, ids, row = _boundaries_of_sizes(group_sizes, n)
        else:
            _refuse_sizes(qid, n)
            indptr, ids, row = group_rows(as_vector(qid, "qid", n))
        grades = np.zeros(n) if y is None else as_float_vector(y, "y", n)
        weights = None if sample_weight is None else _weights(sample_weight, "sample_weight", n)
        data = cls(
            X=features,
            y=grades,
            indptr=np.array([0, n], np.int64),
            qid=ids[:1],
            sample_weight=weights,
            doc_id=None if doc_id is None else as_vector(doc_id, "doc_id", n),
            group=None if group is None else as_vector(group, "group", n),
            position=None if position is None else as_vector(position, "position", n),
            feature_names=_names(feature_names, features.shape[1]),
        )
        per_query = None
        if query_weight is not None:
            per_query = _query_weights(query_weight, n, indptr, row)
        if row is not None:
            data = data._rows(row)
        data = replace(data, indptr=indptr, qid=ids, query_weight=per_query, row=row)
        data._check_grades()
        return data

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        qid: str,
        label: str | None,
        features: Sequence[str] | None = None,
        drop: Iterable[str] = (),
        **columns: str,
    ) -> RankingData:
        """Build from a pandas, polars or Arrow frame.

        Parameters
        ----------
        qid, label
            Names of the columns with query ids and grades (``label=None``: only to be ranked).
        features
            Feature columns; by default all that are not named otherwise.
        drop
            Columns to leave out of the features.
        **columns
            Names of further columns: ``query_weight``, ``sample_weight``, ``doc_id``, ``group``,
            ``position``.
        """
        from rankwright.data.frames import arrays_of_frame

        arrays = arrays_of_frame(
            frame, qid=qid, label=label, features=features, drop=drop, columns=columns
        )
        return cls.from_arrays(**arrays)

    # --- shape -------------------------------------------------------------------------------

    @property
    def n_documents(self) -> int:
        """Number of rows."""
        return int(self.indptr[-1])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.indptr) - 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def sizes(self) -> I64:
        """Number of documents of each query."""
        return np.diff(self.indptr)

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.X) else str(self.X.dtype)
        return (
            f"RankingData({self.n_queries} queries, {self.n_documents} documents, "
            f"{self.n_features} features, {kind})"
        )

    def __sizeof__(self) -> int:
        """Return the bytes of all arrays: what Dask reckons with before it moves data."""
        X: Any = self.X
        features = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
        others = [getattr(self, name) for name in ("indptr", "qid", "query_weight", "row")]
        kept = [*features, *others, *(getattr(self, name) for name in _PER_DOCUMENT)]
        return sum(array.nbytes for array in kept if array is not None)

    # --- parts -------------------------------------------------------------------------------

    def select(self, queries: Any) -> RankingData:
        """Return the data of the given query numbers (or of a mask over queries), in that order."""
        chosen = np.arange(self.n_queries)[queries]
        return self.in_order(self.rows_of(chosen), chosen)

    def in_order(self, rows: I64, queries: I64) -> RankingData:
        """Return these rows, query after query in the order of ``queries``, with all they have."""
        indptr = np.concatenate(([0], np.cumsum(self.sizes[queries]))).astype(np.int64)
        weight = None if self.query_weight is None else self.query_weight[queries]
        part = self._rows(rows)
        return replace(part, indptr=indptr, qid=self.qid[queries], query_weight=weight, row=None)

    def with_n_features(self, n_features: int) -> RankingData:
        """Return the data padded with zero features, as text that leaves zeros out needs it.

        Features beyond ``n_features`` are refused: whoever was fitted on fewer cannot use them.
        Features with names are left as they are, since their names tell which are there.
        """
        extra = n_features - self.n_features
        if extra == 0 or self.feature_names is not None:
            return self
        if extra < 0:
            raise DataError(
                f"the data has {self.n_features} features where {n_features} are expected; leave "
                f"out those that the ranker was not fitted on, from feature {n_features + 1}."
            )
        if isinstance(self.X, np.ndarray):
            padded = scratch((self.n_documents, n_features), self.X.dtype)
            padded[:, : self.n_features] = self.X
            padded[:, self.n_features :] = 0.0
            return replace(self, X=padded, feature_names=None)
        padding = sparse.csr_array((self.n_documents, extra), dtype=self.X.dtype)
        wide = sparse.csr_array(sparse.hstack([self.X, padding]))
        return replace(self, X=wide, feature_names=None)

    def in_caller_order(self, values: AnyArray) -> AnyArray:
        """Return per-document ``values`` of this data in the order of the caller's rows."""
        if self.row is None:
            return values
        back = np.empty_like(values)
        back[self.row] = values
        return back

    def rows_of(self, queries: I64) -> I64:
        """Return the rows of the given query numbers, one query after the other."""
        starts, sizes = self.indptr[queries], self.sizes[queries]
        ends = np.cumsum(sizes)
        rows: I64 = np.arange(sizes.sum()) + np.repeat(starts - (ends - sizes), sizes)
        return rows

    def group_codes(self) -> I64:
        """Return each document's diversity group as a number from 0."""
        if self.group is None:
            raise DataError(
                "a limit per group needs the group of each document (its host, its topic): "
                "build the data with group=..."
            )
        if self.group.dtype.kind == "O":  # may hold values that do not compare with each other
            number: dict[Any, int] = {}
            return np.array([number.setdefault(name, len(number)) for name in self.group.tolist()])
        return np.unique(self.group, return_inverse=True)[1].astype(np.int64)

    def query_of_row(self) -> I64:
        """Return the query number of each row."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def _rows(self, rows: I64) -> RankingData:
        kept: dict[str, Any] = {}
        for name in _PER_DOCUMENT:
            values = getattr(self, name)
            kept[name] = None if values is None else values[rows]
        return replace(self, X=taken_rows(self.X, rows), **kept)

    def _check_grades(self) -> None:
        bad = ~(np.isfinite(self.y) & (self.y >= 0))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            query = self.qid[np.searchsorted(self.indptr, at, side="right") - 1]
            row = at if self.row is None else int(self.row[at])
            raise DataError(
                f"grades must be finite and 0 or more; row {row} (query {query}) has {self.y[at]}. "
                "Shift them so that the worst is 0, and leave out documents without a grade."
            )


FIELDS = tuple(field.name for field in fields(RankingData))


def concatenate(parts: Sequence[RankingData]) -> RankingData:
    """Return the queries of all parts, one part after the other; ids shared by parts are refused.

    An optional array is kept where every part has it.
    """
    if not parts:
        raise DataError("there is nothing to concatenate.")
    width = {part.n_features for part in parts}
    if len(width) > 1:
        raise DataError(f"the parts have different numbers of features: {sorted(width)}.")
    ids = np.concatenate([part.qid for part in parts])
    if len(set(ids.tolist())) < len(ids):
        twice = _first_repeated(ids.tolist())
        raise DataError(f"query {twice} is in more than one part.")

    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if any(a is None for a in arrays) else np.concatenate(arrays)

    dense = not any(sparse.issparse(part.X) for part in parts)
    stack = np.concatenate if dense else _stack_sparse
    sizes = np.concatenate([part.sizes for part in parts])
    return RankingData(
        X=stack([part.X for part in parts]),
        indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        qid=ids,
        query_weight=joined("query_weight"),
        feature_names=parts[0].feature_names,
        **{name: joined(name) for name in _PER_DOCUMENT},
    )


def group_rows(qid: AnyArray) -> tuple[I64, AnyArray, I64 | None]:
    """Return query boundaries, ids in order of first appearance, and the rows in that order.

    The last is None where equal ids already stand together.
    """
    qid = _clean_ids(qid)
    starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))
    runs = qid[starts]
    number: dict[Any, int] = {}
    run_query = np.array([number.setdefault(value, len(number)) for value in runs.tolist()])
    ids = runs[np.unique(run_query, return_index=True)[1]]
    if len(number) == len(runs):
        return np.concatenate((starts, [len(qid)])).astype(np.int64), ids, None
    query = np.repeat(run_query, np.diff(np.concatenate((starts, [len(qid)]))))
    row = np.argsort(query, kind="stable").astype(np.int64)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(query)))).astype(np.int64)
    return indptr, ids, row


def _clean_ids(qid: AnyArray) -> AnyArray:
    if qid.dtype.kind == "f":
        if np.isnan(qid).any():
            raise DataError(
                f"the query id is missing at row {int(np.flatnonzero(np.isnan(qid))[0])}."
            )
        whole = qid.astype(np.int64)
        return whole if (whole == qid).all() else qid
    if qid.dtype.kind == "O":
        for row, value in enumerate(qid.tolist()):
            if value is None or value != value:
                raise DataError(f"the query id is missing at row {row}.")
        if all(isinstance(value, str) for value in qid.tolist()):
            return qid.astype(str)
    return qid


def _refuse_sizes(qid: Any, n: int) -> None:
    """Refuse the sizes of queries where the id of each row is expected, as LightGBM's ``group``."""
    sizes = np.asarray(qid)
    if sizes.ndim == 1 and len(sizes) != n and sizes.dtype.kind in "iu" and sizes.sum() == n:
        raise DataError(
            f"qid has {len(sizes)} values for {n} rows and they add up to {n}: sizes of queries "
            "are given as group_sizes=..., qid takes the query id of each row."
        )


def _boundaries_of_sizes(group_sizes: Any, n: int) -> tuple[I64, AnyArray, None]:
    sizes = np.asarray(group_sizes)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise DataError("group_sizes must be whole numbers, 0 or more, one per query.")
    if sizes.sum() != n:
        raise DataError(
            f"group_sizes add up to {int(sizes.sum())}, but there are {n} rows; "
            "give the number of rows of each query, or the id of each row as qid=..."
        )
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), np.arange(len(sizes)), None


def _weights(values: Any, name: str, length: int) -> F64:
    weights = as_float_vector(values, name, length)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(f"{name} must be finite and 0 or more; number {at} is {weights[at]}.")
    if not weights.any():
        raise DataError(f"every {name} is zero, so nothing would count.")
    return weights


def _query_weights(values: Any, n: int, indptr: I64, row: I64 | None) -> F64:
    n_queries = len(indptr) - 1
    if len(np.asarray(values)) == n_queries:
        return _weights(values, "query_weight", n_queries)
    if len(np.asarray(values)) != n:
        raise DataError(
            f"query_weight has {len(np.asarray(values))} values; give one for each of the "
            f"{n_queries} queries, or for each of the {n} rows."
        )
    per_row = _weights(values, "query_weight", n)
    if row is not None:
        per_row = per_row[row]
    filled = indptr[:-1] < indptr[1:]
    weight = np.ones(n_queries)
    weight[filled] = per_row[indptr[:-1][filled]]
    if (per_row != np.repeat(weight, np.diff(indptr))).any():
        raise DataError("query_weight given per row must be the same on all rows of a query.")
    return weight


def _names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise DataError(f"there are {len(names)} feature names for {n_features} features.")
    if len(set(names)) < len(names):
        raise DataError(f"the feature name '{_first_repeated(names)}' is used twice.")
    return names


def _first_repeated(values: Iterable[Any]) -> Any:
    seen: set[Any] = set()
    return next(value for value in values if value in seen or seen.add(value))  # type: ignore[func-returns-value]


def _stack_sparse(blocks: list[FloatMatrix]) -> FloatMatrix:
    return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
