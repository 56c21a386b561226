"""A folder of memory-mapped arrays, for data larger than memory.

``meta.json`` (format, version, shapes, types, feature names, categories) stands beside plain
``.npy`` files: ``X`` dense, or ``X_data``, ``X_indices`` and ``X_indptr`` for sparse features;
``y``, ``indptr``, ``qid``, and the optional arrays. Opening a store reads the grades, weights and
query boundaries; features, doc ids, groups and positions stay on disk until they are used. Text is
kept in arrays of fixed width. Nothing in a store is ever unpickled.

A store is written to a hidden folder beside its name and renamed when complete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.types import AnyArray
from rankwright.data.categories import AllCategories, from_json
from rankwright.data.parts import EVERYTHING, parts_of
from rankwright.data.ranking_data import RankingData
from rankwright.data.store_writer import (
    HEADER_BYTES,
    META,
    OPTIONAL,
    VERSION,
    StoreWriter,
    is_store,
    npy_header,
)
from rankwright.errors import DataError

_IN_MEMORY = ("y", "sample_weight", "query_weight", "indptr", "qid")
_PER_QUERY = ("qid", "query_weight")


class Store:
    """A folder of memory-mapped arrays, for data larger than memory."""

    extensions: ClassVar[tuple[str, ...]] = (".store",)
    holds: ClassVar[frozenset[str]] = EVERYTHING

    def read(self, path: str | Path) -> RankingData:
        """Open a store; its features are mapped, not read."""
        folder = Path(path)
        meta = _read_meta(folder)
        arrays = {name: _open_array(folder, name, said) for name, said in meta["arrays"].items()}
        for name in _IN_MEMORY:
            if name in arrays:
                arrays[name] = np.array(arrays[name])
        names = meta["feature_names"]
        data = RankingData(
            X=_features(folder, arrays, meta),
            y=arrays["y"],
            indptr=arrays["indptr"],
            qid=arrays["qid"],
            feature_names=None if names is None else tuple(names),
            categories=_categories(folder, meta),
            **{name: arrays[name] for name in OPTIONAL if name in arrays},
        )
        _check_shapes(folder, data)
        return data

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
        or not isinstance(meta.get("features"), int)
        or not isinstance(meta.get("feature_names", 0), list | None)
    ):
        raise _damaged(folder, f"{META} is not complete")
    return meta


def _categories(folder: Path, meta: dict[str, Any]) -> AllCategories | None:
    try:
        return from_json(meta.get("categories"), meta["feature_names"])
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
    except OSError as fault:
        raise _damaged(folder, f"{file.name} cannot be read: {fault.strerror}") from None
    if found != size:
        raise _damaged(folder, f"{file.name} has {found} bytes instead of {size}")
    if header != npy_header(dtype, shape):
        raise _damaged(folder, f"{file.name} is not the array that {META} describes")
    if size == HEADER_BYTES:  # nothing, which cannot be mapped
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(file, dtype, mode="r", offset=HEADER_BYTES, shape=shape))


def _described(folder: Path, name: str, said: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of an array from the description of the store."""
    try:
        dtype, shape = np.dtype(str(said["dtype"])), tuple(said["shape"])
    except (TypeError, KeyError, ValueError, SyntaxError):
        raise _damaged(folder, f"{META} does not describe {name}") from None
    counts = all(isinstance(length, int) and length >= 0 for length in shape)
    if dtype.hasobject or dtype.names or not 1 <= len(shape) <= 2 or not counts:
        raise _damaged(folder, f"{META} does not describe {name}")
    return dtype, shape


def _features(folder: Path, arrays: dict[str, AnyArray], meta: dict[str, Any]) -> Any:
    if "X" in arrays:
        return arrays["X"]
    starts, indices, values = arrays["X_indptr"], arrays["X_indices"], arrays["X_data"]
    if len(indices) != len(values) or starts[-1] != len(values) or starts.dtype != indices.dtype:
        raise _damaged(folder, "the arrays of its sparse features do not fit together")
    # Set one by one: the constructor would read them all to check them.
    X = sparse.csr_array((len(starts) - 1, meta["features"]), dtype=values.dtype)
    X.data, X.indices, X.indptr = values, indices, starts
    X.has_canonical_format = True  # from_arrays has seen to it
    return X


def _check_shapes(folder: Path, data: RankingData) -> None:
    documents, queries = len(data.y), len(data.indptr) - 1
    lengths = {name: getattr(data, name) for name in (*OPTIONAL, "qid")}
    fits = (
        data.X.ndim == 2
        and data.X.shape[0] == documents
        and data.X.dtype in (np.float32, np.float64)
        and data.y.dtype == np.float64
        and data.indptr.dtype == np.int64
        and queries >= 0
        and data.indptr[0] == 0
        and data.indptr[-1] == documents
        and bool((np.diff(data.indptr) >= 0).all())
        and (data.feature_names is None or len(data.feature_names) == data.n_features)
        and all(
            values is None or values.shape == (queries if name in _PER_QUERY else documents,)
            for name, values in lengths.items()
        )
    )
    if not fits:
        raise _damaged(folder, "its arrays do not fit together")


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(f"the store {folder} is damaged: {what}; write it again from its source.")
