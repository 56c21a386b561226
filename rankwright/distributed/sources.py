"""Where raw parts come from: Dask arrays and frames, files, stores, and data of this process."""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright import registry
from rankwright.core.dtypes import as_float_vector
from rankwright.core.types import F64
from rankwright.data.files import format_of, load
from rankwright.data.frames import USUAL_NAMES, arrays_of_columns, choose_columns, columns_of_frame
from rankwright.data.letor import ReadOptions
from rankwright.data.letor_parts import BlockReader, Text, stream_blocks
from rankwright.data.ranking_data import RankingData, consecutive
from rankwright.data.split import fold_files
from rankwright.data.store import Store
from rankwright.data.streams import display_name, open_bytes
from rankwright.distributed.cluster import import_delayed
from rankwright.distributed.regroup import even_parts
from rankwright.errors import DataError, UsageError

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
    """Return the paths, sorted as people count, their format, and options that serve all alike."""
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
    told = dict(options)
    if name == "letor" and told.get("zero_based", "auto") == "auto":
        told["zero_based"] = _counts_from_zero(paths, told)
    return [str(path) for path in paths], name, told


def _found(files: Any) -> list[Path]:
    path = Path(files)
    if path.is_dir():
        if fold_files(path):
            raise DataError(
                f"{path} is a LETOR fold with train, valid and test data; name one of its files."
            )
        inside = [one for one in path.iterdir() if one.name[0] not in "._" and one.is_file()]
        return [one.absolute() for one in sorted(inside, key=_as_people_count)]
    if path.exists():
        return [path.absolute()]
    matches = [Path(one).absolute() for one in glob.glob(str(path), recursive=True)]
    if not matches:
        raise DataError(f"{files} does not exist, and no file fits it as a pattern.")
    return sorted(matches, key=_as_people_count)


def _as_people_count(path: Path) -> list[Any]:
    """Sort ``part-2`` before ``part-10``."""
    words = re.split(r"(\d+)", str(path))
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words]


def _counts_from_zero(paths: list[Path], options: Mapping[str, Any]) -> bool:
    """Return whether feature ids start at 0: the first file with features decides for all."""
    known = {field.name for field in fields(ReadOptions)}  # others are refused by the reader
    told = ReadOptions(**{name: value for name, value in options.items() if name in known})
    for path in paths:
        reader = BlockReader(display_name(path), told)
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
    part: Any = consecutive(Store().read(folder), *span)
    kept = {name: getattr(part, name) for name in ("y", "qid", "query_weight", "sample_weight")}
    # Copies, so that the arrays of the whole store can go.
    copies: dict[str, Any] = {k: None if v is None else v.copy() for k, v in kept.items()}
    mapped: RankingData = replace(part, **copies)
    return mapped


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
