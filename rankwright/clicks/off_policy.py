"""Off-policy estimators: the value of a policy from the log of another one, with intervals.

A session shows documents at the slots l = 1, 2, ... of a list and has a reward r_l at each: a
click, a discounted click, or 0. The importance weight w_l is the probability of the shown document
under the new policy, divided by its probability under the logging policy. Let q_l be a prediction
of its reward, and b_l the mean prediction over the documents of the new policy. Sums are over the
slots of a session, means over sessions:

    ips         V = mean of sum w_l r_l                         [horvitz1952generalization]     (1)
    snips       V = sum over l of mean(w_l r_l) / mean(w_l)     [swaminathan2015self]           (2)
    dr          V = mean of sum b_l + w_l (r_l - q_l)           [dudik2014doubly]               (3)
    cascade_dr  V = mean of sum w_l (r_l - q_l) + w_{l-1} b_l, w_0 = 1  [kiyohara2022doubly]    (4)

A ``limit`` L replaces w by min(w, L), which reduces the variance and adds some bias.

The weight determines the assumption about users, and the name of (1) for lists. Weights of the
whole list (standard slate IPS) assume nothing. Weights of the list down to the slot (RIPS,
`mcinerney2020counterfactual`) assume that a click does not depend on documents below. Weights of
the document at its slot (IIPS, `li2018offline`) assume that it does not depend on other documents.
`rankwright.clicks.policies` has the probabilities of lists.

Each estimate is a mean of terms, or is one to first order (the delta method). Weights make the
distribution of the terms skewed. The interval is Student's after Hall's cubic transformation, which
removes the skewness [hall1992removal]. With n units, their mean m, deviation d and skewness g,

    low, high = m - d T(+-t),   T(x) = 3/g ((1 + g (x / sqrt(n) - g / (6 n)))^(1/3) - 1)        (5)

The quantile t has half of

    (sum w^2)^2 / sum w^4                                                                       (6)

degrees of freedom, and at most n - 1: the deviation of weighted terms is as uncertain as the
deviation of this number of terms without weights. It is half, because a sample seldom contains the
largest possible weights.

Sessions can have weights in these means. Each session is one observation, independent of its
weight.

Sessions of the same query are similar. If the caller gives clusters (queries), they are the units,
and their sums have the deviation d. Results have no interval with fewer than 30 effective sessions.
With fewer than 10 effective rewards, a remark warns that the interval covers less often.

``make test-slow`` measures the coverage. With 35 effective sessions, and rewards in about a third
of the sessions, intervals cover the value in 96 to 99 % of 1,000 logs with even, softmax and
log-normal weights (88 to 98 % with n - 1 degrees of freedom in (5)). With 1,000 sessions or 100
queries they cover it in 93 to 98 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankwright.clicks.figures import COLOURS, import_matplotlib, new_axes, plain_axes
from rankwright.core.dtypes import as_float_vector, as_vector
from rankwright.core.parameters import check_above_zero, check_choice
from rankwright.core.types import F64, I64
from rankwright.data.click_log import codes_of_ids
from rankwright.data.ranking_data import boundaries_of_sizes, checked_weights
from rankwright.errors import DataError, UsageError

_LEVEL = 0.95
_FEWEST_UNITS = 10  # units whose term differs from the most common one
_FEWEST_EFFECTIVE = 30.0  # sessions; below, the deviation is too uncertain for an interval
_FEW_REWARDS = 10.0  # effective rewards below which an interval may cover too seldom
_NO_INTERVAL = (
    f"No interval: there are fewer than {_FEWEST_EFFECTIVE:.0f} effective sessions, or fewer than "
    f"{_FEWEST_UNITS} sessions or queries with different terms; collect more."
)
_TINY = 1e-300  # instead of a divisor 0


# --- results ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyValue:
    """Estimated reward of a policy per session, with its interval; ``print`` shows it.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        95 % interval; NaN if there is too little evidence for one.
    standard_error : float
        NaN without an interval.
    effective_sample_size : float
        Number of sessions of the new policy itself that would give an equally precise estimate:
        (sum of weights)^2 / sum of squared weights, with each importance weight multiplied by the
        weight of its session. The minimum over slots.
    maximum_weight : float
        The largest importance weight.
    support : float
        The mean weight: the share of the lists of the policy that the log contains. The remaining
        share counts as without reward, or as the model predicts.
    sessions : int
        Number of sessions with a weight above 0.
    units : int
        Number of observations of the interval: sessions or clusters.
    unit : str
        Name of the unit.
    estimator, metric, name : str
        Estimator, metric and policy.
    remarks : tuple of str
        Limitations of the estimate, in sentences.
    influence : (S,) array
        Contribution of each session to the error of the estimate; see `difference`.
    freedom : float
        Degrees of freedom of the interval: half of (6).
    widened : (float, float)
        Extension of the interval below and above for documents that the log does not contain.

    Examples
    --------
    >>> from rankwright import clicks
    >>> value = clicks.estimate_value([1, 0, 1, 0], [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> value.value, round(value.effective_sample_size, 2), value.maximum_weight
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
        """Return this value minus the value of another policy on the same sessions."""
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
        """Return the same value with an interval that is extended below and above."""
        low, high = self.low - below, self.high + above
        return replace(self, low=low, high=high, widened=(below, above))

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON, with None for unknown values."""
        names = (
            "name", "metric", "estimator", "value", "low", "high", "standard_error",
            "effective_sample_size", "maximum_weight", "support", "sessions", "units", "unit",
        )  # fmt: skip
        return _without_nan(self, names) | {"remarks": list(self.remarks)}

    def __str__(self) -> str:
        between = (
            "no interval"
            if math.isnan(self.standard_error)
            else f"95 % interval {self.low:.4f} to {self.high:.4f}"
        )
        lines = [
            f"Estimated {self.metric} of {self.name}: {self.value:.4f} ({between}). Estimator "
            f"{self.estimator}, {self.sessions:,} sessions; the unit of the interval is the "
            f"{self.unit} ({self.units:,}).",
            f"Effective sample size {self.effective_sample_size:,.0f} sessions, largest weight "
            f"{self.maximum_weight:.3g}. The log contains {self.support:.1%} of its lists.",
        ]
        return "\n".join([*lines, *self.remarks])


@dataclass(frozen=True)
class PolicyDifference:
    """Difference between the values of two policies on the same sessions.

    Attributes
    ----------
    name, baseline : str
        The two policies.
    metric : str
        The metric of both values.
    difference, low, high, standard_error : float
        Value of the policy minus the value of the baseline, with the paired 95 % interval.

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
        """Whether the interval excludes 0."""
        return self.low > 0.0 or self.high < 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON, with None for unknown values."""
        names = ("name", "baseline", "metric", "difference", "low", "high", "standard_error")
        return _without_nan(self, names) | {"significant": self.significant}

    def __str__(self) -> str:
        change = f"{self.metric} of {self.name} minus {self.baseline}: {self.difference:+.4f}"
        if math.isnan(self.standard_error):
            return f"{change}: no interval."
        verdict = "this log does not decide between them"
        if self.significant:
            verdict = "better" if self.difference > 0.0 else "worse"
        return f"{change} (95 % interval {self.low:+.4f} to {self.high:+.4f}): {verdict}."


def _without_nan(record: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return attributes by name, with None instead of NaN."""
    values = {name: getattr(record, name) for name in names}
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }


# --- estimators ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoggedRewards:
    """Rewards of sessions with importance weights; a row is a document that was shown.

    Attributes
    ----------
    session, slot : (n,) int64
        Session of each row, not decreasing, and its slot, from 0.
    reward, weight : (n,) float64
    session_weight : (S,) float64
    slots : (S,) int64
        Number of slots of the list of each session, including slots without a row.
    predicted, expected : (n,) float64
        q and b of (3) and (4).
    base : (S,) float64
        The sum of b over the slots of each session.
    """

    session: I64
    slot: I64
    reward: F64
    weight: F64
    session_weight: F64
    slots: I64
    predicted: F64 | float = 0.0
    expected: F64 | float = 0.0
    base: F64 | float = 0.0

    def sums(self, values: F64) -> F64:
        """Return the sum of the rows of each session."""
        return np.bincount(self.session, values, len(self.slots)).astype(np.float64)

    def row_weights(self) -> F64:
        """Return the weight of the session of each row."""
        return self.session_weight[self.session]

    def weight_by_slot(self, power: int = 1) -> F64:
        """Return the sum of powers of the weights of the sessions that have slot 0, 1, ..."""
        ends = np.bincount(self.slots, self.session_weight**power)
        sums: F64 = np.maximum(ends[::-1].cumsum()[::-1][1:], _TINY)
        return sums

    def limited(self, limit: float | None) -> LoggedRewards:
        """Return the same rows with weights of at most ``limit``."""
        if limit is None:
            return self
        check_above_zero("limit", limit)
        return replace(self, weight=np.minimum(self.weight, limit))


def _ips(rows: LoggedRewards) -> F64:
    return rows.sums(rows.weight * rows.reward)  # (1)


def _snips(rows: LoggedRewards) -> F64:
    """Return terms with the mean (2), and with its deviations to first order."""
    n, weight = rows.weight_by_slot(), rows.row_weights() * rows.weight
    total = np.bincount(rows.slot, weight, len(n))
    divisor = np.where(total > 0.0, total, 1.0)
    rate = np.bincount(rows.slot, weight * rows.reward, len(n)) / divisor
    scale = np.where(total > 0.0, n / divisor, 0.0)
    residual = rows.weight * scale[rows.slot] * (rows.reward - rate[rows.slot])
    sums_of_rates: F64 = np.append(0.0, np.cumsum(rate))[rows.slots]
    return rows.sums(residual) + sums_of_rates  # (2)


def _dr(rows: LoggedRewards) -> F64:
    return rows.sums(rows.weight * (rows.reward - rows.predicted)) + rows.base  # (3)


def _cascade_dr(rows: LoggedRewards) -> F64:
    first = np.diff(rows.session, prepend=-1) > 0
    above = np.where(first, 1.0, np.roll(rows.weight, 1))
    return rows.sums(rows.weight * (rows.reward - rows.predicted) + above * rows.expected)  # (4)


TERMS: Mapping[str, Callable[[LoggedRewards], F64]] = {
    "ips": _ips,
    "snips": _snips,
    "dr": _dr,
    "cascade_dr": _cascade_dr,
}
"""Functions by estimator that return the term of each session."""
_WITH_MODEL = ("dr", "cascade_dr")


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

    For click logs and rankers, use `evaluate_policy`, which computes the weights.

    Parameters
    ----------
    reward : array-like (n,)
        Reward of each action, or of each document of a list.
    weight : array-like (n,)
        Its probability under the new policy divided by its probability under the logging policy.
        For lists, see `rankwright.clicks.off_policy`.
    estimator : {"ips", "snips", "dr", "cascade_dr"}, default "snips"
        Equations (1) to (4) of `rankwright.clicks.off_policy`.
    predicted : array-like (n,)
        Reward predicted by a model; for "cascade_dr" the sum of rewards from this slot on.
    expected : array-like (n,)
        Mean of this prediction over the actions of the new policy; for "cascade_dr" given the
        documents above the slot.
    limit : float
        Maximum weight: less variance, and some bias.
    session_sizes : array-like (S,)
        Number of consecutive rows of each list; by default each row is a session.
    cluster : array-like (S,)
        What makes sessions depend on each other, such as the query: the unit of the interval.
    sample_weight : array-like (S,)
        Weight of each session in the value. A session is one observation, independent of its
        weight, and a common factor has no effect: repeat sessions that occurred several times.

    Returns
    -------
    PolicyValue
        Per session. Fit the model of "dr" to other rows than these; otherwise the interval is too
        narrow.

    Examples
    --------
    >>> from rankwright.clicks import estimate_value
    >>> value = estimate_value([1, 0, 1, 0], [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> value.value
    0.375
    """
    check_choice("estimator", estimator, TERMS)
    n = np.size(reward)
    if not n:
        raise DataError("a value needs at least one reward; there are no rewards.")
    given = {"reward": reward, "weight": weight, "predicted": predicted, "expected": expected}
    arrays = {
        name: as_float_vector(values, name, n)
        for name, values in given.items()
        if values is not None
    }
    for name, values in arrays.items():
        bad = ~np.isfinite(values) | ((values < 0.0) & (name == "weight"))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            required = "finite and 0 or more" if name == "weight" else "finite"
            raise DataError(f"{name} must be {required}; row {at} has {values[at]:g}.")
    missing = [name for name in ("predicted", "expected") if name not in arrays]
    if estimator not in _WITH_MODEL and len(missing) < 2:
        raise UsageError(f"estimator='{estimator}' takes no model of rewards; 'dr' takes one.")
    if estimator in _WITH_MODEL and missing:
        raise UsageError(
            f"estimator='{estimator}' needs {missing[0]}=..., from a model of rewards."
        )
    indptr = np.arange(n + 1)
    if session_sizes is not None:
        indptr, *_ = boundaries_of_sizes(session_sizes, n, "session_sizes", "session")
    sizes = np.diff(indptr)
    weights = np.ones(len(sizes))
    if sample_weight is not None:
        weights = checked_weights(sample_weight, "sample_weight", len(sizes))
    clusters = None
    if cluster is not None:
        clusters = codes_of_ids(as_vector(cluster, "cluster", len(sizes)))[0].astype(np.int64)
    rows = LoggedRewards(
        session=np.repeat(np.arange(len(sizes)), sizes),
        slot=np.arange(n) - np.repeat(indptr[:-1], sizes),
        session_weight=weights,
        slots=sizes,
        **arrays,
    )
    if "expected" in arrays:
        rows = replace(rows, base=rows.sums(arrays["expected"]))
    return value_of_rows(rows, estimator, limit=limit, cluster=clusters)


def value_of_rows(
    rows: LoggedRewards,
    estimator: str,
    *,
    limit: float | None = None,
    cluster: I64 | None = None,
    unit: str = "cluster",
    weights: Weights | None = None,
    estimator_name: str | None = None,
    remarks: Sequence[str] = (),
    **about: Any,
) -> PolicyValue:
    """Return the mean of the terms of an estimator, with the interval over sessions or clusters.

    Parameters
    ----------
    estimator
        A key of `TERMS`.
    weights
        Summary of the importance weights, by default of the rows.
    estimator_name
        Name of the estimator in the result, by default ``estimator``.
    about
        ``metric`` and ``name`` of the result.
    """
    weights = Weights.of(rows) if weights is None else weights
    estimator_name = estimator_name or estimator
    if not rows.session_weight.any():
        raise DataError("all sessions have the weight 0, so there is nothing to estimate from.")
    terms = TERMS[estimator](rows.limited(limit))
    share = rows.session_weight / rows.session_weight.sum()
    value = float(share @ terms)
    influence = share * len(terms) * (terms - value)
    low = high = error = math.nan
    if weights.effective.min() >= _FEWEST_EFFECTIVE:
        low, high, error = _interval(value, influence, cluster, weights.freedom)
    notes = list(remarks)
    if limit is not None:
        notes.insert(
            0,
            f"Weights are limited ({estimator_name}, limit {limit:g}): the estimate has less "
            "variance and some bias, so that its interval may miss the value.",
        )
    if math.isnan(error):
        notes.append(_NO_INTERVAL)
    elif weights.rewards < _FEW_REWARDS:
        notes.append(
            f"Few rewards: they count as {weights.rewards:.1f} of equal weight, so that the "
            "interval may miss the value in more than 5 % of logs."
        )
    sessions = int(np.count_nonzero(rows.session_weight))
    return PolicyValue(
        value=value,
        low=low,
        high=high,
        standard_error=error,
        effective_sample_size=float(weights.effective.min()),
        maximum_weight=weights.highest,
        support=min(1.0, float(weights.mean.mean())),
        sessions=sessions,
        units=sessions if cluster is None else int(cluster.max()) + 1,
        unit="session" if cluster is None else unit,
        estimator=estimator_name,
        remarks=tuple(notes),
        influence=influence,
        cluster=cluster,
        freedom=weights.freedom,
        **about,
    )


# --- importance weights and intervals --------------------------------------------------------


@dataclass(frozen=True)
class Weights:
    """Summary of importance weights.

    Attributes
    ----------
    mean, error, effective : (L,) arrays
        Mean weight at each slot over the sessions that have it, its standard error, and the
        effective sample size.
    highest : float
        The largest weight.
    freedom : float
        Degrees of freedom of intervals, the minimum over slots.
    rewards : float
        Effective number of rewards.
    """

    mean: F64
    error: F64
    effective: F64
    highest: float
    freedom: float
    rewards: float

    @classmethod
    def of(cls, rows: LoggedRewards) -> Weights:
        """Return the summary of the weights of rows."""
        c, n = rows.row_weights(), rows.weight_by_slot()
        weight = c * rows.weight
        first, mixed, second = (
            np.bincount(rows.slot, values, len(n)) for values in (weight, c * weight, weight**2)
        )
        mean = first / n
        squares = second - 2.0 * mean * mixed + mean**2 * rows.weight_by_slot(power=2)
        return cls(
            mean=mean,
            error=np.sqrt(np.maximum(squares, 0.0)) / n,
            effective=np.where(second > 0.0, first**2 / np.where(second > 0.0, second, 1.0), 0.0),
            highest=float(rows.weight.max(initial=0.0)),
            freedom=degrees_of_freedom(rows.slot, weight),
            rewards=effective_number(weight * np.abs(rows.reward)),
        )


def effective_number(weight: F64) -> float:
    """Return (sum of weights)^2 / sum of squared weights."""
    relative = weight / max(float(weight.max(initial=0.0)), _TINY)
    return float(relative.sum() ** 2 / max(float(relative @ relative), _TINY))


def degrees_of_freedom(slot: I64, weight: F64) -> float:
    """Return half of (6), the minimum over slots."""
    relative = weight / max(float(weight.max(initial=0.0)), _TINY)
    squares, powers = (np.bincount(slot, relative**power) for power in (2, 4))
    used = powers > 0.0
    return float((squares[used] ** 2 / powers[used]).min(initial=math.inf)) / 2.0


def _interval(
    value: float, influence: F64, cluster: I64 | None, freedom: float = math.inf
) -> tuple[float, float, float]:
    """Return low, high and the standard error, (5); NaN if there are too few units."""
    from scipy import stats

    z = influence
    if cluster is not None:
        sums = np.bincount(cluster, influence)
        z = (sums * (len(sums) / len(influence))).astype(np.float64)
    n = len(z)
    centred = z - z.mean()
    deviation = math.sqrt(float(centred @ centred) / max(1, n - 1))
    most_common = int(np.unique(np.round(z, 12), return_counts=True)[1].max(initial=0))
    few = n - most_common < min(_FEWEST_UNITS, n / 2)
    if few or n < 2 or not deviation > 0.0:
        return math.nan, math.nan, math.nan
    error = deviation / math.sqrt(n)
    t = float(stats.t.ppf(0.5 + _LEVEL / 2, min(freedom, n - 1)))
    skewness = float((centred**3).mean() / ((centred @ centred) / n) ** 1.5)

    def transformed(x: float) -> float:
        """Return T of (5)."""
        if abs(skewness) < 1e-6:
            return x / math.sqrt(n)
        inner = 1.0 + skewness * (x / math.sqrt(n) - skewness / (6 * n))
        return 3.0 / skewness * (float(np.cbrt(inner)) - 1.0)

    return value - deviation * transformed(t), value - deviation * transformed(-t), error


# --- plot ------------------------------------------------------------------------------------


def plot_values(values: Mapping[str, PolicyValue], *, ax: Any = None) -> Any:
    """Draw a line with the value and interval of each policy or estimator; return the Axes.

    Parameters
    ----------
    values : mapping from names to PolicyValue
        For example ``values`` of `compare_policies`, or one policy by several estimators.
    ax : matplotlib Axes, optional
        Axes to draw on; by default new ones.

    Examples
    --------
    >>> from rankwright import clicks
    >>> value = clicks.estimate_value([1, 0, 1, 0], [0.5, 2.0, 1.0, 0.5], estimator="ips")
    >>> ax = clicks.plot_values({"new": value})
    >>> ax.figure.savefig("values.svg")
    """
    if not values:
        raise UsageError("there is nothing to draw; give values={'name': value}.")
    import_matplotlib()
    ax = new_axes(ax, height=1.2 + 0.36 * len(values))
    for place, value in enumerate(values.values()):
        error = None
        if not math.isnan(value.low):
            error = [[value.value - value.low], [value.high - value.value]]
        ax.errorbar(value.value, place, xerr=error, fmt="o", color=COLOURS[0], capsize=3)
    ax.set_yticks(range(len(values)), list(values))
    ax.set_ylim(len(values) - 0.5, -0.5)
    metrics = sorted({value.metric for value in values.values()})
    ax.set_xlabel(f"{', '.join(metrics)}, estimated from a log, with 95 % interval")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    return plain_axes(ax)
