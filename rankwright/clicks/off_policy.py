"""What a policy would have earned, from a log of another one: estimators and their intervals.

A session s shows documents at slots l = 1, 2, ... and earns a reward r_l at each: a click, a
discounted click, or 0. A weight w_l says how much more often the new policy would have shown what
was shown. With q_l a prediction of the reward of what was shown, b_l the mean of that prediction
over what the new policy would show, sums over the slots of a session and means over sessions,

    ips         V = mean of sum w_l r_l                         [horvitz1952generalization]     (1)
    snips       V = sum over l of mean(w_l r_l) / mean(w_l)     [swaminathan2015self]           (2)
    dr          V = mean of sum b_l + w_l (r_l - q_l)           [dudik2014doubly]               (3)
    cascade_dr  V = mean of sum w_l (r_l - q_l) + w_{l-1} b_l, w_0 = 1  [kiyohara2022doubly]    (4)

A ``limit`` L makes weights smaller, which trades variance for bias: w becomes min(w, L).

What the weight is a ratio of decides what is assumed about users, and the name of (1) for lists:
the whole list (standard slate IPS: nothing is assumed), the list down to the slot (RIPS: a click
does not depend on what is below it, `mcinerney2020counterfactual`), the document at the slot (IIPS:
nor on what is above, `li2018offline`). `rankwright.clicks.policies` has these.

Each estimator is a mean of terms, or is one to first order (the delta method); weights make their
distribution skewed. The interval is Student's after Hall's cubic transformation, which removes the
skewness [hall1992removal]: with n units, their mean m, deviation d and skewness g,

    low, high = m - d T(+-t),   T(x) = 3/g ((1 + g (x / sqrt(n) - g / (6 n)))^(1/3) - 1)        (5)

The quantile t has half of

    (sum w^2)^2 / sum w^4                                                                       (6)

degrees of freedom, at most n - 1: a deviation of terms with weights is as uncertain as that of so
many terms without. Half, because a sample seldom has the largest weights that are possible.

Sessions may have weights in these means. Each is one observation, whatever its weight.

Sessions of one query are alike, so that the units are whole clusters (queries) where these are
given; the deviation is then that of their sums. With fewer than 30 effective sessions no interval
is given. With fewer than 10 effective rewards a remark says that it may cover less often.

``make test-slow`` measures coverage. With 35 effective sessions and rewards in about a third of
them, intervals cover in 96 to 99 % of 1,000 logs with even, softmax and log-normal weights (with
n - 1 degrees in (5): 88 to 98 %). With 1,000 sessions or 100 queries they cover in 93 to 98 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankwright.clicks.figures import COLOURS, import_matplotlib, new_axes, plain_axes
from rankwright.core.dtypes import as_float_vector, as_vector
from rankwright.core.jit import kernel
from rankwright.core.parameters import check_above_zero, check_choice
from rankwright.core.types import F64, I64
from rankwright.data.click_log import codes_of_ids
from rankwright.data.ranking_data import boundaries_of_sizes, checked_weights
from rankwright.errors import DataError, UsageError

LEVEL = 0.95
ESTIMATORS = ("ips", "snips", "dr", "cascade_dr")
_WITH_MODEL = ("dr", "cascade_dr")
_FEWEST_UNITS = 10
"""Units with a term of their own that an interval needs,"""
_FEWEST_EFFECTIVE = 30.0
"""and effective sessions: below, the deviation itself is not known."""
_FEW_REWARDS = 10.0
"""Effective rewards below which intervals may cover too seldom."""


# --- kernels ---------------------------------------------------------------------------------


@kernel
def add_up_sessions(indptr, weight, reward, out):
    """Write the sum of weight times reward of each session, (1)."""
    for s in range(len(indptr) - 1):
        total = 0.0
        for i in range(indptr[s], indptr[s + 1]):
            total += weight[i] * reward[i]
        out[s] = total


@kernel
def add_up_cascade(indptr, weight, reward, predicted, expected, out):
    """Write the sum of (4) of each session."""
    for s in range(len(indptr) - 1):
        total = 0.0
        above = 1.0
        for i in range(indptr[s], indptr[s + 1]):
            total += weight[i] * (reward[i] - predicted[i]) + above * expected[i]
            above = weight[i]
        out[s] = total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyValue:
    """What a policy would earn per session, with its interval; ``print`` says it in sentences.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its 95 % interval; NaN where none is claimed.
    standard_error : float
        NaN where no interval is claimed.
    effective_sample_size : float
        (sum of weights)^2 over the sum of their squares, with each importance weight times the
        weight of its session: of as many sessions of the new policy itself the estimate would be
        as certain. The least over slots.
    maximum_weight : float
    support : float
        The mean weight, a share: how much of what the policy would show the log has shown. The rest
        counts as without reward, or as the model predicts it.
    sessions : int
        Number of sessions with a weight above 0.
    units : int
        What the interval is over: sessions, or clusters of them.
    unit : str
        Their name.
    estimator, metric, name : str
        What was estimated, and for which policy.
    remarks : tuple of str
        Sentences on what the numbers do not say.
    influence : (S,) array
        What each session adds to the error of the estimate; see `difference`.
    freedom : float
        Degrees of freedom of the interval: half of (6).
    widened : (float, float)
        How much lower and higher the interval ends because of what the log has not shown.

    Examples
    --------
    >>> from rankwright import clicks
    >>> found = clicks.estimate_value([1, 0, 1, 0], [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> found.value, round(found.effective_sample_size, 2), found.maximum_weight
    (0.375, 2.91, 2.0)
    """

    value: float
    low: float
    high: float
    standard_error: float
    effective_sample_size: float
    maximum_weight: float
    support: float
    sessions: int
    units: int
    unit: str
    estimator: str
    metric: str = "reward"
    name: str = "the policy"
    remarks: tuple[str, ...] = ()
    influence: F64 = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    cluster: I64 | None = field(default=None, repr=False, compare=False)
    freedom: float = field(default=math.inf, repr=False, compare=False)
    widened: tuple[float, float] = field(default=(0.0, 0.0), repr=False, compare=False)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.low, self.high

    def difference(self, other: PolicyValue) -> PolicyDifference:
        """Return this value less that of another policy on the same sessions, with its interval."""
        if len(self.influence) != len(other.influence) or self.metric != other.metric:
            raise UsageError(
                "only values of one metric on the sessions of one log have a paired difference."
            )
        change = self.value - other.value
        freedom = min(self.freedom, other.freedom)
        terms = self.influence - other.influence
        low, high, error = _interval(change, terms, self.cluster, freedom)
        low -= self.widened[0] + other.widened[1]
        high += self.widened[1] + other.widened[0]
        if math.isnan(self.standard_error) or math.isnan(other.standard_error):
            low = high = error = math.nan
        return PolicyDifference(self.name, other.name, self.metric, change, low, high, error)

    def widen(self, below: float, above: float) -> PolicyValue:
        """Return the same value with an interval that ends this much lower and higher."""
        low, high = self.low - below, self.high + above
        return replace(self, low=low, high=high, widened=(below, above))

    def to_dict(self) -> dict[str, Any]:
        """Return all values as JSON holds them, None for what is not known."""
        names = (
            "name", "metric", "estimator", "value", "low", "high", "standard_error",
            "effective_sample_size", "maximum_weight", "support", "sessions", "units", "unit",
        )  # fmt: skip
        made = {name: getattr(self, name) for name in names}
        known = {key: None if _is_nan(value) else value for key, value in made.items()}
        return known | {"remarks": list(self.remarks)}

    def __str__(self) -> str:
        between = (
            "no interval is claimed"
            if math.isnan(self.standard_error)
            else f"95 % interval {self.low:.4f} to {self.high:.4f}"
        )
        lines = [
            f"{self.metric} of {self.name} would be {self.value:.4f} ({between}), by "
            f"{self.estimator} from {self.sessions:,.0f} sessions; the unit of "
            f"the interval is the {self.unit} ({self.units:,}).",
            f"Effective sample: {self.effective_sample_size:,.0f} sessions; largest weight "
            f"{self.maximum_weight:.3g}; the log has shown {self.support:.1%} of what it would "
            "show.",
        ]
        return "\n".join([*lines, *self.remarks])


@dataclass(frozen=True)
class PolicyDifference:
    """The value of one policy less that of another, on the same sessions.

    Attributes
    ----------
    name, baseline : str
        The two policies.
    metric : str
    difference, low, high, standard_error : float
        With its paired 95 % interval.

    Examples
    --------
    >>> from rankwright import clicks
    >>> reward = [1, 0, 1, 0]
    >>> old = clicks.estimate_value(reward, [1.0, 1.0, 1.0, 1.0], estimator="ips")
    >>> new = clicks.estimate_value(reward, [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> new.difference(old).difference
    -0.125
    """

    name: str
    baseline: str
    metric: str
    difference: float
    low: float
    high: float
    standard_error: float

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0.0 or self.high < 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all values as JSON holds them."""
        names = ("name", "baseline", "metric", "difference", "low", "high", "standard_error")
        made = {name: getattr(self, name) for name in names}
        known = {key: None if _is_nan(value) else value for key, value in made.items()}
        return known | {"significant": self.significant}

    def __str__(self) -> str:
        if math.isnan(self.standard_error):
            verdict = "no interval is claimed"
        elif self.significant:
            verdict = "better" if self.difference > 0.0 else "worse"
        else:
            verdict = "this log does not decide between them"
        between = (
            "" if math.isnan(self.low) else f" (95 % interval {self.low:+.4f} to {self.high:+.4f})"
        )
        return (
            f"{self.metric} of {self.name} less that of {self.baseline}: "
            f"{self.difference:+.4f}{between}: {verdict}."
        )


def estimate_value(
    reward: Any,
    weight: Any,
    *,
    estimator: str = "snips",
    predicted: Any = None,
    expected: Any = None,
    limit: float | None = None,
    session_sizes: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
) -> PolicyValue:
    """Return the value of a policy from logged rewards and importance weights.

    For logs of lists and rankers, `evaluate_policy` finds the weights itself.

    Parameters
    ----------
    reward : array-like (n,)
        Of each thing shown.
    weight : array-like (n,)
        Probability under the new policy over that under the logging policy: of the thing shown, or
        for lists of what the module's text says.
    estimator : {"ips", "snips", "dr", "cascade_dr"}, default "snips"
        Equations (1) to (4) of `rankwright.clicks.off_policy`.
    predicted : array-like (n,)
        What a model predicts as the reward of the thing shown; for "cascade_dr" as the sum of the
        rewards from this slot on.
    expected : array-like (n,)
        The mean of that prediction over what the new policy would show; for "cascade_dr" below what
        stands above the slot.
    limit : float
        The highest weight: less variance, and some bias.
    session_sizes : array-like (S,)
        How many consecutive rows are one list; by default each row is a session of its own.
    cluster : array-like (S,)
        What sessions depend on each other through, such as their query: the unit of the interval.
    sample_weight : array-like (S,)
        How much each session counts in the value. A session is one observation whatever its weight,
        so that a common factor changes nothing: repeat sessions that occurred several times.

    Returns
    -------
    PolicyValue
        Per session. A model that was fitted to the same rows makes intervals of "dr" too narrow:
        fit it to others.

    Examples
    --------
    >>> from rankwright.clicks import estimate_value
    >>> found = estimate_value([1, 0, 1, 0], [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> found.value
    0.375
    """
    check_choice("estimator", estimator, ESTIMATORS)
    n = np.size(reward)
    if not n:
        raise DataError("there are no rewards to estimate a value from.")
    r = as_float_vector(reward, "reward", n)
    w = as_float_vector(weight, "weight", n)
    given = {"predicted": predicted, "expected": expected}
    q, b = (
        np.zeros(n) if one is None else as_float_vector(one, name, n) for name, one in given.items()
    )
    for name, values in (("reward", r), ("weight", w), ("predicted", q), ("expected", b)):
        bad = ~np.isfinite(values) | ((values < 0.0) & (name == "weight"))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            what = "finite and 0 or more" if name == "weight" else "finite"
            raise DataError(f"{name} must be {what}; row {at} has {values[at]:g}.")
    missing = [name for name, values in given.items() if values is None]
    if estimator not in _WITH_MODEL and len(missing) < 2:
        raise UsageError(f"estimator='{estimator}' takes no model of rewards; 'dr' takes one.")
    if estimator in _WITH_MODEL and missing:
        raise UsageError(
            f"estimator='{estimator}' needs {missing[0]}=..., from a model of rewards."
        )
    indptr = np.arange(n + 1)
    if session_sizes is not None:
        indptr, *_ = boundaries_of_sizes(session_sizes, n, "session_sizes", "session")
    n_sessions = len(indptr) - 1
    counts = (
        np.ones(n_sessions)
        if sample_weight is None
        else checked_weights(sample_weight, "sample_weight", n_sessions)
    )
    codes = None
    if cluster is not None:
        codes = codes_of_ids(as_vector(cluster, "cluster", n_sessions))[0].astype(np.int64)
    taken = limited(w, limit)
    terms = np.empty(n_sessions)
    if estimator == "cascade_dr":
        add_up_cascade(indptr, taken, r, q, b, terms)  # (4)
    elif estimator == "snips":
        terms = normalised_terms(indptr, slots_of(indptr), taken, r, counts, np.diff(indptr))
    else:
        add_up_sessions(indptr, taken, r - q, terms)  # (1)
        base = np.empty(n_sessions)
        add_up_sessions(indptr, np.ones(n), b, base)
        terms += base  # (3)
    return value_of_terms(
        terms,
        counts,
        codes,
        estimator=estimator,
        weights=Weights.of(indptr, slots_of(indptr), w, counts, reward=r),
        remarks=limit_remark(estimator, limit),
    )


def limited(weight: F64, limit: float | None) -> F64:
    """Return the weights, at most ``limit``."""
    if limit is None:
        return weight
    check_above_zero("limit", limit)
    return np.minimum(weight, limit)


def limit_remark(estimator: str, limit: float | None) -> tuple[str, ...]:
    """Return the sentence on what a limit does to the interval."""
    if limit is None:
        return ()
    return (
        f"Weights are limited ({estimator}, limit {limit:g}): the interval is that of an estimate "
        "with less variance and some bias, and may miss the value.",
    )


@dataclass(frozen=True)
class Weights:
    """Importance weights by slot, added up.

    Attributes
    ----------
    mean : (L,) array
        Of each slot, over the sessions that have it.
    error : (L,) array
        Standard error of that mean.
    effective : (L,) array
        Effective sample size.
    highest : float
    freedom : float
        Degrees of freedom of intervals, the least over slots.
    rewards : float
        Effective number of rewards, infinite if it was not counted.
    """

    mean: F64
    error: F64
    effective: F64
    highest: float
    freedom: float
    rewards: float = math.inf

    @classmethod
    def of(
        cls,
        indptr: I64,
        slot: I64,
        weight: F64,
        counts: F64,
        have: I64 | None = None,
        reward: F64 | None = None,
    ) -> Weights:
        """Return the sums of ``weight``; ``have`` is how many slots each session should have."""
        c = np.repeat(counts, np.diff(indptr))
        sizes = np.diff(indptr) if have is None else have
        n, squares = _sessions_with(sizes, counts), _sessions_with(sizes, counts**2)
        first, mixed, second = (
            np.bincount(slot, values, len(n))
            for values in (c * weight, c**2 * weight, (c * weight) ** 2)
        )
        mean = first / n
        error = np.sqrt(np.maximum(second - 2.0 * mean * mixed + mean**2 * squares, 0.0)) / n
        effective = np.where(second > 0.0, first**2 / np.where(second > 0.0, second, 1.0), 0.0)
        freedom = degrees_of_freedom(slot, c * weight)
        highest = float(weight.max(initial=0.0))
        rewards = math.inf if reward is None else effective_number(c * weight * np.abs(reward))
        return cls(mean, error, effective, highest, freedom, rewards)


def effective_number(weight: F64) -> float:
    """Return (sum of weights)^2 over the sum of their squares."""
    relative = weight / max(float(weight.max(initial=0.0)), 1e-300)
    return float(relative.sum() ** 2 / max(float(relative @ relative), 1e-300))


def degrees_of_freedom(slot: I64, weight: F64) -> float:
    """Return half of (6), the least over slots."""
    relative = weight / max(float(weight.max(initial=0.0)), 1e-300)
    squares, powers = (np.bincount(slot, relative**power) for power in (2, 4))
    known = powers > 0.0
    return float((squares[known] ** 2 / powers[known]).min(initial=math.inf)) / 2.0


def slots_of(indptr: I64) -> I64:
    """Return the number of each row within its session, from 0."""
    slot: I64 = np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr))
    return slot


def _sessions_with(have: I64, counts: F64) -> F64:
    """Return the weights of sessions that have slot 0, 1, ...; ``have`` is the number of each."""
    ends = np.bincount(have, counts)[::-1].cumsum()[::-1]
    found: F64 = np.maximum(ends[1:], 1e-300)
    return found


def normalised_terms(
    indptr: I64, slot: I64, weight: F64, reward: F64, counts: F64, have: I64
) -> F64:
    """Return terms whose mean is (2), and whose deviations are those of (2) to first order.

    ``have`` is the number of slots of each session; a slot counts for the sessions that have it.
    """
    n = _sessions_with(have, counts)
    c = np.repeat(counts, np.diff(indptr))
    total = np.bincount(slot, c * weight, len(n))
    rate = np.bincount(slot, c * weight * reward, len(n)) / np.where(total > 0.0, total, 1.0)
    scale = np.where(total > 0.0, n / np.where(total > 0.0, total, 1.0), 0.0)
    terms = np.empty(len(counts))
    add_up_sessions(indptr, weight * scale[slot], reward - rate[slot], terms)
    return terms + np.concatenate(([0.0], np.cumsum(rate)))[have]  # (2)


def value_of_terms(
    terms: F64,
    counts: F64,
    cluster: I64 | None,
    *,
    estimator: str,
    weights: Weights,
    unit: str = "cluster",
    remarks: Sequence[str] = (),
    **about: Any,
) -> PolicyValue:
    """Return the mean of the terms of sessions, with the interval over sessions or clusters."""
    total = float(counts.sum())
    if not total > 0.0:
        raise DataError("all sessions have the weight 0, so there is nothing to estimate from.")
    value = float(counts @ terms) / total
    influence = counts / total * len(terms) * (terms - value)
    low = high = error = math.nan
    if weights.effective.min() >= _FEWEST_EFFECTIVE:
        low, high, error = _interval(value, influence, cluster, weights.freedom)
    sessions = int(np.count_nonzero(counts))
    units = sessions if cluster is None else int(cluster.max()) + 1
    notes = [_FEW] if math.isnan(error) else []
    if weights.rewards < _FEW_REWARDS and not notes:
        notes.append(
            f"Few rewards: they count as {weights.rewards:.1f} of equal weight, so that the "
            "interval may miss the value in more than 5 % of logs."
        )
    return PolicyValue(
        value=value,
        low=low,
        high=high,
        standard_error=error,
        effective_sample_size=float(weights.effective.min()),
        maximum_weight=weights.highest,
        support=min(1.0, float(weights.mean.mean())),
        sessions=sessions,
        units=units,
        unit="session" if cluster is None else unit,
        estimator=estimator,
        remarks=(*remarks, *notes),
        influence=influence,
        cluster=cluster,
        freedom=weights.freedom,
        **about,
    )


_FEW = (
    f"No interval: there are fewer than {_FEWEST_EFFECTIVE:.0f} effective sessions, or fewer than "
    f"{_FEWEST_UNITS} sessions or queries that tell anything apart; collect more."
)


def _interval(
    value: float, influence: F64, cluster: I64 | None, freedom: float = math.inf
) -> tuple[float, float, float]:
    """Return low, high and the standard error, (5); NaN where there is too little."""
    from scipy import stats

    z = influence
    if cluster is not None:
        sums = np.bincount(cluster, influence)
        z = (sums * (len(sums) / len(influence))).astype(np.float64)
    n = len(z)
    off = z - z.mean()
    deviation = math.sqrt(float(off @ off) / max(1, n - 1))
    common = int(np.unique(np.round(z, 12), return_counts=True)[1].max(initial=0))
    few = n - common < min(_FEWEST_UNITS, n / 2)
    if few or n < 2 or not deviation > 0.0:
        return math.nan, math.nan, math.nan
    error = deviation / math.sqrt(n)
    t = float(stats.t.ppf(0.5 + LEVEL / 2, min(freedom, n - 1)))
    skewness = float((off**3).mean() / ((off @ off) / n) ** 1.5)

    def transformed(x: float) -> float:
        """Return T of (5)."""
        if abs(skewness) < 1e-6:
            return x / math.sqrt(n)
        inner = 1.0 + skewness * (x / math.sqrt(n) - skewness / (6 * n))
        return 3.0 / skewness * (float(np.cbrt(inner)) - 1.0)

    return value - deviation * transformed(t), value - deviation * transformed(-t), error


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


# --- plot ------------------------------------------------------------------------------------


def plot_values(values: Mapping[str, PolicyValue], *, ax: Any = None) -> Any:
    """Draw values with their intervals, a line for each; return the Axes.

    Parameters
    ----------
    values : mapping from names to PolicyValue
        Such as ``values`` of `compare_policies`, or one policy by several estimators.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Examples
    --------
    >>> from rankwright import clicks
    >>> found = clicks.estimate_value([1, 0, 1, 0], [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> ax = clicks.plot_values({"new": found})
    >>> ax.figure.savefig("values.svg")
    """
    if not values:
        raise UsageError("there is nothing to draw; give values={'name': value}.")
    import_matplotlib()
    ax = new_axes(ax, height=1.2 + 0.36 * len(values))
    for place, one in enumerate(values.values()):
        known = not math.isnan(one.low)
        error = [[one.value - one.low], [one.high - one.value]] if known else None
        ax.errorbar(one.value, place, xerr=error, fmt="o", color=COLOURS[0], capsize=3)
    ax.set_yticks(range(len(values)), list(values))
    ax.set_ylim(len(values) - 0.5, -0.5)
    metrics = sorted({one.metric for one in values.values()})
    ax.set_xlabel(f"{', '.join(metrics)}, estimated from a log, with 95 % interval")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    return plain_axes(ax)
