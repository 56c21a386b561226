"""A paper's figure run again: measures against trees, cut-offs or the number of training queries.

First comes the table of `reproducibility.table`, in which valid chooses each row's setting
and number of trees. Over cut-offs, such as ndcg@1 to ndcg@10, and over numbers of training queries
the curves are the rows of that table. Over trees, the chosen setting is boosted to the full number,
and the first t of its trees are measured on test for every t asked for; nothing is chosen from
these curves.
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
from reproducibility.experiment import Experiment, Row, Study, with_trees
from reproducibility.folds_run import (
    Choice,
    Folds,
    Report,
    Training,
    measured,
    staged_scores,
)
from reproducibility.table import Cell, TableResult, run_table


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure of one row at each x: the mean over all test queries.

    ``over`` says what x is, and ``error`` half the width of a point's 95 % interval.
    """

    study: str
    row: str
    column: str
    convention: str
    over: str
    x: tuple[int, ...]
    ours: tuple[float, ...]
    error: float


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

    def panels(self) -> dict[tuple[str, str], list[Curve]]:
        """Return the curves that are drawn together, by study and column."""
        found: dict[tuple[str, str], list[Curve]] = {}
        for curve in self.curves:
            found.setdefault((curve.study, curve.column), []).append(curve)
        return found

    def _curves(self) -> list[dict[str, Any]]:
        return [
            {key: getattr(curve, key) for key in ("study", "row", "column", "over", "x", "ours")}
            for curve in self.curves
        ]


def run_curves(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> FigureResult:
    """Run the experiment as a table, then measure the curves of what was chosen."""
    table = run_table(experiment, folds, report=report, n_jobs=n_jobs, seed=seed)
    curves: list[Curve] = []
    for study in experiment.studies:
        for number, row in enumerate(experiment.rows_of(study)):
            if study.trees:
                choices = [choices[number] for choices in table.choices[study.name]]
                curves += _over_trees(table, row, study, choices, folds[study.name], n_jobs, seed)
                report(f"{study.name}: {row.name} drawn")
            else:
                curves += _over_columns(table, row, study)
    return FigureResult(table, tuple(curves))


def _over_columns(table: TableResult, row: Row, study: Study) -> Iterator[Curve]:
    over = "training queries" if study.train_queries else "cut-off"
    for group in study.groups:
        cells = [table.cell(row.name, column.name) for column in group.columns]
        yield Curve(
            study.name,
            row.name,
            group.title,
            group.columns[0].convention,
            over,
            tuple(column.train_queries or column.cutoff or 0 for column in group.columns),
            tuple(cell.ours or 0.0 for cell in cells),
            _half_width(cells),
        )


def _over_trees(
    table: TableResult,
    row: Row,
    study: Study,
    choices: Sequence[Choice],
    folds: Sequence[Fold],
    n_jobs: int | None,
    seed: int,
) -> Iterator[Curve]:
    found: dict[str, list[list[F64]]] = {c.name: [[] for _ in study.trees] for c in study.columns}
    for choice, fold in zip(choices, folds, strict=True):
        setting = with_trees(choice.setting, study.trees[-1])
        full = Training(row, study, fold.train, n_jobs, seed).fit(setting)
        for at, scores in enumerate(staged_scores(full, fold.test.X, study.trees)):
            for column, per_query in measured(study.columns, fold.test, scores):
                found[column.name][at].append(column.scale * per_query)
    for column in study.columns:
        stages = found[column.name]
        yield Curve(
            study.name,
            row.name,
            column.name,
            column.convention,
            "number of trees",
            study.trees,
            tuple(float(np.nanmean(np.concatenate(parts))) for parts in stages),
            _half_width([table.cell(row.name, column.name)]),
        )


def _half_width(cells: Sequence[Cell]) -> float:
    """Return half the width of the cells' intervals, on average."""
    return sum(((cell.high or 0.0) - (cell.low or 0.0)) / 2 for cell in cells) / len(cells)
