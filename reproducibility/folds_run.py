"""The protocol of every experiment: choose on valid, look at test once.

In each fold a row's settings are fitted to train, each with as many trees as valid likes best (of
a few numbers where the row names them: the best of hundreds of rounds on a few dozen queries is
mostly chance), and the setting that is best on valid is kept. Test data comes in only when all rows
of all folds are chosen; its queries are pooled over the folds, so that each counts once.

Where a study has numbers of training queries, the first so many are taken from an order that is
drawn for each fold: smaller training sets are parts of the larger ones, and the same for all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.comparison.entries import selection
from rankwright.core.parallel import thread_count
from rankwright.core.rng import stream
from rankwright.core.types import F64, FloatMatrix
from rankwright.data.split import Fold, letor_folds, train_valid_test
from rankwright.errors import DataError
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import Evaluation, evaluate
from rankwright.rankers.base import ranker
from reproducibility.experiment import (
    TIMES,
    Column,
    Experiment,
    Row,
    Study,
    parameters,
    with_trees,
)
from reproducibility.peers import PEERS, Contender, contender
from reproducibility.study_data import folder_with, load_classes, load_ratings

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData

Report = Callable[[str], None]
"""Takes a line on what was just done; called once per fit."""

Folds = Mapping[str, Sequence[Fold]]
"""The folds of each study, by its name."""


@dataclass(frozen=True)
class Choice:
    """The setting of a row that did best on the valid part of a fold, fitted to its train part.

    ``seconds`` is what fitting all settings and choosing among them took.
    """

    row: str
    setting: Mapping[str, Any]
    valid: float
    ranker: Contender
    seconds: float = 0.0


def load_folds(experiment: Experiment, data_folder: Path | None, *, seed: int = 0) -> Folds:
    """Read the folds of every study, or draw them; synthetic data is made, and cut into one."""
    return {study.name: _folds(study, data_folder, seed) for study in experiment.studies}


def fits(experiment: Experiment, folds: Folds) -> int:
    """Return how many fits the choices of an experiment take."""
    return sum(
        sum(len(row.settings) for row in experiment.rows_of(study))
        * len(folds[study.name])
        * max(1, len(study.train_queries))
        for study in experiment.studies
    )


def _folds(study: Study, data_folder: Path | None, seed: int) -> Sequence[Fold]:
    if study.synthetic is not None:
        return [_synthetic_fold(study.synthetic, seed)]
    if study.classes is not None:
        folder = folder_with(data_folder, study.name, study.classes["files"][0])
        return load_classes(study.classes, folder, seed=seed)
    if study.ratings is not None:
        folder = folder_with(data_folder, study.name, study.ratings["file"])
        return load_ratings(study.ratings, folder, seed=seed)
    assert study.folds is not None
    folder = folder_with(data_folder, study.name, study.folds)
    if not (folder / study.folds).is_dir():
        raise DataError(
            f"{folder} has no folder {study.folds}; --data is the folder that holds it, "
            "with Fold1, Fold2, ... or S1.txt, S2.txt, ... inside."
        )
    return list(letor_folds(folder / study.folds))


@dataclass(frozen=True)
class Training:
    """A row on the train part of one fold."""

    row: Row
    study: Study
    train: RankingData
    n_jobs: int | None = None
    seed: int = 0

    def fit(self, setting: Mapping[str, Any], valid: RankingData | None = None) -> Contender:
        """Fit the row's ranker; with ``valid``, that chooses the number of rounds.

        Another tool has its own settings alone, and no rounds.
        """
        if self.row.ranker in PEERS:
            other = contender(self.row.ranker, **parameters(setting))
            other.fit(self.train)
            return other
        made = ranker(
            self.row.ranker,
            **{
                **selection(self.row.ranker, self.study.select),
                "convention": self.study.convention,
                "n_jobs": self.n_jobs,
                "random_state": self.seed,
                **parameters(self.study.fixed),
                **parameters(setting),
            },
        )
        made.fit(self.train, eval_set=valid)
        if made.interrupted_:  # a ranker keeps what it has; an experiment is not half done
            raise KeyboardInterrupt
        return made


def choose(training: Training, valid: RankingData, *, report: Report = lambda _: None) -> Choice:
    """Fit every setting of a row and return the one that is best on ``valid``, ties averaged.

    Of equally good ones the first is kept.
    """
    began = time.perf_counter()
    row, study = training.row, training.study
    selects = metric(study.select, convention=study.convention).for_selection()
    sign = 1.0 if selects.maximise else -1.0
    best: tuple[float, Mapping[str, Any], Contender | None] | None = None
    for setting in row.settings:
        for tried, scores, fitted in _candidates(training, setting, valid):
            value = evaluate(valid, scores, selects)[repr(selects)]
            if best is None or sign * value > sign * best[0]:
                best = value, tried, fitted
        assert best is not None
        report(f"{row.name}: {study.select} {best[0]:.4f} on valid")
    assert best is not None
    value, setting, fitted = best
    fitted = fitted or training.fit(setting)
    return Choice(row.name, setting, value, fitted, time.perf_counter() - began)


def _candidates(
    training: Training, setting: Mapping[str, Any], valid: RankingData
) -> Iterator[tuple[Mapping[str, Any], F64, Contender | None]]:
    """Yield what a setting offers: itself, its scores on valid, and its ranker if that is made."""
    rounds = training.row.rounds
    if not rounds:
        fitted = training.fit(setting, valid if rounds is None else None)
        yield setting, fitted.predict(valid), fitted
        return
    full = training.fit(with_trees(setting, rounds[-1]))
    for t, scores in zip(rounds, staged_scores(full, valid.X, rounds), strict=True):
        yield with_trees(setting, t), scores, None


def staged_scores(fitted: Any, X: FloatMatrix, trees: Sequence[int]) -> Iterator[F64]:
    """Yield the scores of the first t trees for each t in ``trees``, which must rise.

    A model that stopped with fewer trees keeps the scores of its last.
    """
    booster, threads = fitted.booster_, thread_count(fitted.n_jobs)
    scores, done = np.zeros(X.shape[0]), 0
    for t in trees:
        until = min(t, booster.num_trees())
        if until > done:
            scores = scores + booster.predict(
                X, start_iteration=done, num_iteration=until - done, num_threads=threads
            )
            done = until
        yield scores


def choose_all(
    rows: Sequence[Row],
    study: Study,
    folds: Sequence[Fold],
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> list[list[Choice]]:
    """Return the choices of every fold, in the order of ``rows``; test data is not looked at."""
    if any(column.metric in TIMES for column in study.columns):
        for row in rows:  # compiles kernels, so that the first fold is not timed for it
            Training(row, study, folds[0].train, n_jobs, seed).fit(row.settings[0])
    chosen = []
    for number, fold in enumerate(folds, start=1):
        assert fold.valid is not None
        reported = prefixed(report, f"{study.name} fold {number} of {len(folds)}, ")
        chosen.append(
            [
                choose(Training(row, study, fold.train, n_jobs, seed), fold.valid, report=reported)
                for row in rows
            ]
        )
    return chosen


def with_train_queries(folds: Sequence[Fold], queries: int | None, *, seed: int = 0) -> list[Fold]:
    """Return the folds with so many of their training queries; None: with all."""
    if queries is None:
        return list(folds)
    found = []
    for number, fold in enumerate(folds):
        there = fold.train.n_queries
        if queries > there:
            raise DataError(f"fold {number + 1} has {there} training queries, not {queries}.")
        first = stream(seed, "train_queries", number).permutation(there)[:queries]
        found.append(fold._replace(train=fold.train.select(np.sort(first))))
    return found


def judge(
    columns: Sequence[Column], chosen: Sequence[Sequence[Choice]], folds: Sequence[Fold]
) -> dict[str, dict[str, F64]]:
    """Look at test: return the value of each of its queries, by row and by column.

    A column of seconds has a value for each fold.
    """
    found: dict[str, dict[str, list[F64]]] = {}
    metrics = [column for column in columns if column.metric not in TIMES]
    times = [column for column in columns if column.metric in TIMES]
    for choices, fold in zip(chosen, folds, strict=True):
        for choice in choices:
            values = found.setdefault(choice.row, {})
            for column, per_query in measured(metrics, fold.test, choice.ranker.predict(fold.test)):
                values.setdefault(column.name, []).append(column.scale * per_query)
            for column in times:
                values.setdefault(column.name, []).append(column.scale * np.array([choice.seconds]))
    return {
        row: {name: np.concatenate(parts) for name, parts in values.items()}
        for row, values in found.items()
    }


def measured(
    columns: Sequence[Column], data: RankingData, scores: F64
) -> Iterator[tuple[Column, F64]]:
    """Yield each column with its value of every query."""
    by_convention: dict[str, Evaluation] = {}
    for convention in dict.fromkeys(column.convention for column in columns):
        metrics = [column.metric for column in columns if column.convention == convention]
        by_convention[convention] = evaluate(data, scores, metrics, convention=convention)
    for column in columns:
        yield column, by_convention[column.convention].per_query[column.metric]


def _synthetic_fold(made: Mapping[str, Any], seed: int) -> Fold:
    from rankwright.data.synthetic_data import synthetic

    options = dict(made)
    sizes = options.pop("sizes", (0.6, 0.2, 0.2))
    whole = synthetic(options.pop("shape"), seed=seed, **options)
    if sizes == "whole":  # where only fits are timed
        return Fold(whole, None, whole)
    return train_valid_test(whole, sizes, shuffle=False)


def prefixed(report: Report, prefix: str) -> Report:
    """Return a report whose lines begin with ``prefix``."""
    return lambda line: report(prefix + line)
