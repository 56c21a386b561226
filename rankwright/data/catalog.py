"""Data sets by name: ``digits`` of scikit-learn.

Section 6.2 of DORM [le2007dorm] converts classified rows to ranking data: shuffle them, and sample
the documents of each query from them; the grade of a document is the number of its class. A ranker
must rank nines before eights before sevens. The shuffled rows are divided first, so that no
document is in two parts: one half for train, one quarter each for valid and test. Within a part a
document may be in several queries, but only once in a query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import I64
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.data.split import Fold
from rankwright.errors import UsageError
from rankwright.registry import unknown

PARTS = ("train", "valid", "test")
_ABOUT = "handwritten digits as queries, embedded: 3 x 50 queries, grades 0 to 9"
_CUTS = (0.5, 0.75)

NAMES = {"digits": _ABOUT} | {f"digits/{part}": f"{part} of {_ABOUT}" for part in PARTS}
"""Descriptions of the data sets by name."""


def descriptions() -> dict[str, str]:
    """Return the descriptions for ``rankwright list data``."""
    return {"digits": f"{_ABOUT}; also /train, /valid, /test"}


def load(name: str, **options: Any) -> RankingData:
    """Return the data set called ``name``; see `NAMES`.

    Parameters
    ----------
    **options
        ``queries``, ``documents`` and ``seed``, as for `digits`.
    """
    if name not in NAMES:
        raise UsageError(unknown("data set", name, NAMES))
    parts = [part for part in load_fold(**options) if part is not None]
    part = name.partition("/")[2]
    return parts[PARTS.index(part)] if part else concatenate(parts)


def load_fold(**options: Any) -> Fold:
    """Return train, valid and test of the digits; options as for `digits`."""
    for option in options:
        if option not in ("queries", "documents", "seed"):
            raise UsageError(
                f"the digits have no option '{option}'; they take queries, documents, seed."
            )
    return digits(**options)


def digits(*, queries: int = 50, documents: int = 100, seed: int = 0) -> Fold:
    """Return train, valid and test of queries over 1,797 digits of 8 x 8 pixels, grades 0 to 9.

    Parameters
    ----------
    queries, documents
        Queries of each part, and documents of each query; by default those of the paper.

    Returns
    -------
    Fold
        Query ids are ``train-1``, ...; ``doc_id`` is the number of the row in scikit-learn's data.
    """
    from sklearn.datasets import load_digits

    if queries < 1 or documents < 1:
        raise UsageError(f"queries and documents must be 1 or more, not {queries}, {documents}.")
    source = load_digits()
    rng = stream(seed, "queries_of_classes", "digits")
    made = []
    for part, pool in zip(PARTS, _pools(len(source.data), documents, rng), strict=True):
        rows = np.concatenate([rng.permutation(pool)[:documents] for _ in range(queries)])
        made.append(
            RankingData.from_arrays(
                source.data[rows].astype(np.float32),
                source.target[rows],
                qid=np.repeat([f"{part}-{i + 1}" for i in range(queries)], documents),
                doc_id=rows,
                feature_names=source.feature_names,
            )
        )
    return Fold(*made)


def _pools(n: int, documents: int, rng: np.random.Generator) -> list[I64]:
    """Return the rows that each part samples its documents from."""
    pools = np.split(rng.permutation(n), [int(share * n) for share in _CUTS])
    fewest = min(map(len, pools))
    if documents > fewest:
        raise UsageError(
            f"a query of the digits has {fewest} documents at most, since a part has no more rows; "
            f"not {documents}."
        )
    return pools
