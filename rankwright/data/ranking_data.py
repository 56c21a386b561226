"""`RankingData`: features, grades and query boundaries, the only container between modules.

Rows of query q are ``indptr[q]:indptr[q + 1]``. Unsorted rows are grouped by query, in order of
first appearance and stably within a query. ``row`` has the input row of each row, and
`RankingData.in_caller_order` puts values per document into the order of the input.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from rankwright.core.checks import HIGHEST_GRADE, check_csr, check_offsets, extremes
from rankwright.core.dtypes import (
    as_feature_matrix,
    as_float_vector,
    as_groups,
    as_vector,
    naming_features,
    refuse_masked,
    refuse_trailing_nul,
)
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.data.frames import (
    AllCategories,
    Categories,
    arrays_of_frame,
    checked_categories,
    columns_of_data,
    frame_columns,
    frame_of_columns,
    joined_categories,
    recoded,
    refuse_roles_as_features,
)
from rankwright.errors import DataError, UsageError, brief, counted, quoted

PER_DOCUMENT = ("sample_weight", "doc_id", "group", "position")
"""The optional arrays with one value per document."""

EVERYTHING = frozenset(
    {*PER_DOCUMENT, "query_weight", "feature_names", "categories", "qid", "empty queries"}
)
"""All optional parts of data that a format can store, as named in ``Format.holds``."""

_CELLS_PER_PART = 1 << 23
_FEWEST_ROWS_PER_PART = 1 << 10
_MANY_FEATURES, _FEATURES_PER_VALUE = 1 << 20, 64  # above these limits feature ids are wrong
_ROW_ARRAYS = ("y", *PER_DOCUMENT)
PER_QUERY = ("qid", "query_weight")
"""The arrays with one value per query."""

Q = TypeVar("Q")
_SHOWN = 3  # ids in an error message


class UnknownQueryError(DataError, KeyError):
    """A query id is not in the data."""

    __str__ = Exception.__str__  # KeyError shows the sentence in quotes


class ByQuery(Generic[Q]):
    """Length, iteration and indexing by query, for a class with query ids ``qid``.

    ``len`` is the number of queries, iteration yields the queries, and ``[qid]`` returns the query
    with this id. Query numbers and slices are not accepted.
    """

    __slots__ = ()

    qid: AnyArray
    instead_of_slices: ClassVar[str]  # advice of an error message

    @abstractmethod
    def _query(self, number: int) -> Q:
        """Return a query by its number, from 0."""

    def __len__(self) -> int:
        return len(self.qid)

    def __iter__(self) -> Iterator[Q]:
        return map(self._query, range(len(self.qid)))

    def __contains__(self, query: object) -> bool:
        return self._find(query) is not None

    def __getitem__(self, query: Any) -> Q:
        number = self._find(query)
        if number is None:
            raise UnknownQueryError(self._not_there(query))
        return self._query(number)

    def _id(self, number: int) -> Any:
        """Return the id of a query; numbers and texts are objects of Python, not NumPy."""
        value = self.qid[number]
        return value.item() if self.qid.dtype.kind in "biufU" else value

    def _find(self, query: Any) -> int | None:
        """Return the number of the query with this id."""
        if _is_many(query):
            return None
        if self.qid.dtype.kind == "O":  # any objects, tuples too
            return next((n for n, id_ in enumerate(self.qid.tolist()) if id_ == query), None)
        if np.ndim(query):
            return None
        numbers = np.flatnonzero(np.asarray(self.qid == query))
        return int(numbers[0]) if len(numbers) else None

    def _not_there(self, query: Any) -> str:
        if _is_many(query):
            return (
                f"{type(self).__name__}[...] takes the id of one query, not {brief(query)}; "
                f"{self.instead_of_slices}."
            )
        ids = self.qid.tolist()
        by_text = {str(id_): id_ for id_ in reversed(ids)}
        nearest = get_close_matches(str(query), by_text, n=1)
        if nearest:
            return f"there is no query {brief(query)}; did you mean {brief(by_text[nearest[0]])}?"
        shown = ", ".join(map(brief, ids[:_SHOWN]))
        more = ", ..." if len(ids) > _SHOWN else ""
        return (
            f"there is no query {brief(query)}; the ids of the {len(ids)} queries are "
            f"{shown}{more}."
        )


def _is_many(query: Any) -> bool:
    """Return whether an index is a slice, a list or an array, which select several queries."""
    return isinstance(query, slice | list) or (isinstance(query, np.ndarray) and query.ndim > 0)


class FeatureIds(NamedTuple):
    """Numbering of the features in LETOR text.

    Parameters
    ----------
    first
        Id of the first feature: 0 or 1.
    is_inferred
        Whether the file decided this instead of the caller. A file without id 0 may be wrong.
    """

    first: Literal[0, 1]
    is_inferred: bool


def common_feature_ids(several: Iterable[FeatureIds | None]) -> FeatureIds | None:
    """Return the numbering of parts of data; raise an error if inferred numberings differ.

    Parts that were not read from LETOR text fit any numbering.
    """
    numberings = [ids for ids in several if ids is not None]
    if len({ids.first for ids in numberings}) > 1 and any(ids.is_inferred for ids in numberings):
        raise DataError(
            "the feature ids of the parts begin with 0 in one file and with 1 in another; read all "
            "files with zero_based=True, or all with zero_based=False."
        )
    return numberings[0] if numberings else None


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The documents of one query of a `RankingData`.

    Attributes
    ----------
    qid
        The caller's query id.
    X : (n, d) array or CSR
    y : (n,) float64
        Grades.
    rows : (n,) int64
        The caller's row number of each document.
    doc_id : (n,) array or None
    weight : float
        Weight of the query, 1 by default.

    Examples
    --------
    >>> from rankwright.data import RankingData
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "a", "b"])
    >>> [(query.qid, query.y.tolist()) for query in data]
    [('a', [0.0, 1.0]), ('b', [2.0])]
    """

    qid: Any
    X: FloatMatrix
    y: F64
    rows: I64
    doc_id: AnyArray | None = None
    weight: float = 1.0

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Query({self.qid!r}, {len(self.y)} documents, {_grades(self.y)})"


@dataclass(frozen=True, slots=True, eq=False)
class RankingData(ByQuery[Query]):
    """Documents of many queries, grouped by query. Build it with `from_arrays` or `from_frame`.

    The constructor stores arrays unchanged, and raises if they do not fit together.

    ``data[qid]`` is the `Query` with this id, ``len(data)`` is the number of queries, and iteration
    yields the queries.

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
        Names; diversity group (host, topic); position at which the document was shown. Overlapping
        topics are a ``group`` of shape (n, topics): the share of each document in each topic.
    feature_names : tuple of str or None
    row : (n,) int64 or None
        The caller's row number of each row; None if the order is the same.
    categories : dict from feature names to Categories, or None
        Values of categorical features, whose codes are in ``X``.
    qid_column : str or None
        Name of the column of query ids in the frame or table that the data came from. A ranker
        fitted to the data finds the queries of later frames by it.
    feature_ids : FeatureIds or None
        Numbering of the features if the data was read from LETOR text.

    Examples
    --------
    >>> from rankwright import RankingData
    >>> X = [[0.1, 3.0], [0.7, 1.0], [0.4, 2.0]]
    >>> data = RankingData.from_arrays(X, [0, 2, 1], qid=["a", "a", "b"])
    >>> data.n_queries, data["a"].y.tolist()
    (2, [0.0, 2.0])
    """

    instead_of_slices: ClassVar[str] = "select takes the numbers of queries"

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
    categories: AllCategories | None = None
    qid_column: str | None = None
    feature_ids: FeatureIds | None = None

    # --- building ----------------------------------------------------------------------------

    def __post_init__(self) -> None:
        X, y, indptr = self.X, self.y, self.indptr
        dense = isinstance(X, np.ndarray)
        if not (dense or (sparse.issparse(X) and X.format == "csr")) or X.ndim != 2:
            raise self._unfit("X", "a matrix, dense or CSR")
        if X.dtype not in (np.float32, np.float64):
            raise self._unfit("X", "of type float32 or float64")
        if not isinstance(y, np.ndarray) or y.dtype != np.float64:
            raise self._unfit("y", "an array of type float64")
        if not isinstance(indptr, np.ndarray) or indptr.ndim != 1 or indptr.dtype.kind != "i":
            raise self._unfit("indptr", "an array of integers")
        check_offsets(indptr, X.shape[0], "indptr")
        if not dense:
            check_csr(X)
        for name in (*_ROW_ARRAYS, "row", *PER_QUERY):
            values, n = getattr(self, name), len(indptr) - 1 if name in PER_QUERY else X.shape[0]
            if values is None:
                continue
            shape = getattr(values, "shape", None)
            if shape != (n,) and not (
                name == "group" and shape and len(shape) == 2 and shape[0] == n
            ):
                raise self._unfit(name, f"an array with {n} values")
        if self.feature_names is not None and len(self.feature_names) != X.shape[1]:
            raise self._unfit("feature_names", f"a tuple of {X.shape[1]} names")

    def _unfit(self, name: str, expected: str) -> DataError:
        values = getattr(self, name)
        shape = getattr(values, "shape", None)
        actual = type(values).__name__ if shape is None else f"{values.dtype} of shape {shape}"
        return DataError(
            f"{name} must be {expected}, not {actual}; RankingData.from_arrays makes ranking data "
            "of anything like arrays."
        )

    @classmethod
    def _of(cls, **fields: Any) -> RankingData:
        """Return data of arrays that fit together, without the checks of the constructor."""
        data = object.__new__(cls)
        for name in FIELDS:
            object.__setattr__(data, name, fields.get(name))
        return data

    def _replace(self, **changes: Any) -> RankingData:
        """Return the data with some arrays replaced, without the checks of the constructor."""
        return self._of(**{name: getattr(self, name) for name in FIELDS} | changes)

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
        categories: Mapping[str, Categories | Sequence[Any]] | None = None,
        qid_column: str | None = None,
    ) -> RankingData:
        """Check and group arrays; rows may come in any order.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix, (n, d)
        y : array-like (n,) or None
            Grades. None means documents to be ranked, whose grades are all 0.
        qid : array-like (n,)
            Query id of each row: strings, integers or categories, sorted or not.
        group_sizes : array-like (Q,)
            Instead of ``qid``: the number of consecutive rows of each query.
        query_weight : array-like
            One weight per query in order of first appearance, or one per row, equal in a query.
        sample_weight, doc_id, group, position : array-like (n,)
        feature_names : sequence of str, of length d
        categories : mapping from names of features to their values
            Values of categorical features, which contain their codes 0, 1, ....
        qid_column : str
            Name of the column that ``qid`` was read from.
        """
        columns = frame_columns(X)
        refuse_roles_as_features(columns or ())
        with naming_features(columns if feature_names is None else feature_names):
            features = as_feature_matrix(X)
        n = features.shape[0]
        if 0 in features.shape:
            unit = "sample(s)" if n == 0 else "feature(s)"
            raise DataError(
                f"X has 0 {unit} (shape={features.shape}) while a minimum of 1 is required."
            )
        if (qid is None) == (group_sizes is None):
            raise DataError(
                "give the query of each row as qid=..., or the number of rows of each query as "
                f"group_sizes=...{'' if qid is None else ', not both'}."
            )
        if group_sizes is not None:
            indptr, ids, row = boundaries_of_sizes(group_sizes, n)
        else:
            refuse_sizes(qid, n)
            indptr, ids, row = group_rows(as_vector(qid, "qid", n))
        per_document: dict[str, Any] = {"doc_id": doc_id, "group": group, "position": position}
        for name, values in per_document.items():
            take = as_groups if name == "group" else as_vector
            per_document[name] = None if values is None else take(values, name, n)
        if sample_weight is not None:
            per_document["sample_weight"] = checked_weights(sample_weight, "sample_weight", n)
        names = _names(feature_names, features.shape[1])
        data = cls._of(
            X=features,
            y=np.zeros(n) if y is None else as_float_vector(y, "y", n),
            indptr=indptr,
            qid=ids,
            query_weight=(
                None if query_weight is None else query_weights(query_weight, n, indptr, row)
            ),
            feature_names=names,
            row=row,
            categories=checked_categories(categories, names) if categories else None,
            qid_column=qid_column,
            **per_document,
        )
        if row is not None:
            data = data._replace(**data._rows(row))
        data.check_grades()
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
            Names of the columns with query ids and grades. ``label=None`` means no grades.
        features
            Feature columns; by default all columns without another role. Their types are numbers,
            booleans, and categories (pandas ``category``, polars ``Categorical`` and ``Enum``,
            Arrow dictionaries), which only trees support.
        drop
            Columns to leave out of the features.
        **columns
            Names of further columns: ``query_weight``, ``sample_weight``, ``doc_id``, ``group``,
            ``position``.
        """
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
        named = "" if self.feature_names is None else ", named"
        named += f", {len(self.categories)} of categories" if self.categories else ""
        optional = [n for n in ("query_weight", *PER_DOCUMENT) if getattr(self, n) is not None]
        about = [
            counted(self.n_queries, "query"),
            counted(self.n_documents, "document"),
            f"{counted(self.n_features, 'feature')} ({kind}{named})",
            _grades(self.y),
            *([f"with {', '.join(optional)}"] if optional else []),
        ]
        return f"RankingData({', '.join(about)})"

    def __sizeof__(self) -> int:
        """Return the bytes of all arrays, which Dask uses as the size of the data."""
        X: Any = self.X
        features = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
        arrays = [getattr(self, name) for name in ("indptr", "row", *_ROW_ARRAYS, *PER_QUERY)]
        return sum(array.nbytes for array in (*features, *arrays) if array is not None)

    # --- parts -------------------------------------------------------------------------------

    def queries(self) -> Iterator[Query]:
        """Iterate over the queries, in order; dense features are views of ``X``, not copies."""
        return iter(self)

    def _query(self, number: int) -> Query:
        here = slice(int(self.indptr[number]), int(self.indptr[number + 1]))
        return Query(
            qid=self._id(number),
            X=self.X[here],
            y=self.y[here],
            rows=np.arange(here.start, here.stop) if self.row is None else self.row[here],
            doc_id=None if self.doc_id is None else self.doc_id[here],
            weight=1.0 if self.query_weight is None else float(self.query_weight[number]),
        )

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each document, query after query.

        The columns are ``qid``, ``label``, the optional arrays of the data, and the features
        (``f1``, ``f2``, ... if they have no names). `from_frame` reads the frame. Categories are
        columns of the type category; in polars, text is an Enum, and other types are plain values.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame_of_columns(columns_of_data(self), backend)

    def select(self, queries: Any) -> RankingData:
        """Return the data of the given query numbers (or of a mask over queries), in that order."""
        numbers = np.arange(self.n_queries)[queries]
        return self.in_order(self.rows_of(numbers), numbers)

    def in_order(self, rows: I64, queries: I64) -> RankingData:
        """Return these rows, query after query in the order of ``queries``."""
        return self._subset(rows, queries, self.sizes[queries])

    def present(self) -> RankingData:
        """Return the documents of positive weight, and the queries with such documents.

        Returns the data unchanged if all documents have a positive weight, or none has.
        """
        weight = self.sample_weight
        if weight is None or (weight > 0.0).all() or not (weight > 0.0).any():
            return self
        rows = np.flatnonzero(weight > 0.0)
        sizes = np.bincount(self.query_of_row()[rows], minlength=self.n_queries)
        queries = np.flatnonzero(sizes)
        row = rows if self.row is None else self.row[rows]
        return self._subset(rows, queries, sizes[queries])._replace(row=row)

    def _subset(self, rows: I64 | slice, queries: I64 | slice, sizes: I64) -> RankingData:
        """Return some rows and queries, with the number of rows of each of these queries."""
        weight = None if self.query_weight is None else self.query_weight[queries]
        return self._replace(
            **self._rows(rows),
            indptr=_offsets(sizes),
            qid=self.qid[queries],
            query_weight=weight,
            row=None,
        )

    def _rows(self, rows: I64 | slice) -> dict[str, Any]:
        """Return the features and all arrays with one value per document, for these rows."""
        arrays = {name: getattr(self, name) for name in ("X", *_ROW_ARRAYS)}
        return {name: None if array is None else array[rows] for name, array in arrays.items()}

    def with_n_features(self, n_features: int) -> RankingData:
        """Return the data padded with zero features, for text files without the last features.

        More than ``n_features`` features are an error, because a ranker that was fitted on fewer
        cannot use them. Data with feature names is returned unchanged.
        """
        extra = n_features - self.n_features
        if extra == 0 or self.feature_names is not None:
            return self
        if extra < 0:
            raise DataError(
                f"the data has {self.n_features} features where {n_features} are expected; leave "
                f"out those that the ranker was not fitted on, from feature {n_features + 1}."
            )
        X: Any = self.X
        if isinstance(X, np.ndarray):
            X = np.pad(X, ((0, 0), (0, extra)))
        else:
            X = sparse.csr_array((X.data, X.indices, X.indptr), (len(self.y), n_features))
        return self._replace(X=X)

    def in_categories(
        self, categories: AllCategories | None, where: str = "the data"
    ) -> RankingData:
        """Return the data with the codes of other ``categories``; unknown values are missing.

        ``where`` is the name of the data in error messages.
        """
        if self.categories == categories:
            return self
        X = recoded(self.X, self.feature_names, self.categories, categories, where)
        return self._replace(X=X, categories=categories)

    def in_caller_order(self, values: AnyArray) -> AnyArray:
        """Return values per document in the order of the caller's rows."""
        if self.row is None:
            return values
        ordered = np.empty_like(values)
        ordered[self.row] = values
        return ordered

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
        if self.group.ndim == 2:
            raise DataError(
                "documents belong to several topics here; max_per_group of a metric takes one "
                "group for each document."
            )
        if self.group.dtype.kind == "O":  # the values may not be comparable
            number: dict[Any, int] = {}
            return np.array([number.setdefault(name, len(number)) for name in self.group.tolist()])
        return np.unique(self.group, return_inverse=True)[1].astype(np.int64)

    def group_shares(self) -> I64 | F64:
        """Return the groups as numbers from 0, or a column of shares for each overlapping topic."""
        if self.group is not None and self.group.ndim == 2:
            return np.ascontiguousarray(self.group, np.float64)
        return self.group_codes()

    def query_of_row(self) -> I64:
        """Return the query number of each row."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def check_grades(self) -> None:
        """Raise an error with the first row whose grade is not from 0 to 2^53."""
        low, high = extremes(self.y)
        if not (low >= 0 and high <= HIGHEST_GRADE):
            at = int(np.flatnonzero(~((self.y >= 0) & (self.y <= HIGHEST_GRADE)))[0])
            query = self.qid[np.searchsorted(self.indptr, at, side="right") - 1]
            row = at if self.row is None else int(self.row[at])
            if HIGHEST_GRADE < self.y[at] < np.inf:
                raise DataError(
                    f"grades must be at most 2^53; row {row} (query {query}) has {self.y[at]}. "
                    "Divide them all by a number, or make them 0, 1, 2, ... up to a few."
                )
            raise DataError(
                f"grades must be finite and 0 or more; row {row} (query {query}) has {self.y[at]}. "
                "Shift them so that the worst is 0, and leave out documents without a grade."
            )

    def check_width(self) -> None:
        """Raise if there are so many more features than values that feature ids must be wrong.

        Called before computations that need time or memory for each feature, such as a fit.
        """
        if isinstance(self.X, np.ndarray) or self.n_features <= _MANY_FEATURES:
            return
        if self.n_features > _FEATURES_PER_VALUE * self.X.nnz:
            raise DataError(
                f"the data has {self.n_features:,} features but only {self.X.nnz:,} values that "
                "are not 0; number the features from 1 without gaps."
            )


FIELDS = tuple(field.name for field in fields(RankingData))


def concatenate(parts: Sequence[RankingData], *, shared_ids: bool = False) -> RankingData:
    """Return the queries of all parts, one part after the other.

    Parts with a common query id are an error, unless ``shared_ids`` is true. So are parts of LETOR
    files of which one begins with feature id 0 and another with 1, unless the caller has passed
    ``zero_based`` for both. Optional arrays that not all parts have are left out.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import concatenate
    >>> data = rw.synthetic("mq2008", queries=10)
    >>> first, second = data.select(range(4)), data.select(range(4, 10))
    >>> concatenate([first, second]).n_queries
    10
    """
    if not parts:
        raise DataError("there is nothing to concatenate.")
    width = {part.n_features for part in parts}
    if len(width) > 1:
        raise DataError(f"the parts have different numbers of features: {sorted(width)}.")
    categories = joined_categories([part.categories for part in parts])
    parts = [part.in_categories(categories) for part in parts]
    ids = np.concatenate([part.qid for part in parts])
    if not shared_ids and len(set(ids.tolist())) < len(ids):
        twice = first_repeated(ids.tolist())
        raise DataError(f"query {twice} is in more than one part.")

    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if any(a is None for a in arrays) else np.concatenate(arrays)

    blocks: list[Any] = [part.X for part in parts]
    if any(map(sparse.issparse, blocks)):
        X: Any = sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    else:
        X = np.concatenate(blocks)
    return RankingData(
        X=X,
        indptr=_offsets(np.concatenate([part.sizes for part in parts])),
        qid=ids,
        query_weight=joined("query_weight"),
        feature_names=parts[0].feature_names,
        categories=categories,
        qid_column=parts[0].qid_column,
        feature_ids=common_feature_ids([part.feature_ids for part in parts]),
        **{name: joined(name) for name in _ROW_ARRAYS},
    )


def _names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise DataError(f"there are {len(names)} feature names for {n_features} features.")
    if len(set(names)) < len(names):
        raise DataError(f"the feature name {quoted(first_repeated(names))} is used twice.")
    return names


def _grades(y: F64) -> str:
    """Return the range of the grades as text."""
    return f"grades {y.min():g} to {y.max():g}" if len(y) else "no grades"


def first_repeated(values: Iterable[Any]) -> Any:
    """Return the first value that was there before."""
    previous: set[Any] = set()
    return next(value for value in values if value in previous or previous.add(value))  # type: ignore[func-returns-value]


def _offsets(sizes: I64) -> I64:
    """Return the boundaries of consecutive parts of these sizes."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


# --- parts of whole queries ------------------------------------------------------------------


class PartsDifferError(DataError):
    """Parts of a file do not fit together, so the file must be read as a whole."""


class DistinctQueries:
    """Query ids of the parts of data; each id may occur once."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def add(self, part: RankingData) -> None:
        """Add the ids of a part; raise an error if one occurred before."""
        for query in part.qid.tolist():
            if query in self.seen:
                raise PartsDifferError(
                    f"query {query} appears twice; give the two lists different ids."
                )
            self.seen.add(query)


def parts_of(data: RankingData, *, rows: int | None = None) -> Iterator[RankingData]:
    """Yield ``data`` in parts of whole queries, as views, of about ``rows`` documents each."""
    if rows is None:
        rows = max(_FEWEST_ROWS_PER_PART, _CELLS_PER_PART // max(1, data.n_features))
    lo = 0
    while lo < data.n_queries:
        end = np.searchsorted(data.indptr, data.indptr[lo] + rows, side="right") - 1
        hi = max(lo + 1, int(end))
        yield consecutive(data, lo, hi)
        lo = hi


def consecutive(data: RankingData, lo: int, hi: int) -> RankingData:
    """Return queries lo to hi, as views of the arrays of ``data``."""
    rows = slice(int(data.indptr[lo]), int(data.indptr[hi]))
    return data._subset(rows, slice(lo, hi), np.diff(data.indptr[lo : hi + 1]))


# --- queries of rows, and weights that fit them ----------------------------------------------

_WHOLE = 2.0**63  # ids from here on do not fit in int64


def group_rows(qid: AnyArray, what: str = "query id") -> tuple[I64, AnyArray, I64 | None]:
    """Return query boundaries, ids in order of first appearance, and the rows in that order.

    The last is None if equal ids are already contiguous.
    """
    qid = clean_ids(qid, what)
    starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))
    runs = qid[starts]
    number: dict[Any, int] = {}
    run_query = np.array([number.setdefault(value, len(number)) for value in runs.tolist()])
    ids = runs[np.unique(run_query, return_index=True)[1]]
    if len(number) == len(runs):
        return np.concatenate((starts, [len(qid)])).astype(np.int64), ids, None
    query = np.repeat(run_query, np.diff(np.concatenate((starts, [len(qid)]))))
    return _offsets(np.bincount(query)), ids, np.argsort(query, kind="stable").astype(np.int64)


def clean_ids(qid: AnyArray, what: str) -> AnyArray:
    """Return comparable and hashable ids; raise an error if one is missing."""
    if qid.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in qid.tolist()], bool)
    else:
        missing = np.isnan(qid) if qid.dtype.kind in "fmM" else np.zeros(len(qid), bool)
    if missing.any():
        raise DataError(f"the {what} is missing at row {int(np.flatnonzero(missing)[0])}.")
    if qid.dtype.kind == "f" and (np.abs(qid) < _WHOLE).all():
        numbers = qid.astype(np.int64)
        return numbers if (numbers == qid).all() else qid
    if qid.dtype.kind == "O":
        if all(isinstance(value, str) for value in qid.tolist()):
            refuse_trailing_nul(qid.tolist(), what)
            return qid.astype(str)
        for row, value in enumerate(qid.tolist()):
            if not isinstance(value, Hashable):
                raise DataError(
                    f"the {what} at row {row} is {brief(value)}; an id is a text, a number or a "
                    "date."
                )
    return qid


def _is_missing(value: Any) -> bool:
    """Return whether this is None, NaN, or pandas' NA or NaT, which do not equal themselves."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is ambiguous; so is an array
        return not isinstance(value, np.ndarray)


def refuse_second_columns(**columns: Any) -> None:
    """Raise an error if columns are passed together with RankingData, which contains them."""
    for name, values in columns.items():
        if values is not None:
            raise UsageError(
                f"RankingData and click logs have their own {name}; leave {name}=... out."
            )


def refuse_sizes(qid: Any, n: int) -> None:
    """Raise an error if ``qid`` has the sizes of queries, like LightGBM's ``group``."""
    sizes = np.asarray(qid)
    if sizes.ndim == 1 and len(sizes) != n and sizes.dtype.kind in "iu" and sizes.sum() == n:
        raise DataError(
            f"qid has {len(sizes)} values for {n} rows and they add up to {n}: sizes of queries "
            "are given as group_sizes=..., qid takes the query id of each row."
        )


def checked_sizes(values: Any, name: str = "group_sizes", unit: str = "query") -> I64:
    """Return the sizes of queries or sessions as whole numbers."""
    refuse_masked(values, name)
    sizes = np.asarray(values)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise DataError(f"{name} must be whole numbers, 0 or more, one per {unit}.")
    return sizes.astype(np.int64)


def boundaries_of_sizes(
    values: Any, n: int, name: str = "group_sizes", unit: str = "query"
) -> tuple[I64, AnyArray, None]:
    """Return the result of `group_rows` from the sizes of queries whose rows are contiguous."""
    sizes = checked_sizes(values, name, unit)
    if sizes.sum() != n:
        advice = ", or the id of each row as qid=..." if name == "group_sizes" else "."
        raise DataError(
            f"{name} add up to {int(sizes.sum())}, but there are {n} rows; "
            f"give the number of rows of each {unit}{advice}"
        )
    return _offsets(sizes), np.arange(len(sizes)), None


def checked_weights(values: Any, name: str, length: int) -> F64:
    """Return the weights; raise an error unless they are finite, 0 or more, and not all 0."""
    weights = as_float_vector(values, name, length)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(f"{name} must be finite and 0 or more; number {at} is {weights[at]}.")
    if not weights.any():
        raise DataError(f"every {name} is zero, so nothing would count.")
    return weights


def query_weights(values: Any, n: int, indptr: I64, row: I64 | None) -> F64:
    """Return a weight per query, from weights per query or per row that are equal in a query."""
    n_queries = len(indptr) - 1
    if len(np.asarray(values)) == n_queries:
        return checked_weights(values, "query_weight", n_queries)
    if len(np.asarray(values)) != n:
        raise DataError(
            f"query_weight has {len(np.asarray(values))} values; give one for each of the "
            f"{n_queries} queries, or for each of the {n} rows."
        )
    per_row = checked_weights(values, "query_weight", n)
    if row is not None:
        per_row = per_row[row]
    filled = indptr[:-1] < indptr[1:]
    weight = np.ones(n_queries)
    weight[filled] = per_row[indptr[:-1][filled]]
    if (per_row != np.repeat(weight, np.diff(indptr))).any():
        raise DataError("query_weight given per row must be the same on all rows of a query.")
    return weight
