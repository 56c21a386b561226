"""Tables with a row per document: csv, tsv, Parquet and Arrow files.

`rankwright.data.frames` says which column is what; ``f1`` to ``fd`` stand for features without
names. csv and tsv read ids as whole numbers where all are written so, else as text; an empty
feature cell, ``NaN``, ``NULL`` and ``NA`` are missing values. Numbers are written with as few
digits as bring back the same bits; for those of float32 features, read csv with
``dtype="float32"``. Sparse features are written dense. Dictionary columns of Parquet and Arrow are
categories; csv and tsv have their values as text, which ``categorical=[...]`` reads back.
"""

from __future__ import annotations

import io
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.types import AnyArray
from rankwright.data.delimited import (
    MISSING_CELLS,
    DelimitedSink,
    arrow_table,
    column_names,
    has_pyarrow,
    one_line,
    read_batches,
    read_columns,
    refuse_repeated,
)
from rankwright.data.formats import Format
from rankwright.data.frames import (
    USUAL_NAMES,
    AllCategories,
    Categories,
    Columns,
    arrays_of_columns,
    categories_of,
    choose_columns,
    columns_of_data,
    columns_of_frame,
    default_names,
    ids_of_text,
    joined_categories,
    listed,
)
from rankwright.data.ranking_data import (
    EVERYTHING,
    DistinctQueries,
    PartsDifferError,
    RankingData,
    parts_of,
)
from rankwright.data.streams import display_name, open_bytes, open_target, reads_file
from rankwright.errors import DataError, MissingExtraError, UsageError, quoted
from rankwright.registry import EXTENSIONS, unknown

_ROWS_PER_BATCH, _CELLS_PER_BATCH = 1 << 16, 1 << 22

Source = Path | io.BytesIO


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read from a table: role -> column, features, and ids that are known to be text.

    Features in ``categorical`` are categories whatever their type; ``categories`` are those of the
    whole table, where it is read in parts.
    """

    roles: dict[str, str]
    features: list[str]
    dtype: str | None
    categorical: tuple[str, ...] = ()
    text_ids: frozenset[str] = frozenset()
    categories: AllCategories | None = None

    @property
    def wanted(self) -> list[str]:
        """The columns to read."""
        return [*self.roles.values(), *self.features]

    @property
    def ids(self) -> list[str]:
        """The columns that name things."""
        return [self.roles[role] for role in ID_ROLES if role in self.roles]

    @property
    def texts(self) -> list[str]:
        """The columns whose cells are kept as they are written."""
        return [*self.ids, *self.categorical]


class Table(ABC):
    """What the four formats share: options, roles of columns, streaming in whole queries."""

    extensions: ClassVar[tuple[str, ...]]
    holds: ClassVar[frozenset[str]] = EVERYTHING - {"empty queries"}
    keeps_id_types: ClassVar[bool] = True

    def read(
        self,
        path: str | Path,
        *,
        qid: str | None = None,
        label: str | None = None,
        features: str | Sequence[str] | None = None,
        drop: str | Iterable[str] = (),
        query_weight: str | None = None,
        sample_weight: str | None = None,
        doc_id: str | None = None,
        group: str | None = None,
        position: str | None = None,
        categorical: str | Sequence[str] = (),
        dtype: str | None = None,
        grades: bool = True,
    ) -> RankingData:
        """Read a table; every option but ``dtype`` and ``grades`` names columns.

        Parameters
        ----------
        label
            ``""`` for documents without grades, that are only to be ranked.
        features, drop
            Names, or one text with commas.
        categorical
            Features that are categories although their columns are text or numbers; columns of the
            type category (a dictionary of Arrow) are without being named.
        dtype
            ``"float32"`` or ``"float64"``; by default that of the columns, or float64.
        grades
            False: there need be no grades, and a column of grades is passed over.
        """
        given = {
            "qid": qid,
            "label": label,
            "query_weight": query_weight,
            "sample_weight": sample_weight,
            "doc_id": doc_id,
            "group": group,
            "position": position,
        }
        with naming(path):
            source = _seekable(path)
            plan = self._plan(
                source,
                given,
                features=features,
                drop=drop,
                categorical=categorical,
                dtype=dtype,
                grades=grades,
            )
            return self._data(self._columns(source, plan), plan)

    def read_parts(
        self,
        path: str | Path,
        *,
        features: str | Sequence[str] | None = None,
        drop: str | Iterable[str] = (),
        categorical: str | Sequence[str] = (),
        dtype: str | None = None,
        grades: bool = True,
        **columns: str | None,
    ) -> Iterator[RankingData]:
        """Yield the table in parts of whole queries; in one part if a query's rows lie apart.

        Takes the options of `read`.
        """
        given = {role: columns.get(role) for role in USUAL_NAMES}
        with naming(path):
            source = _seekable(path)
            plan = self._plan(
                source,
                given,
                features=features,
                drop=drop,
                categorical=categorical,
                dtype=dtype,
                grades=grades,
            )
            scanned = self._scan(source, plan)
            if scanned is None:
                yield self._data(self._columns(source, plan), plan)
                return
            batches = self._batches(source, plan.wanted, plan)
            for table in _whole_queries(batches, plan.roles["qid"]):
                yield self._data(columns_of_frame(table), scanned)

    def read_columns(
        self, path: str | Path, choose: Callable[[list[str]], dict[str, str]]
    ) -> dict[str, AnyArray]:
        """Return some columns of a table by role; ``choose`` gives role -> name among all names."""
        with naming(path):
            source = _seekable(path)
            plan = Plan(choose(refuse_repeated(self._names(source))), [], None)
            column = self._columns(source, plan)
            return {role: column(name) for role, name in plan.roles.items()}

    def column_parts(
        self,
        path: str | Path,
        choose: Callable[[list[str]], dict[str, str]],
        *,
        text: Collection[str],
        run: str | None = None,
    ) -> Iterator[tuple[dict[str, str], Columns]]:
        """Yield some columns of a table in parts, with the name of each by role.

        Parameters
        ----------
        choose
            As for `read_columns`.
        text
            Roles whose cells are kept as they are written, where the table is text.
        run
            A role; parts end where its value changes. Without one there is one part.
        """
        with naming(path):
            source = _seekable(path)
            roles = choose(refuse_repeated(self._names(source)))
            kept = tuple(name for role, name in roles.items() if role in text)
            plan = Plan(roles, [], None, kept)
            if run is None or not has_pyarrow():
                yield roles, self._columns(source, plan)
                return
            wanted = list(dict.fromkeys(roles.values()))
            for table in _whole_queries(self._batches(source, wanted, plan), roles[run]):
                yield roles, columns_of_frame(table)

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write the table, a block of rows at a time."""
        with self.open_writer(path) as writer:
            for part in parts_of(data):
                writer.append(part)

    def names(self, path: str | Path) -> list[str]:
        """Return the names of the columns of a table."""
        with naming(path):
            return refuse_repeated(self._names(_seekable(path)))

    def write_columns(self, columns: dict[str, AnyArray], path: str | Path) -> None:
        """Write columns as they are."""
        with self.open_columns(path) as sink:
            sink.write(columns)

    @contextmanager
    def open_columns(self, path: str | Path) -> Iterator[Any]:
        """Open a table for writing blocks of columns as they are."""
        with open_target(path) as stream:
            sink = self._sink(stream)
            yield sink
            sink.close()

    @contextmanager
    def open_writer(self, path: str | Path) -> Iterator[TableWriter]:
        """Open a table for writing part by part; the first part decides the columns."""
        with open_target(path) as stream:
            writer = TableWriter(self._sink(stream), keeps_id_types=self.keeps_id_types)
            try:
                yield writer
                writer.close()
            finally:
                writer.sink.close()

    def _plan(
        self,
        source: Source,
        given: dict[str, str | None],
        *,
        features: str | Sequence[str] | None,
        drop: str | Iterable[str],
        categorical: str | Sequence[str],
        dtype: str | None,
        grades: bool,
    ) -> Plan:
        if dtype not in (None, "float32", "float64"):
            raise UsageError(f"dtype must be 'float32' or 'float64', not {dtype!r}.")
        names = refuse_repeated(self._names(source))
        roles, chosen = choose_columns(names, given, features=features, drop=drop, grades=grades)
        named = listed(categorical) or []
        for name in named:
            if name not in chosen:
                raise DataError(unknown("feature column", name, chosen))
        return Plan(roles, chosen, dtype, tuple(named))

    def _data(self, column: Columns, plan: Plan) -> RankingData:
        categories = plan.categories
        if categories is None:
            categories = _categories(column, plan.features, plan.categorical)
        arrays = arrays_of_columns(column, plan.roles, plan.features, categories)
        if not len(arrays["qid"]):
            raise DataError("there are no rows.")
        for role in ("query_weight", "sample_weight"):
            if role in arrays and not arrays[role].any():
                # Of a part this may be; all parts together may do.
                raise PartsDifferError(f"every {role} is zero, so nothing would count.")
        if plan.dtype is not None:
            arrays["X"] = arrays["X"].astype(plan.dtype, copy=False)
        if tuple(plan.features) == default_names(len(plan.features)) and not categories:
            arrays["feature_names"] = None
        return RankingData.from_arrays(**arrays)

    def _scan(self, source: Source, plan: Plan) -> Plan | None:
        """Return the plan to read in parts, or None where the rows of a query lie apart."""
        runs, name, found = Runs(), plan.roles["qid"], []
        typed = [column for column in self._dictionaries(source) if column in plan.features]
        named = list(dict.fromkeys([*typed, *plan.categorical]))
        for batch in self._batches(source, [name, *named], plan):
            column = columns_of_frame(batch)
            if runs.come_back(column(name)):
                return None
            found.append(_categories(column, named, plan.categorical))
        return replace(plan, categories=joined_categories(found) or {})

    def _dictionaries(self, source: Source) -> list[str]:  # noqa: ARG002
        """Return the columns of the type category."""
        return []

    # What each format does in its own way:

    @abstractmethod
    def _names(self, source: Source) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def _columns(self, source: Source, plan: Plan) -> Columns:
        """Return the whole table, column by column."""

    @abstractmethod
    def _batches(self, source: Source, wanted: list[str], plan: Plan) -> Iterator[Any]:
        """Yield the wanted columns, some rows at a time."""

    @abstractmethod
    def _sink(self, stream: BinaryIO) -> Any:
        """Return what writes tables to ``stream``."""


# --- the formats -----------------------------------------------------------------------------


class ArrowTable(Table):
    """A file that says by an Arrow schema which columns it has."""

    @abstractmethod
    def _schema(self, source: Source) -> Any:
        """Return the Arrow schema."""

    def _names(self, source: Source) -> list[str]:
        return list(self._schema(source).names)

    def _dictionaries(self, source: Source) -> list[str]:
        return _dictionaries_of(self._schema(source))


class Parquet(ArrowTable):
    """Parquet files, a row per document; read by row groups where memory is short."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["parquet"]

    def row_count(self, path: str | Path) -> int | None:
        """Return the number of rows, of which a file says how many there are."""
        with naming(path):
            return int(self._open(_seekable(path)).metadata.num_rows)

    def _schema(self, source: Source) -> Any:
        return self._open(source).schema_arrow

    def _columns(self, source: Source, plan: Plan) -> Columns:
        return columns_of_frame(_valid(self._open(source).read(columns=plan.wanted)))

    def _batches(self, source: Source, wanted: list[str], plan: Plan) -> Iterator[Any]:  # noqa: ARG002
        file = self._open(source)
        rows = max(1, min(_ROWS_PER_BATCH, _CELLS_PER_BATCH // len(wanted)))
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            yield _valid(_as_table(batch))

    def _sink(self, stream: BinaryIO) -> Any:
        parquet = _pyarrow("pyarrow.parquet", "writing Parquet")

        def writer(target: BinaryIO, schema: Any) -> Any:
            # Features repeat too little for a dictionary; trying one takes most of the time.
            # Those of categories are written as they are, which keeps their order.
            kept = {*ID_ROLES, *_dictionaries_of(schema)}
            named = [name for name in schema.names if name in kept]
            return parquet.ParquetWriter(target, schema, use_dictionary=named)

        return ArrowSink(stream, writer)

    def _open(self, source: Source) -> Any:
        parquet = _pyarrow("pyarrow.parquet", "reading Parquet")
        return parquet.ParquetFile(_rewound(source), pre_buffer=False)  # not all of it at once


class Arrow(ArrowTable):
    """Arrow IPC files (Feather), a row per document; memory-mapped when read."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["arrow"]

    def row_count(self, path: str | Path) -> int | None:  # noqa: ARG002
        """Return None: each batch would have to be read for its rows."""
        return None

    def _schema(self, source: Source) -> Any:
        return self._open(source).schema

    def _columns(self, source: Source, plan: Plan) -> Columns:
        return columns_of_frame(_valid(self._open(source).read_all().select(plan.wanted)))

    def _batches(self, source: Source, wanted: list[str], plan: Plan) -> Iterator[Any]:  # noqa: ARG002
        file = self._open(source)
        for number in range(file.num_record_batches):
            yield _valid(_as_table(file.get_batch(number)).select(wanted))

    def _sink(self, stream: BinaryIO) -> Any:
        return ArrowSink(stream, _pyarrow("pyarrow.ipc", "writing Arrow").new_file)

    def _open(self, source: Source) -> Any:
        ipc = _pyarrow("pyarrow.ipc", "reading Arrow")
        if isinstance(source, Path):
            return ipc.open_file(_pyarrow("pyarrow", "reading Arrow").memory_map(str(source)))
        return ipc.open_file(_rewound(source))


class Csv(Table):
    """Comma-separated values under a line of column names, a row per document."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["csv"]
    keeps_id_types = False
    separator: ClassVar[str] = ","

    def _names(self, source: Source) -> list[str]:
        with _opened(source) as raw:
            return column_names(raw, self.separator)

    def _columns(self, source: Source, plan: Plan) -> Columns:
        with _opened(source) as raw:
            return read_columns(raw, self.separator, plan.wanted, plan.texts)

    def _batches(self, source: Source, wanted: list[str], plan: Plan) -> Iterator[Any]:
        with _opened(source) as raw:
            texts = [name for name in plan.texts if name in wanted]
            for batch in read_batches(raw, self.separator, wanted, texts):
                yield _as_table(batch)

    def _scan(self, source: Source, plan: Plan) -> Plan | None:
        """Find out too, over the whole file, which ids are text."""
        if not has_pyarrow():
            return None
        runs = Runs()
        text: set[str] = set()
        categories = []
        for batch in self._batches(source, plan.texts, plan):
            column = columns_of_frame(batch)
            categories.append(
                {name: Categories.of(_cells(column, name).tolist()) for name in plan.categorical}
            )
            if runs.come_back(column(plan.roles["qid"])):
                return None
            unsettled = [name for name in plan.ids if name not in text]
            text.update(name for name in unsettled if ids_of_text(column(name)).dtype.kind == "U")
        return replace(
            plan, text_ids=frozenset(text), categories=joined_categories(categories) or {}
        )

    def _data(self, column: Columns, plan: Plan) -> RankingData:
        typed = {name: column(name) for name in plan.ids}
        query = plan.roles["qid"]
        if (blank := typed[query] == "").any():
            row = int(np.flatnonzero(blank)[0])
            raise DataError(f"the query id (column {quoted(query)}) is missing at row {row}.")
        for name in typed.keys() - plan.text_ids:
            typed[name] = ids_of_text(typed[name])
        if "position" in plan.roles:
            name = plan.roles["position"]
            typed[name] = _whole_where_all_are(column(name))
        typed |= {name: _cells(column, name) for name in plan.categorical}
        return super()._data(lambda name: typed[name] if name in typed else column(name), plan)

    def _sink(self, stream: BinaryIO) -> Any:
        return DelimitedSink(stream, self.separator)


class Tsv(Csv):
    """Tab-separated values under a line of column names, a row per document."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["tsv"]
    separator = "\t"


# --- reading ---------------------------------------------------------------------------------


def _cells(column: Columns, name: str) -> AnyArray:
    """Return a column of categories as text, None where a cell says that the value is missing."""
    cells = column(name).tolist()
    return np.array([None if cell in MISSING_CELLS else cell for cell in cells], object)


def _dictionaries_of(schema: Any) -> list[str]:
    is_dictionary = import_module("pyarrow").types.is_dictionary
    return [field.name for field in schema if is_dictionary(field.type)]


def _whole_where_all_are(values: AnyArray) -> AnyArray:
    if values.dtype.kind != "f" or np.isnan(values).any():
        return values
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values


def _as_table(batch: Any) -> Any:
    return import_module("pyarrow").Table.from_batches([batch])


def _valid(table: Any) -> Any:
    """Return the table if its inside is sound; that of a damaged file may crash who reads it."""
    table.validate(full=True)
    return table


def _pyarrow(module: str, purpose: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", "parquet", purpose) from None


@contextmanager
def _opened(source: Source) -> Iterator[BinaryIO]:
    if isinstance(source, Path):
        with source.open("rb") as stream:
            yield stream
    else:  # a reader of its own: pyarrow may still be reading ahead in the last one
        yield io.BytesIO(source.getvalue())


def _rewound(source: Source) -> Any:
    if not isinstance(source, Path):
        source.seek(0)
    return source


def _categories(
    column: Columns, features: Sequence[str], named: Sequence[str]
) -> dict[str, Categories]:
    """Return the categories of columns of that type, and of those that are ``named``."""
    found = categories_of(column, features)
    return found | {
        name: Categories.of(column(name).tolist()) for name in named if name not in found
    }


class Runs:
    """Watches query ids go by, and whether one comes back after another."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.last: Any = None

    def come_back(self, qid: AnyArray) -> bool:
        """Return whether a query of ``qid`` had been left before."""
        if len(qid) == 0:
            return False
        starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))
        for value in qid[starts].tolist():
            if value == self.last:
                continue
            if value in self.seen:
                return True
            self.seen.add(value)
            self.last = value
        return False


def _whole_queries(batches: Iterator[Any], name: str) -> Iterator[Any]:
    """Yield tables that end where a query ends; ``name`` is the column of query ids."""
    pa = import_module("pyarrow")
    pending = None
    for table in batches:
        pending = table if pending is None else pa.concat_tables([pending, table])
        qid = columns_of_frame(pending.select([name]))(name)
        changes = np.flatnonzero(qid[1:] != qid[:-1])
        if len(changes):
            cut = int(changes[-1]) + 1
            yield pending.slice(0, cut).combine_chunks()  # else each look at a column copies it
            pending = pending.slice(cut)
    if pending is not None and len(pending):
        yield pending


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Put the name of the file before any error in it."""
    name = display_name(path)
    try:
        yield
    except PartsDifferError as error:
        raise PartsDifferError(f"{name}: {error}") from None
    except DataError as error:
        text = str(error)
        raise DataError(text if text.startswith(name) else f"{name}: {text}") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {one_line(error)}") from None
    except Exception as error:
        foreign = isinstance(error, UnicodeDecodeError) or "pyarrow" in type(error).__module__
        if not foreign:
            raise
        raise DataError(f"{name} is damaged or not what its name says: {one_line(error)}") from None


def _seekable(path: str | Path) -> Source:
    """Return the path of a plain file, or the content of any other."""
    with open_bytes(path) as stream:
        if reads_file(stream) and str(path) != "-" and Path(path).is_file():
            return Path(path)
        return io.BytesIO(stream.read())


# --- writing ---------------------------------------------------------------------------------

ID_ROLES = ("qid", "doc_id", "group")
"""Columns that name things; text keeps no type of them."""

_MOST_SPARSE_COLUMNS = 10_000


class TableWriter:
    """Appends parts to a table; warns at the end of ids whose type the table cannot keep."""

    def __init__(self, sink: Any, *, keeps_id_types: bool) -> None:
        self.sink = sink
        self.kinds: dict[str, str] = {}
        self.keeps_types = keeps_id_types
        self.queries = DistinctQueries()
        self.unsure = set() if keeps_id_types else set(ID_ROLES)

    def append(self, part: RankingData) -> None:
        """Write the rows of ``part``; they must have the columns of the first part."""
        if sparse.issparse(part.X) and part.n_features > _MOST_SPARSE_COLUMNS:
            raise DataError(
                f"a table of {part.n_features} columns is too wide for sparse features; "
                "write them as 'letor' or 'store'."
            )
        self.queries.add(part)
        columns = columns_of_data(part)
        kinds = {
            name: "text" if values.dtype.kind == "U" else str(values.dtype)
            for name, values in columns.items()
        }
        if not self.kinds:
            self.kinds = kinds
            _warn_of_names(part)
            if part.categories and not self.keeps_types:
                warnings.warn(
                    "categories are written as text; read them back with "
                    f"categorical={list(part.categories)}.",
                    stacklevel=4,
                )
        if kinds != self.kinds:
            other = next(iter(kinds.items() ^ self.kinds.items()))[0]
            raise PartsDifferError(f"the parts of the data differ in column {quoted(other)}.")
        self.unsure = {role for role in self.unsure if _may_change_type(columns.get(role))}
        self.sink.write(columns)

    def close(self) -> None:
        """Say which ids will be read back as another type than they have."""
        for role in sorted(self.unsure):
            other = "numbers" if self.kinds.get(role) == "text" else "text"
            warnings.warn(f"{role}: these ids will be read back as {other}.", stacklevel=4)


def _warn_of_names(data: RankingData) -> None:
    """Warn of features that a reader would take for something else."""
    for name in data.feature_names or ():
        for role, usual in USUAL_NAMES.items():
            if name.strip().lower() in usual:
                warnings.warn(
                    f"feature {quoted(name)} is read as the {role} because of its name, unless "
                    "the reader is given features=...",
                    stacklevel=5,
                )


def _may_change_type(ids: AnyArray | None) -> bool:
    """Return whether ids, written as text, may read as another type than they are."""
    if ids is None or ids.dtype.kind in "iu":
        return False
    return ids.dtype.kind != "U" or ids_of_text(ids).dtype.kind != "U"


class ArrowSink:
    """Writes blocks of columns as Arrow tables; the first block makes the schema."""

    def __init__(self, stream: BinaryIO, make: Any) -> None:
        self.stream, self.make = stream, make
        self.writer: Any = None

    def write(self, columns: dict[str, AnyArray]) -> None:
        """Append a block."""
        table = arrow_table(columns)
        if self.writer is None:
            self.writer = self.make(self.stream, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        """Write what comes after the last block."""
        if self.writer is not None:
            self.writer.close()


def _format_of_table(
    table: Table, description: str, row_count: Callable[..., int | None] | None = None
) -> Format:
    return Format(
        description=description,
        extensions=table.extensions,
        read=table.read,
        read_options=(
            *("qid", "label", "features", "drop", "query_weight", "sample_weight", "doc_id"),
            *("group", "position", "categorical", "dtype", "grades"),
        ),
        write=table.write,
        read_parts=table.read_parts,
        open_writer=table.open_writer,
        column_names=table.names,
        row_count=row_count,
        table=table,
        holds=table.holds,
    )


ARROW = _format_of_table(
    Arrow(),
    "Arrow IPC files (Feather), a row per document; memory-mapped when read.",
    Arrow().row_count,
)
CSV = _format_of_table(
    Csv(), "Comma-separated values under a line of column names, a row per document."
)
PARQUET = _format_of_table(
    Parquet(),
    "Parquet files, a row per document; read by row groups.",
    Parquet().row_count,
)
TSV = _format_of_table(
    Tsv(), "Tab-separated values under a line of column names, a row per document."
)
