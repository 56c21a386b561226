"""Significance tests over per-query values, intervals, and corrections for several tests.

Each takes the values that `rankwright.evaluate` gives in ``per_query``; a query that is left out
(NaN) on one side is left out on both in the paired tests. Differences are a - b, tests two-sided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.errors import DataError

LEVEL = 0.05  # below which a difference is called one

_BATCH = 1_000
_ROUNDING = 1e-10  # by which equal differences may come out unequal


@dataclass(frozen=True)
class TestResult:
    """What a test found.

    Attributes
    ----------
    test : str
    difference : float
        Mean of a minus mean of b.
    statistic : float
    p_value : float
        Two-sided.
    n : int
        Queries (in an unpaired test, of both sides together).
    """

    __test__ = False  # for pytest: not a class of tests

    test: str
    difference: float
    statistic: float
    p_value: float
    n: int


@dataclass(frozen=True)
class Interval:
    """A mean over queries and the interval it lies in at the given level."""

    mean: float
    low: float
    high: float
    level: float


def paired_t(a: Any, b: Any) -> TestResult:
    """Student's t-test on the differences of the same queries."""
    from scipy import stats

    a, b = _paired(a, b)
    if np.ptp(a - b) == 0:
        return _certain("paired t", a, b, len(a))
    return _result("paired t", a, b, stats.ttest_rel(a, b), len(a))


def welch_t(a: Any, b: Any) -> TestResult:
    """Welch's t-test for different queries on each side, with variances that may differ."""
    from scipy import stats

    a, b = _values(a, "a"), _values(b, "b")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return _certain("Welch t", a, b, len(a) + len(b))
    found = stats.ttest_ind(a, b, equal_var=False)
    return _result("Welch t", a, b, found, len(a) + len(b))


def wilcoxon(a: Any, b: Any) -> TestResult:
    """Wilcoxon's signed-rank test on the differences of the same queries.

    Queries without a difference are left out (Wilcoxon's own rule, ``zero_method="wilcox"`` of
    SciPy), and equal differences share their rank; differences count as equal up to 1e-12.
    """
    from scipy import stats

    a, b = _paired(a, b)
    d = np.round(a - b, 12)
    if not d.any():
        return TestResult("Wilcoxon", 0.0, 0.0, 1.0, len(a))
    return _result("Wilcoxon", a, b, stats.wilcoxon(d), len(a))


def randomisation(a: Any, b: Any, *, rounds: int = 10_000, seed: int = 0) -> TestResult:
    """Fisher's randomisation test: how often swapping sides at random differs as much.

    Each round swaps the two values of a query with probability one half; with so few queries that
    ``rounds`` covers all swaps, each is tried once and the p-value is exact.
    """
    a, b = _paired(a, b)
    d = a - b
    exact = len(d) < 63 and 2 ** len(d) <= rounds
    draw = _every_swap(len(d)) if exact else _random_swaps(len(d), rounds, seed)
    least = abs(d.sum()) * (1.0 - _ROUNDING)
    as_far = tried = 0
    for signs in draw:
        as_far += int((np.abs(signs @ d) >= least).sum())
        tried += len(signs)
    p = as_far / tried if exact else (as_far + 1) / (tried + 1)
    return TestResult("randomisation", float(d.mean()), float(d.mean()), p, len(d))


def _every_swap(n: int) -> Iterator[F64]:
    """Yield all patterns of n signs."""
    for first in range(0, 2**n, _BATCH):
        numbers = np.arange(first, min(first + _BATCH, 2**n))
        yield _signs(numbers[:, None] >> np.arange(n) & 1)


def _random_swaps(n: int, rounds: int, seed: int) -> Iterator[F64]:
    """Yield ``rounds`` patterns of n signs, each sign from one bit.

    SciPy's permutation_test takes five times as long for 10,000 queries.
    """
    rng = stream(seed, "significance", "randomisation")
    for first in range(0, rounds, _BATCH):
        count = min(_BATCH, rounds - first)
        bits = np.frombuffer(rng.bytes(count * ((n + 7) // 8)), np.uint8).reshape(count, -1)
        yield _signs(np.unpackbits(bits, axis=1, count=n))


def _signs(bits: Any) -> F64:
    signs: F64 = 1.0 - 2.0 * bits.astype(np.float64)
    return signs


def bootstrap_interval(
    values: Any, *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> Interval:
    """Interval of a mean over queries, from the percentiles of means of queries sampled anew."""
    from scipy import stats

    x = _values(values, "values")
    found = stats.bootstrap(
        (x,),
        np.mean,
        method="percentile",
        confidence_level=level,
        n_resamples=rounds,
        batch=_BATCH,
        random_state=stream(seed, "significance", "bootstrap"),
    ).confidence_interval
    return Interval(float(x.mean()), float(found.low), float(found.high), level)


def holm(p_values: Sequence[float] | Mapping[str, float]) -> Any:
    """Adjust p-values of several tests by Holm's step-down rule; the same shape comes back.

    The i-th smallest of m is multiplied with m - i + 1, and none is smaller than the one before.
    """
    if isinstance(p_values, Mapping):
        return dict(zip(p_values, holm(list(p_values.values())), strict=True))
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted.tolist()


def benjamini_hochberg(p_values: Sequence[float] | Mapping[str, float]) -> Any:
    """Adjust p-values of several tests by Benjamini and Hochberg's step-up rule.

    The i-th smallest of m is multiplied with m / i, and none is larger than the one after: where
    those of at most q are called significant, a share q of these is expected to be false.
    """
    if isinstance(p_values, Mapping):
        return dict(zip(p_values, benjamini_hochberg(list(p_values.values())), strict=True))
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = p[order] * len(p) / np.arange(1, len(p) + 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    return adjusted.tolist()


def _paired(a: Any, b: Any) -> tuple[F64, F64]:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise DataError(
            f"a paired test needs the same queries on both sides; here are {a.shape} and {b.shape}."
        )
    kept = ~(np.isnan(a) | np.isnan(b))
    if kept.sum() < 2:
        raise DataError(f"a paired test needs two queries or more, not {int(kept.sum())}.")
    return a[kept], b[kept]


def _values(values: Any, name: str) -> F64:
    x = np.asarray(values, np.float64).ravel()
    x = x[~np.isnan(x)]
    if len(x) < 2:
        raise DataError(f"{name} must hold the values of two queries or more, not {len(x)}.")
    return x


def _certain(test: str, a: F64, b: F64, n: int) -> TestResult:
    """Return the result where nothing varies: sure of any difference there is."""
    size = float(a[0] - b[0])
    return TestResult(
        test, size, float(np.copysign(np.inf, size)) if size else 0.0, float(not size), n
    )


def _result(test: str, a: F64, b: F64, found: Any, n: int) -> TestResult:
    size = float(a.mean() - b.mean())
    return TestResult(test, size, float(found.statistic), float(found.pvalue), n)
