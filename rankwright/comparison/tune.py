"""Choose a ranker's parameters on a validation set, or by cross-validation, with Optuna.

Each trial fits the ranker with parameters from its search space (`rankwright.rankers.search_space`)
and is judged by the selection metric on the validation set; without valid, by its mean over folds
of whole queries. The first trial stands at the defaults, so tuning never ends below them on the
validation set; the others are sampled by Optuna's TPE sampler. A trial whose learning curve falls
behind the median of those before it is pruned.

The parameters of a trial depends on the seed and on the trials before it alone, so the same seed
gives the same trials, also where a run was killed and went on from its ``storage``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from sklearn.base import clone

from rankwright.core.parameters import check_value, params_of, seed_of
from rankwright.core.rng import stream
from rankwright.data.content import content_digest
from rankwright.data.frames import frame_of_columns
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import k_folds
from rankwright.data.streams import check_target
from rankwright.errors import DataError, MissingExtraError, RankwrightError, UsageError
from rankwright.metrics.base import Metric, metric, metric_name
from rankwright.metrics.evaluation import evaluate
from rankwright.persist.model_file import kept_parameters
from rankwright.rankers.base import Ranker
from rankwright.rankers.base import ranker as ranker_called
from rankwright.rankers.inputs import ranking_data
from rankwright.rankers.out_of_fold import round_parameter
from rankwright.rankers.preparation import valid_data
from rankwright.rankers.search_space import (
    as_plain,
    contains,
    distributions,
    from_plain,
    space_of,
    user_space,
)

if TYPE_CHECKING:
    import optuna


_FOLDS = 5


@dataclass(frozen=True)
class Tuning:
    """What tuning found.

    Attributes
    ----------
    ranker : Ranker
        Fitted to train with the best parameters.
    parameters : mapping
        Those that were chosen; after cross-validation with the number of rounds that was best on
        average, where the model has rounds.
    metric, convention : str
        What the trials were judged by.
    value : float
        The best trial's metric on the validation set, or its mean over the folds.
    trials : tuple of Trial
        All that ended, also in earlier runs on the same storage.
    seconds : float
        Time of this run.
    """

    ranker: Ranker
    parameters: Mapping[str, Any]
    metric: str
    convention: str
    value: float
    trials: tuple[Trial, ...]
    seconds: float

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each trial, in order.

        The columns are ``trial`` (from 0), ``state``, ``value``, ``seconds``, one for each searched
        parameter, and ``error``, the sentence of a trial that failed.
        """
        searched = list(dict.fromkeys(name for one in self.trials for name in one.parameters))
        columns: dict[str, list[Any]] = {
            "trial": [one.number for one in self.trials],
            "state": [one.state for one in self.trials],
            "value": [np.nan if one.value is None else one.value for one in self.trials],
            "seconds": [one.seconds for one in self.trials],
            **{name: [_cell(one.parameters.get(name)) for one in self.trials] for name in searched},
            "error": [one.sentence for one in self.trials],
        }
        return frame_of_columns({name: _column(cells) for name, cells in columns.items()}, backend)


def _cell(value: Any) -> Any:
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else repr(value)


def _column(cells: list[Any]) -> Any:
    """Return the cells of a column; as objects where they are of several kinds."""
    kinds = {type(cell) for cell in cells} - {type(None)}
    if None not in cells and (len(kinds) == 1 or kinds == {int, float}):
        return np.array(cells)
    made = np.empty(len(cells), object)
    made[:] = cells if len(kinds) < 2 else [None if one is None else str(one) for one in cells]
    return made


def tune(
    ranker: Ranker | str,
    train: Any,
    valid: Any = None,
    *,
    space: Mapping[str, Any] | None = None,
    folds: int | None = None,
    trials: int = 20,
    timeout: float | None = None,
    fixed: Collection[str] = (),
    storage: str | Path | None = None,
    study: str | None = None,
    report: Report = lambda _: None,
    executor: Runs | None = None,
    at_once: int = 1,
    random_state: Any = 0,
) -> Tuning:
    """Return ``ranker`` fitted with the best parameters of its search space.

    Parameters
    ----------
    ranker : Ranker or str
        With the parameters that are not to be searched; it is left as it is. A name such as
        ``"lambdamart"`` stands for that ranker with its defaults. Its ``metric``, or
        ``select_metric``, judges the trials: a name or a function.
    train, valid : RankingData or (X, y, qid)
        Trials are fitted to ``train`` and judged on ``valid``.
    space : mapping, default None
        What to search: ``{"num_leaves": (7, 63), "learning_rate": (0.01, 0.3, "log"),
        "reg_lambda": [0, 1, 10]}``. A tuple is a range with both ends, of whole numbers where the
        parameter takes them; a list has choices; distributions of Optuna do as well.
        ``model__max_bins`` is a parameter of the model. None is the ranker's own search space.
    folds : int, default None
        Without ``valid``: cross-validate in this many folds of whole queries, 5 for None. In the
        end the ranker is fitted to all of ``train``.
    trials
        How many in all, those of earlier runs on the same storage included.
    timeout
        Seconds after which no trial is begun; one trial is always run.
    fixed
        Parameters that stay as they are, although they stand at their defaults.
    storage
        Where trials are kept: a file, or an address of Optuna such as ``sqlite:///trials.db``. The
        same call goes on where an earlier one was ended.
    study
        Name within the storage, the ranker's by default.
    report
        Called with each trial that ended.
    executor
        Runs ``at_once`` trials at a time elsewhere, as `rankwright.distributed.executor` does on
        the workers of a cluster, and `concurrent.futures.ProcessPoolExecutor` in processes. They
        are sampled without knowing of each other, and none is pruned.
    at_once
        How many. The same number gives the same trials, however many workers there are.
    random_state
        Seed of the trials' samples.

    Examples
    --------
    >>> import rankwright as rw
    >>> train = rw.load("digits/train", queries=8, documents=12)
    >>> valid = rw.load("digits/test", queries=8, documents=12)
    >>> tuned = rw.tune(rw.MEMR(), train, valid, space={"l2": [0.01, 1.0]}, trials=2)
    >>> len(tuned.trials)
    2
    """
    if at_once < 1 or (at_once > 1 and executor is None):
        raise UsageError(f"at_once must be 1, or more with an executor, not {at_once}.")
    made = _ranker(ranker)
    searched = checked_space(made, trials, space=space, fixed=fixed)
    known = _data(train, "train")
    judge = None if valid is None else valid_data(_data(valid, "valid"), known)
    count = checked_folds(folds, judge is not None)
    optuna = import_optuna()
    began = time.perf_counter()
    with quiet(optuna), _storage_errors(optuna, storage):
        search = Search(optuna, made, known, judge, searched, seed_of(random_state), count)
        kept = open_study(search, storage, study or made.name)
        for trial in search.ended(kept):
            report(trial)
        while (done := len(search.ended(kept))) < trials:
            if done and timeout is not None and time.perf_counter() - began >= timeout:
                break
            if executor is None:
                report(search.run_trial(kept, done))
                continue
            most = min(at_once - done % at_once, trials - done)
            for trial in search.run_elsewhere(kept, done, most, executor):
                report(trial)
        found = search.ended(kept)
        fitted, chosen, value = search.best(kept)
    taken = time.perf_counter() - began
    return Tuning(fitted, chosen, search.metric, made.convention, value, tuple(found), taken)


def checked_space(
    ranker: Ranker,
    trials: int,
    *,
    space: Mapping[str, Any] | None = None,
    fixed: Collection[str] = (),
) -> dict[str, Any]:
    """Return what `tune` searches; what it would refuse is reported here, without any data."""
    import_optuna()
    check_value("the number of trials", trials, int)
    if trials < 1:
        raise UsageError(f"the number of trials must be 1 or more, not {trials}.")
    if space is not None:
        return user_space(ranker, space)
    searched = dict(space_of(ranker, fixed=fixed))
    if not searched:
        raise UsageError(
            f"{ranker.name} on model '{ranker.model_name}' has nothing to search that is not set "
            "already; train it as it is, or set fewer parameters."
        )
    return searched


def checked_folds(folds: int | None, has_valid: bool) -> int:
    """Return the number of folds: 0 where a validation set judges the trials."""
    if folds is None:
        return 0 if has_valid else _FOLDS
    if has_valid:
        raise UsageError(
            "valid and folds both judge the trials; give a validation set, or folds to "
            "cross-validate on the training data."
        )
    check_value("folds", folds, int)
    if folds < 2:
        raise UsageError(f"folds must be 2 or more, not {folds}.")
    return folds


def _ranker(given: Any) -> Ranker:
    if isinstance(given, str):
        return ranker_called(given)
    if not isinstance(given, Ranker):
        kind = given.__name__ if isinstance(given, type) else type(given).__name__
        hint = f"; make one: {kind}()" if isinstance(given, type) else ""
        raise UsageError(
            f"tune takes a ranker or its name, such as 'lambdamart', not {kind}{hint}."
        )
    return given


def _data(given: Any, name: str) -> RankingData:
    if isinstance(given, tuple) and len(given) == 3:
        return ranking_data(*given)
    if not isinstance(given, RankingData):
        raise UsageError(
            f"{name} is RankingData or (X, y, qid), not {type(given).__name__}; rankwright.load "
            "reads a file, RankingData.from_frame a frame."
        )
    return given


# --- trials, kept in a study of Optuna -------------------------------------------------------
# The trials of tuning: sampled, run here or elsewhere, and kept in a study of Optuna.
#
# `rankwright.comparison.tune` says how trials are sampled and judged. A study on a storage is bound
# to its data, ranker, search space and seed by a digest; trials that were killed do not count.


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
        The selection metric on the validation set; of a pruned trial, its best so far.
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


Report = Callable[[Trial], None]
"""Called with each trial that has ended."""


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
        space: Mapping[str, Any],
        seed: int,
        folds: int = 0,
    ) -> None:
        self.optuna, self.ranker, self.train, self.valid = optuna, ranker, train, valid
        self.space, self.seed, self.folds = space, seed, folds
        self.distributions = distributions(space)
        if valid is not None:
            self.pairs = [(train, valid)]
        else:
            cut = k_folds(train, folds, valid=False, seed=seed)
            self.pairs = [(fold.train, fold.test) for fold in cut]
        given = ranker.selection_metric
        self.selects = metric(given, convention=ranker.convention)
        self.metric, self.maximise = metric_name(given, self.selects), self.selects.maximise
        self._fitted: dict[int, Ranker] = {}  # the best of this run alone

    def digest(self) -> str:
        """Return what decides the trials: the data, the ranker, the space and the seed."""
        judge = f"{self.folds} folds" if self.valid is None else content_digest(self.valid)
        identity = {
            "data": [content_digest(self.train), judge],
            "ranker": self.ranker.name,
            "parameters": kept_parameters(self.ranker),
            "space": {name: repr(values) for name, values in self.space.items()},
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

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
        """Sample a trial; return it with the ranker of its parameters."""
        draw = int(stream(self.seed, "tune", number).integers(2**31))
        study.sampler = self.optuna.samplers.TPESampler(seed=draw)
        if number == 0:
            study.enqueue_trial(self._defaults())
        trial = study.ask(self.distributions)
        return trial, clone(self.ranker).set_params(**self.values(trial.params))

    def run_elsewhere(
        self, study: optuna.Study, first: int, count: int, executor: Runs
    ) -> list[Trial]:
        """Run ``count`` trials at a time on an executor and return how they ended."""
        asked = [self._ask(study, first + k) for k in range(count)]
        judged_by = (self.pairs, self.selects, self.metric)
        running = [executor.submit(fit_and_judge, made, *judged_by) for _, made in asked]
        before = len(self.ended(study))
        for (trial, _), future in zip(asked, running, strict=True):
            try:
                fits, value = future.result()
                self._record(study, trial, fits, value)
            except RankwrightError as error:
                self._record_error(study, trial, error)
        return self.ended(study)[before:]

    def _record(
        self, study: optuna.Study, trial: optuna.Trial, fits: list[Ranker], value: float
    ) -> None:
        trial.set_user_attr(_ROUNDS, [fit.best_iteration_ for fit in fits])
        study.tell(trial, value)
        if study.best_trial.number == trial.number and self.valid is not None:
            self._fitted = {trial.number: fits[0]}

    def _record_error(self, study: optuna.Study, trial: optuna.Trial, error: Exception) -> None:
        trial.set_user_attr(_SENTENCE, str(error))
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
                found.append(judged(fitted, valid, self.selects, self.metric))
                if self.valid is None:
                    self._prune_by_folds(trial, found)
            self._record(study, trial, fits, fmean(found))
        except self.optuna.TrialPruned:
            study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
        except RankwrightError as error:
            self._record_error(study, trial, error)
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

    def values(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a trial from the values that Optuna stores."""
        return {
            name: from_plain(values, stored[name])
            for name, values in self.space.items()
            if name in stored
        }

    def _rounds(self, best: list[int]) -> dict[str, int]:
        """Return the parameter for the mean number of rounds, of a model that has one."""
        name = round_parameter(self.ranker)
        if name is None or not best:
            return {}
        own = self.ranker._fits_default_model() and name in self.ranker.get_params(deep=False)
        return {name if own else f"model__{name}": max(1, round(fmean(best)))}

    def _defaults(self) -> dict[str, Any]:
        """Return the parameters of the first trial, with "auto" resolved for this data."""
        known = self.ranker.get_params(deep=True)
        model = self.ranker._part_of("model")
        if hasattr(model, "resolve"):
            chosen = params_of(model.resolve(self.train.n_documents, self.train.n_queries))
            for name, value in known.items():
                if isinstance(value, str) and value == "auto":
                    known[name] = chosen.get(name.removeprefix("model__"), value)
        return {
            name: as_plain(known[name])
            for name, distribution in self.distributions.items()
            if contains(distribution, known[name])
        }


def fit_and_judge(
    ranker: Ranker, pairs: list[Pair], metric: Metric, name: str
) -> tuple[list[Ranker], float]:
    """Fit one trial's ranker, wherever this runs; return the fits and their mean metric."""
    fits = [clone(ranker).fit(train, eval_set=valid) for train, valid in pairs]
    found = [
        judged(fitted, valid, metric, name) for fitted, (_, valid) in zip(fits, pairs, strict=True)
    ]
    return fits, fmean(found)


def judged(fitted: Ranker, valid: RankingData, metric: Metric, name: str) -> float:
    """Return the metric of a fitted ranker on the validation set, with ties averaged."""
    selects = metric.for_selection()
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

    def on_metric(self, t: int, value: float) -> None:
        """Take in the metric on the validation set after round ``t``."""
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
    except Exception as error:  # Optuna's storages raise errors of many packages
        why = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise UsageError(f"the storage {storage} cannot be opened: {why}.") from None
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
        study.tell(
            trial.number, state=states.FAIL
        )  # it was killed; its parameters are sampled again
    return study


@contextmanager
def _storage_errors(optuna: Any, storage: str | Path | None) -> Iterator[None]:
    """Say in a sentence that a study cannot be written, such as on a full disk."""
    try:
        yield
    except (OSError, optuna.exceptions.StorageInternalError) as error:
        if storage is None:
            raise
        cause = getattr(error.__cause__, "orig", error)  # of the database, below Optuna's
        why = getattr(cause, "strerror", None) or str(cause).partition("\n")[0]
        raise DataError(
            f"the storage {storage} cannot be written: {why}; make room for it and run again: "
            "trials that ended are in it."
        ) from None


def _storage(optuna: Any, storage: str | Path | None) -> Any:
    if storage is None or "://" in str(storage):
        return storage
    check_target(storage, "--storage")
    path = Path(storage)
    path.open("ab").close()
    lock = _JournalLock(path)
    try:
        lock.acquire()
        lock.release()
    except (ImportError, OSError):  # Windows and some file systems have no such locks
        backend = optuna.storages.journal.JournalFileBackend(str(path))
    else:
        backend = optuna.storages.journal.JournalFileBackend(str(path), lock)
    return optuna.storages.JournalStorage(backend)


class _JournalLock:
    """A lock for Optuna's journal that the system releases when a process is killed.

    Optuna's own stays, and keeps the next run waiting for half a minute.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def acquire(self) -> bool:
        """Wait for the lock."""
        import fcntl

        self._descriptor = os.open(self._path, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def import_optuna() -> Any:
    """Return Optuna, or name the extra that brings it."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtraError("Optuna", "tune", "tuning") from None
    return optuna


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from logging each trial: the caller reports them."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
