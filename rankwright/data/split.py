"""Splits of data into train, valid and test by whole queries; folds, and LETOR's Fold folders.

`train_valid_test_split` shuffles the queries in the order of their ids, so the sets do not depend
on the features or on the order of rows and queries. `k_folds` shuffles the numbers of queries, so
the parts do not depend on the ids or on the order of rows within a query. Without shuffling, k
parts have floor(Q / k) queries each and the last one has the remaining queries too, as in RankLib's
``-kcv`` and in LETOR's folds of OHSUMED. With shuffling, the sizes of the parts differ by at most
one.

A LETOR fold is a folder with train.txt, vali.txt and test.txt, each plain or compressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from rankwright.core.parameters import seed_of
from rankwright.core.rng import stream
from rankwright.core.types import I64, AnyArray
from rankwright.data.formats import read_file
from rankwright.data.frames import (
    encoded_features,
    frame_categories,
    frame_columns,
    refuse_roles_as_features,
)
from rankwright.data.ranking_data import RankingData, concatenate, refuse_second_columns
from rankwright.data.streams import COMPRESSED, packed_or_plain
from rankwright.errors import DataError, UsageError

_LETOR_PARTS = ("train", "vali", "test")


class Fold(NamedTuple):
    """Train, valid (None if it was not requested) and test.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import k_folds
    >>> train, valid, test = next(k_folds(rw.synthetic("mq2008", queries=20), k=5))
    >>> train.n_queries, valid.n_queries, test.n_queries
    (12, 4, 4)
    """

    train: RankingData
    valid: RankingData | None
    test: RankingData


def train_valid_test_split(
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group_sizes: Any = None,
    sizes: Sequence[float] = (0.6, 0.2, 0.2),
    shuffle: bool = True,
    random_state: Any = 0,
    **columns: Any,
) -> Fold:
    """Split data into train, validation and test sets, by whole queries.

    The sets depend only on the query ids and ``random_state``, because the queries are shuffled in
    the order of their ids.

    Parameters
    ----------
    X : RankingData, array, sparse matrix or frame
        With a frame, ``y`` and ``qid`` may be names of its columns, as in `RankingData.from_frame`.
    y : array-like (n,) or str
        Grades.
    qid, group_sizes : array-like
        The query of each row, or the number of consecutive rows of each query.
    sizes : three numbers that add up to 1
        Shares of the queries for train, validation and test. The share for validation may be 0.
    shuffle : bool
        Sample the queries at random. Otherwise the first queries are train and the last are test.
    random_state : int, numpy Generator or RandomState, or None
        Seed of the shuffle. None gives a different split at each call.
    **columns
        ``query_weight``, ``sample_weight``, ``doc_id``, ``group``, ``position``: arrays, or names
        of columns of a frame.

    Returns
    -------
    Fold
        A named tuple of `RankingData`: ``train, valid, test``. ``valid`` is None if its share is 0.

    Examples
    --------
    >>> X, y, qid = [[0.1], [0.9], [0.4], [0.2], [0.3], [0.8]], [0, 1, 1, 0, 0, 1], list("aabbcc")
    >>> train, valid, test = train_valid_test_split(X, y, qid=qid, sizes=(1 / 3, 1 / 3, 1 / 3))
    >>> sorted([*train.qid.tolist(), *valid.qid.tolist(), *test.qid.tolist()])
    ['a', 'b', 'c']
    """
    data = _ranking_data(X, y, qid, group_sizes, columns)
    if len(sizes) != 3 or min(sizes) < 0 or abs(sum(sizes) - 1) > 1e-9:
        raise UsageError(
            f"sizes must be three shares that add up to 1, such as (0.6, 0.2, 0.2), not {sizes}."
        )
    order = np.arange(data.n_queries)
    if shuffle:
        random = stream(seed_of(random_state), "train_valid_test_split")
        order = order_of_ids(data.qid)[random.permutation(len(order))]
    parts = np.split(order, np.rint(np.cumsum(sizes)[:2] * data.n_queries).astype(int))
    for name, share, part in zip(Fold._fields, sizes, parts, strict=True):
        if len(part) == 0 and (share > 0 or name != "valid"):
            raise DataError(
                f"{data.n_queries} queries are too few for sizes {tuple(sizes)}: "
                f"none would be left for {name}."
            )
    train, valid, test = (data.select(np.sort(part)) for part in parts)
    return Fold(train, valid if valid.n_queries else None, test)


def k_folds(
    data: RankingData, k: int = 5, *, valid: bool = True, shuffle: bool = True, seed: int = 0
) -> Iterator[Fold]:
    """Yield k folds. Every query is in the test part of exactly one fold.

    Parameters
    ----------
    valid
        Rotate the parts S1, ..., Sk as LETOR does: fold i has the k - 2 parts from Si on for
        training, the next part for validation, and the part after it for testing. If False, fold i
        tests on Si, trains on the other parts, and has no valid part.
    shuffle
        Assign the queries to the parts at random.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import k_folds
    >>> data = rw.synthetic("mq2008", queries=20)
    >>> scores = []
    >>> for train, valid, test in k_folds(data, k=5):
    ...     ranker = rw.IntervalRank().fit(train, eval_set=valid)
    ...     scores.append(rw.evaluate(test, ranker.predict(test), "ndcg@10")["ndcg@10"])
    >>> len(scores)
    5
    """
    fewest = 3 if valid else 2
    if k < fewest:
        kinds = "train, valid and test" if valid else "train and test"
        raise UsageError(f"k must be {fewest} or more for {kinds}, not {k}.")
    if k > data.n_queries:
        raise DataError(f"{data.n_queries} queries cannot be cut into {k} folds.")
    if shuffle:
        order = stream(seed, "k_folds").permutation(data.n_queries)
        parts = [np.sort(part) for part in np.array_split(order, k)]
    else:
        parts = np.split(np.arange(data.n_queries), np.arange(1, k) * (data.n_queries // k))
    return _folds(data, parts, valid)


def _folds(data: RankingData, parts: list[I64], valid: bool) -> Iterator[Fold]:
    for i, part in enumerate(parts):
        if valid:
            *train, middle, last = parts[i:] + parts[:i]
            yield Fold(data.select(np.concatenate(train)), data.select(middle), data.select(last))
        else:
            others = np.concatenate(parts[:i] + parts[i + 1 :])
            yield Fold(data.select(others), None, data.select(part))


def order_of_ids(ids: AnyArray) -> I64:
    """Return the order of query ids. Ids of mixed types are ordered by type, then by text."""
    if ids.dtype.kind != "O":
        return np.argsort(ids, kind="stable").astype(np.int64)
    keys = [(type(value).__name__, str(value)) for value in ids.tolist()]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def _ranking_data(
    X: Any, y: Any, qid: Any, group_sizes: Any, columns: dict[str, Any]
) -> RankingData:
    if isinstance(X, RankingData):
        refuse_second_columns(y=y, qid=qid, group_sizes=group_sizes, **columns)
        return X
    names = frame_columns(X)
    if isinstance(y, str) or isinstance(qid, str):
        if names is None or not (isinstance(y, str) and isinstance(qid, str)):
            raise UsageError(
                "y and qid are both names of columns of a frame, as in "
                "train_valid_test_split(frame, 'grade', qid='query'), or both arrays."
            )
        return RankingData.from_frame(X, qid=qid, label=y, **columns)
    refuse_roles_as_features(names or ())
    categories = {} if names is None else frame_categories(X)
    return RankingData.from_arrays(
        encoded_features(X, names or [], categories) if categories else X,
        y,
        qid=qid,
        group_sizes=group_sizes,
        feature_names=names,
        categories=categories,
        **columns,
    )


# --- LETOR's folders -------------------------------------------------------------------------


def letor_folds(folder: str | Path, **options: Any) -> LetorFolds:
    """Return the folds of a folder in LETOR's layout. Each fold is read when it is indexed.

    Parameters
    ----------
    folder
        A folder with ``Fold1``, ``Fold2``, ..., each with ``train.txt``, ``vali.txt`` and
        ``test.txt``, or with the parts ``S1.txt``, ``S2.txt``, ..., which rotate as in `k_folds`.
        Files may be compressed.
    **options
        Options of the reader, as in ``rankwright.load``.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright.data import letor_folds, save
    >>> data = rw.synthetic("mq2008", queries=25)
    >>> for number in range(5):
    ...     save(data.select(range(5 * number, 5 * number + 5)), f"S{number + 1}.txt")
    >>> [fold.train.n_queries for fold in letor_folds(".")]
    [15, 15, 15, 15, 15]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a folder; LETOR's folds are in Fold1, Fold2, ... of a folder."
        )
    names = sorted(path.name for path in folder.iterdir())
    numbers = _numbered(names, r"Fold(\d+)")
    if numbers:
        files = [
            tuple((_file(folder / f"Fold{i}" / part),) for part in _LETOR_PARTS) for i in numbers
        ]
        return LetorFolds(files, options)
    numbers = _numbered(names, rf"S(\d+)\.txt(?:{'|'.join(map(re.escape, COMPRESSED))})?")
    if len(numbers) < 3:
        raise DataError(
            f"{folder} has neither folders Fold1, Fold2, ... nor three or more parts S1.txt, "
            "S2.txt, ...; name the folder that holds them."
        )
    parts = [_file(folder / f"S{i}") for i in numbers]
    turns = [parts[i:] + parts[:i] for i in range(len(parts))]
    return LetorFolds([(turn[:-2], turn[-2:-1], turn[-1:]) for turn in turns], options)


class LetorFolds(Sequence[Fold]):
    """The folds of a folder. ``folds[i]`` reads one fold; a loop reads one after the other."""

    def __init__(self, files: Sequence[Sequence[Sequence[Path]]], options: dict[str, Any]) -> None:
        self.files = files
        self.options = options

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> Fold: ...
    @overload
    def __getitem__(self, index: slice) -> LetorFolds: ...
    def __getitem__(self, index: int | slice) -> Fold | LetorFolds:
        if isinstance(index, slice):
            return LetorFolds(self.files[index], self.options)
        parts = self.files[index]
        paths = [path for part in parts for path in part]
        loaded = dict(zip(paths, load_alike(paths, **self.options), strict=True))
        return Fold(*(_joined([loaded[path] for path in part]) for part in parts))


def load_alike(paths: Sequence[Path], **options: Any) -> list[RankingData]:
    """Load LETOR files that belong together, with the same numbering and number of features.

    Feature ids start at 0 in all files if one has a feature with id 0.
    """
    name = options.pop("format", None) or "letor"
    loaded = [read_file(path, name, **options) for path in paths]
    numberings = [data.feature_ids for data in loaded if data.feature_ids is not None]
    if len({ids.first for ids in numberings}) > 1:
        options["zero_based"] = True
        loaded = [read_file(path, name, **options) for path in paths]
    widest = max(data.n_features for data in loaded)
    return [
        data
        if data.n_features == widest
        else read_file(path, name, **{**options, "n_features": widest})
        for path, data in zip(paths, loaded, strict=True)
    ]


def fold_files(path: str | Path) -> dict[str, Path]:
    """Return the parts of a LETOR fold: a folder with train.txt, vali.txt and test.txt."""
    folder = Path(path)
    if str(path) == "-" or not folder.is_dir():
        return {}
    files = {part: packed_or_plain(folder / f"{part}.txt") for part in _LETOR_PARTS}
    return {part: file for part, file in files.items() if file} if all(files.values()) else {}


def load_fold(folder: Path, *, part: str | None = None, **options: Any) -> RankingData:
    """Read one part of a fold, or all three parts as one data set."""
    files = fold_files(folder)
    if part not in (*files, "all"):
        raise UsageError(
            f"{folder} has {', '.join(file.name for file in files.values())}; choose with "
            "part='train', 'vali', 'test' or 'all'."
        )
    paths = list(files.values()) if part == "all" else [files[str(part)]]
    return _joined(load_alike(paths, **options))


def _joined(parts: list[RankingData]) -> RankingData:
    return parts[0] if len(parts) == 1 else concatenate(parts)


def _numbered(names: list[str], pattern: str) -> list[int]:
    """Return the numbers 1, 2, ... before the first one that no name contains."""
    numbers = {int(match[1]) for name in names if (match := re.fullmatch(pattern, name))}
    return list(takewhile(numbers.__contains__, count(1)))


def _file(stem: Path) -> Path:
    path = packed_or_plain(f"{stem}.txt")
    if path is None:
        raise DataError(f"{stem}.txt does not exist, neither plain nor compressed.")
    return path
