"""Is one ranking better than another, or was it luck? Tests over per-query values.

Each takes the values that `rankwright.evaluate` gives in ``per_query``; a query that is left out
(NaN) on one side is left out on both in the paired tests. Differences are a - b, tests two-sided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.errors import DataError

_BATCH = 1_000


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
    """Wilcoxon's signed-rank test on the differences of the same queries."""
    from scipy import stats

    a, b = _paired(a, b)
    if (a == b).all():
        return _certain("Wilcoxon", a, b, len(a))
    return _result("Wilcoxon", a, b, stats.wilcoxon(a, b), len(a))


def randomisation(a: Any, b: Any, *, rounds: int = 10_000, seed: int = 0) -> TestResult:
    """Fisher's randomisation test: how often swapping sides at random differs as much.

    Each round swaps the two values of a query with probability one half; with so few queries that
    ``rounds`` covers all swaps, each is tried once and the p-value is exact.
    """
    from scipy import stats

    a, b = _paired(a, b)
    found = stats.permutation_test(
        (a, b),
        _mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=rounds,
        batch=_BATCH,
        random_state=stream(seed, "significance", "randomisation"),
    )
    return _result("randomisation", a, b, found, len(a))


def bootstrap_interval(
    values: Any, *, level: float = 0.95, rounds: int = 10_000, seed: int = 0
) -> Interval:
    """Interval of a mean over queries, from the percentiles of means of queries drawn anew."""
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


def _mean_difference(a: F64, b: F64, axis: int) -> Any:
    return np.mean(a - b, axis=axis)


def _certain(test: str, a: F64, b: F64, n: int) -> TestResult:
    """Return the result where nothing varies: sure of any difference there is."""
    size = float(a[0] - b[0])
    return TestResult(
        test, size, float(np.copysign(np.inf, size)) if size else 0.0, float(not size), n
    )


def _result(test: str, a: F64, b: F64, found: Any, n: int) -> TestResult:
    size = float(a.mean() - b.mean())
    return TestResult(test, size, float(found.statistic), float(found.pvalue), n)
