"""LightGBM's and XGBoost's text files: queries by their sizes in a file beside the data.

``train.txt`` (svmlight lines without ``qid:``, whose feature ids LightGBM counts from 0) or
``train.csv`` (the grade first, with or without a line of names) comes with ``train.txt.query``: the
number of rows of each query, one per line. ``train.txt.weight`` and ``train.txt.position``, one
value per row, are read where they are there. Queries have no ids and are numbered from 0. Of
XGBoost, ``train.txt.group`` holds the sizes, and ``train.txt.weight`` one value per query.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from scipy import sparse as sp

from rankwright.core.types import I64
from rankwright.data.delimited import DelimitedSink, column_names, is_numeric_cell, read_columns
from rankwright.data.frames import (
    USUAL_NAMES,
    checked_numbers,
    default_names,
    feature_columns,
    feature_matrix,
    ids_of_text,
)
from rankwright.data.letor import Letor
from rankwright.data.ranking_data import RankingData, parts_of
from rankwright.data.streams import (
    beside,
    decoded,
    display_name,
    error_at,
    number_at,
    open_bytes,
    open_target,
    plain_suffix,
    text_lines,
)
from rankwright.errors import DataError, quoted
from rankwright.registry import EXTENSIONS, unknown

_MOST_DIGITS = 12  # of the size of a query
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


class LightGBMText:
    """LightGBM's text or csv without query ids, their sizes in FILE.query (XGBoost: FILE.group)."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["lightgbm"]
    holds: ClassVar[frozenset[str]] = frozenset({"sample_weight", "position", "empty queries"})

    @staticmethod
    def has_no_query_ids(path: str | Path) -> bool:
        """Return whether the first line of ``path`` names no query, so that sizes are needed."""
        if not Path(path).is_file():
            return False
        with open_bytes(path) as stream:
            lines = (line for line in stream if line.strip() and not line.startswith(b"#"))
            first = next(lines, b"")
        if plain_suffix(path) in _SEPARATORS:
            names = first.decode(errors="replace").lower().strip().split(_separator(path))
            return not any(name.strip('" ') in USUAL_NAMES["qid"] for name in names)
        return b"qid:" not in first

    def read(
        self,
        path: str | Path,
        *,
        zero_based: bool = True,
        dtype: Literal["float64", "float32"] | None = None,
        label: str | None = None,
        absent: Literal["zero", "missing"] = "zero",
        sparse: bool | None = None,
        n_features: int | None = None,
        n_jobs: int | None = None,
    ) -> RankingData:
        """Read ``path`` with the files beside it.

        Parameters
        ----------
        zero_based
            Whether feature ids count from 0, as LightGBM takes them; text only.
        label
            Name of the column of grades, by default the first; csv only.
        absent, sparse, n_features, n_jobs
            As for LETOR text; text only.
        """
        sizes_file = beside(path, "query", "group")
        if sizes_file is None:
            raise DataError(f"{path}.query does not exist; it holds the sizes of the queries.")
        sizes = _read_sizes(sizes_file)
        if plain_suffix(path) in _SEPARATORS:
            data = _read_csv(path, sizes, label, dtype)
        else:
            data = Letor().read(
                path,
                zero_based=zero_based,
                dtype=dtype or "float64",
                absent=absent,
                sparse=sparse,
                n_features=n_features,
                group_sizes=sizes,
                n_jobs=n_jobs,
            )
        return _with_files_beside(data, path, by_query=sizes_file.suffix == ".group")

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write ``path`` and the files beside it; ids of features count from 0."""
        if str(path) == "-":
            raise DataError("LightGBM's format is several files and cannot go to standard output.")
        beside = {"query": data.sizes, "weight": data.sample_weight, "position": data.position}
        with ExitStack() as files:  # none of them appears before all are written
            for kind, values in beside.items():
                if values is not None:
                    stream = files.enter_context(open_target(f"{path}.{kind}"))
                    stream.write("".join(f"{value}\n" for value in values.tolist()).encode())
            stream = files.enter_context(open_target(path))
            if plain_suffix(path) in _SEPARATORS:
                _write_csv(data, stream, _separator(path))
            else:
                _write_text(data, stream, Path(path).parent)
        for kind, values in beside.items():
            if values is None:  # of the file that was there before
                Path(f"{path}.{kind}").unlink(missing_ok=True)


def _separator(path: str | Path) -> str:
    return _SEPARATORS[plain_suffix(path)]


# --- reading ---------------------------------------------------------------------------------


def _values(path: Path) -> Iterator[tuple[int, str]]:
    return ((line, text.strip()) for line, text in text_lines(path))


def _read_sizes(path: Path) -> I64:
    sizes = []
    for line, text in _values(path):
        if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
            error_at(path, line, f"the size of a query is a whole number, not {quoted(text)}")
        sizes.append(int(text))
    return np.array(sizes, np.int64)


def _with_files_beside(data: RankingData, path: str | Path, *, by_query: bool) -> RankingData:
    """Add weights, which are those of queries ``by_query``, and positions."""
    weight_file, position_file = beside(path, "weight"), beside(path, "position")
    if weight_file is not None:
        weights = []
        for line, text in _values(weight_file):
            weights.append(number_at(text, weight_file, line, "the weight"))
            if not 0 <= weights[-1] < np.inf:
                error_at(weight_file, line, f"a weight is finite and 0 or more, not {text}")
        _check_length(weight_file, weights, data, by_query=by_query)
        found = np.array(weights)
        data = replace(data, query_weight=found) if by_query else replace(data, sample_weight=found)
    if position_file is not None:
        positions = [text for _, text in _values(position_file)]
        _check_length(position_file, positions, data)
        data = replace(data, position=ids_of_text(positions))
    return data


def _check_length(
    path: Path, values: list[Any], data: RankingData, *, by_query: bool = False
) -> None:
    count, what = (data.n_queries, "queries") if by_query else (data.n_documents, "documents")
    if len(values) != count:
        raise DataError(f"{path} has {len(values)} lines for {count} {what}.")


def _read_csv(path: str | Path, sizes: I64, label: str | None, dtype: str | None) -> RankingData:
    with open_bytes(path) as stream:
        content = io.BytesIO(stream.read())
    separator = _separator(path)
    cells = decoded(content.readline(), path, 1).strip("\r\n").split(separator)
    named = not all(is_numeric_cell(cell) for cell in cells)
    content.seek(0)
    names = column_names(content, separator) if named else [str(n) for n in range(len(cells))]
    grade = names[0] if label is None else label
    if grade not in names:
        raise DataError(f"{display_name(path)}: {unknown('column', grade, names)}")
    features = [name for name in names if name != grade]
    content.seek(0)
    try:
        column = read_columns(content, separator, names, [], named=named)
        y = checked_numbers(column(grade), grade, "grade")
        X = feature_matrix(column, features, len(y))
    except DataError as error:
        raise DataError(f"{display_name(path)}: {error}") from None
    if len(y) != sizes.sum():
        raise DataError(
            f"{display_name(path)} has {len(y)} rows, but the sizes of the queries add up to "
            f"{int(sizes.sum())}."
        )
    called = features if named and tuple(features) != default_names(len(features)) else None
    return RankingData.from_arrays(
        X.astype(dtype or X.dtype, copy=False), y, group_sizes=sizes, feature_names=called
    )


# --- writing ---------------------------------------------------------------------------------


def _write_text(data: RankingData, stream: BinaryIO, folder: Path) -> None:
    """Write LETOR text and take the query ids out, which LightGBM refuses."""
    unnamed = replace(data, doc_id=None, qid=np.arange(data.n_queries))
    with TemporaryDirectory(dir=folder, prefix=".lightgbm.") as drafts:
        draft = Path(drafts) / "draft.txt"
        Letor().write(unnamed, draft, zero_based=True)
        with draft.open("rb") as lines:
            for line in lines:
                grade, _, *features = line.rstrip(b"\n").split(b" ", 2)
                stream.write(b" ".join((grade, *features)) + b"\n")


def _write_csv(data: RankingData, stream: BinaryIO, separator: str) -> None:
    """Write the grade and the features, below a line of names where they have any."""
    if "label" in (data.feature_names or ()):
        raise DataError("a feature is named 'label', as is the column of grades; rename it.")
    sink = DelimitedSink(stream, separator, header=data.feature_names is not None)
    for part in parts_of(data):
        X = part.X.toarray() if sp.issparse(part.X) else part.X
        columns = dict(zip(feature_columns(part), X.T, strict=True))
        sink.write({"label": part.y, **columns})
