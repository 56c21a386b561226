"""The trials of tuning: drawn, run here or elsewhere, and kept in a study of Optuna.

`rankwright.experiments.tune` says how trials are drawn and judged. A study on a storage is bound to
its data, ranker, search space and seed by a digest; trials that were killed do not count.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Protocol

from sklearn.base import clone

from rankwright.core.rng import stream
from rankwright.data.content import content_digest
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import k_folds
from rankwright.data.target import check_target
from rankwright.errors import DataError, MissingExtraError, RankwrightError, UsageError
from rankwright.metrics.base import Metric
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.names import metric, metric_name
from rankwright.persist.model_file import kept_parameters
from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Choice, Domain
from rankwright.rankers.selection import ROUNDS

if TYPE_CHECKING:
    import optuna

_STARTUP_TRIALS = 5  # trials that are never pruned, so that there is a median to fall behind
_WARMUP_ROUNDS = 10
_SENTENCE, _ROUNDS = "sentence", "rounds"  # attributes of trials


class Runs(Protocol):
    """Runs calls elsewhere, as the executors of concurrent.futures do."""

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Return a future of the call, whose ``result()`` waits for it."""


@dataclass(frozen=True)
class Trial:
    """One choice of parameters and how it did.

    Attributes
    ----------
    number : int
        From 0.
    state : str
        "complete", "pruned" or "failed".
    parameters : mapping
        What was chosen.
    value : float or None
        The selection metric on valid; of a pruned trial, its best so far.
    seconds : float
    sentence : str or None
        Why the trial failed.
    """

    number: int
    state: str
    parameters: Mapping[str, Any]
    value: float | None
    seconds: float
    sentence: str | None = None


Pair = tuple[RankingData, RankingData]
"""Data to fit to, and data that judges the fit."""


class Search:
    """Trials of one ranker on train and valid, or on the folds of train where valid is None."""

    def __init__(
        self,
        optuna: Any,
        ranker: Ranker,
        train: RankingData,
        valid: RankingData | None,
        space: Mapping[str, Domain],
        seed: int,
        folds: int = 0,
    ) -> None:
        self.optuna, self.ranker, self.train, self.valid = optuna, ranker, train, valid
        self.space, self.seed, self.folds = space, seed, folds
        self.pairs = [(train, valid)] if valid is not None else _folds(train, folds, seed)
        given = ranker.selection_metric
        self.measure = metric(given, convention=ranker.convention)
        self.metric, self.maximise = metric_name(given, self.measure), self.measure.maximise
        self._fitted: dict[int, Ranker] = {}  # the best of this run alone

    def digest(self) -> str:
        """Return what decides the trials: the data, the ranker, the space and the seed."""
        judge = f"{self.folds} folds" if self.valid is None else content_digest(self.valid)
        told = {
            "data": [content_digest(self.train), judge],
            "ranker": self.ranker.name,
            "parameters": kept_parameters(self.ranker),
            "space": {name: repr(domain) for name, domain in self.space.items()},
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def ended(self, study: optuna.Study) -> list[Trial]:
        """Return the trials that ended by themselves; one that was killed does not count."""
        states = self.optuna.trial.TrialState
        names = {states.COMPLETE: "complete", states.PRUNED: "pruned", states.FAIL: "failed"}
        kept = [
            trial
            for trial in study.get_trials(deepcopy=False, states=tuple(names))
            if trial.state != states.FAIL or _SENTENCE in trial.user_attrs
        ]
        return [
            Trial(
                number,
                names[trial.state],
                self.values(trial.params),
                trial.value,
                trial.duration.total_seconds() if trial.duration else 0.0,
                trial.user_attrs.get(_SENTENCE),
            )
            for number, trial in enumerate(kept)
        ]

    def _ask(self, study: optuna.Study, number: int) -> tuple[optuna.Trial, Ranker]:
        """Draw a trial; return it with the ranker of its parameters."""
        draw = int(stream(self.seed, "tune", number).integers(2**31))
        study.sampler = self.optuna.samplers.TPESampler(seed=draw)
        if number == 0:
            study.enqueue_trial(self._defaults())
        trial = study.ask()
        chosen = {name: domain.suggest(trial, name) for name, domain in self.space.items()}
        return trial, clone(self.ranker).set_params(**chosen)

    def run_elsewhere(
        self, study: optuna.Study, first: int, count: int, executor: Runs
    ) -> list[Trial]:
        """Run ``count`` trials at a time on an executor and return how they ended."""
        asked = [self._ask(study, first + k) for k in range(count)]
        judged_by = (self.pairs, self.measure, self.metric)
        running = [executor.submit(fit_and_judge, made, *judged_by) for _, made in asked]
        before = len(self.ended(study))
        for (trial, _), future in zip(asked, running, strict=True):
            try:
                fits, value = future.result()
                self._tell(study, trial, fits, value)
            except RankwrightError as fault:
                self._tell_fault(study, trial, fault)
        return self.ended(study)[before:]

    def _tell(
        self, study: optuna.Study, trial: optuna.Trial, fits: list[Ranker], value: float
    ) -> None:
        trial.set_user_attr(_ROUNDS, [fit.best_iteration_ for fit in fits])
        study.tell(trial, value)
        if study.best_trial.number == trial.number and self.valid is not None:
            self._fitted = {trial.number: fits[0]}

    def _tell_fault(self, study: optuna.Study, trial: optuna.Trial, fault: Exception) -> None:
        trial.set_user_attr(_SENTENCE, str(fault))
        study.tell(trial, state=self.optuna.trial.TrialState.FAIL)

    def run_trial(self, study: optuna.Study, number: int) -> Trial:
        """Run one trial and return how it ended."""
        trial, made = self._ask(study, number)
        fits: list[Ranker] = []
        found: list[float] = []
        try:
            for train, valid in self.pairs:
                watcher = None
                if self.valid is not None:
                    watcher = _Pruner(trial, self.optuna, self.maximise)
                fitted = clone(made) if fits else made
                fits.append(fitted.fit(train, eval_set=valid, progress=watcher))
                if fitted.interrupted_:  # half a fit is not a trial
                    raise KeyboardInterrupt
                found.append(judged(fitted, valid, self.measure, self.metric))
                if self.valid is None:
                    self._prune_by_folds(trial, found)
            self._tell(study, trial, fits, fmean(found))
        except self.optuna.TrialPruned:
            study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
        except RankwrightError as fault:
            self._tell_fault(study, trial, fault)
        return self.ended(study)[-1]

    def _prune_by_folds(self, trial: optuna.Trial, found: list[float]) -> None:
        """End a trial whose mean over the folds so far falls behind that of the others."""
        trial.report(fmean(found), _WARMUP_ROUNDS + len(found))
        if len(found) < len(self.pairs) and trial.should_prune():
            raise self.optuna.TrialPruned

    def best(self, study: optuna.Study) -> tuple[Ranker, dict[str, Any], float]:
        """Return the ranker of the best trial, its parameters and its value.

        It is fitted again where an earlier run had it, and after folds: to all of train, with as
        many rounds as were best on average.
        """
        states = self.optuna.trial.TrialState
        if not study.get_trials(deepcopy=False, states=(states.COMPLETE,)):
            raise DataError(f"no trial succeeded; the last one: {self.ended(study)[-1].sentence}")
        best = study.best_trial
        chosen = self.values(best.params)
        if self.valid is None:
            chosen |= self._rounds(best.user_attrs.get(_ROUNDS, []))
        if best.number not in self._fitted:
            fitted = clone(self.ranker).set_params(**chosen)
            self._fitted = {best.number: fitted.fit(self.train, eval_set=self.valid)}
        return self._fitted[best.number], chosen, float(study.best_value)

    def values(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a trial from what Optuna keeps of them."""
        return {
            name: domain.value(kept[name]) if isinstance(domain, Choice) else kept[name]
            for name, domain in self.space.items()
            if name in kept
        }

    def _rounds(self, best: list[int]) -> dict[str, int]:
        """Return the parameter for the mean number of rounds, of a model that has one."""
        name = ROUNDS.get(self.ranker.model_name)
        if name is None or not best:
            return {}
        own = self.ranker._has_own_model() and name in self.ranker.get_params(deep=False)
        return {name if own else f"model__{name}": max(1, round(fmean(best)))}

    def _defaults(self) -> dict[str, Any]:
        known = self.ranker.get_params(deep=True)
        return {
            name: domain.kept(known[name]) if isinstance(domain, Choice) else known[name]
            for name, domain in self.space.items()
            if domain.holds(known[name])
        }


def _folds(train: RankingData, folds: int, seed: int) -> list[Pair]:
    """Return each part of the queries with all others, which are fitted to."""
    return [(fold.train, fold.test) for fold in k_folds(train, folds, valid=False, seed=seed)]


def fit_and_judge(
    ranker: Ranker, pairs: list[Pair], measure: Metric, name: str
) -> tuple[list[Ranker], float]:
    """Fit one trial's ranker, wherever this runs; return the fits and their mean metric."""
    fits = [clone(ranker).fit(train, eval_set=valid) for train, valid in pairs]
    found = [
        judged(fitted, valid, measure, name) for fitted, (_, valid) in zip(fits, pairs, strict=True)
    ]
    return fits, fmean(found)


def judged(fitted: Ranker, valid: RankingData, measure: Metric, name: str) -> float:
    """Return the metric of a fitted ranker on valid, with ties averaged."""
    selects = measure.for_selection()
    found = evaluate(valid, fitted.predict(valid), selects)[repr(selects)]
    if not math.isfinite(found):
        raise DataError(
            f"{name} has no value on the validation data: it leaves all its queries out."
        )
    return found


class _Pruner:
    """Takes the learning curve of a trial, and ends it where it falls behind."""

    def __init__(self, trial: optuna.Trial, optuna: Any, maximise: bool) -> None:
        self._trial, self._optuna = trial, optuna
        self._better = max if maximise else min
        self._best: float | None = None

    def __call__(self, t: int, text: str) -> None:
        pass

    def tell(self, t: int, value: float) -> None:
        """Take in the metric on valid after round ``t``."""
        self._best = value if self._best is None else self._better(self._best, value)
        self._trial.report(self._best, t)  # the model keeps its best round, so that one counts
        if self._trial.should_prune():
            raise self._optuna.TrialPruned


def open_study(search: Search, storage: str | Path | None, name: str) -> Any:
    """Return the study of this name, after making sure that it is about the same thing."""
    optuna = search.optuna
    try:
        study = optuna.create_study(
            study_name=name,
            storage=_storage(optuna, storage),
            direction="maximize" if search.maximise else "minimize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(_STARTUP_TRIALS, _WARMUP_ROUNDS),
        )
        before = study.user_attrs.get("digest")
    except RankwrightError:
        raise
    except Exception as fault:  # Optuna's storages raise errors of many packages
        why = str(fault).partition("\n")[0] or type(fault).__name__
        raise UsageError(f"the storage {storage} cannot be opened: {why}") from None
    digest = search.digest()
    if before is None:
        study.set_user_attr("digest", digest)
    elif before != digest:
        raise UsageError(
            f"{storage} holds a study '{name}' of other data, settings or seed; "
            "name another with --study, or another storage."
        )
    states = optuna.trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING, states.WAITING)):
        if trial.state == states.WAITING:  # enqueued and killed before it was asked for
            trial = study.ask()
        study.tell(trial.number, state=states.FAIL)  # it was killed; its draw is made again
    return study


def _storage(optuna: Any, storage: str | Path | None) -> Any:
    if storage is None or "://" in str(storage):
        return storage
    check_target(storage, "--storage")
    backend = optuna.storages.journal.JournalFileBackend(str(storage))
    return optuna.storages.JournalStorage(backend)


def import_optuna() -> Any:
    """Return Optuna, or name the extra that brings it."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtraError("Optuna", "tune", "tuning") from None
    return optuna


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from logging each trial: the caller's report tells them."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
