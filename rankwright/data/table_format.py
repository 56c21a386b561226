"""What table formats share: which columns to read, and tables in parts of whole queries.

A format (`rankwright.data.tabular` has four) gives the names of columns, the columns of a whole
table, some rows at a time, and a sink to write to.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from rankwright.core.types import AnyArray
from rankwright.data.categories import AllCategories, Categories, joined
from rankwright.data.columns import USUAL_NAMES, choose_columns, listed
from rankwright.data.delimited import one_line, refuse_repeated
from rankwright.data.frames import (
    Columns,
    arrays_of_columns,
    categories_of,
    columns_of_frame,
    default_names,
)
from rankwright.data.parts import EVERYTHING, PartsDifferError, parts_of
from rankwright.data.ranking_data import RankingData
from rankwright.data.source import display_name, open_bytes, reads_file
from rankwright.data.table_writer import ID_ROLES, TableWriter
from rankwright.data.target import open_target
from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown

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
        with _naming(path):
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
        with _naming(path):
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
        with _naming(path):
            source = _seekable(path)
            plan = Plan(choose(refuse_repeated(self._names(source))), [], None)
            column = self._columns(source, plan)
            return {role: column(name) for role, name in plan.roles.items()}

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write the table, a block of rows at a time."""
        with self.open_writer(path) as writer:
            for part in parts_of(data):
                writer.append(part)

    def names(self, path: str | Path) -> list[str]:
        """Return the names of the columns of a table."""
        with _naming(path):
            return refuse_repeated(self._names(_seekable(path)))

    def write_columns(self, columns: dict[str, AnyArray], path: str | Path) -> None:
        """Write columns as they are."""
        with open_target(path) as stream:
            sink = self._sink(stream)
            sink.write(columns)
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
        return replace(plan, categories=joined(found) or {})

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


# --- reading ---------------------------------------------------------------------------------


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
        if reads_file(stream) and str(path) != "-" and Path(path).is_file():
            return Path(path)
        return io.BytesIO(stream.read())
