"""Would a ranker win online? Its clicks estimated from the log of another, before any experiment.

The metric of a session is a sum over its first k slots of clicks c,

    clicks@k  sum c_l,   ctr@k  1/k sum c_l,   dcg@k  sum c_l / log2(l + 1)                     (1)

and the value of a ranker is its mean over sessions, had the ranker made the lists. Estimators
differ in what they assume, and so in what the log must have shown:

    ips, snips  the document at its position      a click depends on both alone                 (2)
    dr          the same, with a model's prediction for the rest
    rips        the list down to the position     ... and on what is above it                   (3)
    cascade_dr  the same, with a model's prediction
    sips        the first k documents             nothing is assumed                            (4)
    pbm         the document anywhere             looks depend on the position, clicks on looks
                                                  and the document (`li2018offline`)            (5)

Weights are those of `rankwright.clicks.off_policy`: probabilities under the ranker (1, or those of
Plackett-Luce) over logged ones, or over the shares of sessions of the same query. For (5) with
theta the examination, A_d = sum over slots of gain theta P(d at slot) under the ranker and B_d the
same without gains under the log, a click on d weighs A_d / B_d; trust offsets are taken off first.

The model of dr and cascade_dr is fitted to other sessions than those it predicts (cross-fitting).
By default it is clicks over expected clicks: the rate of the position, times the clicks of the
document over those that its positions would have brought, both plus 1. For cascade_dr rewards from
a slot on are regressed on these predictions,

    q_l = b_0 + b_1 m + b_2 s + b_3 m s                                                         (6)

with m the predicted rate of the document and s the chance that nothing above it was clicked, slot
by slot from the last, so that users who stop and users who do not are both within reach.

If the log has not shown a share m of what the ranker would show, no estimator knows its clicks.
The interval is widened by an assumption: these documents have between no clicks and twice as many
as the others. With the value V the range is

    V (1 - m) to V (1 + m)          snips, dr, cascade_dr, which count them as the others
    V to V (1 + 2 m / (1 - m))      the others, which count them as without clicks              (7)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from rankwright.clicks.base import ClickModel
from rankwright.clicks.models import model as click_model
from rankwright.clicks.off_policy import (
    PolicyDifference,
    PolicyValue,
    Weights,
    add_up_cascade,
    add_up_sessions,
    degrees_of_freedom,
    effective_number,
    limit_remark,
    limited,
    normalised_terms,
    value_of_terms,
)
from rankwright.clicks.policies import (
    conditional_probabilities,
    multiply_down,
    slot_probabilities,
)
from rankwright.clicks.position_bias import Propensity
from rankwright.clicks.simulation import scores_of
from rankwright.core.order import ranking
from rankwright.core.parameters import (
    check_choice,
    check_whole,
    check_zero_or_more,
    either,
)
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import HIGHEST_POSITION, ClickLog, codes_of_ids
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError, quoted

ESTIMATORS = ("ips", "snips", "dr", "rips", "cascade_dr", "sips", "pbm")
METRICS = ("ctr", "clicks", "dcg")
LOGGED = ("slot", "conditional")
UNITS = ("query", "session")
_OF_SLOTS = ("ips", "snips", "dr")
_IMPUTED = {
    "snips": "counts as the rest",
    "dr": "counts as the model predicts",
    "cascade_dr": "counts as the model predicts",
}
"""How estimators count what the log has not shown; others count it as without clicks."""
_OF_PREFIXES = ("rips", "cascade_dr", "sips")
_SIGNIFICANT = 3.0  # standard errors by which mean weights may miss
_SHRINKAGE = 1.0  # clicks that are added, observed and expected ones
_METRIC = re.compile(r"([a-z]+)@([0-9]{1,9})")


class SupportError(DataError):
    """The log has not shown what a policy would show, so that it says nothing about it.

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
    the log has shown 7.5% of what the ranker would show, at its position, and 90% ...
    """


@dataclass(frozen=True)
class _Metric:
    """A metric of clicks, (1)."""

    name: str
    key: str
    k: int

    @classmethod
    def of(cls, name: str) -> _Metric:
        found = _METRIC.fullmatch(str(name))
        if not found or found[1] not in METRICS or not 1 <= int(found[2]) <= HIGHEST_POSITION:
            raise UsageError(
                f"{quoted(name)} is no metric of clicks: these are {either(list(METRICS))} with a "
                f"cut-off from 1 to {HIGHEST_POSITION:,}, such as ctr@5."
            )
        return cls(name, found[1], int(found[2]))

    @property
    def gain(self) -> F64:
        """What a click at each slot counts."""
        slot = np.arange(1, self.k + 1)
        gains = {
            "ctr": np.full(self.k, 1.0 / self.k),
            "dcg": 1.0 / np.log2(slot + 1.0),
        }
        found: F64 = gains.get(self.key, np.ones(self.k))
        return found


@dataclass(frozen=True)
class _Options:
    """How values are estimated; see `evaluate_policy`."""

    metric: _Metric
    estimator: str
    temperature: float
    propensity: Propensity | None
    model: ClickModel | str | None
    logged: str | None
    limit: float | None
    unit: str
    min_support: float
    folds: int
    n_jobs: int | None


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
    """Return what a ranker would earn in clicks, from the log of another, with an interval.

    Parameters
    ----------
    log : ClickLog
        With features; those of a query are the documents that the ranker may show. Its ``weight``
        says how much a session counts in the value; a session is one observation in the interval.
    ranker : fitted ranker, feature number or name, array of scores, or callable
        What would make the lists. Documents that it was trained on are fine, clicks of the same
        sessions are not: train on an earlier log.
    metric : str, default "ctr@5"
        "ctr@k" (clicks over k), "clicks@k" or "dcg@k".
    estimator : str, default "dr"
        "ips", "snips", "dr", "rips", "cascade_dr", "sips" or "pbm".
        What is assumed; see the table of `rankwright.clicks.policy_evaluation`.
    temperature : float, default 0.0
        0 shows the best first; above, lists are sampled from Plackett-Luce with scores over it.
    propensity : Propensity
        Of positions, for "pbm" alone; `estimate_propensity` estimates one.
    model : ClickModel or str
        For "dr" and "cascade_dr": a fitted click model, or the name of one to fit; by default
        clicks over expected clicks.
    logged : {"slot", "conditional"} or None, default "slot"
        What the probabilities in the log are: of the document at its position, or of it given the
        documents above. Where the log has none, or with None, shares of the sessions of the same
        query stand for them.
    limit : float
        The highest weight, for all estimators but "pbm".
    unit : {"query", "session"}, default "query"
        What the interval is over: queries, whose sessions depend on each other, or sessions, where
        the queries are all there are and only users vary.
    min_support : float, default 0.9
        The least share of what the ranker would show that the log has shown; below it is refused.
    folds : int, default 3
        Parts of the sessions for cross-fitting.

    Returns
    -------
    PolicyValue
        Raises `SupportError` where the log says too little.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, sessions=200, temperature=1.0, positions=5)
    >>> found = clicks.evaluate_policy(log, 1, "ctr@1", estimator="pbm",
    ...                                propensity=clicks.Propensity.power(1.0, positions=5))
    >>> bool(found.low < found.value < found.high)
    True
    """
    options = _Options(
        _Metric.of(metric), estimator, temperature, propensity, model, logged, limit, unit,
        min_support, folds, n_jobs,
    )  # fmt: skip
    _check(options)
    if log.propensity is None:
        options = replace(options, logged=None)
    _check_log(log, options)
    assert log.features is not None
    name = str(getattr(ranker, "name", "")) or "the policy"
    return _Sessions.of(log, options).value(scores_of(ranker, log.features), name)


@dataclass(frozen=True)
class PolicyComparison:
    """Values of several policies on one log, and paired differences; ``print`` says them.

    Attributes
    ----------
    values : mapping from names to PolicyValue
    differences : tuple of PolicyDifference
        Of each policy to the first.
    refused : mapping from names to str
        Why the log says nothing about a policy.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, temperature=1.0, positions=5, propensity="slot")
    >>> found = clicks.compare_policies(log, {"old": 41, "new": 1}, "ctr@1")
    >>> found.differences[0].baseline
    'old'
    """

    values: Mapping[str, PolicyValue]
    differences: tuple[PolicyDifference, ...]
    refused: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return all values as JSON holds them."""
        return {
            "values": {name: one.to_dict() for name, one in self.values.items()},
            "differences": [one.to_dict() for one in self.differences],
            "refused": dict(self.refused),
        }

    def __str__(self) -> str:
        refused = [f"{name}: {why}" for name, why in self.refused.items()]
        return "\n".join([*map(str, self.values.values()), *refused, *map(str, self.differences)])


def compare_policies(
    log: ClickLog, rankers: Mapping[str, Any] | Sequence[Any], metric: str = "ctr@5", **options: Any
) -> PolicyComparison:
    """Return the values of several rankers on one log, and how they differ from the first.

    Parameters
    ----------
    rankers : mapping from names to rankers, or sequence of them
        Each as `evaluate_policy` takes it.
    **options
        Those of `evaluate_policy`.

    Examples
    --------
    >>> import rankwright as rw
    >>> from rankwright import clicks
    >>> data = rw.synthetic("mq2008", queries=40)
    >>> log = clicks.simulate(data, 41, temperature=1.0, positions=5, propensity="slot")
    >>> found = clicks.compare_policies(log, {"old": 41, "new": 1}, "ctr@1")
    >>> list(found.values)
    ['old', 'new']
    """
    given = (
        dict(rankers)
        if isinstance(rankers, Mapping)
        else {_label(one, number): one for number, one in enumerate(rankers)}
    )
    if not given:
        raise UsageError("there is no ranker to evaluate.")
    values, refused = {}, {}
    for name, ranker in given.items():
        try:
            values[name] = replace(evaluate_policy(log, ranker, metric, **options), name=name)
        except SupportError as error:
            refused[name] = str(error)
    return _compared(values, refused)


def _compared(values: dict[str, PolicyValue], refused: dict[str, str]) -> PolicyComparison:
    first = next(iter(values.values()), None)
    differences = tuple(
        one.difference(first) for one in values.values() if first is not None and one is not first
    )
    return PolicyComparison(values, differences, refused)


def _label(ranker: Any, number: int) -> str:
    return f"{getattr(ranker, 'name', type(ranker).__name__)} {number + 1}"


def _check(options: _Options) -> None:
    """Refuse options that fit no log."""
    estimator = options.estimator
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("unit", options.unit, UNITS)
    if options.logged is not None:
        check_choice("logged", options.logged, LOGGED)
    check_zero_or_more("temperature", options.temperature)
    check_whole("folds", options.folds, 2)
    if not 0.0 <= options.min_support <= 1.0:
        raise UsageError(f"min_support is a share, from 0 to 1; it is {options.min_support}.")
    if estimator == "pbm" and options.propensity is None:
        raise UsageError(
            "estimator='pbm' needs propensity=..., how much users look at each position; "
            "clicks.estimate_propensity(log) estimates it."
        )
    if options.limit is not None and estimator == "pbm":
        raise UsageError("estimator='pbm' has no weights to limit; leave out limit=...")


def _check_log(log: ClickLog, options: _Options) -> None:
    """Refuse a log that does not have what the options ask for."""
    if log.features is None or log.row is None:
        raise DataError(
            "the log has no features, so the ranker has nothing to rank; log.with_features(data) "
            "adds them."
        )
    needed = "slot" if options.estimator in _OF_SLOTS else "conditional"
    weighed = options.estimator != "pbm"
    if weighed and options.logged is not None and options.logged != needed:
        raise UsageError(
            f"estimator='{options.estimator}' needs probabilities of the kind logged='{needed}', "
            f"and these are '{options.logged}'; logged=None takes shares of sessions instead."
        )


# --- sessions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sessions:
    """The sessions of a log as estimators take them, with the first k slots of each apart."""

    log: ClickLog
    options: _Options
    features: RankingData
    query: I64  # of each session, a query of the features
    counts: F64  # weight of each session
    have: I64  # slots that a list of each session's query has
    share: F64  # weight of all sessions of each query of the features
    indptr: I64  # of impressions at the first k positions
    row: I64
    slot: I64
    reward: F64
    propensity: F64 | None

    @classmethod
    def of(cls, log: ClickLog, options: _Options) -> _Sessions:
        counted = log.sizes > 0
        if log.weight is not None:
            counted &= log.weight > 0.0
        full = np.flatnonzero(counted)
        if not len(full):
            raise DataError("the log has no impressions to estimate a value from.")
        log = log if len(full) == log.n_sessions else log.select(full)
        assert log.features is not None
        assert log.row is not None
        query = log.features.query_of_row()[log.row[log.indptr[:-1]]]
        counts = np.ones(log.n_sessions) if log.weight is None else log.weight
        metric = options.metric
        top = log.position <= metric.k
        session = log.session_of_impression()
        sizes = np.bincount(session[top], minlength=log.n_sessions)
        indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        slot = log.position[top].astype(np.int64) - 1
        click = log.click[top].astype(np.float64)
        return cls(
            log=log,
            options=options,
            features=log.features,
            query=query,
            counts=counts,
            have=np.minimum(log.features.sizes[query], metric.k),
            share=np.bincount(query, counts, log.features.n_queries).astype(np.float64),
            indptr=indptr,
            row=log.row[top],
            slot=slot,
            reward=metric.gain[slot] * click,
            propensity=None if log.propensity is None else log.propensity[top],
        )

    def value(self, scores: F64, name: str) -> PolicyValue:
        """Return the value of the policy of these scores."""
        options = self.options
        target = _Target.of(scores, self.features, options)
        terms, weights = getattr(self, f"_{options.estimator}")(target)
        missing = self._missing_share(weights)
        remarks = [*limit_remark(options.estimator, options.limit)]
        if missing:
            remarks.append(self._missing_remark(missing, name))
        cluster = None
        if options.unit == "query":
            cluster = np.unique(self.query, return_inverse=True)[1]
        found = value_of_terms(
            terms,
            self.counts,
            cluster,
            unit=options.unit,
            estimator=options.estimator,
            weights=weights,
            remarks=remarks,
            metric=options.metric.name,
            name=name,
        )
        clicks = missing * abs(found.value)  # (7)
        if options.estimator in _IMPUTED:
            return found.widen(clicks, clicks)
        return found.widen(0.0, 2.0 * clicks / max(1.0 - missing, 1e-9))

    # --- what a policy needs to have been shown ----------------------------------------------

    def _missing_share(self, weights: Weights) -> float:
        """Return the share of the policy's documents that was not shown; raise if it is large."""
        options, mean = self.options, float(weights.mean.mean())
        error = float(np.sqrt((weights.error**2).mean()))
        exact = options.logged is None or options.estimator == "pbm"
        slack = 0.0 if exact else _SIGNIFICANT * error
        if mean + slack < options.min_support:
            raise SupportError(self._refusal(mean, weights))
        if not exact and mean - slack > 1.1:
            raise DataError(
                f"weights have a mean of {mean:.2f} where it should be 1, so the probabilities in "
                f"the log are not those of logged='{options.logged}'; choose another kind, or "
                "logged=None."
            )
        return 1.0 - mean if mean + slack < 1.0 - 1e-6 else 0.0

    def _missing_remark(self, missing: float, name: str) -> str:
        counts = _IMPUTED.get(self.options.estimator, "counts as without clicks")
        return (
            f"What {name} would show and the log has not ({missing:.1%}) {counts}. The interval "
            "assumes that it has between no clicks and twice as many per document as the rest."
        )

    def _refusal(self, mean: float, weights: Weights) -> str:
        options = self.options
        what = {
            "pbm": "of what the ranker would show, at any position",
            "sips": f"of the lists of the first {options.metric.k} that the ranker would show",
        }.get(
            options.estimator,
            "of what the ranker would show, down to its position"
            if options.estimator in _OF_PREFIXES
            else "of what the ranker would show, at its position",
        )
        longest = self.log.n_positions
        if longest < options.metric.k and (weights.mean[longest:] == 0.0).any():
            return (
                f"the log shows {longest} positions and {options.metric.name} needs "
                f"{options.metric.k}: use {options.metric.key}@{longest}."
            )
        help_ = {
            "pbm": "show these documents to some users",
            "sips": "a smaller cut-off needs less, as does estimator='rips' or 'ips'",
        }.get(
            options.estimator,
            "lists that are shuffled or sampled for some users would show it; estimator='pbm' with "
            "a propensity takes clicks at other positions",
        )
        return (
            f"the log has shown {mean:.1%} {what}, and {options.min_support:.0%} is asked for "
            f"(min_support), so that it does not say what the rest would earn: {help_}."
        )

    # --- weights -----------------------------------------------------------------------------

    def _slot_weights(self, target: _Target) -> F64:
        """Return probabilities of (2), over logged ones or shares of sessions."""
        own = target.slot[self.row, self.slot]
        if self.options.logged is not None:
            assert self.propensity is not None
            return own / self.propensity
        code = np.unique(self.row * self.options.metric.k + self.slot, return_inverse=True)[1]
        return own / self._shares(code, np.repeat(self.query, np.diff(self.indptr)))

    def _prefix_weights(self, target: _Target) -> F64:
        """Return probabilities of (3), of lists down to each slot."""
        if (
            self.slot != np.arange(len(self.slot)) - np.repeat(self.indptr[:-1], self._sizes)
        ).any():
            raise DataError(
                f"estimator='{self.options.estimator}' needs lists without gaps: positions 1, 2, "
                "... of each session."
            )
        own, logged = np.empty(len(self.row)), np.empty(len(self.row))
        multiply_down(self.indptr, self._conditional(target)[0], own)
        if self.options.logged is not None:
            multiply_down(self.indptr, self.propensity, logged)
            return own / logged
        prefix = self.query.copy()
        for slot in range(self.options.metric.k):
            there = np.flatnonzero(self._sizes > slot)
            if not len(there):
                break
            at = self.indptr[there] + slot
            pair = np.stack((prefix[there], self.row[at]))
            prefix[there] = np.unique(pair, axis=1, return_inverse=True)[1].ravel()
            logged[at] = np.bincount(prefix[there], self.counts[there])[prefix[there]]
            logged[at] /= self.share[self.query[there]]
        return own / logged

    def _conditional(self, target: _Target, values: F64 | None = None) -> tuple[F64, F64]:
        """Return P(document | above) under the target, and the mean of ``values`` there."""
        if target.temperature == 0.0:
            return target.slot[self.row, self.slot], np.empty(0)
        return conditional_probabilities(
            self.indptr, self.row, self.features.indptr, self.query, target.scores,
            self.options.metric.k, target.temperature, values,
        )  # fmt: skip

    @property
    def _sizes(self) -> I64:
        return np.diff(self.indptr)

    def _shares(self, code: I64, query: I64) -> F64:
        """Return the share of the sessions of a query that show what ``code`` numbers."""
        shown = np.bincount(code, np.repeat(self.counts, self._sizes))
        found: F64 = shown[code] / self.share[query]
        return found

    def _weights(self, weight: F64) -> Weights:
        return Weights.of(self.indptr, self.slot, weight, self.counts, self.have, self.reward)

    # --- estimators: the term of each session, and the weights -------------------------------

    def _sums(self, weight: F64, reward: F64) -> F64:
        terms = np.empty(len(self.counts))
        add_up_sessions(self.indptr, weight, reward, terms)
        return terms

    def _by_query(self, values: F64) -> F64:
        """Return the sum over the documents of each query."""
        query = self.features.query_of_row()
        return np.bincount(query, values, self.features.n_queries).astype(np.float64)

    def _ips(self, target: _Target) -> tuple[F64, Weights]:
        weight = self._slot_weights(target)
        taken = limited(weight, self.options.limit)
        return self._sums(taken, self.reward), self._weights(weight)

    def _snips(self, target: _Target) -> tuple[F64, Weights]:
        weight = self._slot_weights(target)
        taken = limited(weight, self.options.limit)
        terms = normalised_terms(self.indptr, self.slot, taken, self.reward, self.counts, self.have)
        return terms, self._weights(weight)

    def _dr(self, target: _Target) -> tuple[F64, Weights]:
        weight = self._slot_weights(target)
        taken = limited(weight, self.options.limit)
        gain = self.options.metric.gain
        terms = np.empty(len(self.counts))
        for fold, model in self._fitted_models():
            predicted = model.cells() * gain
            base = self._by_query((target.slot * predicted).sum(axis=1))
            found = self._sums(taken, self.reward - predicted[self.row, self.slot])
            terms[fold] = found[fold] + base[self.query[fold]]
        return terms, self._weights(weight)

    def _rips(self, target: _Target) -> tuple[F64, Weights]:
        weight = self._prefix_weights(target)
        taken = limited(weight, self.options.limit)
        return self._sums(taken, self.reward), self._weights(weight)

    def _sips(self, target: _Target) -> tuple[F64, Weights]:
        prefix = self._prefix_weights(target)
        whole = np.zeros(len(self.counts))
        there = self._sizes == self.have
        whole[there] = prefix[self.indptr[1:][there] - 1]
        taken = np.repeat(limited(whole, self.options.limit), self._sizes)
        one = np.arange(len(whole) + 1)
        weights = Weights.of(one, np.zeros(len(whole), np.int64), whole, self.counts)
        return self._sums(taken, self.reward), weights

    def _cascade_dr(self, target: _Target) -> tuple[F64, Weights]:
        weight = self._prefix_weights(target)
        taken = limited(weight, self.options.limit)
        terms, found = np.empty(len(self.counts)), np.empty(len(self.counts))
        for fold, model in self._fitted_models():
            if target.temperature == 0.0 and isinstance(model, _ClickModelRewards):
                predicted = expected = self._modelled_to_go(target, model)
            else:
                predicted, expected = self._fitted_to_go(target, model, fold)
            add_up_cascade(self.indptr, taken, self.reward, predicted, expected, found)
            terms[fold] = found[fold]
        return terms, self._weights(weight)

    def _modelled_to_go(self, target: _Target, model: _ClickModelRewards) -> F64:
        """Return what a click model expects from each slot of the target's list on.

        Weights are 0 wherever another document stands.
        """
        rates = np.zeros((self.features.n_queries, self.options.metric.k))
        lists = target.lists(np.unique(self.query))
        rates[lists.query_of_impression, lists.slot] = model.of_lists(lists)
        onward = np.cumsum((rates * self.options.metric.gain)[:, ::-1], axis=1)[:, ::-1]
        found: F64 = onward[np.repeat(self.query, self._sizes), self.slot]
        return found

    def _fitted_to_go(self, target: _Target, model: _Model, fold: I64) -> tuple[F64, F64]:
        """Return regressions of rewards from each slot on: for the document, and on average.

        From the last slot up, the reward and what is expected below are regressed, over sessions
        of other folds, on the predicted rate of the document, on the chance that nothing above was
        clicked, and on their product (6). The mean over the target's documents at the slot needs
        their mean rate alone.
        """
        cells = model.cells()
        rate = cells[self.row, self.slot]
        if target.temperature == 0.0:
            by_slot = np.stack([self._by_query(one) for one in (target.slot * cells).T], axis=1)
            mean = by_slot[np.repeat(self.query, self._sizes), self.slot]
        else:
            mean = self._conditional(target, cells)[1]
        still = _none_above(rate, self.indptr)
        own, average = (
            np.stack((np.ones(len(rate)), one, still, one * still), axis=1) for one in (rate, mean)
        )
        train = np.ones(len(self.counts), bool)
        train[fold] = len(fold) == len(train)
        trained, c = np.repeat(train, self._sizes), np.repeat(self.counts, self._sizes)
        predicted, expected = np.zeros(len(rate)), np.zeros(len(rate) + 1)
        last = np.zeros(len(rate), bool)
        last[self.indptr[1:][self._sizes > 0] - 1] = True
        for slot in range(self.options.metric.k - 1, -1, -1):
            at = np.flatnonzero(self.slot == slot)
            onward = self.reward[at] + np.where(last[at], 0.0, expected[at + 1])
            used = trained[at] & (c[at] > 0.0)
            root = np.sqrt(c[at][used])
            fitted = np.linalg.lstsq(own[at][used] * root[:, None], onward[used] * root)[0]  # (6)
            predicted[at], expected[at] = own[at] @ fitted, average[at] @ fitted
        return predicted, expected[:-1]

    def _pbm(self, target: _Target) -> tuple[F64, Weights]:
        log, propensity, gain = self.log, self.options.propensity, self.options.metric.gain
        assert propensity is not None
        assert log.row is not None
        examined, offset = propensity.at(log.position)
        at_top, trusted = propensity.at(np.arange(1, min(len(gain), propensity.n_positions) + 1))
        if len(at_top) < self.have.max():
            raise DataError(
                f"the propensity knows {propensity.n_positions} positions, and "
                f"{self.options.metric.name} needs {self.have.max()}: estimate it on longer lists."
            )
        exposed = target.slot[:, : len(at_top)] @ (gain[: len(at_top)] * at_top)  # A of (5)
        c = log.impression_weights()
        seen = np.bincount(log.row, c * examined, self.features.n_documents)
        weight = exposed[log.row] * self.share[np.repeat(self.query, log.sizes)] / seen[log.row]
        terms = np.empty(len(self.counts))
        add_up_sessions(log.indptr, weight, log.click - offset, terms)
        terms += np.concatenate(([0.0], np.cumsum(gain[: len(trusted)] * trusted)))[self.have]
        wanted = self.share[self.features.query_of_row()] * exposed
        mean = np.array([wanted[seen > 0.0].sum() / max(wanted.sum(), 1e-300)])
        relative = c * weight * examined
        effective = np.array([effective_number(relative) * len(self.counts) / len(relative)])
        freedom = degrees_of_freedom(np.zeros(len(relative), np.int64), relative)
        highest, rewards = float(weight.max(initial=0.0)), effective_number(c * weight * log.click)
        return terms, Weights(mean, np.zeros(1), effective, highest, freedom, rewards)

    # --- models of rewards -------------------------------------------------------------------

    def _fitted_models(self) -> list[tuple[I64, _Model]]:
        """Return the sessions of each fold, and a model of the others."""
        if isinstance(self.options.model, ClickModel):
            everything = np.arange(len(self.counts))
            return [(everything, self._fitted(everything))]
        order = np.argsort(self.query, kind="stable")
        place = np.empty(len(order), np.int64)
        starts = np.searchsorted(self.query[order], self.query[order])
        place[order] = np.arange(len(order)) - starts
        fold = (place + self.query) % self.options.folds
        parts = [np.flatnonzero(fold == number) for number in range(self.options.folds)]
        return [
            (part, self._fitted(np.flatnonzero(fold != number)))
            for number, part in enumerate(parts)
            if len(part)
        ]

    def _fitted(self, sessions: I64) -> _Model:
        given, metric = self.options.model, self.options.metric
        log = self.log if len(sessions) == self.log.n_sessions else self.log.select(sessions)
        if given is None:
            return _Rates.of(log, metric)
        if isinstance(given, str):
            given = click_model(given, n_jobs=self.options.n_jobs).fit(log)
        return _ClickModelRewards(given, self.log, metric)


# --- the policy ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lists:
    """The list that a policy without chance shows for each query."""

    query: I64  # of each list, a query of the features
    indptr: I64
    row: I64

    @property
    def slot(self) -> I64:
        """The slot of each impression, from 0."""
        found: I64 = np.arange(len(self.row)) - np.repeat(self.indptr[:-1], np.diff(self.indptr))
        return found

    @property
    def query_of_impression(self) -> I64:
        """The query of each impression."""
        return np.repeat(self.query, np.diff(self.indptr))


@dataclass(frozen=True)
class _Target:
    """What a policy shows: ``slot[d, l]`` is the probability of document d at slot l."""

    scores: F64
    temperature: float
    features: RankingData
    order: I64
    slot: F64

    @classmethod
    def of(cls, scores: F64, features: RankingData, options: _Options) -> _Target:
        k = options.metric.k
        order = ranking(scores, features.indptr, n_jobs=options.n_jobs)
        if options.temperature > 0.0:
            finite = np.isfinite(scores)
            if not finite.all():
                at = int(np.flatnonzero(~finite)[0])
                raise DataError(f"the score of row {at} is not finite, so lists cannot be sampled.")
            slot = slot_probabilities(scores, features.indptr, k, options.temperature)
            return cls(scores, options.temperature, features, order, slot)
        slot = np.zeros((features.n_documents, k))
        rank = np.arange(len(order)) - np.repeat(features.indptr[:-1], features.sizes)
        top = rank < k
        slot[order[top], rank[top]] = 1.0
        return cls(scores, 0.0, features, order, slot)

    def lists(self, queries: I64) -> _Lists:
        """Return the list of each of these queries, of a policy without chance."""
        k, indptr = self.slot.shape[1], self.features.indptr
        rows = [
            self.order[lo : min(hi, lo + k)]
            for lo, hi in zip(indptr[queries].tolist(), indptr[queries + 1].tolist(), strict=True)
        ]
        sizes = [len(one) for one in rows]
        return _Lists(
            queries,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            np.concatenate(rows).astype(np.int64),
        )


# --- models ----------------------------------------------------------------------------------


class _Model(Protocol):
    """What predicts clicks."""

    def cells(self) -> F64:
        """Return the click probability of each document at each slot, whatever is above."""


@dataclass(frozen=True)
class _Rates:
    """Clicks over expected clicks: a rate for each position, times a factor for each document."""

    rate: F64
    factor: F64

    @classmethod
    def of(cls, log: ClickLog, metric: _Metric) -> _Rates:
        assert log.features is not None
        assert log.row is not None
        n, c = max(metric.k, log.n_positions), log.impression_weights()
        place = log.position - 1
        shown, clicked = np.bincount(place, c, n), np.bincount(place, c * log.click, n)
        rate = clicked / np.where(shown > 0.0, shown, 1.0)
        documents = log.features.n_documents
        observed = np.bincount(log.row, c * log.click, documents)
        expected = np.bincount(log.row, c * rate[place], documents)
        factor = (observed + _SHRINKAGE) / (expected + _SHRINKAGE)
        return cls(rate[: metric.k], factor)

    def cells(self) -> F64:
        """Return the click probability of each document at each slot."""
        found: F64 = np.minimum(self.factor[:, None] * self.rate, 1.0)
        return found


class _ClickModelRewards:
    """The predictions of a click model."""

    def __init__(self, model: ClickModel, log: ClickLog, metric: _Metric) -> None:
        assert log.features is not None
        assert log.row is not None
        self.model, self.metric = model, metric
        features = log.features
        ids = np.arange(features.n_documents) if features.doc_id is None else features.doc_id
        self.document, self.document_ids = codes_of_ids(ids)
        query = features.query_of_row()[log.row[log.indptr[:-1]]]
        self.query_ids = log.query_ids
        self.code = np.zeros(features.n_queries, np.int32)  # of the queries that the log has
        self.code[query] = log.query
        self.features = features

    def cells(self) -> F64:
        """Return the click probability of each document at each slot, as if it stood alone."""
        n, k = self.features.n_documents, self.metric.k
        alone = _Lists(
            np.repeat(self.features.query_of_row(), k), np.arange(n * k + 1),
            np.repeat(np.arange(n), k),
        )  # fmt: skip
        log = self._log(alone, np.tile(np.arange(1, k + 1), n))
        return self.model.click_probabilities(log, conditional=False).reshape(n, k)

    def of_lists(self, lists: _Lists) -> F64:
        """Return the probability of a click at each impression of lists."""
        return self.model.click_probabilities(self._log(lists, lists.slot + 1), conditional=False)

    def _log(self, lists: _Lists, position: AnyArray) -> ClickLog:
        return ClickLog(
            indptr=lists.indptr,
            query=self.code[lists.query],
            document=self.document[lists.row],
            position=position.astype(np.int32),
            click=np.zeros(len(lists.row), bool),
            query_ids=self.query_ids,
            document_ids=self.document_ids,
        )


def _none_above(click: F64, indptr: I64) -> F64:
    """Return the probability that nothing above each impression of a list is clicked."""
    passed = np.empty(len(click))
    multiply_down(indptr, 1.0 - click, passed)
    before = np.append(1.0, passed[:-1])
    before[indptr[:-1][np.diff(indptr) > 0]] = 1.0
    return before
