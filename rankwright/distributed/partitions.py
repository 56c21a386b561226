"""Data in partitions of whole queries, on the workers of a Dask cluster.

`Partitions.of` takes Dask arrays and frames, folders and patterns of files (Parquet, LETOR
text, csv), stores and `RankingData`. Each query is in one partition. Partitions are futures that
Dask computes again from their source if a worker is lost, so files and stores must be readable from
every worker.

The rows of a query must not be spread over several files. Blocks of Dask arrays are moved to the
borders of queries. A Dask frame whose partitions cut queries is shuffled by query. Contents and
order of the partitions depend only on the data and on ``n_parts``, not on the workers.
"""

from __future__ import annotations

import glob
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import registry
from rankwright.core.types import I64, AnyArray
from rankwright.data.files import load
from rankwright.data.formats import format_of
from rankwright.data.frames import (
    USUAL_NAMES,
    AllCategories,
    arrays_of_columns,
    choose_columns,
    columns_of_frame,
    joined_categories,
)
from rankwright.data.letor import Letor
from rankwright.data.ranking_data import (
    PER_DOCUMENT,
    FeatureIds,
    RankingData,
    clean_ids,
    concatenate,
    consecutive,
)
from rankwright.data.split import fold_files
from rankwright.data.store import Store, is_store
from rankwright.distributed.cluster import (
    Backend,
    Cluster,
    LocalBackend,
    connected,
    large_graphs,
    still_open,
    unchanged,
)
from rankwright.errors import DataError, UsageError

_OPTIONAL = ("query_weight", *PER_DOCUMENT)
_WEIGHTS = ("sample_weight", "query_weight")
_DOCUMENTS_PER_PART, _MOST_PARTS = 1 << 16, 1 << 10


@dataclass(frozen=True)
class Shape:
    """Description of a partition for the driver.

    Parameters
    ----------
    n_features, feature_names, categories, qid_column, feature_ids
        As in `RankingData`.
    optional
        Names of the optional arrays that it has.
    qid, sizes
        Its queries and their numbers of documents.
    row_bytes
        Approximate number of bytes of a document.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    categories: AllCategories | None
    qid_column: str | None
    feature_ids: FeatureIds | None
    optional: tuple[str, ...]
    qid: AnyArray
    sizes: I64
    row_bytes: float


def shape_of(part: RankingData | None) -> Shape | None:
    """Return the shape of a partition, or None if it has no rows."""
    if part is None:
        return None
    return Shape(
        n_features=part.n_features,
        feature_names=part.feature_names,
        categories=part.categories,
        qid_column=part.qid_column,
        feature_ids=part.feature_ids,
        optional=tuple(name for name in _OPTIONAL if getattr(part, name) is not None),
        qid=part.qid,
        sizes=part.sizes,
        row_bytes=sys.getsizeof(part) / max(1, part.n_documents),
    )


class Partitions:
    """Partitions of whole queries, each a `RankingData` on a worker; made by `Partitions.of`.

    Attributes
    ----------
    parts : list
        Futures of `RankingData`, in order; after `local` the data themselves.
    client : distributed.Client or None
        None after `local`.
    n_features, n_queries, n_documents : int
    feature_names : tuple of str or None
    categories : dict from names of features to Categories, or None
    qid_column : str or None
        Name of the column of query ids.
    feature_ids : FeatureIds or None
        Numbering of the features in LETOR text.

    Examples
    --------
    >>> import rankwright as rw
    >>> from distributed import Client
    >>> from rankwright.distributed import Partitions
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     parts = Partitions.of(rw.synthetic("mq2008", queries=20), n_parts=4)
    ...     print(parts.n_queries, len(parts.parts))
    20 4
    """

    def __init__(self, backend: Backend, parts: list[Any], shapes: list[Shape]) -> None:
        self.backend, self.parts, self._shapes = backend, parts, shapes
        self.n_features = shapes[0].n_features
        self.feature_names = shapes[0].feature_names
        self.categories = shapes[0].categories
        self.qid_column = shapes[0].qid_column
        self.feature_ids = shapes[0].feature_ids
        self.n_queries = sum(len(shape.qid) for shape in shapes)
        self.n_documents = int(sum(shape.sizes.sum() for shape in shapes))
        self._shares: list[tuple[list[int], int]] = []

    @property
    def client(self) -> Any:
        """The Dask client, or None if the partitions are in this process."""
        return getattr(self.backend, "client", None)

    @property
    def qid(self) -> list[AnyArray]:
        """Query ids of each partition."""
        return [shape.qid for shape in self._shapes]

    @property
    def sizes(self) -> list[I64]:
        """Number of documents of each query, for each partition."""
        return [shape.sizes for shape in self._shapes]

    @property
    def first_queries(self) -> list[int]:
        """Number of the first query of each partition among all queries."""
        counts = [len(shape.qid) for shape in self._shapes]
        return list(accumulate(counts[:-1], initial=0))

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        where = "in this process" if self.client is None else "on a cluster"
        return (
            f"Partitions({len(self)} parts {where}, {self.n_queries} queries, "
            f"{self.n_documents} documents, {self.n_features} features)"
        )

    def call(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """As `map`, but leave the results on the workers and return futures."""
        columns = [[arg] * len(self) for arg in args]
        return self.backend.call(function, self.parts, *columns)

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return ``function(part, *args)`` for each partition, in order."""
        return self.map_rows(function, [(part, *args) for part in self.parts])

    def map_rows(self, function: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return ``function(*row)`` for a row of arguments per partition, in order.

        All partitions of a worker are one task, which uses its threads: a message may take as long
        as a pass over a partition.
        """
        shares = self._by_worker()
        futures = self.backend.call(
            _on_rows,
            [function] * len(shares),
            [[rows[k] for k in numbers] for numbers, _ in shares],
            [threads for _, threads in shares],
        )
        results: list[Any] = [None] * len(rows)
        for (numbers, _), values in zip(shares, self.backend.results(futures), strict=True):
            for k, value in zip(numbers, values, strict=True):
                results[k] = value
        return results

    def _by_worker(self) -> list[tuple[list[int], int]]:
        """Return the partitions of each worker and its number of threads.

        Each partition is a share until all partitions are computed.
        """
        if self.client is None:
            return [(list(range(len(self))), 1)]
        if not self._shares:
            client = still_open(self.client)
            holders, threads = client.who_has(self.parts), client.nthreads()
            near = [[w for w in holders.get(part.key, ()) if w in threads] for part in self.parts]
            if not all(near):
                return [([k], 1) for k in range(len(self))]
            load = dict.fromkeys(sorted(threads), 0.0)
            numbers: dict[str, list[int]] = {worker: [] for worker in load}
            for k, sizes in enumerate(self.sizes):
                worker = min(near[k], key=lambda w: load[w])
                load[worker] += float(sizes.sum()) / threads[worker]
                numbers[worker].append(k)
            self._shares = [
                (shares, threads[worker]) for worker, shares in numbers.items() if shares
            ]
        return self._shares

    def local(self) -> Partitions:
        """Return the same partitions in this process, where Dask is not used."""
        return Partitions(LocalBackend(), self.backend.results(self.parts), self._shapes)

    @classmethod
    def from_list(cls, parts: list[RankingData]) -> Partitions:
        """Return partitions that are in this process already, where Dask is not used."""
        return cls.build(LocalBackend(), list(parts), _numbered("part", parts))

    # --- building ----------------------------------------------------------------------------

    @classmethod
    def of(
        cls, source: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
    ) -> Partitions:
        """Return ``source`` in partitions of whole queries on the workers.

        Parameters
        ----------
        source
            `Partitions`; `RankingData`; a tuple ``(X, y, qid)`` or ``(X, y, qid, sample_weight)``
            of Dask arrays; a Dask frame; the path of a store; a file, or a folder or pattern of
            files.
        client : distributed.Client
            The cluster; by default the last client that was created.
        n_parts
            Number of partitions; by default that of the source, and for stores and `RankingData`
            one per 65,536 documents. Results depend on the partitions, but not on the number of
            workers.
        **options
            For files, those of the format's reader and ``format``; for frames, the names of columns
            (``qid``, ``label``, ``features``, ``drop``, ``query_weight``, ``sample_weight``,
            ``doc_id``, ``group``, ``position``), by default their usual names; for arrays,
            ``sample_weight`` and ``query_weight``, both with one value per row.
        """
        if isinstance(source, Partitions):
            _refuse_other_parts(source, client, n_parts, options)
            return source
        build: Callable[..., Partitions]
        if isinstance(source, RankingData):
            build = data_in_parts
        elif isinstance(source, tuple) and len(source) in (3, 4):
            build = arrays_in_parts
        elif isinstance(source, str | Path) and is_store(source):
            build = store_in_parts
        elif isinstance(source, str | Path) or (
            isinstance(source, list) and all(isinstance(path, str | Path) for path in source)
        ):
            build = files_in_parts
        elif hasattr(source, "to_delayed") and hasattr(source, "columns"):
            build = frame_in_parts
        else:
            raise UsageError(
                f"{type(source).__name__} is not data for a cluster: give RankingData, Dask arrays "
                "(X, y, qid), a Dask frame, a store, or a folder or pattern of files."
            )
        return build(Cluster(connected(client)), source, n_parts, options)

    @classmethod
    def build(
        cls,
        backend: Backend,
        parts: list[Any],
        names: list[str],
        *,
        n_parts: int | None = None,
        pad: bool = False,
    ) -> Partitions:
        """Return partitions after checks; ``pad`` widens narrow ones by features that are 0."""
        shapes = backend.results(backend.call(shape_of, parts))
        filled = [k for k, shape in enumerate(shapes) if shape is not None]
        if not filled:
            raise DataError("there are no rows in any part of the data.")
        parts, names, shapes = ([column[k] for k in filled] for column in (parts, names, shapes))
        width = _common_width(shapes, names, pad=pad)
        as_text = len({shape.qid.dtype.kind in "USO" for shape in shapes}) > 1
        categories = joined_categories([shape.categories for shape in shapes])
        if as_text or any((s.n_features, s.categories) != (width, categories) for s in shapes):
            changes = [width] * len(parts), [as_text] * len(parts), [categories] * len(parts)
            parts = backend.call(_adapted, parts, *changes)
            shapes = backend.results(backend.call(shape_of, parts))
        _refuse_cut_queries(shapes, names)
        if n_parts is not None:
            parts = _cut_again(backend, parts, shapes, n_parts)
            shapes = backend.results(backend.call(shape_of, parts))
        return cls(backend, parts, shapes)


def _refuse_other_parts(
    parts: Partitions, client: Any, n_parts: int | None, options: dict[str, Any]
) -> None:
    """Refuse arguments that only have a meaning when partitions are built."""
    arguments = [
        *(["client"] if client is not None and client is not parts.client else []),
        *(["n_parts"] if n_parts is not None else []),
        *options,
    ]
    if arguments:
        raise UsageError(
            f"{arguments[0]} is given where Partitions are made, and these are made already; "
            "give it to Partitions.of."
        )


def _refuse_options(what: str, options: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    for name in options:
        if name not in but:
            takes = f"it takes {' and '.join(but)}" if but else "leave it out"
            raise UsageError(f"{what} has no option '{name}'; {takes}.")


def _numbered(what: str, parts: list[Any]) -> list[str]:
    return [f"{what} {number}" for number in range(len(parts))]


def _on_rows(function: Callable[..., Any], rows: list[tuple[Any, ...]], threads: int) -> list[Any]:
    if min(threads, len(rows)) == 1:
        return [function(*row) for row in rows]
    with ThreadPoolExecutor(min(threads, len(rows))) as pool:
        return list(pool.map(lambda row: function(*row), rows))


# --- partitions that fit together ------------------------------------------------------------


def _common_width(shapes: list[Shape], names: Sequence[str], *, pad: bool) -> int:
    """Return the number of features; raise unless features and arrays are alike."""
    first = shapes[0]
    for shape, name in zip(shapes, names, strict=True):
        if shape.n_features != first.n_features and not pad:
            raise DataError(
                f"{names[0]} has {first.n_features} features, but {name} has {shape.n_features}; "
                "all parts of the data must have the same."
            )
        if shape.feature_names != first.feature_names:
            odd = _first_difference(first.feature_names, shape.feature_names)
            raise DataError(f"the features of {names[0]} and {name} have different names{odd}.")
        if shape.optional != first.optional:
            what = sorted(set(shape.optional) ^ set(first.optional))[0]
            raise DataError(
                f"{names[0]} and {name} differ in whether they have {what}; all parts of the data "
                "must have it, or none."
            )
    return max(shape.n_features for shape in shapes)


def _first_difference(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> str:
    if a is None or b is None:
        return ": one has none"
    at = next(k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return f": column {at} is '{a[at]}' in the first and '{b[at]}' in the second"


def _adapted(
    part: RankingData, width: int, as_text: bool, categories: AllCategories | None
) -> RankingData:
    """Return a partition with the common features, ids and categories."""
    part = part.with_n_features(width).in_categories(categories)
    return part._replace(qid=part.qid.astype(str)) if as_text else part


def _refuse_cut_queries(shapes: list[Shape], names: list[str]) -> None:
    """Raise if a query is in two partitions."""
    place: dict[Any, str] = {}
    for shape, name in zip(shapes, names, strict=True):
        for query in shape.qid.tolist():
            if query in place:
                raise DataError(
                    f"query {query} is in {place[query]} and in {name}; put all rows of a query "
                    "into one of them."
                )
            place[query] = name


def _cut_again(backend: Backend, parts: list[Any], shapes: list[Shape], n_parts: int) -> list[Any]:
    """Return ``n_parts`` partitions with about equal numbers of documents."""
    qid = np.concatenate([shape.qid for shape in shapes])
    sizes = np.concatenate([shape.sizes for shape in shapes])
    spans = query_spans(sizes, n_parts)
    row_bytes = max(shape.row_bytes for shape in shapes)
    check_memory(qid, sizes, spans, row_bytes, backend.memory_limit())
    ends = list(accumulate(len(shape.qid) for shape in shapes))
    starts = [0, *ends[:-1]]
    pieces = [
        [
            (part, max(lo, start) - start, min(hi, end) - start)
            for part, start, end in zip(parts, starts, ends, strict=True)
            if start < hi and lo < end
        ]
        for lo, hi in spans
    ]
    return backend.call(_joined, pieces)


def _joined(pieces: list[tuple[RankingData, int, int]]) -> RankingData:
    """Return ranges of queries of some partitions as one partition."""
    return concatenate([consecutive(part, lo, hi) for part, lo, hi in pieces])


def query_spans(sizes: I64, n_parts: int | None) -> list[tuple[int, int]]:
    """Return ranges of queries with about equal numbers of documents.

    The default number of ranges depends only on the number of documents.
    """
    total = int(sizes.sum())
    if n_parts is None:
        n_parts = min(max(1, math.ceil(total / _DOCUMENTS_PER_PART)), _MOST_PARTS)
    if n_parts < 1:
        raise DataError(f"the number of parts must be 1 or more, not {n_parts}.")
    before = np.cumsum(sizes) - sizes
    number = np.minimum(before * n_parts // max(1, total), n_parts - 1)
    starts = np.unique(number, return_index=True)[1].tolist()
    return list(zip(starts, [*starts[1:], len(sizes)], strict=True))


def check_memory(
    qid: AnyArray,
    sizes: I64,
    spans: Sequence[tuple[int, int]],
    row_bytes: float,
    limit: int | None,
) -> None:
    """Raise if a query, or the queries of a span, need more memory than a worker has."""
    if limit is None:
        return
    from dask.utils import format_bytes

    largest = int(np.argmax(sizes))
    size = int(sizes[largest] * row_bytes)
    if size > limit:
        raise DataError(
            f"query {qid[largest]} has {sizes[largest]} documents, about {format_bytes(size)}, "
            f"which no worker can hold (the memory limit is {format_bytes(limit)}); give workers "
            "more memory, or leave the query out."
        )
    for lo, hi in spans:
        size = int(sizes[lo:hi].sum() * row_bytes)
        if size > limit:
            raise DataError(
                f"the part that begins with query {qid[lo]} takes about {format_bytes(size)}, "
                f"more than a worker can hold (the memory limit is {format_bytes(limit)}); give "
                "more parts (n_parts=...) or workers more memory."
            )


# --- data of this process, and stores ---------------------------------------------------------


def data_in_parts(
    backend: Cluster, data: RankingData, n_parts: int | None, options: dict[str, Any]
) -> Partitions:
    """Send data to the workers."""
    _refuse_options("RankingData", options)
    spans = query_spans(data.sizes, n_parts)
    row_bytes = sys.getsizeof(data) / max(1, data.n_documents)
    check_memory(data.qid, data.sizes, spans, row_bytes, backend.memory_limit())
    with large_graphs():
        parts = backend.spread(unchanged, [consecutive(data, *span) for span in spans])
    return Partitions.build(backend, parts, _numbered("part", parts))


def store_in_parts(
    backend: Cluster, path: str | Path, n_parts: int | None, options: dict[str, Any]
) -> Partitions:
    """Let each partition map a range of a store."""
    if options.get("format") in (None, "store"):
        options.pop("format", None)
    _refuse_options("a store", options)
    folder = str(Path(path).absolute())
    spans = query_spans(Store().read(folder).sizes, n_parts)
    parts = backend.spread(Store().read_queries, [folder] * len(spans), *zip(*spans, strict=True))
    return Partitions.build(backend, parts, _numbered("range", parts))


# --- Dask collections ------------------------------------------------------------------------


def arrays_in_parts(
    backend: Cluster, arrays: tuple[Any, ...], n_parts: int | None, options: dict[str, Any]
) -> Partitions:
    """Move the borders of blocks to the ends of queries, and take each block as a partition."""
    from dask.delayed import delayed

    _refuse_options("Dask arrays", options, but=_WEIGHTS)
    columns = {**dict(zip(("X", "y", "qid", "sample_weight"), arrays, strict=False)), **options}
    X = columns.pop("X")
    if not hasattr(X, "to_delayed") or getattr(X, "ndim", 0) != 2:
        raise UsageError("X must be a Dask array with a row for each document.")
    columns = {k: v for k, v in columns.items() if v is not None or k not in _WEIGHTS}
    for name, values in {"X": X, **columns}.items():
        if not hasattr(values, "rechunk"):
            raise UsageError(f"{name} must be a Dask array, as X is.")
        if np.isnan(values.chunks[0]).any():
            raise DataError(f"{name} has blocks of unknown lengths; call compute_chunk_sizes().")
        if values.shape[0] != X.shape[0]:
            raise DataError(f"{name} has {len(values)} values, but X has {X.shape[0]} rows.")
    if not X.shape[0]:
        raise DataError("X has no rows.")
    qid, sizes, block = _queries_of_blocks(backend, columns["qid"].rechunk((X.chunks[0],)))
    if n_parts is None:
        starts = np.unique(block, return_index=True)[1].tolist()
        spans = list(zip(starts, [*starts[1:], len(sizes)], strict=True))
    else:
        spans = query_spans(sizes, n_parts)
    row_bytes = float(X.dtype.itemsize * X.shape[1])
    check_memory(qid, sizes, spans, row_bytes, backend.memory_limit())
    rows = tuple(int(sizes[lo:hi].sum()) for lo, hi in spans)
    blocks = {"X": X.rechunk((rows, -1)).to_delayed().ravel()}
    blocks |= {name: values.rechunk((rows,)).to_delayed() for name, values in columns.items()}
    parts = [
        delayed(part_of_arrays)(dict(zip(blocks, part, strict=True)))
        for part in zip(*blocks.values(), strict=True)
    ]
    futures = backend.client.compute(parts)
    return Partitions.build(backend, futures, _numbered("block", futures))


def _queries_of_blocks(backend: Cluster, qid: Any) -> tuple[AnyArray, I64, I64]:
    """Return the queries of a Dask array of ids: id, number of rows, and first block."""
    runs = backend.call(_runs, backend.client.compute(list(qid.to_delayed())))
    ids, lengths = zip(*backend.results(runs), strict=True)
    block = np.repeat(np.arange(len(ids)), [len(each) for each in ids])
    id_of_run = np.concatenate(ids)
    is_first = np.concatenate(([True], id_of_run[1:] != id_of_run[:-1]))
    query = np.cumsum(is_first) - 1
    sizes = np.bincount(query, np.concatenate(lengths)).astype(np.int64)
    return id_of_run[is_first], sizes, block[is_first]


def _runs(qid: AnyArray) -> tuple[AnyArray, I64]:
    """Return the ids of consecutive equal rows, and their numbers."""
    if not len(qid):
        return qid, np.empty(0, np.int64)
    qid = clean_ids(qid, "query id")
    starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))
    return qid[starts], np.diff(np.append(starts, len(qid)))


def part_of_arrays(columns: Mapping[str, Any]) -> RankingData:
    """Return rows as a partition, whose weights may all be 0."""
    zero = [name for name in _WEIGHTS if name in columns and not np.any(columns[name])]
    data = RankingData.from_arrays(**{k: v for k, v in columns.items() if k not in zero})
    sizes = {"sample_weight": data.n_documents, "query_weight": data.n_queries}
    return data._replace(**{name: np.zeros(sizes[name]) for name in zero})


def frame_in_parts(
    backend: Cluster, frame: Any, n_parts: int | None, options: dict[str, Any]
) -> Partitions:
    """Take each partition of a frame, shuffled by query if a query is in several."""
    from dask.utils import M

    known = {*USUAL_NAMES, "features", "drop"}
    for name in options:
        if name not in known:
            raise UsageError(registry.unknown("column role", name, known))
    given = {role: options.get(role) for role in USUAL_NAMES}
    columns = [str(name) for name in frame.columns]
    features, drop = options.get("features"), options.get("drop", ())
    roles, wanted = choose_columns(columns, given, features=features, drop=drop)
    ids_of_parts = frame[roles["qid"]].map_partitions(M.drop_duplicates)
    (ids,) = backend.results([backend.client.compute(ids_of_parts)])
    if ids.duplicated().any():
        # By tasks: the order of rows is then the same in each run.
        frame = frame.shuffle(on=roles["qid"], shuffle_method="tasks")
    read = partial(part_of_frame, roles=roles, features=wanted)
    parts = backend.call(read, backend.client.compute(frame.to_delayed()))
    return Partitions.build(backend, parts, _numbered("partition", parts), n_parts=n_parts)


def part_of_frame(frame: Any, roles: dict[str, str], features: list[str]) -> RankingData | None:
    """Return the rows of a frame as a partition, or None if there are none."""
    if not len(frame):
        return None
    return part_of_arrays(arrays_of_columns(columns_of_frame(frame), roles, features))


# --- files -----------------------------------------------------------------------------------


def files_in_parts(
    backend: Cluster, files: Any, n_parts: int | None, options: dict[str, Any]
) -> Partitions:
    """Read each file of a folder, a pattern or a list on a worker."""
    paths, name, options = listed_files(files, options.pop("format", None), options)
    parts = backend.spread(partial(load, format=name, **options), paths)
    return Partitions.build(backend, parts, paths, n_parts=n_parts, pad=name == "letor")


def listed_files(
    files: Any,
    format: str | None,  # noqa: A002
    options: Mapping[str, Any],
) -> tuple[list[str], str, dict[str, Any]]:
    """Return the paths in natural order, their format and their options."""
    paths = [Path(f).absolute() for f in files] if isinstance(files, list) else _files_in(files)
    if not paths:
        raise DataError(f"there is no file in {files}.")
    names = {format_of(path) if format is None else format for path in paths}
    if len(names) > 1:
        raise DataError(
            f"{files} holds files of several formats ({', '.join(sorted(names))}); name a pattern "
            "such as folder/*.parquet."
        )
    name = names.pop()
    chosen = dict(options)
    if name == "letor" and chosen.get("zero_based", "auto") == "auto":
        chosen["zero_based"] = any(Letor.starts_at_zero(path) for path in paths)
    return [str(path) for path in paths], name, chosen


def _files_in(files: Any) -> list[Path]:
    path = Path(files)
    if path.is_dir():
        if fold_files(path):
            raise DataError(
                f"{path} is a LETOR fold with training, validation and test data; name one of its "
                "files."
            )
        inside = [file for file in path.iterdir() if file.name[0] not in "._" and file.is_file()]
        return [file.absolute() for file in sorted(inside, key=_natural_order)]
    if path.exists():
        return [path.absolute()]
    matches = [Path(file).absolute() for file in glob.glob(str(path), recursive=True)]
    if not matches:
        raise DataError(f"{files} does not exist, and no file fits it as a pattern.")
    return sorted(matches, key=_natural_order)


def _natural_order(path: Path) -> list[Any]:
    """Sort ``part-2`` before ``part-10``."""
    words = re.split(r"(\d+)", str(path))
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words]


# --- the maximum that some losses need -------------------------------------------------------


def largest_of_all(data: Partitions, loss: Any) -> float | None:
    """Return the maximum of all partitions for a `SurveyedLoss`, otherwise None."""
    return float(max(data.map(loss.largest))) if hasattr(loss, "largest") else None
