"""Run the rounds of a fit: evaluation, early stopping, checkpoints, progress and Ctrl-C.

A model contains only its algorithm and yields a `Round` for each tree, epoch, penalty or
generation. `run` passes each round to the callbacks and returns the model of the best round. Each
callback is one class with one job.

Curves, and with them the best round and early stopping, count tied scores as the mean over their
orders, whatever convention reports use (`rankwright.metrics.base.Metric.for_selection`).

On few queries the validation curve jumps from round to round, and its maximum is chance.
``early_stopping_rounds="auto"`` uses the curve smoothed over neighbouring rounds,

    c_t = mean of v_s over |s - t| <= 10,                                                      (1)

and ends the run 50 rounds after its maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parallel import thread_count
from rankwright.core.types import F64, AnyArray, FittedModel, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError, brief
from rankwright.metrics.base import metric, metric_name
from rankwright.metrics.evaluation import Evaluator

Progress = Callable[[int, str], None]

AUTO_ROUNDS = 50
"""Rounds without a better smoothed value after which "auto" ends a run."""

_NEIGHBOURS = 10  # on each side, of a smoothed value
_ROUNDS = ArraySpec("history.rounds", "int64", (2,), low=0)
_CURVE = "history.curve."


@dataclass(frozen=True, slots=True)
class Iteration:
    """Argument of the user's callbacks of `Ranker.fit`, after each iteration.

    Attributes
    ----------
    number : int
        The iteration, counted from 1.
    loss : float
        The training loss.
    metrics : dict of str to float
        The selection metric on each validation set, by the name of the set, as in
        ``evals_result_``; empty without a validation set.
    best_iteration : int
        The best iteration so far on the validation set that selects; without one, this iteration.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> numbers = []
    >>> ranker = rw.GBDT(n_estimators=3)
    >>> fitted = ranker.fit(data, callbacks=[lambda i: numbers.append(i.number)])
    >>> numbers
    [1, 2, 3]
    """

    number: int
    loss: float
    metrics: dict[str, float]
    best_iteration: int


IterationCallback = Callable[[Iteration], bool | None]
"""A function of an `Iteration`; returning True ends the fit."""


@dataclass(frozen=True)
class Result:
    """Outcome of `run`: the best model, and the curves of the loss and the metric."""

    model: FittedModel
    curve: dict[str, list[float]]
    evals_result: dict[str, dict[str, list[float]]]
    best_iteration: int
    interrupted: bool
    resumed_from: int | None = None


def run(
    rounds: Iterator[Round],
    history: EvaluationHistory,
    callbacks: Sequence[Callable[[Round], bool]] = (),
    checkpointing: Callable[[Round], None] | None = None,
    resumed: FittedModel | None = None,
) -> Result:
    """Consume ``rounds`` and return the best model, also after Ctrl-C.

    Parameters
    ----------
    rounds : iterator of Round
        Rounds of a model. Rounds that ``history`` has evaluated before a checkpoint are not
        evaluated again; they only contribute their models.
    history : EvaluationHistory
        Chooses the best round.
    callbacks : sequence of functions of a Round
        Called in order after ``history``; all are called, and the run ends if one returns True.
    checkpointing : function of a Round, optional
        Called after each round that does not end the run.
    resumed : fitted model, optional
        The best model before a checkpoint, for models that cannot rebuild earlier rounds.
    """
    models: dict[int, Callable[[], FittedModel]] = {}
    if resumed is not None:
        models[history.best] = lambda: resumed
    interrupted = False
    try:
        for round_ in rounds:
            models[round_.number] = round_.model
            if round_.number <= history.last:  # rebuilt after a resume
                continue
            history(round_)
            if not history.smooths:  # a smoothed curve may still move its maximum to any round
                models = {n: m for n, m in models.items() if n in (history.best, round_.number)}
            answers = [callback(round_) for callback in callbacks]
            if any(answers):
                break
            if checkpointing is not None:
                checkpointing(round_)
    except KeyboardInterrupt:
        if not models:
            raise
        interrupted = True
    curve, evals_result = history.curve, history.evals_result()
    return Result(models[history.best](), curve, evals_result, history.best, interrupted)


def last_model(rounds: Iterator[Round]) -> FittedModel:
    """Return the model of the last round, without any callback."""
    for round_ in rounds:
        last = round_
    return last.model()


# --- callbacks ---------------------------------------------------------------------------------


class EvaluationHistory:
    """Record the loss and the metric after each round, and choose the best round.

    Parameters
    ----------
    metric, convention
        Metric that is recorded and selects the model, with ties averaged; a metric that falls as
        rankings improve (such as ``pair_error``) is minimised.
    eval_sets : mapping from names to RankingData
        Validation sets, whose documents follow each other in the scores of a round. The last one
        selects. Without any, the last round is the best.
    smooths : bool
        Whether the smoothed curve (1) selects.
    evaluators : mapping from names to evaluators
        Replace those of ``eval_sets``, for scores that are not in this process.

    Attributes
    ----------
    curve : dict of lists
        The loss, and the metric on each set, after each round. The set that selects is "valid".
    best, last : int
        The best round, and the last one.
    """

    def __init__(
        self,
        metric_: Any,
        convention: str,
        eval_sets: Mapping[str, RankingData],
        *,
        smooths: bool = False,
        n_jobs: int | None = None,
        evaluators: Mapping[str, Any] | None = None,
    ) -> None:
        named = metric(metric_, convention=convention)
        self.metric_name, self._maximise = metric_name(metric_, named), named.maximise
        self.smooths = smooths
        self.curve: dict[str, list[float]] = {}
        self.best = self.last = 0
        if evaluators is None and eval_sets:
            selects, threads = named.for_selection(), thread_count(n_jobs)
            evaluators = {
                name: Evaluator(data, selects, n_jobs=threads) for name, data in eval_sets.items()
            }
        self._evaluators = evaluators or {}
        ends = np.cumsum([data.n_documents for data in eval_sets.values()]).tolist()
        self._rows = {
            name: slice(end - data.n_documents, end)
            for end, (name, data) in zip(ends, eval_sets.items(), strict=True)
        }

    def __call__(self, round_: Round) -> bool:
        """Record a round; never ends the run."""
        self.last = round_.number
        self._append("loss", round_.loss)
        if round_.valid_scores is None or not self._evaluators:
            self.best = self.last
            return False
        for name, evaluator in self._evaluators.items():
            scores = round_.valid_scores
            if len(self._evaluators) > 1:
                scores = scores[self._rows[name]]
            (value,) = evaluator.means(scores).values()
            values = self._append(self._title(name), value)
        self.best = self._best_of(values)
        return False

    @property
    def value(self) -> float | None:
        """The metric of the last round on the set that selects, or None without one."""
        if not self._evaluators:
            return None
        values = self.curve.get(self._title([*self._evaluators][-1]))
        return values[-1] if values else None

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return the curves of the metric by the caller's names of the sets."""
        return {
            name: {self.metric_name: self.curve[self._title(name)]}
            for name in self._evaluators
            if self._title(name) in self.curve
        }

    def _title(self, name: str) -> str:
        is_last = name == [*self._evaluators][-1]
        return f"{'valid' if is_last else name} {self.metric_name}"

    def _append(self, title: str, value: float) -> list[float]:
        values = self.curve.setdefault(title, [])
        values.append(float(value))
        return values

    def _best_of(self, values: list[float]) -> int:
        """Return the best round so far; ``values`` end with that of the last round."""
        if self.smooths:
            curve = smoothed(np.array(values))
            position = int(np.argmax(curve if self._maximise else -curve))
            return self.last - len(values) + 1 + position
        *earlier, value = values
        if not earlier:
            return self.last
        is_better = value > max(earlier) if self._maximise else value < min(earlier)
        return self.last if is_better else self.best

    # --- checkpoints -------------------------------------------------------------------------

    def state(self) -> dict[str, AnyArray]:
        """Return the curves and the best round as arrays."""
        arrays: dict[str, AnyArray] = {_ROUNDS.name: np.array([self.best, self.last])}
        for number, (title, values) in enumerate(self.curve.items()):
            arrays[f"{_CURVE}{number}.{title}"] = np.array(values, np.float64)
        return arrays

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Continue the curves of an earlier run from its `state`."""
        names = [name for name in arrays if name.startswith(_CURVE)]
        curves = [ArraySpec(name, "float64", ("n",), finite=False) for name in names]
        history = {name: arrays[name] for name in (*names, _ROUNDS.name) if name in arrays}
        check_arrays((_ROUNDS, *curves), history, "the checkpoint")
        self.best, self.last = arrays[_ROUNDS.name].tolist()
        numbered = {}
        for name in names:
            number, _, title = name.removeprefix(_CURVE).partition(".")
            numbered[int(number)] = title, arrays[name].tolist()
        self.curve = dict(numbered[number] for number in sorted(numbered))


def smoothed(values: F64) -> F64:
    """Return the mean of each value and its neighbours; windows are cut off at the ends."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    low = np.maximum(np.arange(n) - _NEIGHBOURS, 0)
    high = np.minimum(np.arange(n) + _NEIGHBOURS + 1, n)
    means: F64 = (sums[high] - sums[low]) / (high - low)  # (1)
    return means


@dataclass(frozen=True)
class EarlyStopping:
    """End the run after ``rounds`` rounds without a better value."""

    history: EvaluationHistory
    rounds: int

    def __call__(self, round_: Round) -> bool:
        """Return whether the run ends."""
        has_valid = self.history.value is not None
        return has_valid and self.history.best <= round_.number - self.rounds


@dataclass(frozen=True)
class ProgressBar:
    """Show each round to ``show(round, text)``.

    If ``show`` has a method ``on_metric``, it is also given the round and the metric on the
    validation set, and may end the run by raising an exception.
    """

    history: EvaluationHistory
    show: Progress

    def __call__(self, round_: Round) -> bool:
        """Show a round; never ends the run."""
        value = self.history.value
        text = f"loss {round_.loss:.6g}"
        if value is not None:
            text = f"valid {self.history.metric_name} {value:.4f}"
        self.show(round_.number, text)
        if value is not None and hasattr(self.show, "on_metric"):
            self.show.on_metric(round_.number, value)
        return False


@dataclass(frozen=True)
class UserCallbacks:
    """Call the user's functions with an `Iteration`."""

    history: EvaluationHistory
    functions: Sequence[IterationCallback]

    def __call__(self, round_: Round) -> bool:
        """Call all functions and return whether the run ends."""
        metrics = {
            name: curves[self.history.metric_name][-1]
            for name, curves in self.history.evals_result().items()
        }
        iteration = Iteration(round_.number, float(round_.loss), metrics, self.history.best)
        answers = [function(iteration) is True for function in self.functions]
        return any(answers)


# --- arguments of fit --------------------------------------------------------------------------

_MISNAMED = {
    "group": "the sizes of queries are group_sizes=, the query id of each row is qid=",
    "groups": "the query id of each row is qid=, the sizes of queries are group_sizes=",
    "query_id": "the query id of each row is qid=",
    "eval_group": "validation data is eval_set=(X, y, qid), with the query id of each row",
    "eval_qid": "validation data is eval_set=(X, y, qid), with the query id of each row",
    "valid": "validation data is eval_set=, ranking data or (X, y, qid)",
    "validation_data": "validation data is eval_set=, ranking data or (X, y, qid)",
    "early_stopping_rounds": "early_stopping_rounds= is a parameter of the ranker itself",
    "eval_metric": "metric= is a parameter of the ranker itself",
    "categorical_feature": "categorical_feature= is a parameter of the ranker itself",
    "start": "the fitted ranker to continue from is init_model=",
    "weight": "weights are sample_weight= (a row each) or query_weight= (a query each)",
}


def refuse_misnamed(arguments: dict[str, Any]) -> None:
    """Raise for unknown arguments of ``fit``; suggest the name if another library has them."""
    for name in arguments:
        hint = _MISNAMED.get(name, "help(Ranker.fit) lists its arguments")
        raise UsageError(f"fit takes no argument '{name}': {hint}.")


def check_callbacks(callbacks: Any) -> None:
    """Raise unless ``callbacks`` is a sequence of functions; callbacks of LightGBM are not."""
    if callable(callbacks) or not isinstance(callbacks, Sequence):
        raise UsageError(
            f"callbacks is a list of functions, not {type(callbacks).__name__}; write "
            "callbacks=[function]."
        )
    for callback in callbacks:
        library = type(callback).__module__.partition(".")[0]
        if library in ("lightgbm", "xgboost", "catboost"):
            raise UsageError(
                f"{type(callback).__name__} is a callback of {library}; early_stopping_rounds= and "
                "verbose= are parameters of the ranker here, evals_result_ has the metric of each "
                "iteration, and a callback is a function of a rankwright.Iteration."
            )
        if not callable(callback):
            raise UsageError(
                "a callback is a function of a rankwright.Iteration, not "
                f"{type(callback).__name__}."
            )


def print_round(number: int, text: str) -> None:
    """Print a round on standard error: the progress of verbose fits."""
    import sys

    sys.stderr.write(f"{number:6d}  {text}\n")


def progress_function(progress: Progress | bool | None, verbose: bool) -> Progress | None:
    """Return the function to call after each round, or None."""
    if progress is None:
        progress = verbose
    if isinstance(progress, bool):
        return print_round if progress else None
    if not callable(progress):
        raise UsageError(
            "progress must be True, or a function that is called with the round and a text, not "
            f"{brief(progress)}."
        )
    return progress


@contextmanager
def keeping_best(ranker: Any) -> Iterator[None]:
    """Suppress Ctrl-C that ends the fit of ``ranker`` inside after some rounds."""
    try:
        yield
    except KeyboardInterrupt:
        if not hasattr(ranker, "interrupted_"):
            raise
