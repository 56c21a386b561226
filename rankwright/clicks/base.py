"""Base of click models: fitting and evaluation.

A click model gives P(C_r = 1 | C_1, ..., C_{r-1}), the probability of a click at each position
given the clicks above. With the weights w of sessions, the observed clicks c and N impressions,

    log_likelihood  = 1/N sum w ln P(C_r = c_r | clicks above)                                   (1)
    perplexity at r = 2^(-mean of log2 P(C_r = c_r)), P not given the clicks above               (2)

The mean in (2) is over the sessions with position r, and the perplexity of a log is the mean over
its positions [chuklin2015click]. A model without information has a perplexity of 2, a perfect
model of 1. The conditional perplexity uses the probabilities of (1) in (2).

A parameter is a probability. With a successes and b failures, which are expected numbers if they
are hidden, its value is (a + s) / (a + b + 2 s): ``smoothing`` s is the number of successes, and of
failures, that is added. A parameter without any observation is 0.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rankwright.clicks.pairs import PairTable, check_log, sums_of
from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.data.frames import frame_of_columns
from rankwright.errors import DataError, RankwrightError, UsageError

_HIGHEST = 1.0 - 1e-6  # of a parameter that is fitted by EM: at 1 it could never change again


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
        (2) for each position from the first; NaN if the log does not contain it.
    sessions, impressions : float
        Sums of session weights.

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
        """Return a dictionary for JSON."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }


class ClickModel(ABC):
    """Base of click models.

    Attributes
    ----------
    parameters_ : dict from names to arrays
        Fitted parameters; the class documents the index of each array.
    pairs_ : PairTable
        The queries and documents of parameters that belong to pairs.

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
    """Parameters that belong to (query, document) pairs; further ones belong to positions."""

    smoothing: float
    n_jobs: int | None

    parameters_: dict[str, F64]
    pairs_: PairTable

    # --- to implement ------------------------------------------------------------------------

    @abstractmethod
    def fit(self, log: ClickLog) -> Self:
        """Fit the model to a log."""

    @abstractmethod
    def _probabilities(self, log: ClickLog, pair: I64, *, conditional: bool) -> F64:
        """Return the click probability of each impression, given the clicks above or not."""

    # --- evaluation --------------------------------------------------------------------------

    def click_probabilities(self, log: ClickLog, *, conditional: bool = True) -> F64:
        """Return the click probability of each impression.

        Parameters
        ----------
        conditional
            Whether to condition on the clicks above in the same session.
        """
        return self._probabilities(log, self._pairs_of(log), conditional=conditional)

    def evaluate(self, log: ClickLog) -> ClickScores:
        """Return log-likelihood and perplexity on a log."""
        pair = self._pairs_of(log)
        probabilities = [
            self._probabilities(log, pair, conditional=conditional) for conditional in (True, False)
        ]
        weight = log.impression_weights()
        shown = np.bincount(log.position, weight)[1:]
        impressions = float(shown.sum())
        if impressions == 0.0:
            raise DataError("the log has no impressions to evaluate a click model on.")
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sums = [  # of log-likelihoods by position
                np.bincount(log.position, weight * np.log(np.where(log.click, p, 1.0 - p)))[1:]
                for p in probabilities
            ]
            conditional, marginal = (np.exp(-values / shown) for values in sums)  # (2)
        log_likelihood = float(sums[0].sum())
        sessions = float(log.n_sessions if log.weight is None else log.weight.sum())
        return ClickScores(
            log_likelihood=log_likelihood / impressions,  # (1)
            session_log_likelihood=log_likelihood / sessions,
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
        return frame_of_columns(
            columns | {name: self.parameters_[name] for name in self.of_pairs}, backend
        )

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

    def _pairs_of(self, log: ClickLog) -> I64:
        """Return the pair of each impression; a number beyond the last for unknown pairs."""
        self._check_fitted()
        check_log(log)
        return self.pairs_.codes(log)

    def _at(self, name: str, index: AnyArray) -> F64:
        """Return values of a parameter; 0.5 for indices beyond the last, which are unknown."""
        values = np.append(self.parameters_[name], 0.5)
        return values[np.minimum(index, len(values) - 1)]

    def _ratio(self, code: AnyArray, successes: AnyArray, trials: AnyArray) -> F64:
        """Return the smoothed ratio of the successes and trials with each code."""
        return self._smoothed(sums_of(code, successes), sums_of(code, trials))

    def _smoothed(self, successes: F64, trials: F64) -> F64:
        """Return smoothed probabilities; 0.5 without any trial."""
        total = trials + 2.0 * self.smoothing
        nothing = total <= 0.0
        return np.where(nothing, 0.5, (successes + self.smoothing) / np.where(nothing, 1.0, total))


class EMClickModel(ClickModel):
    """Base of models with hidden variables, fitted by expectation maximisation.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the last iteration changed no parameter by more than ``tol``.
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

    def _maximise(
        self,
        step: Callable[[dict[str, F64]], tuple[dict[str, F64], float]],
        sizes: dict[str, int],
        impressions: float,
    ) -> None:
        """Call ``step`` until no parameter changes.

        ``step`` returns the next parameters and the log-likelihood of its arguments. ``sizes`` has
        the length of each parameter.
        """
        if not impressions > 0.0:
            raise DataError("the log has no impressions to fit a click model to.")
        now = {name: np.full(size, 0.5) for name, size in sizes.items()}
        self.curve_, self.converged_ = [], False
        while len(self.curve_) < self.max_iter and not self.converged_:
            new, value = step(now)
            new = {name: np.minimum(values, _HIGHEST) for name, values in new.items()}
            self.curve_.append(value / impressions)
            changes = [np.abs(new[name] - now[name]).max(initial=0.0) for name in now]
            self.converged_ = bool(max(changes) <= self.tol)
            now = new
        self.n_iter_ = len(self.curve_)
        self.parameters_ = now
