"""Explain why one document is ranked above another.

The difference of the scores of documents A and B is split over the features,

    s(A) - s(B) = sum_f d_f + rest,                                                            (1)

and values of each feature in the data are tried for the smallest change that swaps the documents.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.explanation.query import Place, QueryView, document_parts
from rankwright.models.missing import filled

_LINES = 8
_ROUNDING = 1e-9  # share of the largest part, by which sums in another order may differ


@dataclass(frozen=True, slots=True)
class Part:
    """The values of a feature in both documents, numbers or names of categories, and d_f."""

    feature: str
    upper: float | str
    lower: float | str
    part: float


@dataclass(frozen=True, slots=True)
class Swap:
    """A change of one feature of one document that swaps two documents.

    Attributes
    ----------
    document, feature : str
    value, needed : float or str
        Value of the feature, and the value in the data that swaps the documents; names of
        categories.
    size : float
        The change in standard deviations of the feature; 1 for a category.
    """

    document: str
    feature: str
    value: float | str
    needed: float | str
    size: float


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """Why ``upper`` is ranked above ``lower``.

    Attributes
    ----------
    query : str
    upper, lower : Place
    lead : float
        Difference of the scores.
    parts : list of Part
        (1), the largest first.
    rest : float
    method : str
        How the difference was split.
    swaps : list of Swap
        The smallest change of each feature that swaps the documents, the smallest first.
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
        """Return the explanation as JSON values."""
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
        if not self.swaps:
            return "\n".join([*lines, "  no value of a single feature in the data swaps them"])
        swap = self.swaps[0]
        size = "" if isinstance(swap.needed, str) else f" ({swap.size:.2g} standard deviations)"
        lines.append(
            f"  they swap when {swap.feature} of {swap.document} goes from "
            f"{formatted(swap.value)} to {formatted(swap.needed)}{size}"
        )
        return "\n".join(lines)


def formatted(value: float | str) -> str:
    """Return the value of a feature as text."""
    return value if isinstance(value, str) else f"{value:g}"


def explain_pair(view: QueryView, one: Any, other: Any, data: RankingData) -> PairExplanation:
    """Explain the order of two documents, named in either order."""
    rows = sorted((view.document(one), view.document(other)), key=lambda row: view.ranks[row])
    upper, lower = rows[0], rows[-1]
    parts, method = _difference_parts(view, upper, lower)
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
        swaps=_smallest_swaps(view, upper, lower, data),
    )


# --- the difference by feature -------------------------------------------------------------------
# In general, d_f is the difference of the contributions of feature f to both scores. There are two
# exceptions. The gradient of a network is integrated along the line from the lower document B to
# the upper document A (integrated gradients, `sundararajan2017axiomatic`),
#
#     d_f = (A_f - B_f) * integral over t in [0, 1] of  ds/dx_f at B + t (A - B),                (2)
#
# and for a kernel model, which has no contributions, the features of B are replaced by those of A
# one after another,
#
#     d_f = mean over orders of  s(with f changed) - s(before),                                  (3)
#
# over orders sampled at random, each with its reverse. The sum of d_f is s(A) - s(B) in (3). In (2)
# it differs by the error of the numerical integration, which is shown as the rest.

_ORDERS = 32
_NODES = 64


def _difference_parts(view: QueryView, upper: int, lower: int) -> tuple[F64, str]:
    """Return d_f of each feature, the rest last, and the method."""
    model: Any = view.ranker.model_
    if hasattr(model, "gradients") and not model.looks_at_list:
        return _integrated_gradients(view, upper, lower), "integrated gradients"
    try:
        parts = document_parts(view.ranker, view.data)
    except UsageError:  # no contributions
        return _by_orders(view, upper, lower), "Shapley values over sampled orders"
    method = "weights" if hasattr(model, "coef") else getattr(model, "split_by", "SHAP values")
    return parts[upper] - parts[lower], method


def _integrated_gradients(view: QueryView, upper: int, lower: int) -> F64:
    model: Any = view.ranker.model_
    B, A = filled(view.X[[lower, upper]], model.fill, "network").astype(np.float64)
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    gradients = model.gradients(B + np.outer((points + 1.0) / 2.0, A - B))
    parts = (A - B) * (weights / 2.0 @ gradients)  # (2)
    return np.append(parts, view.scores[upper] - view.scores[lower] - parts.sum())


def _by_orders(view: QueryView, upper: int, lower: int) -> F64:
    A, B = view.X[upper], view.X[lower]
    differ = np.flatnonzero(~((A == B) | (np.isnan(A) & np.isnan(B))))
    parts = np.zeros(view.data.n_features + 1)
    rng = stream(0, "explain", "orders")
    for _ in range(_ORDERS // 2):
        sampled = rng.permutation(differ)
        for order in (sampled, sampled[::-1]):
            X = np.repeat(B[None, :], len(order) + 1, axis=0)
            for k, column in enumerate(order):
                X[k + 1 :, column] = A[column]
            parts[order] += np.diff(view.ranker.model_.scores(X)) / _ORDERS  # (3)
    return parts


# --- changes that swap -------------------------------------------------------------------------

_MAX_TRIED = 64  # values of a feature


def _smallest_swaps(view: QueryView, upper: int, lower: int, data: RankingData) -> list[Swap]:
    """Return the smallest swapping change of each feature that has one, the smallest first.

    Distinct values in the data are tried, the nearest first; unordered categories have no distance,
    so the most frequent is first. Each swap was scored by the model.
    """
    swaps = []
    for column in range(view.data.n_features):
        values, counts, spread = _distinct_values(data, column)
        categories = view.categories(column)
        is_unordered = categories is not None and not categories.ordered
        if not is_unordered and len(values) > _MAX_TRIED:  # spread over the data
            values = values[np.linspace(0, len(values) - 1, _MAX_TRIED).round().astype(np.int64)]
        for row, other, sign in ((lower, upper, 1.0), (upper, lower, -1.0)):
            start = float(view.X[row, column])
            distance = -counts if is_unordered else np.abs(values - start)
            tried = values[np.argsort(distance, kind="stable")]
            tried = tried[tried != start][:_MAX_TRIED]
            if np.isnan(start) or len(tried) == 0:
                continue
            is_crossing = sign * view.leads_with(row, other, column, tried) > 0.0
            if not is_crossing.any():
                continue
            needed = float(tried[is_crossing][0])
            size = 1.0 if categories is not None else abs(needed - start) / spread
            shown = view.shown(column, start), view.shown(column, needed)
            swaps.append(Swap(view.names[row], view.features[column], *shown, size))
    return sorted(swaps, key=lambda swap: (swap.size, swap.document, swap.feature))


def _distinct_values(data: RankingData, column: int) -> tuple[F64, I64, float]:
    """Return the distinct values of a feature, their frequencies and the standard deviation."""
    whole = data.X[:, [column]]
    dense = whole if isinstance(whole, np.ndarray) else whole.toarray()
    values = dense.ravel().astype(np.float64)
    values = values[~np.isnan(values)]
    spread = float(values.std()) if len(values) else 0.0
    return *np.unique(values, return_counts=True), spread
