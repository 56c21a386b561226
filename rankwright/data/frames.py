"""Frames of pandas, polars and Arrow to ranking data and back: roles of columns, and categories.

Columns play roles, which the caller names or their usual names say:

===================  ==================================================
query id             ``qid``, ``query``, ``query_id``, ``group_id``
grade                ``label``, ``grade``, ``rel``, ``relevance``, ``y``
``doc_id``           ``doc_id``, ``docid``, ``doc``
``query_weight``     ``query_weight``
``sample_weight``    ``sample_weight``, ``weight``
``group``            ``group``, ``host``
``position``         ``position``
features             every other column
===================  ==================================================

Case and blanks around a name do not matter. Two columns that could both play one role are an error,
never a guess. The index that pandas writes to a Parquet file is no feature. Features must be
numbers, booleans or categories; a null feature is a missing value (NaN). A null query id, grade or
weight is an error.

If grades and query ids are given as arrays next to a frame, or only some columns are named, a
column named like ids, ``query_weight`` or ``sample_weight`` is refused, not taken for a feature.

A column of the type category (pandas ``category``, polars ``Categorical`` and ``Enum``, an Arrow
dictionary) is in ``RankingData.X`` as codes 0, 1, ..., NaN where it is missing; `Categories` says
what each code stands for. Codes of two data sets are matched by value, never by code. The
categories of an unordered column are sorted, so that their order in a frame changes nothing; those
of an ordered one keep its order.
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
"""The optional columns, by the name of what they become in `RankingData`."""

_ENUM = b"_PL_ENUM_VALUES"  # begins what polars notes of an Enum, which Arrow takes for ordered
_WEIGHTS = ("query_weight", "sample_weight")
_BACKENDS = ("pandas", "polars", "pyarrow")

Columns = Callable[[str], AnyArray]
"""From the name of a column to its values: numbers (missing: NaN), or objects (missing: None)."""


def arrays_of_frame(
    frame: Any,
    *,
    qid: str,
    label: str | None,
    features: Sequence[str] | None = None,
    drop: Iterable[str] = (),
    columns: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `RankingData.from_arrays` for the rows of ``frame``.

    Parameters
    ----------
    frame
        A pandas or polars frame (lazy ones are collected) or an Arrow table.
    qid, label
        Columns of query ids and grades; ``label=None`` for documents only to be ranked.
    features
        Feature columns; by default all that play no other role.
    drop
        Columns that are no features.
    columns
        Optional role -> column, see ``ROLES``.
    """
    table = _as_table(frame)
    columns = dict(columns or {})
    for role in columns:
        if role not in ROLES:
            raise UsageError(unknown("column role", role, ROLES))
    dropped = [drop] if isinstance(drop, str) else list(drop)
    named = [name for name in (qid, label, *columns.values(), *dropped) if name is not None]
    for name in [*named, *(features or [])]:
        if name not in table.columns:
            raise DataError(unknown("column", name, table.columns))
    if features is None:
        features = [name for name in table.columns if name not in named]
        refuse_roles_as_features(features)
    roles = {"qid": qid, **({} if label is None else {"label": label}), **columns}
    return arrays_of_columns(columns_of_frame(table), roles, features)


def arrays_of_columns(
    column: Columns,
    roles: Mapping[str, str],
    features: Sequence[str],
    categories: AllCategories | None = None,
) -> dict[str, Any]:
    """Return the arguments of `RankingData.from_arrays`.

    Parameters
    ----------
    column
        Gives the values of a column by its name.
    roles
        Role -> column: ``qid``, and where there is one ``label`` and any of ``ROLES``.
    features
        Feature columns; float32 where all are, else float64.
    categories
        Of features that are categories; by default of those whose columns are of that type.
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
_ARROW_WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


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
            if kind in _ARROW_FLOATS or (kind in _ARROW_WHOLE and not column.null_count):
                numbers: AnyArray = column.to_numpy()
                return numbers
        values = self._series(name)
        if values.dtype == nw.Boolean or values.is_null().all():
            values = values.cast(nw.Float64)
        array: AnyArray = values.to_numpy()
        if array.dtype.kind == "U":  # polars has cut the texts already
            refuse_trailing_nul(values.to_list(), "id")
        if array.dtype.kind != "O":
            return array
        missing = np.array(values.is_null().to_list(), bool)
        marked: AnyArray = array.copy()
        marked[missing] = None  # each package marks it in its own way
        return marked

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


def categories_of(column: Columns, features: Sequence[str]) -> dict[str, Categories]:
    """Return the categories of those features whose columns are of the type category."""
    if not isinstance(column, FrameColumns):
        return {}
    coded = {name: column.coded(name) for name in features}
    return {name: found[1] for name, found in coded.items() if found is not None}


def frame_categories(frame: Any) -> dict[str, Categories]:
    """Return the categories of those columns of a frame that are of the type category."""
    import narwhals as nw

    schema = nw.from_native(frame, eager_only=True).schema
    named = [name for name, kind in schema.items() if isinstance(kind, nw.Categorical | nw.Enum)]
    return categories_of(columns_of_frame(frame), named) if named else {}


def encoded_features(
    frame: Any, features: Sequence[str], categories: AllCategories | None
) -> AnyArray:
    """Return features of a frame in the codes of known categories, found by value.

    A column of the type category that is not among them is refused.
    """
    column, known = columns_of_frame(frame), categories or {}
    for name in features:
        if name not in known and column.coded(name) is not None:
            raise DataError(
                f"column {quoted(name)} of X is a category, and the ranker was fitted to it as a "
                "number; give it as a number."
            )
    return feature_matrix(column, features, len(column), known)


def frame_of_data(
    data: RankingData, backend: Literal["pandas", "polars", "pyarrow"] = "pandas"
) -> Any:
    """Return ``data`` as a frame: columns ``qid``, ``label``, the optional ones, and the features.

    Parameters
    ----------
    backend
        ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
    """
    return frame_of_columns(columns_of_data(data), backend)


def frame_of_columns(
    columns: Mapping[str, AnyArray], backend: Literal["pandas", "polars", "pyarrow"] = "pandas"
) -> Any:
    """Return a frame of these columns, or say which package it takes."""
    import narwhals as nw

    if backend not in _BACKENDS:
        raise UsageError(unknown("frame backend", backend, _BACKENDS))
    try:
        native = {name: _native(values, backend) for name, values in columns.items()}
        return nw.from_dict(native, backend=backend).to_native()
    except ModuleNotFoundError:
        raise UsageError(f"{backend} is not installed: pip install {backend}") from None


def _native(values: Any, backend: str) -> Any:
    """Return a column of categories as ``backend`` has them; any other as it is."""
    if not isinstance(values, CategoryColumn):
        return values
    own, codes = values.categories, values.categories.whole(values.codes)
    if backend == "pyarrow":
        return arrow_dictionary(values)
    if backend == "polars":
        pl = import_module("polars")
        text = all(isinstance(value, str) for value in own.values)
        return pl.Series(values.tolist(), dtype=pl.Enum(list(own.values)) if text else None)
    pd = import_module("pandas")
    return pd.Series(pd.Categorical.from_codes(codes, list(own.values), ordered=own.ordered))


def arrow_dictionary(values: CategoryColumn) -> Any:
    """Return a column of categories as an Arrow dictionary."""
    pa = import_module("pyarrow")
    codes = values.categories.whole(values.codes)
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    kept = pa.array(list(values.categories.values))
    return pa.DictionaryArray.from_arrays(indices, kept, ordered=values.categories.ordered)


def columns_of_data(data: RankingData) -> dict[str, Any]:
    """Return column name -> values, one value per document; sparse features become dense."""
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
                f"a feature is named {quoted(name)}, as is the column of another thing; rename it."
            )
    return columns | features


def columns_of_features(data: RankingData) -> dict[str, Any]:
    """Return feature name -> values, one value per document; sparse features become dense."""
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    known = data.categories or {}
    return {
        name: CategoryColumn(values, known[name]) if name in known else values
        for name, values in zip(feature_columns(data), X.T, strict=True)
    }


def frame_columns(X: Any) -> list[str] | None:
    """Return the column names of a pandas or polars frame or an Arrow table, else None."""
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


def refuse_other_index(first: Any, called: str, /, **columns: Any) -> None:
    """Refuse a pandas Series that has the index of ``first``, but in another order.

    ``called`` is what ``first`` is called in the sentence.
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


def feature_columns(data: RankingData) -> tuple[str, ...]:
    """Return the names of the features, ``f1`` to ``fd`` where they have none."""
    return data.feature_names or default_names(data.n_features)


def column_of(data: RankingData, feature: str | int) -> int:
    """Return where a feature stands, from 0: found by its name, or its number from 1."""
    names = feature_columns(data)
    if str(feature) in names:
        return names.index(str(feature))
    if str(feature).isdecimal() and 1 <= int(feature) <= data.n_features:
        return int(feature) - 1
    numbers = [f"1 to {data.n_features}"]
    raise UsageError(unknown("feature", str(feature), data.feature_names or numbers))


def default_names(n_features: int) -> tuple[str, ...]:
    """Return ``f1`` to ``fd``: how a table spells features without names."""
    return tuple(f"f{number}" for number in range(1, n_features + 1))


def ids_of_text(values: Sequence[str] | AnyArray) -> AnyArray:
    """Return ids read as text: whole numbers where every one is written as such, else text.

    ``007`` is not how a whole number is written, so such ids stay text and none is confused.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
        refuse_trailing_nul(values, "id")
    text = np.asarray(values, str)
    try:
        numbers = text.astype(np.int64)
    except (ValueError, OverflowError):
        return text
    return numbers if (numbers.astype(text.dtype) == text).all() else text


# --- columns of one frame --------------------------------------------------------------------


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
            f"a pandas, polars or Arrow frame is expected, not {type(frame).__name__}; "
            "arrays go to from_arrays."
        ) from None
    except DuplicateError as error:
        raise DataError(f"a column name is used twice: {_one_line(error)}") from None
    if not all(isinstance(name, str) for name in names):
        raise DataError("column names must be text; rename the columns first.")
    return table


def feature_matrix(
    column: Columns,
    features: Sequence[str],
    rows: int,
    categories: AllCategories | None = None,
) -> AnyArray:
    """Return the features side by side, or name every one that is not numeric.

    Those with ``categories`` become their codes, found by value.
    """
    known = categories or {}
    wrong: dict[str, Any] = {}
    kinds = set()
    for name in features:
        if name in known:
            continue
        values = column(name)
        kinds.add(values.dtype)
        if (at := _first_not_number(values)) is not None:
            wrong[name] = values.tolist()[at]
    if wrong:
        listed = ", ".join(
            f"{quoted(name)} (it holds {brief(value)})" for name, value in wrong.items()
        )
        many = len(wrong) > 1
        raise DataError(
            f"{'these feature columns are' if many else 'this feature column is'} not "
            f"numeric: {listed}; if {'one' if many else 'it'} identifies documents, name it with "
            "doc_id=NAME (--read doc_id=NAME); "
            f"else make {'them categories' if many else 'it a category'} for trees "
            f'with astype("category") (of a file, --read categorical={",".join(wrong)}), '
            f"encode {'them' if many else 'it'} as numbers, name the features with features=..., "
            f"or leave these out with drop={list(wrong)} (--read drop={','.join(wrong)})."
        )
    X = np.empty((rows, len(features)), np.float32 if kinds == {np.dtype("f4")} else np.float64)
    for number, name in enumerate(features):
        X[:, number] = codes_of(column, name, known[name]) if name in known else column(name)
    return X


def codes_of(column: Columns, name: str, categories: Categories) -> AnyArray:
    """Return a column in the codes of known categories, found by value.

    A column of another type has the values themselves; one of numbers where the categories are
    text is refused.
    """
    coded = column.coded(name) if isinstance(column, FrameColumns) else None
    if coded is not None:
        return categories.recoded(*coded)
    values = column(name)
    texts = [value for value in categories.values if isinstance(value, str)]
    numbers = values.dtype.kind in "fiub" and not np.isnan(values.astype(np.float64)).all()
    if numbers and texts and len(texts) == len(categories):
        raise DataError(
            f"column {quoted(name)} holds numbers, where categories such as {categories} are "
            "known; give the categories themselves."
        )
    kept, place = _distinct(values)
    return np.append(categories.codes(kept), np.nan)[place]


def _distinct(values: AnyArray) -> tuple[list[Any], AnyArray]:
    """Return the different values, and the place of each row's among them."""
    number: dict[Any, int] = {}
    place = [number.setdefault(plain_value(value), len(number)) for value in values.tolist()]
    return list(number), np.array(place, np.int64)


def checked_numbers(values: AnyArray, name: str, role: str) -> F64:
    """Return a column as numbers, none of them missing."""
    at = _first_not_number(values)
    if at is not None:
        value = values.tolist()[at]
        raise DataError(
            f"the {role} (column {quoted(name)}) must be a number; row {at} holds {brief(value)}: "
            "turn text into numbers first."
        )
    numbers = values.astype(np.float64)
    _refuse_missing(np.isnan(numbers), name, role)
    return numbers


def checked_ids(values: AnyArray, name: str, role: str) -> AnyArray:
    """Return a column of ids or positions as they are, none missing but doc ids."""
    if values.dtype.kind == "O":
        missing = np.array([value is None for value in values.tolist()], bool)
        if role == "doc_id":
            values = np.where(missing, "", values)  # a document may well have no name
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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


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
    "qid": ", which says which rows are ranked against each other, such as a search or a session",
    "label": ", which says how good a row is for its query: 0 is bad, higher is better",
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
    """What the codes 0, 1, ... of a feature stand for.

    Attributes
    ----------
    values : tuple
        Texts, numbers or booleans; the place of each is its code.
    ordered : bool
        Whether the order of the values has a meaning, as small < medium < large has: trees then
        split the codes as numbers.
    """

    values: tuple[Any, ...]
    ordered: bool = False

    @classmethod
    def of(cls, values: Iterable[Any], *, ordered: bool = False) -> Categories:
        """Return the categories of these values, sorted unless they are ``ordered``."""
        plain = dict.fromkeys(plain_value(value) for value in values)
        plain.pop(None, None)
        return cls(
            tuple(
                plain
                if ordered
                else sorted(plain, key=lambda value: (isinstance(value, str), value))
            ),
            ordered,
        )

    def codes(self, values: Sequence[Any]) -> F64:
        """Return the code of each value; NaN where it is missing, or not among the categories."""
        known: dict[Any, float] = {value: float(code) for code, value in enumerate(self.values)}
        return np.array([known.get(plain_value(value), np.nan) for value in values], np.float64)

    def value(self, code: float) -> Any:
        """Return what a code stands for, None where it is missing or none of the codes."""
        known = code == code and 0 <= code < len(self.values)
        return self.values[int(code)] if known else None

    def column(self, codes: AnyArray) -> AnyArray:
        """Return the value of each code, None where it is missing."""
        values = np.empty(len(self.values) + 1, object)
        values[:-1] = self.values
        return values[self.whole(codes)]

    def whole(self, codes: AnyArray) -> AnyArray:
        """Return the codes as whole numbers, -1 where a value is missing."""
        known = (codes >= 0) & (codes < len(self.values))
        return np.where(known, np.where(known, codes, 0), -1).astype(np.int64)

    def recoded(self, codes: AnyArray, there: Categories) -> AnyArray:
        """Return codes of ``there`` as codes of these categories, by value."""
        return np.append(self.codes(there.values), np.nan)[there.whole(codes)].astype(codes.dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        shown = ", ".join(repr(value) for value in self.values[:_SHOWN])
        return f"{shown}, ..." if len(self.values) > _SHOWN else shown


@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """A column of a table to be written: codes and what they stand for."""

    codes: AnyArray
    categories: Categories

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return np.dtype(object)

    def tolist(self) -> list[Any]:
        """Return the values, None where one is missing."""
        found: list[Any] = self.categories.column(self.codes).tolist()
        return found

    def __len__(self) -> int:
        return len(self.codes)


AllCategories = Mapping[str, Categories]
"""Name of a feature -> its categories."""


def plain_value(value: Any) -> Any:
    """Return a category as a text, number or boolean, which files can hold; None if missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


def checked_categories(given: Any, names: Sequence[str] | None) -> dict[str, Categories] | None:
    """Return categories by the name of their feature, as data and model files keep them."""
    found = {
        str(name): own if isinstance(own, Categories) else Categories(tuple(own))
        for name, own in dict(given or {}).items()
    }
    for name in found:
        if names is None or name not in names:
            raise DataError(f"there are categories of {quoted(name)}, which is no feature by name.")
    return {name: found[name] for name in names or () if name in found} or None


def joined_categories(several: Sequence[AllCategories | None]) -> dict[str, Categories] | None:
    """Return for each feature the categories that any of ``several`` has."""
    found: dict[str, Categories] = {}
    for own in several:
        for name, here in (own or {}).items():
            before = found.get(name, here)
            both = before.ordered and here.ordered
            if before != here:
                here = Categories.of((*before.values, *here.values), ordered=both)
            found[name] = here
    return found or None


def recoded(
    X: Any,
    names: Sequence[str] | None,
    there: AllCategories | None,
    here: AllCategories | None,
    where: str,
) -> Any:
    """Return features whose columns ``names`` have the categories ``there`` in those of ``here``.

    A column that has categories ``here`` alone is taken to hold their codes.
    """
    columns = list(names or ())
    for name in there or ():
        if name in columns and name not in (here or {}):
            raise DataError(
                f"column {quoted(name)} of {where} is a category, and the ranker was fitted to it "
                "as a number; give it as a number."
            )
    differ = [
        name
        for name, own in (there or {}).items()
        if name in columns and here[name] != own  # type: ignore[index]
    ]
    if not differ:
        return X
    assert there is not None
    assert here is not None
    changed = X.toarray() if hasattr(X, "toarray") else X.copy()
    for name in differ:
        column = columns.index(name)
        changed[:, column] = here[name].recoded(changed[:, column], there[name])
    return changed


def categories_to_json(categories: AllCategories | None) -> dict[str, Any]:
    """Return categories as JSON holds them."""
    return {
        name: {"values": list(own.values), "ordered": own.ordered}
        for name, own in (categories or {}).items()
    }


def categories_from_json(held: Any, names: Sequence[str] | None) -> dict[str, Categories] | None:
    """Return categories from what JSON holds; what `as_json` did not write is a ValueError."""
    found = {}
    for name, own in dict(held or {}).items():
        values = own["values"]
        plain = isinstance(values, list) and all(
            isinstance(value, bool | int | float | str) for value in values
        )
        if not plain or len(set(values)) < len(values):
            raise ValueError(f"categories of {name} that are no list of different values")
        found[name] = Categories(tuple(values), bool(own["ordered"]))
    return checked_categories(found, names)
