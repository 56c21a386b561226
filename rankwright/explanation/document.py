"""Why the documents of a query stand where they do: what each feature adds, against the mean.

A ranking does not change when all scores of a query do, so a document's contributions are taken
against the mean of its query,

    s(x) - mean s = sum_f (c_f(x) - mean c_f).                                                 (1)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.explanation.pair import Place
from rankwright.explanation.parts import document_parts
from rankwright.explanation.query_view import QueryView

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
            lines.append(
                f"  {standing.place.rank:4d}  {standing.place.document}  "
                f"grade {standing.place.grade:g}  {standing.above_mean:+.4g}: {text}, …"
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
