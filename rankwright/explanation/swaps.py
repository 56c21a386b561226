"""The smallest change of a single feature that swaps two documents.

For the lower document to pass the upper one, or the upper to fall behind, some feature must change.
For each feature the nearest value is found at which the order turns, and the changes of all
features are compared in units of the feature's spread (its standard deviation in the data).

Where the score is linear that value is a formula; where it is a step function of the feature
(trees, rules) it lies at one of the steps (a step at zero is crossed by the nearest value of the
data, since nobody has 1e-35 of anything); elsewhere values seen in the data are tried, nearest
first, and the first that swaps is drawn as near as bisection allows. A swap is only stated once the
model has scored it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.dtypes import not_above
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.explanation.query_view import QueryView

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
    if hasattr(model, "coef"):
        return _of_slope(view, row, other, sign, column, float(model.coef[column]))
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


def _of_slope(
    view: QueryView, row: int, other: int, sign: float, column: int, slope: float
) -> float | None:
    if slope == 0.0:
        return None
    start = view.X[row, column]
    lead = float(view.scores[other] - view.scores[row])
    for beyond in (1e-9, 1e-6, 1e-3):  # past the point of a tie, as far as rounding asks
        step = (lead + sign * max(abs(lead), 1e-12) * beyond) / slope
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
