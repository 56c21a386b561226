"""How long fits take: every contender in turn, several times over, on the same data.

A fit is timed from data in memory to a fitted model. One fit of each comes first and is not
counted: it compiles kernels and warms caches. Contenders take turns, so that a slow minute of the
machine hits all of them; the median is reported, with the fastest and slowest as its bounds.
Columns of metrics are measured on the training data, to show that quick is not careless.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.experiments.experiment import TIMES, Column, Experiment, Study, parameters
from rankwright.experiments.folds_run import Folds, Report, measured, prefixed
from rankwright.experiments.peers import PEERS, contender
from rankwright.experiments.table import Cell, TableResult
from rankwright.metrics.significance import bootstrap_interval

Seconds = Mapping[str, list[float]]
Bounds = tuple[float, float, float]


def run_timing(
    experiment: Experiment,
    folds: Folds,
    *,
    report: Report = lambda _: None,
    n_threads: int | None = None,
    seed: int = 0,
) -> TableResult:
    """Time every row in every study; the first setting of a row is the one that is run."""
    times: dict[str, Seconds] = {}
    cells: list[Cell] = []
    for study in experiment.studies:
        train = folds[study.name][0].train
        told = prefixed(report, f"{study.name}, ")
        scores, times[study.name] = _fits(experiment, study, train, told, n_threads, seed)
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
    n_threads: int | None,
    seed: int,
) -> tuple[dict[str, F64], Seconds]:
    """Return the scores on train and the seconds of every fit, by row."""
    scores: dict[str, F64] = {}
    seconds: dict[str, list[float]] = {row.name: [] for row in experiment.rows}
    for turn in range(study.repeats + 1):
        for row in experiment.rows:
            setting = parameters(row.settings[0])
            if row.ranker not in PEERS:
                common = {"n_threads": n_threads, "seed": seed}
                setting = {**common, **parameters(study.fixed), **setting}
            made = contender(row.ranker, **setting)
            started = time.perf_counter()
            made.fit(train)
            taken = time.perf_counter() - started
            if turn == 0:
                scores[row.name] = made.predict(train)
            else:
                seconds[row.name].append(taken)
            report(f"{row.name}: {taken:.3f} s")
    return scores, seconds


def _quality(study: Study, train: RankingData, scores: F64, seed: int) -> dict[str, Bounds]:
    """Return the mean and the interval of each column that is a metric."""
    metrics = [column for column in study.columns if column.metric not in TIMES]
    found = {
        column.name: bootstrap_interval(column.scale * per_query, seed=seed)
        for column, per_query in measured(metrics, train, scores)
    }
    return {name: (one.mean, one.low, one.high) for name, one in found.items()}


def _time(column: Column, seconds: list[float], first: list[float]) -> Bounds:
    """Return the median, the least and the most of the times, or of the speed-up over ``first``."""
    found = seconds
    if column.metric == "speedup":
        found = [a / b for a, b in zip(first, seconds, strict=True)]
    middle, least, most = statistics.median(found), min(found), max(found)
    return column.scale * middle, column.scale * least, column.scale * most
