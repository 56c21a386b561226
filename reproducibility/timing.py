"""How long fits take: every contender in turn, several times over, on the same data.

A fit is timed from data in memory to a fitted model. One fit of each comes first and is not
counted: it compiles kernels and warms caches. Contenders take turns, so that a slow minute of the
machine hits all of them; the median is reported, with the fastest and slowest as its bounds.
Columns of metrics are measured on the training data, to show that quick is not careless. Solvers by
cutting planes also tell their iterations, the planes that are active at the end, and the share of
the time that went into their quadratic programmes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics.significance import bootstrap_interval
from reproducibility.experiment import SOLVES, TIMES, Column, Experiment, Study, parameters
from reproducibility.folds_run import Folds, Report, measured, prefixed
from reproducibility.peers import PEERS, contender
from reproducibility.table import Cell, TableResult

Taken = Mapping[str, Mapping[str, list[float]]]
"""What the fits of each row took: seconds, and what its solver counts."""

Bounds = tuple[float, float, float]


def run_timing(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> TableResult:
    """Time every row in every study; the first setting of a row is the one that is run."""
    times: dict[str, Taken] = {}
    cells: list[Cell] = []
    for study in experiment.studies:
        train = folds[study.name][0].train
        reported = prefixed(report, f"{study.name}, ")
        scores, times[study.name] = _fits(experiment, study, train, reported, n_jobs, seed)
        for row in experiment.rows:
            quality = _quality(study, train, scores[row.name], seed)
            for column in study.columns:
                paper = experiment.printed.get(row.name, {}).get(column.name)
                first = times[experiment.studies[0].name][row.name]
                bounds = quality.get(column.name) or _time(
                    column, times[study.name][row.name], first
                )
                cells.append(Cell(row.name, column.name, paper, *bounds))
    queries = {name: parts[0].train.n_queries for name, parts in folds.items()}
    return TableResult(experiment, tuple(cells), {}, queries)


def _fits(
    experiment: Experiment,
    study: Study,
    train: RankingData,
    report: Report,
    n_jobs: int | None,
    seed: int,
) -> tuple[dict[str, F64], Taken]:
    """Return the scores on train and what every fit took, by row."""
    scores: dict[str, F64] = {}
    counts = [column.metric for column in study.columns if column.metric in SOLVES]
    taken: Taken = {
        row.name: {name: [] for name in ("seconds", *counts)} for row in experiment.rows
    }
    for turn in range(study.repeats + 1):
        for row in experiment.rows:
            setting = parameters(row.settings[0])
            if row.ranker not in PEERS:
                common = {"n_jobs": n_jobs, "random_state": seed}
                setting = {**common, **parameters(study.fixed), **setting}
            made = contender(row.ranker, **setting)
            started = time.perf_counter()
            made.fit(train)
            seconds = time.perf_counter() - started
            if turn == 0:
                scores[row.name] = made.predict(train)
            else:
                taken[row.name]["seconds"].append(seconds)
                for name in counts:
                    taken[row.name][name].append(_count(made, row.name, name))
            report(f"{row.name}: {seconds:.3f} s")
    return scores, taken


def _count(made: Any, row: str, name: str) -> float:
    """Return what the solver of a fitted ranker counted under this name."""
    solution = getattr(getattr(made, "model_", None), "solution", None)
    if not hasattr(solution, name):
        raise UsageError(
            f"the solver of row '{row}' has no {name}; bundle and column_generation do."
        )
    return float(getattr(solution, name))


def _quality(study: Study, train: RankingData, scores: F64, seed: int) -> dict[str, Bounds]:
    """Return the mean and the interval of each column that is a metric."""
    metrics = [column for column in study.columns if column.metric not in TIMES]
    found = {
        column.name: bootstrap_interval(column.scale * per_query, seed=seed)
        for column, per_query in measured(metrics, train, scores)
    }
    return {name: (one.mean, one.low, one.high) for name, one in found.items()}


def _time(
    column: Column, taken: Mapping[str, list[float]], first: Mapping[str, list[float]]
) -> Bounds:
    """Return the median, the least and the most of what fits took, or of the speed-up."""
    if column.metric == "speedup":
        pairs = zip(first["seconds"], taken["seconds"], strict=True)
        found = [a / b for a, b in pairs]
    else:
        found = taken[column.metric]
    middle, least, most = statistics.median(found), min(found), max(found)
    return column.scale * middle, column.scale * least, column.scale * most
