"""Networks under any loss: layers of units between the features and the score.

A network has any number of hidden layers (none for a linear score) and optionally a list context,
with which a score depends on the other documents of the query. Features are standardised inside the
model, and the scaling is folded into the first layer of the fitted network. Training uses torch;
scoring needs only NumPy (`rankwright.models.fitted_network`).

The order of the queries in training depends only on their content and the seed, so shuffled rows
and renamed queries change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from rankwright.core.parameters import (
    Count,
    Missing,
    NonNegative,
    Positive,
)
from rankwright.core.products import transposed_times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss, Round, offers
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, MissingExtraError, UsageError
from rankwright.losses.base import document_weight, order_weight
from rankwright.models.fitted_network import FittedNetwork
from rankwright.models.linear import deviations
from rankwright.models.missing import fill_values, filled
from rankwright.models.schema import ModelPart
from rankwright.solvers.choice import lacking

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 1.0,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "linear": lambda progress: 1.0 - progress,
    "step": lambda progress: 1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01,
}
"""Factors of the learning rate after a share of the epochs."""


def _check_sizes(name: str, value: Any) -> None:
    """Raise unless ``value`` is a whole number or a sequence of them."""
    sizes = value if isinstance(value, Sequence | np.ndarray) else [value]
    if isinstance(value, str) or not all(isinstance(size, Integral) for size in sizes):
        raise UsageError(
            f"{name} must be whole numbers, such as (8, 4) (on the command line {name}=8,4), not "
            f"{value!r}."
        )


class Scaling(NamedTuple):
    """A feature x enters the network as (x - shift) / deviation."""

    shift: F64
    deviation: F64


@dataclass(frozen=True, slots=True, repr=False)
class Network(ModelPart):
    """Layers of units between the features and the score; takes dense or sparse features.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer; () for a linear score.
    activation : "sigmoid", "relu", "tanh" or "elu"
        Activation of the hidden units.
    dropout : float
        Probability that a hidden unit is dropped in a step.
    list_context : int
        Heads of self-attention between the documents of a query; 0 for none. The width of the last
        hidden layer must be a multiple of it.
    standardize : bool
        Scale features to mean 0 and standard deviation 1 on the training data.
    epochs : int
        Passes over the data.
    learning_rate : float
        Initial learning rate of AdamW.
    schedule : "constant", "cosine", "linear" or "step"
        Learning rate over the epochs: "cosine" and "linear" decrease to 0; "step" divides by 10
        after half of the epochs and again after three quarters.
    weight_decay : float
        Weight decay of matrices; biases are not decayed.
    batch_size : int
        Documents in a step, in whole queries.
    missing : None, "mean" or "zero"
        Replacement for missing values; None refuses them.
    device : "auto", "cpu" or "cuda"
        Device for training; "auto" uses a GPU if there is one. The loss is also computed there,
        except for losses that are named in a warning. Scoring uses the CPU.
    precision : "single" or "double"
        Floating-point precision of training.
    deterministic : bool
        Use only reproducible algorithms on a GPU. Training on the CPU is always reproducible.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="lambdarank", model=rw.models.Network(hidden_layer_sizes=(64, 32)))
    Ranker(loss='lambdarank', model=Network(hidden_layer_sizes=(64, 32)))
    """

    # On validation data of three folds of OHSUMED and MQ2008 with one seed, these are as good as or
    # better than a dozen others for ranknet and lambdarank: 10 to 64 units, rates 0.0003 to 0.01.
    hidden_layer_sizes: Annotated[Any, _check_sizes] = (32,)
    activation: Literal["sigmoid", "relu", "tanh", "elu"] = "sigmoid"
    dropout: float = 0.0
    list_context: int = 0
    standardize: bool = True
    epochs: Count = 60
    learning_rate: Positive = 0.003
    schedule: Literal["constant", "cosine", "linear", "step"] = "constant"
    weight_decay: NonNegative = 0.0
    batch_size: Count = 1024
    missing: Missing = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["single", "double"] = "single"
    deterministic: bool = True

    fitted_class: ClassVar[Any] = FittedNetwork
    resumable: ClassVar[bool] = True

    @staticmethod
    def check_installed() -> None:
        """Raise if torch is not installed, without importing it."""
        if find_spec("torch") is None:
            raise MissingExtraError("torch", "neural", "a network")

    def check(self) -> None:
        """Raise for parameters out of range."""
        hidden, heads = self._hidden(), self.list_context
        if min(hidden, default=1) < 1:
            raise UsageError(f"hidden layers have 1 unit or more, not {min(hidden)}.")
        if heads < 0 or (heads and (not hidden or hidden[-1] % heads)):
            raise UsageError(
                f"list_context={heads} needs a last hidden layer of a multiple of its heads; "
                f"hidden_layer_sizes is {hidden}."
            )
        if not 0.0 <= self.dropout < 1.0:
            raise UsageError(f"dropout must be from 0 to below 1, not {self.dropout}.")

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedNetwork | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round after each epoch, from the weights of ``start`` if given.

        The state of a round must be read before the next round.
        """
        if not offers(loss, "grad_queries"):
            message = lacking("network", ["grad_queries"], loss, "Use a linear model or trees.")
            raise IncompatibleError(message)
        from rankwright.models import network_training as training  # imports torch

        device = training.choose_device(self.device)
        fill = fill_values(data.X, self.missing)
        X = filled(data.X, fill, "network")
        weight = document_weight(data)
        mean = _rounded(transposed_times_vector(X, weight) / float(weight.sum()))
        shift = mean if self.standardize else np.zeros(data.n_features)
        scaling = Scaling(shift, _rounded(deviations(X, weight, scale=self.standardize)))
        weights = self._first_weights(scaling, random_state, start)
        has_bias = not loss.traits.shift_invariant
        net = training.Net(self, weights, output_bias=has_bias, device=device)
        rows, ordered = _in_seeded_order(data, random_state, n_jobs)
        bound = training.batch_loss(loss, ordered, device, n_jobs=n_jobs)
        trainer = training.Trainer(
            self, net, bound, X, rows, ordered.indptr, scaling, seed=random_state, n_jobs=n_jobs
        )
        if resume is not None:
            trainer.load_state(resume)
        gpu_scores = None
        if valid is not None and device == "cuda":
            valid_X = filled(valid.X, fill, "network")
            gpu_scores = training.gpu_scorer(net, valid_X, valid.indptr, scaling)
        while trainer.epochs < self.epochs:
            valid_scores = None
            with training.torch_settings(deterministic=self.deterministic and device == "cuda"):
                value = trainer.epoch()
                model = partial(self._fitted, trainer.weights(), scaling, mean, fill)
                if gpu_scores is not None:
                    valid_scores = gpu_scores()
                elif valid is not None:
                    valid_scores = model().scores_of(valid, n_jobs=n_jobs)
            yield Round(trainer.epochs, value, valid_scores, model, trainer.state)

    def rate(self, t: int) -> float:
        """Return the learning rate of epoch ``t``, counted from 0."""
        return self.learning_rate * SCHEDULES[self.schedule](t / self.epochs)

    def _hidden(self) -> tuple[int, ...]:
        return tuple(np.atleast_1d(self.hidden_layer_sizes).tolist())

    def _first_weights(self, scaling: Scaling, seed: int, start: FittedNetwork | None) -> list[F64]:
        """Return the weights of ``start`` for scaled features, or random ones and biases of 0.

        Random weights are uniform, with a variance that preserves the size of signals.
        """
        hidden, n_features = self._hidden(), len(scaling.shift)
        if start is not None:
            shape = ([n_features, *hidden], self.list_context, self.activation)
            if ([len(w) for w, _ in start.layers], start.heads, start.activation) != shape:
                raise UsageError(
                    f"start is a {start!r}; a network that continues it needs the same layers and "
                    "features."
                )
            (weight, bias), *layers = start.layers
            layers.insert(0, (weight * scaling.deviation[:, None], bias + scaling.shift @ weight))
            return [*(array for layer in layers for array in layer), *start.context]
        sizes = (n_features, *hidden, 1)
        weights: list[F64] = []
        for number, (n_in, n_out) in enumerate(pairwise(sizes)):
            weights += [_uniform(seed, number, n_in, n_out, self.activation), np.zeros(n_out)]
        for number in range(4 if self.list_context else 0):
            width = sizes[-2]
            weights.append(_uniform(seed, len(sizes) + number, width, width, "linear"))
        return weights

    def _fitted(
        self, weights: Sequence[Any], scaling: Scaling, mean: F64, fill: F64 | None
    ) -> FittedNetwork:
        arrays = [weight.cpu().numpy().astype(np.float64) for weight in weights]
        arrays[0] /= scaling.deviation[:, None]  # for features in the scale of the data
        arrays[1] -= scaling.shift @ arrays[0]
        n = 2 * len(self._hidden()) + 2
        layers = tuple(zip(arrays[0:n:2], arrays[1:n:2], strict=True))
        context, heads = tuple(arrays[n:]), int(self.list_context)
        return FittedNetwork(layers, context, heads, self.activation, mean, fill, len(mean))


def _uniform(seed: int, number: int, n_in: int, n_out: int, activation: str) -> F64:
    """Return weights of variance 2 / n_in for rectifiers and 2 / (n_in + n_out) otherwise."""
    variance = 2.0 / n_in if activation in ("relu", "elu") else 2.0 / (n_in + n_out)
    bound = math.sqrt(3.0 * variance)
    return stream(seed, "network", "weights", number).uniform(-bound, bound, (n_in, n_out))


def _in_seeded_order(data: RankingData, seed: int, n_jobs: int | None) -> tuple[I64, RankingData]:
    """Return rows and data without features, with the queries in an order sampled from the seed.

    Queries with a single grade contribute nothing and are dropped, unless all queries have a single
    grade.
    """
    rows, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
    queries = np.flatnonzero(order_weight(ordered))
    if not len(queries):
        queries = np.arange(ordered.n_queries)
    queries = stream(seed, "network", "queries").permutation(queries)
    ordered_rows = ordered.rows_of(queries)
    return rows[ordered_rows], ordered.in_order(ordered_rows, queries)


def _rounded(values: F64) -> F64:
    """Return values rounded to nine digits, to remove the effect of the order of summation."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(mantissa * 2.0**30) / 2.0**30, exponent)
