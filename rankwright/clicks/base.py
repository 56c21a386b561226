"""What all click models share: fitting and evaluation.

A click model gives P(C_r = 1 | C_1, ..., C_{r-1}), the probability of a click at each position
given the clicks above. With w the weights of sessions, c the observed clicks and N impressions

    log_likelihood  = 1/N sum w ln P(C_r = c_r | clicks above)                                   (1)
    perplexity at r = 2^(-mean of log2 P(C_r = c_r)), P not given the clicks above               (2)

where the mean in (2) is over the sessions with position r, and the perplexity of a log is the mean
over its positions [chuklin2015click]. A model that knows nothing has a perplexity of 2, a perfect
one of 1. The conditional perplexity has the probabilities of (1) in (2).

A parameter is a probability. With a the number of successes and b that of failures, expected ones
where they are hidden, its value is (a + s) / (a + b + 2 s): ``smoothing`` s is a number of
observations of either kind that are added. A parameter without any observation is 0.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rankwright.clicks.sessions import PairTable, Sessions, check_log
from rankwright.core.types import F64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.data.frames import frame_of_columns
from rankwright.errors import DataError, RankwrightError, UsageError

HIGHEST = 1.0 - 1e-6
"""The highest value of a parameter that is fitted by EM: at 1 no observation would ever move it."""


class NotFittedClickModelError(RankwrightError, ValueError):
    """A click model is used before it is fitted."""


@dataclass(frozen=True, slots=True)
class ClickScores:
    """How well a click model predicts a log; see the equations of `rankwright.clicks.base`.

    Attributes
    ----------
    log_likelihood : float
        Mean over impressions, (1).
    session_log_likelihood : float
        Mean over sessions.
    perplexity, conditional_perplexity : float
        Means over positions.
    perplexity_by_position, conditional_perplexity_by_position : array
        (2) for each position from the first; NaN where the log has none.
    sessions, impressions : float
        Weights of what was looked at.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 0, 0, 0], session_sizes=[2, 2])
    >>> scores = clicks.GCTR(smoothing=0).fit(log).evaluate(log)
    >>> round(scores.log_likelihood, 3), scores.perplexity_by_position.round(2)
    (-0.562, array([2.31, 1.33]))
    """

    log_likelihood: float
    session_log_likelihood: float
    perplexity: float
    conditional_perplexity: float
    perplexity_by_position: F64
    conditional_perplexity_by_position: F64
    sessions: float
    impressions: float

    def to_dict(self) -> dict[str, Any]:
        """Return all values as JSON holds them."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}


class ClickModel(ABC):
    """Base of click models.

    Attributes
    ----------
    parameters_ : dict from names to arrays
        What was learnt; see the class for what the arrays are indexed by.
    pairs_ : PairTable
        The queries and documents that parameters of pairs belong to.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> model = clicks.SDBN().fit(log)
    >>> model.click_probabilities(log).round(2)
    array([0.5 , 0.22, 0.5 , 0.67])
    """

    name: ClassVar[str]
    of_pairs: ClassVar[tuple[str, ...]]
    """Parameters that belong to (query, document) pairs; the others belong to positions."""

    smoothing: float
    n_jobs: int | None

    parameters_: dict[str, F64]
    pairs_: PairTable

    # --- what a model has to say -------------------------------------------------------------

    @abstractmethod
    def fit(self, log: ClickLog) -> Self:
        """Fit the model to a log."""

    @abstractmethod
    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:
        """Return the click probability of each impression, given the clicks above or not."""

    # --- what follows ------------------------------------------------------------------------

    def click_probabilities(self, log: ClickLog, *, conditional: bool = True) -> F64:
        """Return the click probability of each impression.

        Parameters
        ----------
        conditional
            Whether it is that given the clicks above in the same session.
        """
        return self._probabilities(self._sessions(log), conditional=conditional)

    def evaluate(self, log: ClickLog) -> ClickScores:
        """Return log-likelihood and perplexity on a log."""
        taken = self._sessions(log)
        weight = np.repeat(taken.weight, log.sizes)
        log_given = _log_of(self._probabilities(taken, conditional=True), log.click)
        log_alone = _log_of(self._probabilities(taken, conditional=False), log.click)
        shown, given, alone = (  # sums by position
            np.bincount(log.position, values)[1:]
            for values in (weight, weight * log_given, weight * log_alone)
        )
        sessions, impressions = float(taken.weight.sum()), float(shown.sum())
        if impressions == 0.0:
            raise DataError("the log has no impressions to evaluate a click model on.")
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            conditional, marginal = np.exp(-given / shown), np.exp(-alone / shown)  # (2)
        return ClickScores(
            log_likelihood=float(given.sum() / impressions),  # (1)
            session_log_likelihood=float(given.sum() / sessions),
            perplexity=float(np.nanmean(marginal)),
            conditional_perplexity=float(np.nanmean(conditional)),
            perplexity_by_position=marginal,
            conditional_perplexity_by_position=conditional,
            sessions=sessions,
            impressions=impressions,
        )

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each (query, document) pair and its parameters."""
        self._check_fitted()
        pairs = self.pairs_
        columns = {
            "query": pairs.query_ids[pairs.query],
            "document": pairs.document_ids[pairs.document],
        }
        for name in self.of_pairs:
            columns[name] = self.parameters_[name]
        return frame_of_columns(columns, backend)

    def get_params(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def __repr__(self) -> str:
        default = signature(type(self)).parameters
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != default[name].default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    # --- for models --------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "parameters_"):
            raise NotFittedClickModelError(f"{self!r} is not fitted yet; call fit(log) first.")

    def _check_params(self) -> None:
        if not (np.isfinite(self.smoothing) and self.smoothing >= 0.0):
            raise UsageError(f"smoothing must be 0 or more, not {self.smoothing}.")

    def _sessions(self, log: ClickLog) -> Sessions:
        self._check_fitted()
        check_log(log)
        return Sessions.of(log, self.pairs_.codes(log))

    def _padded(self, name: str) -> F64:
        """Return a parameter with 0.5 behind its last value, for what was not in the log."""
        return np.append(self.parameters_[name], 0.5)

    def _at(self, name: str, index: AnyArray) -> F64:
        """Return the values of a parameter; 0.5 where the index is beyond the last."""
        values = self._padded(name)
        return values[np.minimum(index, len(values) - 1)]

    def _smoothed(self, successes: F64, trials: F64) -> F64:
        """Return probabilities from counts; 0.5 where there is nothing to go by."""
        total = trials + 2.0 * self.smoothing
        nothing = total <= 0.0
        return np.where(nothing, 0.5, (successes + self.smoothing) / np.where(nothing, 1.0, total))


class EMClickModel(ClickModel):
    """Base of models with hidden variables, fitted by expectation maximisation.

    Attributes
    ----------
    n_iter_ : int
        Iterations that were made.
    converged_ : bool
        Whether the last one changed no parameter by more than ``tol``.
    curve_ : list of float
        The log-likelihood (1) of the log before each iteration.
    """

    n_iter_: int
    converged_: bool
    curve_: list[float]

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-5,
        n_jobs: int | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        super()._check_params()
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more, not {self.max_iter}.")
        if not self.tol >= 0.0:
            raise UsageError(f"tol must be 0 or more, not {self.tol}.")

    def _iterate(
        self,
        step: Callable[[dict[str, F64]], tuple[dict[str, F64], float]],
        start: dict[str, F64],
        impressions: float,
    ) -> None:
        """Call ``step`` until nothing changes; it returns parameters and the log-likelihood."""
        now, self.curve_, self.converged_ = start, [], False
        while len(self.curve_) < self.max_iter and not self.converged_:
            then, value = step(now)
            self.curve_.append(value / impressions)
            moved = [float(np.abs(then[name] - now[name]).max(initial=0.0)) for name in now]
            self.converged_ = max(moved) <= self.tol
            now = then
        self.n_iter_ = len(self.curve_)
        self.parameters_ = now


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _log_of(probability: F64, click: AnyArray) -> F64:
    with np.errstate(divide="ignore"):
        return np.log(np.where(click, probability, 1.0 - probability))
