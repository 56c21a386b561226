"""Store: a folder of memory-mapped arrays, for data larger than memory.

``meta.json`` (format, version, names of arrays and features, categories, the numbering of features
in LETOR text) describes plain ``.npy`` files: ``X`` for dense features, or ``X_data``,
``X_indices`` and ``X_indptr`` for sparse ones; ``y``, ``indptr``, ``qid``, and the optional arrays.
Nothing in a store is unpickled.

Opening a store reads labels, weights and query boundaries. Column indices and row offsets of sparse
features and the characters of text are checked once, because kernels check no bounds. The values
of features, groups and positions stay on disk until they are used.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from rankwright.core.checks import HIGHEST_GRADE, ArraySpec, check_arrays
from rankwright.core.dtypes import as_feature_matrix
from rankwright.core.types import AnyArray
from rankwright.data.formats import Format
from rankwright.data.frames import categories_from_json, categories_to_json
from rankwright.data.ranking_data import (
    EVERYTHING,
    PER_DOCUMENT,
    PER_QUERY,
    DistinctQueries,
    FeatureIds,
    PartsDifferError,
    RankingData,
    common_feature_ids,
    parts_of,
)
from rankwright.data.streams import link_target, partial_beside, replace_folder
from rankwright.errors import DataError
from rankwright.registry import EXTENSIONS

META = "meta.json"
VERSION = 2
OPTIONAL = ("query_weight", *PER_DOCUMENT)
_BLOCK_BYTES = 1 << 24
_LARGEST_INT32 = np.iinfo(np.int32).max

_Array = Literal[
    "X", "X_data", "X_indices", "X_indptr", "y", "indptr", "qid",
    "query_weight", "sample_weight", "doc_id", "group", "position",
]  # fmt: skip


class _Description(msgspec.Struct):
    """Contents of ``meta.json``. Version 1 also has the type and shape of each array."""

    version: int
    features: Annotated[int, msgspec.Meta(ge=0)]
    feature_names: list[str] | None
    arrays: list[_Array] | dict[_Array, Any]
    categories: Any = None
    feature_ids: FeatureIds | None = None
    format: Literal["rankwright store"] = "rankwright store"


def is_store(path: str | Path) -> bool:
    """Return whether ``path`` is a folder whose ``meta.json`` declares a store."""
    try:
        meta = json.loads((Path(path) / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(meta, dict) and meta.get("format") == "rankwright store"


class Store:
    """A folder of memory-mapped arrays, for data larger than memory."""

    def read(self, path: str | Path) -> RankingData:
        """Open a store. Its features are mapped, not read."""
        meta, arrays = _map_arrays(Path(path))
        return _ranking_data(Path(path), meta, arrays)

    def read_queries(self, path: str | Path, lo: int, hi: int) -> RankingData:
        """Open queries lo to hi of a store without reading the others."""
        meta, arrays = _map_arrays(Path(path))
        return _ranking_data(Path(path), meta, _slice_queries(arrays, lo, hi))

    def row_count(self, path: str | Path) -> int | None:
        """Return the number of documents in the store."""
        return len(_map_arrays(Path(path))[1]["y"])

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
        """Open a store for writing part by part.

        The store is written to a hidden folder and renamed if the block ends without an error.
        """
        target = link_target(path)
        if target.is_dir():
            if any(target.iterdir()) and not is_store(target):
                raise DataError(f"{target} is a folder but not a store, and was not changed.")
        elif target.exists():
            raise DataError(f"{target} is a file; a store is a folder.")
        try:
            with partial_beside(target, folder=True) as partial:
                writer = StoreWriter(partial)
                yield writer
                if not writer.columns:
                    raise DataError(f"{target}: there is nothing to write.")
                writer.finish()
                replace_folder(partial, target)
        except OSError as error:
            raise DataError(f"{target} cannot be written: {error.strerror or error}.") from None


# --- reading ---------------------------------------------------------------------------------


def _map_arrays(folder: Path) -> tuple[_Description, dict[str, AnyArray]]:
    """Return the description of a store and its arrays, mapped but not checked."""
    if not is_store(folder):
        reason = "is not a store: a folder with a " + META if folder.exists() else "does not exist"
        raise DataError(f"{folder} {reason}.")
    try:
        meta = msgspec.json.decode((folder / META).read_bytes(), type=_Description)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(folder, f"{META} is not complete: {error}") from None
    if not 1 <= meta.version <= VERSION:
        raise DataError(
            f"{folder} is a store of version {meta.version}; this release reads 1 to {VERSION}."
        )
    required = {"y", "indptr", "qid", *(["X"] if "X" in meta.arrays else _CSR)}
    if missing := sorted(required - set(meta.arrays)):
        raise _damaged(folder, f"{META} is not complete: it lists no array {missing[0]}")
    return meta, {name: _map_array(folder, name) for name in meta.arrays}


def _map_array(folder: Path, name: str) -> AnyArray:
    try:
        # A damaged header may look like one of Python 2, or have a size that overflows.
        with warnings.catch_warnings(action="error"):
            array = npy.open_memmap(folder / f"{name}.npy", mode="r")
        if not array.dtype.itemsize or not array.dtype.isnative or not array.flags.c_contiguous:
            raise ValueError(f"it has the type {array.dtype.str}, or columns that are contiguous")
    except OSError as error:
        what = f"{name}.npy cannot be read: {error.strerror or error}"
        raise _damaged(folder, what) from None
    except Exception as error:  # headers are parsed as Python text, with errors of many types
        raise _damaged(folder, f"{name}.npy is not the array that was written: {error}") from None
    return np.asarray(array)


def _slice_queries(arrays: dict[str, AnyArray], lo: int, hi: int) -> dict[str, AnyArray]:
    """Return the arrays of queries lo to hi. Wrong boundaries give wrong lengths."""

    def span(offsets: AnyArray) -> slice:
        return slice(*offsets[[0, -1]].tolist()) if len(offsets) else slice(0)

    arrays = {name: np.atleast_1d(values) for name, values in arrays.items()}
    boundaries = arrays["indptr"][lo : hi + 1]
    rows = span(boundaries)
    parts = {name: v[lo:hi] if name in PER_QUERY else v[rows] for name, v in arrays.items()}
    parts["indptr"] = boundaries - boundaries[:1]
    if "X_indptr" in arrays:
        starts = arrays["X_indptr"][rows.start : rows.stop + 1]
        parts |= {name: arrays[name][span(starts)] for name in ("X_data", "X_indices")}
        parts["X_indptr"] = starts - starts[:1]
    return parts


_FLOATS, _INTEGERS, _ANY = "float32 float64", "int32 int64", "b i u f U S M m"
_CSR = {"X_data": _FLOATS, "X_indices": _INTEGERS, "X_indptr": _INTEGERS}
_SPECS = (
    ArraySpec("y", "float64", ("documents",), low=0, high=HIGHEST_GRADE),
    ArraySpec("indptr", "int64", ("queries+1",), offsets="documents"),
    ArraySpec("qid", _ANY, ("queries",)),
    ArraySpec("query_weight", "float64", ("queries",), low=0, optional=True),
    ArraySpec("sample_weight", "float64", ("documents",), low=0, optional=True),
    ArraySpec("doc_id", _ANY, ("documents",), finite=False, optional=True),
    ArraySpec("position", _ANY, ("documents",), finite=False, optional=True),
    ArraySpec("X", _FLOATS, ("documents", "features"), finite=False, optional=True),
    ArraySpec("X_data", _FLOATS, ("entries",), finite=False, optional=True),
    ArraySpec("X_indptr", _INTEGERS, ("documents+1",), offsets="entries", optional=True),
    ArraySpec("X_indices", _INTEGERS, ("entries",), below="features", optional=True),
)
_GROUP = ArraySpec("group", _ANY, ("documents",), finite=False, optional=True)
_TOPICS = ArraySpec("group", "float64", ("documents", "topics"), low=0)


def _ranking_data(folder: Path, meta: _Description, arrays: dict[str, AnyArray]) -> RankingData:
    """Return the data of mapped arrays, which are checked."""
    for name in arrays.keys() & {"y", "sample_weight", "query_weight", "indptr", "qid"}:
        arrays[name] = np.array(arrays[name])
    topics = "group" in arrays and arrays["group"].ndim == 2
    names = meta.feature_names
    try:
        check_arrays((*_SPECS, _TOPICS if topics else _GROUP), arrays, features=meta.features)
        if names is not None and len(names) != meta.features:
            raise DataError(f"it has {len(names)} names for {meta.features} features.")
        categories = categories_from_json(meta.categories, names)
        X: Any = arrays.pop("X", None)
        if X is None:
            values, indices, starts = (arrays.pop(name) for name in _CSR)
            if indices.dtype != starts.dtype:  # SciPy needs one type
                raise DataError("row offsets and column indices have different types.")
            # Set one by one: the constructor would read all of them to choose their type.
            X = sparse.csr_array((len(starts) - 1, meta.features), dtype=values.dtype)
            X.data, X.indices, X.indptr = values, indices, starts
            X.has_canonical_format = True  # as in the data that was written
    except (DataError, KeyError, TypeError, ValueError) as error:
        raise _damaged(folder, str(error).rstrip(".")) from None
    return RankingData._of(
        X=X,
        feature_names=None if names is None else tuple(names),
        categories=categories,
        feature_ids=meta.feature_ids,
        **arrays,
    )


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(f"the store {folder} is damaged: {what}; write it again from its source.")


# --- writing ---------------------------------------------------------------------------------


class StoreWriter:
    """Writes the arrays of a store part by part; see `Store.open_writer`.

    The first part decides whether features are dense or sparse, their number (sparse parts may
    have more), and which optional arrays there are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.columns: dict[str, _Column] = {}
        self.queries = DistinctQueries()
        self.documents = self.features = self.entries = 0

    def append(self, part: RankingData) -> None:
        """Add the queries of ``part``, which must differ from all queries before."""
        optional = {name for name in OPTIONAL if getattr(part, name) is not None}
        if not self.columns:
            self.names, self.categories = part.feature_names, part.categories
            self.is_sparse, self.features = sparse.issparse(part.X), part.n_features
            self.optional, self.feature_ids = optional, part.feature_ids
        self.queries.add(part)
        self.feature_ids = common_feature_ids([self.feature_ids, part.feature_ids])
        if part.categories != self.categories or optional != self.optional:
            what = ", ".join(sorted(optional ^ self.optional)) or "categories"
            raise PartsDifferError(f"the parts of the data differ in {what}.")
        if self.is_sparse:
            rows: Any = as_feature_matrix(sparse.csr_array(part.X))
            self._extend("X_data", rows.data)
            self._extend("X_indices", rows.indices.astype(np.int32, copy=False))
            self._extend("X_indptr", rows.indptr.astype(np.int64) + self.entries)
            self.features = max(self.features, part.n_features)
            self.entries += rows.nnz
        elif part.n_features == self.features:
            self._extend("X", part.X.toarray() if sparse.issparse(part.X) else part.X)
        else:
            raise PartsDifferError(
                f"parts of the data have {self.features} and {part.n_features} features."
            )
        self._extend("indptr", part.indptr + self.documents)
        for name in ("y", "qid", *sorted(optional)):
            self._extend(name, getattr(part, name))
        self.documents += part.n_documents

    def _extend(self, name: str, values: AnyArray) -> None:
        if values.dtype.hasobject:
            raise DataError(
                f"{name} contains values of mixed types, which a store cannot keep; "
                "convert them to text."
            )
        if name not in self.columns:
            self.columns[name] = _Column(self.folder / f"{name}.npy", values)
        elif name in ("indptr", "X_indptr"):
            values = values[1:]  # the first offset is the last one of the previous part
        self.columns[name].append(values)

    def finish(self) -> None:
        """Complete the headers of the arrays and write ``meta.json``."""
        if self.is_sparse and self.entries <= _LARGEST_INT32:  # SciPy needs one type for both
            self.columns["X_indptr"].convert(np.dtype(np.int32))
        elif self.is_sparse:
            self.columns["X_indices"].convert(np.dtype(np.int64))
        for column in self.columns.values():
            column.finish()
        meta = _Description(
            version=VERSION,
            features=self.features,
            feature_names=None if self.names is None else list(self.names),
            arrays=sorted(self.columns),  # type: ignore[arg-type]
            categories=categories_to_json(self.categories) if self.categories else None,
            feature_ids=self.feature_ids,
        )
        (self.folder / META).write_bytes(msgspec.json.format(msgspec.json.encode(meta)) + b"\n")


class _Column:
    """An ``.npy`` file that grows. NumPy leaves room in the header for a longer first axis."""

    def __init__(self, path: Path, values: AnyArray) -> None:
        self.path, self.dtype, self.shape = path, values.dtype, (0, *values.shape[1:])
        self._write_header("xb")

    def _write_header(self, mode: str) -> None:
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": self.shape}
        with self.path.open(mode) as stream:
            npy.write_array_header_1_0(stream, header)

    def append(self, values: AnyArray) -> None:
        try:
            self.convert(np.result_type(self.dtype, values.dtype))
        except TypeError:
            raise PartsDifferError(
                f"the parts of {self.path.stem} have types that cannot be combined."
            ) from None
        with self.path.open("ab") as stream:
            np.ascontiguousarray(values, self.dtype).tofile(stream)
        self.shape = (self.shape[0] + len(values), *self.shape[1:])

    def convert(self, dtype: np.dtype[Any]) -> None:
        """Rewrite the file with another type, for example for longer text."""
        if dtype == self.dtype:
            return
        self.finish()
        previous = self.path.rename(self.path.with_suffix(".previous"))
        values = npy.open_memmap(previous, mode="r")
        self.dtype, self.shape = dtype, (0, *self.shape[1:])
        self._write_header("xb")
        for block in np.array_split(values, 1 + values.nbytes // _BLOCK_BYTES):
            self.append(block.astype(dtype))
        del values, block  # Windows cannot delete mapped files
        previous.unlink()

    def finish(self) -> None:
        self._write_header("r+b")


_store = Store()
STORE = Format(
    description="A folder of memory-mapped arrays, for data larger than memory.",
    extensions=EXTENSIONS["store"],
    read=_store.read,
    write=_store.write,
    read_parts=_store.read_parts,
    open_writer=_store.open_writer,
    row_count=_store.row_count,
    recognises=is_store,
    holds=EVERYTHING,
)
