"""Choose a ranker's parameters on valid data, with Optuna.

Each trial fits the ranker with parameters from its search space (`rankwright.rankers.search_space`)
and is judged by the selection metric on valid. The first trial stands at the defaults, so tuning
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
from typing import Any

from rankwright.core.rng import seed_of
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
from rankwright.rankers.search_space import Domain, space_of

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
        Those that were chosen.
    metric, convention : str
        What valid was judged by.
    value : float
        The best trial's metric on valid.
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


def tune(
    ranker: Ranker,
    train: RankingData,
    valid: RankingData,
    *,
    trials: int = 20,
    timeout: float | None = None,
    space: Mapping[str, Domain] | None = None,
    fixed: Collection[str] = (),
    storage: str | Path | None = None,
    study: str | None = None,
    report: Report = lambda _: None,
    executor: Runs | None = None,
    at_once: int = 1,
    random_state: Any = 0,
) -> Tuning:
    """Return ``ranker`` fitted with the parameters that are best on ``valid``.

    Parameters
    ----------
    ranker
        With the parameters that are not to be searched; it is left as it is. Its ``metric``, or
        ``select_metric``, judges the trials: a name or a function.
    trials
        How many in all, those of earlier runs on the same storage included.
    timeout
        Seconds after which no trial is begun; one trial is always run.
    space
        What to search, such as ``{"model__num_leaves": Ints(4, 64)}``; the ranker's own search
        space by default.
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
    searched = checked_space(ranker, trials, space=space, fixed=fixed)
    optuna = import_optuna()
    began = time.perf_counter()
    with quiet(optuna):
        search = Search(optuna, ranker, train, valid, searched, seed_of(random_state))
        kept = open_study(search, storage, study or ranker.name)
        for trial in search.ended(kept):
            report(trial)
        while (done := len(search.ended(kept))) < trials:
            if done and timeout is not None and time.perf_counter() - began >= timeout:
                break
            if executor is None:
                report(search.run_trial(kept, done))
                continue
            count = min(at_once - done % at_once, trials - done)
            for trial in search.run_elsewhere(kept, done, count, executor):
                report(trial)
        found = search.ended(kept)
        fitted, best = search.best(kept)
    taken = time.perf_counter() - began
    chosen = best.params, search.metric, ranker.convention, best.value
    return Tuning(fitted, *chosen, tuple(found), taken)


def checked_space(
    ranker: Ranker,
    trials: int,
    *,
    space: Mapping[str, Domain] | None = None,
    fixed: Collection[str] = (),
) -> dict[str, Domain]:
    """Return what `tune` searches; what it would refuse is told here, without any data."""
    import_optuna()
    if trials < 1:
        raise UsageError(f"the number of trials must be 1 or more, not {trials}.")
    searched = dict(space_of(ranker, fixed=fixed) if space is None else space)
    if not searched:
        raise UsageError(
            f"{ranker.name} on model '{ranker.model_name}' has nothing to search that is not set "
            "already; train it as it is, or set fewer parameters."
        )
    return searched
