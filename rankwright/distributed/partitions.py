"""Data in parts of whole queries, on the workers of a Dask cluster.

``partitions(source)`` takes Dask arrays and frames, folders and patterns of files (Parquet, LETOR
text, csv), stores and `RankingData`. Every query is in one part, whole. Parts are futures that Dask
computes again from their source when a worker is lost; files and stores must be readable from every
worker.

Raw parts, as they are read, may cut queries: rows of one query may be in several files, blocks or
frames. A query goes to the raw part in which it appears first, and its rows keep the order of the
raw parts and of the rows in them; queries are in order of first appearance. So which part holds
what, and in which order, depends on the data alone.
"""

from __future__ import annotations

import glob
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankwright import registry
from rankwright.core.dtypes import as_float_vector
from rankwright.core.types import F64, I64, AnyArray, Loss
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
from rankwright.data.letor import ReadOptions
from rankwright.data.letor_parts import BlockReader, Text, stream_blocks
from rankwright.data.ranking_data import PER_DOCUMENT, RankingData, concatenate, consecutive
from rankwright.data.split import fold_files
from rankwright.data.store import Store, is_store
from rankwright.data.streams import display_name, open_bytes
from rankwright.distributed.cluster import (
    Backend,
    Cluster,
    LocalBackend,
    connected,
    import_delayed,
    large_graphs,
    packed,
    still_open,
    unpacked,
)
from rankwright.errors import DataError, UsageError


class Partitions:
    """Parts of whole queries, each a `RankingData` on a worker; made by `partitions`.

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
        self.n_queries = sum(len(shape.qid) for shape in shapes)
        self.n_documents = int(sum(shape.sizes.sum() for shape in shapes))
        self._shares: list[tuple[list[int], int]] = []

    @property
    def client(self) -> Any:
        """The Dask client, None where the parts are in this process."""
        return getattr(self.backend, "client", None)

    @property
    def qid(self) -> list[AnyArray]:
        """Query ids of each part."""
        return [shape.qid for shape in self._shapes]

    @property
    def sizes(self) -> list[I64]:
        """Number of documents of each query, for each part."""
        return [shape.sizes for shape in self._shapes]

    @property
    def first_queries(self) -> list[int]:
        """The number of the first query of each part among all queries."""
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
        """As `map`, but leave the results where they are made: futures, in order of the parts."""
        columns = [[arg] * len(self) for arg in args]
        return self.backend.call(function, self.parts, *columns)

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return ``function(part, *args)`` for each part, in order of the parts."""
        return self.map_rows(function, [(part, *args) for part in self.parts])

    def map_rows(
        self, function: Callable[..., Any], rows: Sequence[tuple[Any, ...]], only: Any = None
    ) -> list[Any]:
        """Return ``function(*row)`` for a row per part, or per part in ``only``, in their order.

        What lies on one worker is one task on its threads: a message there and back may take as
        long as a look at a part.
        """
        chosen = range(len(self)) if only is None else only
        place = {part: k for k, part in enumerate(chosen)}
        of_workers = [
            ([place[part] for part in own if part in place], threads)
            for own, threads in self._by_worker()
        ]
        shares, threads = zip(*(share for share in of_workers if share[0]), strict=True)
        held = self.backend.call(
            _on_rows, [function] * len(shares), [[rows[k] for k in own] for own in shares], threads
        )
        found: list[Any] = [None] * len(rows)
        for own, values in zip(shares, self.backend.results(held), strict=True):
            for k, value in zip(own, values, strict=True):
                found[k] = value
        return found

    def _by_worker(self) -> list[tuple[list[int], int]]:
        """Return the parts of each worker and its threads; each part alone while some are made."""
        if self.client is None:
            return [(list(range(len(self))), 1)]
        if not self._shares:
            client = still_open(self.client)
            lie, threads = client.who_has(self.parts), client.nthreads()
            near = [[w for w in lie.get(part.key, ()) if w in threads] for part in self.parts]
            if not all(near):
                return [([part], 1) for part in range(len(self))]
            load = dict.fromkeys(sorted(threads), 0.0)
            shares: dict[str, list[int]] = {worker: [] for worker in load}
            for part, sizes in enumerate(self.sizes):
                worker = min(near[part], key=lambda w: load[w])
                load[worker] += float(sizes.sum()) / threads[worker]
                shares[worker].append(part)
            self._shares = [(own, threads[worker]) for worker, own in shares.items() if own]
        return self._shares

    def local(self) -> Partitions:
        """Return the same parts in this process, where no Dask takes part any more."""
        return Partitions(LocalBackend(), self.backend.results(self.parts), self._shapes)

    @classmethod
    def from_list(cls, parts: list[RankingData]) -> Partitions:
        """Return parts that are in this process already, where no Dask takes part."""
        return cls._of_raws(LocalBackend(), list(parts), _numbered("part", parts), None)

    # --- building ----------------------------------------------------------------------------

    @classmethod
    def of(
        cls, source: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
    ) -> Partitions:
        """See `partitions`."""
        return partitions(source, client=client, n_parts=n_parts, **options)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        qid: Any,
        *,
        sample_weight: Any = None,
        query_weight: Any = None,
        client: Any = None,
        n_parts: int | None = None,
    ) -> Partitions:
        """Take Dask arrays with a row per document; ``query_weight`` has one value per row too.

        The blocks of rows of X are the raw parts; the other arrays are cut alike.
        """
        backend = Cluster(connected(client))
        columns = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
        raws = of_arrays(backend.client, X, columns)
        return cls._of_raws(backend, raws, _numbered("block", raws), n_parts)

    @classmethod
    def from_frame(
        cls, frame: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
    ) -> Partitions:
        """Take a Dask frame; columns are found by their usual names, or by the options.

        Parameters
        ----------
        **options
            ``qid``, ``label``, ``features``, ``drop``, ``query_weight``, ``sample_weight``,
            ``doc_id``, ``group``, ``position``: names of columns, as for tables in files.
        """
        backend = Cluster(connected(client))
        raws = of_frame(backend.client, frame, options)
        return cls._of_raws(backend, raws, _numbered("partition", raws), n_parts)

    @classmethod
    def from_files(
        cls,
        files: Any,
        *,
        client: Any = None,
        n_parts: int | None = None,
        format: str | None = None,  # noqa: A002
        **options: Any,
    ) -> Partitions:
        """Take a folder or a pattern (``data/part-*.parquet``) of files of one format, or a list.

        Parameters
        ----------
        format
            By default found by the suffixes.
        **options
            Of the format's reader, as for `rankwright.load`.
        """
        backend = Cluster(connected(client))
        paths, name, options = listed_files(files, format, options)
        raws = backend.spread(read_file, paths, [name] * len(paths), [options] * len(paths))
        return cls._of_raws(backend, raws, paths, n_parts, pad=name == "letor")

    @classmethod
    def from_store(
        cls, path: str | Path, *, client: Any = None, n_parts: int | None = None
    ) -> Partitions:
        """Take a store; each part maps its own range of it, some 65,536 documents by default."""
        backend = Cluster(connected(client))
        folder = str(Path(path).absolute())
        spans = store_spans(folder, n_parts)
        raws = backend.spread(read_span, [folder] * len(spans), spans)
        return cls._of_raws(backend, raws, _numbered("range", raws), None)

    @classmethod
    def from_data(
        cls, data: RankingData, *, client: Any = None, n_parts: int | None = None
    ) -> Partitions:
        """Send data of this process to the workers, by default some 65,536 documents a part."""
        backend = Cluster(connected(client))
        cut = cut_data(data, n_parts)
        check_memory([shape for part in cut if (shape := shape_of(part))], backend.memory_limit())
        with large_graphs():
            raws = backend.spread(unpacked, [packed(part) for part in cut])
        return cls._of_raws(backend, raws, _numbered("part", raws), None)

    @classmethod
    def _of_raws(
        cls,
        backend: Backend,
        raws: list[Any],
        names: list[str],
        n_parts: int | None,
        *,
        pad: bool = False,
    ) -> Partitions:
        parts, shapes = regrouped(backend, raws, names, n_parts=n_parts, pad=pad)
        return cls(backend, parts, shapes)


def partitions(
    source: Any, *, client: Any = None, n_parts: int | None = None, **options: Any
) -> Partitions:
    """Return ``source`` as parts of whole queries on the workers.

    Parameters
    ----------
    source
        `Partitions`; `RankingData`; a tuple ``(X, y, qid)`` or ``(X, y, qid, sample_weight)`` of
        Dask arrays; a Dask frame; the path of a store; a file, or a folder or pattern of files.
    client : distributed.Client
        The cluster; the last client that was made by default.
    n_parts
        How many parts; by default those of the source, and for stores and `RankingData` as many as
        their documents ask for. Results depend on the parts, never on the number of workers.
    **options
        What the source takes beside: columns of frames, options of readers.
    """
    if isinstance(source, Partitions):
        _refuse_other_parts(source, client, n_parts, options)
        return source
    given: dict[str, Any] = {"client": client, "n_parts": n_parts, **options}
    if isinstance(source, RankingData):
        _refuse_options("RankingData", options)
        return Partitions.from_data(source, **given)
    if isinstance(source, tuple) and len(source) in (3, 4):
        _refuse_options("Dask arrays", options, but=("sample_weight", "query_weight"))
        if len(source) == 4:
            given["sample_weight"] = source[3]
        return Partitions.from_arrays(*source[:3], **given)
    if isinstance(source, str | Path):
        if is_store(source):
            if given.get("format") in (None, "store"):
                options.pop("format", None)
            _refuse_options("a store", options)
            return Partitions.from_store(source, client=client, n_parts=n_parts)
        return Partitions.from_files(source, **given)
    if isinstance(source, list) and all(isinstance(one, str | Path) for one in source):
        return Partitions.from_files(source, **given)
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        return Partitions.from_frame(source, **given)
    raise UsageError(
        f"{type(source).__name__} is not data for a cluster: give RankingData, Dask arrays "
        "(X, y, qid), a Dask frame, a store, or a folder or pattern of files."
    )


def _refuse_other_parts(
    made: Partitions, client: Any, n_parts: int | None, options: dict[str, Any]
) -> None:
    """Refuse what can only be asked for when parts are made."""
    asked = [
        *(["client"] if client is not None and client is not made.client else []),
        *(["n_parts"] if n_parts is not None else []),
        *options,
    ]
    if asked:
        raise UsageError(
            f"{asked[0]} is given where Partitions are made, and these are made already; give it "
            "to Partitions.of."
        )


def _refuse_options(what: str, options: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    for name in options:
        if name not in but:
            takes = f"it takes {' and '.join(but)}" if but else "leave it out"
            raise UsageError(f"{what} has no option '{name}'; {takes}.")


def _numbered(what: str, raws: list[Any]) -> list[str]:
    return [f"{what} {number}" for number in range(len(raws))]


# --- from raw parts to parts of whole queries --------------------------------------------------


def _on_rows(function: Callable[..., Any], rows: list[tuple[Any, ...]], threads: int) -> list[Any]:
    if min(threads, len(rows)) == 1:
        return [function(*row) for row in rows]
    with ThreadPoolExecutor(min(threads, len(rows))) as pool:
        return list(pool.map(lambda row: function(*row), rows))


_OPTIONAL = ("query_weight", *PER_DOCUMENT)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Shape:
    """What the driver has to know of a raw part.

    Parameters
    ----------
    n_features, feature_names, optional
        Width; names; and which optional arrays there are.
    qid, sizes
        Its queries in order, and their numbers of documents.
    row_bytes
        Bytes of a document, roughly.
    categories
        Of its features.
    qid_column
        Name of the column of query ids.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    optional: tuple[str, ...]
    qid: AnyArray
    sizes: I64
    row_bytes: float
    categories: AllCategories | None = None
    qid_column: str | None = None


@dataclass(frozen=True)
class Portion:
    """Queries of one raw part that go to one part; None: all of them."""

    raw: int
    queries: I64 | None


def shape_of(raw: RankingData | None) -> Shape | None:
    """Look at a raw part; one without rows is None."""
    if raw is None:
        return None
    optional = tuple(name for name in _OPTIONAL if getattr(raw, name) is not None)
    row_bytes = sys.getsizeof(raw) / max(1, raw.n_documents)
    return Shape(
        n_features=raw.n_features,
        feature_names=raw.feature_names,
        optional=optional,
        qid=raw.qid,
        sizes=raw.sizes,
        row_bytes=row_bytes,
        categories=raw.categories,
        qid_column=raw.qid_column,
    )


def regrouped(
    backend: Backend,
    raws: list[Any],
    names: Sequence[str],
    *,
    n_parts: int | None,
    pad: bool = False,
) -> tuple[list[Any], list[Shape]]:
    """Return parts of whole queries and the shape of each.

    Parameters
    ----------
    raws, names
        Raw parts, held by ``backend``, and what to call each in a sentence.
    n_parts
        How many parts; None: as many as there are raw parts with a query of their own.
    pad
        Whether a part with fewer features has zeros in the others, as text that leaves zeros out.
    """
    looked = backend.results(backend.call(shape_of, raws))
    kept = [k for k, shape in enumerate(looked) if shape is not None]
    if not kept:
        raise DataError("there are no rows in any part of the data.")
    raws, names = [raws[k] for k in kept], [names[k] for k in kept]
    shapes: list[Shape] = [looked[k] for k in kept]
    width = _agreed_width(shapes, names, pad=pad)
    as_text = len({_kind(shape.qid) for shape in shapes}) > 1
    plain = [shape.n_features == width and not as_text for shape in shapes]
    if not all(plain):
        made = backend.call(_widened, raws, [width] * len(raws), [as_text] * len(raws))
        raws = [raw if same else new for raw, new, same in zip(raws, made, plain, strict=True)]
        shapes = [_reshaped(shape, width, as_text) for shape in shapes]
    categories = joined_categories([shape.categories for shape in shapes])
    if any(shape.categories != categories for shape in shapes):
        raws = backend.call(_in_categories, raws, [categories] * len(raws))
        shapes = [replace(shape, categories=categories) for shape in shapes]
    plan = _plan(shapes, n_parts)
    found = [_shape_of_plan(shapes, pieces) for pieces in plan]
    check_memory(found, backend.memory_limit())
    return [_part(backend, raws, pieces) for pieces in plan], found


# --- on the workers --------------------------------------------------------------------------


def take(raw: RankingData, queries: I64) -> RankingData:
    """Return some queries of a raw part."""
    return raw.select(queries)


def join(*pieces: RankingData) -> RankingData:
    """Put pieces one after the other; a query that is in several has its rows in that order."""
    numbered = []
    first = 0
    for piece in pieces:
        numbered.append(replace(piece, qid=np.arange(first, first + piece.n_queries), row=None))
        first += piece.n_queries
    runs = concatenate(numbered)
    ids = np.concatenate([piece.qid for piece in pieces])
    number: dict[Any, int] = {}
    of_run = np.array([number.setdefault(query, len(number)) for query in ids.tolist()])
    order = np.argsort(of_run, kind="stable")
    together = runs.select(order)
    sizes = np.bincount(of_run, runs.sizes, len(number)).astype(np.int64)
    starts = np.unique(of_run, return_index=True)[1]
    weight = runs.query_weight
    if weight is not None:
        differs = weight != weight[starts][of_run]
        if differs.any():
            query = ids[np.flatnonzero(differs)[0]]
            raise DataError(f"query {query} has more than one query_weight in its partitions.")
        weight = weight[starts]
    return replace(
        together,
        indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        qid=ids[starts],
        query_weight=weight,
    )


def _in_categories(raw: RankingData, categories: AllCategories | None) -> RankingData:
    return raw.in_categories(categories)


def _widened(raw: RankingData, width: int, as_text: bool) -> RankingData:
    if as_text:
        raw = replace(raw, qid=raw.qid.astype(str))
    return raw.with_n_features(width)


# --- planning --------------------------------------------------------------------------------


def _agreed_width(shapes: list[Shape], names: Sequence[str], *, pad: bool) -> int:
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


def _plan(shapes: list[Shape], n_parts: int | None) -> list[list[Portion]]:
    """Say for each part which queries of which raw parts it has."""
    home: dict[Any, int] = {}  # the number of a query, in order of first appearance
    of_raw = []
    for shape in shapes:
        ids = shape.qid.tolist()
        of_raw.append(np.array([home.setdefault(q, len(home)) for q in ids], np.int64))
    sizes = np.zeros(len(home), np.int64)
    first = np.full(len(home), -1, np.int64)
    for raw, (numbers, shape) in enumerate(zip(of_raw, shapes, strict=True)):
        np.add.at(sizes, numbers, shape.sizes)
        fresh = numbers[first[numbers] < 0]
        first[fresh] = raw
    part_of = first if n_parts is None else even_parts(sizes, n_parts)
    part_of = np.unique(part_of, return_inverse=True)[1]
    plan: list[list[Portion]] = [[] for _ in range(int(part_of.max()) + 1)]
    for raw, numbers in enumerate(of_raw):
        goes = part_of[numbers]
        for part in np.unique(goes).tolist():
            chosen = np.flatnonzero(goes == part)
            plan[part].append(Portion(raw, None if len(chosen) == len(numbers) else chosen))
    return plan


def even_parts(sizes: I64, n_parts: int) -> I64:
    """Return for each query the part it goes to: runs of queries with about equal documents."""
    if n_parts < 1:
        raise DataError(f"the number of parts must be 1 or more, not {n_parts}.")
    before = np.cumsum(sizes) - sizes
    total = max(1, int(sizes.sum()))
    parts: I64 = np.minimum(before * n_parts // total, n_parts - 1)
    return parts


def _part(backend: Backend, raws: list[Any], pieces: list[Portion]) -> Any:
    if len(pieces) == 1 and pieces[0].queries is None:
        return raws[pieces[0].raw]
    taken = [
        raws[piece.raw]
        if piece.queries is None
        else backend.call(take, [raws[piece.raw]], [piece.queries])[0]
        for piece in pieces
    ]
    if len(taken) == 1:
        return taken[0]
    return backend.call(join, *([one] for one in taken))[0]


def _shape_of_plan(shapes: list[Shape], pieces: list[Portion]) -> Shape:
    sizes: dict[Any, int] = {}
    for query, size in _runs(shapes, pieces):
        sizes[query] = sizes.get(query, 0) + size
    like = shapes[pieces[0].raw]
    ids = np.array(list(sizes), like.qid.dtype if _kind(like.qid) != "U" else None)
    return replace(like, qid=ids, sizes=np.array(list(sizes.values()), np.int64))


def _runs(shapes: list[Shape], pieces: list[Portion]) -> list[tuple[Any, int]]:
    found: list[tuple[Any, int]] = []
    for piece in pieces:
        shape = shapes[piece.raw]
        chosen = slice(None) if piece.queries is None else piece.queries
        found += zip(shape.qid[chosen].tolist(), shape.sizes[chosen].tolist(), strict=True)
    return found


def check_memory(parts: Sequence[Shape], limit: int | None) -> None:
    """Refuse a query, or a part, that no worker can hold, and name the query."""
    if limit is None:
        return
    for part in parts:
        largest = int(np.argmax(part.sizes))
        documents = int(part.sizes[largest])
        held = shown_size(documents * part.row_bytes)
        if documents * part.row_bytes > limit:
            raise DataError(
                f"query {part.qid[largest]} has {documents} documents, about {held}, which no "
                f"worker can hold (the memory limit is {shown_size(limit)}); give workers more "
                "memory, or leave the query out."
            )
        whole = float(part.sizes.sum()) * part.row_bytes
        if whole > limit:
            raise DataError(
                f"the part that begins with query {part.qid[0]} takes about {shown_size(whole)}, "
                f"more than a worker can hold (the memory limit is {shown_size(limit)}); give more "
                "parts (n_parts=...) or workers more memory."
            )


def shown_size(size: float) -> str:
    """Return a number of bytes as people write it: "1.53 GB"."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.3g} {unit}"
    return f"{size:.0f} bytes"


def _reshaped(shape: Shape, width: int, as_text: bool) -> Shape:
    qid = shape.qid.astype(str) if as_text else shape.qid
    names = shape.feature_names if shape.n_features == width else None
    return replace(shape, n_features=width, feature_names=names, qid=qid)


def _kind(qid: AnyArray) -> str:
    return "i" if qid.dtype.kind in "iu" else "U" if qid.dtype.kind in "USO" else qid.dtype.kind


_WEIGHTS = ("sample_weight", "query_weight")
_DOCUMENTS_PER_PART, _MOST_PARTS = 1 << 16, 1 << 10

# --- Dask collections ------------------------------------------------------------------------


def of_arrays(client: Any, X: Any, columns: Mapping[str, Any]) -> list[Any]:
    """Return futures of raw parts, one for each block of rows of ``X``."""
    if not hasattr(X, "to_delayed") or getattr(X, "ndim", 0) != 2:
        raise UsageError("X must be a Dask array with a row for each document.")
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    named = {name: values for name, values in columns.items() if values is not None}
    blocks = {name: _blocks_like(X, values, name) for name, values in named.items()}
    rows = X.to_delayed().ravel().tolist()
    delayed = import_delayed()
    made = [
        delayed(raw_of_arrays)(x, {name: blocks[name][k] for name in blocks})
        for k, x in enumerate(rows)
    ]
    futures: list[Any] = client.compute(made)
    return futures


def _blocks_like(X: Any, values: Any, name: str) -> list[Any]:
    """Return the blocks of a column, cut as the rows of X are."""
    if not hasattr(values, "to_delayed"):
        raise UsageError(f"{name} must be a Dask array, as X is.")
    known = not np.isnan(X.chunks[0]).any()
    if hasattr(values, "rechunk") and known and not np.isnan(values.chunks[0]).any():
        if sum(values.chunks[0]) != sum(X.chunks[0]):
            raise DataError(
                f"{name} has {sum(values.chunks[0])} values, but X has {sum(X.chunks[0])} rows."
            )
        values = values.rechunk((X.chunks[0],))
    blocks: list[Any] = np.asarray(values.to_delayed(), object).ravel().tolist()
    if len(blocks) != X.numblocks[0]:
        raise DataError(
            f"{name} has {len(blocks)} blocks, but X has {X.numblocks[0]}, of unknown lengths; "
            "call compute_chunk_sizes() on both."
        )
    return blocks


def raw_of_arrays(X: Any, columns: Mapping[str, Any]) -> RankingData | None:
    """Return a block of rows as data; None where it has none."""
    if X.shape[0] == 0:
        return None
    data = RankingData.from_arrays(X, columns["y"], qid=columns["qid"])
    for name in _WEIGHTS:
        if name in columns:
            data = _weighted(data, name, columns[name])
    return data


def of_frame(client: Any, frame: Any, options: Mapping[str, Any]) -> list[Any]:
    """Return futures of raw parts, one for each partition of the frame."""
    known = {*USUAL_NAMES, "features", "drop"}
    for name in options:
        if name not in known:
            raise UsageError(registry.unknown("column role", name, known))
    given = {role: options.get(role) for role in USUAL_NAMES}
    names = [str(name) for name in frame.columns]
    features, drop = options.get("features"), options.get("drop", ())
    roles, wanted = choose_columns(names, given, features=features, drop=drop)
    delayed = import_delayed()
    made = [delayed(raw_of_frame)(part, roles, wanted) for part in frame.to_delayed()]
    futures: list[Any] = client.compute(made)
    return futures


def raw_of_frame(frame: Any, roles: dict[str, str], features: list[str]) -> RankingData | None:
    """Return a partition of a frame as data; None where it has no rows."""
    if not len(frame):
        return None
    arrays = arrays_of_columns(columns_of_frame(frame), roles, features)
    weights = {name: arrays.pop(name) for name in _WEIGHTS if name in arrays}
    data = RankingData.from_arrays(**arrays)
    for name, values in weights.items():
        data = _weighted(data, name, values)
    return data


def _weighted(data: RankingData, name: str, values: Any) -> RankingData:
    """Add weights, one for each row as it came; all may be zero, as others may not be elsewhere."""
    weight: F64 = as_float_vector(values, name, data.n_documents)
    if not (np.isfinite(weight) & (weight >= 0.0)).all():
        raise DataError(f"{name} must be finite and 0 or more.")
    if data.row is not None:
        weight = weight[data.row]
    if name == "sample_weight":
        return replace(data, sample_weight=weight)
    of_query = weight[data.indptr[:-1]]
    differs = weight != np.repeat(of_query, data.sizes)
    if differs.any():
        query = data.qid[data.query_of_row()[np.flatnonzero(differs)[0]]]
        raise DataError(f"query {query} has rows of different query_weight.")
    return replace(data, query_weight=of_query)


# --- files -----------------------------------------------------------------------------------


def listed_files(
    files: Any,
    format: str | None,  # noqa: A002
    options: Mapping[str, Any],
) -> tuple[list[str], str, dict[str, Any]]:
    """Return the paths, in natural order, their format, and options that serve all alike."""
    paths = [Path(one).absolute() for one in files] if isinstance(files, list) else _found(files)
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
        chosen["zero_based"] = _counts_from_zero(paths, chosen)
    return [str(path) for path in paths], name, chosen


def _found(files: Any) -> list[Path]:
    path = Path(files)
    if path.is_dir():
        if fold_files(path):
            raise DataError(
                f"{path} is a LETOR fold with training, validation and test data; name one of its "
                "files."
            )
        inside = [one for one in path.iterdir() if one.name[0] not in "._" and one.is_file()]
        return [one.absolute() for one in sorted(inside, key=_natural_order)]
    if path.exists():
        return [path.absolute()]
    matches = [Path(one).absolute() for one in glob.glob(str(path), recursive=True)]
    if not matches:
        raise DataError(f"{files} does not exist, and no file fits it as a pattern.")
    return sorted(matches, key=_natural_order)


def _natural_order(path: Path) -> list[Any]:
    """Sort ``part-2`` before ``part-10``."""
    words = re.split(r"(\d+)", str(path))
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words]


def _counts_from_zero(paths: list[Path], options: Mapping[str, Any]) -> bool:
    """Return whether feature ids start at 0: the first file with features decides for all."""
    known = {field.name for field in fields(ReadOptions)}  # others are refused by the reader
    reading = ReadOptions(**{name: value for name, value in options.items() if name in known})
    for path in paths:
        reader = BlockReader(display_name(path), reading)
        with open_bytes(path) as stream:
            for number, block in enumerate(stream_blocks(stream, 1 << 16)):
                reader.survey(Text(block, starts_file=number == 0))
                if reader.base is not None:
                    return reader.base == 0
    return False


def read_file(path: str, name: str, options: dict[str, Any]) -> RankingData:
    """Read one file on a worker."""
    return load(path, format=name, **options)


# --- stores ----------------------------------------------------------------------------------


def store_spans(folder: str, n_parts: int | None) -> list[tuple[int, int]]:
    """Return the ranges of queries, of about equal documents, that parts of a store have."""
    return _spans(Store().read(folder), n_parts)


def read_span(folder: str, span: tuple[int, int]) -> RankingData:
    """Map queries lo to hi of a store on a worker."""
    return Store().read_queries(folder, *span)


def _spans(data: RankingData, n_parts: int | None) -> list[tuple[int, int]]:
    """Return ranges of queries; how many are made by default depends on the data alone."""
    if n_parts is None:
        n_parts = min(max(1, math.ceil(data.n_documents / _DOCUMENTS_PER_PART)), _MOST_PARTS)
    part = even_parts(data.sizes, n_parts)
    starts = np.unique(part, return_index=True)[1].tolist()
    return list(zip(starts, [*starts[1:], data.n_queries], strict=True))


# --- data of this process --------------------------------------------------------------------


def cut_data(data: RankingData, n_parts: int | None) -> list[RankingData]:
    """Return the data in parts of about equal documents."""
    return [consecutive(data, lo, hi) for lo, hi in _spans(data, n_parts)]


# --- what a loss has to know of all the data ----------------------------------------------------


def largest_of(part: RankingData, loss: Loss) -> float | None:
    """Return what the loss has to know of all the data, for one part; None where it asks nothing.

    The largest over the parts is that of all the data.
    """
    surveyed: Any = loss
    return float(surveyed.largest(part)) if loss.traits.largest else None


def largest_of_all(data: Partitions, loss: Loss) -> float | None:
    """Return what the loss has to know of all the data, where it asks for it."""
    found = [one for one in data.map(largest_of, loss) if one is not None]
    return max(found, default=None)
