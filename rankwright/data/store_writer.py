"""Writing a store part by part: the files of its folder, which appear all at once.

`rankwright.data.store` reads them and says what they are.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import as_feature_matrix
from rankwright.core.types import AnyArray
from rankwright.data.categories import AllCategories, as_json
from rankwright.data.parts import PER_DOCUMENT, DistinctQueries, PartsDifferError
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError

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


class StoreWriter:
    """Writes a store part by part, in memory for one part; a context manager.

    The first part decides whether features are dense or sparse, how many there are (sparse parts
    may bring more), and which optional arrays there are. The store appears under its name when
    the block ends without a fault, and not at all otherwise.
    """

    def __init__(self, path: str | Path) -> None:
        self.target = Path(path)
        self.folder = self.target.with_name(f".{self.target.name}.{os.getpid()}.partial")
        self.columns: dict[str, _Column] = {}
        self.names: tuple[str, ...] | None = None
        self.optional: set[str] = set()
        self.categories: AllCategories | None = None
        self.queries = DistinctQueries()
        self.documents = self.features = self.entries = 0

    def __enter__(self) -> StoreWriter:
        _refuse_foreign(self.target)
        try:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        except OSError as fault:
            raise _unwritable(self.target, fault) from None
        return self

    def __exit__(self, _: Any, fault: BaseException | None, __: Any) -> None:
        try:
            for column in self.columns.values():
                column.stream.close()
            if fault is None:
                self._finish()
                _put_in_place(self.folder, self.target)
        except OSError as problem:
            raise _unwritable(self.target, problem) from None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(fault, OSError):
            raise _unwritable(self.target, fault) from None

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
            **({"categories": as_json(self.categories)} if self.categories else {}),
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


def _put_in_place(folder: Path, target: Path) -> None:
    if not target.exists():
        folder.rename(target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    target.rename(old)
    folder.rename(target)
    shutil.rmtree(old)


def _unwritable(target: Path, fault: OSError) -> DataError:
    return DataError(f"{target} cannot be written: {fault.strerror or fault}.")
