"""Every ranker on every fold: found in the cache, or fitted, several folds at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.jit import Stopwatch, duration
from rankwright.core.parallel import thread_count
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold
from rankwright.errors import DataError, RankwrightError
from rankwright.experiments.compared_folds import checked_fold
from rankwright.experiments.comparison import Entry, Run
from rankwright.experiments.entries import selection
from rankwright.experiments.run_cache import RunCache, StoredRun, fold_digest, run_key
from rankwright.persist.model_file import kept_parameters, restored
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.search_space import space_of

Report = Callable[[str], None]
"""Takes a line for each ranker and fold, when it is fitted or found in the cache."""


@dataclass(frozen=True)
class Task:
    """One ranker on one fold, to be fitted."""

    key: str
    label: str
    number: int
    ranker: str
    settings: Mapping[str, Any]
    fold: Fold
    tune: int
    cache: Path


class Work:
    """All runs of a comparison: found in the cache, or fitted."""

    def __init__(
        self,
        entries: Sequence[Entry],
        select: Any,
        common: Mapping[str, Any],
        tune: int,
        cache: RunCache,
        n_jobs: int | None,
        jobs: int | None,
    ) -> None:
        self._entries, self._tune, self._cache = entries, tune, cache
        self._settings = {
            entry.label: {**selection(entry.ranker, select), **common, **entry.parameters}
            for entry in entries
        }
        self._threads, self._jobs = thread_count(n_jobs), jobs
        self._runs: dict[str, dict[int, Run]] = {entry.label: {} for entry in entries}
        self._failures: dict[str, str] = {}
        self.tests: list[RankingData] = []  # grades and queries of each fold, without features
        self._alike: dict[str, list[tuple[str, int]]] = {}  # runs equal to one under way
        self.fits = 0

    def run(self, folds: Sequence[Fold], report: Report) -> None:
        """Make every run of every fold."""
        self._cache.drop_old()
        jobs = min(self._threads, len(folds)) if self._jobs is None else self._jobs
        tasks = self._tasks(folds, max(1, self._threads // jobs), report)
        first = next(tasks, None)
        if first is None:  # all is in the cache
            return
        for task, fault in _fitted(chain([first], tasks), jobs, max(1, self._threads // jobs)):
            where = f"fold {task.number + 1} of {len(folds)}, {task.label}"
            if fault is not None:
                for label, _ in [(task.label, task.number), *self._alike.pop(task.key)]:
                    self._failures.setdefault(label, fault)
                report(f"{where}: {fault}")
                continue
            stored = self._cache.find(task.key)
            if stored is None:
                raise DataError(f"{where}: the run has left the cache folder; run it again.")
            self.fits += 1
            for label, number in [(task.label, task.number), *self._alike.pop(task.key)]:
                self._keep(label, number, stored)
            report(f"{where}: {duration(stored.about['seconds'], stored.about['compile_seconds'])}")

    def found(self) -> tuple[dict[str, tuple[Run, ...]], dict[str, str]]:
        """Return the runs of each entry in the order of folds, and why others failed."""
        runs = {
            label: tuple(found[number] for number in sorted(found))
            for label, found in self._runs.items()
            if label not in self._failures
        }
        return runs, {label: self._failures[label] for label in self._runs if label not in runs}

    def _tasks(self, folds: Sequence[Fold], threads: int, report: Report) -> Iterator[Task]:
        """Yield what is not in the cache; a fold is read when its turn comes."""
        for number in range(len(folds)):
            fold = checked_fold(folds[number], number)
            if self._tune and fold.valid is None:
                raise DataError(f"fold {number + 1} has no valid part to tune on.")
            nothing = np.empty((fold.test.n_documents, 0))
            self.tests.append(replace(fold.test, X=nothing, feature_names=None))
            digest = fold_digest(fold)
            for entry in self._entries:
                settings = {**self._settings[entry.label], "n_jobs": threads}
                made = ranker(entry.ranker, **settings)
                key = run_key(digest, made, self._search(made, settings))
                stored = self._cache.find(key)
                if stored is not None:
                    self._keep(entry.label, number, stored)
                    report(f"fold {number + 1} of {len(folds)}, {entry.label}: from the cache")
                    continue
                if key in self._alike:
                    self._alike[key].append((entry.label, number))
                    continue
                self._alike[key] = []
                yield Task(
                    key, entry.label, number, entry.ranker, settings,
                    fold, self._tune, self._cache.folder,
                )  # fmt: skip

    def _search(self, made: Ranker, fixed: Collection[str]) -> dict[str, Any] | None:
        if not self._tune:
            return None
        space = space_of(made, fixed=fixed)
        return {"trials": self._tune, **{name: repr(domain) for name, domain in space.items()}}

    def _keep(self, label: str, number: int, stored: StoredRun) -> None:
        about = stored.about
        self._runs[label][number] = Run(
            label=label,
            fold=number,
            parameters=restored(about["parameters"]),
            tuned=about["tuned"],
            model=stored.model,
            scores=stored.scores,
            curve=about["curve"],
            best_iteration=about["best_iteration"],
            seconds=about["seconds"],
            size=about["size"],
            compile_seconds=about["compile_seconds"],
        )


def _fitted(tasks: Iterable[Task], jobs: int, threads: int) -> Iterator[tuple[Task, str | None]]:
    """Fit tasks as they come in; yield each with the sentence of its fault, if any."""
    if jobs == 1:
        for task in tasks:
            yield task, _fit(task)
        return
    from joblib import Parallel, delayed, parallel_config

    # Processes, not threads: the number of BLAS threads, which solvers hold at one, is global.
    sent: dict[str, Task] = {}

    def sending() -> Iterator[Any]:
        for task in tasks:
            sent[task.key] = replace(task, fold=None)  # type: ignore[arg-type]
            yield delayed(_fit_and_tell)(task)

    with parallel_config(backend="loky", inner_max_num_threads=threads):
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
        for key, fault in pool(sending()):
            yield sent.pop(key), fault


def _fit_and_tell(task: Task) -> tuple[str, str | None]:
    return task.key, _fit(task)


def _fit(task: Task) -> str | None:
    """Fit and keep one run; return a sentence where the ranker cannot take the data."""
    train, valid, test = task.fold
    watch = Stopwatch()
    tuned: Mapping[str, Any] = {}
    try:
        made = ranker(task.ranker, **task.settings)
        space = space_of(made, fixed=task.settings) if task.tune else {}
        if space and valid is not None:
            from rankwright.experiments.tune import tune

            found = tune(
                made, train, valid, trials=task.tune, space=space, random_state=made.random_state
            )
            fitted, tuned = found.ranker, found.parameters
        else:
            fitted = made.fit(train, eval_set=valid)
        seconds, compiling = watch.seconds, watch.compile_seconds
        if fitted.interrupted_:  # a ranker keeps what it has; a comparison is not half done
            raise KeyboardInterrupt
        scores = fitted.predict(test)
    except RankwrightError as fault:
        return str(fault)
    about = {
        "ranker": fitted.name,
        "parameters": kept_parameters(fitted),
        "tuned": dict(tuned),
        "curve": fitted.curve_,
        "best_iteration": fitted.best_iteration_,
        "seconds": seconds,
        "compile_seconds": compiling,
    }
    RunCache(task.cache).store(task.key, fitted, scores, about)
    return None
