"""Why one document stands above another: the lead, feature by feature, and what would end it.

The lead of A over B is split over the features,

    s(A) - s(B) = sum_f d_f + rest,                                                            (1)

and each feature is tried for the smallest change that swaps the two.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.explanation.query import Place, QueryView, document_parts
from rankwright.models.missing import filled
from rankwright.models.thresholds import not_above

_LINES = 8
_ROUNDING = 1e-9  # of the largest part: what sums in another order may differ by


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


# --- the lead by feature -----------------------------------------------------------------------
# The difference of two documents is that of their contributions, but where a model can do better: a
# network's is integrated along the way from the lower document B to the upper A (integrated
# gradients, `sundararajan2017axiomatic`),
#
#     d_f = (A_f - B_f) * integral over t in [0, 1] of  ds/dx_f at B + t (A - B),                (2)
#
# and for a kernel model, which has no contributions, features of B become those of A one after
# another,
#
#     d_f = mean over orders of  s(with f changed) - s(before),                                  (3)
#
# over orders sampled at random, each with its reverse. The d_f sum to s(A) - s(B): in (3) whatever
# the orders, in (2) up to what the sum for the integral misses, which is shown as the rest.


_ORDERS = 32
_NODES = 64


def difference_parts(view: QueryView, upper: int, lower: int) -> tuple[F64, str]:
    """Return what each feature adds to the lead of ``upper``, the rest last, and the method."""
    model: Any = view.ranker.model_
    if hasattr(model, "gradients") and not model.looks_at_list:
        return _along_the_way(view, upper, lower), "integrated gradients"
    try:
        parts = document_parts(view.ranker, view.data)
    except UsageError:  # no contributions
        return _by_orders(view, upper, lower), "Shapley values over sampled orders"
    method = "weights" if hasattr(model, "coef") else getattr(model, "split_by", "SHAP values")
    return parts[upper] - parts[lower], method


def _along_the_way(view: QueryView, upper: int, lower: int) -> F64:
    model: Any = view.ranker.model_
    whole = filled(view.X[[lower, upper]], model.fill, "network").astype(np.float64)
    B, way = whole[0], whole[1] - whole[0]
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    gradients = model.gradients(B + np.outer((points + 1.0) / 2.0, way))
    parts = way * (weights / 2.0 @ gradients)  # (2)
    lead = view.scores[upper] - view.scores[lower]
    return np.append(parts, lead - parts.sum())


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
# The smallest change of a single feature that swaps two documents.
#
# For the lower document to pass the upper one, or the upper to fall behind, some feature must
# change. For each feature the nearest value is found at which the order turns, and the changes of
# all features are compared in units of the feature's spread (its standard deviation in the data).
#
# Where the score is linear that value is a formula; where it is a step function of the feature
# (trees, rules) it lies at one of the steps (a step at zero is crossed by the nearest value of the
# data: a feature of 1e-35 does not occur); elsewhere values seen in the data are tried, nearest
# first, and the first that swaps is moved as near as bisection allows. A swap is only stated once
# the model has scored it.


_TRIED = 64  # values seen in the data, spread over its quantiles
_HALVINGS = 40
_ZERO = 1.1e-35  # LightGBM splits zero from what is above it at 1e-35


@dataclass(frozen=True, slots=True)
class Swap:
    """A change of one feature of one document that swaps two documents.

    Attributes
    ----------
    document, feature : str
    value, needed : float or str
        What the feature is, and what it would have to be; of a category, the names.
    size : float
        The change in standard deviations of the feature; 1 for a change of category.
    seen : bool
        Whether ``needed`` lies between the smallest and the largest value in the data.
    """

    document: str
    feature: str
    value: float | str
    needed: float | str
    size: float
    seen: bool


def smallest_swaps(view: QueryView, upper: int, lower: int, data: RankingData) -> list[Swap]:
    """Return the smallest swapping change of each feature that has one, the smallest first."""
    found = []
    for column in range(view.data.n_features):
        values = _column(data, column)
        spread = float(values.std()) if len(values) else 0.0
        if spread == 0.0:
            continue
        for row, other, sign in ((lower, upper, 1.0), (upper, lower, -1.0)):
            needed = _needed(view, row, other, sign, column, values)
            if needed is None:
                continue
            value = float(view.X[row, column])
            size = abs(needed - value) / spread
            seen = bool(values.min() <= needed <= values.max())
            if view.categories(column) is not None:
                size = 1.0
            shown = view.shown(column, value), view.shown(column, needed)
            found.append(Swap(view.names[row], view.features[column], *shown, size, seen))
    return sorted(found, key=lambda swap: (swap.size, swap.document, swap.feature))


def _needed(
    view: QueryView, row: int, other: int, sign: float, column: int, values: F64
) -> float | None:
    """Return the value nearest to the present one at which ``row`` crosses ``other``."""
    start = view.X[row, column]
    if np.isnan(start):
        return None
    if (own := view.categories(column)) is not None:
        return _of_category(view, row, other, sign, column, values, own.ordered)
    model: Any = view.ranker.model_
    if (
        getattr(getattr(model, "coef", None), "ndim", 0) == 1
    ):  # that of a classifier has a row per grade
        return _of_weight(view, row, other, sign, column, float(model.coef[column]))
    steps = hasattr(model, "breakpoints")
    points = model.breakpoints(column) if steps else None
    tried = _quantiles(values) if points is None else _across(points, start.dtype, values)
    tried = tried[tried != start].astype(start.dtype)
    if len(tried) == 0:
        return None
    tried = tried[np.argsort(np.abs(tried - start), kind="stable")]
    swaps = np.flatnonzero(_crosses(view, row, other, sign, column, tried))
    if len(swaps) == 0:
        return None
    needed = tried[swaps[0]]
    return float(needed if steps else _nearer(view, row, other, sign, column, needed))


def _of_category(
    view: QueryView, row: int, other: int, sign: float, column: int, values: F64, ordered: bool
) -> float | None:
    """Return the most frequent category of the data that swaps the two, of ordered the nearest."""
    codes, counts = np.unique(values, return_counts=True)
    start = view.X[row, column]
    codes = codes[np.argsort(np.abs(codes - start) if ordered else -counts, kind="stable")]
    codes = codes[codes != start]
    swaps = np.flatnonzero(_crosses(view, row, other, sign, column, codes))
    return float(codes[swaps[0]]) if len(swaps) else None


def _of_weight(
    view: QueryView, row: int, other: int, sign: float, column: int, weight: float
) -> float | None:
    if weight == 0.0:
        return None
    start = view.X[row, column]
    lead = float(view.scores[other] - view.scores[row])
    for beyond in (1e-9, 1e-6, 1e-3):  # past the point of a tie, as far as rounding asks
        step = (lead + sign * max(abs(lead), 1e-12) * beyond) / weight
        needed = np.array([start + step], start.dtype)
        if _crosses(view, row, other, sign, column, needed)[0]:
            return float(needed[0])
    return None


def _crosses(view: QueryView, row: int, other: int, sign: float, column: int, values: Any) -> Any:
    return sign * view.leads_with(row, other, column, values) > 0.0


def _nearer(view: QueryView, row: int, other: int, sign: float, column: int, needed: Any) -> Any:
    """Return a swapping value between the present one and ``needed``, by bisection."""
    stays = view.X[row, column]
    for _ in range(_HALVINGS):
        middle = stays + (needed - stays) / 2
        if middle in (stays, needed):
            break
        if _crosses(view, row, other, sign, column, np.array([middle]))[0]:
            needed = middle
        else:
            stays = middle
    return needed


def _across(steps: F64, kind: Any, values: F64) -> Any:
    """Return values on either side of each step; at zero, where LightGBM has one, seen values."""
    at_zero = np.abs(steps) <= _ZERO
    beside = _beside(steps[~at_zero], kind)
    if not at_zero.any():
        return beside
    above, below = values[values > _ZERO], values[values <= _ZERO]
    nearest = [pick(side) for pick, side in ((np.min, above), (np.max, below)) if len(side)]
    return np.append(beside, np.array(nearest, kind))


def _beside(steps: F64, kind: Any) -> Any:
    """Return the values of ``kind`` on either side of each step: at most it, and above it."""
    below = not_above(steps, kind)
    return np.unique(np.concatenate([below, np.nextafter(below, kind.type(np.inf))]))


def _quantiles(values: F64) -> F64:
    return np.unique(np.quantile(values, np.linspace(0.0, 1.0, _TRIED), method="nearest"))


def _column(data: RankingData, column: int) -> F64:
    whole = data.X[:, [column]]
    dense = whole if isinstance(whole, np.ndarray) else whole.toarray()
    values = dense.ravel().astype(np.float64)
    return values[~np.isnan(values)]
