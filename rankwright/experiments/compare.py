"""Which ranker is better, and is it significant? Rankers on the same folds and test queries.

In every fold each ranker is fitted to train, its round (and what tuning searches) is chosen on
valid, and test is scored once. Queries are pooled over the folds. Each fit is kept in a cache
(`rankwright.experiments.run_cache`), so adding a ranker fits that one alone, and a comparison that
was killed goes on where it was. Entries of other libraries, columns of scores and run files
(`rankwright.experiments.scorers`) are judged on the same test queries, and not kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
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
from rankwright.metrics.significance import (
    Interval,
    TestResult,
    benjamini_hochberg,
    bootstrap_interval,
    holm,
    paired_t,
    randomisation,
    wilcoxon,
)
from rankwright.rankers.inputs import nothing_to_rank
from rankwright.registry import unknown

METRICS = "ndcg@10,ndcg@5,ndcg@1,map"
TESTS = ("randomisation", "t", "wilcoxon")
CORRECTIONS: dict[str, Callable[[Any], Any]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
}
ALL = "all"
_TIE = 1e-12


def compare(
    data: Any,
    rankers: Any,
    *,
    metrics: Any = METRICS,
    convention: str = "standard",
    select: Any = "ndcg@10",
    baseline: str | None = None,
    test: str = "randomisation",
    correction: str | None = "holm",
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
    rankers : str, ranker, estimator, fitted model, list of them, or mapping from names to them
        Such as ``"lambdamart,ranksvm:l2=0.1"``, or ``Ranker(loss=MyLoss(), model="trees")``. A
        regressor or classifier of scikit-learn, or a ranker of LightGBM or XGBoost, is cloned and
        fitted in each fold (a classifier ranks by the expected grade). What is fitted already, a
        booster, a ranker or ``"model:FILE"``, is only scored. So are ``"column:NAME"``, a feature
        as scores; ``"run:FILE"``, a TREC run; and an array with a score for each row of the data
        (where the data comes in folds: for each row of their test parts, one after the other).
    metrics, convention
        What is reported, as for `rankwright.evaluate`, functions included, and how it is computed;
        wins and losses of tables are by the first.
    select
        The metric that chooses on valid, a name or a function, where a ranker does not set its own:
        ``select_metric``, or ``metric`` where that is all it has.
    baseline
        The entry that the others are tested against; the first by default. "all" tests every pair.
    test : "randomisation", "t" or "wilcoxon"
        The paired test over queries, two-sided: Fisher's randomisation test, Student's t-test, or
        Wilcoxon's signed-rank test, which leaves out queries without a difference.
    correction : "holm", "bh" or None
        How p-values are adjusted for the number of tests of a metric: by Holm (the chance of any
        false finding is at most 5 %), by Benjamini and Hochberg (the expected share of false ones
        among the findings is), or not at all.
    folds
        How many to cut, where the data does not come in folds.
    tune
        Trials of tuning for each ranker and fold, on valid alone; 0: rankers as given. Entries
        that are no rankers of ours are not tuned.
    read
        Options of the reader of files.
    cache
        Folder of fits done before; a user-wide one by default. A ranker with a function, or with a
        part that no installed package announces, is fitted anew in each comparison, as is an
        estimator of another library.
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
    _check_tests(labels, baseline, test, correction)
    measured = measures(metrics, convention=convention)
    measure(select, convention=convention)  # as all of these, told before anything is read
    seed = seed_of(random_state)
    name, parts = compared_folds(data, k=folds, seed=seed, read=read)
    common = {"convention": convention, "random_state": seed}
    kept = RunCache(cache)
    work = Work(chosen, select, common, tune, kept, n_jobs, jobs)
    work.run(parts, report)
    _warn_of_nothing_to_rank(work.tests)
    runs, failures = work.found()
    all_pairs = baseline == ALL
    against = _baseline(labels, None if all_pairs else baseline, failures)
    per_query = _measure(work.tests, runs, measured, n_jobs)
    maximise = {metric: found.maximise for metric, found in measured.items()}
    return Comparison(
        name=name,
        entries=chosen,
        baseline=against,
        all_pairs=all_pairs,
        test_name=test,
        correction=correction,
        metrics=tuple(measured),
        maximise=maximise,
        convention=convention,
        folds=parts,
        qid=np.concatenate([np.asarray(test.qid, object) for test in work.tests]),
        fold_of_query=np.repeat(np.arange(len(parts)), [test.n_queries for test in work.tests]),
        runs=runs,
        per_query=per_query,
        intervals=_intervals(kept, per_query, seed),
        tests=tuple(
            _tests(
                per_query,
                _pairs(list(per_query), None if all_pairs else against),
                maximise,
                lambda a, b: kept.test(test, _TESTS[test], a, b, seed=seed),
                correction,
            )
        ),
        notes=work.notes(),
        failures=failures,
        fits=work.fits,
    )


def _warn_of_nothing_to_rank(tests: Sequence[RankingData]) -> None:
    """Warn where every ranking of the test queries is as good as any other."""
    reasons = [nothing_to_rank(test) for test in tests]
    if reasons and all(reasons):
        warnings.warn(
            f"nothing to rank in the test queries, so the rankers cannot differ: {reasons[0]}.",
            stacklevel=3,
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
    if baseline not in (None, ALL) and baseline not in labels:
        raise UsageError(unknown("ranker in this comparison called", str(baseline), labels))
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


def _check_tests(
    labels: Sequence[str], baseline: str | None, test: str, correction: str | None
) -> None:
    if baseline == ALL and ALL in labels:
        raise UsageError("baseline 'all' tests every pair; give the ranker 'all' another name.")
    if test not in TESTS:
        raise UsageError(unknown("test called", str(test), TESTS))
    if correction is not None and correction not in CORRECTIONS:
        known = (*CORRECTIONS, "none")
        raise UsageError(unknown("correction called", str(correction), known))


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


def _randomisation(a: F64, b: F64, *, seed: int) -> tuple[float, float]:
    return _found(randomisation(a, b, seed=seed))


def _paired_t(a: F64, b: F64, *, seed: int) -> tuple[float, float]:  # noqa: ARG001
    return _found(paired_t(a, b))


def _wilcoxon(a: F64, b: F64, *, seed: int) -> tuple[float, float]:  # noqa: ARG001
    return _found(wilcoxon(a, b))


def _found(result: TestResult) -> tuple[float, float]:
    return result.difference, result.p_value


_TESTS = dict(zip(TESTS, (_randomisation, _paired_t, _wilcoxon), strict=True))


def _pairs(labels: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Return which entry is tested against which; without a baseline, each against each."""
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(labels, 2)]
    return [(label, baseline) for label in labels if label != baseline]


def _tests(
    per_query: Mapping[str, Mapping[str, F64]],
    pairs: Sequence[tuple[str, str]],
    maximise: Mapping[str, bool],
    tested: Callable[[F64, F64], Sequence[float]],
    correction: str | None,
) -> Iterator[PairedTest]:
    """Yield the test of each pair and metric, p-values adjusted within a metric."""
    for metric, more_is_better in maximise.items():
        values = {label: columns[metric] for label, columns in per_query.items()}
        found = {pair: tested(values[pair[0]], values[pair[1]]) for pair in pairs}
        p_values = {pair: p_value for pair, (_, p_value) in found.items()}
        adjusted: Any = CORRECTIONS[correction](p_values) if correction else p_values
        for label, other in pairs:
            gain = values[label] - values[other]
            gain = (gain if more_is_better else -gain)[~np.isnan(gain)]
            wins, losses = int((gain > _TIE).sum()), int((gain < -_TIE).sum())
            yield PairedTest(
                ranker=label,
                baseline=other,
                metric=metric,
                difference=found[label, other][0],
                p_value=p_values[label, other],
                adjusted=adjusted[label, other],
                wins=wins,
                ties=len(gain) - wins - losses,
                losses=losses,
            )
