"""Which rankers suit data: an outline of the data, and the two to four candidates it names.

The outline is queries, documents, features, zeros, missing values and grades; what suits data of
which kind was measured, and is reported in docs/choose.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rankwright.core.memory import blocks
from rankwright.data.ranking_data import RankingData

FEW_QUERIES = 30
LONG_LIST = 500
SMALL = 20_000  # documents
MANY_DOCUMENTS = 200_000
SPARSE = 0.1  # share of entries that are not zero
MANY_FEATURES = 500
FEW_FEATURES = 100


@dataclass(frozen=True)
class Outline:
    """What decides which rankers suit data."""

    queries: int
    documents: int
    features: int
    filled: float
    missing: bool
    grades: int
    ratings: bool
    categories: int = 0

    @classmethod
    def of(cls, data: RankingData) -> Outline:
        """Return the outline of ``data``."""
        values = data.X.data[:, None] if sparse.issparse(data.X) else data.X
        entries = max(1, data.n_documents * data.n_features)
        return cls(
            queries=data.n_queries,
            documents=data.n_documents,
            features=data.n_features,
            filled=float(np.count_nonzero(values) / entries),
            missing=any(np.isnan(values[block]).any() for block in blocks(values)),
            grades=len(np.unique(data.y)),
            ratings=_are_ratings(data),
            categories=len(data.categories or ()),
        )

    @property
    def length(self) -> int:
        """Documents of a query, on average."""
        return round(self.documents / max(1, self.queries))

    def __str__(self) -> str:
        if self.ratings:
            return (
                f"{_of(self.queries, 'user', 'users')} with {self.documents:,} ratings of "
                f"{_of(self.features, 'item', 'items')}"
            )
        parts = [
            f"{_of(self.queries, 'query', 'queries')} of about "
            f"{_of(self.length, 'document', 'documents')}",
            _of(self.features, "feature", "features"),
            _of(self.grades, "grade", "grades"),
        ]
        if self.filled < SPARSE:
            parts[1] += f" of which {self.filled:.1%} are not zero"
        if self.categories:
            parts[1] += f" of which {_of(self.categories, 'is a category', 'are categories')}"
        if self.missing:
            parts.append("missing values")
        return ", ".join(parts)


@dataclass(frozen=True)
class Candidate:
    """A ranker that suits the data, with its metric on validation data; None if not fitted."""

    ranker: str
    why: str
    value: float | None = None


def candidates(outline: Outline) -> tuple[Candidate, ...]:
    """Return the rankers that suit data of this outline, the likeliest first."""
    return tuple(Candidate(name, why) for name, why in _suited(outline))


def _suited(outline: Outline) -> Iterator[tuple[str, str]]:
    if outline.ratings:
        yield "cofirank", "ratings: learns users and items, and the order of each user's items"
        yield "mmmf", "ratings: learns users and items, and the levels of the ratings"
    elif outline.missing or outline.categories:
        why = f"{'categories' if outline.categories else 'missing values'}: trees take them"
        yield "xendcg", why
        yield "gbdt", why
        yield "lambdamart", why
    elif outline.filled < SPARSE and outline.features >= MANY_FEATURES:
        yield "domination", "sparse features: few weights, the others exactly 0"
        yield "pamir", "sparse features: a step costs the entries of two rows"
        if outline.documents < SMALL:
            yield "intervalrank", "few documents: trees on sparse features are affordable"
    elif outline.queries < FEW_QUERIES and outline.length < LONG_LIST:
        yield "memr", "few queries: linear, and hard to overfit"
        yield "listnet", "few queries: linear, and hard to overfit"
        yield "intervalrank", "few queries: trees with soft margins"
    elif outline.length >= LONG_LIST:
        yield "memr", "long lists: linear and quick"
        yield "domination", "long lists: good documents above all they dominate"
        yield "gbdt", "long lists: trees that form no pairs"
    else:
        yield "memr", "linear and quick"
        yield "xendcg", "trees that train for NDCG and form no pairs"
        if outline.documents < SMALL and outline.features <= FEW_FEATURES:
            yield "coordinate_ascent", "few features: optimises the metric itself"
        else:
            yield "lambdamart", "many documents: trees that optimise the metric"
        if outline.documents < MANY_DOCUMENTS:
            yield "gbdt", "trees on the grades"


def _of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _are_ratings(data: RankingData) -> bool:
    """Whether each row names one item, as ratings are read: a single 1 among zeros."""
    X = data.X
    if not sparse.issparse(X) or X.nnz != data.n_documents or data.n_features < 2:
        return False
    return bool((X.data == 1.0).all() and (np.diff(X.indptr) == 1).all())
