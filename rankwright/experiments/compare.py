"""Which ranker is better, and is it chance? Rankers on the same folds, judged on the same queries.

In every fold each ranker is fitted to train, its round (and what tuning searches) is chosen on
valid, and test is scored once. Queries are pooled over the folds. Each fit is kept in a cache
(`rankwright.experiments.run_cache`), so adding a ranker fits that one alone, and a comparison that
was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.core.rng import seed_of
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.experiments.compared_folds import compared_folds
from rankwright.experiments.compared_runs import Report, Work
from rankwright.experiments.comparison import Comparison, PairedTest, Run
from rankwright.experiments.entries import entries_of
from rankwright.experiments.run_cache import RunCache
from rankwright.metrics.base import Metric
from rankwright.metrics.evaluation import Evaluator
from rankwright.metrics.names import measures
from rankwright.metrics.names import metric as measure
from rankwright.metrics.significance import Interval, bootstrap_interval, holm, randomisation
from rankwright.registry import unknown

METRICS = "ndcg@10,ndcg@5,ndcg@1,map"
_TIE = 1e-12


def compare(
    data: Any,
    rankers: Any,
    *,
    metrics: Any = METRICS,
    convention: str = "standard",
    select: Any = "ndcg@10",
    baseline: str | None = None,
    folds: int = 5,
    tune: int = 0,
    read: dict[str, Any] | None = None,
    cache: str | Path | None = None,
    jobs: int | None = None,
    report: Report = lambda _: None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare rankers on the same queries.

    Parameters
    ----------
    data : path, name of a data set, RankingData, (train, valid, test), or sequence of such folds
        LETOR's folds are used as they are; other data is cut into folds of whole queries.
    rankers : str, Ranker, list of them, or mapping from names to them
        Such as ``"lambdamart,ranksvm:l2=0.1"``, or ``Ranker(loss=MyLoss(), model="trees")``.
    metrics, convention
        What is reported, as for `rankwright.evaluate`, functions included, and how it is computed;
        wins and losses of tables are by the first.
    select
        The metric that chooses on valid, a name or a function, where a ranker does not set its own:
        ``select_metric``, or ``metric`` where that is all it has.
    baseline
        The entry that the others are tested against; the first by default.
    folds
        How many to cut, where the data does not come in folds.
    tune
        Trials of tuning for each ranker and fold, on valid alone; 0: rankers as given.
    read
        Options of the reader of files.
    cache
        Folder of fits done before; a user-wide one by default. A ranker with a function, or with a
        part that no installed package announces, is fitted anew in each comparison.
    jobs
        Fits at a time, in processes that share the threads; by default one for each fold.
    report
        Called with a line for each ranker and fold.
    random_state
        Seed of the folds, of every ranker that does not set its own, and of the tests.

    Returns
    -------
    Comparison
        A ranker that cannot take the data is in its ``failures``; if all fail, that is an error.
    """
    chosen = entries_of(rankers)
    labels = [entry.label for entry in chosen]
    _check_options(labels, baseline, folds, tune, jobs)
    measured = measures(metrics, convention=convention)
    measure(select, convention=convention)  # as all of these, told before anything is read
    seed = seed_of(random_state)
    name, parts = compared_folds(data, k=folds, seed=seed, read=read)
    common = {"convention": convention, "random_state": seed}
    kept = RunCache(cache)
    work = Work(chosen, select, common, tune, kept, n_jobs, jobs)
    work.run(parts, report)
    runs, failures = work.found()
    against = _baseline(labels, baseline, failures)
    per_query = _measure(work.tests, runs, measured, n_jobs)
    maximise = {metric: found.maximise for metric, found in measured.items()}
    return Comparison(
        name=name,
        entries=chosen,
        baseline=against,
        metrics=tuple(measured),
        maximise=maximise,
        convention=convention,
        folds=parts,
        qid=np.concatenate([np.asarray(test.qid, object) for test in work.tests]),
        fold_of_query=np.repeat(np.arange(len(parts)), [test.n_queries for test in work.tests]),
        runs=runs,
        per_query=per_query,
        intervals=_intervals(kept, per_query, seed),
        tests=tuple(_tests(kept, per_query, against, maximise, seed)),
        failures=failures,
        fits=work.fits,
    )


def _baseline(labels: Sequence[str], asked: str | None, failures: Mapping[str, str]) -> str:
    """Return the label to test against: the one asked for, or the first that was run."""
    if len(failures) == len(labels):
        raise DataError(f"no ranker could be run; {labels[0]}: {failures[labels[0]]}")
    if asked is not None and asked in failures:
        raise DataError(f"the baseline {asked} could not be run: {failures[asked]}")
    return asked or next(label for label in labels if label not in failures)


def _check_options(
    labels: Sequence[str], baseline: str | None, folds: int, tune: int, jobs: int | None
) -> None:
    if baseline is not None and baseline not in labels:
        raise UsageError(unknown("ranker in this comparison called", baseline, labels))
    if folds < 3:
        raise UsageError(
            f"the number of folds must be 3 or more, for train, valid and test, not {folds}."
        )
    if jobs is not None and jobs < 1:
        raise UsageError(f"the number of jobs must be 1 or more, not {jobs}.")
    if tune < 0:
        raise UsageError(f"the number of trials must be 0 or more, not {tune}.")
    if tune:
        from rankwright.experiments.tune_trials import import_optuna

        import_optuna()  # says at once that it is missing


# --- judging ---------------------------------------------------------------------------------


def _measure(
    tests: Sequence[RankingData],
    runs: Mapping[str, Sequence[Run]],
    metrics: Mapping[str, Metric],
    n_jobs: int | None,
) -> dict[str, dict[str, F64]]:
    """Return the value of every test query, by label and metric."""
    found: dict[str, dict[str, list[F64]]] = {
        label: {metric: [] for metric in metrics} for label in runs
    }
    for number, test in enumerate(tests):
        evaluator = Evaluator(test, metrics, n_jobs=n_jobs)
        for label, of_label in runs.items():
            values = evaluator(of_label[number].scores).per_query
            for metric in metrics:
                found[label][metric].append(values[metric])
    return {
        label: {metric: np.concatenate(parts) for metric, parts in columns.items()}
        for label, columns in found.items()
    }


def _intervals(
    cache: RunCache, per_query: Mapping[str, Mapping[str, F64]], seed: int
) -> dict[str, dict[str, Interval]]:
    """Return each mean over queries with its interval."""
    return {
        label: {
            metric: Interval(*cache.test("bootstrap 95 %", _bounds, values, seed=seed))
            for metric, values in columns.items()
        }
        for label, columns in per_query.items()
    }


def _bounds(values: F64, *, seed: int) -> tuple[float, ...]:
    found = bootstrap_interval(values, seed=seed)
    return found.mean, found.low, found.high, found.level


def _difference(a: F64, b: F64, *, seed: int) -> tuple[float, float]:
    found = randomisation(a, b, seed=seed)
    return found.difference, found.p_value


def _tests(
    cache: RunCache,
    per_query: Mapping[str, Mapping[str, F64]],
    baseline: str,
    maximise: Mapping[str, bool],
    seed: int,
) -> Iterator[PairedTest]:
    """Yield each entry against the baseline, p-values adjusted within a metric."""
    others = [label for label in per_query if label != baseline]
    for metric, more_is_better in maximise.items():
        reference = per_query[baseline][metric]
        found = {
            label: cache.test(
                "randomisation", _difference, per_query[label][metric], reference, seed=seed
            )
            for label in others
        }
        adjusted = holm({label: p_value for label, (_, p_value) in found.items()})
        for label in others:
            gain = per_query[label][metric] - reference
            gain = (gain if more_is_better else -gain)[~np.isnan(gain)]
            wins, losses = int((gain > _TIE).sum()), int((gain < -_TIE).sum())
            yield PairedTest(
                ranker=label,
                baseline=baseline,
                metric=metric,
                difference=found[label][0],
                p_value=found[label][1],
                adjusted=adjusted[label],
                wins=wins,
                ties=len(gain) - wins - losses,
                losses=losses,
            )
