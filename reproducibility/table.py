"""A paper's table run again: its figure, ours, how sure ours is, and what differs significantly."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.split import Fold
from rankwright.data.streams import atomic_text
from rankwright.metrics.base import metric
from rankwright.metrics.significance import (
    LEVEL,
    bootstrap_interval,
    holm,
    randomisation,
    welch_t,
)
from reproducibility.experiment import (
    AVERAGE_RANK,
    TIMES,
    ZERO_WEIGHTS,
    Column,
    Contrast,
    Expected,
    Experiment,
    Study,
)
from reproducibility.folds_run import (
    Choice,
    Folds,
    Report,
    choose_all,
    judge,
    prefixed,
    with_train_queries,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of the table, in the paper's units.

    Attributes
    ----------
    paper : float or None
        As printed.
    ours : float or None
        Mean over all test queries; low and high bound its 95 % bootstrap interval.
    p_value : float or None
        Of a paired randomisation test against the baseline's row, adjusted by Holm's rule for the
        rows of the column.
    """

    row: str
    column: str
    paper: float | None
    ours: float | None
    low: float | None
    high: float | None
    difference: float | None = None
    p_value: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the difference to the baseline is statistically significant."""
        return self.p_value is not None and self.p_value <= LEVEL


@dataclass(frozen=True)
class TableResult:
    """What came out of a table: its cells row by row, and what valid chose in each fold."""

    experiment: Experiment
    cells: tuple[Cell, ...]
    choices: Mapping[str, Sequence[Sequence[Choice]]]
    queries: Mapping[str, int]
    contrasts: tuple[ContrastResult, ...] = ()

    def cell(self, row: str, column: str) -> Cell:
        """Return one figure."""
        return next(c for c in self.cells if c.row == row and c.column == column)

    def missed(self) -> list[str]:
        """Return a sentence for each expected figure that was not reached."""
        return [
            f"{bound.row}, {bound.column}: {ours:.4f}, where {bound.value:.4f} is expected "
            f"(tolerance {bound.tolerance:g})"
            for bound in self.experiment.expected
            if (ours := self.cell(bound.row, bound.column).ours) is not None
            and _worse(ours, bound, *self._column(bound.column)) > bound.tolerance
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the table in the form that every ``reproduce --json`` has."""
        found: dict[str, Any] = {
            "table": self.experiment.name,
            "rows": [
                {
                    key: getattr(cell, key)
                    for key in ("row", "column", "paper", "ours", "low", "high")
                }
                for cell in self.cells
            ],
        }
        if self.contrasts:
            found["contrasts"] = [one.as_json() for one in self.contrasts]
        return found

    def record(self) -> dict[str, Any]:
        """Return the table with all that lies behind it: tests, and the choices of each fold."""
        return {
            **self.as_json(),
            "title": self.experiment.title,
            "paper": self.experiment.paper,
            "queries": dict(self.queries),
            "baseline": self.experiment.baseline,
            "tests": [
                {
                    "row": cell.row,
                    "column": cell.column,
                    "difference": cell.difference,
                    "p_value": cell.p_value,
                    "significant": cell.significant,
                }
                for cell in self.cells
                if cell.p_value is not None
            ],
            "chosen": [
                {
                    "study": study,
                    **self._part(study, number),
                    "row": choice.row,
                    "setting": dict(choice.setting),
                    "rounds": getattr(choice.ranker, "best_iteration_", None),
                    "valid": choice.valid,
                }
                for study, folds in self.choices.items()
                for number, choices in enumerate(folds)
                for choice in choices
            ],
            "missed": self.missed(),
        }

    def write(self, path: str | Path) -> None:
        """Write the whole record as JSON."""
        with atomic_text(path) as stream:
            stream.write(json.dumps(self.record(), indent=2, ensure_ascii=False) + "\n")

    def _part(self, name: str, number: int) -> dict[str, int]:
        """Return the fold of a study's choices of that number and, if cut, its train queries."""
        study = next(one for one in self.experiment.studies if one.name == name)
        sizes = study.train_queries
        size, fold = divmod(number, len(self.choices[name]) // max(1, len(sizes)))
        return {"fold": fold + 1, **({"train_queries": sizes[size]} if sizes else {})}

    def _column(self, name: str) -> tuple[Study, Column]:
        columns = ((study, c) for study in self.experiment.studies for c in study.columns)
        return next((study, column) for study, column in columns if column.name == name)


def run_table(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> TableResult:
    """Run every study: choose on valid, then look at test once, and set up the table.

    Parameters
    ----------
    folds
        Of each study, as `reproducibility.folds_run.load_folds` reads them.
    """
    cut = {
        study.name: [
            with_train_queries(folds[study.name], n, seed=seed)
            for n in study.train_queries or (None,)
        ]
        for study in experiment.studies
    }
    chosen = {
        study.name: [
            choose_all(
                experiment.rows_of(study), study, parts,
                report=_reported(report, study, parts), n_jobs=n_jobs, seed=seed,
            )
            for parts in cut[study.name]
        ]
        for study in experiment.studies
    }  # fmt: skip
    values: dict[str, dict[str, F64]] = {row.name: {} for row in experiment.rows}
    for study in experiment.studies:
        sizes = study.train_queries or (None,)
        for n, choices, parts in zip(sizes, chosen[study.name], cut[study.name], strict=True):
            columns = [column for column in study.columns if column.train_queries == n]
            for row, found in judge(columns, choices, parts).items():
                values[row].update(found)
    return TableResult(
        experiment,
        tuple(make_cells(experiment, values, seed)),
        {name: [fold for size in sizes for fold in size] for name, sizes in chosen.items()},
        {name: sum(fold.test.n_queries for fold in parts) for name, parts in folds.items()},
        tuple(contrasted(experiment, values, folds, seed=seed)),
    )


def _reported(report: Report, study: Study, parts: Sequence[Fold]) -> Report:
    """Return a report that says from how many training queries, where a study has several."""
    if not study.train_queries:
        return report
    return prefixed(report, f"{parts[0].train.n_queries} queries of ")


def make_cells(
    experiment: Experiment, values: Mapping[str, Mapping[str, F64]], seed: int
) -> list[Cell]:
    """Return all cells, from the values of every query by row and column."""
    columns = [column.name for study in experiment.studies for column in study.columns]
    tests = {column: _tests(experiment.baseline, values, column, seed) for column in columns}
    return [
        _cell(row, column, experiment, values, tests[column].get(row), seed)
        for row in experiment.row_names
        for column in columns
        if column in values.get(row, {}) or column in experiment.printed.get(row, {})
    ]


def _cell(
    row: str,
    column: str,
    experiment: Experiment,
    values: Mapping[str, Mapping[str, F64]],
    test: tuple[float, float] | None,
    seed: int,
) -> Cell:
    paper = experiment.printed.get(row, {}).get(column)
    if column not in values.get(row, {}):
        return Cell(row, column, paper, None, None, None)
    found = bootstrap_interval(values[row][column], seed=seed)
    difference, p_value = test or (None, None)
    return Cell(row, column, paper, found.mean, found.low, found.high, difference, p_value)


def _tests(
    baseline: str | None, values: Mapping[str, Mapping[str, F64]], column: str, seed: int
) -> dict[str, tuple[float, float]]:
    """Return each row's difference to the baseline and its p-value, adjusted over the rows."""
    if baseline is None or column not in values.get(baseline, {}):
        return {}
    found = {
        row: randomisation(columns[column], values[baseline][column], seed=seed)
        for row, columns in values.items()
        if row != baseline and column in columns
    }
    adjusted = holm({row: test.p_value for row, test in found.items()}) if found else {}
    return {row: (test.difference, adjusted[row]) for row, test in found.items()}


def _worse(ours: float, bound: Expected, study: Study, column: Column) -> float:
    """Return by how much ``ours`` falls short; a figure that is not a number always does."""
    if math.isnan(ours):
        return math.inf
    return bound.value - ours if more_is_better(study, column) else ours - bound.value


def more_is_better(study: Study, column: Column) -> bool:
    """Whether the larger of two figures of a column is the better one."""
    if study.name == AVERAGE_RANK:
        return False
    if column.metric in ("speedup", ZERO_WEIGHTS):
        return True
    if column.metric in TIMES:
        return False
    return metric(column.metric, convention=column.convention).maximise


# --- contrasts of two rows -------------------------------------------------------------------
# Is one row better than another? A test for each column that was asked for, reported in a sentence.
#
# ``randomisation`` is paired, over the pooled test queries, with the bootstrap interval of the mean
# difference. ``welch_t`` is unpaired, over the means of folds or draws, with Welch's own interval.
# P-values are adjusted by Holm's rule for the columns of a contrast.


TESTS = {
    "randomisation": "paired randomisation over {n} test queries",
    "welch_t": "unpaired t over {n} draws each",
}


@dataclass(frozen=True, slots=True)
class ContrastResult:
    """How far a row is above another in one column, with its 95 % interval and p-value."""

    row: str
    against: str
    column: str
    test: str
    n: int
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def verdict(self) -> str:
        """Which row is better, if any is."""
        if not self.p_value <= LEVEL:
            return "no significant difference"
        return f"{self.row if self.difference > 0 else self.against} is better"

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        how = TESTS[self.test].format(n=self.n)
        digits = 2 if max(abs(self.low), abs(self.high)) > 1 else 4
        return (
            f"{self.column}: {self.row} against {self.against} {self.difference:+.{digits}f} "
            f"(95 % {self.low:+.{digits}f} to {self.high:+.{digits}f}, p = {self.p_value:.4f}, "
            f"{how}): {self.verdict}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it, with the verdict."""
        return {**asdict(self), "verdict": self.verdict}


def contrasted(
    experiment: Experiment,
    values: Mapping[str, Mapping[str, F64]],
    folds: Mapping[str, Sequence[Fold]],
    *,
    seed: int = 0,
) -> Iterator[ContrastResult]:
    """Yield what came out of each contrast, from the values of every query by row and column."""
    for contrast in experiment.contrasts:
        found = {
            column: _tested(
                contrast,
                values[contrast.row][column],
                values[contrast.against][column],
                _ends(experiment, column, folds),
                seed,
            )
            for column in contrast.columns
        }
        adjusted = holm({column: p for column, (*_, p) in found.items()})
        for column, (n, difference, low, high, _) in found.items():
            yield ContrastResult(
                contrast.row, contrast.against, column, contrast.test,
                n, difference, low, high, adjusted[column],
            )  # fmt: skip


def _tested(
    contrast: Contrast, a: F64, b: F64, ends: Sequence[int], seed: int
) -> tuple[int, float, float, float, float]:
    """Return the number of values, the difference, its interval and its p-value."""
    if contrast.test == "welch_t":
        from scipy import stats

        a, b = (np.array([np.nanmean(part) for part in np.split(x, ends)]) for x in (a, b))
        found = welch_t(a, b)
        if np.ptp(a) == 0.0 and np.ptp(b) == 0.0:
            low = high = found.difference
        else:
            low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
        return len(a), found.difference, float(low), float(high), found.p_value
    found = randomisation(a, b, seed=seed)
    interval = bootstrap_interval(a - b, seed=seed)
    return found.n, found.difference, interval.low, interval.high, found.p_value


def _ends(
    experiment: Experiment, column: str, folds: Mapping[str, Sequence[Fold]]
) -> Sequence[int]:
    """Return where the test queries of one fold end and those of the next begin."""
    study = next(s for s in experiment.studies if column in {c.name for c in s.columns})
    sizes = [fold.test.n_queries for fold in folds[study.name]]
    return list(itertools.accumulate(sizes[:-1]))
