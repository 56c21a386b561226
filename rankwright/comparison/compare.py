"""Which ranker is better, and is it significant? Rankers on the same folds and test queries.

In every fold each ranker is fitted to train, its round (and what tuning searches) is chosen on
valid, and test is scored once. Queries are pooled over the folds; the values of a query that
several folds test are averaged before any interval or test. Each fit is kept in a cache
(`rankwright.comparison.run_cache`), so adding a ranker fits that one alone, and a comparison that
was killed goes on where it was. Entries of other libraries, columns of scores and run files
(`rankwright.comparison.entries`) are judged on the same test queries, and not kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import chain, combinations, islice, pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from sklearn.base import clone

from rankwright.comparison.entries import (
    AutoScorer,
    EstimatorScorer,
    FittedScorer,
    TestRows,
    called,
    entries_of,
    selection,
)
from rankwright.comparison.pooled import Pooled, pooled_values, warn_of_reused_ids
from rankwright.comparison.result import Comparison, Entry, PairedTest, Run
from rankwright.comparison.run_cache import RunCache, StoredRun, fold_digest, run_key
from rankwright.comparison.tune import import_optuna
from rankwright.comparison.tune import tune as tune_ranker
from rankwright.core.jit import Stopwatch, duration
from rankwright.core.parallel import thread_count
from rankwright.core.parameters import seed_of
from rankwright.core.types import F64
from rankwright.data import catalog
from rankwright.data.files import load
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold, fold_files, k_folds, letor_folds, load_alike
from rankwright.data.store import is_store
from rankwright.errors import DataError, RankwrightError, UsageError
from rankwright.metrics.base import Metric, named_metrics
from rankwright.metrics.base import metric as make_metric
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
from rankwright.persist.model_file import kept_parameters, restored
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.data_checks import (
    OPTIMISTIC,
    has_same_queries,
    nothing_to_rank,
    warn_of_training_data,
)
from rankwright.rankers.search_space import space_of
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
    data : path, name of a data set, RankingData, (train, valid, test), or list of such folds
        LETOR's folds are used as they are; other data is cut into folds of whole queries. The
        values of a query that several folds test are averaged, so that each query counts once in
        means, intervals and tests. ``query_weight`` of the data weights all of them.
    rankers : str, ranker, estimator, fitted model, list of them, or mapping from names to them
        Such as ``"lambdamart,ranksvm:l2=0.1"``, or ``Ranker(loss=MyLoss(), model="trees")``. A
        regressor or classifier of scikit-learn, or a ranker of LightGBM or XGBoost, is cloned and
        fitted in each fold (a classifier ranks by the expected grade). What is fitted already, a
        booster, a ranker or ``"model:FILE"``, is only scored. ``"auto"`` is what `rankwright.auto`
        chooses by the training part of each fold; ``"auto:time_limit=60"`` limits it to 60 seconds
        a fold. Also scored are ``"column:NAME"``, a feature
        as scores; ``"run:FILE"``, a TREC run; and an array with a score for each row of the data
        (where the data comes in folds: for each row of their test parts, one after the other).
    metrics, convention
        What is reported, as for `rankwright.evaluate`, functions included, and how it is computed;
        wins and losses of tables are by the first.
    select
        The metric that chooses on the validation set, a name or a function, where a ranker does not
        set its own: ``select_metric``, or ``metric`` where that is all it has.
    baseline
        The entry that the others are tested against; the first by default. "all" tests every pair.
    test : "randomisation", "t" or "wilcoxon"
        The paired test over queries, two-sided: Fisher's randomisation test, Student's t-test, or
        Wilcoxon's signed-rank test, which leaves out queries without a difference. It detects ties
        after rounding to 12 decimals, so its p-value can differ from SciPy's in the fourth digit.
        If the data has query weights, each test is one of the weighted differences.
    correction : "holm", "bh" or None
        How p-values are adjusted for the number of tests of a metric: by Holm (the chance of any
        false finding is at most 5 %), by Benjamini and Hochberg (the expected share of false ones
        among the findings is), or not at all.
    folds
        How many to cut, where the data does not come in folds.
    tune
        Trials of tuning for each ranker and fold, on the validation set alone; 0: rankers as given.
        Entries that are no rankers of ours are not tuned, and neither is "auto".
    read
        Options of the reader of files.
    cache
        Folder of fits done before; a user-wide one by default. A ranker with a function, or with a
        part that no installed package announces, is fitted anew in each comparison, as is an
        estimator of another library, and "auto".
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

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=12, documents=12)
    >>> found = rw.compare(data, "memr,linear_regression", folds=3)
    >>> [entry.label for entry in found.entries]
    ['memr', 'linear_regression']
    """
    chosen = entries_of(rankers)
    labels = [entry.label for entry in chosen]
    _check_options(labels, baseline, folds, tune, jobs)
    _check_tests(labels, baseline, test, correction)
    evaluated = named_metrics(metrics, convention=convention)
    _check_means(evaluated)
    make_metric(select, convention=convention)  # as all of these, refused before anything is read
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
    warn_of_reused_ids(work.tests)
    scores = {label: [run.scores for run in of_label] for label, of_label in runs.items()}
    pooled = pooled_values(work.tests, scores, evaluated, n_jobs)
    maximise = {metric: found.maximise for metric, found in evaluated.items()}
    return Comparison(
        name=name,
        entries=chosen,
        baseline=against,
        all_pairs=all_pairs,
        test_name=test,
        correction=correction,
        metrics=tuple(evaluated),
        maximise=maximise,
        convention=convention,
        folds=parts,
        qid=pooled.queries.qid,
        fold_of_query=pooled.queries.fold,
        query_weight=pooled.queries.weight,
        repeated=pooled.queries.repeated,
        runs=runs,
        per_query=pooled.per_query,
        intervals=_intervals(kept, pooled, evaluated, seed),
        tests=tuple(
            _tests(
                pooled,
                _pairs(list(pooled.per_query), None if all_pairs else against),
                evaluated,
                _Tester(kept, test, pooled.queries.weight, seed),
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


def _check_means(metrics: Mapping[str, Metric]) -> None:
    """Refuse metrics whose value over queries is not a mean by `query_weight`."""
    for name, metric in metrics.items():
        if metric.summary != "mean" or metric.convention.weighs_queries:
            reason = "weighted by document" if metric.summary == "mean" else f"a {metric.summary}"
            raise UsageError(
                f"{name} is {reason} over queries under the convention {metric.convention.name}, "
                "and tests and intervals are of means; leave it out, or use rankwright.evaluate."
            )


# --- judging ---------------------------------------------------------------------------------


def _intervals(
    cache: RunCache, pooled: Pooled, metrics: Mapping[str, Metric], seed: int
) -> dict[str, dict[str, Interval]]:
    """Return each mean over queries with its interval."""
    weight = pooled.queries.weight

    def interval(label: str, name: str) -> Interval:
        values, bounds = pooled.per_query[label][name], metrics[name].bounds
        in_sum = pooled.weights[name][1]
        if weight is not None and (in_sum != weight).any():
            values = values * in_sum / np.where(weight > 0, weight, 1.0)
            bounds = (-np.inf, np.inf)
        found = _interval(cache, values, weight, bounds, seed)
        return replace(found, mean=pooled.mean(label, name))

    return {
        label: {name: interval(label, name) for name in columns}
        for label, columns in pooled.per_query.items()
    }


def _interval(
    cache: RunCache, values: F64, weight: F64 | None, bounds: tuple[float, float], seed: int
) -> Interval:
    def compute(values: F64, weight: F64 | None = None, *, seed: int) -> tuple[float, ...]:
        found = bootstrap_interval(values, query_weight=weight, bounds=bounds, seed=seed)
        return astuple(found)

    arrays = (values,) if weight is None else (values, weight)
    return Interval(*cache.test(f"bootstrap {bounds}", compute, *arrays, seed=seed))


@dataclass(frozen=True)
class _Tester:
    """The paired test of a comparison, with results kept in its cache."""

    cache: RunCache
    name: str
    weight: F64 | None
    seed: int

    def __call__(self, a: F64, b: F64) -> tuple[float, float]:
        """Return the difference and the p-value, NaN if fewer than two queries have both values."""
        weights = () if self.weight is None else (self.weight,)
        try:
            difference, p_value = self.cache.test(
                self.name, _TESTS[self.name], a, b, *weights, seed=self.seed
            )
        except DataError:  # too few queries
            return float(np.nan), float(np.nan)
        return difference, p_value


def _randomisation(*values: F64, seed: int) -> tuple[float, float]:
    return _found(randomisation(*values, seed=seed))


def _paired_t(*values: F64, seed: int) -> tuple[float, float]:  # noqa: ARG001
    return _found(paired_t(*values))


def _wilcoxon(*values: F64, seed: int) -> tuple[float, float]:  # noqa: ARG001
    return _found(wilcoxon(*values))


def _found(result: TestResult) -> tuple[float, float]:
    return result.difference, result.p_value


_TESTS = dict(zip(TESTS, (_randomisation, _paired_t, _wilcoxon), strict=True))


def _pairs(labels: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Return which entry is tested against which; without a baseline, each against each."""
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(labels, 2)]
    return [(label, baseline) for label in labels if label != baseline]


def _tests(
    pooled: Pooled,
    pairs: Sequence[tuple[str, str]],
    metrics: Mapping[str, Metric],
    tested: _Tester,
    correction: str | None,
) -> Iterator[PairedTest]:
    """Yield the test of each pair and metric, p-values adjusted within a metric."""
    for name, metric in metrics.items():
        values = {label: columns[name] for label, columns in pooled.per_query.items()}
        bounds = metric.bounds[0] - metric.bounds[1], metric.bounds[1] - metric.bounds[0]
        found = {pair: tested(values[pair[0]], values[pair[1]]) for pair in pairs}
        p_values = {pair: p_value for pair, (_, p_value) in found.items()}
        known = {pair: p_value for pair, p_value in p_values.items() if not np.isnan(p_value)}
        adjusted: Any = {**p_values, **(CORRECTIONS[correction](known) if correction else {})}
        for label, other in pairs:
            change = values[label] - values[other]
            interval = _interval(tested.cache, change, tested.weight, bounds, tested.seed)
            gain = (change if metric.maximise else -change)[~np.isnan(change)]
            wins, losses = int((gain > _TIE).sum()), int((gain < -_TIE).sum())
            yield PairedTest(
                ranker=label,
                baseline=other,
                metric=name,
                difference=found[label, other][0],
                p_value=p_values[label, other],
                adjusted=adjusted[label, other],
                wins=wins,
                ties=len(gain) - wins - losses,
                losses=losses,
                low=interval.low,
                high=interval.high,
            )


# --- folds of any data -----------------------------------------------------------------------
# The folds that rankers are compared on: LETOR's own, those of a named set, or cut from one file.
#
# A folder with Fold1, Fold2, ... (or S1.txt, S2.txt, ...) has its folds, as have the LETOR sets by
# name (``ohsumed``); one with train.txt, vali.txt and test.txt is a single fold. Other data is cut
# into k folds of whole queries, sampled with a seed. Folds are read or cut when they are asked for.


class LazyFolds(Sequence[Fold]):
    """Folds that are made when they are asked for; the last one is kept."""

    def __init__(
        self, count: int, make: Callable[[int], Fold], whole: RankingData | None = None
    ) -> None:
        self._count, self._make = count, make
        self.whole = whole  # what the folds were cut from
        self._last: tuple[int, Fold] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Fold: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fold]: ...
    def __getitem__(self, index: int | slice) -> Fold | list[Fold]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(self._count))]
        number = index + self._count if index < 0 else index
        if not 0 <= number < self._count:
            raise IndexError(f"there are {self._count} folds.")
        if self._last is None or self._last[0] != number:
            self._last = number, self._make(number)
        return self._last[1]


def compared_folds(
    data: Any, *, k: int = 5, seed: int = 0, read: dict[str, Any] | None = None
) -> tuple[str, Sequence[Fold]]:
    """Return a name for ``data`` and its folds.

    Parameters
    ----------
    data : path, name of a data set, RankingData, (train, valid, test), or list of such folds
    k
        Folds to cut, where the data does not come in folds.
    read
        Options of the reader of files.
    """
    options = read or {}
    if _is_fold(data):
        return "data", [_as_fold(data)]
    if isinstance(data, RankingData):
        return "data", cut_folds(data, k, seed)
    if isinstance(data, str | Path):
        return str(data), _folds_of_path(data, k, seed, options)
    if isinstance(data, LazyFolds):
        return "data", data
    if isinstance(data, Sequence) and data and all(_is_fold(fold) for fold in data):
        return "data", [_as_fold(fold) for fold in data]
    raise UsageError(
        "compare takes a file, a folder of folds, the name of a data set, RankingData, "
        f"(train, valid, test) or a list of such folds, not {type(data).__name__}."
    )


def _is_fold(given: Any) -> bool:
    """Whether this is a Fold, or a tuple of ranking data; the validation part may be None."""
    if not isinstance(given, tuple):
        return False
    return bool(given) and all(
        isinstance(part, RankingData) or (part is None and number == 1)
        for number, part in enumerate(given)
    )


def _as_fold(given: tuple[Any, ...]) -> Fold:
    if len(given) != 3:
        raise UsageError(
            f"a fold is (train, valid, test), three parts and not {len(given)}; without validation "
            "data write (train, None, test)."
        )
    return Fold(*given)


def cut_folds(data: RankingData, k: int, seed: int) -> LazyFolds:
    """Return k folds of ``data``; every query is tested in one of them."""
    k_folds(data, k, seed=seed)  # says at once what is wrong with k
    return LazyFolds(
        k, lambda number: next(islice(k_folds(data, k, seed=seed), number, None)), whole=data
    )


def _folds_of_path(path: str | Path, k: int, seed: int, options: dict[str, Any]) -> Sequence[Fold]:
    if Path(path).is_dir():
        files = fold_files(path)
        if files:
            return LazyFolds(1, lambda _: Fold(*load_alike(list(files.values()), **options)))
        if not is_store(path):
            folds = letor_folds(path, **options)
            return LazyFolds(len(folds), folds.__getitem__)
    elif str(path) == "digits" and not Path(path).exists():
        return LazyFolds(1, lambda _: catalog.load_fold(**options))
    return cut_folds(load(path, **options), k, seed)


def _without_features(data: RankingData) -> RankingData:
    return replace(data, X=np.empty((data.n_documents, 0)), feature_names=None)


def checked_fold(fold: Fold, number: int) -> Fold:
    """Return ``fold``, or say which of its parts is not compatible with the others."""
    for name, part in (("valid", fold.valid), ("test", fold.test)):
        if part is not None and part.n_features != fold.train.n_features:
            raise DataError(
                f"fold {number + 1}: {name} has {part.n_features} features, train has "
                f"{fold.train.n_features}."
            )
    return fold


# --- fits, in processes that share the threads -----------------------------------------------
# Every ranker on every fold: found in the cache, or fitted, several folds at a time.
#
# The time of a fit does not hold what only the first fit of a process takes, imports and compiled
# kernels: a fit to a few queries, ended after two rounds, comes before the first of each kind.


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
        self._learns = any(
            entry.scorer is None or isinstance(entry.scorer, EstimatorScorer | AutoScorer)
            for entry in entries
        )
        self._tune, self._cache, self._seed = tune, cache, common["random_state"]
        self._settings = {
            entry.label: {**selection(entry.ranker, select), **common, **entry.parameters}
            for entry in self._entries
        }
        for entry in self._others:
            if isinstance(entry.scorer, AutoScorer):
                convention = common["convention"]
                entry.scorer.set_common(metric=select, convention=convention, n_jobs=n_jobs)
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
        for task, error in _fitted(chain([first], tasks), jobs, max(1, self._threads // jobs)):
            where = f"fold {task.number + 1} of {len(folds)}, {task.label}"
            if error is not None:
                for label, _ in [(task.label, task.number), *self._alike.pop(task.key)]:
                    self._failures.setdefault(label, error)
                report(f"{where}: {error}")
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
        except RankwrightError as error:
            self._failures[entry.label] = str(error)
            return f"{entry.label}: {error}"
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
            self.tests.append(_without_features(fold.test))
            warn_of_training_data(fold.train, fold.valid, f"valid of fold {number + 1}")
            if self._learns and has_same_queries(fold.train, fold.test):
                warnings.warn(
                    f"test of fold {number + 1} holds the same queries as the training data, so "
                    "the metrics are too optimistic; give it other queries.",
                    stacklevel=2,
                )
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
        return {"trials": self._tune, **{name: repr(values) for name, values in space.items()}}

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
    """Fit tasks as they come in; yield each with the sentence of its error, if any."""
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
            yield delayed(_fit_and_report)(task)

    with parallel_config(backend="loky", inner_max_num_threads=threads):
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
        for key, error in pool(sending()):
            yield sent.pop(key), error


def _fit_and_report(task: Task) -> tuple[str, str | None]:
    return task.key, _fit(task)


def _fit(task: Task) -> str | None:
    """Fit and keep one run; return a sentence where the ranker cannot take the data."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*{OPTIMISTIC}")  # was reported for the fold
        return _fit_and_store(task)


def _fit_and_store(task: Task) -> str | None:
    train, valid, test = task.fold
    tuned: Mapping[str, Any] = {}
    try:
        made = ranker(task.ranker, **task.settings)
        from_start = Stopwatch()
        warm_up(made, train, valid)
        watch = Stopwatch()
        space = space_of(made, fixed=task.settings) if task.tune else {}
        if space and valid is not None:
            found = tune_ranker(
                made, train, valid, trials=task.tune, space=space, random_state=made.random_state
            )
            fitted, tuned = found.ranker, found.parameters
        else:
            fitted = made.fit(train, eval_set=valid)
        seconds, compiling = watch.seconds, from_start.compile_seconds
        scores = fitted.predict(test)
    except RankwrightError as error:
        return str(error)
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
            clone(made).fit(parts[0], eval_set=parts[1], progress=_end_soon)
        except Exception:  # the fit that counts will say what is wrong
            return


def _some_queries(data: RankingData) -> RankingData:
    """Return some of the first queries, with different grades where there are such."""
    ends = data.indptr[: _WARM_SOUGHT + 1].tolist()
    differ = [len({*data.y[lo:hi].tolist()}) > 1 for lo, hi in pairwise(ends)]
    chosen = np.flatnonzero(differ) if any(differ) else np.arange(len(differ))
    return data.select(chosen[:_WARM_QUERIES])
