"""The folds that rankers are compared on: LETOR's own, those of a named set, or cut from one file.

A folder with Fold1, Fold2, ... (or S1.txt, S2.txt, ...) has its folds, as have the LETOR sets by
name (``ohsumed``); one with train.txt, vali.txt and test.txt is a single fold. Other data is cut
into k folds of whole queries, drawn with a seed. Folds are read or cut when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

from rankwright.data import catalog
from rankwright.data.letor_fold import fold_files
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold, k_folds, letor_folds, load_alike
from rankwright.data.store_writer import is_store
from rankwright.errors import DataError, UsageError


class LazyFolds(Sequence[Fold]):
    """Folds that are made when they are asked for; the last one is kept."""

    def __init__(
        self, count: int, make: Callable[[int], Fold], whole: RankingData | None = None
    ) -> None:
        self._count, self._make = count, make
        self.whole = whole  # what the folds were cut from
        self._last: tuple[int, Fold] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Fold: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fold]: ...
    def __getitem__(self, index: int | slice) -> Fold | list[Fold]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(self._count))]
        number = index + self._count if index < 0 else index
        if not 0 <= number < self._count:
            raise IndexError(f"there are {self._count} folds.")
        if self._last is None or self._last[0] != number:
            self._last = number, self._make(number)
        return self._last[1]


def compared_folds(
    data: Any, *, k: int = 5, seed: int = 0, read: dict[str, Any] | None = None
) -> tuple[str, Sequence[Fold]]:
    """Return a name for ``data`` and its folds.

    Parameters
    ----------
    data : path, name of a data set, RankingData, (train, valid, test), or sequence of such folds
    k
        Folds to cut, where the data does not come in folds.
    read
        Options of the reader of files.
    """
    options = read or {}
    if isinstance(data, Fold):
        return "data", [data]
    if isinstance(data, tuple) and all(isinstance(part, RankingData) for part in data):
        if len(data) != 3:
            raise UsageError(f"a fold is (train, valid, test), three parts and not {len(data)}.")
        return "data", [Fold(*data)]
    if isinstance(data, RankingData):
        return "data", cut_folds(data, k, seed)
    if isinstance(data, str | Path):
        return str(data), _folds_of_path(data, k, seed, options)
    if isinstance(data, Sequence) and data and all(isinstance(fold, Fold) for fold in data):
        return "data", data
    raise UsageError(
        "compare takes a file, a folder of folds, the name of a data set, RankingData, "
        f"(train, valid, test) or folds of rankwright.data, not {type(data).__name__}."
    )


def cut_folds(data: RankingData, k: int, seed: int) -> LazyFolds:
    """Return k folds of ``data``; every query is tested in one of them."""
    k_folds(data, k, seed=seed)  # says at once what is wrong with k
    return LazyFolds(
        k, lambda number: next(islice(k_folds(data, k, seed=seed), number, None)), whole=data
    )


def _folds_of_path(path: str | Path, k: int, seed: int, options: dict[str, Any]) -> Sequence[Fold]:
    name = str(path)
    if Path(path).is_dir():
        files = fold_files(path)
        if files:
            return LazyFolds(1, lambda _: Fold(*load_alike(list(files.values()), **options)))
        if not is_store(path):
            folds = letor_folds(path, **options)
            return LazyFolds(len(folds), folds.__getitem__)
    elif not Path(path).exists():
        names = _official(name)
        if names:
            return LazyFolds(len(names), lambda number: _named_fold(names[number], options))
    from rankwright.data.files import load

    return cut_folds(load(path, **options), k, seed)


def _official(name: str) -> list[list[str]]:
    """Return the names of train, valid and test of each fold of a data set by name."""
    if [f"{name}/{part}" in catalog.NAMES for part in ("train", "valid", "test")] == [True] * 3:
        return [[f"{name}/{part}" for part in ("train", "valid", "test")]]
    found: list[list[str]] = []
    while f"{name}/fold{len(found) + 1}/train" in catalog.NAMES:
        found.append([f"{name}/fold{len(found) + 1}/{part}" for part in ("train", "vali", "test")])
    return found


def _named_fold(names: list[str], options: dict[str, Any]) -> Fold:
    parts = [catalog.load(name, **options) for name in names]
    widest = max(part.n_features for part in parts)
    return Fold(*(part.with_n_features(widest) for part in parts))


def checked_fold(fold: Fold, number: int) -> Fold:
    """Return ``fold``, or say which of its parts does not go with the others."""
    for name, part in (("valid", fold.valid), ("test", fold.test)):
        if part is not None and part.n_features != fold.train.n_features:
            raise DataError(
                f"fold {number + 1}: {name} has {part.n_features} features, train has "
                f"{fold.train.n_features}."
            )
    return fold
