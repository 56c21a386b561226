"""Explain the ranking of a query by the contributions of the features.

A constant that is added to all scores of a query does not change its ranking, so contributions are
relative to the mean of the query,

    s(x) - mean s = sum_f (c_f(x) - mean c_f).                                                 (1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from rankwright.core.order import ranking
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.frames import Categories
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError, quoted
from rankwright.rankers.inputs import features_like

if TYPE_CHECKING:
    from rankwright.rankers.base import Ranker


# --- one query under one ranker ----------------------------------------------------------------


@dataclass(frozen=True)
class QueryView:
    """The documents of one query and their scores under a fitted ranker.

    Attributes
    ----------
    ranker : fitted ranker
    data : RankingData of the one query, in the columns of the ranker
    """

    ranker: Ranker
    data: RankingData

    @classmethod
    def of(cls, ranker: Ranker, data: RankingData, query: Any) -> QueryView:
        """Return the view of the query whose id, as text, is ``query``."""
        numbers = np.flatnonzero(data.qid.astype(str) == str(query))
        if len(numbers) == 0:
            raise UsageError(
                f"there is no query {quoted(query)}; the data has {_first_names(data.qid)}"
            )
        return cls.at(ranker, data, int(numbers[0]))

    @classmethod
    def at(cls, ranker: Ranker, data: RankingData, number: int) -> QueryView:
        """Return the view of the query with this number in the data, from 0."""
        model = ranker._fitted()
        if hasattr(model, "scores_of") and not hasattr(model, "contributions_of"):
            raise UsageError(
                f"{type(ranker).__name__} scores users and items; there are no features to "
                "explain its rankings by."
            )
        selected = in_columns_of(ranker, data.select(np.array([number])))
        X = selected.X.toarray() if sparse.issparse(selected.X) else selected.X
        return cls(ranker, replace(selected, X=X, row=None))

    @property
    def X(self) -> AnyArray:  # noqa: N802
        """The features, dense."""
        assert isinstance(self.data.X, np.ndarray)
        return self.data.X

    @cached_property
    def scores(self) -> F64:
        """The score of each document."""
        return self.ranker.predict(self.data)

    @cached_property
    def order(self) -> I64:
        """Documents, best first."""
        return ranking(self.scores, self.data.indptr)

    @cached_property
    def ranks(self) -> I64:
        """The rank of each document, from 1."""
        ranks = np.empty(len(self.order), np.int64)
        ranks[self.order] = np.arange(1, len(self.order) + 1)
        return ranks

    @cached_property
    def names(self) -> list[str]:
        """Names of the documents, or their numbers in the query, from 1."""
        if self.data.doc_id is not None:
            return [str(name) for name in self.data.doc_id]
        return [str(number) for number in range(1, self.data.n_documents + 1)]

    @cached_property
    def features(self) -> list[str]:
        """Names of the features, or their numbers, from 1."""
        if self.data.feature_names is not None:
            return list(self.data.feature_names)
        return [str(number) for number in range(1, self.data.n_features + 1)]

    def value(self, row: int, column: int) -> float | str:
        """Return a feature of a document: a number, or the name of its category."""
        return self.shown(column, float(self.X[row, column]))

    def shown(self, column: int, value: float) -> float | str:
        """Return a number, or for the code of a category its name."""
        categories = self.categories(column)
        if categories is None:
            return value
        name = categories.value(value)
        return "missing" if name is None else str(name)

    def categories(self, column: int) -> Categories | None:
        """Return the categories of a feature; None for a number."""
        return (self.data.categories or {}).get(self.features[column])

    def document(self, name: Any) -> int:
        """Return the row of the document with a name, or with a number from 1."""
        text = str(name)
        if text in self.names:
            return self.names.index(text)
        if text.isdecimal() and 1 <= int(text) <= len(self.names):
            return int(text) - 1
        raise UsageError(
            f"query {self.data.qid[0]} has no document {quoted(name)}; it has "
            f"{_first_names(self.names)}"
        )

    def leads_with(self, row: int, other: int, column: int, values: AnyArray) -> F64:
        """Return the score of ``row`` minus that of ``other`` for each value of its ``column``."""
        model: Any = self.ranker.model_
        if not getattr(model, "looks_at_list", False):
            X = np.repeat(self.X[[row]], len(values), axis=0)
            X[:, column] = values
            differences: F64 = model.scores(X) - self.scores[other]
            return differences
        leads = np.empty(len(values))
        for k, value in enumerate(values):  # scores depend on the other documents of the query
            X = self.X.copy()
            X[row, column] = value
            scores = self.ranker.predict(replace(self.data, X=X))
            leads[k] = scores[row] - scores[other]
        return leads


def in_columns_of(ranker: Ranker, data: RankingData) -> RankingData:
    """Return the data with the columns of a fitted ranker, in its order and with its names."""
    names = getattr(ranker, "feature_names_in_", None)
    return replace(
        data,
        X=features_like(ranker, data),
        feature_names=None if names is None else tuple(map(str, names)),
        categories=getattr(ranker, "categories_", None),
    )


def _first_names(names: Sequence[Any] | AnyArray) -> str:
    return ", ".join(map(str, names[:5])) + (", …" if len(names) > 5 else "")


@dataclass(frozen=True, slots=True)
class Place:
    """Rank, score and grade of a document; the grade is None if it is unknown."""

    document: str
    rank: int
    score: float
    grade: float | None

    @classmethod
    def of(cls, view: QueryView, row: int) -> Place:
        """Return the place of document ``row``."""
        score, grade = float(view.scores[row]), float(view.data.y[row])
        rank = int(view.ranks[row])
        return cls(view.names[row], rank, score, None if math.isnan(grade) else grade)

    def __str__(self) -> str:
        grade = "" if self.grade is None else f", grade {self.grade:g}"
        return f"{self.document} (rank {self.rank}, score {self.score:.6g}{grade})"


def document_parts(ranker: Ranker, data: RankingData) -> F64:
    """Return the contribution of each feature to each score, the rest last; the sum is the score.

    Contributions are exact for linear models, SHAP values for trees, and by the rescale rule of
    DeepLIFT for networks. The data must have the columns of the ranker (`in_columns_of`).
    """
    model = ranker.model_
    if hasattr(model, "contributions_of"):
        parts: F64 = model.contributions_of(data)
        return parts
    return model.contributions(data.X)


# --- explanation of a query --------------------------------------------------------------------


_LINES = 10
_FEATURES = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """A document, its score relative to the mean of the query, and the terms of (1)."""

    place: Place
    above_mean: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """The ranking of a query, best first, with the contributions of the features."""

    query: str
    documents: list[Standing]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"query {self.query}: scores against the mean of the query"]
        for standing in self.documents[:_LINES]:
            main = list(standing.parts.items())[:_FEATURES]
            text = ", ".join(f"{name} {part:+.3g}" for name, part in main)
            place = standing.place
            grade = "" if place.grade is None else f"grade {place.grade:g}  "
            lines.append(
                f"  {place.rank:4d}  {place.document}  {grade}{standing.above_mean:+.4g}: {text}, …"
            )
        if len(self.documents) > _LINES:
            lines.append(f"  and {len(self.documents) - _LINES} more")
        return "\n".join(lines)


def explain_query(view: QueryView, documents: list[Any] | None = None) -> QueryExplanation:
    """Explain the ranks of all documents of a query, or of some of them."""
    rows = view.order if documents is None else [view.document(name) for name in documents]
    parts = document_parts(view.ranker, view.data)
    parts = parts - parts.mean(axis=0)  # (1)
    standings = []
    for row in rows:
        order = np.argsort(-np.abs(parts[row, :-1]), kind="stable")
        by_name = {view.features[f]: float(parts[row, f]) for f in order}
        standings.append(Standing(Place.of(view, int(row)), float(parts[row].sum()), by_name))
    return QueryExplanation(str(view.data.qid[0]), standings)
