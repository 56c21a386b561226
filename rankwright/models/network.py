"""Networks under any loss: layers of units between features and score, trained by Adam (torch).

The net is that of `rankwright.models.fitted_network`: any number of hidden layers, none for a
linear score, and on demand a list context, by which documents see the others of their query.
Features are standardised inside the model. Training sees queries in an order fixed by their content
and the seed, so that shuffled rows and renamed queries change nothing. Torch trains; scoring needs
NumPy alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np

from rankwright.core.parts import Part
from rankwright.core.products import transposed_times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, Callback, FloatMatrix, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.base import bound_loss, document_weight, order_weight
from rankwright.models.fitted_network import ACTIVATIONS, FittedNetwork
from rankwright.models.linear import deviations
from rankwright.models.missing import fill_values, filled
from rankwright.models.network_design import Design
from rankwright.models.network_problem import NetworkProblem
from rankwright.solvers.adam import Adam, check_torch, load_torch
from rankwright.solvers.choice import lacking

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("single", "double", "mixed")
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


@dataclass(frozen=True, slots=True, repr=False)
class Network(Part):
    """Layers of units between features and score; takes dense or sparse features.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer; () for a linear score.
    activation : "sigmoid", "relu", "tanh" or "elu"
    dropout : float
        Share of the hidden units that each step leaves out.
    list_context : int
        Heads of self-attention by which the documents of a query see each other; 0: none. The last
        hidden layer is a multiple of it wide.
    standardize : bool
        Bring features to mean 0 and deviation 1, by the training data.
    epochs, learning_rate, schedule, weight_decay
        See `rankwright.solvers.adam.Adam`.
    batch_size : int
        Documents in a step, in whole queries.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    device : "auto", "cpu" or "cuda"
        Where to train; "auto" takes a GPU where there is one. Scoring is on the CPU.
    precision : "single", "double" or "mixed"
        Of training; "mixed" multiplies matrices in bfloat16 on a GPU, all but the last, which makes
        the score, and is single on the CPU.
    deterministic : bool
        On a GPU, let torch take reproducible algorithms alone; on the CPU all are.
    """

    # On valid data of three folds of OHSUMED and MQ2008, one seed, as good as or better than the
    # dozen other nets tried for ranknet and lambdarank: 10 to 64 units, rates 0.0003 to 0.01.
    hidden_layer_sizes: tuple[int, ...] = (32,)
    activation: str = "sigmoid"
    dropout: float = 0.0
    list_context: int = 0
    standardize: bool = True
    epochs: int = 60
    learning_rate: float = 0.003
    schedule: str = "constant"
    weight_decay: float = 0.0
    batch_size: int = 1024
    missing: str | None = None
    device: str = "auto"
    precision: str = "single"
    deterministic: bool = True

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedNetwork | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedNetwork:
        """Minimise the loss, from the weights of ``start`` where given."""
        if not loss.traits.queries:
            raise IncompatibleError(
                lacking("network", ["queries"], loss, "Use a linear model or trees.")
            )
        torch = load_torch()
        self._check()
        self._check_start(start, data.n_features)
        fill = fill_values(data.X, self.missing)
        X = filled(data.X, fill, "network")
        design = self._design(loss, data, X, fill)
        rows, ordered = _in_seeded_order(data, random_state, n_jobs)
        with self._calm(torch) as device:
            problem = NetworkProblem(
                design,
                design.draw(random_state) if start is None else design.unfolded(start),
                X,
                rows,
                ordered,
                bound_loss(loss, ordered, n_jobs=n_jobs),
                data,
                batch_size=self.batch_size,
                device=device,
                precision=self.precision,
                seed=random_state,
                n_jobs=n_jobs,
            )
            names = {f.name for f in fields(Adam)} - {"random_state"}
            adam = Adam(**{name: getattr(self, name) for name in names}, random_state=random_state)
            end = adam.solve(problem, callback)
        return design.fitted(problem.weights(end.best))

    def _design(self, loss: Loss, data: RankingData, X: FloatMatrix, fill: F64 | None) -> Design:
        weight = document_weight(data)
        mean = _rounded(transposed_times_vector(X, weight) / float(weight.sum()))
        plain = np.zeros(data.n_features), np.ones(data.n_features)
        shift, deviation = (mean, _rounded(deviations(X, weight))) if self.standardize else plain
        return Design(
            sizes=(data.n_features, *self._hidden()),
            activation=self.activation,
            dropout=float(self.dropout),
            heads=int(self.list_context),
            output_bias=not loss.traits.shift_invariant,
            shift=shift,
            deviation=deviation,
            centre=mean,
            fill=fill,
        )

    def _hidden(self) -> tuple[int, ...]:
        given: Any = self.hidden_layer_sizes
        sizes = tuple(given) if isinstance(given, Sequence | np.ndarray) else (given,)
        if isinstance(given, str) or not all(isinstance(size, Integral) for size in sizes):
            raise UsageError(
                f"hidden_layer_sizes must be whole numbers, such as (8, 4) (on the command line "
                f"hidden_layer_sizes=8,4), not {given!r}."
            )
        return tuple(int(size) for size in sizes)

    def _check(self) -> None:
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
        if self.batch_size < 1:
            raise UsageError(f"batch_size must be 1 or more, not {self.batch_size}.")
        for name, known in (
            ("activation", tuple(ACTIVATIONS)), ("device", DEVICES), ("precision", PRECISIONS),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                given = getattr(self, name)
                raise UsageError(f"{name} must be one of {', '.join(known)}, not '{given}'.")

    def _check_start(self, start: FittedNetwork | None, n_features: int) -> None:
        if start is None:
            return
        if start.n_features != n_features:
            raise UsageError(
                f"start takes {start.n_features} features and the data has {n_features}; a network "
                "can only be continued with the same features."
            )
        hidden = [len(weight) for weight, _ in start.layers[1:]]
        here = (list(self._hidden()), self.list_context, self.activation)
        if (hidden, start.heads, start.activation) != here:
            raise UsageError(
                f"start is a {start!r}; a network that continues it needs the same layers."
            )

    @contextmanager
    def _calm(self, torch: Any) -> Iterator[str]:
        """Yield the device; torch takes one thread an operation, and all is put back after."""
        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        elif device == "cuda" and not torch.cuda.is_available():
            raise UsageError("torch finds no CUDA device here; use device='cpu' or 'auto'.")
        threads, workspace = torch.get_num_threads(), os.environ.get(_WORKSPACE)
        strict = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.set_num_threads(1)
        if device == "cuda" and self.deterministic:
            os.environ.setdefault(_WORKSPACE, ":4096:8")  # what torch asks for
            torch.use_deterministic_algorithms(True)
        try:
            yield device
        finally:
            torch.use_deterministic_algorithms(strict, warn_only=warn_only)
            torch.set_num_threads(threads)
            if workspace is None:
                os.environ.pop(_WORKSPACE, None)

    @staticmethod
    def check_installed() -> None:
        """Say how to install torch where it is not there."""
        check_torch()

    restore = staticmethod(FittedNetwork.restore)


def _in_seeded_order(data: RankingData, seed: int, n_jobs: int | None) -> tuple[I64, RankingData]:
    """Return rows and data without features, query after query in the order of the seed.

    Queries without an order contribute nothing and are left out, unless there are no others.
    """
    rows, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
    queries = np.flatnonzero(order_weight(ordered))
    if not len(queries):
        queries = np.arange(ordered.n_queries)
    queries = stream(seed, "network", "queries").permutation(queries)
    chosen = ordered.rows_of(queries)
    return rows[chosen], ordered.in_order(chosen, queries)


def _rounded(values: F64) -> F64:
    """Return values to nine digits, so that the order in which they were added does not show."""
    part, power = np.frexp(values)
    return np.ldexp(np.rint(part * 2.0**30) / 2.0**30, power)
