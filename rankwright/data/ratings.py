"""Ratings of items by users: each user is a query, each item a document that the user rated.

Grades are the ratings minus the lowest rating, so that they start at 0: stars from 1 to 5 become
0 to 4, Jester's -10 to 10 become 0 to 20. ``shift=0`` keeps ratings as they are, any other number
is taken off instead of the lowest; give it where several files must have the same grades.

Features say which item a document is: a sparse matrix with a column per item and a single 1 in
each row; ``feature_names`` and ``doc_id`` are the items. ``items=[...]`` fixes the columns, which
several files must share; by default they are the items of the file, sorted.

Text has a line per rating: ``user item rating``, with commas, tabs, semicolons, blanks or ``::``
(MovieLens) between, more columns (a time) ignored, and perhaps a first line of names. Jester's
matrix (``layout="jester"``) has a line per user: the number of ratings, then one for each item,
99 where there is none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.delimited import DelimitedSink, is_numeric_cell, one_line
from rankwright.data.frames import checked_ids, checked_numbers, columns_of_frame, ids_of_text
from rankwright.data.ranking_data import RankingData, parts_of
from rankwright.data.streams import (
    display_name,
    error_at,
    number_at,
    open_bytes,
    open_target,
    text_lines,
)
from rankwright.errors import DataError, UsageError, quoted
from rankwright.registry import EXTENSIONS

_LAYOUTS = ("triples", "jester")
_SEPARATORS = ("::", "\t", ",", ";", None)
_USUAL_NAMES = {
    "user": ("user", "user_id", "userid", "uid", "u"),
    "item": ("item", "item_id", "itemid", "movie_id", "movieid", "iid", "i"),
    "rating": ("rating", "rate", "score", "stars", "r"),
}
_NOT_RATED = 99.0
_LINES_PER_BLOCK = 1 << 18


class Ratings:
    """Ratings: lines ``user item rating`` (also MovieLens' ``::``), or Jester's matrix."""

    extensions: ClassVar[tuple[str, ...]] = EXTENSIONS["ratings"]
    holds: ClassVar[frozenset[str]] = frozenset({"doc_id", "qid", "feature_names"})

    def read(
        self,
        path: str | Path,
        *,
        layout: str = "triples",
        shift: float | None = None,
        items: Sequence[Any] | None = None,
    ) -> RankingData:
        """Read ratings.

        Parameters
        ----------
        layout
            ``"triples"`` or ``"jester"``.
        shift
            What is taken off each rating; by default the lowest one.
        items
            The items in the order of their columns; by default those of the file, sorted.
        """
        if layout not in _LAYOUTS:
            raise UsageError(f"layout must be {' or '.join(map(repr, _LAYOUTS))}, not {layout!r}.")
        triples = _read_jester(path) if layout == "jester" else _read_triples(path)
        try:
            return ratings_of_triples(*triples, shift=shift, items=items)
        except DataError as error:
            raise DataError(f"{display_name(path)}: {error}") from None

    def write(self, data: RankingData, path: str | Path) -> None:
        """Write lines ``user,item,rating`` below a line of these names."""
        if data.doc_id is None:
            raise DataError("ratings need the item of each document: the data has no doc_id.")
        with open_target(path) as stream:
            sink = DelimitedSink(stream, ",")
            for part in parts_of(data):
                assert part.doc_id is not None
                users = np.repeat(part.qid, part.sizes)
                sink.write({"user": users, "item": part.doc_id, "rating": part.y})


# --- API -------------------------------------------------------------------------------------


def ratings_of_triples(
    users: Any,
    items_rated: Any,
    ratings: Any,
    *,
    shift: float | None = None,
    items: Sequence[Any] | None = None,
) -> RankingData:
    """Return ranking data of ratings, given one by one in three arrays; see the module's text."""
    users, rated = np.asarray(users), np.asarray(items_rated)
    values = np.asarray(ratings, np.float64)
    known, column = _columns(rated, items)
    _refuse_repeated(users, rated, column)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"rating {row} is {values[row]}; ratings must be finite.")
    lowest = float(values.min(initial=np.inf))
    taken = lowest if shift is None else _as_shift(shift)
    if taken > lowest:
        raise DataError(f"the rating {lowest} is below shift={taken}; grades start at 0.")
    ones, ends = np.ones(len(values), np.float32), np.arange(len(values) + 1)
    X = sparse.csr_array((ones, column, ends), shape=(len(values), len(known)))
    names = [str(item) for item in known.tolist()]
    return RankingData.from_arrays(X, values - taken, qid=users, doc_id=rated, feature_names=names)


def ratings_of_frame(
    frame: Any,
    *,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    shift: float | None = None,
    items: Sequence[Any] | None = None,
) -> RankingData:
    """Return ranking data of a pandas, polars or Arrow frame with a row per rating."""
    column = columns_of_frame(frame)
    return ratings_of_triples(
        checked_ids(column(user), user, "user"),
        checked_ids(column(item), item, "item"),
        checked_numbers(column(rating), rating, "rating"),
        shift=shift,
        items=items,
    )


def ratings_of_matrix(
    matrix: Any,
    *,
    users: Sequence[Any] | None = None,
    items: Sequence[Any] | None = None,
    shift: float | None = None,
) -> RankingData:
    """Return ranking data of a SciPy sparse matrix of users x items.

    Every stored entry is a rating, a stored zero too; ``users`` and ``items`` name rows and
    columns, which are otherwise numbered from 0.
    """
    stored = sparse.coo_array(sparse.csr_array(matrix))
    row, column = (np.asarray(index) for index in stored.coords)
    row_names = np.arange(stored.shape[0]) if users is None else np.asarray(users)
    column_names = np.arange(stored.shape[1]) if items is None else np.asarray(items)
    if (len(row_names), len(column_names)) != stored.shape:
        raise DataError(
            f"{len(row_names)} users and {len(column_names)} items are named for a matrix of "
            f"{stored.shape[0]} x {stored.shape[1]}."
        )
    return ratings_of_triples(
        row_names[row], column_names[column], stored.data, shift=shift, items=column_names.tolist()
    )


# --- columns ---------------------------------------------------------------------------------


def _columns(rated: AnyArray, items: Sequence[Any] | None) -> tuple[AnyArray, I64]:
    """Return the items in the order of their columns, and the column of each rating."""
    if items is None:
        known, column = np.unique(rated, return_inverse=True)
        return known, column.astype(np.int64)
    known = np.asarray(items)
    place = {item: number for number, item in enumerate(known.tolist())}
    try:
        return known, np.array([place[item] for item in rated.tolist()], np.int64)
    except KeyError as unknown:
        raise DataError(f"item {unknown.args[0]!r} is not among the given items.") from None


def _as_shift(shift: Any) -> float:
    with suppress(TypeError, ValueError):
        if np.isfinite(float(shift)):
            return float(shift)
    raise UsageError(f"shift must be a number, not {shift!r}.")


def _refuse_repeated(users: AnyArray, rated: AnyArray, column: I64) -> None:
    _, user = np.unique(users, return_inverse=True)
    pair = user.astype(np.int64) * (int(column.max(initial=0)) + 1) + column
    order = np.argsort(pair, kind="stable")
    twice = np.flatnonzero(pair[order][1:] == pair[order][:-1])
    if len(twice):
        row = int(order[twice + 1].min())
        raise DataError(
            f"user {users[row]} rates item {rated[row]} twice (rating {row}, counted from 0); "
            "keep one."
        )


# --- text ------------------------------------------------------------------------------------


def _read_triples(path: str | Path) -> tuple[AnyArray, AnyArray, F64]:
    """Read in blocks of lines, keeping numbers for the ids met before: memory stays small."""
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    blocks = []
    for user, item, rating in _triples_of_blocks(path):
        codes = [users.setdefault(name, len(users)) for name in user]
        rated = [items.setdefault(name, len(items)) for name in item]
        blocks.append((np.array(codes), np.array(rated), np.array(rating)))
    if not users:
        raise DataError(f"{display_name(path)} has no ratings, lines 'user item rating'.")
    user_codes, item_codes, ratings = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return ids_of_text(list(users))[user_codes], ids_of_text(list(items))[item_codes], ratings


def _triples_of_blocks(path: str | Path) -> Iterator[tuple[list[str], list[str], list[float]]]:
    lines = text_lines(path)
    first = next(lines, None)
    if first is None:
        return
    number, text = first
    separator = next(s for s in _SEPARATORS if s is None or s in text)
    names = _cells(path, number, text, separator)
    if len(names) < 3:
        error_at(path, number, f"'user item rating' is expected, not {quoted(text)}")
    places: tuple[int, ...] = (0, 1, 2)
    if is_numeric_cell(names[2]) and "rating" not in map(str.lower, names):
        lines = chain([first], lines)
    else:
        places = _places(path, number, names)
    while block := list(islice(lines, _LINES_PER_BLOCK)):
        yield _triples(path, block, separator, places)


def _triples(
    path: str | Path,
    block: list[tuple[int, str]],
    separator: str | None,
    places: tuple[int, ...],
) -> tuple[list[str], list[str], list[float]]:
    users, items, ratings = [], [], []
    for number, text in block:
        cells = _cells(path, number, text, separator)
        if len(cells) <= max(places):
            error_at(path, number, f"a user, an item and a rating are expected, not {quoted(text)}")
        user, item, rating = (cells[place] for place in places)
        if not user or not item:
            error_at(path, number, "the user or the item is missing")
        users.append(user)
        items.append(item)
        ratings.append(number_at(rating, path, number, "the rating"))
    return users, items, ratings


def _cells(path: str | Path, number: int, text: str, separator: str | None) -> list[str]:
    if separator in (None, "::"):
        return [cell.strip() for cell in text.split(separator)]
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=str(separator)))]
    except csv.Error as error:
        error_at(path, number, f"{quoted(text)} is not a line of cells: {error}")


def _places(path: str | Path, number: int, names: list[str]) -> tuple[int, ...]:
    """Return where user, item and rating stand, by the names in the first line."""
    found = []
    for role, usual in _USUAL_NAMES.items():
        fitting = [place for place, name in enumerate(names) if name.lower() in usual]
        if len(fitting) != 1:
            what = f"{len(fitting) or 'none'} of them named like the {role} ({', '.join(usual)})"
            error_at(path, number, f"the columns are {', '.join(names)}, and {what}; rename one")
        found.append(fitting[0])
    return tuple(found)


def _read_jester(path: str | Path) -> tuple[I64, I64, F64]:
    with open_bytes(path) as stream:
        content = stream.read()
    if not content.strip():
        raise DataError(f"{display_name(path)} has no ratings.")
    try:
        table = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise DataError(
            f"{display_name(path)} is not a matrix of numbers with commas between: "
            f"{one_line(error)}"
        ) from None
    rated = table[:, 1:] != _NOT_RATED
    for user in np.flatnonzero(rated.sum(axis=1) != table[:, 0])[:1].tolist():
        found = int(rated[user].sum())
        error_at(path, user + 1, f"it says {table[user, 0]:g} ratings and has {found}")
    users, items = np.nonzero(rated)
    return users + 1, items + 1, table[:, 1:][rated]
