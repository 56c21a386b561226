"""Following a fit: learning curves, the best round, early stopping, the progress bar.

Curves, and with them the best round and early stopping, count tied scores as the mean over their
orders, whatever the convention of reports says (`rankwright.metrics.base.Metric.for_selection`).

On few queries the curve of a validation set jumps from round to round, and its maximum is chance.
``early_stopping_rounds="auto"`` goes by the curve smoothed over neighbouring rounds,

    c_t = mean of v_s over |s - t| <= 10,                                                      (1)

and ends the run 50 rounds after its maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parallel import thread_count
from rankwright.core.types import F64, AnyArray, CheckpointState
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.base import Metric, metric, metric_name
from rankwright.metrics.evaluation import Evaluator
from rankwright.rankers.fitting import (
    AUTO_ROUNDS,
    Iteration,
    IterationCallback,
    Progress,
    smoothed,
)

if TYPE_CHECKING:
    from rankwright.persist.checkpoint import Checkpoint

Arrays = Callable[[], Mapping[str, AnyArray]]
_OWN = "watch."  # begins the names of what the callback itself keeps


@dataclass
class Selection:
    """Records the metric after each round and keeps the best round on the validation set.

    Parameters
    ----------
    metric, convention
        What is recorded and selects the model, with ties averaged; a metric that falls as rankings
        improve (such as ``pair_error``) is minimised.
    train, valid
        The data; without ``valid`` the last round is kept.
    eval_sets
        Several validation sets by name, whose queries follow each other in ``valid``; the last one
        selects. Without it ``valid`` is one set.
    early_stopping_rounds
        End the run after this many rounds without a better value; None never does; "auto" selects
        and ends by the smoothed curve (1).
    callbacks
        Called with an `Iteration` after each round; one that returns True ends the run.
    progress
        Called with the round and a short text after each round; one that has a method ``on_metric``
        is also given the round and the metric on the validation set, and may end the run by
        raising.
    checkpoint
        Where the run is kept; see `go_on`.
    """

    metric: str | Metric | Callable[..., Any]
    convention: str
    train: RankingData
    valid: RankingData | None
    eval_sets: Mapping[str, RankingData] = field(default_factory=dict)
    early_stopping_rounds: int | str | None = None
    callbacks: Sequence[IterationCallback] = ()
    progress: Progress | None = None
    n_jobs: int | None = None
    curve: dict[str, list[float]] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    interrupted: bool = False
    resuming: bool = False  # from a checkpoint, and not yet at a new round
    _kept: CheckpointState | None = None
    _best: int = 0
    _last: int = 0
    _seen_before: int = 0

    def __post_init__(self) -> None:
        named = metric(self.metric, convention=self.convention)
        selects = named.for_selection()
        self._name, self._maximise = metric_name(self.metric, named), selects.maximise
        self._evaluators: dict[str, Evaluator] = {}
        self._rows: dict[str, slice] = {"valid": slice(None)}
        if self.valid is None:
            return
        *others, last = self.eval_sets.values() or (self.valid,)
        threads = thread_count(self.n_jobs)  # once, not in each round
        sets = {**dict(zip(self.eval_sets, others, strict=False)), "valid": last}
        ends = np.cumsum([one.n_documents for one in sets.values()]).tolist()
        self._rows = {
            name: slice(end - one.n_documents, end)
            for end, (name, one) in zip(ends, sets.items(), strict=True)
        }
        self._evaluators = {
            name: Evaluator(one, selects, n_jobs=threads)
            for name, one in {"train": self.train, **sets}.items()
        }

    @property
    def wants_train(self) -> bool:
        """Whether scores on train are of use: only beside those on the validation set."""
        return self.valid is not None and "train" not in self.eval_sets

    def on_iteration(self, t: int, value: float, train: F64 | None, valid: F64 | None) -> bool:
        """Take in the loss and the scores after round ``t``; True ends the run.

        A round that was seen before a checkpoint is shown again where a run comes the same way;
        it did not end the run then.
        """
        if t <= self._seen_before:
            return False
        self._last = t
        self._add("loss", value)
        text = f"loss {value:.6g}"
        if train is not None and self.wants_train:
            self._evaluate("train", train)
        if valid is not None:
            for name, rows in self._rows.items():  # the one that selects is the last
                past = self._evaluate(name, valid[rows] if len(self._rows) > 1 else valid)
            text = f"valid {self._name} {past[-1]:.4f}"
            self._best = self._best_of(past, t)
        self.resuming = False
        if self.progress is not None:
            self.progress(t, text)
            if valid is not None and hasattr(self.progress, "on_metric"):
                self.progress.on_metric(t, past[-1])
        given = AUTO_ROUNDS if self._smooths else self.early_stopping_rounds
        stopped = given is not None and 0 < self._best <= t - int(given)
        return self._call_back(t, value) or stopped

    def _call_back(self, t: int, value: float) -> bool:
        """Call every callback of the caller's; return whether one of them ends the run."""
        if not self.callbacks:
            return False
        metrics = {name: curve[self._name][-1] for name, curve in self.evals_result().items()}
        seen = Iteration(t, float(value), metrics, self.best())
        ended = [callback(seen) is True for callback in self.callbacks]  # all are called
        return any(ended)

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return the curves of the metric by data set, under the caller's names."""
        names = dict.fromkeys(self._evaluators)
        called = {name: name for name in names}
        if self.eval_sets:
            called["valid"] = list(self.eval_sets)[-1]
        found = {}
        for name in names:
            curve = self.curve.get(f"{name} {self._name}")
            if curve is not None:
                found[called[name]] = {self._name: curve}
        return found

    def best(self) -> int:
        """Return the best round on the validation set, or the last one."""
        return self._best or self._last

    # --- checkpoints -------------------------------------------------------------------------

    @property
    def wants_state(self) -> bool:
        """Whether there are checkpoints."""
        return self.checkpoint is not None

    def go_on(self, kept: CheckpointState) -> None:
        """Take up the curves where an earlier run left them."""
        begin = f"{_OWN}curve."
        curves = sorted(name for name in kept.state if name.startswith(begin))
        rounds = ArraySpec(f"{_OWN}rounds", "int64", (2,), low=0)
        specs = (rounds, *(ArraySpec(name, "float64", ("n",), finite=False) for name in curves))
        own = {name: array for name, array in kept.state.items() if name.startswith(_OWN)}
        check_arrays(specs, own, "the checkpoint")
        self._best, self._last = own[rounds.name].tolist()
        self._seen_before, self.resuming = self._last, True
        for name in curves:
            _, _, title = name.removeprefix(begin).partition(".")
            self.curve[title] = kept.state[name].tolist()
        state = {name: a for name, a in kept.state.items() if not name.startswith(_OWN)}
        self._kept = CheckpointState(kept.round, state, kept.added)

    def load_state(self) -> CheckpointState | None:
        """Return what an earlier run of the same fit kept."""
        return self._kept

    def save_state(self, t: int, state: Arrays, added: Arrays | None = None) -> None:
        """Write what is needed to go on after round ``t``, where that is due."""
        if self.checkpoint is not None and self.checkpoint.due(t):
            own: dict[str, AnyArray] = {f"{_OWN}rounds": np.array([self._best, self._last])}
            for number, (title, past) in enumerate(self.curve.items()):
                own[f"{_OWN}curve.{number}.{title}"] = np.array(past, np.float64)
            self.checkpoint.write(t, {**state(), **own}, None if added is None else added())

    # --- curves ------------------------------------------------------------------------------

    @property
    def _smooths(self) -> bool:
        return self.early_stopping_rounds == "auto"

    def _best_of(self, past: list[float], t: int) -> int:
        """Return the best round so far, where ``past`` ends with the value of round ``t``."""
        if self._smooths:
            curve = smoothed(np.array(past))
            return t - len(past) + 1 + int(np.argmax(curve if self._maximise else -curve))
        *before, value = past
        better = not before or (value > max(before) if self._maximise else value < min(before))
        return t if better else self._best

    def _evaluate(self, name: str, scores: F64) -> list[float]:
        """Add the metric of these scores to its curve and return the curve."""
        (value,) = self._evaluators[name].means(scores).values()
        return self._add(f"{name} {self._name}", value)

    def _add(self, name: str, value: float) -> list[float]:
        past = self.curve.setdefault(name, [])
        past.append(value)
        return past
