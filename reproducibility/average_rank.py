"""Algorithms by their average rank over data sets, as a table of kind "ranks" shows them.

In each study rows are chosen and measured as in any table. A row's rank in a column is its place
among the rows that the paper has,

    rank = 1 + rows above + half of the rows level with it                                      (1)

so a row of ours that the paper does not have is ranked too and moves none of the others. The mean
of (1) over the studies is the average rank, lower is better. Its interval is from queries drawn
anew in every study. All studies have the same measures in the same order; the columns of the first
lend their names to the average ranks and are themselves called by study and measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray
from rankwright.errors import UsageError
from reproducibility.experiment import (
    AVERAGE_RANK,
    Column,
    ColumnGroup,
    Experiment,
    Study,
)
from reproducibility.folds_run import Folds, Report, choose_all, judge
from reproducibility.table import Cell, TableResult, make_cells

_DRAWS = 2_000


def run_ranks(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> TableResult:
    """Choose on valid, look at test once, and set up the studies' tables and the average ranks."""
    shown = with_rank_columns(experiment)
    *studies, ranks = shown.studies
    chosen = {
        study.name: choose_all(
            experiment.rows, study, folds[study.name], report=report, n_jobs=n_jobs, seed=seed
        )
        for study in studies
    }
    values: dict[str, dict[str, F64]] = {row.name: {} for row in experiment.rows}
    for study in studies:
        for row, found in judge(study.columns, chosen[study.name], folds[study.name]).items():
            values[row].update(found)
    measured = replace(shown, studies=tuple(studies), printed={})
    cells = [*make_cells(measured, values, seed), *_rank_cells(shown, values, seed)]
    queries = {study.name: sum(f.test.n_queries for f in folds[study.name]) for study in studies}
    queries[ranks.name] = sum(queries.values())
    return TableResult(shown, tuple(cells), chosen, queries)


def with_rank_columns(experiment: Experiment) -> Experiment:
    """Return the experiment with a last study, whose columns are the average ranks."""
    first, *others = experiment.studies
    for study in others:
        if [c.metric for c in study.columns] != [c.metric for c in first.columns]:
            raise UsageError(f"ranks: '{study.name}' and '{first.name}' differ in their measures.")
    own = tuple(
        replace(group, columns=tuple(_named(column, first.name) for column in group.columns))
        for group in first.groups
    )
    title = f"over {len(experiment.studies)} data sets (lower is better)"
    ranks = replace(first, name=AVERAGE_RANK, groups=(ColumnGroup(title, first.columns),))
    return replace(experiment, studies=(replace(first, groups=own), *others, ranks))


def _named(column: Column, study: str) -> Column:
    return replace(column, name=f"{study} {column.name}")


def _rank_cells(
    shown: Experiment, values: Mapping[str, Mapping[str, F64]], seed: int
) -> list[Cell]:
    *studies, ranks = shown.studies
    rows = [row.name for row in shown.rows]
    among = np.array([row in shown.printed or not shown.printed for row in rows])
    cells: dict[tuple[str, str], Cell] = {}
    for number, column in enumerate(ranks.columns):
        by_study = [_by_row(study, number, rows, values) for study in studies]
        average = np.mean([average_rank(np.mean(v, axis=1), among) for v in by_study], axis=0)
        drawn = _drawn_ranks(by_study, among, seed)
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
        for i, row in enumerate(rows):
            paper = shown.printed.get(row, {}).get(column.name)
            figures = float(average[i]), float(low[i]), float(high[i])
            cells[row, column.name] = Cell(row, column.name, paper, *figures)
    return [cells[row, c.name] for row in rows for c in ranks.columns]


def average_rank(means: F64, among: AnyArray) -> F64:
    """Return (1) of each mean among the rows that ``among`` marks; the highest mean is rank 1."""
    others = means[among]
    above = (others[None, :] > means[:, None]).sum(axis=1)
    level = (others[None, :] == means[:, None]).sum(axis=1) - among
    ranks: F64 = 1.0 + above + 0.5 * level
    return ranks


def _by_row(
    study: Study, number: int, rows: Sequence[str], values: Mapping[str, Mapping[str, F64]]
) -> F64:
    """Return the values of one measure: a line for each row, a column for each query."""
    name = study.columns[number].name
    return np.array([values[row][name] for row in rows])


def _drawn_ranks(by_study: Sequence[F64], among: AnyArray, seed: int) -> F64:
    """Return the average ranks of many draws of queries, with replacement in each study."""
    draw = stream(seed, "average_rank")
    found = np.zeros((_DRAWS, len(among)))
    for values in by_study:
        n = values.shape[1]
        for t in range(_DRAWS):
            means = values[:, draw.integers(0, n, n)].mean(axis=1)
            found[t] += average_rank(means, among) / len(by_study)
    return found
