"""Choose a ranker's parameters on a validation set, or by cross-validation, with Optuna.

Each trial fits the ranker with parameters from its search space (`rankwright.rankers.search_space`)
and is judged by the selection metric on valid; without valid, by its mean over folds of whole
queries. The first trial stands at the defaults, so tuning
never ends below them on valid; the others are drawn by Optuna's TPE sampler. A trial whose learning
curve falls behind the median of those before it is pruned.

The draw of a trial depends on the seed and on the trials before it alone, so the same seed gives
the same trials, also where a run was killed and went on from its ``storage``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankwright.core.parts import check_kind
from rankwright.core.rng import seed_of
from rankwright.data.frames import frame_of_columns
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.experiments.tune_trials import (
    Runs,
    Search,
    Trial,
    import_optuna,
    open_study,
    quiet,
)
from rankwright.rankers.base import Ranker
from rankwright.rankers.base import ranker as ranker_called
from rankwright.rankers.inputs import ranking_data, valid_data
from rankwright.rankers.search_space import Domain, checked_domains, space_of

_FOLDS = 5

Report = Callable[[Trial], None]
"""Called with each trial that has ended."""


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
        The best trial's metric on valid, or its mean over the folds.
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
        are drawn without knowing of each other, and none is pruned.
    at_once
        How many. The same number gives the same trials, however many workers there are.
    random_state
        Seed of the trials' draws.
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
    with quiet(optuna):
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
) -> dict[str, Domain]:
    """Return what `tune` searches; what it would refuse is told here, without any data."""
    import_optuna()
    check_kind("the number of trials", trials, ["int"])
    if trials < 1:
        raise UsageError(f"the number of trials must be 1 or more, not {trials}.")
    if space is not None:
        return checked_domains(ranker, space)
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
    check_kind("folds", folds, ["int"])
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
