"""Why one document stands above another: the lead, feature by feature, and what would end it.

The lead of A over B is split over the features,

    s(A) - s(B) = sum_f d_f + rest,                                                            (1)

by `rankwright.explanation.parts`; the smallest changes that swap them are found by
`rankwright.explanation.swaps`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.data.ranking_data import RankingData
from rankwright.explanation.parts import difference_parts
from rankwright.explanation.query_view import QueryView
from rankwright.explanation.swaps import Swap, smallest_swaps

_LINES = 8
_ROUNDING = 1e-9  # of the largest part: what sums in another order may differ by


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document stands in a ranking."""

    document: str
    rank: int
    score: float
    grade: float

    @classmethod
    def of(cls, view: QueryView, row: int) -> Place:
        """Return the place of document ``row``."""
        score, grade = float(view.scores[row]), float(view.data.y[row])
        return cls(view.names[row], int(view.ranks[row]), score, grade)

    def __str__(self) -> str:
        return f"{self.document} (rank {self.rank}, score {self.score:.6g}, grade {self.grade:g})"


@dataclass(frozen=True, slots=True)
class Part:
    """What one feature adds to a lead: its values in the upper and lower document, and d_f.

    A value is a number, or the name of a category.
    """

    feature: str
    upper: float | str
    lower: float | str
    part: float


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """Why ``upper`` stands above ``lower``.

    Attributes
    ----------
    query : str
    upper, lower : Place
    lead : float
        The difference of the scores.
    parts : list of Part
        (1), the largest first.
    rest : float
    method : str
        How the lead was split.
    swaps : list of Swap
        The smallest change of each feature that swaps the two, the smallest first.
    """

    query: str
    upper: Place
    lower: Place
    lead: float
    parts: list[Part]
    rest: float
    method: str
    swaps: list[Swap]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON holds it."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"query {self.query}: {self.upper}",
            f"  ranks above {self.lower}",
            f"  by {self.lead:.6g}, split over the features by {self.method}:",
        ]
        shown = [part for part in self.parts if part.part != 0.0][:_LINES]
        lines += [
            f"  {part.part:+12.6g}  {part.feature}: {formatted(part.upper)} against "
            f"{formatted(part.lower)}"
            for part in shown
        ]
        others = self.lead - sum(part.part for part in shown)
        if abs(others) > _ROUNDING * max((abs(part.part) for part in shown), default=0.0):
            lines.append(f"  {others:+12.6g}  everything else")
        lines.append(self._smallest())
        return "\n".join(lines)

    def _smallest(self) -> str:
        if not self.swaps:
            return "  no change of a single feature swaps them"
        best = self.swaps[0]
        change = f"  they swap when {best.feature} of {best.document} goes from "
        if isinstance(best.needed, str):
            return f"{change}{best.value} to {best.needed}"
        unseen = "" if best.seen else "; no document of the data has such a value"
        return (
            f"{change}{formatted(best.value)} to {best.needed:.9g} "
            f"({best.size:.2g} standard deviations{unseen})"
        )


def formatted(value: float | str) -> str:
    """Return the value of a feature as text: a number in short, a category by its name."""
    return value if isinstance(value, str) else f"{value:g}"


def explain_pair(view: QueryView, one: Any, other: Any, data: RankingData) -> PairExplanation:
    """Explain the order of two documents, named in either order."""
    rows = sorted((view.document(one), view.document(other)), key=lambda row: view.ranks[row])
    upper, lower = rows[0], rows[-1]
    parts, method = difference_parts(view, upper, lower)
    order = np.argsort(-np.abs(parts[:-1]), kind="stable")
    return PairExplanation(
        query=str(view.data.qid[0]),
        upper=Place.of(view, upper),
        lower=Place.of(view, lower),
        lead=float(view.scores[upper] - view.scores[lower]),
        parts=[
            Part(view.features[f], view.value(upper, f), view.value(lower, f), float(parts[f]))
            for f in order
        ],
        rest=float(parts[-1]),
        method=method,
        swaps=smallest_swaps(view, upper, lower, data),
    )
