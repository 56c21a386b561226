"""Ranked lists as RankLib reads them: float32, a list per run of one query id, in file order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from rankwright.core.types import I64
from rankwright.data.letor import Letor
from rankwright.data.normalize import QueryMinMax, QuerySum, QueryZScore
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold
from rankwright.data.streams import error_at, text_lines
from rankwright.errors import DataError, UsageError, quoted


def read_lists(
    path: str, *, sparse: bool = False, with_relevant: bool = False, n_jobs: int | None = None
) -> RankingData:
    """Read a file; ``with_relevant`` leaves out lists in which nothing is relevant."""
    data = Letor.read(
        path,
        dtype="float32",
        zero_based=False,
        sparse=True if sparse else None,
        lists="adjacent",
        n_jobs=n_jobs,
    )
    if not with_relevant:
        return data
    kept = np.maximum.reduceat(data.y, data.indptr[:-1]) >= 1
    if not kept.any():
        raise DataError(f"{path} has no relevant document, so -hr leaves nothing.")
    return data.select(kept)


def read_features(path: str) -> list[int]:
    """Return the feature numbers in a file: one per line, before any tab; # begins a comment."""
    numbers = []
    for line, text in text_lines(path):
        word = text.partition("#")[0].partition("\t")[0].strip()
        if word:
            if not word.isdecimal() or int(word) < 1:
                error_at(path, line, f"{quoted(word)} is not a feature's number")
            numbers.append(int(word))
    if not numbers:
        raise DataError(f"{path} names no feature.")
    return sorted(set(numbers))


def with_features(data: RankingData, features: Sequence[int]) -> RankingData:
    """Return the data with these features alone, in this order; one it does not have is 0."""
    widest = max(*features, data.n_features)
    X: Any = data.with_n_features(widest).X[:, np.array(features, np.int64) - 1]
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)
    return replace(data, X=X, feature_names=None)


def normalized(data: RankingData, norm: str | None, *, strict: bool = False) -> RankingData:
    """Normalise within lists: RankLib's sum, zscore or linear."""
    if norm is None:
        return data
    if norm == "sum":
        return QuerySum().transform(data)
    if norm == "zscore":
        return QueryZScore(densify=True).transform(data)
    return QueryMinMax(ranklib=strict, densify=True).transform(data)


def differ(one: RankingData, other: RankingData) -> bool:
    """Whether two versions of the same data have different features."""
    first, second = (
        data.X if isinstance(data.X, np.ndarray) else data.X.data for data in (one, other)
    )
    return not np.array_equal(first, second, equal_nan=True)


def first_share(data: RankingData, share: float) -> tuple[RankingData, RankingData]:
    """Return the first ``share`` of the lists and the rest."""
    cut = lists_in_share(data.n_queries, share)
    if not 0 < cut < data.n_queries:
        raise UsageError(f"{data.n_queries} lists cannot be split at {share:g}: a part is empty.")
    return data.select(np.arange(cut)), data.select(np.arange(cut, data.n_queries))


def lists_in_share(n_lists: int, share: float) -> int:
    """Return how many lists a share of them is: the share in float32, a fraction cut off.

    So 0.7 of 60 lists are 41, as in RankLib: its splits are to be had again.
    """
    return int(n_lists * np.float32(share).item())


def folds(data: RankingData, k: int, share: float = 0.0) -> Iterator[Fold]:
    """Yield RankLib's folds: k parts in file order, the rest of the lists in the last.

    With a ``share``, as many lists as the rest comes to are taken from the end of each training
    part, last first, to validate on.
    """
    for train, valid, test in fold_numbers(data.n_queries, k, share):
        chosen = data.select(valid) if len(valid) else None
        yield Fold(data.select(train), chosen, data.select(test))


def fold_numbers(n_lists: int, k: int, share: float = 0.0) -> Iterator[tuple[I64, I64, I64]]:
    """Yield the list numbers of train, valid and test of each fold."""
    for test in parts(n_lists, k):
        train = np.setdiff1d(np.arange(n_lists), test)
        held = int(len(train) * (1.0 - np.float32(share).item())) if share > 0.0 else 0
        if held == len(train):
            raise UsageError(f"-tvs {share:g} leaves no list to train on.")
        cut = len(train) - held
        yield train[:cut], train[cut:][::-1], test


def parts(n_lists: int, k: int) -> list[I64]:
    """Return the numbers of the lists in each of k parts, the rest in the last."""
    if k < 2:
        raise UsageError(f"there must be 2 folds or more, not {k}.")
    if k > n_lists:
        raise DataError(f"{n_lists} lists cannot be cut into {k} folds.")
    cuts = [i * (n_lists // k) for i in range(k)] + [n_lists]
    return [np.arange(lo, hi) for lo, hi in pairwise(cuts)]
