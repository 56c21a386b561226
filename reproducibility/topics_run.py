"""A table of ranking functions per topic run again: choose on valid, look at test once.

Every setting of a row is fitted to all topics; what its method offers (a path of penalties, rounds
of steps) and the settings of the row's grid are chosen once for all topics, by the mean of the
study's ``select`` over the topics of valid: many topics have only a few valid documents, too few to
choose by themselves.

Measures take a document of grade 1 or more as relevant and all such as alike, so that counts of
clicks, which some methods learn from, are judged as the others are. Means and intervals are over
topics.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import metric
from reproducibility.experiment import ZERO_WEIGHTS, Experiment, Row, Study
from reproducibility.folds_run import Report, measured
from reproducibility.table import TableResult, make_cells
from reproducibility.topic_data import Part, TopicFold
from reproducibility.topics import TopicModels, fit_topics, topic_method

_TOPICS_PER_LINE = 10


@dataclass(frozen=True)
class ChosenTopics:
    """The setting of a row that did best on valid, and its ranking functions."""

    setting: Mapping[str, Any]
    models: TopicModels

    @property
    def valid(self) -> float:
        """The mean of the select metric over topics."""
        return float(np.mean(self.models.valid))


@dataclass(frozen=True)
class TopicsResult(TableResult):
    """A table over topics, with what was chosen by study and by row."""

    chosen: Mapping[str, Mapping[str, ChosenTopics]] = field(default_factory=dict)
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the table with all that lies behind it, topic by topic."""
        return {
            **super().record(),
            "topics": {study: list(names) for study, names in self.topics.items()},
            "chosen": [
                {
                    "study": study,
                    "row": row,
                    "setting": dict(one.setting),
                    "valid": one.valid,
                    "of_topics": [dict(setting) for setting in one.models.settings],
                    "valid_of_topics": one.models.valid.tolist(),
                    "zero_weights": (100.0 * one.models.zero_share).tolist(),
                    "optimality": one.models.optimality.tolist(),
                }
                for study, rows in self.chosen.items()
                for row, one in rows.items()
            ],
        }


def steps(experiment: Experiment, folds: Mapping[str, TopicFold]) -> int:
    """Return how many lines `run_topics` reports."""
    settings = sum(len(row.settings) for row in experiment.rows)
    return settings * sum(-(-len(fold.topics) // _TOPICS_PER_LINE) for fold in folds.values())


def run_topics(
    experiment: Experiment,
    folds: Mapping[str, TopicFold],
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> TopicsResult:
    """Run every study, as `reproducibility.table.run_table` does.

    Parameters
    ----------
    folds
        Of each study, as `reproducibility.topic_data.load_topics` reads them.
    """
    chosen = {
        study.name: {
            row.name: choose_topics(
                row, study, folds[study.name], report=report, n_jobs=n_jobs, seed=seed
            )
            for row in experiment.rows
        }
        for study in experiment.studies
    }
    values: dict[str, dict[str, F64]] = {row.name: {} for row in experiment.rows}
    for study in experiment.studies:
        test = folds[study.name].test
        for row, one in chosen[study.name].items():
            values[row].update(_judged(study, one.models, test, n_jobs))
    return TopicsResult(
        experiment,
        tuple(make_cells(experiment, values, seed)),
        {},
        {name: len(fold.topics) for name, fold in folds.items()},
        chosen=chosen,
        topics={name: fold.topics for name, fold in folds.items()},
    )


def choose_topics(
    row: Row,
    study: Study,
    fold: TopicFold,
    *,
    report: Report = lambda _: None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> ChosenTopics:
    """Fit every setting of a row and return the one that is best on valid; test is not seen."""
    sign = 1.0 if metric(study.select, convention=study.convention).maximise else -1.0
    best: ChosenTopics | None = None
    for setting in row.settings:
        method, choice = topic_method(row.ranker, seed=seed, **{**study.fixed, **setting})
        models = fit_topics(
            fold.train.X,
            fold.train.grades,
            method,
            valid=(fold.valid.X, _relevant(fold.valid)),
            metric=study.select,
            together=True,
            report=_by_tens(report, f"{study.name}, {row.name}", len(fold.topics)),
            n_jobs=n_jobs,
            within=choice.get("within", 0.0),
            min_zero=choice.get("min_zero", 0.0),
        )
        found = ChosenTopics(setting, models)
        if best is None or sign * found.valid > sign * best.valid:
            best = found
    assert best is not None
    return best


def _judged(study: Study, models: TopicModels, test: Part, n_jobs: int | None) -> dict[str, F64]:
    """Return the value of each topic, by column."""
    relevant = _relevant(test)
    n, topics = relevant.shape
    data = RankingData(
        np.empty((n * topics, 0)),
        relevant.toarray().T.ravel(),
        n * np.arange(topics + 1),
        np.arange(topics),
    )
    scores = [models.scores(test.X, topic, n_jobs=n_jobs) for topic in range(topics)]
    metrics = [column for column in study.columns if column.metric != ZERO_WEIGHTS]
    found = {
        column.name: column.scale * per_topic
        for column, per_topic in measured(metrics, data, np.concatenate(scores))
    }
    for column in study.columns:
        if column.metric == ZERO_WEIGHTS:
            found[column.name] = column.scale * models.zero_share
    return found


def _relevant(part: Part) -> Any:
    """Return 1 for each document of grade 1 or more, 0 for the others."""
    relevant = part.grades.copy()
    relevant.data = (relevant.data >= 1.0).astype(np.float64)
    relevant.eliminate_zeros()
    return relevant


def _by_tens(report: Report, name: str, topics: int) -> Any:
    """Return what counts topics, from any thread, and tells of every tenth and the last."""
    lock, done = threading.Lock(), 0

    def count(_: int) -> None:
        nonlocal done
        with lock:
            done += 1
            if done % _TOPICS_PER_LINE == 0 or done == topics:
                report(f"{name}: {done} of {topics} topics")

    return count
