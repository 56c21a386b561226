"""Every ranker on every fold: found in the cache, or fitted, several folds at a time.

The time of a fit does not hold what only the first fit of a process takes, imports and compiled
kernels: a fit to a few queries, ended after two rounds, comes before the first of each kind.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from rankwright.core.parallel import thread_count
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold
from rankwright.errors import DataError, RankwrightError
from rankwright.experiments.compared_folds import LazyFolds, checked_fold
from rankwright.experiments.comparison import Entry, Run
from rankwright.experiments.entries import selection
from rankwright.experiments.run_cache import RunCache, StoredRun, fold_digest, run_key
from rankwright.experiments.scorers import FittedScorer, TestRows, called
from rankwright.persist.model_file import kept_parameters, restored
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.search_space import space_of

Report = Callable[[str], None]
"""Takes a line for each ranker and fold, when it is fitted or found in the cache."""

_WARM_QUERIES = 6
_WARM_SOUGHT = 200
_WARM_ROUNDS = 2


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
        self._entries = [entry for entry in entries if entry.scorer is None]
        self._others = [entry for entry in entries if entry.scorer is not None]
        self._tune, self._cache, self._seed = tune, cache, common["random_state"]
        self._settings = {
            entry.label: {**selection(entry.ranker, select), **common, **entry.parameters}
            for entry in self._entries
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
        self._run_others(folds, report)
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
            report(f"{where}: {stored.about['seconds']:.2f} s")

    def found(self) -> tuple[dict[str, tuple[Run, ...]], dict[str, str]]:
        """Return the runs of each entry in the order of folds, and why others failed."""
        runs = {
            label: tuple(found[number] for number in sorted(found))
            for label, found in self._runs.items()
            if label not in self._failures
        }
        return runs, {label: self._failures[label] for label in self._runs if label not in runs}

    def notes(self) -> dict[str, str]:
        """Return what to know about the scores of entries that are no named rankers."""
        found = {entry.label: entry.scorer.note for entry in self._others if entry.scorer}
        return {
            label: note
            for label, note in found.items()
            if note is not None and label not in self._failures
        }

    def _run_others(self, folds: Sequence[Fold], report: Report) -> None:
        """Run the entries that are no named rankers, in this process and one after the other."""
        if not self._others:
            return
        whole = folds.whole if isinstance(folds, LazyFolds) else None
        query_of = {} if whole is None else {qid: q for q, qid in enumerate(whole.qid.tolist())}
        before, of_train_alone = 0, {entry.label: True for entry in self._others}
        for number in range(len(folds)):
            fold = checked_fold(folds[number], number)
            n = fold.test.n_documents
            if whole is None:
                total = before + n if number + 1 == len(folds) else None
                at = TestRows(np.arange(before, before + n), total)
            else:
                rows = whole.rows_of(np.array([query_of[qid] for qid in fold.test.qid.tolist()]))
                at = TestRows(rows if whole.row is None else whole.row[rows], whole.n_documents)
            before += n
            for entry in self._others:
                if entry.label in self._failures:
                    continue
                if isinstance(entry.scorer, FittedScorer):
                    of_train_alone[entry.label] &= entry.scorer.fitted_to(fold.train)
                report(
                    f"fold {number + 1} of {len(folds)}, {self._run_other(entry, fold, number, at)}"
                )
        for entry in self._others:
            fitted = isinstance(entry.scorer, FittedScorer) and entry.label not in self._failures
            if fitted and not of_train_alone[entry.label]:
                warnings.warn(
                    f"{entry.label} was fitted before this comparison and is only scored here; if "
                    "it was trained on test queries, its figures are too good.",
                    stacklevel=4,
                )

    def _run_other(self, entry: Entry, fold: Fold, number: int, at: TestRows) -> str:
        """Keep the run of one entry on one fold; return the line to report."""
        scorer = entry.scorer
        assert scorer is not None
        try:
            found = called(lambda: scorer.run(fold, at, self._seed))
        except RankwrightError as fault:
            self._failures[entry.label] = str(fault)
            return f"{entry.label}: {fault}"
        self._runs[entry.label][number] = Run(
            label=entry.label,
            fold=number,
            parameters=entry.parameters,
            tuned={},
            model=None,
            scores=found.scores,
            curve=found.curve,
            best_iteration=found.best_iteration,
            seconds=found.seconds,
            size=None,
        )
        if found.seconds is None:
            return f"{entry.label}: scored"
        self.fits += 1
        return f"{entry.label}: {found.seconds:.2f} s"

    def _tasks(self, folds: Sequence[Fold], threads: int, report: Report) -> Iterator[Task]:
        """Yield what is not in the cache; a fold is read when its turn comes."""
        for number in range(len(folds)):
            fold = checked_fold(folds[number], number)
            if self._tune and fold.valid is None:
                raise DataError(f"fold {number + 1} has no validation set to tune on.")
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
    tuned: Mapping[str, Any] = {}
    try:
        made = ranker(task.ranker, **task.settings)
        warm_up(made, train, valid)
        began = time.perf_counter()
        space = space_of(made, fixed=task.settings) if task.tune else {}
        if space and valid is not None:
            from rankwright.experiments.tune import tune

            found = tune(
                made, train, valid, trials=task.tune, space=space, random_state=made.random_state
            )
            fitted, tuned = found.ranker, found.parameters
        else:
            fitted = made.fit(train, eval_set=valid)
        seconds = time.perf_counter() - began
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
    }
    RunCache(task.cache).store(task.key, fitted, scores, about)
    return None


# --- warming up ------------------------------------------------------------------------------


_warm: set[tuple[str, ...]] = set()  # kinds of fits that this process has made


class _EnoughError(Exception):
    """Ends a fit that only warms up."""


def _end_soon(t: int, text: str) -> None:  # noqa: ARG001
    if t >= _WARM_ROUNDS:
        raise _EnoughError


def warm_up(made: Ranker, train: RankingData, valid: RankingData | None) -> None:
    """Fit to a few queries, the first time for this ranker, model and kind of features.

    What the process imports and compiles for it is then there, and the fits that follow are timed
    without.
    """
    features = train.X
    key = (
        made.name, repr(made.make_model()), str(features.dtype), type(features).__name__,
        str(valid is None),
    )  # fmt: skip
    if key in _warm:
        return
    _warm.add(key)
    parts = [None if part is None else _some_queries(part) for part in (train, valid)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on so few queries they mean nothing
        try:
            small = clone(made).fit(parts[0], eval_set=parts[1], progress=_end_soon)
        except Exception:  # the fit that counts will say what is wrong
            return
    if small.interrupted_:
        raise KeyboardInterrupt


def _some_queries(data: RankingData) -> RankingData:
    """Return some of the first queries, with different grades where there are such."""
    ends = data.indptr[: _WARM_SOUGHT + 1].tolist()
    differ = [len({*data.y[lo:hi].tolist()}) > 1 for lo, hi in pairwise(ends)]
    chosen = np.flatnonzero(differ) if any(differ) else np.arange(len(differ))
    return data.select(chosen[:_WARM_QUERIES])
