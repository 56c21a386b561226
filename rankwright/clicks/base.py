"""What all click models share: fitting, evaluation, simulation, and files.

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

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from rankwright import __version__
from rankwright.clicks.sessions import LogParts, PairTable, Sessions, parts_of
from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray
from rankwright.data.click_log import ClickLog
from rankwright.data.frames import frame_of_columns
from rankwright.errors import DataError, RankwrightError, UsageError
from rankwright.persist.container import ModelFileError, read_parts, write_parts

HIGHEST = 1.0 - 1e-6
"""The highest value of a parameter that is fitted by EM: at 1 no observation would ever move it."""

_NOT_KEPT = ("n_jobs",)


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
    standard_errors_ : dict from names to arrays
        Of each parameter; NaN where the log says nothing about it.
    pairs_ : PairTable
        The queries and documents that parameters of pairs belong to.

    Examples
    --------
    >>> from rankwright import clicks
    >>> log = clicks.ClickLog.from_arrays([7, 7], list("abab"), [1, 0, 0, 1], session_sizes=[2, 2])
    >>> model = clicks.SDBN().fit(log)
    >>> model.click_probabilities(log).round(2)
    array([0.5 , 0.22, 0.5 , 0.67])
    >>> model.simulate(log, random_state=1).click.shape
    (4,)
    """

    name: ClassVar[str]
    of_pairs: ClassVar[tuple[str, ...]]
    """Parameters that belong to (query, document) pairs,"""
    of_all: ClassVar[tuple[str, ...]] = ()
    """those with one value; the others belong to positions."""
    parameter_names: ClassVar[tuple[str, ...]]

    smoothing: float
    n_jobs: int | None

    parameters_: dict[str, F64]
    standard_errors_: dict[str, F64]
    pairs_: PairTable

    # --- what a model has to say -------------------------------------------------------------

    @abstractmethod
    def fit(self, log: LogParts | Sequence[ClickLog]) -> Self:
        """Fit the model to a log, several logs, or a log in a file.

        Parameters
        ----------
        log
            A `ClickLog`, a list of these, or what `open_log` returns, which is read in parts.
        """

    @abstractmethod
    def _probabilities(self, sessions: Sessions, *, conditional: bool) -> F64:
        """Return the click probability of each impression, given the clicks above or not."""

    def _sampled(self, sessions: Sessions, uniform: F64) -> AnyArray:
        """Return clicks, sampled with a number in [0, 1) for each impression."""
        return uniform < self._probabilities(sessions, conditional=False)

    # --- what follows ------------------------------------------------------------------------

    def click_probabilities(self, log: ClickLog, *, conditional: bool = True) -> F64:
        """Return the click probability of each impression.

        Parameters
        ----------
        conditional
            Whether it is that given the clicks above in the same session.
        """
        return self._probabilities(self._sessions(log), conditional=conditional)

    def evaluate(self, log: LogParts | Sequence[ClickLog]) -> ClickScores:
        """Return log-likelihood and perplexity on a log."""
        sums = np.zeros((3, 1))  # impressions, log P given the clicks above, log P, by position
        sessions = 0.0
        for part in parts_of(log):
            sums = _grown(sums, part.n_positions + 1)
            taken = self._sessions(part)
            weight = np.repeat(taken.weight, part.sizes)
            for row, values in enumerate(
                (
                    weight,
                    weight * _log_of(self._probabilities(taken, conditional=True), part.click),
                    weight * _log_of(self._probabilities(taken, conditional=False), part.click),
                )
            ):
                sums[row] += np.bincount(part.position, values, sums.shape[1])
            sessions += float(taken.weight.sum())
        shown, given, alone = sums[:, 1:]
        impressions = float(shown.sum())
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

    def simulate(self, log: ClickLog, *, random_state: int = 0) -> ClickLog:
        """Return the lists of a log with clicks sampled from the model."""
        uniform = stream(random_state, "clicks", "simulate").random(log.n_impressions)
        return log._replace(click=self._sampled(self._sessions(log), uniform))

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a frame with a row for each (query, document) pair and its parameters.

        Each parameter has a second column with its standard error, ``..._se``.
        """
        self._check_fitted()
        pairs = self.pairs_
        columns = {
            "query": pairs.query_ids[pairs.query] if len(pairs) else pairs.query,
            "document": pairs.document_ids[pairs.document] if len(pairs) else pairs.document,
        }
        for name in self.of_pairs:
            columns[name] = self.parameters_[name]
            columns[f"{name}_se"] = self.standard_errors_[name]
        return frame_of_columns(columns, backend)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file; `rankwright.clicks.load_model` reads it."""
        self._check_fitted()
        pairs = self.pairs_
        arrays = {
            **{f"value.{name}": array for name, array in self.parameters_.items()},
            **{f"error.{name}": array for name, array in self.standard_errors_.items()},
            "query": pairs.query,
            "document": pairs.document,
        }
        ids = {
            "query_ids": _json_ids(pairs.query_ids),
            "document_ids": _json_ids(pairs.document_ids),
        }
        receipt = {
            "rankwright": __version__,
            "click_model": self.name,
            "parameters": {
                name: value for name, value in self.get_params().items() if name not in _NOT_KEPT
            },
        }
        write_parts(
            path,
            receipt,
            {
                "arrays.safetensors": save_arrays(
                    {name: np.ascontiguousarray(array) for name, array in arrays.items()}
                ),
                "ids.json": json.dumps(ids).encode(),
            },
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

    def _sessions(self, log: ClickLog) -> Sessions:
        self._check_fitted()
        return Sessions.of(log, self.pairs_, grow=False)

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

    def _binomial_errors(self, value: F64, trials: F64) -> F64:
        """Return standard errors of probabilities that were counted."""
        total = trials + 2.0 * self.smoothing
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total > 0.0, np.sqrt(value * (1.0 - value) / total), np.nan)

    def _prior_information(self, value: F64) -> F64:
        """Return the curvature that smoothing adds to the log-likelihood."""
        if self.smoothing == 0.0:
            return np.zeros(len(value))
        return self.smoothing / value**2 + self.smoothing / (1.0 - value) ** 2


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

    max_iter: int
    tol: float

    n_iter_: int
    converged_: bool
    curve_: list[float]

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


# --- standard errors -------------------------------------------------------------------------


def covariance_of(information: F64) -> F64:
    """Return the inverse of a symmetric matrix, NaN for what the log says nothing about."""
    unknown = np.diag(information) <= 0.0
    filled = information + np.diag(unknown.astype(np.float64))
    try:
        found = np.asarray(np.linalg.inv(filled), np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(information, np.nan)
    found[unknown] = found[:, unknown] = np.nan
    return found


def roots(variance: F64) -> F64:
    """Return standard errors, NaN where the log says nothing."""
    with np.errstate(invalid="ignore"):
        return np.sqrt(variance)


# --- files -----------------------------------------------------------------------------------


def restored(kinds: dict[str, type[ClickModel]], path: str | Path) -> ClickModel:
    """Return the click model of a file, of one of these kinds."""
    receipt, parts = read_parts(path)
    name = receipt.get("click_model")
    if not isinstance(name, str) or name not in kinds:
        raise ModelFileError(
            f"{path} holds no click model; rankwright.load_model reads the files of rankers."
        )
    try:
        model = kinds[name](**receipt["parameters"])
        model._check_params()
        arrays = load_arrays(parts["arrays.safetensors"])
        ids = json.loads(parts["ids.json"])
        held = [one.removeprefix("value.") for one in arrays if one.startswith("value.")]
        query_ids, document_ids = _ids_of(ids["query_ids"]), _ids_of(ids["document_ids"])
        _check_held(model, held, arrays, len(query_ids), len(document_ids))
    except (KeyError, TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise ModelFileError(f"{path} does not hold what its receipt says: {error}") from None
    model.parameters_ = {one: arrays[f"value.{one}"] for one in held}
    model.standard_errors_ = {one: arrays[f"error.{one}"] for one in held}
    model.pairs_ = PairTable.restored(query_ids, document_ids, arrays["query"], arrays["document"])
    return model


def _check_held(
    model: ClickModel, held: list[str], arrays: dict[str, AnyArray], queries: int, documents: int
) -> None:
    specs = [
        ArraySpec("query", "int64", ("pairs",), below="queries"),
        ArraySpec("document", "int64", ("pairs",), below="documents"),
    ]
    for name in held:
        shape: tuple[int | str, ...] = (f"values of {name}",)
        if name in model.of_pairs:
            shape = ("pairs",)
        elif name in model.of_all:
            shape = (1,)
        specs.append(ArraySpec(f"value.{name}", "float64", shape, low=0.0, high=1.0))
        specs.append(ArraySpec(f"error.{name}", "float64", shape, finite=False))
    missing = [name for name in model.parameter_names if name not in held]
    if missing:
        raise DataError(f"the parameter '{missing[0]}' is missing.")
    check_arrays(specs, arrays, queries=queries, documents=documents)


def _json_ids(ids: AnyArray) -> list[Any]:
    return [one if isinstance(one, int | str) else str(one) for one in ids.tolist()]


def _ids_of(listed: Any) -> AnyArray:
    if not isinstance(listed, list) or not all(isinstance(one, int | str) for one in listed):
        raise DataError("its ids are neither numbers nor texts.")
    if len({str(one) for one in listed}) < len(listed):
        raise DataError("two of its ids are the same.")
    if all(isinstance(one, int) and abs(one) < 1 << 63 for one in listed):
        return np.array(listed, np.int64)
    return np.array([str(one) for one in listed])


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _log_of(probability: F64, click: AnyArray) -> F64:
    with np.errstate(divide="ignore"):
        return np.log(np.where(click, probability, 1.0 - probability))


def _grown(sums: F64, length: int) -> F64:
    """Return the sums with zeros behind them, up to a length."""
    missing = max(0, length - sums.shape[-1])
    return np.concatenate((sums, np.zeros((*sums.shape[:-1], missing))), axis=-1)


def add_at(sums: F64, index: AnyArray, values: F64) -> F64:
    """Return ``sums`` with values added at places that may be beyond its end."""
    n = max(len(sums), int(index.max()) + 1 if len(index) else 0)
    return _grown(sums, n) + np.bincount(index, values, n)
