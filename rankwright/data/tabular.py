"""Tables with a row per document: csv, tsv, Parquet and Arrow files.

`rankwright.data.columns` says which column is what; ``f1`` to ``fd`` stand for features without
names. csv and tsv read ids as whole numbers where all are written so, else as text; an empty
feature cell, ``NaN``, ``NULL`` and ``NA`` are missing values. Numbers are written with as few
digits as bring back the same bits; for those of float32 features, read csv with
``dtype="float32"``. Sparse features are written dense. Dictionary columns of Parquet and Arrow are
categories; csv and tsv have their values as text, which ``categorical=[...]`` reads back.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.categories import Categories, joined
from rankwright.data.delimited import (
    MISSING_CELLS,
    DelimitedSink,
    column_names,
    has_pyarrow,
    read_batches,
    read_columns,
)
from rankwright.data.frames import Columns, columns_of_frame, ids_of_text
from rankwright.data.ranking_data import RankingData
from rankwright.data.table_format import Plan, Runs, Source, Table
from rankwright.data.table_writer import ID_ROLES, ArrowSink
from rankwright.errors import DataError, MissingExtraError, quoted

_ROWS_PER_BATCH = 1 << 16


class Parquet(Table):
    """Parquet files, a row per document; read by row groups where memory is short."""

    extensions: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    def _names(self, source: Source) -> list[str]:
        return list(self._open(source).schema_arrow.names)

    def _dictionaries(self, source: Source) -> list[str]:
        return _dictionaries_of(self._open(source).schema_arrow)

    def _columns(self, source: Source, plan: Plan) -> Columns:
        return columns_of_frame(_valid(self._open(source).read(columns=plan.wanted)))

    def _batches(self, source: Source, wanted: list[str], plan: Plan) -> Iterator[Any]:  # noqa: ARG002
        file = self._open(source)
        for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH, columns=wanted):
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


class Arrow(Table):
    """Arrow IPC files (Feather), a row per document; memory-mapped when read."""

    extensions: ClassVar[tuple[str, ...]] = (".arrow", ".ipc", ".feather")

    def _names(self, source: Source) -> list[str]:
        return list(self._open(source).schema.names)

    def _dictionaries(self, source: Source) -> list[str]:
        return _dictionaries_of(self._open(source).schema)

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

    extensions: ClassVar[tuple[str, ...]] = (".csv",)
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
            categories.append({name: _named_in(column, name) for name in plan.categorical})
            if runs.come_back(column(plan.roles["qid"])):
                return None
            unsettled = [name for name in plan.ids if name not in text]
            text.update(name for name in unsettled if ids_of_text(column(name)).dtype.kind == "U")
        return replace(plan, text_ids=frozenset(text), categories=joined(categories) or {})

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

    extensions: ClassVar[tuple[str, ...]] = (".tsv", ".tab")
    separator = "\t"


# --- reading ---------------------------------------------------------------------------------


def _cells(column: Columns, name: str) -> AnyArray:
    """Return a column of categories as text, None where a cell says that the value is missing."""
    cells = column(name).tolist()
    return np.array([None if cell in MISSING_CELLS else cell for cell in cells], object)


def _named_in(column: Columns, name: str) -> Categories:
    return Categories.of(_cells(column, name).tolist())


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
