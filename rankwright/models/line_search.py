"""The best step along one feature for a measure of rankings: exact, or by RankLib's steps.

With the other weights held, a measure is a step function of one weight
(`rankwright.metrics.along_line`). The exact search looks at all of its steps within reach and goes
to the middle of the best one, the nearest of equals. RankLib's search tries steps that double, up,
then down, then to zero; it knows any measure. What is climbed is

    mean of the measure - reg |w - w_start|                                                      (1)

with both weights normalised to a sum of absolute values of 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.metrics.along_line import MeasureLine

REACH = 1000.0  # how far a weight may go, where all weights together come to 1
_NARROW = 1e-9  # changes closer than this are one: no score tells them apart
_SAME = 1e-12  # values closer than this are equal but for rounding
_DEEP = 32.0  # ranks that count on average, above which "auto" takes steps
_STEPS = ("auto", "exact", "ranklib")
_FIRST_STEP, _STEP_BASE, _STEP_SCALE = 0.001, 0.05, 2.0  # RankLib's


@dataclass(frozen=True, slots=True)
class LineSearch:
    """The best step along one feature for any measure: exact, or by RankLib's steps.

    Parameters
    ----------
    steps : "auto", "exact" or "ranklib"
        Look at every change of ranking; or at steps that double, up, then down, then to zero.
        "auto" is exact for measures of the first 32 ranks or fewer, on average over documents:
        whole lists of hundreds of documents have too many changes. A measure that does not know
        what a swap changes takes the steps.
    n_steps : int
        How many steps in each direction, for "ranklib".
    reg : float
        What a model loses for its distance from where it started.
    """

    steps: str = "auto"
    n_steps: int = 25
    reg: float = 0.0

    def check(self) -> None:
        """Refuse steps that nobody knows."""
        if self.steps not in _STEPS:
            raise UsageError(f"steps must be 'auto', 'exact' or 'ranklib', not '{self.steps}'.")

    def step(self, line: MeasureLine, s: F64, x: F64, along: Along) -> tuple[float, float]:
        """Return the change of the weight that is best, and the value there; 0 if none is better.

        ``s`` are the scores now, ``x`` the feature.
        """
        deep = self.steps == "auto" and line.depth > _DEEP
        if self.steps != "ranklib" and line.exact and not deep:
            return self._exact(line, s, x, along)
        return self._ranklib(line, s, x, along)

    def _exact(self, line: MeasureLine, s: F64, x: F64, along: Along) -> tuple[float, float]:
        found = line.pieces(s, x, -REACH - along.weight, REACH - along.weight)
        wide = np.diff(found.edges) > _NARROW
        left, right = found.edges[:-1][wide], found.edges[1:][wide]
        if not len(left):
            return 0.0, along.value
        t = _inner_points(left, right)
        values = found.values[wide] - self._penalty(along, t)
        best = values >= values.max() - _SAME
        away = np.where((left <= 0.0) & (right >= 0.0), 0.0, np.minimum(abs(left), abs(right)))
        chosen = int(np.flatnonzero(best)[np.argmin(away[best])])
        if values[chosen] <= along.value + _SAME:
            return 0.0, along.value
        reached = line.value(s + t[chosen] * x) - float(self._penalty(along, t[chosen]))
        return (float(t[chosen]), reached) if reached > along.value else (0.0, along.value)

    def _ranklib(self, line: MeasureLine, s: F64, x: F64, along: Along) -> tuple[float, float]:
        best, best_value = 0.0, along.value
        for direction in (1.0, -1.0, 0.0):
            for t in self._doubling(direction, along.weight):
                value = line.value(s + t * x) - float(self._penalty(along, t))
                if value > best_value:
                    best, best_value = t, value
            if best_value > along.value:
                break
        return best, best_value

    def _penalty(self, along: Along, t: F64 | float) -> F64 | float:
        return self.reg * along.distance(t) if self.reg else 0.0

    def _doubling(self, direction: float, weight: float) -> list[float]:
        if direction == 0.0:
            return [-weight]
        step = _FIRST_STEP
        if weight != 0.0 and step > 0.5 * abs(weight):
            step = _STEP_BASE * abs(weight)
        sizes = step * _STEP_SCALE ** np.arange(self.n_steps)
        return [float(t) for t in direction * np.cumsum(sizes)]


@dataclass(frozen=True, slots=True)
class Along:
    """Where a step along one feature begins.

    Attributes
    ----------
    w : array
        The weights, whose absolute values sum to 1.
    feature : int
        The one that may change.
    value : float
        The value to be exceeded, what is lost for the distance included.
    home : array
        Where the model started, normalised too.
    """

    w: F64
    feature: int
    value: float
    home: F64

    @property
    def weight(self) -> float:
        """The weight that may change."""
        return float(self.w[self.feature])

    def distance(self, t: F64 | float) -> F64:
        """Return how far from home the weights are after a step t, all normalised."""
        own, home = self.weight + np.asarray(t), self.home[self.feature]
        others = np.delete(self.w, self.feature)
        size = np.maximum(np.abs(others).sum() + np.abs(own), 1e-300)
        squares = (others @ others + own**2) / size**2
        product = (others @ np.delete(self.home, self.feature) + own * home) / size
        gap: F64 = np.sqrt(np.maximum(squares - 2.0 * product + self.home @ self.home, 0.0))
        return gap


def _inner_points(left: F64, right: F64) -> F64:
    """Return the middle of each interval; of the outermost two, a point near their inner edge."""
    t = 0.5 * (left + right)
    t[0] = max(t[0], right[0] - 0.1 * max(1.0, abs(right[0])))
    t[-1] = min(t[-1], left[-1] + 0.1 * max(1.0, abs(left[-1])))
    return t
