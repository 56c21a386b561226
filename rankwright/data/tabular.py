"""Tables with a row per document: csv, tsv, Parquet and Arrow files.

`rankwright.data.columns` says which column is what; ``f1`` to ``fd`` stand for features without
names. csv and tsv read ids as whole numbers where all are written so, else as text; an empty
feature cell, ``NaN``, ``NULL`` and ``NA`` are missing values. Numbers are written with as few
digits as bring back the same bits; for those of float32 features, read csv with
``dtype="float32"``. Sparse features are written dense.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.columns import USUAL_NAMES, choose_columns
from rankwright.data.delimited import (
    DelimitedSink,
    column_names,
    has_pyarrow,
    one_line,
    read_batches,
    read_columns,
    refuse_repeated,
)
from rankwright.data.files import EVERYTHING, PartsDifferError, parts_of
from rankwright.data.frames import (
    Columns,
    arrays_of_columns,
    columns_of_frame,
    default_names,
    ids_of_text,
)
from rankwright.data.ranking_data import RankingData
from rankwright.data.source import display_name, open_bytes
from rankwright.data.table_writer import ID_ROLES, ArrowSink, TableWriter
from rankwright.data.target import open_target
from rankwright.errors import DataError, MissingExtraError, UsageError

_ROWS_PER_BATCH = 1 << 16

Source = Path | io.BytesIO


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to read from a table: role -> column, features, and ids that are known to be text."""

    roles: dict[str, str]
    features: list[str]
    dtype: str | None
    text_ids: frozenset[str] = frozenset()

    @property
    def wanted(self) -> list[str]:
        return [*self.roles.values(), *self.features]

    @property
    def ids(self) -> list[str]:
        return [self.roles[role] for role in ID_ROLES if role in self.roles]


class _Table(ABC):
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
        dtype: str | None = None,
    ) -> RankingData:
        """Read a table; every option but ``dtype`` names columns.

        Parameters
        ----------
        label
            ``""`` for documents without grades, that are only to be ranked.
        features, drop
            Names, or one text with commas.
        dtype
            ``"float32"`` or ``"float64"``; by default that of the columns, or float64.
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
        with _naming(path):
            source = _seekable(path)
            plan = self._plan(source, given, features=features, drop=drop, dtype=dtype)
            return self._data(self._columns(source, plan), plan)

    def read_parts(
        self,
        path: str | Path,
        *,
        features: str | Sequence[str] | None = None,
        drop: str | Iterable[str] = (),
        dtype: str | None = None,
        **columns: str | None,
    ) -> Iterator[RankingData]:
        """Yield the table in parts of whole queries; in one part if a query's rows lie apart.

        Takes the options of `read`.
        """
        given = {role: columns.get(role) for role in USUAL_NAMES}
        with _naming(path):
            source = _seekable(path)
            plan = self._plan(source, given, features=features, drop=drop, dtype=dtype)
            scanned = self._scan(source, plan)
            if scanned is None:
                yield self._data(self._columns(source, plan), plan)
                return
            batches = self._batches(source, plan.wanted, plan)
            for table in _whole_queries(batches, plan.roles["qid"]):
                yield self._data(columns_of_frame(table), scanned)

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write the table, a block of rows at a time."""
        with self.open_writer(path) as writer:
            for part in parts_of(data):
                writer.append(part)

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
        dtype: str | None,
    ) -> _Plan:
        if dtype not in (None, "float32", "float64"):
            raise UsageError(f"dtype must be 'float32' or 'float64', not {dtype!r}.")
        names = refuse_repeated(self._names(source))
        return _Plan(*choose_columns(names, given, features=features, drop=drop), dtype)

    def _data(self, column: Columns, plan: _Plan) -> RankingData:
        arrays = arrays_of_columns(column, plan.roles, plan.features)
        if not len(arrays["qid"]):
            raise DataError("there are no rows.")
        for role in ("query_weight", "sample_weight"):
            if role in arrays and not arrays[role].any():
                # Of a part this may be; all parts together may do.
                raise PartsDifferError(f"every {role} is zero, so nothing would count.")
        if plan.dtype is not None:
            arrays["X"] = arrays["X"].astype(plan.dtype, copy=False)
        if tuple(plan.features) == default_names(len(plan.features)):
            arrays["feature_names"] = None
        return RankingData.from_arrays(**arrays)

    def _scan(self, source: Source, plan: _Plan) -> _Plan | None:
        """Return the plan to read in parts, or None where the rows of a query lie apart."""
        runs, name = _Runs(), plan.roles["qid"]
        for batch in self._batches(source, [name], plan):
            if runs.come_back(columns_of_frame(batch)(name)):
                return None
        return plan

    # What each format does in its own way:

    @abstractmethod
    def _names(self, source: Source) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def _columns(self, source: Source, plan: _Plan) -> Columns:
        """Return the whole table, column by column."""

    @abstractmethod
    def _batches(self, source: Source, wanted: list[str], plan: _Plan) -> Iterator[Any]:
        """Yield the wanted columns, some rows at a time."""

    @abstractmethod
    def _sink(self, stream: BinaryIO) -> Any:
        """Return what writes tables to ``stream``."""


class Parquet(_Table):
    """Parquet files, a row per document; read by row groups where memory is short."""

    extensions: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    def _names(self, source: Source) -> list[str]:
        return list(self._open(source).schema_arrow.names)

    def _columns(self, source: Source, plan: _Plan) -> Columns:
        return columns_of_frame(_valid(self._open(source).read(columns=plan.wanted)))

    def _batches(self, source: Source, wanted: list[str], plan: _Plan) -> Iterator[Any]:  # noqa: ARG002
        file = self._open(source)
        for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH, columns=wanted):
            yield _valid(_as_table(batch))

    def _sink(self, stream: BinaryIO) -> Any:
        parquet = _pyarrow("pyarrow.parquet", "writing Parquet")

        def writer(target: BinaryIO, schema: Any) -> Any:
            # Features repeat too little for a dictionary; trying one takes most of the time.
            ids = [name for name in schema.names if name in ID_ROLES]
            return parquet.ParquetWriter(target, schema, use_dictionary=ids)

        return ArrowSink(stream, writer)

    def _open(self, source: Source) -> Any:
        parquet = _pyarrow("pyarrow.parquet", "reading Parquet")
        return parquet.ParquetFile(_rewound(source), pre_buffer=False)  # not all of it at once


class Arrow(_Table):
    """Arrow IPC files (Feather), a row per document; memory-mapped when read."""

    extensions: ClassVar[tuple[str, ...]] = (".arrow", ".ipc", ".feather")

    def _names(self, source: Source) -> list[str]:
        return list(self._open(source).schema.names)

    def _columns(self, source: Source, plan: _Plan) -> Columns:
        return columns_of_frame(_valid(self._open(source).read_all().select(plan.wanted)))

    def _batches(self, source: Source, wanted: list[str], plan: _Plan) -> Iterator[Any]:  # noqa: ARG002
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


class Csv(_Table):
    """Comma-separated values under a line of column names, a row per document."""

    extensions: ClassVar[tuple[str, ...]] = (".csv",)
    keeps_id_types = False
    separator: ClassVar[str] = ","

    def _names(self, source: Source) -> list[str]:
        with _opened(source) as raw:
            return column_names(raw, self.separator)

    def _columns(self, source: Source, plan: _Plan) -> Columns:
        with _opened(source) as raw:
            return read_columns(raw, self.separator, plan.wanted, plan.ids)

    def _batches(self, source: Source, wanted: list[str], plan: _Plan) -> Iterator[Any]:
        with _opened(source) as raw:
            for batch in read_batches(raw, self.separator, wanted, plan.ids):
                yield _as_table(batch)

    def _scan(self, source: Source, plan: _Plan) -> _Plan | None:
        """Find out too, over the whole file, which ids are text."""
        if not has_pyarrow():
            return None
        runs = _Runs()
        text: set[str] = set()
        for batch in self._batches(source, plan.ids, plan):
            column = columns_of_frame(batch)
            if runs.come_back(column(plan.roles["qid"])):
                return None
            unsettled = [name for name in plan.ids if name not in text]
            text.update(name for name in unsettled if ids_of_text(column(name)).dtype.kind == "U")
        return replace(plan, text_ids=frozenset(text))

    def _data(self, column: Columns, plan: _Plan) -> RankingData:
        typed = {name: column(name) for name in plan.ids}
        query = plan.roles["qid"]
        if (blank := typed[query] == "").any():
            row = int(np.flatnonzero(blank)[0])
            raise DataError(f"the query id (column '{query}') is missing at row {row}.")
        for name in typed.keys() - plan.text_ids:
            typed[name] = ids_of_text(typed[name])
        if "position" in plan.roles:
            name = plan.roles["position"]
            typed[name] = _whole_where_all_are(column(name))
        return super()._data(lambda name: typed[name] if name in typed else column(name), plan)

    def _sink(self, stream: BinaryIO) -> Any:
        return DelimitedSink(stream, self.separator)


class Tsv(Csv):
    """Tab-separated values under a line of column names, a row per document."""

    extensions: ClassVar[tuple[str, ...]] = (".tsv", ".tab")
    separator = "\t"


# --- reading ---------------------------------------------------------------------------------


class _Runs:
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
    held = None
    for table in batches:
        held = table if held is None else pa.concat_tables([held, table])
        qid = columns_of_frame(held.select([name]))(name)
        changes = np.flatnonzero(qid[1:] != qid[:-1])
        if len(changes):
            cut = int(changes[-1]) + 1
            yield held.slice(0, cut)
            held = held.slice(cut)
    if held is not None and len(held):
        yield held


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
def _naming(path: str | Path) -> Iterator[None]:
    """Put the name of the file before any fault found in it."""
    name = display_name(path)
    try:
        yield
    except PartsDifferError as fault:
        raise PartsDifferError(f"{name}: {fault}") from None
    except DataError as fault:
        text = str(fault)
        raise DataError(text if text.startswith(name) else f"{name}: {text}") from None
    except OSError as fault:
        raise DataError(f"{name} cannot be read: {one_line(fault)}") from None
    except Exception as fault:
        foreign = isinstance(fault, UnicodeDecodeError) or "pyarrow" in type(fault).__module__
        if not foreign:
            raise
        raise DataError(f"{name} is damaged or not what its name says: {one_line(fault)}") from None


def _seekable(path: str | Path) -> Source:
    """Return the path of a plain file, or the content of any other."""
    with open_bytes(path) as stream:
        if isinstance(stream, io.BufferedReader) and str(path) != "-" and Path(path).is_file():
            return Path(path)
        return io.BytesIO(stream.read())


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
