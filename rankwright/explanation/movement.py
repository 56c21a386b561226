"""Explain why two models give a document different ranks.

Scores of two models have no common unit. The contributions of each model are therefore relative to
the mean of the query, in standard deviations of its scores,

    p_f = (c_f(x) - mean over the query of c_f) / std of the query's scores.                   (1)

Their sum over features is the score of the document in standard deviations above the mean. The
explanation is the difference of p_f between the models.
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
    """The value of a feature, and (1) before and after."""

    feature: str
    value: float | str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class MovementExplanation:
    """Why a document has another rank under another model.

    Attributes
    ----------
    query : str
    before, after : Place
    standing : tuple of float
        Score in standard deviations above the mean of the query, before and after.
    shifts : list of Shift
        Of each feature, the largest change first.
    passed_by, passed : list of str
        Documents that were below it and are now above it, and the reverse.
    """

    query: str
    before: Place
    after: Place
    standing: tuple[float, float]
    shifts: list[Shift]
    passed_by: list[str]
    passed: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "stays" if self.before.rank == self.after.rank else "moves"
        lines = [
            f"query {self.query}: {self.before.document} {verb} from rank {self.before.rank} to "
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
    """Explain the ranks of ``document`` under two rankers with the same features."""
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
