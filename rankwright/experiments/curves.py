"""A paper's figure run again: measures on test against the number of trees.

First comes the table of `rankwright.experiments.table`, in which valid chooses each row's setting
and number of trees. The chosen setting is then boosted to the full number, and the first t of its
trees are measured on test for every t asked for; nothing is chosen from these curves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.split import Fold
from rankwright.data.target import atomic_text
from rankwright.experiments.experiment import Experiment, Row, Study
from rankwright.experiments.folds_run import (
    Choice,
    Folds,
    Report,
    Training,
    measured,
    staged_scores,
)
from rankwright.experiments.table import TableResult, run_table


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure of one row, at each number of trees: the mean over all test queries."""

    study: str
    row: str
    column: str
    trees: tuple[int, ...]
    ours: tuple[float, ...]


@dataclass(frozen=True)
class FigureResult:
    """The curves of a figure, and the table of what valid chose."""

    table: TableResult
    curves: tuple[Curve, ...]

    @property
    def experiment(self) -> Experiment:
        """What was run."""
        return self.table.experiment

    def as_json(self) -> dict[str, Any]:
        """Return the table in the form that every ``reproduce --json`` has, and the curves."""
        return {**self.table.as_json(), "curves": self._curves()}

    def write(self, path: str | Path) -> None:
        """Write the whole record as JSON."""
        record = {**self.table.record(), "curves": self._curves()}
        with atomic_text(path) as stream:
            stream.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    def _curves(self) -> list[dict[str, Any]]:
        return [
            {key: getattr(curve, key) for key in ("study", "row", "column", "trees", "ours")}
            for curve in self.curves
        ]


def run_curves(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_threads: int | None = None,
    seed: int = 0,
) -> FigureResult:
    """Run the experiment as a table, then measure the curves of what was chosen."""
    table = run_table(experiment, folds, report=report, n_threads=n_threads, seed=seed)
    rows = {row.name: row for row in experiment.rows}
    curves: list[Curve] = []
    for study in experiment.studies:
        of_folds = table.choices[study.name]
        for number in range(len(rows)):
            choices = [choices[number] for choices in of_folds]
            row = rows[choices[0].row]
            curves += _row_curves(row, study, choices, folds[study.name], n_threads, seed)
            report(f"{study.name}: {row.name} drawn")
    return FigureResult(table, tuple(curves))


def _row_curves(
    row: Row,
    study: Study,
    choices: Sequence[Choice],
    folds: Sequence[Fold],
    n_threads: int | None,
    seed: int,
) -> Iterator[Curve]:
    found: dict[str, list[list[F64]]] = {c.name: [[] for _ in study.trees] for c in study.columns}
    for choice, fold in zip(choices, folds, strict=True):
        setting = {**choice.setting, "n_trees": study.trees[-1]}
        full = Training(row, study, fold.train, n_threads, seed).fit(setting)
        for at, scores in enumerate(staged_scores(full, fold.test.X, study.trees)):
            for column, per_query in measured(study.columns, fold.test, scores):
                found[column.name][at].append(column.scale * per_query)
    for name, stages in found.items():
        means = tuple(float(np.nanmean(np.concatenate(parts))) for parts in stages)
        yield Curve(study.name, row.name, name, study.trees, means)
