"""Scores of every document by fits that have not seen its query.

They are what a stacked model learns from, and what rankers are compared by without a validation
set: `out_of_fold` fits copies of one ranker to folds of whole queries.

A model that is a sum of rounds needs a number of rounds. Each fold is first fitted with its test
queries as validation set, which gives a curve of the metric over rounds. The number for a fold is
the round at which the mean curve of the *other* folds, smoothed over neighbouring rounds, is best,
and the fold is fitted again with that number: the queries that a fit scores choose nothing of it.
If there is only one fold, a fifth of its training queries gives the curve instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from rankwright.core.parameters import check_whole, seed_of
from rankwright.core.types import F64, I64
from rankwright.data.query_folds import deal_queries
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.base import metric
from rankwright.rankers.base import Ranker
from rankwright.rankers.base import ranker as ranker_called
from rankwright.rankers.fitting import Progress
from rankwright.rankers.selection import ROUNDS

OnFit = Callable[["FoldFit"], None]
"""Called with each fit when it is done."""


_SMOOTHED = 5  # rounds
_INNER = 5  # parts of the training queries of a single fold, of which one gives its curve
_GROWTH = 0.5  # of the rounds with the queries
_Folds = list[tuple[I64, I64]]  # numbers of the queries that are fitted to, and of those scored


@dataclass(frozen=True)
class FoldFit:
    """A fit to the other folds.

    Attributes
    ----------
    queries : (q,) int64
        Numbers of the queries that it scored, in order of first appearance in the data.
    n_fitted : int
        How many queries it was fitted to.
    best_iteration : int
        The iteration that it kept.
    seconds : float
        How long it took to fit.
    ranker : fitted ranker or None
    """

    queries: I64
    n_fitted: int
    best_iteration: int
    seconds: float
    ranker: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class OutOfFold:
    """What `out_of_fold` found.

    Attributes
    ----------
    by_repeat : (repeats, n) float64
        The score of each document, in the data's own order of rows, by the fit of each repeat that
        had not seen its query.
    fits : tuple of FoldFit
        Fold after fold, repeat after repeat.
    rounds : int or None
        The number of rounds that is best over all folds, for a fit to all data; each fold was
        fitted with the number that is best over the other folds. None if it was not asked for, or
        the model is not a sum of rounds.
    """

    by_repeat: F64
    fits: tuple[FoldFit, ...]
    rounds: int | None = None

    @property
    def scores(self) -> F64:
        """The score of each document, the mean over repeats."""
        mean: F64 = self.by_repeat.mean(axis=0)
        return mean

    def rounds_for(self, n_queries: int) -> int | None:
        """Return how many rounds suit a fit to ``n_queries``, which may be more than the folds had.

        In proportion to the root of their number.
        """
        if self.rounds is None:
            return None
        fitted = float(np.mean([fit.n_fitted for fit in self.fits]))
        return _grown(self.rounds, n_queries / fitted)


def out_of_fold(
    ranker: Any,
    data: RankingData,
    folds: int = 5,
    *,
    choose_rounds: bool = False,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> OutOfFold:
    """Return the score of each document by a fit that has not seen its query.

    Parameters
    ----------
    ranker : Ranker or str
        Not changed: a copy is fitted for each fold. A name stands for that ranker with its
        defaults.
    data : RankingData
    folds : int, default 5
        Number of folds, dealt by what the queries hold, whatever their names and the order of the
        rows. For folds of your own see `cross_validate`.
    choose_rounds : bool, default False
        Choose the number of trees, rules or epochs of each fold by the other folds; this fits
        twice. Other models are fitted as they are.
    progress : callable
        Called with the round and a short text after each round of each fit.
    random_state : int, Generator, RandomState or None, default 0
        Seed of the folds.

    Returns
    -------
    OutOfFold
        Its ``scores`` are in the data's own order of rows; ``rounds`` is what was chosen.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.synthetic("mq2008", queries=30)
    >>> found = rw.out_of_fold("memr", data, folds=3)
    >>> len(found.scores) == data.n_documents, len(found.fits)
    (True, 3)
    """
    made = ranker_called(ranker) if isinstance(ranker, str) else ranker
    if not isinstance(made, Ranker):
        raise UsageError(f"out_of_fold takes a ranker or its name, not {type(ranker).__name__}.")
    if not isinstance(data, RankingData):
        raise UsageError(
            f"out_of_fold takes RankingData, not {type(data).__name__}; "
            "RankingData.from_arrays(X, y, qid=qid) makes it of arrays."
        )
    parts = _dealt_folds(data, folds, seed_of(random_state))
    fits: list[FoldFit] = []

    def noted(fit: FoldFit) -> None:
        fits.append(replace(fit, ranker=None))

    rounds = None
    if choose_rounds and round_parameter(made) is not None:
        rounds = best_rounds(made, data, parts, _ignored, progress)
    scores = fold_scores(made, data, parts, noted, progress, rounds)
    return OutOfFold(scores[None], tuple(fits), None if rounds is None else rounds.of_all)


def _dealt_folds(data: RankingData, folds: int, seed: int) -> _Folds:
    check_whole("folds", folds, 2)
    if data.n_queries < folds:
        raise DataError(f"{data.n_queries} queries cannot be cut into {folds} folds.")
    every = np.arange(data.n_queries)
    dealt = deal_queries(data, int(folds), seed=seed)
    return [(np.setdiff1d(every, test), test) for test in dealt]


def fold_scores(
    ranker: Ranker,
    data: RankingData,
    folds: _Folds,
    on_fit: OnFit,
    progress: Progress | None = None,
    rounds: Rounds | None = None,
) -> F64:
    """Return the score of each document by the fit of its fold; NaN where it is in none."""
    scores = np.full(data.n_documents, np.nan)
    for number, (train, test) in enumerate(folds):
        made = ranker if rounds is None else with_rounds(ranker, rounds.of_fold[number])
        fit = _fitted(made, data, train, test, None, on_fit, progress)
        scores[data.rows_of(test)] = fit.ranker.predict(data.select(test))
    return scores


@dataclass(frozen=True)
class Rounds:
    """How many rounds to fit with: in each fold, chosen without its test queries, and by all."""

    of_fold: tuple[int, ...]
    of_all: int


def best_rounds(
    ranker: Ranker,
    data: RankingData,
    folds: _Folds,
    on_fit: OnFit,
    progress: Progress | None = None,
) -> Rounds:
    """Return the number of rounds for each fold, and the one that is best over all folds."""
    if len(folds) == 1:
        ((train, _),) = folds
        inner = deal_queries(data.select(train), _INNER)[0]
        rest = np.setdiff1d(train, train[inner])
        curve = _curve(ranker, data, rest, train[inner], on_fit, progress)
        grown = _grown(_best_round(ranker, [curve]), len(train) / len(rest))
        return Rounds((grown,), grown)
    curves = [_curve(ranker, data, train, test, on_fit, progress) for train, test in folds]
    others = [curves[:number] + curves[number + 1 :] for number in range(len(curves))]
    of_fold = tuple(_best_round(ranker, each) for each in others)
    return Rounds(of_fold, _best_round(ranker, curves))


def _curve(
    ranker: Ranker,
    data: RankingData,
    train: I64,
    test: I64,
    on_fit: OnFit,
    progress: Progress | None,
) -> F64:
    """Return the sum over test queries of the metric after each round; empty without rounds."""
    fit = _fitted(ranker, data, train, test, data.select(test), on_fit, progress)
    (curve,) = fit.ranker.evals_result_.get("valid", {"": []}).values()
    return np.array(curve) * len(test)


def _best_round(ranker: Ranker, curves: list[F64]) -> int:
    """Return the round at which the sum of the curves, smoothed, is best."""
    longest = max(map(len, curves))
    if not longest:  # nothing to learn in any of them
        return 1
    padded = [
        np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves if len(curve)
    ]
    total = np.sum(padded, axis=0)  # one that was stopped early stays where it was
    window = np.ones(_SMOOTHED)
    smooth = np.convolve(total, window, "same") / np.convolve(np.ones(longest), window, "same")
    selects = metric(ranker.selection_metric, convention=ranker.convention)
    return int(np.argmax(smooth if selects.maximise else -smooth)) + 1


def _grown(rounds: int, ratio: float) -> int:
    """Return the number of rounds for a fit to ``ratio`` times as many queries."""
    grown: float = rounds * ratio**_GROWTH
    return max(1, round(grown))


def _fitted(
    ranker: Ranker,
    data: RankingData,
    train: I64,
    test: I64,
    valid: RankingData | None,
    on_fit: OnFit,
    progress: Progress | None,
) -> FoldFit:
    """Fit a copy and pass it to ``on_fit``, also if Ctrl-C ended it after some rounds."""
    made = clone(ranker)
    began = time.perf_counter()

    def report() -> FoldFit:
        fit = FoldFit(test, len(train), made.best_iteration_, time.perf_counter() - began, made)
        on_fit(fit)
        return fit

    try:
        made.fit(data.select(train), eval_set=valid, progress=progress)
    except KeyboardInterrupt:
        if hasattr(made, "interrupted_"):
            report()
        raise
    return report()


def round_parameter(ranker: Ranker) -> str | None:
    """Return the parameter that says how many rounds a ranker's model is the sum of, if it is."""
    return ROUNDS.get(ranker.model_name)


def with_rounds(ranker: Ranker, rounds: int) -> Ranker:
    """Return a copy of a ranker that is fitted with so many rounds, all of which are kept."""
    made: Ranker = clone(ranker)
    made.set_params(**{f"model__{round_parameter(ranker)}": rounds})
    if getattr(made, "early_stopping_rounds", None) is not None:
        made.set_params(early_stopping_rounds=None)
    return made


def _ignored(fit: FoldFit) -> None:
    """Take no notice of a fit."""
