"""Conversion between ranking data and frames of pandas, polars and Arrow: roles and categories.

Every column has a role. The caller names the column of a role, or the column has a usual name:

===================  ==================================================
query id             ``qid``, ``query``, ``query_id``, ``group_id``
grade                ``label``, ``grade``, ``rel``, ``relevance``, ``y``
``doc_id``           ``doc_id``, ``docid``, ``doc``
``query_weight``     ``query_weight``
``sample_weight``    ``sample_weight``, ``weight``
``group``            ``group``, ``host``
``position``         ``position``
features             all columns without a role
===================  ==================================================

Case and surrounding blanks are ignored. Two columns with usual names of the same role are an error.
The index that pandas writes to a Parquet file is ignored. Features must be numbers, booleans or
categories; null features are missing values (NaN). A null query id, grade or weight is an error.

If grades and query ids are given as arrays next to a frame, or only some columns are named, a
column that is named like ids, ``query_weight`` or ``sample_weight`` is an error, not a feature.

`RankingData.X` contains codes 0, 1, ... for columns of the type category (pandas ``category``,
polars ``Categorical`` and ``Enum``, Arrow dictionaries), and NaN for missing values. `Categories`
maps codes to values. Two data sets are combined by value, never by code. The categories of
unordered columns are sorted, so that their order in a frame has no effect. Ordered columns keep
their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import refuse_lazy, refuse_trailing_nul
from rankwright.core.types import F64, AnyArray
from rankwright.errors import DataError, UsageError, brief, quoted
from rankwright.registry import unknown

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData

ROLES = ("query_weight", "sample_weight", "doc_id", "group", "position")
"""Optional columns, named like the arguments of `RankingData.from_arrays`."""

_ENUM = b"_PL_ENUM_VALUES"  # prefix of the metadata of an Enum in files of polars
_WEIGHTS = ("query_weight", "sample_weight")
_BACKENDS = ("pandas", "polars", "pyarrow")

Columns = Callable[[str], AnyArray]
"""Function from the name of a column to its values: numbers (missing: NaN) or objects (None)."""


# --- frames to ranking data ------------------------------------------------------------------


def arrays_of_frame(
    frame: Any,
    *,
    qid: str,
    label: str | None,
    features: Sequence[str] | None = None,
    drop: Iterable[str] = (),
    columns: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `RankingData.from_arrays` for the rows of a frame.

    Parameters
    ----------
    frame
        A pandas or polars frame (lazy frames are collected) or an Arrow table.
    qid, label
        Columns of query ids and grades. Use ``label=None`` for documents without grades.
    features
        Feature columns. The default is all columns without another role.
    drop
        Columns that are not features.
    columns
        Mapping from optional roles (see ``ROLES``) to columns.
    """
    table = _as_table(frame)
    for role in columns or ():
        if role not in ROLES:
            raise UsageError(unknown("column role", role, ROLES))
    specified = {**dict.fromkeys(USUAL_NAMES, ""), "qid": qid, "label": label or ""}
    roles, names = choose_columns(
        table.columns, specified | dict(columns or {}), features=features, drop=drop
    )
    if features is None:
        refuse_roles_as_features(names)
    return arrays_of_columns(FrameColumns(table), roles, names)


def arrays_of_columns(
    column: FrameColumns,
    roles: Mapping[str, str],
    features: Sequence[str],
    categories: AllCategories | None = None,
) -> dict[str, Any]:
    """Return the arguments of `RankingData.from_arrays`.

    Parameters
    ----------
    column
        The columns of a frame.
    roles
        Mapping from roles to columns: ``qid``, optionally ``label``, and any of ``ROLES``.
    features
        Feature columns. The features are float32 if all columns are, and float64 otherwise.
    categories
        Categories by feature. The default is the categories of columns of the type category.
    """
    if categories is None:
        categories = categories_of(column, features)
    label = roles.get("label")
    if label in features:
        raise DataError(f"column {quoted(label)} holds the grades and cannot be a feature too.")
    queries = checked_ids(column(roles["qid"]), roles["qid"], "query id")
    return {
        "X": feature_matrix(column, features, len(queries), categories),
        "y": None if label is None else checked_numbers(column(label), label, "grade"),
        "qid": queries,
        "qid_column": roles["qid"],
        "feature_names": list(features),
        "categories": categories,
        **{
            role: (checked_numbers if role in _WEIGHTS else checked_ids)(column(name), name, role)
            for role, name in roles.items()
            if role in ROLES
        },
    }


_ARROW_FLOATS = ("float", "double")
_ARROW_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


class FrameColumns:
    """Columns of a frame by name. ``values`` replaces the values of some columns."""

    def __init__(self, table: Any, values: Mapping[str, AnyArray] | None = None) -> None:
        self._table, self._names = table, frozenset(table.columns)
        self._values = values or {}
        self._arrow = table.to_native() if table.implementation.is_pyarrow() else None

    def __call__(self, name: str) -> AnyArray:
        """Return the values of a column."""
        import narwhals as nw

        if name in self._values:
            return self._values[name]
        if self._arrow is not None and name in self._names:
            column = self._arrow[name]
            kind = str(column.type)
            if kind in _ARROW_FLOATS or (kind in _ARROW_INTEGERS and not column.null_count):
                numbers: AnyArray = column.to_numpy()
                return numbers
        series = self._series(name)
        if series.dtype == nw.Boolean or series.is_null().all():
            series = series.cast(nw.Float64)
        values: AnyArray = series.to_numpy()
        if values.dtype.kind == "U":  # polars truncates texts at a NUL character
            refuse_trailing_nul(series.to_list(), "id")
        if values.dtype.kind == "O":  # pandas, polars and Arrow have different missing values
            values = values.copy()
            values[np.array(series.is_null().to_list(), bool)] = None
        return values

    def coded(self, name: str) -> tuple[AnyArray, Categories] | None:
        """Return codes (NaN: missing) and categories of a categorical column, otherwise None."""
        import narwhals as nw

        series = self._series(name)
        if not isinstance(series.dtype, nw.Categorical | nw.Enum):
            return None
        if series.implementation.is_pandas_like():  # Arrow has no categories of mixed types
            native = series.to_native().cat
            values, codes, ordered = native.categories.tolist(), native.codes, bool(native.ordered)
        else:
            column = series.to_arrow()
            values = column.dictionary.to_pylist()
            codes = column.indices.cast("int64").fill_null(-1)
            # Arrow marks an Enum of polars as ordered, but its order has no meaning.
            metadata = None if self._arrow is None else self._arrow.schema.field(name).metadata
            enum = self._arrow is None or any(key.startswith(_ENUM) for key in metadata or {})
            ordered = column.type.ordered and not enum
        categories = Categories.of(values, ordered=ordered)
        return np.append(categories.codes(values), np.nan)[np.asarray(codes)], categories

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def _series(self, name: str) -> Any:
        if name not in self._names:
            raise DataError(unknown("column", name, self._table.columns))
        return self._table[name]


def columns_of_frame(frame: Any, values: Mapping[str, AnyArray] | None = None) -> FrameColumns:
    """Return columns of a pandas or polars frame or an Arrow table by name.

    ``values`` replaces the values of some columns.
    """
    return FrameColumns(_as_table(frame), values)


def _as_table(frame: Any) -> Any:
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        names = table.columns
    except TypeError:
        raise DataError(
            f"a pandas, polars or Arrow frame is expected, not {type(frame).__name__}; use "
            "from_arrays for arrays."
        ) from None
    except DuplicateError as error:
        raise DataError(f"a column name is used twice: {_one_line(error)}") from None
    if not all(isinstance(name, str) for name in names):
        raise DataError("column names must be text; rename the columns first.")
    return table


def frame_columns(X: Any) -> list[str] | None:
    """Return the column names of a pandas or polars frame or an Arrow table, otherwise None."""
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X):
        return None
    refuse_lazy(X)
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(X, pass_through=True, eager_only=True)
        return list(frame.columns) if isinstance(frame, nw.DataFrame) else None
    except DuplicateError as error:
        raise DataError(f"a column name is used twice; rename one: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def categories_of(column: FrameColumns, features: Iterable[str]) -> dict[str, Categories]:
    """Return the categories of the features whose columns are of the type category."""
    coded = {name: column.coded(name) for name in features}
    return {name: pair[1] for name, pair in coded.items() if pair is not None}


def frame_categories(frame: Any) -> dict[str, Categories]:
    """Return the categories of all columns of a frame that are of the type category."""
    import narwhals as nw

    schema = nw.from_native(frame, eager_only=True).schema
    names = [name for name, kind in schema.items() if isinstance(kind, nw.Categorical | nw.Enum)]
    return categories_of(columns_of_frame(frame), names) if names else {}


def encoded_features(
    frame: Any, features: Sequence[str], categories: AllCategories | None
) -> AnyArray:
    """Return features of a frame with the codes of given categories.

    Raise a DataError if a column of the type category is not in ``categories``.
    """
    column = columns_of_frame(frame)
    for name in features:
        if name not in (categories or {}) and column.coded(name) is not None:
            raise _fitted_as_number(name, "X")
    return feature_matrix(column, features, len(column), categories)


def feature_matrix(
    column: FrameColumns,
    features: Sequence[str],
    rows: int,
    categories: AllCategories | None = None,
) -> AnyArray:
    """Return the features as a matrix, or raise an error that names all columns without numbers.

    Columns with ``categories`` are converted to codes by value.
    """
    categories = categories or {}
    not_numeric: dict[str, Any] = {}
    is_coded = all(name in categories for name in features)
    X = np.empty((rows, len(features)), np.float64 if is_coded else np.float32)
    for number, name in enumerate(features):
        if name in categories:
            X[:, number] = _codes_of(column, name, categories[name])
            continue
        values = column(name)
        if (row := _first_not_number(values)) is not None:
            not_numeric[name] = values.tolist()[row]
        elif not not_numeric:
            if X.dtype == np.float32 and values.dtype != np.float32:
                X = X.astype(np.float64) if number else np.empty(X.shape)
            X[:, number] = values
    if not_numeric:
        examples = ", ".join(
            f"{quoted(name)} (it holds {brief(value)})" for name, value in not_numeric.items()
        )
        many = len(not_numeric) > 1
        raise DataError(
            f"{'these feature columns are' if many else 'this feature column is'} not "
            f"numeric: {examples}; if {'one' if many else 'it'} identifies documents, name it with "
            "doc_id=NAME (--read doc_id=NAME); "
            f"else make {'them categories' if many else 'it a category'} for trees "
            f'with astype("category") (of a file, --read categorical={",".join(not_numeric)}), '
            f"encode {'them' if many else 'it'} as numbers, name the features with features=..., "
            f"or leave these out with drop={list(not_numeric)} "
            f"(--read drop={','.join(not_numeric)})."
        )
    return X


def _codes_of(column: FrameColumns, name: str, categories: Categories) -> AnyArray:
    """Return a column with the codes of given categories, matched by value.

    A column that is not of the type category contains the values. A column of numbers is an error
    if the categories are text.
    """
    coded = column.coded(name)
    if coded is not None:
        return categories.recoded(*coded)
    values = column(name)
    numbers = values.dtype.kind in "fiub" and not np.isnan(values.astype(np.float64)).all()
    if numbers and len(categories) and all(isinstance(value, str) for value in categories.values):
        raise DataError(
            f"column {quoted(name)} holds numbers, where categories such as {categories} are "
            "known; give the categories themselves."
        )
    return categories.codes(values.tolist())


def checked_numbers(values: AnyArray, name: str, role: str) -> F64:
    """Return a column as numbers. Raise a DataError if a value is missing or not a number."""
    row = _first_not_number(values)
    if row is not None:
        raise DataError(
            f"the {role} (column {quoted(name)}) must be a number; row {row} holds "
            f"{brief(values.tolist()[row])}: turn text into numbers first."
        )
    numbers = values.astype(np.float64)
    _refuse_missing(np.isnan(numbers), name, role)
    return numbers


def checked_ids(values: AnyArray, name: str, role: str) -> AnyArray:
    """Return a column of ids or positions. Only document ids may be missing."""
    if values.dtype.kind == "O":
        missing = np.array([value is None for value in values.tolist()], bool)
        if role == "doc_id":
            values = np.where(missing, "", values)
        else:
            _refuse_missing(missing, name, role)
        if all(isinstance(value, str) for value in values.tolist()):
            refuse_trailing_nul(values.tolist(), role)
            return values.astype(str)
    elif values.dtype.kind in "fM":
        _refuse_missing(np.isnan(values), name, role)
    return values


def _first_not_number(values: AnyArray) -> int | None:
    """Return the row of the first value that is neither a number nor missing."""
    if values.dtype.kind in "fiub":
        return None
    if values.dtype.kind in "mM":
        return 0
    for row, value in enumerate(values.tolist()):
        try:
            if isinstance(value, str | bytes):
                return row
            float(0 if value is None else value)
        except (TypeError, ValueError):
            return row
    return None


def _refuse_missing(missing: AnyArray, name: str, role: str) -> None:
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise DataError(f"the {role} (column {quoted(name)}) is missing at row {row}.")


def refuse_other_index(first: Any, called: str, /, **columns: Any) -> None:
    """Refuse a pandas Series whose index contains the labels of ``first`` in another order.

    Error messages call the first object ``called``.
    """
    index: Any = getattr(first, "index", None)
    for name, values in columns.items():
        other: Any = getattr(values, "index", None)
        if not hasattr(index, "equals") or not hasattr(other, "equals") or len(index) != len(other):
            continue
        if not index.equals(other) and index.is_unique and set(index) == set(other):
            raise DataError(
                f"the index of {name} is that of {called} in another order, and rows are paired by "
                f"their place; pass {name}.loc[{called}.index], or {name}.to_numpy() if the places "
                "agree."
            )


def ids_of_text(values: Sequence[str] | AnyArray) -> AnyArray:
    """Return text ids as integers if each is the decimal form of an integer, otherwise as text.

    ``007`` is not the decimal form of an integer, so it cannot be confused with ``7``.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
        refuse_trailing_nul(values, "id")
    text = np.asarray(values, str)
    try:
        numbers = text.astype(np.int64)
    except (ValueError, OverflowError):
        return text
    return numbers if (numbers.astype(text.dtype) == text).all() else text


# --- ranking data to frames ------------------------------------------------------------------


def frame_of_columns(
    columns: Mapping[str, Any], backend: Literal["pandas", "polars", "pyarrow"] = "pandas"
) -> Any:
    """Return columns as a frame. Raise a UsageError if the package of the frame is missing."""
    import narwhals as nw

    if backend not in _BACKENDS:
        raise UsageError(unknown("frame backend", backend, _BACKENDS))
    try:
        native = {
            name: values.to_native(backend) if isinstance(values, CategoryColumn) else values
            for name, values in columns.items()
        }
        return nw.from_dict(native, backend=backend).to_native()
    except ModuleNotFoundError:
        raise UsageError(f"{backend} is not installed: pip install {backend}") from None


def columns_of_data(data: RankingData) -> dict[str, Any]:
    """Return column name -> values, one value per document. Sparse features become dense."""
    columns: dict[str, Any] = {
        "qid": np.repeat(data.qid, data.sizes),
        "label": data.y,
    }
    if data.query_weight is not None:
        columns["query_weight"] = np.repeat(data.query_weight, data.sizes)
    for role in ROLES[1:]:
        values = getattr(data, role)
        if values is not None:
            columns[role] = values
    features = columns_of_features(data)
    for name in features:
        if name in columns:
            raise DataError(
                f"a feature is named {quoted(name)}, which is also the name of another column; "
                "rename the feature."
            )
    return columns | features


def columns_of_features(data: RankingData) -> dict[str, Any]:
    """Return feature name -> values, one value per document. Sparse features become dense."""
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    categories = data.categories or {}
    return {
        name: CategoryColumn(values, categories[name]) if name in categories else values
        for name, values in zip(feature_columns(data), X.T, strict=True)
    }


def feature_columns(data: RankingData) -> tuple[str, ...]:
    """Return the names of the features, or ``f1`` to ``fd`` if the features have no names."""
    return data.feature_names or default_names(data.n_features)


def column_of(data: RankingData, feature: str | int) -> int:
    """Return the column of a feature in ``data.X``. Features have a name or a number from 1."""
    names = feature_columns(data)
    if str(feature) in names:
        return names.index(str(feature))
    if str(feature).isdecimal() and 1 <= int(feature) <= data.n_features:
        return int(feature) - 1
    numbers = [f"1 to {data.n_features}"]
    raise UsageError(unknown("feature", str(feature), data.feature_names or numbers))


def default_names(n_features: int) -> tuple[str, ...]:
    """Return ``f1`` to ``fd``, the columns of features without names."""
    return tuple(f"f{number}" for number in range(1, n_features + 1))


# --- which column is what --------------------------------------------------------------------

USUAL_NAMES = {
    "qid": ("qid", "query", "query_id", "group_id"),
    "label": ("label", "grade", "rel", "relevance", "y"),
    "query_weight": ("query_weight",),
    "sample_weight": ("sample_weight", "weight"),
    "doc_id": ("doc_id", "docid", "doc"),
    "group": ("group", "host"),
    "position": ("position",),
}

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_MOST_NAMES = 12
_NOUNS = {"qid": "query id", "doc_id": "document id"}
_MEANINGS = {
    "qid": ", the rows ranked against each other, such as those of a search or a session",
    "label": ", the relevance of a row to its query: 0 is bad, higher is better",
}


def match_columns(
    names: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    columns: Mapping[str, str | None] | None = None,
    *,
    required: Collection[str] = (),
    excluded: Collection[str] = (),
    advice: str = "",
) -> dict[str, str]:
    """Return role -> column for a table of any kind.

    Parameters
    ----------
    names
        The columns of the table.
    roles
        Role -> its usual names in order of preference. Case and blanks around a name are ignored.
    columns
        Role -> column as specified by the user; None: find it by its usual names; ``""``: the table
        has no such column. Pass None for all roles if users cannot specify columns: the first usual
        name is then used if several columns match, otherwise this is an error.
    required
        Roles that must have a column.
    excluded
        Columns that are not found by their usual names, such as features.
    advice
        End of the error message if several columns match.
    """
    matched = {}
    for role, usual_names in roles.items():
        column = None if columns is None else columns.get(role)
        if column and column not in names:
            raise DataError(unknown("column", column, names))
        if column is None:
            preference = {name: place for place, name in enumerate(usual_names)}
            candidates = {
                name: preference[name.strip().lower()]
                for name in names
                if name not in excluded and name.strip().lower() in preference
            }
            if len(candidates) > 1 and columns is not None:
                raise DataError(
                    f"columns {' and '.join(map(repr, candidates))} could each be the {role}; "
                    f"specify it with {role}=...{advice}"
                )
            column = min(candidates, key=lambda name: candidates[name], default=None)
        if column:
            matched[role] = column
        elif role in required:
            shown = ", ".join(repr(name) for name in names[:_MOST_NAMES])
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            solution = f"Specify it with {role}=NAME (--read {role}=NAME)."
            raise DataError(
                f"no {_NOUNS.get(role, role)} column found ({', '.join(usual_names)})"
                f"{_MEANINGS.get(role, '')}; the columns are {shown}{more}. "
                f"{'Rename one of them.' if columns is None else solution}"
            )
    return matched


def choose_columns(
    names: Sequence[str],
    columns: Mapping[str, str | None],
    *,
    features: str | Sequence[str] | None = None,
    drop: str | Iterable[str] = (),
    grades: bool = True,
) -> tuple[dict[str, str], list[str]]:
    """Return role -> column, and the feature columns, of a table with the columns ``names``.

    Parameters
    ----------
    columns
        Role -> column for roles of ``USUAL_NAMES``, as for `match_columns`.
    features, drop
        Columns that are features (default: all columns without a role) and columns that are not;
        a list, or a text separated by commas.
    grades
        False: the documents are only ranked, and a column of grades is ignored.
    """
    wanted, dropped = listed(features), listed(drop) or []
    columns = {role: None if name is None else str(name) for role, name in columns.items()}
    excluded = {*filter(None, columns.values()), *(wanted or []), *dropped}
    for name in [*(wanted or []), *dropped]:
        if name not in names:
            raise DataError(unknown("column", name, names))
    roles = match_columns(
        names,
        USUAL_NAMES,
        columns,
        required=("qid", "label") if grades and columns.get("label") is None else ("qid",),
        excluded=excluded,
        advice=", and leave the other out with drop=... or name it in features=...",
    )
    if wanted is None:
        used = {*roles.values(), *dropped}
        wanted = [name for name in names if name not in used and not _PANDAS_INDEX.fullmatch(name)]
    if "" in wanted:
        raise DataError(
            "a column has no name (the index of a frame?); name it, or leave it out with drop=[''] "
            "(--read drop=)."
        )
    if not grades:
        roles.pop("label", None)
    return roles, wanted


def listed(names: str | Iterable[str] | None) -> list[str] | None:
    """Return names as a list; one text may hold several with commas between."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return None if names is None else [str(name) for name in names]


_NEVER_FEATURES = {
    **dict.fromkeys(USUAL_NAMES["qid"], "query ids"),
    **dict.fromkeys(USUAL_NAMES["doc_id"], "document ids"),
    "query_weight": "weights of queries",
    "sample_weight": "weights of documents",
}


def refuse_roles_as_features(names: Iterable[Any]) -> None:
    """Raise if a feature is named like an id or a weight and was probably not meant as a feature.

    Call it only if the user has not listed the features.
    """
    for name in names:
        role = _NEVER_FEATURES.get(str(name).strip().lower())
        if role is not None:
            raise DataError(
                f"column {quoted(name)} of X is named like {role} and would become a feature; "
                f"leave it out of X (in fit: drop=[{quoted(name)}]), name all columns, as in "
                "fit(frame, 'grade', qid='query'), or choose the features with features=[...]."
            )


# --- categories ------------------------------------------------------------------------------

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Categories:
    """Values of the codes 0, 1, ... of a feature.

    Attributes
    ----------
    values : tuple
        Strings, numbers or booleans. Code ``i`` represents ``values[i]``.
    ordered : bool
        Whether the order of the values has a meaning, as in small < medium < large. Trees then
        split the codes like numbers.
    """

    values: tuple[Any, ...]
    ordered: bool = False

    @classmethod
    def of(cls, values: Iterable[Any], *, ordered: bool = False) -> Categories:
        """Return the distinct values as categories, sorted unless they are ``ordered``."""
        distinct = dict.fromkeys(plain_value(value) for value in values)
        distinct.pop(None, None)
        if ordered:
            return cls(tuple(distinct), ordered)
        return cls(tuple(sorted(distinct, key=lambda value: (isinstance(value, str), value))))

    def codes(self, values: Sequence[Any]) -> F64:
        """Return the code of each value. The code of missing and unknown values is NaN."""
        code_of: dict[Any, float] = {value: float(code) for code, value in enumerate(self.values)}
        return np.array([code_of.get(plain_value(value), np.nan) for value in values], np.float64)

    def value(self, code: float) -> Any:
        """Return the value of a code, or None if the code is NaN or out of range."""
        in_range = code == code and 0 <= code < len(self.values)
        return self.values[int(code)] if in_range else None

    def column(self, codes: AnyArray) -> AnyArray:
        """Return the value of each code, or None if it is missing."""
        values = np.empty(len(self.values) + 1, object)
        values[:-1] = self.values
        return values[self.whole(codes)]

    def whole(self, codes: AnyArray) -> AnyArray:
        """Return the codes as integers, with -1 for missing values."""
        in_range = (codes >= 0) & (codes < len(self.values))
        return np.where(in_range, np.where(in_range, codes, 0), -1).astype(np.int64)

    def recoded(self, codes: AnyArray, source: Categories) -> AnyArray:
        """Convert codes of other categories to codes of these categories, matched by value."""
        return np.append(self.codes(source.values), np.nan)[source.whole(codes)].astype(codes.dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        shown = ", ".join(repr(value) for value in self.values[:_SHOWN])
        return f"{shown}, ..." if len(self.values) > _SHOWN else shown


@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """Codes and categories of a column that is written to a table."""

    codes: AnyArray
    categories: Categories

    def to_native(self, backend: str) -> Any:
        """Return a column of the type category of pandas, polars or pyarrow."""
        values, codes = list(self.categories.values), self.categories.whole(self.codes)
        native = import_module(backend)
        if backend == "pandas":
            ordered = self.categories.ordered
            return native.Series(native.Categorical.from_codes(codes, values, ordered=ordered))
        if backend == "polars":
            text = all(isinstance(value, str) for value in values)
            plain = self.categories.column(self.codes).tolist()
            return native.Series(plain, dtype=native.Enum(values) if text else None)
        return native.DictionaryArray.from_arrays(
            native.array(codes.astype(np.int32), mask=codes < 0),
            native.array(values),
            ordered=self.categories.ordered,
        )

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002
        """Return an Arrow dictionary; `pyarrow` calls this method to convert a column."""
        return self.to_native("pyarrow")

    def __len__(self) -> int:
        return len(self.codes)


AllCategories = Mapping[str, Categories]
"""Mapping from the name of a feature to its categories."""


def plain_value(value: Any) -> Any:
    """Return a category as a string, number or boolean, the types of files; None if missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


def checked_categories(
    categories: Any, names: Sequence[str] | None
) -> dict[str, Categories] | None:
    """Return categories by feature, in the order of the features."""
    by_name = {
        str(name): values if isinstance(values, Categories) else Categories(tuple(values))
        for name, values in dict(categories or {}).items()
    }
    for name in by_name:
        if names is None or name not in names:
            raise DataError(f"there are categories of {quoted(name)}, which is not a feature name.")
    return {name: by_name[name] for name in names or () if name in by_name} or None


def joined_categories(several: Iterable[AllCategories | None]) -> dict[str, Categories] | None:
    """Return for each feature the union of its categories in several data sets."""
    union: dict[str, Categories] = {}
    for categories in several:
        for name, added in (categories or {}).items():
            before = union.setdefault(name, added)
            if before != added:
                values = (*before.values, *added.values)
                union[name] = Categories.of(values, ordered=before.ordered and added.ordered)
    return union or None


def recoded(
    X: Any,
    names: Sequence[str] | None,
    source: AllCategories | None,
    target: AllCategories | None,
    where: str,
) -> Any:
    """Convert the codes of features ``names`` from ``source`` to ``target`` categories.

    Columns that have only ``target`` categories must already contain their codes.
    """
    columns, target = list(names or ()), target or {}
    source = {name: (source or {})[name] for name in source or () if name in columns}
    for name in source:
        if name not in target:
            raise _fitted_as_number(name, where)
    different = [name for name in source if source[name] != target[name]]
    if not different:
        return X
    X = X.toarray() if hasattr(X, "toarray") else X.copy()
    for name in different:
        column = columns.index(name)
        X[:, column] = target[name].recoded(X[:, column], source[name])
    return X


def _fitted_as_number(name: str, where: str) -> DataError:
    return DataError(
        f"column {quoted(name)} of {where} is a category, and the ranker was fitted to it as a "
        "number; give it as a number."
    )


def categories_to_json(categories: AllCategories | None) -> dict[str, Any]:
    """Return categories as a JSON object."""
    return {
        name: {"values": list(feature.values), "ordered": feature.ordered}
        for name, feature in (categories or {}).items()
    }


def categories_from_json(content: Any, names: Sequence[str] | None) -> dict[str, Categories] | None:
    """Return categories from the output of `categories_to_json`, or raise a ValueError."""
    categories = {}
    for name, feature in dict(content or {}).items():
        values = feature["values"]
        plain = isinstance(values, list) and all(
            isinstance(value, bool | int | float | str) for value in values
        )
        if not plain or len(set(values)) < len(values):
            raise ValueError(f"the categories of {name} are not a list of different values")
        categories[name] = Categories(tuple(values), bool(feature["ordered"]))
    return checked_categories(categories, names)
