"""Off-policy evaluation of rankers: clicks that a ranker would get, from the log of another one.

The metric of a session is a sum over the clicks c at its first k slots,

    clicks@k  sum c_l,   ctr@k  1/k sum c_l,   dcg@k  sum c_l / log2(l + 1)                     (1)

and the value of a ranker is the mean over sessions if the ranker had made the lists. Estimators
differ in their assumption about users, and therefore need different evidence in the log:

                the log must contain          a click depends on
    ips, snips  the document at its position  the document and its position                    (2)
    dr          the same                      the same; a model predicts the clicks
    rips        the list down to the position also on the documents above                      (3)
    cascade_dr  the same                      the same; a model predicts the clicks
    sips        the first k documents         anything                                         (4)
    pbm         the document anywhere         the document, and whether the position is        (5)
                                              examined (`li2018offline`)

`rankwright.clicks.off_policy` has the terms. Weights are probabilities under the ranker (0 or 1, or
Plackett-Luce probabilities) divided by the logged ones, or by shares of the sessions of the same
query. For (5), with examination theta, let A_d be the sum over slots of gain theta P(d at
slot) under the ranker, and B_d the same sum without gains in the log. A click on d has the weight
A_d / B_d, after the offset of the position (trust) has been subtracted.

The model of dr and cascade_dr never predicts sessions that it was fitted to (cross-fitting).
By default it is clicks over expected clicks: the click rate of the position, multiplied by (clicks
of the document + 1) / (clicks that its positions let expect + 1). For cascade_dr, the rewards from
a slot on are regressed on these predictions,

    q_l = b_0 + b_1 m + b_2 s + b_3 m s                                                         (6)

where m is the predicted rate of the document and s the probability that nothing above is clicked.
The regressions run from the last slot up. They fit users who stop after a click and users who do
not.

If the log does not contain a share m of the documents of the ranker, their clicks are unknown. The
interval is extended under the assumption that these documents have between no clicks and twice as
many clicks as the rest. With the value V it covers

    V (1 - m) to V (1 + m)          snips, dr, cascade_dr, which count them like the rest
    V to V (1 + 2 m / (1 - m))      other estimators, which count them as without clicks       (7)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rankwright.clicks.base import ClickModel
from rankwright.clicks.models import model as click_model
from rankwright.clicks.off_policy import (
    LoggedRewards,
    PolicyDifference,
    PolicyValue,
    Weights,
    degrees_of_freedom,
    effective_number,
    value_of_rows,
)
from rankwright.clicks.policies import (
    conditional_probabilities,
    multiply_down,
    slot_probabilities,
)
from rankwright.clicks.position_bias import Propensity
from rankwright.clicks.simulation import scores_of
from rankwright.core.order import ranking
from rankwright.core.parameters import check_choice, check_whole, check_zero_or_more, either
from rankwright.core.types import F64, I64
from rankwright.data.click_log import HIGHEST_POSITION, ClickLog, codes_of_ids
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted

METRICS = ("ctr", "clicks", "dcg")
LOGGED = ("slot", "conditional")
UNITS = ("query", "session")
_SIGNIFICANT = 3.0  # standard errors that a mean weight may differ from 1
_SHRINKAGE = 1.0  # clicks that are added to observed and to expected clicks


class SupportError(DataError):
    """The log contains too little of the lists of a policy, so its value is unknown.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, positions=5)  # always the same list
    >>> try:
    ...     clicks.evaluate_policy(log, 1, "ctr@1")
    ... except clicks.SupportError as error:
    ...     print(error)
    the log has shown 7.5% of the documents of the ranker at their positions; min_support=90% ...
    """


def evaluate_policy(
    log: ClickLog,
    ranker: Any,
    metric: str = "ctr@5",
    *,
    estimator: str = "dr",
    temperature: float = 0.0,
    propensity: Propensity | None = None,
    model: ClickModel | str | None = None,
    logged: str | None = "slot",
    limit: float | None = None,
    unit: str = "query",
    min_support: float = 0.9,
    folds: int = 3,
    n_jobs: int | None = None,
) -> PolicyValue:
    """Return the clicks that a ranker would get, estimated from the log of another one.

    Parameters
    ----------
    log : ClickLog
        With features; the ranker can show the documents of a query in them. The
        ``weight`` of a session counts in the value; in the interval a session is one observation.
    ranker : fitted ranker, feature number or name, array of scores, or callable
        The ranker that would make the lists. It may be trained on the same documents, but not on
        clicks of the same sessions: use an earlier log.
    metric : str, default "ctr@5"
        "ctr@k" (clicks / k), "clicks@k" or "dcg@k".
    estimator : str, default "dr"
        "ips", "snips", "dr", "rips", "cascade_dr", "sips" or "pbm"; see the table of
        `rankwright.clicks.policy_evaluation`.
    temperature : float, default 0.0
        0 shows the documents by score. Otherwise lists are sampled from Plackett-Luce with the
        scores divided by it.
    propensity : Propensity
        Examination of positions, only for "pbm"; `estimate_propensity` estimates it.
    model : ClickModel or str
        For "dr" and "cascade_dr": a fitted click model, or the name of a click model to fit. By
        default clicks over expected clicks.
    logged : {"slot", "conditional"} or None, default "slot"
        Kind of the probabilities in the log: of the document at its position, or given the
        documents above. If it is None, or the log has no probabilities, shares of the sessions
        of the same query are used.
    limit : float
        Maximum weight, for all estimators except "pbm".
    unit : {"query", "session"}, default "query"
        Unit of the interval: queries, whose sessions depend on each other, or sessions, if the log
        contains all queries and only users vary.
    min_support : float, default 0.9
        Minimum share of the lists of the ranker that the log must contain.
    folds : int, default 3
        Number of parts of the sessions for cross-fitting.

    Returns
    -------
    PolicyValue
        Raises `SupportError` if the log contains less than ``min_support``.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, sessions=200, temperature=1.0, positions=5)
    >>> value = clicks.evaluate_policy(log, 1, "ctr@1", estimator="pbm",
    ...                                propensity=clicks.Propensity.power(1.0, positions=5))
    >>> bool(value.low < value.value < value.high)
    True
    """
    gain = _gain_of(metric)
    _check_options(log, estimator, temperature, propensity, limit, unit, min_support, folds)
    assert log.features is not None
    name = str(getattr(ranker, "name", "")) or "the policy"
    method = ESTIMATORS[estimator]
    logged = _usable_probabilities(log, logged, estimator)
    sessions = _Sessions.of(log, gain, use_logged=logged is not None)
    scores = scores_of(ranker, log.features)
    target = _Target.of(scores, log.features, len(gain), temperature, n_jobs)
    rows, weights = method.weigh(sessions, target, propensity)
    missing = _missing_share(weights, logged, sessions.log.n_positions, metric, method, min_support)
    remarks = []
    if missing > 0.0:
        remarks.append(
            f"The log does not contain {missing:.1%} of the lists of {name}. This part "
            f"{method.unseen}. The interval assumes that it has between no clicks and twice as "
            "many per document as the rest."
        )
    if estimator in ("dr", "cascade_dr"):
        rows = _with_predictions(
            rows, sessions, target, model, folds, cascade=estimator == "cascade_dr", n_jobs=n_jobs
        )
    value = value_of_rows(
        rows,
        method.terms,
        limit=limit,
        cluster=np.unique(sessions.query, return_inverse=True)[1] if unit == "query" else None,
        unit=unit,
        weights=weights,
        estimator_name=estimator,
        remarks=remarks,
        metric=metric,
        name=name,
    )
    clicks = missing * abs(value.value)  # (7)
    if method.unseen == _NO_CLICKS:
        return value.widen(0.0, 2.0 * clicks / max(1.0 - missing, 1e-9))
    return value.widen(clicks, clicks)


def _check_options(
    log: ClickLog,
    estimator: str,
    temperature: float,
    propensity: Propensity | None,
    limit: float | None,
    unit: str,
    min_support: float,
    folds: int,
) -> None:
    """Raise if a parameter of `evaluate_policy` is invalid."""
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("unit", unit, UNITS)
    check_zero_or_more("temperature", temperature)
    check_whole("folds", folds, 2)
    if not 0.0 <= min_support <= 1.0:
        raise UsageError(f"min_support is a share, from 0 to 1; it is {min_support}.")
    if estimator == "pbm" and propensity is None:
        raise UsageError(
            "estimator='pbm' needs propensity=..., the examination of each position; "
            "clicks.estimate_propensity(log) estimates it."
        )
    if estimator == "pbm" and limit is not None:
        raise UsageError("estimator='pbm' has no weights to limit; leave out limit=...")
    if log.features is None:
        raise DataError(
            "the log has no features, so the ranker has nothing to rank; log.with_features(data) "
            "adds them."
        )


def _gain_of(metric: str) -> F64:
    """Return the gain of a click at each slot, (1)."""
    parts = re.fullmatch(r"([a-z]+)@([0-9]{1,9})", str(metric))
    if not parts or parts[1] not in METRICS or not 1 <= int(parts[2]) <= HIGHEST_POSITION:
        raise UsageError(
            f"{quoted(metric)} is not a metric of clicks: use {either(list(METRICS))} with a "
            f"cut-off from 1 to {HIGHEST_POSITION:,}, such as ctr@5."
        )
    k = int(parts[2])
    gains = {"ctr": np.full(k, 1.0 / k), "dcg": 1.0 / np.log2(np.arange(2.0, k + 2.0))}
    gain: F64 = gains.get(parts[1], np.ones(k))
    return gain


def _usable_probabilities(log: ClickLog, logged: str | None, estimator: str) -> str | None:
    """Return the kind of logged probabilities to use, or None; raise if it is the wrong kind."""
    if logged is not None:
        check_choice("logged", logged, LOGGED)
    needed = ESTIMATORS[estimator].logged
    if logged is None or log.propensity is None or needed is None:
        return None
    if logged != needed:
        raise UsageError(
            f"estimator='{estimator}' needs probabilities of the kind logged='{needed}', not "
            f"'{logged}'; logged=None uses shares of sessions instead."
        )
    return logged


def _missing_share(
    weights: Weights,
    logged: str | None,
    n_positions: int,
    metric: str,
    method: _Estimator,
    min_support: float,
) -> float:
    """Return the share of the lists of the policy that the log does not contain.

    Raise if it is too large. Shares of sessions are exact; with logged probabilities, the mean
    weight is the share only on average.
    """
    support = float(weights.mean.mean())
    slack = 0.0 if logged is None else _SIGNIFICANT * float(np.sqrt((weights.error**2).mean()))
    key, k = metric.split("@")
    if support + slack < min_support:
        if (weights.mean[n_positions:] == 0.0).any():
            raise SupportError(
                f"the log shows {n_positions} positions and {metric} needs {k}: use "
                f"{key}@{n_positions}."
            )
        raise SupportError(
            f"the log has shown {support:.1%} {method.evidence.format(k=k)}; "
            f"min_support={min_support:.0%} requires more, because clicks on the rest are unknown: "
            f"{method.advice}."
        )
    if logged is not None and support - slack > 1.1:
        raise DataError(
            f"the mean of the weights is {support:.2f} instead of 1, so the probabilities in the "
            f"log are not of the kind logged='{logged}'; choose another kind, or logged=None."
        )
    return 1.0 - support if support + slack < 1.0 - 1e-6 else 0.0


@dataclass(frozen=True)
class PolicyComparison:
    """Values of several policies on one log, and their paired differences; ``print`` shows them.

    Attributes
    ----------
    values : mapping from names to PolicyValue
    differences : tuple of PolicyDifference
        Difference of each policy to the first.
    refused : mapping from names to str
        Policies without a value, because the log contains too little, with the reason.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, temperature=1.0, positions=5, propensity="slot")
    >>> comparison = clicks.compare_policies(log, {"old": 41, "new": 1}, "ctr@1")
    >>> comparison.differences[0].baseline
    'old'
    """

    values: Mapping[str, PolicyValue]
    differences: tuple[PolicyDifference, ...]
    refused: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        return {
            "values": {name: value.to_dict() for name, value in self.values.items()},
            "differences": [difference.to_dict() for difference in self.differences],
            "refused": dict(self.refused),
        }

    def __str__(self) -> str:
        refused = [f"{name}: {reason}" for name, reason in self.refused.items()]
        return "\n".join([*map(str, self.values.values()), *refused, *map(str, self.differences)])


def compare_policies(
    log: ClickLog, rankers: Mapping[str, Any] | Sequence[Any], metric: str = "ctr@5", **options: Any
) -> PolicyComparison:
    """Return the values of several rankers on one log, and their differences to the first.

    Parameters
    ----------
    log : ClickLog
        As for `evaluate_policy`.
    rankers : mapping from names to rankers, or sequence of rankers
        Each as for `evaluate_policy`.
    metric : str, default "ctr@5"
        As for `evaluate_policy`.
    **options
        Further parameters of `evaluate_policy`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, temperature=1.0, positions=5, propensity="slot")
    >>> comparison = clicks.compare_policies(log, {"old": 41, "new": 1}, "ctr@1")
    >>> list(comparison.values)
    ['old', 'new']
    """
    if not isinstance(rankers, Mapping):
        rankers = {
            f"{getattr(ranker, 'name', type(ranker).__name__)} {number}": ranker
            for number, ranker in enumerate(rankers, 1)
        }
    if not rankers:
        raise UsageError("give at least one ranker to evaluate; there is no ranker.")
    values, refused = {}, {}
    for name, ranker in rankers.items():
        try:
            values[name] = replace(evaluate_policy(log, ranker, metric, **options), name=name)
        except SupportError as error:
            refused[name] = str(error)
    in_order = list(values.values())
    differences = tuple(value.difference(in_order[0]) for value in in_order[1:])
    return PolicyComparison(values, differences, refused)


# --- sessions and policies -------------------------------------------------------------------


@dataclass(frozen=True)
class _Sessions:
    """The sessions of a log, with their impressions at the first k positions.

    Attributes
    ----------
    log : ClickLog
        The sessions with impressions and a weight above 0.
    features : RankingData
    gain : (k,) float64
        Gain of a click at each slot.
    query, slots : (S,) int64
        Query of each session in the features, and number of slots of its list.
    session_weight : (S,) float64
    query_weight : (Q,) float64
        Sum of the weights of the sessions of each query of the features.
    indptr : (S + 1,) int64
        Impressions of each session at the first k positions.
    row, slot : (n,) int64
        Document in the features, and slot from 0, of these impressions.
    reward : (n,) float64
    logged : (n,) float64 or None
        Logged probabilities, if they are used.
    """

    log: ClickLog
    features: RankingData
    gain: F64
    query: I64
    slots: I64
    session_weight: F64
    query_weight: F64
    indptr: I64
    row: I64
    slot: I64
    reward: F64
    logged: F64 | None

    @classmethod
    def of(cls, log: ClickLog, gain: F64, *, use_logged: bool) -> _Sessions:
        """Return the sessions of a log with features."""
        counted = log.sizes > 0
        if log.weight is not None:
            counted &= log.weight > 0.0
        if not counted.any():
            raise DataError("the log has no impressions to estimate a value from.")
        log = log if counted.all() else log.select(counted)
        assert log.features is not None
        assert log.row is not None
        query = log.features.query_of_row()[log.row[log.indptr[:-1]]]
        weight = np.ones(log.n_sessions) if log.weight is None else log.weight
        top = log.position <= len(gain)
        sizes = np.bincount(log.session_of_impression()[top], minlength=log.n_sessions)
        slot = log.position[top].astype(np.int64) - 1
        return cls(
            log=log,
            features=log.features,
            gain=gain,
            query=query,
            slots=np.minimum(log.features.sizes[query], len(gain)),
            session_weight=weight,
            query_weight=np.bincount(query, weight, log.features.n_queries).astype(np.float64),
            indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            row=log.row[top],
            slot=slot,
            reward=gain[slot] * log.click[top],
            logged=log.propensity[top] if use_logged and log.propensity is not None else None,
        )

    @property
    def sizes(self) -> I64:
        """Number of impressions of each session at the first k positions."""
        return np.diff(self.indptr)

    @property
    def row_query(self) -> I64:
        """Query of each of these impressions."""
        return np.repeat(self.query, self.sizes)

    def rows(self, weight: F64) -> LoggedRewards:
        """Return the rewards with importance weights."""
        return LoggedRewards(
            session=np.repeat(np.arange(len(self.query)), self.sizes),
            slot=self.slot,
            reward=self.reward,
            weight=weight,
            session_weight=self.session_weight,
            slots=self.slots,
        )

    def by_query(self, values: F64) -> F64:
        """Return the sum over the documents of each query."""
        query = self.features.query_of_row()
        return np.bincount(query, values, self.features.n_queries).astype(np.float64)


@dataclass(frozen=True)
class _Target:
    """The policy to evaluate; ``slot[d, l]`` is the probability of document d at slot l."""

    scores: F64
    temperature: float
    slot: F64

    @classmethod
    def of(
        cls, scores: F64, features: RankingData, k: int, temperature: float, n_jobs: int | None
    ) -> _Target:
        """Return the policy that shows documents by these scores."""
        if temperature > 0.0:
            finite = np.isfinite(scores)
            if not finite.all():
                at = int(np.flatnonzero(~finite)[0])
                raise DataError(f"the score of row {at} is not finite, so lists cannot be sampled.")
            slot = slot_probabilities(scores, features.indptr, k, temperature)
            return cls(scores, temperature, slot)
        slot = np.zeros((features.n_documents, k))
        order = ranking(scores, features.indptr, n_jobs=n_jobs)
        rank = np.arange(len(order)) - np.repeat(features.indptr[:-1], features.sizes)
        top = rank < k
        slot[order[top], rank[top]] = 1.0
        return cls(scores, 0.0, slot)

    def given_above(self, sessions: _Sessions, values: F64) -> tuple[F64, F64]:
        """Return P(document | documents above) of each impression, and the mean of ``values``."""
        if self.temperature > 0.0:
            return conditional_probabilities(
                sessions.indptr, sessions.row, sessions.features.indptr, sessions.query,
                self.scores, self.temperature, values,
            )  # fmt: skip
        mean = np.stack([sessions.by_query(column) for column in (self.slot * values).T], axis=1)
        return (
            self.slot[sessions.row, sessions.slot],
            mean[sessions.row_query, sessions.slot],
        )


# --- weights ---------------------------------------------------------------------------------


_Weighted = tuple[LoggedRewards, Weights]


def _weigh_slots(sessions: _Sessions, target: _Target, _: Propensity | None) -> _Weighted:
    """Weigh each document at its slot, (2)."""
    logged = sessions.logged
    if logged is None:
        at = sessions.row * len(sessions.gain) + sessions.slot
        code = np.unique(at, return_inverse=True)[1]
        shown = np.bincount(code, np.repeat(sessions.session_weight, sessions.sizes))
        logged = shown[code] / sessions.query_weight[sessions.row_query]
    rows = sessions.rows(target.slot[sessions.row, sessions.slot] / logged)
    return rows, Weights.of(rows)


def _weigh_prefixes(sessions: _Sessions, target: _Target, _: Propensity | None) -> _Weighted:
    """Weigh each list down to the slot, (3)."""
    place = np.arange(len(sessions.slot)) - np.repeat(sessions.indptr[:-1], sessions.sizes)
    if (sessions.slot != place).any():
        raise DataError(
            "estimators of whole lists (rips, cascade_dr, sips) need lists without gaps: positions "
            "1, 2, ... of each session."
        )
    conditional, _mean = target.given_above(sessions, np.zeros(target.slot.shape))
    probability, logged = np.empty((2, len(sessions.row)))
    multiply_down(sessions.indptr, conditional, probability)
    if sessions.logged is None:
        logged = _prefix_shares(sessions)
    else:
        multiply_down(sessions.indptr, sessions.logged, logged)
    rows = sessions.rows(probability / logged)
    return rows, Weights.of(rows)


def _prefix_shares(sessions: _Sessions) -> F64:
    """Return the share of the sessions of a query with the same list down to each impression."""
    shares = np.empty(len(sessions.row))
    prefix = sessions.query.copy()  # a number for each list down to the slot
    for slot in range(int(sessions.sizes.max(initial=0))):
        longer = np.flatnonzero(sessions.sizes > slot)
        at = sessions.indptr[longer] + slot
        extended = np.stack((prefix[longer], sessions.row[at]))
        prefix[longer] = np.unique(extended, axis=1, return_inverse=True)[1].ravel()
        shown = np.bincount(prefix[longer], sessions.session_weight[longer])
        shares[at] = shown[prefix[longer]] / sessions.query_weight[sessions.query[longer]]
    return shares


def _weigh_lists(sessions: _Sessions, target: _Target, _: Propensity | None) -> _Weighted:
    """Weigh the list of the first k documents, (4); a row is a session."""
    prefixes, _weights = _weigh_prefixes(sessions, target, None)
    n = len(sessions.query)
    weight = np.zeros(n)
    complete = sessions.sizes == sessions.slots
    weight[complete] = prefixes.weight[sessions.indptr[1:][complete] - 1]
    rows = LoggedRewards(
        session=np.arange(n),
        slot=np.zeros(n, np.int64),
        reward=prefixes.sums(sessions.reward),
        weight=weight,
        session_weight=sessions.session_weight,
        slots=np.ones(n, np.int64),
    )
    return rows, Weights.of(rows)


def _weigh_documents(
    sessions: _Sessions, target: _Target, propensity: Propensity | None
) -> _Weighted:
    """Weigh each document at any position by its exposure, (5)."""
    assert propensity is not None
    log, gain = sessions.log, sessions.gain
    assert log.row is not None
    examined, offset = propensity.at(log.position)
    positions = min(len(gain), propensity.n_positions)
    if positions < sessions.slots.max():
        raise DataError(
            f"the propensity knows {positions} positions, and the metric needs "
            f"{sessions.slots.max()}: estimate it on longer lists."
        )
    theta, trust = propensity.at(np.arange(1, positions + 1))
    gain = gain[:positions]
    exposure = target.slot[:, :positions] @ (gain * theta)  # A of (5)
    c = log.impression_weights()
    seen = np.bincount(log.row, c * examined, sessions.features.n_documents)  # B of (5)
    query = np.repeat(sessions.query, log.sizes)
    weight = exposure[log.row] * sessions.query_weight[query] / seen[log.row]
    slot = np.zeros(len(weight), np.int64)
    rows = LoggedRewards(
        session=log.session_of_impression(),
        slot=slot,
        reward=log.click - offset,
        weight=weight,
        session_weight=sessions.session_weight,
        slots=np.ones(len(sessions.query), np.int64),
        base=np.append(0.0, np.cumsum(gain * trust))[sessions.slots],
    )
    wanted = sessions.query_weight[sessions.features.query_of_row()] * exposure
    relative = c * weight * examined
    return rows, Weights(
        mean=np.array([wanted[seen > 0.0].sum() / max(wanted.sum(), 1e-300)]),
        error=np.zeros(1),
        effective=np.array([effective_number(relative) * len(sessions.query) / len(relative)]),
        highest=float(weight.max(initial=0.0)),
        freedom=degrees_of_freedom(slot, relative),
        rewards=effective_number(c * weight * log.click),
    )


# --- predictions of dr and cascade_dr --------------------------------------------------------


def _with_predictions(
    rows: LoggedRewards,
    sessions: _Sessions,
    target: _Target,
    model: ClickModel | str | None,
    folds: int,
    *,
    cascade: bool,
    n_jobs: int | None,
) -> LoggedRewards:
    """Add predictions of models that are fitted to other sessions (cross-fitting)."""
    fold = np.zeros(len(sessions.query), np.int64)
    if not isinstance(model, ClickModel):
        fold = _folds(sessions.query, folds)
    predicted, expected = np.zeros((2, len(rows.reward)))
    base = np.zeros(len(fold))
    for number in np.unique(fold):
        test = fold == number
        at = test[rows.session]
        rates = _click_rates(model, sessions, ~test, n_jobs)
        if cascade:
            trained = ~test if not test.all() else test
            onward, mean = _rewards_from_slot(sessions, target, rates, trained[rows.session])
            predicted[at], expected[at] = onward[at], mean[at]
        else:
            rewards = rates * sessions.gain
            predicted[at] = rewards[sessions.row, sessions.slot][at]
            base[test] = sessions.by_query((target.slot * rewards).sum(axis=1))[
                sessions.query[test]
            ]
    return replace(rows, predicted=predicted, expected=expected, base=base)


def _folds(query: I64, folds: int) -> I64:
    """Return a fold for each session: the sessions of a query take turns."""
    order = np.argsort(query, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(query[order], query[order])
    return (place + query) % folds


def _click_rates(
    model: ClickModel | str | None, sessions: _Sessions, train: Any, n_jobs: int | None
) -> F64:
    """Return the click probability of each document at each slot, regardless of other documents."""
    features, k = sessions.features, len(sessions.gain)
    log = sessions.log.select(train)
    if model is None:
        assert log.row is not None
        c, place = log.impression_weights(), log.position - 1
        n = max(k, log.n_positions)
        shown, clicked = np.bincount(place, c, n), np.bincount(place, c * log.click, n)
        rate = clicked / np.where(shown > 0.0, shown, 1.0)
        observed = np.bincount(log.row, c * log.click, features.n_documents)
        expected = np.bincount(log.row, c * rate[place], features.n_documents)
        factor = (observed + _SHRINKAGE) / (expected + _SHRINKAGE)
        return np.minimum(factor[:, None] * rate[:k], 1.0)
    if isinstance(model, str):
        model = click_model(model, n_jobs=n_jobs).fit(log)
    ids = np.arange(features.n_documents) if features.doc_id is None else features.doc_id
    document, document_ids = codes_of_ids(ids)
    query = np.zeros(features.n_queries, np.int32)
    query[sessions.query] = sessions.log.query
    cells = features.n_documents * k
    lists = ClickLog(  # a list of one document, for each document and slot
        indptr=np.arange(cells + 1),
        query=np.repeat(query[features.query_of_row()], k),
        document=np.repeat(document, k),
        position=np.tile(np.arange(1, k + 1, dtype=np.int32), features.n_documents),
        click=np.zeros(cells, bool),
        query_ids=sessions.log.query_ids,
        document_ids=document_ids,
    )
    return model.click_probabilities(lists, conditional=False).reshape(-1, k)


def _rewards_from_slot(
    sessions: _Sessions, target: _Target, rates: F64, trained: Any
) -> tuple[F64, F64]:
    """Return predicted rewards from each slot on: of the document, and their mean over the policy.

    The regressions (6) use the rows that are True in ``trained``. They are linear in the rate of
    the document, so that the mean needs only the mean rate.
    """
    rate = rates[sessions.row, sessions.slot]
    mean_rate = target.given_above(sessions, rates)[1]
    first = sessions.slot == 0
    down = np.empty(len(rate))
    multiply_down(sessions.indptr, 1.0 - rate, down)
    still = np.where(first, 1.0, np.roll(down, 1))
    inputs, mean_inputs = (
        np.stack((np.ones(len(m)), m, still, m * still), axis=1) for m in (rate, mean_rate)
    )
    c = np.repeat(sessions.session_weight, sessions.sizes)
    predicted, expected = np.zeros((2, len(rate)))
    for slot in range(len(sessions.gain) - 1, -1, -1):
        at = np.flatnonzero(sessions.slot == slot)
        below = np.append(np.where(first, 0.0, expected)[1:], 0.0)  # 0 after the last document
        rewards = sessions.reward[at] + below[at]
        used = trained[at]
        root = np.sqrt(c[at][used])
        fitted = np.linalg.lstsq(inputs[at][used] * root[:, None], rewards[used] * root)[0]  # (6)
        predicted[at], expected[at] = inputs[at] @ fitted, mean_inputs[at] @ fitted
    return predicted, expected


# --- the table of estimators -----------------------------------------------------------------


class _Estimator(NamedTuple):
    """An estimator of sessions.

    Attributes
    ----------
    terms : str
        The estimator of `rankwright.clicks.off_policy` whose terms it has.
    weigh : function
        Returns the rewards of sessions with weights, and a summary of the weights.
    logged : str or None
        Kind of logged probability that it needs.
    evidence, advice, unseen : str
        Evidence that the log must contain, help if it does not, and the reward of the rest.
    """

    terms: str
    weigh: Callable[[_Sessions, _Target, Propensity | None], _Weighted]
    logged: str | None
    evidence: str
    advice: str
    unseen: str


_NO_CLICKS = "counts as without clicks"
_AS_THE_REST = "counts as the rest"
_AS_PREDICTED = "counts as the model predicts"
_EXPLORE = (
    "lists that are shuffled or sampled for some users would show it; estimator='pbm' with a "
    "propensity uses clicks at other positions"
)
_AT_POSITION = "of the documents of the ranker at their positions", _EXPLORE
_DOWN_TO = "of the lists of the ranker down to each position", _EXPLORE
_LISTS = (
    "of the lists of the first {k} documents of the ranker",
    "a smaller cut-off needs less, as does estimator='rips' or 'ips'",
)
_ANYWHERE = (
    "of the documents of the ranker at any position",
    "show these documents to some users",
)

ESTIMATORS: Mapping[str, _Estimator] = {
    "ips": _Estimator("ips", _weigh_slots, "slot", *_AT_POSITION, _NO_CLICKS),
    "snips": _Estimator("snips", _weigh_slots, "slot", *_AT_POSITION, _AS_THE_REST),
    "dr": _Estimator("dr", _weigh_slots, "slot", *_AT_POSITION, _AS_PREDICTED),
    "rips": _Estimator("ips", _weigh_prefixes, "conditional", *_DOWN_TO, _NO_CLICKS),
    "cascade_dr": _Estimator(
        "cascade_dr", _weigh_prefixes, "conditional", *_DOWN_TO, _AS_PREDICTED
    ),
    "sips": _Estimator("ips", _weigh_lists, "conditional", *_LISTS, _NO_CLICKS),
    "pbm": _Estimator("dr", _weigh_documents, None, *_ANYWHERE, _NO_CLICKS),
}
