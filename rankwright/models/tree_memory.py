"""How LightGBM bins the features within a bound on memory.

Bins take a byte for each value (half of one up to 15 bins, two above 255), and as much again where
LightGBM keeps them by row, which is quicker and changes no tree. Finding the thresholds takes
`_SAMPLED` bytes for each value looked at; where that is more than a quarter of the bound, a sample
is looked at, whose size depends on the bound and the number of features alone.
"""

from __future__ import annotations

from typing import NamedTuple

from rankwright.core.memory import limit, room

_ALL = 200_000  # LightGBM looks at this many documents at least
_SAMPLED = 24  # a value as float64, its row, and the growth of both
_PER_DOCUMENT = 100  # scores, gradients, curvatures and the rows of each leaf
_PER_ROUND = 64  # gradients on their way to LightGBM
_SHARE = 4


class BinPlan(NamedTuple):
    """How many documents the thresholds come from, and whether bins are kept by row too."""

    sample: int
    by_row: bool


def plan_bins(n: int, d: int, max_bins: int, itemsize: int) -> BinPlan:
    """Return what fits into the bound, everything where there is none."""
    most, free = limit(), room()
    if most is None or free is None:
        return BinPlan(max(_ALL, n), by_row=True)
    fits = max(1, most // (_SHARE * max(1, d) * (_SAMPLED + itemsize)))
    return BinPlan(
        max(_ALL, n) if n <= fits else fits,
        by_row=tree_bytes(n, d, max_bins, by_row=True) + n * _PER_ROUND <= free - most // 16,
    )


def tree_bytes(n: int, d: int, max_bins: int, *, by_row: bool = False) -> int:
    """Return what LightGBM needs to train on n documents of d features."""
    bins = n * d * _bits(max_bins) // 8
    return (2 if by_row else 1) * bins + n * _PER_DOCUMENT


def _bits(max_bins: int) -> int:
    return 4 if max_bins <= 15 else 8 if max_bins <= 255 else 16
