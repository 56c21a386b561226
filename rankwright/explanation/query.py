"""Why the documents of a query stand where they do: what each feature adds, against the mean.

A ranking does not change when all scores of a query do, so a document's contributions are taken
against the mean of its query,

    s(x) - mean s = sum_f (c_f(x) - mean c_f).                                                 (1)
"""

from __future__ import annotations

import math
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
    """The documents of one query, as a fitted ranker sees them.

    Attributes
    ----------
    ranker : fitted ranker
    data : RankingData of the one query, in the columns of the ranker
    """

    ranker: Ranker
    data: RankingData

    @classmethod
    def of(cls, ranker: Ranker, data: RankingData, query: Any) -> QueryView:
        """Return the view of the query whose id reads as ``query``."""
        return cls.at(ranker, data, _place(data, query))

    @classmethod
    def at(cls, ranker: Ranker, data: RankingData, place: int) -> QueryView:
        """Return the view of the query that stands at ``place``, from 0."""
        model = ranker._fitted()
        if hasattr(model, "scores_of") and not hasattr(model, "contributions_of"):
            raise UsageError(
                f"{type(ranker).__name__} scores users and items; there are no features to "
                "explain its rankings by."
            )
        one = in_columns_of(ranker, data.select(np.array([place])))
        X = one.X.toarray() if sparse.issparse(one.X) else one.X
        return cls(ranker, replace(one, X=X, row=None))

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
        """The documents' names, or else their numbers in the query, from 1."""
        if self.data.doc_id is not None:
            return [str(name) for name in self.data.doc_id]
        return [str(number) for number in range(1, self.data.n_documents + 1)]

    @cached_property
    def features(self) -> list[str]:
        """The features' names, or else their numbers, from 1."""
        if self.data.feature_names is not None:
            return list(self.data.feature_names)
        return [str(number) for number in range(1, self.data.n_features + 1)]

    def value(self, row: int, column: int) -> float | str:
        """Return a feature of a document: a number, or the name of its category."""
        return self.shown(column, float(self.X[row, column]))

    def shown(self, column: int, value: float) -> float | str:
        """Return a value of a feature as a user knows it: a number, or the name of a category."""
        own = self.categories(column)
        if own is None:
            return value
        return "missing" if own.value(value) is None else str(own.value(value))

    def categories(self, column: int) -> Categories | None:
        """Return the categories of a feature, None where it is a number."""
        return (self.data.categories or {}).get(self.features[column])

    def document(self, name: Any) -> int:
        """Return the row of the document called ``name``, or else of that number, from 1."""
        try:
            return self.names.index(str(name))
        except ValueError:
            number = str(name)
            if number.isdecimal() and 1 <= int(number) <= len(self.names):
                return int(number) - 1
            shown = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
            raise UsageError(
                f"query {self.data.qid[0]} has no document {quoted(name)}; it has {shown}"
            ) from None

    def leads_with(self, row: int, other: int, column: int, values: AnyArray) -> F64:
        """Return by how much ``row`` leads ``other`` for each value of its feature ``column``."""
        model: Any = self.ranker.model_
        if not getattr(model, "looks_at_list", False):
            X = np.repeat(self.X[[row]], len(values), axis=0)
            X[:, column] = values
            alone: F64 = model.scores(X) - self.scores[other]
            return alone
        leads = np.empty(len(values))
        for k, value in enumerate(values):  # scores depend on the other documents of the query
            X = self.X.copy()
            X[row, column] = value
            scores = self.ranker.predict(replace(self.data, X=X))
            leads[k] = scores[row] - scores[other]
        return leads


def in_columns_of(ranker: Ranker, data: RankingData) -> RankingData:
    """Return the data with the columns that a fitted ranker knows, in its order and names."""
    names = getattr(ranker, "feature_names_in_", None)
    kept = None if names is None else tuple(str(name) for name in names)
    categories = getattr(ranker, "categories_", None)
    return replace(data, X=features_like(ranker, data), feature_names=kept, categories=categories)


def _place(data: RankingData, query: Any) -> int:
    places = np.flatnonzero(data.qid.astype(str) == str(query))
    if len(places) == 0:
        shown = ", ".join(str(qid) for qid in data.qid[:5]) + (", …" if data.n_queries > 5 else "")
        raise UsageError(f"there is no query {quoted(query)}; the data has {shown}")
    return int(places[0])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document stands in a ranking; its grade may not be known."""

    document: str
    rank: int
    score: float
    grade: float | None

    @classmethod
    def of(cls, view: QueryView, row: int) -> Place:
        """Return the place of document ``row``."""
        score, grade = float(view.scores[row]), float(view.data.y[row])
        known = None if math.isnan(grade) else grade
        return cls(view.names[row], int(view.ranks[row]), score, known)

    def __str__(self) -> str:
        grade = "" if self.grade is None else f", grade {self.grade:g}"
        return f"{self.document} (rank {self.rank}, score {self.score:.6g}{grade})"


def document_parts(ranker: Ranker, data: RankingData) -> F64:
    """Return what each feature adds to the score of each document, and the rest last.

    A linear model's contributions are exact, a tree model's are SHAP values, and a network's come
    from DeepLIFT's rescale rule; each sums to the score.

    The data has the columns of the ranker, as a `QueryView` has them.
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
    """A document, how far it lies above the mean of its query, and (1) by feature."""

    place: Place
    above_mean: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """The ranking of a query, best first, with what puts each document there."""

    query: str
    documents: list[Standing]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON holds it."""
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
        rest = len(self.documents) - _LINES
        if rest > 0:
            lines.append(f"  and {rest} more")
        return "\n".join(lines)


def explain_query(view: QueryView, documents: list[Any] | None = None) -> QueryExplanation:
    """Explain the ranking of a query, or the places of some of its documents."""
    rows = view.order if documents is None else [view.document(name) for name in documents]
    parts = document_parts(view.ranker, view.data)
    parts = parts - parts.mean(axis=0)  # (1)
    found = []
    for row in rows:
        order = np.argsort(-np.abs(parts[row, :-1]), kind="stable")
        by_name = {view.features[f]: float(parts[row, f]) for f in order}
        found.append(Standing(Place.of(view, int(row)), float(parts[row].sum()), by_name))
    return QueryExplanation(str(view.data.qid[0]), found)
