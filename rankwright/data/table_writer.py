"""Tables written part by part: the first part decides the columns, all must have the same."""

from __future__ import annotations

import warnings
from typing import Any, BinaryIO

from scipy import sparse

from rankwright.core.types import AnyArray
from rankwright.data.columns import USUAL_NAMES
from rankwright.data.delimited import arrow_table
from rankwright.data.frames import columns_of_data, ids_of_text
from rankwright.data.parts import DistinctQueries, PartsDifferError
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, quoted

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
