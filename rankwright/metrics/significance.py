"""Significance tests over per-query values, intervals, and corrections for several tests.

The arguments are values from ``per_query`` of `rankwright.evaluate`. Paired tests ignore queries
with a missing value (NaN) on either side. Differences are a - b, and tests are two-sided.
With weights w_q the paired tests use the weighted differences w_q (a_q - b_q) / mean(w), whose mean
is the difference of the weighted means: their signs are swapped, or they are ranked. Queries of
weight 0 are ignored.

**Interval of a mean.** With the weights w_q of n queries (1 without weights) and the residuals
``e_q = v_q - m`` from the mean m, the jackknife standard error of the mean is

    se^2 = (n - 1) / n * sum_q (w_q e_q / sum_{p != q} w_p)^2                                  (1)

and every bootstrap sample of n queries has the studentised value

    t* = (m* - m) sqrt(1 + 1/n) / sqrt(se*^2 + se^2 / n)                                       (2)

The interval is [m - high se, m - low se] with the quantiles low and high of t*. It is never
narrower than the interval from Student's t distribution with (sum w)^2 / sum w^2 - 1 degrees of
freedom, which are n - 1 without weights. The term se^2 / n keeps t* finite in samples without
variance, which are frequent for metrics with few different values. If all values are equal, other
values have at most the probability ``1 - 0.025^(1/n)`` (at the level 0.95), and the interval ends
at the mean that results if these are the bounds of the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64
from rankwright.errors import DataError

LEVEL = 0.05  # below which a difference is called one

_BATCH = 1_000
_CELLS = 1 << 20  # of a batch of bootstrap samples
_ROUNDING = 1e-10  # relative rounding error of equal differences


@dataclass(frozen=True)
class TestResult:
    """Result of a test.

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
    """A mean over queries and the interval it lies in at the given level; NaN without one."""

    mean: float
    low: float
    high: float
    level: float


def paired_t(a: Any, b: Any, query_weight: Any = None) -> TestResult:
    """Student's t-test on the differences of the same queries."""
    from scipy import stats

    d = _differences(a, b, query_weight)
    if np.ptp(d) == 0:
        return _certain("paired t", float(d[0]), len(d))
    return _result("paired t", float(d.mean()), stats.ttest_1samp(d, 0.0), len(d))


def welch_t(a: Any, b: Any) -> TestResult:
    """Welch's t-test for different queries on each side, with variances that may differ."""
    from scipy import stats

    a, b = _values(a, "a"), _values(b, "b")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return _certain("Welch t", float(a[0] - b[0]), len(a) + len(b))
    result = stats.ttest_ind(a, b, equal_var=False)
    return _result("Welch t", float(a.mean() - b.mean()), result, len(a) + len(b))


def wilcoxon(a: Any, b: Any, query_weight: Any = None) -> TestResult:
    """Wilcoxon's signed-rank test on the differences of the same queries.

    Queries without a difference are ignored (Wilcoxon's rule, ``zero_method="wilcox"`` of
    SciPy), and equal differences share their rank. Differences are rounded to 12 decimals first,
    so that 0.3 - 0.2 and 0.4 - 0.3 are equal; ``scipy.stats.wilcoxon(a, b)`` ranks them apart, and
    its p-value can differ from the fourth digit on.
    """
    from scipy import stats

    d = _differences(a, b, query_weight)
    rounded = np.round(d, 12)
    if not rounded.any():
        return TestResult("Wilcoxon", 0.0, 0.0, 1.0, len(d))
    return _result("Wilcoxon", float(d.mean()), stats.wilcoxon(rounded), len(d))


def randomisation(
    a: Any, b: Any, query_weight: Any = None, *, rounds: int = 10_000, seed: int = 0
) -> TestResult:
    """Fisher's randomisation test: how often swapping sides at random differs as much.

    Each round swaps the two values of a query with probability one half; if ``rounds`` is
    enough for all swaps, each is tried once and the p-value is exact.
    """
    d = _differences(a, b, query_weight)
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
    values: Any,
    *,
    query_weight: Any = None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Return the mean over queries and its interval from a studentised bootstrap.

    For a difference, pass ``a - b`` of the same queries. In simulations with 10 and 20 queries of
    skewed metrics, 95 % intervals contained the true mean in 93 to 100 % of samples; with 5
    queries, in 87 to 99 %. One query has no interval: both limits are NaN. If all values are equal
    and ``bounds`` are infinite, the interval is that value.

    Parameters
    ----------
    values : array-like (Q,)
        The value of each query; NaN is ignored.
    query_weight : array-like (Q,), optional
        Weight of each query in the mean.
    bounds : (float, float)
        Lowest and highest possible value, such as (0, 1) for NDCG; limits lie between them.
    level : float
        Probability that the interval contains the true mean.
    rounds : int
        Number of bootstrap samples.
    seed : int
        Seed of the bootstrap samples.
    """
    from scipy import stats

    x = np.asarray(values, np.float64).ravel()
    w = np.ones(len(x)) if query_weight is None else np.asarray(query_weight, np.float64).ravel()
    mask = ~np.isnan(x) & (w > 0)
    x, w, n = x[mask], w[mask], int(mask.sum())
    mean = float(np.average(x, weights=w)) if n else np.nan
    if n < 2:
        return Interval(mean, np.nan, np.nan, level)
    tail = (1.0 - level) / 2.0
    effective = max(2.0, w.sum() ** 2 / (w @ w))
    if np.ptp(x) <= _ROUNDING * np.abs(x).max():
        unseen = 1.0 - tail ** (1.0 / effective)
        low, high = (mean + unseen * (b - mean) if np.isfinite(b) else mean for b in bounds)
        return Interval(mean, float(low), float(high), level)
    z = w * (x - mean)
    error = _standard_errors(z[None], w[None])[0]
    low, high = np.quantile(_studentised(z, w, error, rounds, seed), [tail, 1.0 - tail])
    student = stats.t.ppf(1.0 - tail, effective - 1.0)
    return Interval(
        mean,
        float(np.clip(mean - max(high, student) * error, *bounds)),
        float(np.clip(mean - min(low, -student) * error, *bounds)),
        level,
    )


def _studentised(z: F64, w: F64, error: float, rounds: int, seed: int) -> F64:
    """Return t* of ``rounds`` bootstrap samples; ``z`` is w_q e_q."""
    n, rng = len(z), stream(seed, "significance", "bootstrap")
    values, batch = np.empty(rounds), max(1, _CELLS // len(z))
    is_weighted = np.ptp(w) > 0
    for first in range(0, rounds, batch):
        drawn = rng.integers(n, size=(min(batch, rounds - first), n), dtype=np.int32)
        z_drawn = z[drawn]
        w_drawn = w[drawn] if is_weighted else np.broadcast_to(w, z_drawn.shape)
        shift = z_drawn.sum(axis=1) / w_drawn.sum(axis=1)
        errors = _standard_errors(z_drawn - shift[:, None] * w_drawn, w_drawn)
        scale = np.sqrt(errors**2 + error**2 / n)
        values[first : first + len(drawn)] = shift * np.sqrt(1.0 + 1.0 / n) / scale  # (2)
    return values


def _standard_errors(residuals: F64, w: F64) -> F64:
    """Return the standard error of each row's mean, from its weighted residuals."""
    n = residuals.shape[1]
    shifts = residuals / (w.sum(axis=1, keepdims=True) - w)
    errors: F64 = np.sqrt((n - 1) / n * np.einsum("ij,ij->i", shifts, shifts))  # (1)
    return errors


def holm(p_values: Sequence[float] | Mapping[str, float]) -> Any:
    """Return p-values of several tests adjusted by Holm's step-down rule, in the same shape.

    The i-th smallest of m is multiplied by m - i + 1, and none is smaller than the one before.
    """

    def step_down(p: F64) -> F64:
        return np.maximum.accumulate(p * np.arange(len(p), 0, -1))

    return _adjusted(p_values, step_down)


def benjamini_hochberg(p_values: Sequence[float] | Mapping[str, float]) -> Any:
    """Return p-values of several tests adjusted by the rule of Benjamini and Hochberg.

    The i-th smallest of m is multiplied by m / i, and none is larger than the one after. If all
    tests with an adjusted value of at most q are called significant, an expected share q
    is false.
    """

    def step_up(p: F64) -> F64:
        stepped = p * len(p) / np.arange(1, len(p) + 1)
        return np.minimum.accumulate(stepped[::-1])[::-1]

    return _adjusted(p_values, step_up)


def _adjusted(p_values: Sequence[float] | Mapping[str, float], rule: Callable[[F64], F64]) -> Any:
    """Return p-values adjusted by a rule for ascending values, in the same shape."""
    if isinstance(p_values, Mapping):
        adjusted_values = _adjusted(list(p_values.values()), rule)
        return dict(zip(p_values, adjusted_values, strict=True))
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(rule(p[order]), 1.0)
    return adjusted.tolist()


def _differences(a: Any, b: Any, query_weight: Any) -> F64:
    """Return a - b of the queries that both sides have, times their weights, whose mean is 1."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise DataError(
            f"a paired test needs the same queries on both sides; here are {a.shape} and {b.shape}."
        )
    weight = np.ones(len(a)) if query_weight is None else np.asarray(query_weight, np.float64)
    mask = ~(np.isnan(a) | np.isnan(b)) & (weight > 0)
    if mask.sum() < 2:
        raise DataError(f"a paired test needs two queries or more, not {int(mask.sum())}.")
    d: F64 = a[mask] - b[mask]
    return d if query_weight is None else d * weight[mask] / weight[mask].mean()


def _values(values: Any, name: str) -> F64:
    x = np.asarray(values, np.float64).ravel()
    x = x[~np.isnan(x)]
    if len(x) < 2:
        raise DataError(f"{name} must hold the values of two queries or more, not {len(x)}.")
    return x


def _certain(test: str, size: float, n: int) -> TestResult:
    """Return the result if all differences are equal: certain, unless they are 0."""
    return TestResult(
        test, size, float(np.copysign(np.inf, size)) if size else 0.0, float(not size), n
    )


def _result(test: str, size: float, found: Any, n: int) -> TestResult:
    return TestResult(test, size, float(found.statistic), float(found.pvalue), n)
