"""Out-of-fold scores: each document is scored by a fit without its query.

Stacked models are fitted to such scores, and rankers can be compared by them without a validation
set. `out_of_fold` fits copies of one ranker to folds of whole queries.

Models that are a sum of rounds need a number of rounds. Each fold is first fitted with its test
queries as validation set, which gives a curve of the metric over rounds. The number for a fold is
the round with the best mean of the smoothed curves of the *other* folds, and the fold is fitted
again with this number, so that test queries do not influence the fit. With a single fold, a fifth
of its training queries gives the curve.
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
from rankwright.rankers.base import ranker as make_ranker
from rankwright.rankers.fitting import Progress

OnFit = Callable[["FoldFit"], None]
"""A function that is called with each fit after it has ended."""

ROUNDS = {"trees": "n_estimators", "network": "epochs", "additive": "n_rounds"}
"""Parameter with the number of rounds, for each model that is a sum of rounds."""

_WINDOW = 5  # rounds
_INNER = 5  # a single fold is validated on one fifth of its training queries
_GROWTH = 0.5  # exponent of the number of rounds as a function of the number of queries
_Folds = list[tuple[I64, I64]]  # numbers of the training queries and of the test queries


@dataclass(frozen=True)
class FoldFit:
    """A fit to the other folds.

    Attributes
    ----------
    queries : (q,) int64
        Numbers of the queries that it scored, in order of first appearance in the data.
    n_fitted : int
        Number of training queries.
    best_iteration : int
        The iteration of the model.
    seconds : float
        Duration of the fit.
    ranker : fitted ranker or None
    """

    queries: I64
    n_fitted: int
    best_iteration: int
    seconds: float
    ranker: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class OutOfFold:
    """Result of `out_of_fold`.

    Attributes
    ----------
    by_repeat : (repeats, n) float64
        Score of each document, in the order of the rows of the data, by the fit of each repeat that
        was fitted without its query.
    fits : tuple of FoldFit
        The fits of the folds of each repeat.
    rounds : int or None
        The best number of rounds over all folds, for a fit to all data; each fold was fitted with
        the best number over the other folds. None if it was not requested, or if the model is not a
        sum of rounds.
    """

    by_repeat: F64
    fits: tuple[FoldFit, ...]
    rounds: int | None = None

    @property
    def scores(self) -> F64:
        """The mean score of each document over repeats."""
        return np.asarray(self.by_repeat.mean(axis=0))

    def rounds_for(self, n_queries: int) -> int | None:
        """Return the number of rounds for a fit to ``n_queries``.

        It grows with the square root of the number of queries.
        """
        if self.rounds is None:
            return None
        n_fitted = float(np.mean([fit.n_fitted for fit in self.fits]))
        return _grown(self.rounds, n_queries / n_fitted)


def out_of_fold(
    ranker: Any,
    data: RankingData,
    folds: int = 5,
    *,
    choose_rounds: bool = False,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> OutOfFold:
    """Return the score of each document by a fit without its query.

    Parameters
    ----------
    ranker : Ranker or str
        The ranker or its name. A copy is fitted for each fold.
    data : RankingData
    folds : int, default 5
        Number of folds. They depend on the contents of the queries, not on their names or the order
        of the rows. For other folds see `cross_validate`.
    choose_rounds : bool, default False
        Choose the number of trees, rules or epochs of each fold by the other folds; this takes two
        fits for each fold. Other models are fitted once.
    progress : callable
        Called with the round and a short text after each round of each fit.
    random_state : int, Generator, RandomState or None, default 0
        Seed of the folds.

    Returns
    -------
    OutOfFold
        Its ``scores`` are in the order of the rows of the data.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.synthetic("mq2008", queries=30)
    >>> result = rw.out_of_fold("memr", data, folds=3)
    >>> len(result.scores) == data.n_documents, len(result.fits)
    (True, 3)
    """
    template = make_ranker(ranker) if isinstance(ranker, str) else ranker
    if not isinstance(template, Ranker):
        raise UsageError(f"out_of_fold takes a ranker or its name, not {type(ranker).__name__}.")
    if not isinstance(data, RankingData):
        raise UsageError(
            f"out_of_fold takes RankingData, not {type(data).__name__}; "
            "RankingData.from_arrays(X, y, qid=qid) makes it of arrays."
        )
    check_whole("folds", folds, 2)
    if data.n_queries < folds:
        raise DataError(f"{data.n_queries} queries cannot be cut into {folds} folds.")
    queries = np.arange(data.n_queries)
    dealt = deal_queries(data, int(folds), seed=seed_of(random_state))
    parts = [(np.setdiff1d(queries, test), test) for test in dealt]
    rounds = None
    if choose_rounds and round_parameter(template) is not None:
        rounds = best_rounds(template, data, parts, progress=progress)
    fits: list[FoldFit] = []

    def note(fit: FoldFit) -> None:
        fits.append(replace(fit, ranker=None))  # rankers can be large

    scores = fold_scores(template, data, parts, note, progress, rounds)
    return OutOfFold(scores[None], tuple(fits), None if rounds is None else rounds.of_all)


def fold_scores(
    ranker: Ranker,
    data: RankingData,
    folds: _Folds,
    on_fit: OnFit,
    progress: Progress | None = None,
    rounds: Rounds | None = None,
) -> F64:
    """Return the score of each document by the fit of its fold; NaN for documents in no fold."""
    scores = np.full(data.n_documents, np.nan)
    for number, (train, test) in enumerate(folds):
        copy = clone(ranker) if rounds is None else with_rounds(ranker, rounds.of_fold[number])
        _fit(copy, data, train, test, None, on_fit, progress)
        scores[data.rows_of(test)] = copy.predict(data.select(test))
    return scores


@dataclass(frozen=True)
class Rounds:
    """The number of rounds of each fold, chosen without its test queries, and of all data."""

    of_fold: tuple[int, ...]
    of_all: int


def best_rounds(
    ranker: Ranker,
    data: RankingData,
    folds: _Folds,
    on_fit: OnFit | None = None,
    progress: Progress | None = None,
) -> Rounds:
    """Return the best number of rounds for each fold and over all folds."""

    def curve(train: I64, test: I64) -> F64:
        """Return the sum of the metric over the test queries after each round."""
        copy = clone(ranker)
        _fit(copy, data, train, test, data.select(test), on_fit, progress)
        (values,) = copy.evals_result_.get("valid", {"": []}).values()
        return np.array(values) * len(test)

    if len(folds) == 1:
        ((train, _),) = folds
        inner = train[deal_queries(data.select(train), _INNER)[0]]
        outer = np.setdiff1d(train, inner)
        rounds = _grown(_best_round(ranker, [curve(outer, inner)]), len(train) / len(outer))
        return Rounds((rounds,), rounds)
    curves = [curve(train, test) for train, test in folds]
    of_fold = [_best_round(ranker, curves[:k] + curves[k + 1 :]) for k in range(len(curves))]
    return Rounds(tuple(of_fold), _best_round(ranker, curves))


def _best_round(ranker: Ranker, curves: list[F64]) -> int:
    """Return the best round of the smoothed sum of the curves."""
    longest = max(map(len, curves))
    if not longest:  # there was nothing to learn in any fold
        return 1
    padded = [
        np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves if len(curve)
    ]
    total = np.sum(padded, axis=0)  # a fit that stopped early keeps its last value
    window = np.ones(_WINDOW)
    smooth = np.convolve(total, window, "same") / np.convolve(np.ones(longest), window, "same")
    selects = metric(ranker.selection_metric, convention=ranker.convention)
    return int(np.argmax(smooth if selects.maximise else -smooth)) + 1


def _grown(rounds: int, ratio: float) -> int:
    """Return the number of rounds for a fit to ``ratio`` times as many queries."""
    grown: float = rounds * ratio**_GROWTH
    return max(1, round(grown))


def _fit(
    ranker: Ranker,
    data: RankingData,
    train: I64,
    test: I64,
    valid: RankingData | None,
    on_fit: OnFit | None,
    progress: Progress | None,
) -> None:
    """Fit ``ranker`` and pass the fit to ``on_fit``, also after Ctrl-C if it has some rounds."""
    began = time.perf_counter()
    try:
        ranker.fit(data.select(train), eval_set=valid, progress=progress)
    finally:
        if on_fit is not None and hasattr(ranker, "interrupted_"):
            seconds = time.perf_counter() - began
            on_fit(FoldFit(test, len(train), ranker.best_iteration_, seconds, ranker))


def round_parameter(ranker: Ranker) -> str | None:
    """Return the parameter with the number of rounds, if the model is a sum of rounds."""
    return ROUNDS.get(ranker.model_name)


def with_rounds(ranker: Ranker, rounds: int) -> Ranker:
    """Return a copy of a ranker that is fitted with exactly this number of rounds."""
    copy: Ranker = clone(ranker)
    copy.set_params(**{f"model__{round_parameter(ranker)}": rounds})
    if getattr(copy, "early_stopping_rounds", None) is not None:
        copy.set_params(early_stopping_rounds=None)
    return copy
