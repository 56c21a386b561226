"""Data of the experiments: LETOR's folds, queries drawn from UCI tables, and Jester's ratings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import rankwright as rw
from rankwright.data import Fold, letor_folds
from reproducibility.protocol import Run, generator

SHARES = (0.35, 0.15, 0.5)  # of the rows of a UCI table, for train, validation and test
NOT_RATED = 99.0


def file_in(run: Run, name: str) -> Path:
    """Return a file or folder below the data folder; a file may be compressed."""
    for ending in ("", ".xz", ".gz", ".bz2"):
        if (path := run.data / f"{name}{ending}").exists():
            return path
    raise FileNotFoundError(
        f"{run.data / name} does not exist. Pass the folder of the data sets as --data DIR or as "
        "RANKWRIGHT_DATA."
    )


def ohsumed(run: Run) -> list[Fold]:
    """Return the five folds of LETOR 3.0's OHSUMED."""
    return list(letor_folds(file_in(run, "OHSUMED_LETOR3/QueryLevelNorm")))


def mq2008(run: Run) -> list[Fold]:
    """Return the five folds of LETOR 4.0's MQ2008."""
    return list(letor_folds(file_in(run, "MQ2008")))


# --- queries from classes and numbers ------------------------------------------------------------


def uci(
    run: Run,
    *files: str,
    delimiter: str | None = None,
    queries: int = 50,
    documents: int = 100,
    draws: int = 5,
) -> list[Fold]:
    """Return ranking data drawn from tables of numbers with the class in the last column.

    The lowest class has grade 0. Each draw shuffles the rows, cuts them into train, validation and
    test, and takes ``queries`` times ``documents`` rows at random out of each part: a row may be in
    several queries of its part but in none of another.
    """
    paths = [file_in(run, name) for name in files]
    table = np.concatenate([np.loadtxt(path, delimiter=delimiter) for path in paths])
    X, y = table[:, :-1].copy(), table[:, -1] - table[:, -1].min()
    cuts = np.rint(np.cumsum(SHARES)[:2] * len(y)).astype(int)
    folds = []
    for number in range(draws):
        random = generator(run.seed, "drawn_queries", number)
        parts = []
        for rows in np.split(random.permutation(len(y)), cuts):
            sample = np.concatenate(
                [random.choice(rows, documents, replace=False) for _ in range(queries)]
            )
            sizes = [documents] * queries
            parts.append(rw.RankingData.from_arrays(X[sample], y[sample], group_sizes=sizes))
        folds.append(Fold(*parts))
    return folds


# --- queries from ratings ------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratings:
    """Ratings one by one: user, item and grade, sorted by user and then by item."""

    user: Any
    item: Any
    grade: Any
    n_items: int

    def lists(self, users: Any, mask: Any) -> rw.RankingData:
        """Return the ratings of some users that ``mask`` marks, a query for each user.

        The features of a document have a single 1, in the column of its item.
        """
        rows = np.flatnonzero(np.isin(self.user, users) & mask)
        ones = np.ones(len(rows), np.float32)
        shape = (len(rows), self.n_items)
        X = sparse.csr_array((ones, self.item[rows], np.arange(len(rows) + 1)), shape=shape)
        return rw.RankingData.from_arrays(X, self.grade[rows], qid=self.user[rows])


def read_jester(path: Path, levels: int) -> Ratings:
    """Return Jester's ratings, rounded to whole grades from 0 to ``levels`` - 1.

    The file has a line per user: the number of ratings, then one for each item, 99 for none.
    """
    table = np.loadtxt(path, delimiter=",", ndmin=2)[:, 1:]
    user, item = np.nonzero(table != NOT_RATED)
    y = table[user, item] - table[user, item].min()
    grade = np.minimum(np.floor(y / y.max() * levels), levels - 1.0)
    return Ratings(user, item, grade, table.shape[1])


def jester(
    run: Run,
    *,
    known: int | None = None,
    known_items: int | None = None,
    users: int = 100,
    input_users: int,
    draws: int = 5,
    least: int = 60,
    levels: int = 6,
) -> list[Fold]:
    """Return folds of Jester: users are drawn, and their ratings cut into known and unknown.

    Each draw takes ``users`` users to test on, as many to choose on, and ``input_users`` of whom
    all ratings are known, among those with ``least`` ratings or more. For a user to test or to
    choose on, train has ``known`` ratings drawn at random, or the ratings of ``known_items`` items
    that are the same for all these users. The other ratings are to be ranked.
    """
    data = read_jester(file_in(run, "Jester1/jester-data-1.csv"), levels)
    sizes = np.bincount(data.user)
    folds = []
    for number in range(draws):
        random = generator(run.seed, "drawn_ratings", number)
        drawn = random.permutation(np.flatnonzero(sizes >= least))[: 2 * users + input_users]
        test, valid, whole = np.split(drawn, [users, 2 * users])
        if known_items is None:
            order = np.argsort(data.user + random.random(len(data.user)), kind="stable")
            place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            in_train = np.empty(len(order), bool)
            in_train[order] = place < known
        else:
            in_train = np.isin(data.item, random.permutation(data.n_items)[:known_items])
        in_train |= np.isin(data.user, whole)
        folds.append(
            Fold(
                data.lists(drawn, in_train),
                data.lists(valid, ~in_train),
                data.lists(test, ~in_train),
            )
        )
    return folds
