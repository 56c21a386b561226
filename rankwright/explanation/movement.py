"""Why a document stands elsewhere under another model.

Scores of two models have no common unit. Each model's contributions are therefore taken against
the mean of the query's documents and divided by the spread of the query's scores,

    p_f = (c_f(x) - mean over the query of c_f) / std of the query's scores,                   (1)

which sum over features to how many standard deviations above the query's mean the document
scores. What changed is p_f under the second model less p_f under the first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.explanation.pair import formatted
from rankwright.explanation.query import Place, QueryView, document_parts

_LINES = 8


@dataclass(frozen=True, slots=True)
class Shift:
    """What one feature adds to a document, (1), before and after."""

    feature: str
    value: float | str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class MovementExplanation:
    """Why a document moved between two models.

    Attributes
    ----------
    query : str
    before, after : Place
    standing : tuple of float
        Standard deviations above the query's mean, before and after.
    shifts : list of Shift
        By feature, the largest change first.
    passed_by, passed : list of str
        Documents that stood below it and now stand above, and the other way round.
    """

    query: str
    before: Place
    after: Place
    standing: tuple[float, float]
    shifts: list[Shift]
    passed_by: list[str]
    passed: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON holds it."""
        return asdict(self)

    def __str__(self) -> str:
        way = "stays" if self.before.rank == self.after.rank else "moves"
        lines = [
            f"query {self.query}: {self.before.document} {way} from rank {self.before.rank} to "
            f"rank {self.after.rank}",
            f"  from {self.standing[0]:+.3g} to {self.standing[1]:+.3g} standard deviations above "
            "the mean of the query, by feature:",
        ]
        for shift in self.shifts[:_LINES]:
            change = shift.after - shift.before
            if change != 0.0:
                lines.append(
                    f"  {change:+12.6g}  {shift.feature} = {formatted(shift.value)}: "
                    f"{shift.before:+.3g} before, {shift.after:+.3g} after"
                )
        if self.passed_by:
            lines.append(f"  passed by {_some(self.passed_by)}")
        if self.passed:
            lines.append(f"  passes {_some(self.passed)}")
        return "\n".join(lines)


def explain_movement(before: QueryView, after: QueryView, document: Any) -> MovementExplanation:
    """Explain where ``document`` stands under two rankers of the same features."""
    if before.features != after.features:
        raise UsageError(
            "the two models use different features; their contributions cannot be compared."
        )
    row = before.document(document)
    first, second = _standings(before)[row], _standings(after)[row]
    order = np.argsort(-np.abs(second - first)[:-1], kind="stable")
    was_above, is_above = (view.ranks < view.ranks[row] for view in (before, after))
    return MovementExplanation(
        query=str(before.data.qid[0]),
        before=Place.of(before, row),
        after=Place.of(after, row),
        standing=(float(first.sum()), float(second.sum())),
        shifts=[
            Shift(before.features[f], before.value(row, int(f)), float(first[f]), float(second[f]))
            for f in order
        ],
        passed_by=[after.names[i] for i in after.order if is_above[i] and not was_above[i]],
        passed=[
            after.names[i] for i in after.order if was_above[i] and not is_above[i] and i != row
        ],
    )


def _standings(view: QueryView) -> F64:
    parts = document_parts(view.ranker, view.data)
    spread = float(view.scores.std())
    standings: F64 = (parts - parts.mean(axis=0)) / (spread or 1.0)  # (1)
    return standings


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
