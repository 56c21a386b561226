"""What all kinds of study data have in common: their options, their shares, and their folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.data.ratings import Ratings
from rankwright.data.split import Fold
from rankwright.data.streams import COMPRESSED, open_bytes, packed_or_plain
from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown


def check_options(
    what: str, given: Mapping[str, Any], make: Callable[..., Any], *, own: Iterable[str]
) -> None:
    """Refuse an option that is neither one of ``make``'s, by keyword, nor of the study's own."""
    taken = {p.name for p in signature(make).parameters.values() if p.kind is p.KEYWORD_ONLY}
    known = sorted({*own, *taken} - {"seed"})
    for option in given:
        if option not in known:
            raise UsageError(unknown(f"option of {what}", option, known))


def ends_of_parts(sizes: Sequence[float], n: int) -> I64:
    """Return where train and valid end among n rows, given the shares of train, valid and test."""
    if len(sizes) != 3 or min(sizes) <= 0.0 or abs(sum(sizes) - 1.0) > 1e-9:
        raise UsageError(f"sizes must be three shares above 0 that add up to 1, not {list(sizes)}.")
    ends: I64 = np.rint(np.cumsum(sizes)[:2] * n).astype(np.int64)
    return ends


def folder_with(data_folder: Path | None, study: str, holds: str) -> Path:
    """Return the folder of all data, or say what it is to hold."""
    if data_folder is not None and data_folder.is_dir():
        return data_folder
    raise DataError(
        f"{study} needs its data: pass --data DIR, or let RANKWRIGHT_DATA name the folder that "
        f"holds {holds}" + ("." if data_folder is None else f"; {data_folder} is not a folder.")
    )


# --- queries from classes and numbers --------------------------------------------------------
# Ranking data from rows of classes: queries are drawn from them, and classes are the grades.
#
# A study names tables of numbers, a row per line with its class at the end::
#
#     classes = { files = ["UCI_digits/optdigits.tra", "UCI_digits/optdigits.tes"], draws = 10 }
#
# The lowest class has grade 0. Each draw shuffles the rows, cuts them into ``sizes`` for train,
# valid and test, and takes ``queries`` times ``documents`` rows at random out of each part: a row
# may be in several queries of its part and in none of another. A draw is a fold of the
# experiment.


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
    """Return features and grades of all rows; numbers are separated by commas or blanks.

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


# --- queries from ratings --------------------------------------------------------------------
# Ranking data from ratings: users are drawn, and what they rated is cut into known and unknown.
#
# A study names a file of ratings (`rankwright.data.ratings`)::
#
#     ratings = { file = "Jester1/jester-data-1.csv.xz", layout = "jester", known = 10, draws = 10 }
#
# Each draw takes ``users`` to test on, as many to choose on, and ``input_users`` of whom all
# ratings are known, all of them among those with ``least`` ratings or more. Of a user to test or
# choose on train has ``known`` ratings, drawn at random, or, with ``items`` in its place, the
# ratings of so many items, the same for all these users; the user's other ratings are to be
# ranked. All rows of an experiment learn from the same train part, which holds the lists of all
# users of the draw.
#
# Grades are ratings less the lowest; ``levels`` rounds them to so many whole numbers from 0, by
# equal parts of their range.


def check_ratings(ratings: Mapping[str, Any]) -> None:
    """Refuse an option that there is not, and a study that does not say what is known."""
    check_options("ratings", ratings, draw_ratings, own=("file", "layout", "levels"))
    if "file" not in ratings:
        raise UsageError("ratings needs file, a name below the data folder.")
    if ("known" in ratings) == ("items" in ratings):
        raise UsageError("ratings needs known or items, one of the two.")


def load_ratings(ratings: Mapping[str, Any], folder: Path, *, seed: int = 0) -> list[Fold]:
    """Read the ratings that a study names below ``folder`` and draw folds from them."""
    options = dict(ratings)
    path = folder / options.pop("file")
    if not path.is_file():
        raise DataError(f"{path} is not there; --data is the folder that holds it.")
    data = Ratings().read(path, layout=options.pop("layout", "triples"))
    levels = options.pop("levels", None)
    return draw_ratings(data if levels is None else in_levels(data, levels), seed=seed, **options)


def in_levels(data: RankingData, levels: int) -> RankingData:
    """Return the data with grades rounded to whole numbers below ``levels``."""
    if levels < 2:
        raise UsageError(f"levels must be 2 or more, not {levels}.")
    top = float(data.y.max(initial=0.0)) or 1.0
    return replace(data, y=np.minimum(np.floor(data.y / top * levels), levels - 1.0))


def draw_ratings(
    data: RankingData,
    *,
    known: int | None = None,
    items: int | None = None,
    users: int = 100,
    input_users: int = 400,
    least: int = 60,
    draws: int = 10,
    seed: int = 0,
) -> list[Fold]:
    """Return a fold for each draw; see the top of this file."""
    many = np.flatnonzero(data.sizes >= least)
    needed = 2 * users + input_users
    if len(many) < needed:
        raise DataError(
            f"{len(many)} users have {least} ratings or more: too few to draw {needed} of them."
        )
    folds = []
    for number in range(draws):
        draw = stream(seed, "drawn_ratings", number)
        chosen = draw.permutation(many)[:needed]
        seen = _seen(data, known, items, draw)
        asked, given = chosen[: 2 * users], chosen[2 * users :]
        seen |= np.isin(data.query_of_row(), given)
        folds.append(
            Fold(
                _lists(data, np.sort(chosen), seen),
                _lists(data, np.sort(asked[users:]), ~seen),
                _lists(data, np.sort(asked[:users]), ~seen),
            )
        )
    return folds


def _seen(
    data: RankingData, known: int | None, items: int | None, draw: np.random.Generator
) -> AnyArray:
    """Return which ratings train may have: some of each user, or those of some items."""
    user = data.query_of_row()
    if items is not None:
        taken = draw.permutation(data.n_features)[:items]
        return np.asarray(data.X[:, np.sort(taken)].sum(axis=1) > 0.0).ravel()
    assert known is not None
    order = np.argsort(user + draw.random(data.n_documents), kind="stable")
    place = np.arange(data.n_documents) - data.indptr[user]
    seen = np.empty(data.n_documents, bool)
    seen[order] = place < known
    return seen


def _lists(data: RankingData, queries: AnyArray, kept: AnyArray) -> RankingData:
    """Return the kept ratings of some users; a user without any is left out."""
    rows = data.rows_of(queries)
    rows = rows[kept[rows]]
    return RankingData.from_arrays(
        data.X[rows],
        data.y[rows],
        qid=data.qid[data.query_of_row()[rows]],
        feature_names=data.feature_names,
    )
