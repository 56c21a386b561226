"""The L-BFGS direction in the space of scores, for boosting: there is no line search.

With f_k the scores and g_k the gradient of round k, and h the curvature of each document,

    d = H_t g,   from the last pairs (f_{k+1} - f_k, g_{k+1} - g_k),  H_0 = a multiple of 1/h  (1)

The steps are a base learner's, which follows d only roughly; `QuasiNewton` says how d is kept safe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rankwright.core.parallel import ordered_sum
from rankwright.core.types import F64, AnyArray

_MEMORY = 8  # pairs of L-BFGS
_ACROSS = 1.0 / 3.0
_FARTHEST = 32.0  # times the plain step


class QuasiNewton:
    """The L-BFGS direction, safe where steps are a base learner's without a line search.

    With |v|^2 = sum h v^2, p = g/h the plain step and d = H_t g, what is followed is d

    - with no part across p larger than a third of its part along p, so that a base learner which
      follows it follows the gradient too; p itself where d does not descend;
    - of a length between |p| and reach |p| (reach |p| where reach is below 1).

    The derivative along the last step, now over before, decides the reach: 1 says that the gradient
    did not turn, 0 that the step went just far enough. Above a quarter the reach grows; below zero
    it shrinks to half of what would have been far enough, and the pairs are forgotten. Only
    derivatives are asked for, never values, so this also serves gradients that are those of no
    function.
    """

    def __init__(self, reach: float) -> None:
        self._pairs: list[tuple[F64, F64, float]] = []
        self._last: tuple[F64, F64] | None = None
        self._reach = self._length = reach

    def arrays(self) -> dict[str, AnyArray]:
        """Return its state."""
        assert self._last is not None, "it has been asked for a direction"
        named = {
            "quasi_numbers": np.array([self._reach, self._length]),
            "quasi_last": np.array(self._last),
            "quasi_bends": np.array([bend for _, _, bend in self._pairs]),
        }
        if self._pairs:
            named["quasi_pairs"] = np.array([pair[:2] for pair in self._pairs])
        return named

    @classmethod
    def restore(cls, named: Mapping[str, AnyArray]) -> QuasiNewton:
        """Build it from its own `arrays`."""
        reach, length = named["quasi_numbers"].tolist()
        made = cls(reach)
        made._length = length
        made._last = named["quasi_last"][0], named["quasi_last"][1]
        for k, bend in enumerate(named["quasi_bends"].tolist()):
            moved, turned = named["quasi_pairs"][k]
            made._pairs.append((moved, turned, bend))
        return made

    def direction(self, s: F64, g: F64, h: F64) -> F64:
        """Return h d at scores ``s``, whose gradient is ``g`` and whose curvature is ``h``."""
        present = h > 0.0
        inverse = np.divide(1.0, h, out=np.zeros(len(h)), where=present)
        if self._last is not None:
            self._learn((s - self._last[0]) * present, g, self._last[1], h)
        self._last = s, g.copy()
        plain = inverse * g
        size = _dot(g, plain)
        if size <= 0.0:
            return g
        d = self._two_loops(g, inverse)
        along = _dot(d, g) / size
        if along <= 0.0:
            d, along = plain, 1.0
        across = d - along * plain
        wide = math.sqrt(_dot(across, h * across) / size)
        share = min(1.0, _ACROSS * along / wide) if wide > 0.0 else 1.0
        d = along * plain + share * across
        length = math.hypot(along, share * wide)
        self._length = min(max(length, length / along * min(1.0, self._reach)), self._reach)
        return np.where(present, h * d * (self._length / length), g)

    def _learn(self, moved: F64, g: F64, before: F64, h: F64) -> None:
        """Take in what the last step did: reach and pairs."""
        fall = _dot(before, moved)
        if fall >= 0.0:  # the base learner went elsewhere
            self._pairs, self._reach = [], min(1.0, self._reach)
            return
        derivative = _dot(g, moved) / fall
        if derivative < 0.0:
            shrunk = max(1.0 / _FARTHEST, 0.5 / (1.0 - derivative))
            self._pairs, self._reach = [], self._length * shrunk
            return
        if derivative > 0.25:
            grown = min(4.0, 0.75 / max(1.0 - derivative, 0.1))
            self._reach = min(_FARTHEST, self._reach * grown)
        turned = g - before
        bend, most = _dot(moved, turned), _dot(moved, h * moved)
        if bend > 0.0:
            missing = max(0.0, most / _FARTHEST - bend)  # no way is flatter than that
            turned = turned + missing / most * (h * moved)
            self._pairs = [*self._pairs[1 - _MEMORY :], (moved, turned, bend + missing)]

    def _two_loops(self, g: F64, inverse: F64) -> F64:  # (1)
        d, shares = g.copy(), []
        for moved, turned, bend in reversed(self._pairs):
            shares.append(_dot(moved, d) / bend)
            d -= shares[-1] * turned
        d *= inverse
        if self._pairs:
            _, turned, bend = self._pairs[-1]
            d *= bend / _dot(turned, inverse * turned)
        for (moved, turned, bend), share in zip(self._pairs, reversed(shares), strict=True):
            d += (share - _dot(turned, d) / bend) * moved
        return d


def _dot(a: F64, b: F64) -> float:
    return ordered_sum(a * b)  # the same bits whatever BLAS there is
