"""Ranking data from ratings: users are drawn, and what they rated is cut into known and unknown.

A study names a file of ratings (`rankwright.data.ratings`)::

    ratings = { file = "Jester1/jester-data-1.csv.xz", layout = "jester", known = 10, draws = 10 }

Each draw takes ``users`` to test on, as many to choose on, and ``input_users`` of whom all ratings
are known, all of them among those with ``least`` ratings or more. Of a user to test or choose on
train has ``known`` ratings, drawn at random, or, with ``items`` in its place, the ratings of so
many items, the same for all these users; the user's other ratings are to be ranked. All rows of an
experiment learn from the same train part, which holds the lists of all users of the draw.

Grades are ratings less the lowest; ``levels`` rounds them to so many whole numbers from 0, by equal
parts of their range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.data.ratings import Ratings
from rankwright.data.split import Fold
from rankwright.errors import DataError, UsageError
from reproducibility.study_data import check_options


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
