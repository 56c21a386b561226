"""Thresholds of trees in float32 and float64.

Some tools compare features as float32, others as float64. These functions convert thresholds so
that every feature stays on its side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.core.types import F64, AnyArray

_LAST_STEP = 2.0**104  # between the two highest float32


def not_above(values: F64, kind: Any = np.float32) -> AnyArray:
    """Return the highest number of a ``kind`` (float32) that is not above each value.

    For a feature x of that kind, x <= value and x <= this are the same.
    """
    with np.errstate(over="ignore", under="ignore"):
        near = np.asarray(values, np.float64).astype(kind)
        below = np.nextafter(near, near.dtype.type(-np.inf))
    return np.where(near.astype(np.float64) <= values, near, below)


def highest_rounded_to(threshold: NDArray[np.float32]) -> F64:
    """Return the highest float64 that float32 rounds to each threshold or below.

    So x <= this, for features read in float64, is the comparison of tools that round them first.
    """
    wide = threshold.astype(np.float64)
    with np.errstate(over="ignore"):
        above = np.nextafter(threshold, np.float32(np.inf)).astype(np.float64)
    above = np.where(np.isinf(above), wide + _LAST_STEP, above)  # of the highest float32
    middle = wide + (above - wide) / 2.0
    # a number halfway between two float32 is rounded to the one whose last bit is 0
    even = threshold.view(np.uint32) % 2 == 0
    highest = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(wide), highest, wide)
