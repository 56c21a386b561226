"""Data sets by name: ``digits`` comes with the package, the others lie below ``RANKWRIGHT_DATA``.

A bare name stands for the whole set. LETOR sets also come in their parts (``mq2008/S5``) and
official folds (``mq2008/fold1/train``, ``vali``, ``test``), classified ones, made into queries,
in ``optdigits/train``, ``valid``, ``test``.

Section 6.2 of DORM [le2007dorm] makes ranking data of classified rows: shuffle them, and sample
the documents of each query from them; the grade of a document is the number of its class. So a
ranker must put nines before eights before sevens. We first cut the shuffled rows, so that no
document is in two parts: one half for train, one quarter each for valid and test. Within a part a
document may be in several queries, but only once in a query.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import I64, AnyArray
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.split import Fold, letor_folds, load_alike
from rankwright.data.streams import open_bytes
from rankwright.errors import DataError, UsageError
from rankwright.registry import unknown

PARTS = ("train", "valid", "test")
_CUTS = (0.5, 0.75)


@dataclass(frozen=True, slots=True)
class _Letor:
    """Parts S1 to S5 of a LETOR set, and its five folds."""

    about: str
    folder: str

    def names(self) -> list[str]:
        folds = [f"fold{i}/{part}" for i in range(1, 6) for part in ("train", "vali", "test")]
        return [*(f"S{i}" for i in range(1, 6)), *folds]

    def load(self, part: str, **options: Any) -> RankingData:
        folds = letor_folds(folder() / self.folder, **options).files
        tests = [test[0] for _, _, test in folds]
        parts = [*tests[1:], tests[0]]  # whatever the layout, fold 2 tests on S1, fold 3 on S2
        if part.startswith("S"):
            paths: Sequence[Path] = [parts[int(part[1:]) - 1]]
        elif part:
            fold, _, kind = part.partition("/")
            paths = folds[int(fold[4:]) - 1][("train", "vali", "test").index(kind)]
        else:
            paths = parts
        loaded = load_alike(paths, **options)
        return loaded[0] if len(loaded) == 1 else concatenate(loaded)


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classified rows, made into queries; without files, the digits of scikit-learn."""

    about: str
    files: tuple[str, ...] = ()
    delimiter: str | None = ","
    first_class: int = 0

    def names(self) -> list[str]:
        return list(PARTS)

    def load(self, part: str, **options: Any) -> RankingData:
        for option in options:
            if option not in ("queries", "documents", "seed"):
                raise UsageError(
                    f"this data set has no option '{option}'; it takes queries, documents, seed."
                )
        if not self.files:
            fold = digits(**options)
        else:
            table = np.concatenate([self._table(folder() / file) for file in self.files])
            classes = table[:, -1] - self.first_class
            name = Path(self.files[0]).name.partition(".")[0]
            fold = queries_of_classes(table[:, :-1], classes, name=name, **options)
        parts = [data for data in fold if data is not None]
        return parts[PARTS.index(part)] if part else concatenate(parts)

    def _table(self, path: Path) -> AnyArray:
        with open_bytes(path) as text:
            try:
                return np.loadtxt(text, delimiter=self.delimiter, ndmin=2)
            except ValueError as error:
                raise DataError(f"{path} is not a table of numbers: {error}.") from None


_SETS: dict[str, _Letor | _Classes] = {
    "digits": _Classes("handwritten digits as queries, embedded: 3 x 50 queries, grades 0 to 9"),
    "ohsumed": _Letor(
        "LETOR 3.0 OHSUMED, normalised per query: 106 queries, 16,140 documents, 45 features",
        "OHSUMED_LETOR3/QueryLevelNorm",
    ),
    "ohsumed-raw": _Letor(
        "the same before normalising, 51,490 values missing", "OHSUMED_LETOR3/Feature-null"
    ),
    "mq2008": _Letor("LETOR 4.0 MQ2008: 784 queries, 15,211 documents, 46 features", "MQ2008"),
    "optdigits": _Classes(
        "5,620 optical digits as queries, 64 features, grades 0 to 9",
        ("UCI_digits/optdigits.tra.xz", "UCI_digits/optdigits.tes.xz"),
    ),
    "pendigits": _Classes(
        "10,992 pen-written digits as queries, 16 features, grades 0 to 9",
        ("UCI_digits/pendigits.tra.xz", "UCI_digits/pendigits.tes.xz"),
    ),
    "pageblocks": _Classes(
        "5,473 blocks of page layouts as queries, 10 features, grades 0 to 4",
        ("UCI_pageblocks/page-blocks.data.xz",),
        delimiter=None,
        first_class=1,
    ),
}

NAMES: dict[str, str] = {
    name: data_set.about if not part else f"{part} of {data_set.about}"
    for data_set_name, data_set in _SETS.items()
    for part, name in [
        ("", data_set_name),
        *((part, f"{data_set_name}/{part}") for part in data_set.names()),
    ]
}
"""Every name that `load` takes, with a line on it."""


def descriptions() -> dict[str, str]:
    """Return a line on each data set; names of parts are summed up."""
    parts = {
        _Letor: "; also /S1 to /S5, /fold1/train, /fold1/vali, /fold1/test, ...",
        _Classes: "; also /train, /valid, /test",
    }
    return {name: data_set.about + parts[type(data_set)] for name, data_set in _SETS.items()}


def load(name: str, **options: Any) -> RankingData:
    """Return the data set called ``name``; see `NAMES`.

    Parameters
    ----------
    **options
        For the reader of LETOR files; ``queries``, ``documents`` and ``seed`` for
        classified rows.
    """
    if name not in NAMES:
        near = unknown("data set", name, NAMES if "/" in name else _SETS)
        raise UsageError(near)
    whole, _, part = name.partition("/")
    return _SETS[whole].load(part, **options)


def folder() -> Path:
    """Return the folder that ``RANKWRIGHT_DATA`` names."""
    named = os.environ.get("RANKWRIGHT_DATA")
    if not named:
        raise UsageError(
            "RANKWRIGHT_DATA is not set; let it name the folder that holds the data sets "
            "(the digits need none)."
        )
    path = Path(named)
    if not path.is_dir():
        raise UsageError(f"RANKWRIGHT_DATA names {path}, which is not a folder.")
    return path


# --- classified rows as queries --------------------------------------------------------------


def digits(*, queries: int = 50, documents: int = 100, seed: int = 0) -> Fold:
    """Return train, valid and test of queries over 1,797 digits of 8 x 8 pixels, grades 0 to 9.

    Parameters
    ----------
    queries, documents
        Queries of each part, and documents of each query; by default those of the paper.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    return queries_of_classes(
        source.data,
        source.target,
        name="digits",
        feature_names=source.feature_names,
        queries=queries,
        documents=documents,
        seed=seed,
    )


def queries_of_classes(
    X: AnyArray,
    classes: AnyArray,
    *,
    name: str,
    feature_names: Sequence[str] | None = None,
    queries: int = 50,
    documents: int = 100,
    seed: int = 0,
) -> Fold:
    """Make train, valid and test of classified rows, whose grade is the number of their class.

    Parameters
    ----------
    X, classes
        Rows and their classes, numbered from 0.
    name
        Of the data set; part of the name of its random stream.
    queries, documents
        Queries of each part, and documents of each query.

    Returns
    -------
    Fold
        Query ids are ``train-1``, ...; ``doc_id`` is the row number in ``X``.
    """
    if queries < 1 or documents < 1:
        raise UsageError(f"queries and documents must be 1 or more, not {queries}, {documents}.")
    rng = stream(seed, "queries_of_classes", name)
    made = []
    for part, pool in zip(PARTS, _pools(name, len(X), documents, rng), strict=True):
        rows = np.concatenate([rng.permutation(pool)[:documents] for _ in range(queries)])
        made.append(
            RankingData.from_arrays(
                X[rows].astype(np.float32),
                classes[rows],
                qid=np.repeat([f"{part}-{i + 1}" for i in range(queries)], documents),
                doc_id=rows,
                feature_names=feature_names,
            )
        )
    return Fold(*made)


def _pools(name: str, n: int, documents: int, rng: np.random.Generator) -> list[I64]:
    """Return the rows that each part samples its documents from."""
    pools = np.split(rng.permutation(n), [int(share * n) for share in _CUTS])
    fewest = min(map(len, pools))
    if documents > fewest:
        raise UsageError(
            f"a query of {name} has {fewest} documents at most, since a part has no more rows; "
            f"not {documents}."
        )
    return pools
