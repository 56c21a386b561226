"""Ranking data from rows of classes: queries are drawn from them, and classes are the grades.

A study names tables of numbers, a row per line with its class at the end::

    classes = { files = ["UCI_digits/optdigits.tra", "UCI_digits/optdigits.tes"], draws = 10 }

The lowest class has grade 0. Each draw shuffles the rows, cuts them into ``sizes`` for train, valid
and test, and takes ``queries`` times ``documents`` rows at random out of each part: a row may be in
several queries of its part and in none of another. A draw is a fold of the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.data.source import COMPRESSED, open_bytes, packed_or_plain
from rankwright.data.split import Fold
from rankwright.errors import DataError, UsageError
from reproducibility.study_data import check_options, ends_of_parts


def check_classes(classes: Mapping[str, Any]) -> None:
    """Refuse an option that there is not, and a study without files."""
    check_options("classes", classes, draw_folds, own=("files",))
    if not classes.get("files"):
        raise UsageError("classes needs files, a list of tables below the data folder.")


def load_classes(classes: Mapping[str, Any], folder: Path, *, seed: int = 0) -> list[Fold]:
    """Read the tables that ``classes`` names below ``folder`` and draw folds from their rows."""
    options = dict(classes)
    X, y = read_classes([folder / name for name in options.pop("files")])
    return draw_folds(X, y, seed=seed, **options)


def read_classes(paths: Sequence[Path]) -> tuple[F64, F64]:
    """Return features and grades of all rows; numbers are parted by commas or blanks.

    A file may be compressed, and then have the ending of that beyond its name.
    """
    tables = [_table(_found(path)) for path in paths]
    for path, table in zip(paths, tables, strict=True):
        if table.shape[1] != tables[0].shape[1]:
            raise DataError(
                f"{path} has {table.shape[1]} columns, {paths[0]} has {tables[0].shape[1]}: "
                "files of one study must be parts of one table."
            )
    whole = np.concatenate(tables)
    return whole[:, :-1].copy(), whole[:, -1] - whole[:, -1].min()


def draw_folds(
    X: F64,
    y: F64,
    *,
    queries: int = 50,
    documents: int = 100,
    draws: int = 10,
    sizes: Sequence[float] = (0.35, 0.15, 0.5),
    seed: int = 0,
) -> list[Fold]:
    """Return a fold for each draw; see the top of this file."""
    cuts = ends_of_parts(sizes, len(y))
    least = min(cuts[0], cuts[1] - cuts[0], len(y) - cuts[1])
    if least < documents:
        raise DataError(
            f"{len(y)} rows in shares of {tuple(sizes)} leave {least} for a part: too few for "
            f"queries of {documents} documents."
        )
    folds = []
    for number in range(draws):
        draw = stream(seed, "drawn_queries", number)
        parts = np.split(draw.permutation(len(y)), cuts)
        made = [_queries(X, y, rows, queries, documents, draw) for rows in parts]
        folds.append(Fold(*made))
    return folds


def _queries(
    X: F64, y: F64, rows: I64, queries: int, documents: int, draw: np.random.Generator
) -> RankingData:
    chosen = np.concatenate([draw.choice(rows, documents, replace=False) for _ in range(queries)])
    return RankingData.from_arrays(X[chosen], y[chosen], group_sizes=[documents] * queries)


def _found(path: Path) -> Path:
    """Return the file, or the compressed one in its place."""
    found = packed_or_plain(path)
    if found is None:
        raise DataError(f"{path} is not there, nor compressed ({', '.join(COMPRESSED)}).")
    return found


def _table(path: Path) -> F64:
    with open_bytes(path) as raw:
        text = raw.read().decode("ascii", errors="replace")
    lines = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    if not lines or len(lines[0]) < 2:
        raise DataError(f"{path} holds no rows of features and a class.")
    for number, cells in enumerate(lines, start=1):
        if len(cells) != len(lines[0]):
            raise DataError(
                f"{path}, row {number}: {len(cells)} columns, where the first row has "
                f"{len(lines[0])}."
            )
    try:
        return np.array(lines, dtype=np.float64)
    except ValueError as fault:
        raise DataError(f"{path}: not all cells are numbers ({fault}).") from None
