"""Tables with one row per document: csv, tsv, Parquet and Arrow files.

All four formats are read with `pyarrow.dataset`. `rankwright.data.frames` assigns roles to columns.
Features without names are called ``f1`` to ``fd``. Sparse features are written dense.

Text tables (csv and tsv) have no types. A column of ids is read as integers if every id is written
as an integer, and as text otherwise. The first block of the file determines whether any other
column contains numbers, booleans or text. Empty cells, ``NaN``, ``NULL`` and ``NA`` are missing
values. Numbers are written with the fewest digits that restore the same bits; use
``dtype="float32"`` to read float32 features from text. Categories are written as text and read
with ``categorical=[...]``. In Parquet and Arrow files, dictionary columns are categories.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from rankwright.core.types import AnyArray
from rankwright.data.formats import Format
from rankwright.data.frames import (
    USUAL_NAMES,
    AllCategories,
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
from rankwright.errors import DataError, UsageError, quoted
from rankwright.registry import EXTENSIONS, unknown

ID_ROLES = ("qid", "doc_id", "group")
MISSING_CELLS = ["", "NaN", "nan", "NULL", "null", "NA", "N/A"]
_SEPARATORS = {"csv": ",", "tsv": "\t"}
_BLOCK_BYTES = 1 << 22  # of a text table
_ROWS_PER_BATCH, _CELLS_PER_BATCH = 1 << 16, 1 << 22
_MOST_SPARSE_COLUMNS = 10_000


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table that is open for reading: a fragment of `pyarrow.dataset` and its schema."""

    fragment: Any
    schema: Any

    def read(self, columns: Iterable[str]) -> Any:
        """Return columns of the whole table as an Arrow table."""
        with _named_columns(self.schema.names):
            names = list(dict.fromkeys(columns))
            return _validated(self.fragment.to_table(self.schema, columns=names))

    def batches(self, columns: Iterable[str]) -> Iterator[Any]:
        """Yield columns of the table as Arrow tables with a limited number of rows."""
        import pyarrow as pa

        names = list(dict.fromkeys(columns))
        rows = max(1, min(_ROWS_PER_BATCH, _CELLS_PER_BATCH // len(names)))
        with _named_columns(self.schema.names):
            for batch in self.fragment.to_batches(
                self.schema, columns=names, batch_size=rows, batch_readahead=1
            ):
                yield _validated(pa.Table.from_batches([batch]))


@dataclass(frozen=True, slots=True)
class Plan:
    """Columns to read from an open table and their use.

    ``text_ids`` and ``categories`` are determined from the whole table if it is read in parts.
    """

    source: OpenTable
    roles: dict[str, str]
    features: list[str]
    categorical: list[str]
    dtype: str | None
    text_ids: frozenset[str] = frozenset()
    categories: AllCategories | None = None

    @property
    def columns(self) -> list[str]:
        """Names of all columns to read."""
        return [*self.roles.values(), *self.features]

    @property
    def ids(self) -> list[str]:
        """Names of the columns of ids."""
        return [self.roles[role] for role in ID_ROLES if role in self.roles]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of `Table.read`. Every option except ``dtype`` and ``grades`` names columns.

    Parameters
    ----------
    qid, label, query_weight, sample_weight, doc_id, group, position
        Columns of these roles. By default, the columns with usual names. Use ``label=""`` for
        documents without grades, which can only be ranked.
    features, drop
        A list of names, or one string of names separated by commas.
    categorical
        Features to treat as categories although their columns contain text or numbers. Columns of
        the type category (Arrow dictionaries) do not need to be named.
    dtype
        ``"float32"`` or ``"float64"``. The default is the type of the columns, or float64.
    grades
        If False, no grades are required and a column of grades is ignored.
    """

    qid: str | None = None
    label: str | None = None
    features: str | Sequence[str] | None = None
    drop: str | Iterable[str] = ()
    query_weight: str | None = None
    sample_weight: str | None = None
    doc_id: str | None = None
    group: str | None = None
    position: str | None = None
    categorical: str | Sequence[str] = ()
    dtype: str | None = None
    grades: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """Reader and writer of tables of one kind: csv, tsv, parquet or arrow."""

    kind: str

    def read(self, path: str | Path, **options: Any) -> RankingData:
        """Read a table with the options of `ReadOptions`."""
        with naming(path):
            plan = self._plan(path, ReadOptions(**options))
            return self._data(plan.source.read(plan.columns), plan)

    def read_parts(self, path: str | Path, **options: Any) -> Iterator[RankingData]:
        """Yield the table in parts of whole queries.

        The options are the options of `read`. The table is one part if the rows of a query are not
        adjacent.
        """
        with naming(path):
            plan = self._plan(path, ReadOptions(**options))
            plan_of_parts = self._scan(plan)
            if plan_of_parts is None:
                yield self._data(plan.source.read(plan.columns), plan)
                return
            batches = plan.source.batches(plan.columns)
            for table in _whole_queries(batches, plan.roles["qid"]):
                yield self._data(table, plan_of_parts)

    def read_columns(
        self, path: str | Path, choose: Callable[[list[str]], dict[str, str]]
    ) -> dict[str, AnyArray]:
        """Return columns of a table by role. ``choose`` maps the column names to role -> name."""
        roles, column = self.chosen_columns(path, choose, text=ID_ROLES)
        with naming(path):
            return {role: column(name) for role, name in roles.items()}

    def chosen_columns(
        self,
        path: str | Path,
        choose: Callable[[list[str]], dict[str, str]],
        *,
        text: Collection[str],
    ) -> tuple[dict[str, str], Columns]:
        """Return role -> name of columns, and a function that returns the values of a column.

        Parameters
        ----------
        choose
            A function from the column names to role -> name.
        text
            Roles whose cells are read as text from csv and tsv.
        """
        with naming(path):
            file = _seekable(path)
            roles = choose(self._names(file))
            source = self._open(file, [name for role, name in roles.items() if role in text])
            return roles, columns_of_frame(source.read(roles.values()))

    def names(self, path: str | Path) -> list[str]:
        """Return the names of the columns of a table."""
        with naming(path):
            return self._names(_seekable(path))

    def row_count(self, path: str | Path) -> int:
        """Return the number of rows, from the metadata of a Parquet or Arrow file."""
        with naming(path):
            return int(self._open(_seekable(path)).fragment.count_rows())

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write data, one block of rows at a time."""
        with self.open_writer(path) as writer:
            for part in parts_of(data):
                writer.append(part)

    def write_columns(self, columns: dict[str, AnyArray], path: str | Path) -> None:
        """Write columns that need not be ranking data."""
        with self.open_columns(path) as writer:
            writer.write(columns)

    @contextmanager
    def open_columns(self, path: str | Path) -> Iterator[TableWriter]:
        """Open a table for writing blocks of columns that need not be ranking data."""
        with open_target(path) as stream:
            writer = TableWriter(self.kind, stream)
            try:
                yield writer
            finally:
                writer.close()

    @contextmanager
    def open_writer(self, path: str | Path) -> Iterator[TableWriter]:
        """Open a table for writing data part by part. The first part determines the columns."""
        with self.open_columns(path) as writer:
            yield writer
            writer.warn_of_id_types()

    def _names(self, file: str | bytes) -> list[str]:
        if self.kind in _SEPARATORS:
            names = _header(file, _SEPARATORS[self.kind])
        else:
            names = list(self._open(file).schema.names)
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise DataError(f"the column name {quoted(repeated[0])} is used twice; rename one.")
        return names

    def _open(self, file: str | bytes, text: Collection[str] = ()) -> OpenTable:
        """Open a table. The columns ``text`` of csv and tsv are read as text."""
        import pyarrow as pa
        from pyarrow import csv as text_tables
        from pyarrow import dataset
        from pyarrow.fs import LocalFileSystem

        file_format: Any
        if self.kind == "parquet":
            # pre_buffer would read all columns of several row groups before the first batch
            file_format = dataset.ParquetFileFormat(pre_buffer=False)
        elif self.kind == "arrow":
            file_format = dataset.IpcFileFormat()
        else:
            file_format = dataset.CsvFileFormat(
                read_options=text_tables.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=text_tables.ParseOptions(
                    delimiter=_SEPARATORS[self.kind], newlines_in_values=True
                ),
                convert_options=text_tables.ConvertOptions(
                    column_types=dict.fromkeys(text, pa.string()), null_values=MISSING_CELLS
                ),
            )
        if isinstance(file, bytes):
            fragment = file_format.make_fragment(pa.py_buffer(file))
        else:
            file_system = LocalFileSystem(use_mmap=self.kind == "arrow")
            fragment = file_format.make_fragment(file, file_system)
        schema = fragment.physical_schema
        if self.kind in _SEPARATORS:
            # An integer or an empty cell in the first block may be followed by a fraction.
            schema = pa.schema(
                pa.field(field.name, pa.float64())
                if pa.types.is_integer(field.type) or pa.types.is_null(field.type)
                else field
                for field in schema
            )
        return OpenTable(fragment, schema)

    def _plan(self, path: str | Path, options: ReadOptions) -> Plan:
        file, dtype = _seekable(path), options.dtype
        if dtype not in (None, "float32", "float64"):
            raise UsageError(f"dtype must be 'float32' or 'float64', not {dtype!r}.")
        roles, names = choose_columns(
            self._names(file),
            {role: getattr(options, role) for role in USUAL_NAMES},
            features=options.features,
            drop=options.drop,
            grades=options.grades,
        )
        categories = listed(options.categorical) or []
        for name in categories:
            if name not in names:
                raise DataError(unknown("feature column", name, names))
        ids = [roles[role] for role in ID_ROLES if role in roles]
        return Plan(self._open(file, [*ids, *categories]), roles, names, categories, dtype)

    def _scan(self, plan: Plan) -> Plan | None:
        """Return the plan to read a table in parts, or None if rows of a query are not adjacent."""
        from pyarrow.types import is_dictionary

        query = plan.roles["qid"]
        ids = plan.ids if self.kind in _SEPARATORS else [query]
        typed = [field.name for field in plan.source.schema if is_dictionary(field.type)]
        features = [name for name in plan.features if name in {*typed, *plan.categorical}]
        text_ids: set[str] = set()
        categories = []
        previous: Any = None
        finished: set[Any] = set()
        for table in plan.source.batches([*ids, *features]):
            column = columns_of_frame(self._with_categories(table, plan.categorical))
            qid = column(query)
            for value in qid[np.append(True, qid[1:] != qid[:-1])[: len(qid)]].tolist():
                if value in finished:
                    return None
                if value != previous:
                    finished.add(previous)
                    previous = value
            categories.append(categories_of(column, features))
            if self.kind in _SEPARATORS:
                undecided = [name for name in ids if name not in text_ids]
                text_ids |= {n for n in undecided if ids_of_text(column(n)).dtype.kind == "U"}
        return replace(
            plan, text_ids=frozenset(text_ids), categories=joined_categories(categories) or {}
        )

    def _data(self, table: Any, plan: Plan) -> RankingData:
        table = self._with_categories(table, plan.categorical)
        column = columns_of_frame(table)
        if self.kind in _SEPARATORS:
            column = columns_of_frame(table, _typed_columns(column, plan))
        categories = plan.categories
        if categories is None:
            categories = categories_of(column, plan.features)
        arrays = arrays_of_columns(column, plan.roles, plan.features, categories)
        if not len(arrays["qid"]):
            raise DataError("there are no rows.")
        for role in ("query_weight", "sample_weight"):
            if role in arrays and not arrays[role].any():
                # One part may have only zero weights if other parts have positive ones.
                raise PartsDifferError(f"every {role} is zero, so nothing would count.")
        if plan.dtype is not None:
            arrays["X"] = arrays["X"].astype(plan.dtype, copy=False)
        if tuple(plan.features) == default_names(len(plan.features)) and not categories:
            arrays["feature_names"] = None
        return RankingData.from_arrays(**arrays)

    def _with_categories(self, table: Any, names: Iterable[str]) -> Any:
        """Convert columns of an Arrow table to dictionaries."""
        import pyarrow as pa
        from pyarrow import compute

        for name in names:
            column = table[name]
            if self.kind in _SEPARATORS:
                missing = compute.is_in(column, pa.array(MISSING_CELLS))
                column = compute.if_else(missing, pa.scalar(None, pa.string()), column)
            if not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            table = table.set_column(table.schema.get_field_index(name), name, column)
        return table


# --- reading ---------------------------------------------------------------------------------


def _seekable(path: str | Path) -> str | bytes:
    """Return the path of a plain file, or the content of any other source."""
    with open_bytes(path) as stream:
        if reads_file(stream) and str(path) != "-" and Path(path).is_file():
            return str(path)
        return stream.read()


def _header(file: str | bytes, separator: str) -> list[str]:
    """Return the cells of the first line of a text table."""
    with io.BytesIO(file) if isinstance(file, bytes) else open(file, "rb") as raw:
        lines = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        try:
            names = next(csv.reader(lines, delimiter=separator, strict=True), None)
        except UnicodeDecodeError as error:
            raise DataError(f"it is not UTF-8 text: {error}; save it as UTF-8 first.") from None
        except csv.Error as error:
            raise DataError(
                f"it is not comma-separated text: {error}; put commas between cells, or tabs in a "
                ".tsv."
            ) from None
    if not names:
        raise DataError("it is empty; the first line must name the columns.")
    if len(names) == 1 and any(other in names[0] for other in ";,|\t"):
        raise DataError(
            f"its first line is one column, {quoted(names[0])}; save it with commas between cells, "
            "or with tabs and the name .tsv (or format='tsv', --from tsv for convert)."
        )
    return names


def _typed_columns(column: Columns, plan: Plan) -> dict[str, AnyArray]:
    """Return the ids and positions of a text table, as integers if possible."""
    columns = {name: column(name) for name in plan.ids}
    query = plan.roles["qid"]
    if (blank := columns[query] == "").any():
        row = int(np.flatnonzero(blank)[0])
        raise DataError(f"the query id (column {quoted(query)}) is missing at row {row}.")
    for name in columns.keys() - plan.text_ids:
        columns[name] = ids_of_text(columns[name])
    if "position" in plan.roles:
        name = plan.roles["position"]
        values = column(name)
        if values.dtype.kind == "f" and not np.isnan(values).any():
            whole = values.astype(np.int64)
            values = whole if (whole == values).all() else values
        columns[name] = values
    return columns


def _validated(table: Any) -> Any:
    """Return an Arrow table if its buffers are valid; damaged buffers may crash the process."""
    table.validate(full=True)
    return table


def _whole_queries(tables: Iterable[Any], name: str) -> Iterator[Any]:
    """Yield Arrow tables that end at rows after which the query id in column ``name`` changes."""
    import pyarrow as pa

    pending = None
    for table in tables:
        pending = table if pending is None else pa.concat_tables([pending, table])
        qid = columns_of_frame(pending.select([name]))(name)
        changes = np.flatnonzero(qid[1:] != qid[:-1])
        if len(changes):
            end = int(changes[-1]) + 1
            yield pending.slice(0, end).combine_chunks()  # chunks would be joined for every column
            pending = pending.slice(end)
    if pending is not None and len(pending):
        yield pending


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Add the name of the file to errors; errors of pyarrow become DataError."""
    import pyarrow as pa

    name = display_name(path)
    try:
        yield
    except PartsDifferError as error:
        raise PartsDifferError(f"{name}: {error}") from None
    except DataError as error:
        text = str(error)
        raise DataError(text if text.startswith(name) else f"{name}: {text}") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {_one_line(error)}") from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        text = _one_line(error)
        if csv_error := re.search(r"In CSV column .*|CSV parse error.*", text):
            raise DataError(f"{name}: {csv_error[0]}") from None
        raise DataError(f"{name} is damaged or in a format other than its name: {text}") from None


@contextmanager
def _named_columns(names: Sequence[str]) -> Iterator[None]:
    """Raise a DataError that names the column and the row if a cell of a text table is invalid."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as error:
        invalid = re.search(r"column #(\d+).*invalid value '(.*)'", str(error), re.DOTALL)
        if invalid is None:
            raise
        name = quoted(names[int(invalid[1])])
        raise DataError(
            f"column {name} is not numeric (it holds {quoted(invalid[2])}); encode it, or leave it "
            f"out with drop=[{name}]."
        ) from None


def _one_line(error: Exception) -> str:
    """Return the message of an error of another package as one sentence."""
    return " ".join(str(error).split()).rstrip(".") + "."


# --- writing ---------------------------------------------------------------------------------


def _arrow_writer(kind: str, stream: BinaryIO, schema: Any) -> Any:
    """Return the writer of pyarrow for a kind of table."""
    if kind in _SEPARATORS:
        from pyarrow.csv import CSVWriter, WriteOptions

        options = WriteOptions(delimiter=_SEPARATORS[kind])
        return CSVWriter(stream, schema, write_options=options)
    if kind == "arrow":
        from pyarrow.ipc import new_file

        return new_file(stream, schema)
    from pyarrow.parquet import ParquetWriter
    from pyarrow.types import is_dictionary

    # Features have too few equal values for a dictionary, and to try one takes most of the time.
    # The dictionary of a column of categories keeps the order of the categories.
    repeated = [f.name for f in schema if f.name in ID_ROLES or is_dictionary(f.type)]
    return ParquetWriter(stream, schema, use_dictionary=repeated)


class TableWriter:
    """Writes blocks of columns, or parts of data, to one table."""

    def __init__(self, kind: str, stream: BinaryIO) -> None:
        self.kind, self.stream = kind, stream
        self.writer: Any = None
        self.schema: Any = None
        self.queries = DistinctQueries()
        self.unsure_ids = set(ID_ROLES) if kind in _SEPARATORS else set()

    def write(self, columns: dict[str, Any]) -> None:
        """Write a block of columns, which must have the names and types of the first block."""
        import pyarrow as pa

        try:
            table = pa.table(columns)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"a column cannot be written: {_one_line(error)}") from None
        if self.writer is None:
            self.schema = table.schema
            self.writer = _arrow_writer(self.kind, self.stream, table.schema)
        if table.schema != self.schema:
            columns_of_both = [*self.schema, *table.schema]
            field = next(
                (f for f in columns_of_both if columns_of_both.count(f) == 1), columns_of_both[0]
            )
            raise PartsDifferError(f"the parts of the data differ in column {quoted(field.name)}.")
        self.writer.write_table(table)

    def append(self, part: RankingData) -> None:
        """Write a part of the data, which must have the columns of the first part."""
        if sparse.issparse(part.X) and part.n_features > _MOST_SPARSE_COLUMNS:
            raise DataError(
                f"a table of {part.n_features} columns is too wide for sparse features; "
                "write them as 'letor' or 'store'."
            )
        self.queries.add(part)
        if self.writer is None:
            self._warn_of_features(part)
        columns = columns_of_data(part)
        self.unsure_ids = {role for role in self.unsure_ids if _may_change_type(columns.get(role))}
        self.write(columns)

    def warn_of_id_types(self) -> None:
        """Warn of ids that will be read back from text with another type."""
        for role in sorted(self.unsure_ids if self.schema is not None else ()):
            other = "numbers" if self.schema.field(role).type == "string" else "text"
            warnings.warn(f"{role}: these ids will be read back as {other}.", stacklevel=4)

    def close(self) -> None:
        """Write the end of the file."""
        if self.writer is not None:
            self.writer.close()

    def _warn_of_features(self, part: RankingData) -> None:
        for name in part.feature_names or ():
            for role, usual in USUAL_NAMES.items():
                if name.strip().lower() in usual:
                    warnings.warn(
                        f"feature {quoted(name)} is read as the {role} because of its name; use "
                        "features=... to read it as a feature.",
                        stacklevel=5,
                    )
        if part.feature_ids is not None and part.feature_ids.first == 0:
            warnings.warn(
                "the columns f1, f2, ... are the feature ids 0, 1, ..., and a table does not keep "
                "this; for a model of the table, read LETOR text with zero_based=True.",
                stacklevel=5,
            )
        if part.categories and self.kind in _SEPARATORS:
            warnings.warn(
                "categories are written as text; read them back with "
                f"categorical={list(part.categories)}.",
                stacklevel=5,
            )


def _may_change_type(ids: AnyArray | None) -> bool:
    """Return whether ids that are written as text may be read with another type."""
    if ids is None or ids.dtype.kind in "iu":
        return False
    return ids.dtype.kind != "U" or ids_of_text(ids).dtype.kind != "U"


def _format(kind: str, description: str) -> Format:
    table = Table(kind)
    return Format(
        description=description,
        extensions=EXTENSIONS[kind],
        read=table.read,
        read_options=tuple(option.name for option in fields(ReadOptions)),
        write=table.write,
        read_parts=table.read_parts,
        open_writer=table.open_writer,
        column_names=table.names,
        row_count=None if kind in _SEPARATORS else table.row_count,
        table=table,
        holds=EVERYTHING - {"empty queries"},
    )


ARROW = _format(
    "arrow", "Arrow IPC files (Feather), one row per document; memory-mapped when read."
)
CSV = _format("csv", "Comma-separated values with a header line, one row per document.")
PARQUET = _format("parquet", "Parquet files, one row per document; read by row groups.")
TSV = _format("tsv", "Tab-separated values with a header line, one row per document.")
