"""Handwritten digits as queries: the demo data, which comes with scikit-learn.

Section 6.2 of DORM [le2007dorm] makes ranking data of classified rows: shuffle them, and sample
the documents of each query from them; the grade of a document is the number of its class. So a
ranker must put nines before eights before sevens. We first cut the shuffled rows, so that no
document is in two parts: one half for train, one quarter each for valid and test. Within a part a
document may be in several queries, but only once in a query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import I64, AnyArray
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold
from rankwright.errors import UsageError

PARTS = ("train", "valid", "test")
_CUTS = (0.5, 0.75)


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
    """Return the rows that each part draws its documents from."""
    pools = np.split(rng.permutation(n), [int(share * n) for share in _CUTS])
    fewest = min(map(len, pools))
    if documents > fewest:
        raise UsageError(
            f"a query of {name} has {fewest} documents at most, since a part has no more rows; "
            f"not {documents}."
        )
    return pools
