"""The protocol of every experiment: choose on valid, look at test once.

In each fold a row's settings are fitted to train, each with as many rounds as valid likes best,
and the setting that is best on valid is kept. Test data comes in only when all rows of all folds
are chosen; its queries are then pooled over the folds, so that each counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.split import Fold, letor_folds, train_valid_test
from rankwright.errors import DataError
from rankwright.experiments.experiment import Column, Experiment, Row, Study, parameters
from rankwright.metrics.evaluate import Evaluation, evaluate, metric
from rankwright.rankers.base import Ranker, ranker

if TYPE_CHECKING:
    from rankwright.data.ranking_data import RankingData

Report = Callable[[str], None]
"""Takes a line on what was just done; called once per fit."""

Folds = Mapping[str, Sequence[Fold]]
"""The folds of each study, by its name."""


@dataclass(frozen=True)
class Choice:
    """The setting of a row that did best on the valid part of a fold, fitted to its train part."""

    row: str
    setting: Mapping[str, Any]
    valid: float
    ranker: Ranker


def load_folds(experiment: Experiment, data_folder: Path | None, *, seed: int = 0) -> Folds:
    """Read the folds of every study; synthetic data is made, and cut into one fold."""
    return {study.name: _folds(study, data_folder, seed) for study in experiment.studies}


def fits(experiment: Experiment, folds: Folds) -> int:
    """Return how many fits the choices of an experiment take."""
    settings = sum(len(row.settings) for row in experiment.rows)
    return settings * sum(map(len, folds.values()))


def _folds(study: Study, data_folder: Path | None, seed: int) -> Sequence[Fold]:
    if study.synthetic is not None:
        return [_synthetic_fold(study.synthetic, seed)]
    assert study.folds is not None
    if data_folder is None or not data_folder.is_dir():
        raise DataError(
            f"{study.name} needs its data: pass --data DIR, or let RANKWRIGHT_DATA name the "
            f"folder that holds {study.folds}"
            + ("." if data_folder is None else f"; {data_folder} is not a folder.")
        )
    if not (data_folder / study.folds).is_dir():
        raise DataError(
            f"{data_folder} has no folder {study.folds}; --data is the folder that holds it, "
            "with Fold1, Fold2, ... or S1.txt, S2.txt, ... inside."
        )
    return list(letor_folds(data_folder / study.folds))


def choose(
    row: Row,
    study: Study,
    train: RankingData,
    valid: RankingData,
    *,
    report: Report = lambda _: None,
    n_threads: int | None = None,
    seed: int = 0,
) -> Choice:
    """Fit every setting of ``row`` to ``train`` and return the one that is best on ``valid``.

    Of equally good ones the first is kept.
    """
    sign = 1.0 if metric(study.select, convention=study.convention).maximise else -1.0
    best: Choice | None = None
    for setting in row.settings:
        fitted = fit(row, study, setting, train, valid, n_threads=n_threads, seed=seed)
        scores = fitted.predict(valid)
        value = evaluate(valid, scores, study.select, convention=study.convention)[study.select]
        if best is None or sign * value > sign * best.valid:
            best = Choice(row.name, setting, value, fitted)
        report(f"{row.name}: {study.select} {best.valid:.4f} on valid")
    assert best is not None
    return best


def fit(
    row: Row,
    study: Study,
    setting: Mapping[str, Any],
    train: RankingData,
    valid: RankingData | None = None,
    *,
    n_threads: int | None = None,
    seed: int = 0,
) -> Ranker:
    """Fit a row's ranker; with ``valid``, that chooses the number of rounds."""
    made = ranker(
        row.ranker,
        **{
            "select_metric": study.select,
            "convention": study.convention,
            "n_threads": n_threads,
            "seed": seed,
            **parameters(study.fixed),
            **parameters(setting),
        },
    )
    made.fit(train, eval_set=valid)
    if made.interrupted_:  # a ranker keeps what it has; an experiment is not half done
        raise KeyboardInterrupt
    return made


def choose_all(
    rows: Sequence[Row],
    study: Study,
    folds: Sequence[Fold],
    *,
    report: Report = lambda _: None,
    n_threads: int | None = None,
    seed: int = 0,
) -> list[list[Choice]]:
    """Return the choices of every fold, in the order of ``rows``; test data is not looked at."""
    chosen = []
    for number, fold in enumerate(folds, start=1):
        assert fold.valid is not None
        told = _prefixed(report, f"{study.name} fold {number} of {len(folds)}, ")
        chosen.append(
            [
                choose(
                    row, study, fold.train, fold.valid,
                    report=told, n_threads=n_threads, seed=seed,
                )
                for row in rows
            ]
        )  # fmt: skip
    return chosen


def judge(
    columns: Sequence[Column], chosen: Sequence[Sequence[Choice]], folds: Sequence[Fold]
) -> dict[str, dict[str, F64]]:
    """Look at test: return the value of each of its queries, by row and by column."""
    found: dict[str, dict[str, list[F64]]] = {}
    for choices, fold in zip(chosen, folds, strict=True):
        for choice in choices:
            scores = choice.ranker.predict(fold.test)
            values = found.setdefault(choice.row, {})
            for column, per_query in measured(columns, fold.test, scores):
                values.setdefault(column.name, []).append(column.scale * per_query)
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
    from rankwright.data.synthetic import synthetic

    options = dict(made)
    sizes = options.pop("sizes", (0.6, 0.2, 0.2))
    whole = synthetic(options.pop("shape"), seed=seed, **options)
    return train_valid_test(whole, sizes, shuffle=False)


def _prefixed(report: Report, prefix: str) -> Report:
    return lambda line: report(prefix + line)
