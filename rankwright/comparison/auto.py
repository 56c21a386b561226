"""`auto`: the best ranking of data without tuning, chosen by cross-validation over queries.

The rankers that suit the data stand in families: linear, networks, boosted trees, forests. Each is
fitted to folds of the queries, and valued on those that it has not seen. The first of a family
stands for it, unless another leads by more than two standard errors: the best of several owes much
of its lead to chance. The families are then blended (`rankwright.Blend`), unless one ranker leads
the blend by more than three, and what was chosen is fitted to all data.

Large data is searched by successive halving: candidates are tried on a sample of the queries, the
better half of each family on one four times as large, and so on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.dtypes import blocks
from rankwright.core.parameters import both, check_above_zero, seed_of
from rankwright.core.types import F64, I64
from rankwright.data.content import query_prints
from rankwright.data.query_folds import deal_queries
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.errors import RankwrightError, counted
from rankwright.metrics.base import Metric, metric_name
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.significance import bootstrap_interval
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.blend import Blend, best_alone
from rankwright.rankers.data_checks import refuse_nothing_to_rank
from rankwright.rankers.inputs import ranking_data
from rankwright.rankers.out_of_fold import (
    FoldFit,
    OutOfFold,
    best_rounds,
    fold_scores,
    round_parameter,
    with_rounds,
)
from rankwright.rankers.out_of_fold import out_of_fold as out_of_fold  # public in .comparison
from rankwright.rankers.preparation import valid_data
from rankwright.rankers.stacking import Stack, clearly_better

_FOLDS = 5
_SHRINKAGE = 100.0  # of the weights, in queries, as in Blend
_REPEATED = 50  # with fewer queries than this they are dealt to folds more than once
_MOST_REPEATS = 3
_DEPENDENT = float(np.sqrt(2.0))  # by which an interval over folds is wider; see `_interval`
_LEAD = 2.0  # standard errors by which a ranker must lead the first of its family
_HALVED = 200_000  # documents from which on candidates are tried on samples first
_SAMPLE = 50_000  # documents of the first sample
_GROWTH = 4  # of one sample to the next
_LOOK = 2_000  # documents of the sample that a time limit begins with
_LARGEST_LOOK = 0.5  # of all queries
_CHEAP = ("memr", "domination", "xendcg", "gbdt")  # strong for the time that they take
_MARGIN = 0.1  # of the time limit, for weights and predictions
_SPARE = 1.3  # a last fit may take so much longer than those before it let expect

OnProgress = Callable[[int, int, str, int, str], None]
"""Called with the fit and their number, the candidate, its round and a short text."""


@dataclass(frozen=True)
class Candidate:
    """A ranker that suits the data, and what became of it.

    Attributes
    ----------
    ranker : str
    family : str
        Of its kind one is chosen.
    why : str
    parameters : dict
        Those that are not the ranker's defaults.
    value, low, high : float or None
        The metric out of fold, and its 95 % interval; None if not tried to the end. They are those
        of this candidate by itself: the best of several looks better than it is, and `Chosen` has
        the value of the choice.
    share : float
        Of the queries that it was tried on; below 1 for what a sample of large data left out.
    seconds : float
        How long its fits took.
    weight : float
        Its share of what was chosen; 0 for what is no part of it.
    """

    ranker: str
    family: str
    why: str
    parameters: dict[str, Any] = field(default_factory=dict)
    value: float | None = None
    low: float | None = None
    high: float | None = None
    share: float = 1.0
    seconds: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True)
class Chosen:
    """What `auto` found.

    Attributes
    ----------
    ranker : Ranker
        A `Blend` or a single ranker, fitted.
    why : str
        A few sentences on the data, the candidates and the choice.
    candidates : tuple of Candidate
        All that suit the data, with their values.
    metric : str
    seconds : float
        How long it took.
    value, low, high : float or None
        The metric that the choice has on new queries, and its 95 % interval: each query is valued
        by fits and by a choice that were made without it. None if the choice was made on a
        sample, on a validation set or without evaluation.
    """

    ranker: Ranker
    why: str
    candidates: tuple[Candidate, ...]
    metric: str
    seconds: float = 0.0
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def evaluated(self) -> bool:
        """Whether what was chosen was evaluated, on folds, a sample or a validation set.

        It is not with fewer than five queries and no validation set, and after Ctrl-C before
        anything was evaluated.
        """
        return all(each.value is not None for each in self.candidates if each.weight > 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the reason, the value and the candidates as plain values."""
        return {
            "why": self.why,
            "evaluated": self.evaluated,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "candidates": [asdict(each) for each in self.candidates],
        }


class AutoInterrupted(KeyboardInterrupt):
    """Ctrl-C ended `auto`.

    Attributes
    ----------
    chosen : Chosen
        The best so far.
    """

    def __init__(self, chosen: Chosen) -> None:
        super().__init__(chosen.why)
        self.chosen = chosen


def auto(
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group_sizes: Any = None,
    eval_set: Any = None,
    metric: Any = "ndcg@10",
    convention: str = "standard",
    time_limit: float | None = None,
    ensemble: bool = True,
    on_progress: OnProgress | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Chosen:
    """Try the rankers that suit the data, and return a blend of the best, or one, with the reason.

    Parameters
    ----------
    X, y, qid, group_sizes, eval_set
        As in `Ranker.fit`. The queries of ``eval_set`` are dealt to folds with those of X, and
        fitted to as well.
    metric, convention
        What is optimised, and chooses, with ties averaged.
    time_limit : float or None, default None
        Seconds after which to be done, the last fit included; what is not tried by then is left
        out. A cheap candidate is first evaluated on a sample of about 2,000 documents, however
        long that takes, so that the choice is never a candidate that was not evaluated.
    ensemble : bool, default True
        Whether a blend may be chosen; otherwise the best single ranker is.
    on_progress
        Called while fitting with the number of the fit, how many there are, the candidate, its
        round and a short text.

    Returns
    -------
    Chosen
        Its ``ranker`` is fitted to all queries.

    Raises
    ------
    AutoInterrupted
        After Ctrl-C. It is a KeyboardInterrupt whose ``chosen`` is the best so far; that ranker is
        fitted to most queries.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.synthetic("mq2008", queries=30)
    >>> chosen = rw.auto(data, time_limit=30)  # doctest: +SKIP
    >>> chosen.ranker.save("model.rw")  # doctest: +SKIP
    """
    began = time.perf_counter()
    if time_limit is not None:
        check_above_zero("time_limit", time_limit)
    data = ranking_data(X, y, qid, group_sizes)
    valid = None if eval_set is None else valid_data(eval_set, data)
    refuse_nothing_to_rank(data)
    if valid is not None:
        refuse_nothing_to_rank(valid, " in the validation set")
    outline = Outline.of(data)
    selects = make_metric(metric, convention=convention)
    seed = seed_of(random_state)
    common = {"metric": metric, "convention": convention, "random_state": seed, "n_jobs": n_jobs}
    tried = [_Tried(each, common) for each in candidates(outline)]
    clock = _Clock(began, time_limit)
    search = _Search(tried, selects.for_selection(), on_progress, clock, ensemble, seed)
    whole = data if valid is None else _pooled(data, valid)
    if not deals_to_folds(whole):
        fitted, where = search.without_folds(data, valid)
    else:
        fitted, where = search.on_folds(whole)
    fitted.interrupted_ = fitted.interrupted_ or search.interrupted
    name = metric_name(metric, selects)
    found = tuple(one.candidate for one in tried)
    seconds = time.perf_counter() - began
    why = _why(outline, search, fitted, name, where, seconds)
    chosen = Chosen(fitted, why, found, name, seconds, *search.value)
    if search.interrupted:
        raise AutoInterrupted(chosen)
    return chosen


def deals_to_folds(data: RankingData) -> bool:
    """Whether candidates are tried on folds of the queries of ``data``.

    Users cannot be dealt: they are known by their own ratings.
    """
    return data.n_queries >= _FOLDS and not _are_ratings(data)


def _pooled(data: RankingData, valid: RankingData) -> RankingData:
    """Return the queries of both, each once; those without weights count 1."""
    known, again = (query_prints(part)[0] for part in (data, valid))
    valid = valid.select(np.flatnonzero(~np.isin(again, known)))
    if not valid.n_queries:
        return data

    def weighted(part: RankingData, other: RankingData) -> RankingData:
        if part.sample_weight is None and other.sample_weight is not None:
            part = part._replace(sample_weight=np.ones(part.n_documents))
        if part.query_weight is None and other.query_weight is not None:
            part = part._replace(query_weight=np.ones(part.n_queries))
        return part

    return concatenate([weighted(data, valid), weighted(valid, data)], shared_ids=True)


# --- the search ------------------------------------------------------------------------------


_Folds = list[list[tuple[I64, I64]]]  # queries to fit to and to score, of each fold of each repeat


def _holdout(data: RankingData, seed: int) -> list[tuple[I64, I64]]:
    """Return a fifth of the queries as the one fold."""
    test = deal_queries(data, _FOLDS, seed=seed)[0]
    return [(np.setdiff1d(np.arange(data.n_queries), test), test)]


def _tested(folds: _Folds) -> I64:
    """Return the queries that are scored."""
    return np.sort(np.concatenate([test for _, test in folds[0]]))


class _TimeUpError(Exception):
    """The time limit does not allow another round."""


@dataclass
class _Clock:
    """How much time is left."""

    began: float
    limit: float | None

    def allows(self, more: float = 0.0) -> bool:
        """Whether ``more`` seconds remain."""
        return self.limit is None or time.perf_counter() - self.began + more < self.limit

    @property
    def margin(self) -> float:
        """Seconds that are left for what is no fit."""
        return 0.0 if self.limit is None else _MARGIN * self.limit


@dataclass(eq=False)
class _Tried:
    """A candidate, its fits and its scores."""

    candidate: Candidate
    common: dict[str, Any]
    scored: OutOfFold | None = None
    per_query: F64 | None = None
    last: Ranker | None = None  # the last fit
    last_share: float = 1.0  # of all queries that it was made to
    sampled: OutOfFold | None = None  # scores on a sample of the queries
    refit_seconds: float = 0.0  # how long a fit to all data should take
    failed: RankwrightError | None = None

    def make(self) -> Ranker:
        """Return the ranker, not fitted."""
        return ranker(self.candidate.ranker, **{**self.common, **self.candidate.parameters})

    @property
    def name(self) -> str:
        """The name of the ranker."""
        return self.candidate.ranker

    def on(self, queries: I64, rows: I64) -> _Tried:
        """Return the candidate as it is known by some of the queries that were scored."""
        assert self.scored is not None
        assert self.per_query is not None
        values = self.per_query[queries]
        value = np.nan if np.isnan(values).all() else float(np.nanmean(values))
        return replace(
            self,
            candidate=replace(self.candidate, value=value),
            scored=replace(self.scored, by_repeat=self.scored.by_repeat[:, rows]),
            per_query=values,
        )

    def note(self, **changes: Any) -> None:
        """Change what is reported of the candidate."""
        self.candidate = replace(self.candidate, **changes)


@dataclass
class _Search:
    """Fits candidates to folds until time is up or all are tried, and chooses."""

    tried: list[_Tried]
    metric: Metric
    on_progress: OnProgress | None
    clock: _Clock
    ensemble: bool
    seed: int
    interrupted: bool = False
    out_of_time: bool = False
    folds: str = ""
    crossed: bool = False  # queries are scored by fits to each other
    value: tuple[float, float, float] | tuple[()] = ()  # of the choice, and its interval
    _done: int = 0
    _fits: int = 0
    _reserved: float = 0.0
    _looking: bool = False

    # --- without folds -----------------------------------------------------------------------

    def without_folds(self, data: RankingData, valid: RankingData | None) -> tuple[Ranker, str]:
        """Return the best on validation data, or without them the first."""
        self._fits = len(self.tried) if valid is not None else 1
        for one in self.tried:
            fit = one.make()
            try:
                fit.fit(data, eval_set=valid, progress=self._progress(one))
            except RankwrightError as error:
                one.failed = error
                continue
            except (KeyboardInterrupt, _TimeUpError) as ended:
                self._end(ended)
                if not hasattr(fit, "interrupted_"):
                    break
            self._done += 1
            one.last = fit
            if valid is None:
                one.note(weight=1.0)
                return fit, ""
            (one.per_query,) = evaluate(valid, fit.predict(valid), self.metric).per_query.values()
            self._value(one)
            if self.interrupted:
                break
        best = self._best([one for one in self.tried if one.per_query is not None])
        best.note(weight=1.0)
        assert best.last is not None
        return best.last, "the validation set, which chose the iterations and the ranker"

    # --- on folds ----------------------------------------------------------------------------

    def on_folds(self, data: RankingData) -> tuple[Ranker, str]:
        """Return what is best out of fold, fitted to all data."""
        folds = self._folds_of(data)
        try:
            self._first_look(data)
            left = self._in_turn(self._halved(data))
            self._fits = self._done + sum(self._count(one, folds) for one in left)
            for one in left:
                self._try(one, data, folds)
        except KeyboardInterrupt:
            self.interrupted = True
        done = [one for one in self.tried if one.scored is not None]
        tested = data.select(_tested(folds))
        if not done or self.interrupted:
            return self._unfinished(done, data, tested), self.folds
        try:
            members, weights, deviations = self._choice(done, tested)
            self.value = self._value_of_choice(done, tested)
            fitted = self._refit(members, data)
        except (KeyboardInterrupt, _TimeUpError) as ended:
            self._end(ended)
            return self._unfinished(done, data, tested), self.folds
        for one, weight in zip(members, weights.tolist(), strict=True):
            one.note(weight=weight)
        if len(members) == 1:
            return fitted[0], self.folds
        named = {one.name: fit for one, fit in zip(members, fitted, strict=True)}
        common = members[0].common
        return Blend.of(named, weights, deviations=deviations, **common), self.folds

    def _folds_of(self, data: RankingData) -> _Folds:
        """Return the folds of each repeat: one holdout for large data, more for few queries."""
        every = np.arange(data.n_queries)
        if data.n_documents >= _HALVED:
            self.folds = "queries held out"
            return [_holdout(data, self.seed)]
        repeats = int(np.clip(round(_REPEATED / data.n_queries), 1, _MOST_REPEATS))
        often = f", dealt {repeats} times" if repeats > 1 else ""
        self.folds = f"{_FOLDS} folds of {data.n_queries} queries{often}"
        return [
            [(np.setdiff1d(every, test), test) for test in deal_queries(data, _FOLDS, seed=seed)]
            for seed in range(self.seed, self.seed + repeats)
        ]

    def _in_turn(self, left: list[_Tried]) -> list[_Tried]:
        """Return the candidates as they are tried: with a time limit a cheap one comes first."""
        if self.clock.limit is None:
            return left
        return sorted(left, key=lambda one: one.name not in _CHEAP)

    def _first_look(self, data: RankingData) -> None:
        """With a time limit, try a cheap candidate on a sample, which grows while time allows.

        It is tried to the end, so that what is chosen was evaluated however short the time is.
        """
        if self.clock.limit is None:
            return
        share = min(_LARGEST_LOOK, _LOOK / data.n_documents)
        self._looking, enough = True, False
        for one in self._in_turn(self.tried):
            while True:
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # on so few queries they mean nothing
                    self._try_on_sample([one], data, share)
                seconds = time.perf_counter() - began
                enough = self.clock.allows(_SPARE * _FOLDS * seconds / share)  # for all data
                share *= _GROWTH
                larger = share <= _LARGEST_LOOK and self.clock.allows(_SPARE * _GROWTH * seconds)
                if one.scored is None or enough or not larger:
                    break
                self._forget()
                self._reserved = 0.0
            if one.candidate.value is not None:
                break
        self._looking = False
        self._forget()
        if enough or not self.clock.allows(self._reserved):  # or it cannot be fitted to all data
            self._reserved = 0.0

    def _halved(self, data: RankingData) -> list[_Tried]:
        """Return the candidates that are left after samples of large data."""
        left = self.tried
        size = _SAMPLE
        while data.n_documents >= _HALVED and size < data.n_documents and self._compete(left):
            self._try_on_sample(self._in_turn(left), data, size / data.n_documents)
            left = self._better_half(left)
            self._forget()  # to be tried on more
            size *= _GROWTH
        return left

    def _try_on_sample(self, left: list[_Tried], data: RankingData, share: float) -> None:
        """Try candidates on a share of the queries, of which a fifth is held out."""
        order = np.concatenate(deal_queries(data, max(2, round(1 / share)), seed=self.seed))
        sample = data.select(np.sort(order[: max(2 * _FOLDS, round(share * data.n_queries))]))
        folds = [_holdout(sample, self.seed)]
        self._fits = self._done + sum(self._count(one, folds) for one in left)
        for one in left:
            self._try(one, sample, folds, share)

    def _forget(self) -> None:
        """Set aside what was found on a sample."""
        for one in self.tried:
            one.sampled = one.scored or one.sampled
            one.scored = one.per_query = None

    @staticmethod
    def _compete(left: list[_Tried]) -> bool:
        """Whether a family has more than one candidate."""
        return len({one.candidate.family for one in left}) < len(left)

    def _better_half(self, left: list[_Tried]) -> list[_Tried]:
        """Return the better half of each family, in their order."""
        kept = []
        for family in dict.fromkeys(one.candidate.family for one in left):
            own = [one for one in left if one.candidate.family == family and one.scored]
            own.sort(key=self._worth, reverse=True)
            kept += own[: (len(own) + 1) // 2]
        return [one for one in left if one in kept]

    @staticmethod
    def _count(one: _Tried, folds: _Folds) -> int:
        """Return how many fits a candidate takes."""
        twice = 2 if round_parameter(one.make()) is not None else 1
        return twice * sum(map(len, folds))

    def _try(
        self,
        one: _Tried,
        data: RankingData,
        folds: _Folds,
        share: float = 1.0,
    ) -> None:
        """Fit a candidate to the folds and value it.

        One that cannot take the data, or takes longer than there is time for, is left out.
        """
        if not self._is_time():
            self.out_of_time = True
            return
        made, fits, self.crossed = one.make(), [], len(folds[0]) > 1
        fitted = share * len(folds[0][0][0]) / data.n_queries  # of all documents
        left = self._count(one, folds)

        def noted(fit: FoldFit) -> None:
            nonlocal left
            one.last, one.last_share = fit.ranker, fitted
            one.note(seconds=one.candidate.seconds + fit.seconds)
            fits.append(replace(fit, ranker=None))
            self._done, left = self._done + 1, left - 1
            expected = left * fit.seconds + _SPARE * fit.seconds / fitted
            if len(fits) == 1:  # which may have loaded what later ones find there
                expected = 0.0
            if left and not fit.ranker.interrupted_ and not self._is_time(expected):
                raise _TimeUpError

        try:
            shown, rounds = self._progress(one), None
            if round_parameter(made) is not None:
                rounds = [best_rounds(made, data, each, noted, shown) for each in folds]
                fits.clear()
            scores = [
                fold_scores(made, data, each, noted, shown, rounds[number] if rounds else None)
                for number, each in enumerate(folds)
            ]
        except RankwrightError as error:
            one.failed = error
            return
        except _TimeUpError:
            self.out_of_time = True
            return
        one.refit_seconds = _SPARE * float(np.mean([fit.seconds for fit in fits])) / fitted
        tested = _tested(folds)
        of_all = None if rounds is None else round(float(np.mean([one.of_all for one in rounds])))
        one.scored = OutOfFold(np.array(scores)[:, data.rows_of(tested)], tuple(fits), of_all)
        stack = Stack(data.select(tested), one.scored.by_repeat[None], self.metric)
        one.per_query = stack.per_query(np.ones(1))
        one.note(share=share)
        self._value(one)
        if self.clock.limit is not None:
            self._reserve(stack.data)

    def _reserve(self, tested: RankingData) -> None:
        """Keep time for a choice of what was tried so far, and for its last fits."""
        began = time.perf_counter()
        done = [one for one in self.tried if one.scored is not None]
        members, *_ = self._choice(done, tested)
        seconds = (1 + _FOLDS) * (time.perf_counter() - began)  # it is made again to value it
        fits = sum(one.refit_seconds for one in members)
        self._reserved = fits + _SPARE * seconds + self.clock.margin

    def _progress(self, one: _Tried) -> Callable[[int, str], None]:
        """Return what shows the rounds of a candidate, and ends it when time is up."""

        def progress(t: int, text: str) -> None:
            if self.on_progress is not None:
                self.on_progress(self._done, self._fits, one.name, t, text)
            if not self._is_time():
                raise _TimeUpError

        return progress

    def _is_time(self, more: float = 0.0) -> bool:
        """Whether there is time for ``more`` and the last fits; the first evaluation is allowed."""
        first = all(each.last is None for each in self.tried)
        looking = self._looking and all(each.candidate.value is None for each in self.tried)
        return first or looking or self.clock.allows(self._reserved + more)

    # --- choosing ----------------------------------------------------------------------------

    def _choice(self, done: list[_Tried], data: RankingData) -> tuple[list[_Tried], F64, F64]:
        """Return what to fit to all data, the weights, and the deviations of the scores."""
        if not self.ensemble:
            return [self._best(done)], np.ones(1), np.ones(1)
        members = self._of_families(done)
        if len(members) == 1:
            return members, np.ones(1), np.ones(1)
        scores = np.array([one.scored.by_repeat for one in members if one.scored is not None])
        stack = Stack(data, scores, self.metric, members[0].common["n_jobs"])
        single = best_alone(stack, _SHRINKAGE, self.seed)
        weights = stack.fit_weights(_SHRINKAGE) if single is None else np.eye(len(members))[single]
        kept = np.flatnonzero(weights > 0.0)
        return [members[k] for k in kept], weights[kept], stack.deviations[kept]

    def _value_of_choice(self, done: list[_Tried], data: RankingData) -> tuple[float, float, float]:
        """Return the value of the choice and its interval: each query is valued by one without it.

        What is chosen as the best on some queries looks better there than on new ones, so the
        choice is made again on the others of each fold.
        """
        per_query = np.full(data.n_queries, np.nan)
        for test in deal_queries(data, min(_FOLDS, data.n_queries), seed=self.seed):
            others = np.setdiff1d(np.arange(data.n_queries), test)
            if not len(others):
                return self._interval(self._best(done).per_query)
            restricted = [one.on(others, data.rows_of(others)) for one in done]
            members, weights, _ = self._choice(restricted, data.select(others))
            scored = [done[restricted.index(one)].scored for one in members]
            scores = np.array([one.by_repeat for one in scored if one is not None])
            per_query[test] = Stack(data, scores, self.metric).per_query(weights)[test]
        return self._interval(per_query)

    def _interval(self, per_query: F64 | None) -> tuple[float, float, float]:
        """Return the mean over queries and its 95 % interval.

        The values of two queries depend on each other where each is scored by a fit to the other.
        At worst, if there is nothing to learn, that doubles the variance of the mean: pairs of
        queries count twice.
        """
        assert per_query is not None
        values = per_query[~np.isnan(per_query)]
        if len(values) < 2:
            value = float(values.mean()) if len(values) else np.nan
            return value, value, value
        found = bootstrap_interval(values)
        wider = _DEPENDENT if self.crossed else 1.0
        low, high = (found.mean + wider * (end - found.mean) for end in (found.low, found.high))
        return found.mean, low, high

    def _of_families(self, done: list[_Tried]) -> list[_Tried]:
        """Return one of each family: the first, unless another is clearly better."""
        found = []
        for family in dict.fromkeys(one.candidate.family for one in done):
            first, *others = [one for one in done if one.candidate.family == family]
            for other in sorted(others, key=self._worth, reverse=True):
                if self._leads(other, first):
                    first = other
                    break
            found.append(first)
        return found

    def _leads(self, one: _Tried, other: _Tried) -> bool:
        """Whether one is clearly better than another."""
        assert one.per_query is not None
        assert other.per_query is not None
        return clearly_better(self._sign * one.per_query, self._sign * other.per_query, _LEAD)

    @property
    def _sign(self) -> float:
        return 1.0 if self.metric.maximise else -1.0

    def _worth(self, one: _Tried) -> float:
        value = one.candidate.value
        return -np.inf if value is None or np.isnan(value) else self._sign * value

    def _best(self, done: list[_Tried]) -> _Tried:
        """Return the first of the best, or say why there is none."""
        if done:
            return max(done, key=self._worth)
        if self.interrupted:
            raise KeyboardInterrupt
        raise next(one.failed for one in self.tried if one.failed is not None)

    def _end(self, ended: BaseException) -> None:
        """Note what ended the search."""
        self.interrupted = isinstance(ended, KeyboardInterrupt)
        self.out_of_time = not self.interrupted

    def _value(self, one: _Tried) -> None:
        """Note the value of a candidate with its interval."""
        value, low, high = self._interval(one.per_query)
        one.note(value=value, low=low, high=high)

    # --- the last fits -----------------------------------------------------------------------

    def _refit(self, members: list[_Tried], data: RankingData) -> list[Ranker]:
        """Return the chosen, fitted to all data, if there is time for it."""
        if not self.clock.allows(sum(one.refit_seconds for one in members) / _SPARE):
            raise _TimeUpError
        self._reserved = 0.0
        self._fits = self._done + len(members)
        found = []
        for one in members:
            made = one.make()
            assert one.scored is not None
            rounds = one.scored.rounds_for(data.n_queries)
            made = made if rounds is None else with_rounds(made, rounds)
            found.append(made.fit(data, progress=self._progress(one)))
            self._done += 1
        return found

    def _unfinished(self, done: list[_Tried], data: RankingData, tested: RankingData) -> Ranker:
        """Return the best so far: fitted to all if time allows, else its last fit."""
        if done:
            self.ensemble = False
            self.value = self._value_of_choice(done, tested)
        best = self._best(done or [one for one in self.tried if one.last is not None])
        best.note(weight=1.0)
        if not done and best.sampled is not None and not self.interrupted:
            best.scored = best.sampled
            try:
                return self._refit([best], data)[0]
            except (KeyboardInterrupt, _TimeUpError) as ended:
                self._end(ended)
        assert best.last is not None
        return best.last


# --- the reason --------------------------------------------------------------------------------


def _why(
    outline: Outline, search: _Search, fitted: Ranker, metric: str, where: str, seconds: float
) -> str:
    found = [one.candidate for one in search.tried]
    parts = [each for each in found if each.weight > 0.0]
    if not where:
        (best,) = parts
        reason = "users are not dealt to folds" if outline.ratings else "too few queries for folds"
        return (
            f"{outline}: {best.ranker} ({best.why}), chosen without evaluation: {reason}; give "
            "validation data."
        )
    if len(parts) > 1:
        shares = both([f"{each.ranker} ({each.weight:.2f})" for each in parts])
        what = f"a blend of {shares}"
    else:
        what = f"{parts[0].ranker} ({parts[0].why})"
    values = ", ".join(
        f"{each.ranker} {each.value:.4f}" + ("" if each.share == 1.0 else " on a sample")
        for each in found
        if each.value is not None
    )
    text = f"{outline}: {what}. "
    if parts[0].value is None:
        text = f"{outline}: {what}, chosen without evaluation. "
    if search.value:
        value, low, high = search.value
        text += (
            f"Expected {metric} of this choice on new queries: {value:.4f}, 95 % interval "
            f"[{low:.4f}, {high:.4f}]. "
        )
    if values:
        on = f" on {where}" if any(each.share == 1.0 for each in found if each.value) else ""
        several = "; the best of several looks better than it is" if ", " in values else ""
        text += f"{metric}{on}: {values}{several}. "
    left = [each.ranker for each in found if each.value is None]
    if left:
        text += f"Not tried to the end: {', '.join(left)}. "
    if search.out_of_time or search.interrupted:
        ended = "the time limit" if search.out_of_time else "Ctrl-C"
        last = [one.last_share for one in search.tried if one.last is fitted]
        text += f"Ended by {ended}"
        if last:
            text += f"; the ranker is fitted to {last[0]:.0%} of the queries, not to all"
        text += ". "
    return text + f"{seconds:.1f} seconds."


# --- which rankers suit data -----------------------------------------------------------------
#
# An outline of the data names families of rankers, and the candidates of each.
# The outline is queries, documents, features, zeros, missing values and grades; what suits data of
# which kind was measured, and is reported in docs/choose.md.


LONG_LIST = 500
SMALL = 20_000  # documents
MANY_DOCUMENTS = 200_000
SPARSE = 0.1  # share of entries that are not zero
MANY_FEATURES = 500
FEW_FEATURES = 100


@dataclass(frozen=True)
class Outline:
    """What decides which rankers suit data."""

    queries: int
    documents: int
    features: int
    filled: float
    missing: bool
    grades: int
    ratings: bool
    categories: int = 0

    @classmethod
    def of(cls, data: RankingData) -> Outline:
        """Return the outline of ``data``."""
        values = data.X.data[:, None] if sparse.issparse(data.X) else data.X
        entries = max(1, data.n_documents * data.n_features)
        return cls(
            queries=data.n_queries,
            documents=data.n_documents,
            features=data.n_features,
            filled=float(np.count_nonzero(values) / entries),
            missing=any(np.isnan(values[block]).any() for block in blocks(values)),
            grades=len(np.unique(data.y)),
            ratings=_are_ratings(data),
            categories=len(data.categories or ()),
        )

    @property
    def length(self) -> int:
        """Documents of a query, on average."""
        return round(self.documents / max(1, self.queries))

    def __str__(self) -> str:
        if self.ratings:
            return (
                f"{counted(self.queries, 'user')} with {self.documents:,} ratings of "
                f"{counted(self.features, 'item')}"
            )
        parts = [
            f"{counted(self.queries, 'query')} of about {counted(self.length, 'document')}",
            counted(self.features, "feature"),
            counted(self.grades, "grade"),
        ]
        if self.filled < SPARSE:
            parts[1] += f" of which {self.filled:.1%} are not zero"
        if self.categories:
            parts[1] += f" of which {counted(self.categories, 'is a category', 'are categories')}"
        if self.missing:
            parts.append("missing values")
        return ", ".join(parts)


def candidates(outline: Outline) -> tuple[Candidate, ...]:
    """Return the rankers that suit data of this outline; the first of a family stands for it."""
    networks = find_spec("torch") is not None
    found = [Candidate(*each) for each in _suited(outline)]
    return tuple(each for each in found if networks or each.family != _NETWORK)


_LINEAR, _ASCENT, _NETWORK, _BOOSTED, _FOREST = (
    "linear", "coordinate ascent", "network", "boosted trees", "forest",
)  # fmt: skip
_BAGS = {"n_bags": 60}


def _suited(outline: Outline) -> Iterator[tuple[Any, ...]]:
    if outline.ratings:
        yield "cofirank", "users", "ratings: learns users and items, and the order of each user's"
        yield "mmmf", "users", "ratings: learns users and items, and the levels of the ratings"
    elif outline.filled < SPARSE and outline.features >= MANY_FEATURES and not outline.missing:
        yield "domination", _LINEAR, "sparse features: few weights, the others exactly 0"
        yield "pamir", _LINEAR, "sparse features: a step costs the entries of two rows"
        if outline.documents < SMALL:
            yield "intervalrank", _BOOSTED, "few documents: trees on sparse features are affordable"
    else:
        yield from _dense(outline)


def _dense(outline: Outline) -> Iterator[tuple[Any, ...]]:
    long = outline.length >= LONG_LIST
    trees = outline.missing or outline.categories
    if not trees:
        yield "memr", _LINEAR, "linear and quick"
    if not long:
        yield "gbrank", _BOOSTED, "trees on preferences"
    else:
        yield "gbdt", _BOOSTED, "long lists: trees that form no pairs"
    yield "random_forest", _FOREST, "trees on samples of queries, averaged", _BAGS
    if not trees and not long and outline.documents < MANY_DOCUMENTS:
        yield "ranknet", _NETWORK, "a network on preferences"
    if not trees and outline.documents < SMALL and outline.features <= FEW_FEATURES:
        yield "coordinate_ascent", _ASCENT, "few features: optimises the metric itself"
    yield "xendcg", _BOOSTED, "trees that train for NDCG and form no pairs"
    if not long:
        yield "gbdt", _BOOSTED, "trees on the grades"
        yield "lambdamart", _BOOSTED, "trees that optimise the metric"
        yield "intervalrank", _BOOSTED, "trees with soft margins"
    if not trees and long:
        yield "domination", _LINEAR, "long lists: good documents above all they dominate"


def _are_ratings(data: RankingData) -> bool:
    """Whether each row names one item, as ratings are read: a single 1 among zeros."""
    X = data.X
    if not sparse.issparse(X) or X.nnz != data.n_documents or data.n_features < 2:
        return False
    return bool((X.data == 1.0).all() and (np.diff(X.indptr) == 1).all())
