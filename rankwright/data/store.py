"""A folder of memory-mapped arrays, for data larger than memory.

``meta.json`` (format, version, shapes, types, feature names, categories) stands beside plain
``.npy`` files: ``X`` dense, or ``X_data``, ``X_indices`` and ``X_indptr`` for sparse features;
``y``, ``indptr``, ``qid``, and the optional arrays. Text is kept in arrays of fixed width. Nothing
in a store is ever unpickled.

Opening a store reads the grades, weights and query boundaries, and looks once at what would lead a
kernel astray: the column numbers and row offsets of sparse features, and the letters of texts. All
values of features, groups and positions stay on disk until they are used.

A store is written to a hidden folder beside its name and renamed when complete. What a writer that
was killed left there is removed by the next one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.checks import HIGHEST_GRADE, ArraySpec, check_arrays
from rankwright.core.dtypes import as_feature_matrix
from rankwright.core.types import AnyArray
from rankwright.data.formats import Format
from rankwright.data.frames import AllCategories, categories_from_json, categories_to_json
from rankwright.data.ranking_data import (
    EVERYTHING,
    PER_DOCUMENT,
    PER_QUERY,
    DistinctQueries,
    PartsDifferError,
    RankingData,
    parts_of,
)
from rankwright.data.streams import link_target, partial_beside, replace_folder
from rankwright.errors import DataError
from rankwright.registry import EXTENSIONS

_LENGTHS = ("documents", "queries", "features")  # in meta.json
_IN_MEMORY = ("y", "sample_weight", "query_weight", "indptr", "qid")
META = "meta.json"
FORMAT, VERSION = "rankwright store", 1
OPTIONAL = ("query_weight", *PER_DOCUMENT)
HEADER_BYTES = 192
_BLOCK_BYTES = 1 << 24
_LARGEST_INT32 = np.iinfo(np.int32).max


def is_store(path: str | Path) -> bool:
    """Return whether ``path`` is a folder that says it is a store."""
    try:
        meta = json.loads((Path(path) / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(meta, dict) and meta.get("format") == FORMAT


class Store:
    """A folder of memory-mapped arrays, for data larger than memory."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["store"]
    holds: ClassVar[frozenset[str]] = EVERYTHING

    def read(self, path: str | Path) -> RankingData:
        """Open a store; its features are mapped, not read."""
        return self._open(path)

    def read_queries(self, path: str | Path, lo: int, hi: int) -> RankingData:
        """Open queries lo to hi of a store; the others are not looked at."""
        return self._open(path, (lo, hi))

    def _open(self, path: str | Path, queries: tuple[int, int] | None = None) -> RankingData:
        folder = Path(path)
        meta = _read_meta(folder)
        arrays = {name: _open_array(folder, name, said) for name, said in meta["arrays"].items()}
        lengths = {name: meta[name] for name in _LENGTHS}
        if queries is not None:
            arrays, lengths = _cut(arrays, lengths, *queries)
        for name in _IN_MEMORY:
            if name in arrays:
                arrays[name] = np.array(arrays[name])
        names = meta["feature_names"]
        try:
            check_arrays(_specs(arrays), arrays, **lengths)
            if names is not None and len(names) != lengths["features"]:
                raise DataError(f"it has {len(names)} names for {lengths['features']} features.")
        except DataError as error:
            raise _damaged(folder, str(error).rstrip(".")) from None
        return RankingData._of(
            X=_features(arrays, lengths["features"]),
            y=arrays["y"],
            indptr=arrays["indptr"],
            qid=arrays["qid"],
            feature_names=None if names is None else tuple(names),
            categories=_categories(folder, meta),
            **{name: arrays[name] for name in OPTIONAL if name in arrays},
        )

    def row_count(self, path: str | Path) -> int | None:
        """Return the number of documents that the store says it has."""
        return int(_read_meta(Path(path))["documents"])

    def read_parts(self, path: str | Path) -> Iterator[RankingData]:
        """Yield the data in parts of whole queries."""
        yield from parts_of(self.read(path))

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write ``data``, a block of queries at a time."""
        with self.open_writer(path) as writer:
            for part in parts_of(data):
                writer.append(part)

    @contextmanager
    def open_writer(self, path: str | Path) -> Iterator[StoreWriter]:
        """Open a store for writing part by part."""
        with StoreWriter(path) as writer:
            yield writer


# --- reading ---------------------------------------------------------------------------------


def _read_meta(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise DataError(f"{folder} does not exist.")
    if not is_store(folder):
        raise DataError(f"{folder} is not a store: a folder with a {META} that says so.")
    meta: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
    if meta.get("version") != VERSION:
        raise DataError(
            f"{folder} is a store of version {meta.get('version')}; this release reads {VERSION}."
        )
    kept = meta.get("arrays")
    needed = {"y", "indptr", "qid"}
    known = {*needed, *OPTIONAL, "X", "X_data", "X_indices", "X_indptr"}
    if (
        not isinstance(kept, dict)
        or not needed <= set(kept) <= known
        or not ("X" in kept) ^ ({"X_data", "X_indices", "X_indptr"} <= set(kept))
        or not all(type(meta.get(name)) is int and meta[name] >= 0 for name in _LENGTHS)
        or not isinstance(meta.get("feature_names", 0), list | None)
        or not all(isinstance(name, str) for name in meta["feature_names"] or ())
    ):
        raise _damaged(folder, f"{META} is not complete")
    return meta


def _categories(folder: Path, meta: dict[str, Any]) -> AllCategories | None:
    try:
        return categories_from_json(meta.get("categories"), meta["feature_names"])
    except (KeyError, TypeError, ValueError):
        raise _damaged(folder, f"{META} has categories that cannot be read") from None


def _open_array(folder: Path, name: str, said: dict[str, Any]) -> AnyArray:
    """Map one array, whose file must be, header and size, what the store says of it."""
    file = folder / f"{name}.npy"
    dtype, shape = _described(folder, name, said)
    size = HEADER_BYTES + math.prod(shape) * dtype.itemsize
    try:
        with file.open("rb") as stream:
            header = stream.read(HEADER_BYTES)
        found = file.stat().st_size
    except OSError as error:
        raise _damaged(folder, f"{file.name} cannot be read: {error.strerror}") from None
    if found != size:
        raise _damaged(folder, f"{file.name} has {found} bytes instead of {size}")
    if header != npy_header(dtype, shape):
        raise _damaged(folder, f"{file.name} is not the array that {META} describes")
    try:
        if size == HEADER_BYTES:  # nothing, which cannot be mapped
            return np.empty(shape, dtype)
        return np.asarray(np.memmap(file, dtype, mode="r", offset=HEADER_BYTES, shape=shape))
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{file.name} cannot be mapped: {error}") from None


def _described(folder: Path, name: str, said: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of an array from the description of the store."""
    try:
        dtype, shape = np.dtype(str(said["dtype"])), tuple(said["shape"])
    except (TypeError, KeyError, ValueError, SyntaxError):
        raise _damaged(folder, f"{META} does not describe {name}") from None
    counts = all(isinstance(length, int) and length >= 0 for length in shape)
    if dtype.kind not in "biufUSMm" or not dtype.itemsize or len(shape) not in (1, 2) or not counts:
        raise _damaged(folder, f"{META} does not describe {name}")
    return dtype, shape


def _cut(
    arrays: dict[str, AnyArray], lengths: dict[str, int], lo: int, hi: int
) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Return the arrays of queries lo to hi; where the boundaries are wrong, so are lengths."""
    arrays = {name: np.atleast_1d(values) for name, values in arrays.items()}
    begin = arrays["indptr"][lo : hi + 1]
    rows = slice(*begin[[0, -1]].tolist()) if len(begin) else slice(0)
    cut = {name: v[lo:hi] if name in PER_QUERY else v[rows] for name, v in arrays.items()}
    cut["indptr"] = begin - begin[:1]
    if "X_indptr" in arrays:
        starts = arrays["X_indptr"][rows.start : rows.stop + 1]
        entries = slice(*starts[[0, -1]].tolist()) if len(starts) else slice(0)
        cut |= {name: arrays[name][entries] for name in ("X_data", "X_indices")}
        cut["X_indptr"] = starts - starts[:1]
    counts = {"documents": rows.stop - rows.start, "queries": hi - lo}
    return cut, {**lengths, **counts}


def _features(arrays: dict[str, AnyArray], n_features: int) -> Any:
    if "X" in arrays:
        return arrays["X"]
    starts, values = arrays["X_indptr"], arrays["X_data"]
    # Set one by one: the constructor would read them all to choose a type for them.
    X = sparse.csr_array((len(starts) - 1, n_features), dtype=values.dtype)
    X.data, X.indices, X.indptr = values, arrays["X_indices"], starts
    X.has_canonical_format = True  # from_arrays has seen to it
    return X


_FLOATS, _WHOLE, _ANY = "float32 float64", "int32 int64", "b i u f U S M m"
_SPECS = (
    ArraySpec("y", "float64", ("documents",), low=0, high=HIGHEST_GRADE),
    ArraySpec("indptr", "int64", ("queries+1",), offsets="documents"),
    ArraySpec("qid", _ANY, ("queries",)),
    ArraySpec("query_weight", "float64", ("queries",), low=0, optional=True),
    ArraySpec("sample_weight", "float64", ("documents",), low=0, optional=True),
    ArraySpec("doc_id", _ANY, ("documents",), finite=False, optional=True),
    ArraySpec("position", _ANY, ("documents",), finite=False, optional=True),
)
_GROUP = ArraySpec("group", _ANY, ("documents",), finite=False, optional=True)
_TOPICS = ArraySpec("group", "float64", ("documents", "topics"), low=0)
_DENSE = (ArraySpec("X", _FLOATS, ("documents", "features"), finite=False),)
_SPARSE = (
    ArraySpec("X_data", _FLOATS, ("entries",), finite=False),
    ArraySpec("X_indptr", _WHOLE, ("documents+1",), offsets="entries"),
)


def _specs(arrays: dict[str, AnyArray]) -> tuple[ArraySpec, ...]:
    """Return what the arrays must be, by the layout of features and groups."""
    overlap = "group" in arrays and arrays["group"].ndim == 2
    specs = (*_SPECS, _TOPICS if overlap else _GROUP)
    if "X" in arrays:
        return (*specs, *_DENSE)
    same = str(arrays["X_indptr"].dtype)  # SciPy wants row starts and column numbers of one type
    return (*specs, *_SPARSE, ArraySpec("X_indices", same, ("entries",), below="features"))


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(f"the store {folder} is damaged: {what}; write it again from its source.")


# --- writing ---------------------------------------------------------------------------------


class StoreWriter:
    """Writes a store part by part, in memory for one part; a context manager.

    The first part decides whether features are dense or sparse, how many there are (sparse parts
    may bring more), and which optional arrays there are. The store appears under its name when
    the block ends without an error, and not at all otherwise.
    """

    def __init__(self, path: str | Path) -> None:
        self.target = link_target(path)
        self._partial = partial_beside(self.target, folder=True)
        self.columns: dict[str, _Column] = {}
        self.names: tuple[str, ...] | None = None
        self.optional: set[str] = set()
        self.categories: AllCategories | None = None
        self.queries = DistinctQueries()
        self.documents = self.features = self.entries = 0

    def __enter__(self) -> StoreWriter:
        _refuse_foreign(self.target)
        try:
            self.folder = self._partial.__enter__() / "store"
            self.folder.mkdir()
        except OSError as error:
            raise _unwritable(self.target, error) from None
        return self

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        try:
            for column in self.columns.values():
                column.stream.close()
            if error is None:
                self._finish()
                replace_folder(self.folder, self.target)
        except OSError as problem:
            raise _unwritable(self.target, problem) from None
        finally:
            self._partial.__exit__(None, None, None)
        if isinstance(error, OSError):
            raise _unwritable(self.target, error) from None

    def append(self, part: RankingData) -> None:
        """Add the queries of ``part``; none may have been there before."""
        optional = {name for name in OPTIONAL if getattr(part, name) is not None}
        first = not self.columns
        if first:
            self.names, self.optional, self.features = part.feature_names, optional, part.n_features
            self.categories = part.categories
            self.sparse = sparse.issparse(part.X)
            self._column("indptr", np.zeros(1, np.int64))
            if self.sparse:
                self._column("X_indptr", np.zeros(1, np.int64))
        if part.categories != self.categories:
            raise PartsDifferError("the parts of the data have different categories.")
        if optional != self.optional:
            name = sorted(optional ^ self.optional)[0]
            raise PartsDifferError(f"some parts of the data have {name}, others do not.")
        self.queries.add(part)
        self._append_features(part)
        self._column("indptr", part.indptr[1:] + self.documents)
        for name in ("y", "qid", *sorted(optional)):
            self._column(name, getattr(part, name))
        self.documents += part.n_documents

    def _append_features(self, part: RankingData) -> None:
        if not self.sparse:
            if part.n_features != self.features:
                raise PartsDifferError(
                    f"parts of the data have {self.features} and {part.n_features} features."
                )
            dense = part.X.toarray() if sparse.issparse(part.X) else part.X
            self._column("X", np.ascontiguousarray(dense))
            return
        rows: Any = as_feature_matrix(sparse.csr_array(part.X))
        self.features = max(self.features, part.n_features)
        self._column("X_data", rows.data)
        self._column("X_indices", rows.indices.astype(np.int32, copy=False))
        self._column("X_indptr", rows.indptr[1:].astype(np.int64) + self.entries)
        self.entries += rows.nnz

    def _column(self, name: str, values: AnyArray) -> None:
        if values.dtype.hasobject:
            raise DataError(
                f"{name} holds values of mixed types, which a store cannot keep; make them text."
            )
        if name not in self.columns:
            self.columns[name] = _Column(self.folder / f"{name}.npy", values)
        self.columns[name].append(values)

    def _finish(self) -> None:
        if not self.columns:
            raise DataError(f"{self.target}: there is nothing to write.")
        if self.sparse and self.entries <= _LARGEST_INT32:
            # SciPy wants row starts and column numbers of one type.
            self.columns["X_indptr"].dtype = np.dtype(np.int32)
        elif self.sparse:
            self.columns["X_indices"].dtype = np.dtype(np.int64)
        arrays = {name: column.finish() for name, column in self.columns.items()}
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "documents": self.documents,
            "queries": len(self.queries.seen),
            "features": self.features,
            "feature_names": None if self.names is None else list(self.names),
            "arrays": arrays,
            **({"categories": categories_to_json(self.categories)} if self.categories else {}),
        }
        text = json.dumps(meta, indent=1, ensure_ascii=False)
        (self.folder / META).write_text(text + "\n", encoding="utf-8")


class _Column:
    """An ``.npy`` file that grows; its header, of constant length, is filled in at the end.

    Blocks of another type (text of another width) are written as they come and made equal then.
    """

    def __init__(self, path: Path, values: AnyArray) -> None:
        self.path, self.stream = path, path.open("wb")
        self.dtype, self.row_shape = values.dtype, values.shape[1:]
        self.blocks: list[tuple[np.dtype[Any], int]] = []
        self.stream.write(npy_header(self.dtype, (0, *self.row_shape)))

    def append(self, values: AnyArray) -> None:
        try:
            self.dtype = np.result_type(self.dtype, values.dtype)
        except TypeError:
            raise PartsDifferError(
                f"the parts of {self.path.stem} have types that do not fit together."
            ) from None
        np.ascontiguousarray(values).tofile(self.stream)
        self.blocks.append((values.dtype, len(values)))

    def finish(self) -> dict[str, Any]:
        shape = (sum(rows for _, rows in self.blocks), *self.row_shape)
        if any(dtype != self.dtype for dtype, _ in self.blocks):
            self._make_equal(shape)
        else:
            with self.path.open("r+b") as stream:
                stream.write(npy_header(self.dtype, shape))
        return {"dtype": self.dtype.str, "shape": list(shape)}

    def _make_equal(self, shape: tuple[int, ...]) -> None:
        width = int(np.prod(self.row_shape, dtype=np.int64))
        step = max(1, _BLOCK_BYTES // max(1, width * self.dtype.itemsize))
        draft = self.path.with_suffix(".equal")
        with self.path.open("rb") as source, draft.open("wb") as target:
            source.seek(HEADER_BYTES)
            target.write(npy_header(self.dtype, shape))
            for dtype, rows in self.blocks:
                for lo in range(0, rows, step):
                    count = min(step, rows - lo) * width
                    np.fromfile(source, dtype, count).astype(self.dtype).tofile(target)
        os.replace(draft, self.path)


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an ``.npy`` file; filled up with blanks, it always has one length."""
    text = str({"descr": dtype.str, "fortran_order": False, "shape": shape})
    body = text.ljust(HEADER_BYTES - 11).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def _refuse_foreign(target: Path) -> None:
    if target.is_dir():
        if any(target.iterdir()) and not is_store(target):
            raise DataError(f"{target} is a folder but not a store, and is left as it is.")
    elif target.exists():
        raise DataError(f"{target} is a file; a store is a folder.")


def _unwritable(target: Path, error: OSError) -> DataError:
    return DataError(f"{target} cannot be written: {error.strerror or error}.")


_store = Store()
STORE = Format(
    description="A folder of memory-mapped arrays, for data larger than memory.",
    extensions=Store.extensions,
    read=_store.read,
    write=_store.write,
    read_parts=_store.read_parts,
    open_writer=_store.open_writer,
    row_count=_store.row_count,
    recognises=is_store,
    holds=Store.holds,
)
