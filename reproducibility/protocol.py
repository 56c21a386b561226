"""Protocol of the experiments: choose on validation data, look at test data once.

In each fold every setting of a row is fitted to the training queries, and the setting with the best
selection metric on the validation queries is kept; tied scores count as the mean over their orders.
Test queries are scored only after all rows of all folds are chosen. They are pooled over the folds,
so that each counts once.

Boosted trees may be tried with a few numbers of trees (``rounds``). With only tens of validation
queries, the best of hundreds of rounds is mostly chance.
"""

from __future__ import annotations

import hashlib
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import rankwright as rw
from rankwright.data import Fold

TREES = "model__n_estimators"


@dataclass(frozen=True)
class Run:
    """Options of a run: the folder of all data sets, the seed and the number of threads."""

    data: Path
    seed: int = 0
    n_jobs: int | None = None


@dataclass(frozen=True)
class Column:
    """A measure of a study: a metric, or "seconds" for the time to train and choose."""

    name: str
    metric: str
    convention: str = "standard"
    scale: float = 1.0


def columns(
    *metrics: str, name: str = "{metric}", convention: str = "standard", scale: float = 1.0
) -> list[Column]:
    """Return a column for each metric; ``name`` is a template."""
    return [Column(name.format(metric=m), m, convention, scale) for m in metrics]


def cutoffs(metric: str, last: int) -> list[str]:
    """Return ``metric`` at the cut-offs 1 to ``last``."""
    return [f"{metric}@{k}" for k in range(1, last + 1)]


@dataclass(frozen=True)
class Row:
    """An algorithm, and the settings among which validation data chooses.

    ``ranker`` is a name for `rankwright.ranker`, or a class of `reproducibility.peers`. ``rounds``
    are the numbers of trees to try. None tries any number of iterations; an empty tuple uses all.
    """

    name: str
    ranker: Any
    settings: tuple[Mapping[str, Any], ...]
    rounds: tuple[int, ...] | None = None


def row(
    name: str,
    ranker: Any,
    /,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    rounds: tuple[int, ...] | None = None,
    **fixed: Any,
) -> Row:
    """Return a row with a setting for each point of ``grid``, in addition to ``fixed``."""
    points = itertools.product(*(grid or {}).values())
    settings = ({**fixed, **dict(zip(grid or {}, point, strict=True))} for point in points)
    return Row(name, ranker, tuple(settings), rounds)


@dataclass(frozen=True)
class Study:
    """A data set in folds, the metric that selects on validation data, and what is measured."""

    name: str
    folds: Sequence[Fold]
    select: str
    columns: Sequence[Column]
    convention: str = "standard"
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """The setting of a row that is best on the validation data of a fold, fitted to its train.

    ``trees`` is the number of trees to use, None for all. ``seconds`` is the time that fitting all
    settings and choosing among them took.
    """

    setting: Mapping[str, Any]
    fitted: Any
    trees: int | None
    valid: float
    seconds: float = 0.0

    def scores(self, data: rw.RankingData) -> Any:
        """Return the score of each document."""
        if self.trees is None:
            return self.fitted.predict(data)
        return next(staged_scores(self.fitted, data, [self.trees]))


def fit(
    row: Row,
    setting: Mapping[str, Any],
    study: Study,
    train: rw.RankingData,
    run: Run,
    valid: rw.RankingData | None = None,
) -> Any:
    """Return the row's ranker, fitted; with ``valid``, that chooses the number of iterations."""
    if not isinstance(row.ranker, str):
        return row.ranker(**setting).fit(train)
    # Rankers that have a metric in their loss select by another parameter.
    defaults = rw.ranker(row.ranker).get_params(deep=False)
    selects = "select_metric" if "select_metric" in defaults else "metric"
    parameters = {
        selects: study.select,
        "convention": study.convention,
        "n_jobs": run.n_jobs,
        "random_state": run.seed,
        **study.fixed,
        **setting,
    }
    return rw.ranker(row.ranker, **parameters).fit(train, eval_set=valid)


def choose(row: Row, study: Study, fold: Fold, run: Run) -> Choice:
    """Fit every setting of a row and return the best on validation data, the first of equals."""
    began = time.perf_counter()
    metric = rw.metric(study.select, convention=study.convention).for_selection()
    sign = 1.0 if metric.maximise else -1.0
    best: Choice | None = None
    for setting in row.settings:
        for fitted, trees, scores in _candidates(row, setting, study, fold, run):
            value = rw.evaluate(fold.valid, scores, metric)[repr(metric)]
            if best is None or sign * value > sign * best.valid:
                best = Choice(setting, fitted, trees, value)
    assert best is not None
    seconds = time.perf_counter() - began
    return Choice(best.setting, best.fitted, best.trees, best.valid, seconds)


def _candidates(
    row: Row, setting: Mapping[str, Any], study: Study, fold: Fold, run: Run
) -> Iterator[tuple[Any, int | None, Any]]:
    """Yield a fitted ranker, its number of trees and its scores on the validation data."""
    if row.rounds:
        fitted = fit(row, {**setting, TREES: row.rounds[-1]}, study, fold.train, run)
        stages = staged_scores(fitted, fold.valid, row.rounds)
        yield from ((fitted, t, scores) for t, scores in zip(row.rounds, stages, strict=True))
    else:
        valid = fold.valid if row.rounds is None else None
        fitted = fit(row, setting, study, fold.train, run, valid)
        yield fitted, None, fitted.predict(fold.valid)


def staged_scores(fitted: Any, data: Any, counts: Sequence[int]) -> Iterator[Any]:
    """Yield the scores of the first trees of a boosted ranker, for rising numbers of trees.

    The constant that boosting starts from is left out; it changes no ranking.
    """
    booster, scores, done = fitted.booster_, np.zeros(data.n_documents), 0
    for count in counts:
        until = min(count, booster.num_trees())
        if until > done:
            scores = scores + booster.predict(
                data.X,
                start_iteration=done,
                num_iteration=until - done,
                num_threads=fitted.n_jobs or 0,
            )
            done = until
        yield scores


def choose_all(study: Study, rows: Sequence[Row], run: Run) -> list[dict[str, Choice]]:
    """Return the choices of each fold by row; test data is not looked at."""
    if any(column.metric == "seconds" for column in study.columns):
        for algorithm in rows:  # compiles kernels, which must not be timed
            fit(algorithm, algorithm.settings[0], study, study.folds[0].train, run)
    choices: list[dict[str, Choice]] = []
    for number, fold in enumerate(study.folds, start=1):
        choices.append({})
        for algorithm in rows:
            choices[-1][algorithm.name] = choose(algorithm, study, fold, run)
            progress(f"{study.name}, fold {number} of {len(study.folds)}: {algorithm.name}")
    return choices


def evaluate_test(
    study: Study, choices: Sequence[Mapping[str, Choice]]
) -> dict[str, dict[str, list[Any]]]:
    """Return, by row and column, an array for each fold with the value of each test query."""
    values: dict[str, dict[str, list[Any]]] = {}
    for by_row, fold in zip(choices, study.folds, strict=True):
        for name, choice in by_row.items():
            scores = choice.scores(fold.test)
            for column in study.columns:
                parts = values.setdefault(name, {}).setdefault(column.name, [])
                if column.metric == "seconds":
                    parts.append(np.array([choice.seconds]))
                else:
                    parts.append(per_query(column, fold.test, scores))
    return values


def staged_values(
    study: Study, choices: Sequence[Mapping[str, Choice]], counts: Sequence[int]
) -> dict[str, dict[str, list[Any]]]:
    """Return the test values of the first trees of the chosen settings, as `evaluate_test` does."""
    values: dict[str, dict[str, list[Any]]] = {}
    for by_row, fold in zip(choices, study.folds, strict=True):
        for name, choice in by_row.items():
            by_column = values.setdefault(name, {})
            stages = list(staged_scores(choice.fitted, fold.test, counts))
            for column in study.columns:
                for count, scores in zip(counts, stages, strict=True):
                    parts = by_column.setdefault(f"{column.name}, {count} trees", [])
                    parts.append(per_query(column, fold.test, scores))
    return values


def per_query(column: Column, data: rw.RankingData, scores: Any) -> Any:
    """Return the column's value for each query."""
    evaluation = rw.evaluate(data, scores, column.metric, convention=column.convention)
    (values,) = evaluation.per_query.values()
    return column.scale * values


def time_fits(
    rows: Sequence[Row], train: rw.RankingData, run: Run, *, repeats: int, **fixed: Any
) -> dict[str, tuple[Any, list[float]]]:
    """Return, by row, the fitted ranker and the seconds that each of its fits took.

    A first fit of each row compiles kernels and is not counted. Rows take turns, so that a slow
    minute of the machine affects all of them.
    """
    timed: dict[str, tuple[Any, list[float]]] = {algorithm.name: (None, []) for algorithm in rows}
    for turn in range(repeats + 1):
        for algorithm in rows:
            (setting,) = algorithm.settings
            if isinstance(algorithm.ranker, str):
                common = {"n_jobs": run.n_jobs, "random_state": run.seed, **fixed}
                ranker = rw.ranker(algorithm.ranker, **{**common, **setting})
            else:
                ranker = algorithm.ranker(**setting)
            began = time.perf_counter()
            ranker.fit(train)
            seconds = time.perf_counter() - began
            if turn > 0:
                timed[algorithm.name] = (ranker, [*timed[algorithm.name][1], seconds])
            progress(f"{algorithm.name}: {seconds:.3f} s")
    return timed


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the least and the greatest of some times."""
    return statistics.median(values), min(values), max(values)


def generator(seed: int, *name: str | int) -> np.random.Generator:
    """Return a random generator that depends on the seed and a name only.

    Folds and draws of one experiment do not change when another is added.
    """
    text = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in name)])
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
    return np.random.Generator(np.random.Philox(key=key))


def first_queries(folds: Sequence[Fold], count: int, seed: int) -> list[Fold]:
    """Return the folds with ``count`` training queries each, drawn at random.

    Smaller training sets are parts of the larger ones.
    """
    smaller = []
    for number, fold in enumerate(folds):
        order = generator(seed, "train_queries", number).permutation(fold.train.n_queries)
        smaller.append(fold._replace(train=fold.train.select(np.sort(order[:count]))))
    return smaller


def progress(line: str) -> None:
    """Print a line about the work that was just done."""
    sys.stderr.write(f"{line}\n")
