"""Adam: steps of even length in every weight, over batches of whole queries, for networks.

With g the gradient of a batch, by component and with the means m and v of g and g^2 corrected for
their start at 0,

    m <- b1 m + (1 - b1) g,    v <- b2 v + (1 - b2) g^2                                        (1)
    w <- w - rate (m / (sqrt(v) + eps) + decay w)                                              (2)

(`kingma2015adam`, with the decay apart from the gradient as in `loshchilov2019adamw`); b1 = 0.9,
b2 = 0.999, eps = 1e-8. As in (2) the size of a gradient cancels, one rate serves losses that differ
by orders of magnitude. The rate follows a schedule over the epochs. Batches come in another order
in each epoch, sampled from a stream of the seed and the epoch, so that an `AdamState` goes on to
the same bytes as a run that was never stopped.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from rankwright.core.openmp import passive_waiting
from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray, Callback
from rankwright.errors import MissingExtraError, UsageError
from rankwright.solvers.oracle_log import memory_of, put_back

Arrays = tuple[Any, ...]  # NumPy's, or on a GPU torch's until somebody looks at them


def _step(done: float) -> float:
    return 1.0 if done < 0.5 else 0.1 if done < 0.75 else 0.01


SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "linear": lambda done: 1.0 - done,
    "step": _step,
}


class BatchProblem(Protocol):
    """What Adam sees of a model: tensors to change, and gradients by batches."""

    parameters: list[Any]  # torch's leaf tensors
    decayed: list[bool]  # which of them weight decay pulls to 0
    n_batches: int

    def begin_epoch(self, t: int, order: Sequence[int]) -> None:
        """Sample the noise of epoch ``t``, counted from 0; its batches come in this order."""

    def batch_grad(self, t: int, batch: int) -> tuple[Any, list[Any]]:
        """Return the loss of a batch in epoch ``t`` and its gradient in each parameter."""

    def epoch_value(self, t: int, values: list[Any]) -> float:
        """Return the loss of epoch ``t`` from those of its batches."""

    def watched_scores(self, callback: Callback) -> tuple[F64 | None, F64 | None]:
        """Return the scores on training and validation data that ``callback`` wants."""


@dataclass(frozen=True, slots=True)
class AdamState:
    """All that is needed to go on with the next epoch.

    Parameters
    ----------
    epoch, steps
        How many were made.
    weights, first, second
        The parameters, and m and v of (1).
    best
        The parameters after the round that the callback likes best so far.
    """

    epoch: int
    steps: int
    weights: Arrays
    first: Arrays
    second: Arrays
    best: Arrays

    def arrays(self) -> dict[str, AnyArray]:
        """Return the state as named arrays, for a file."""
        named: dict[str, AnyArray] = {"adam_so_far": np.array([self.epoch, self.steps])}
        for kind in ("weights", "first", "second", "best"):
            for number, array in enumerate(getattr(self, kind)):
                named[f"adam_{kind}_{number}"] = host_array(array)
        return named

    @classmethod
    def restore(cls, named: Mapping[str, AnyArray]) -> AdamState:
        """Build a state from its own arrays."""
        epoch, steps = named["adam_so_far"].tolist()

        def all_of(kind: str) -> Arrays:
            count = sum(name.startswith(f"adam_{kind}_") for name in named)
            return tuple(named[f"adam_{kind}_{number}"] for number in range(count))

        kinds = [all_of(kind) for kind in ("weights", "first", "second", "best")]
        return cls(epoch, steps, *kinds)


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam over batches of whole queries; takes every loss that has a gradient.

    Parameters
    ----------
    epochs
        Passes over the data.
    learning_rate
        Length of the first steps.
    schedule : "constant", "cosine", "linear" or "step"
        How the rate falls over the epochs: not, to 0 along half a cosine or a line, or to a tenth
        at half of them and to a hundredth at three quarters.
    weight_decay
        How strongly matrices of weights are pulled to 0; biases are not.
    random_state
        Decides the order of the batches.
    """

    epochs: int = 100
    learning_rate: float = 0.001
    schedule: str = "constant"
    weight_decay: float = 0.0
    random_state: int = 0

    def solve(self, problem: BatchProblem, callback: Callback) -> AdamState:
        """Take steps until all epochs are made, the callback ends the run or Ctrl-C does."""
        self._check()
        optimizer = self._optimizer(problem)
        kept = callback.load_state()
        if kept is None:
            state = _state_of(problem, optimizer, 0, 0, ())
        else:
            state = AdamState.restore(kept.state)
            put_back(problem, kept.state)
            _put_back(problem, optimizer, state)
        first = state.epoch
        try:
            for t in range(first, self.epochs):
                values = self._epoch(problem, optimizer, t)
                shown = problem.watched_scores(callback)
                stop = callback.on_iteration(t + 1, problem.epoch_value(t, values), *shown)
                steps = len(values)
                best = None if callback.best() == t + 1 else state.best
                state = now = _state_of(problem, optimizer, t + 1, state.steps + steps, best)
                if stop:
                    break
                callback.save_state(t + 1, lambda: {**now.arrays(), **memory_of(problem)})  # noqa: B023
        except KeyboardInterrupt:  # what was learnt so far is kept
            if state.epoch == first:
                raise
            callback.interrupted = True
        return state

    def rate(self, t: int) -> float:
        """Return the learning rate of epoch ``t``, counted from 0."""
        return self.learning_rate * SCHEDULES[self.schedule](t / self.epochs)

    def _epoch(self, problem: BatchProblem, optimizer: Any, t: int) -> list[Any]:
        for group in optimizer.param_groups:
            group["lr"] = self.rate(t)
        order = [0]
        if problem.n_batches > 1:
            order = stream(self.random_state, "adam", t).permutation(problem.n_batches).tolist()
        problem.begin_epoch(t, order)
        values = []
        for batch in order:
            value, gradient = problem.batch_grad(t, batch)
            for parameter, own in zip(problem.parameters, gradient, strict=True):
                parameter.grad = own
            optimizer.step()
            values.append(value)
        return values

    def _optimizer(self, problem: BatchProblem) -> Any:
        torch = load_torch()
        groups: dict[bool, list[Any]] = {True: [], False: []}
        for parameter, decayed in zip(problem.parameters, problem.decayed, strict=True):
            groups[decayed].append(parameter)
        return torch.optim.AdamW(
            [
                {"params": members, "weight_decay": self.weight_decay if decayed else 0.0}
                for decayed, members in groups.items()
                if members
            ],
            lr=self.learning_rate,
            fused=True,
        )

    def _check(self) -> None:
        if self.epochs < 1:
            raise UsageError(f"epochs must be 1 or more, not {self.epochs}.")
        if not self.learning_rate > 0.0:
            raise UsageError(f"learning_rate must be above 0, not {self.learning_rate}.")
        if not self.weight_decay >= 0.0:
            raise UsageError(f"weight_decay must be 0 or more, not {self.weight_decay}.")
        if self.schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise UsageError(f"schedule must be one of {known}, not '{self.schedule}'.")


def check_torch() -> None:
    """Say how to install torch where it is not there; quick, for it is not imported."""
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "neural", "a network")


def check_cuda(instead: str) -> None:
    """Raise unless torch finds a GPU; ``instead`` says what to use."""
    if not load_torch().cuda.is_available():
        raise UsageError(f"torch finds no CUDA device here; use {instead}.")


def load_torch() -> Any:
    """Return torch, imported on first use, or say how to install it."""
    check_torch()
    if "torch" in sys.modules:
        import torch
    else:
        with passive_waiting():  # LightGBM may come to share torch's OpenMP library
            import torch

    return torch


def _state_of(
    problem: BatchProblem, optimizer: Any, epoch: int, steps: int, best: Arrays | None
) -> AdamState:
    """Return copies of all that changes; without ``best`` these weights are the best."""
    weights = tuple(_copy(parameter) for parameter in problem.parameters)
    held = [optimizer.state.get(parameter) or {} for parameter in problem.parameters]
    first, second = (
        tuple(
            _copy(moments[name] if name in moments else like.new_zeros(like.shape))
            for moments, like in zip(held, problem.parameters, strict=True)
        )
        for name in ("exp_avg", "exp_avg_sq")
    )
    return AdamState(epoch, steps, weights, first, second, weights if best is None else best)


def _put_back(problem: BatchProblem, optimizer: Any, state: AdamState) -> None:
    torch = load_torch()
    shapes = [tuple(parameter.shape) for parameter in problem.parameters]
    parts = (state.weights, state.first, state.second, state.best)
    if any([tuple(array.shape) for array in part] != shapes for part in parts):
        raise UsageError("the state to go on from is that of another network.")
    with torch.no_grad():
        for number, parameter in enumerate(problem.parameters):
            like = {"dtype": parameter.dtype, "device": parameter.device}
            parameter.copy_(torch.tensor(state.weights[number], **like))
            if state.steps:
                optimizer.state[parameter] = {
                    "step": torch.tensor(float(state.steps), device=parameter.device),
                    "exp_avg": torch.tensor(state.first[number], **like),
                    "exp_avg_sq": torch.tensor(state.second[number], **like),
                }


def _copy(tensor: Any) -> Any:
    """Return a copy where the tensor is: to copy from a GPU would be to wait for it."""
    copied = tensor.detach().clone()
    return copied if copied.is_cuda else copied.numpy()


def host_array(array: Any) -> AnyArray:
    """Return an array of a state as NumPy has it."""
    found: AnyArray = array if isinstance(array, np.ndarray) else array.cpu().numpy()
    return found
