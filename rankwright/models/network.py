"""Networks under any loss: layers of units between features and score, trained by Adam (torch).

A network has any number of hidden layers, none for a linear score, and on demand a list context, by
which documents see the others of their query. Features are standardised inside the model. Training
sees queries in an order fixed by their content and the seed, so that shuffled rows and renamed
queries change nothing. Torch trains; scoring needs NumPy alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import special

from rankwright.core.checks import ArraySpec
from rankwright.core.parallel import map_ranges, query_ranges, row_ranges, thread_count
from rankwright.core.parameters import Part
from rankwright.core.products import one_blas_thread, transposed_times_vector
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Callback, FloatMatrix, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.base import (
    bound_loss,
    device_loss,
    document_weight,
    order_weight,
    set_iteration,
)
from rankwright.models.linear import deviations, fill_values, filled
from rankwright.models.network_device import DeviceFeatures, LayerPasses
from rankwright.models.network_training import (
    Adam,
    Arrays,
    check_cuda,
    check_torch,
    host_array,
    load_torch,
)
from rankwright.models.schema import FILL, Schema
from rankwright.solvers.choice import lacking

# --- what a network is made of ---------------------------------------------------------------
# What a network looks like beside its weights, where these begin, and what they make in the end.
#
# Training sees features that are scaled; the weights of a fitted network take them as the data has
# them, by folding the scaling into the first layer.


@dataclass(frozen=True, slots=True)
class Design:
    """What a network looks like, beside its weights.

    Parameters
    ----------
    sizes
        Features, hidden units of each layer.
    activation, dropout, heads
        See `rankwright.models.network.Network`; no heads: no list context.
    output_bias
        Whether the bias of the score is learnt: only where a shift of all scores matters.
    shift, deviation
        A feature x comes in as (x - shift) / deviation.
    centre, fill
        See `rankwright.models.network.FittedNetwork`.
    """

    sizes: tuple[int, ...]
    activation: str
    dropout: float
    heads: int
    output_bias: bool
    shift: F64
    deviation: F64
    centre: F64
    fill: F64 | None

    def draw(self, seed: int) -> Arrays:
        """Return weights to begin with: uniform, of a spread that keeps the size of signals."""
        weights: list[AnyArray] = []
        ends = (*self.sizes, 1)
        for number, (n_in, n_out) in enumerate(pairwise(ends)):
            weights += [_uniform(seed, number, n_in, n_out, self.activation), np.zeros(n_out)]
        width = self.sizes[-1]
        for number in range(4 if self.heads else 0):
            weights.append(_uniform(seed, len(ends) + number, width, width, "linear"))
        return tuple(weights)

    def unfolded(self, fitted: FittedNetwork) -> Arrays:
        """Return the weights of a fitted network, for features scaled as here."""
        (weight, bias), *others = fitted.layers
        first = (weight * self.deviation[:, None], bias + self.shift @ weight)
        flat = [array for layer in (first, *others) for array in layer]
        return (*flat, *fitted.context)

    def fitted(self, weights: Arrays) -> FittedNetwork:
        """Return a network that takes features as the data has them."""
        wide = [np.asarray(array, np.float64) for array in weights]
        n = 2 * len(self.sizes)
        layers = list(zip(wide[0:n:2], wide[1:n:2], strict=True))
        weight = layers[0][0] / self.deviation[:, None]
        layers[0] = (weight, layers[0][1] - self.shift @ weight)
        return FittedNetwork(
            layers=tuple(layers),
            context=tuple(wide[n:]),
            heads=self.heads,
            activation=self.activation,
            centre=self.centre,
            fill=self.fill,
            n_features=self.sizes[0],
        )


def _uniform(seed: int, number: int, n_in: int, n_out: int, activation: str) -> F64:
    """Return weights of variance 2 / n_in for rectifiers and 2 / (n_in + n_out) for others."""
    variance = 2.0 / n_in if activation in ("relu", "elu") else 2.0 / (n_in + n_out)
    bound = math.sqrt(3.0 * variance)
    return stream(seed, "network", "weights", number).uniform(-bound, bound, (n_in, n_out))


# --- the fitted model ------------------------------------------------------------------------
# A trained network without torch: scores, and what each feature adds to them, in NumPy.
#
# With h_0 = x the features of a document, a layer is h_l = a(W_l' h_{l-1} + b_l) with an
# activation a by component; the score is w'h + b of the last h. The scaling of the features is
# part of W_1 and b_1. With a list context the h_i of the documents of a query look at each other
# first: with heads k
#
#     h_i <- h_i + sum_k sum_j A_kij O_k' V_k' h_j                                               (1)
#     A_ki = softmax over j of (Q_k' h_i)'(K_k' h_j) / sqrt(m)                                   (2)
#
# where m is the width of a head (`vaswani2017attention`).
#
# Contributions are those of DeepLIFT's rescale rule (`shrikumar2017deeplift`) against the mean
# document c of the training data: going back from the score, each activation passes on what comes
# in times (a(z(x)) - a(z(c))) / (z(x) - z(c)), and a feature adds what arrives at it times x_f -
# c_f. They add up to score(x) - score(c) exactly. In (1) the shares A stand as they are, so that
# a score is a sum over the documents of the list and a feature adds what its values in all of
# them add.


_ROWS = 4_096
_NEAR = 1e-6  # where z(x) and z(c) are this close, their difference quotient is the derivative

Function = Callable[[F64], F64]


def _relu(z: F64) -> F64:
    return np.maximum(z, 0.0)


def _elu(z: F64) -> F64:
    return np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0)))


ACTIVATIONS: dict[str, tuple[Function, Function]] = {  # with their derivatives
    "relu": (_relu, lambda z: (z > 0.0).astype(np.float64)),
    "sigmoid": (special.expit, lambda z: special.expit(z) * special.expit(-z)),
    "tanh": (np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
    "elu": (_elu, lambda z: np.exp(np.minimum(z, 0.0))),
}


def _schema(count: int, context: bool) -> Schema:
    """Return what a file holds of a network of so many layers."""
    units = ["features", *(f"units_{k}" for k in range(1, count)), "scores"]
    specs = [ArraySpec("centre", "float64", ("features",)), FILL]
    specs += [ArraySpec("heads", "int64", (1,), low=0)]
    for k in range(max(count, 1)):
        specs += [
            ArraySpec(f"weight_{k}", "float64", (units[k], units[k + 1])),
            ArraySpec(f"bias_{k}", "float64", (units[k + 1],)),
        ]
    if context:
        specs += [ArraySpec(f"context_{k}", "float64", (units[-2], units[-2])) for k in range(4)]
    return Schema(tuple(specs), {"activation": tuple(ACTIVATIONS)})


@dataclass(frozen=True, repr=False)
class FittedNetwork:
    """Weights of a network, its first layer in the scale of the data.

    Parameters
    ----------
    layers
        W_l and b_l of each layer; the last one makes the score.
    context
        Q, K, V and O of (1), heads side by side; empty without a list context.
    heads
        How many.
    activation
        Name of a.
    centre
        The mean document, which contributions are measured from.
    fill
        What stands for a missing value of each feature.
    """

    layers: tuple[tuple[F64, F64], ...]
    context: tuple[F64, ...]
    heads: int
    activation: str
    centre: F64
    fill: F64 | None
    n_features: int

    split_by: ClassVar[str] = "DeepLIFT's rescale rule"

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(weight)) for weight, _ in self.layers)
        about = f", list context of {self.heads} heads" if self.context else ""
        return f"network {sizes} x 1, {self.activation}{about}"

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row; a network with a list context wants `scores_of`."""
        self._refuse_context()
        out, whole = np.empty(X.shape[0]), filled(X, self.fill, "network")

        def score(lo: int, hi: int) -> None:
            out[lo:hi] = self._score(self._hidden(whole[lo:hi])[-1])

        with one_blas_thread():
            map_ranges(score, row_ranges(len(out), _ROWS), n_jobs=n_jobs)
        return out

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document, in the list of its query."""
        if not self.context:
            return self.scores(data.X, n_jobs=n_jobs)
        out, whole = np.empty(data.n_documents), filled(data.X, self.fill, "network")

        def score(lo: int, hi: int) -> None:
            for q in range(lo, hi):
                rows = slice(*data.indptr[q : q + 2])
                h = self._hidden(whole[rows])[-1]
                out[rows] = self._score(h + self._looked_up(h, self._shares(h)))

        with one_blas_thread():
            map_ranges(score, query_ranges(data.indptr), n_jobs=n_jobs)
        return out

    @property
    def looks_at_list(self) -> bool:
        """Whether a score depends on the other documents of the query."""
        return bool(self.context)

    def gradients(self, X: FloatMatrix) -> F64:
        """Return the gradient of each score in the features, for a network without list context."""
        self._refuse_context()
        _, derivative = ACTIVATIONS[self.activation]
        way = self.layers[-1][0][:, 0]
        back = np.broadcast_to(way, (X.shape[0], len(way)))
        sums = self._hidden(filled(X, self.fill, "network"))[:-1]
        for z, (weight, _) in zip(sums[::-1], self.layers[-2::-1], strict=True):
            back = (back * derivative(z)) @ weight.T
        return np.array(back, np.float64)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return what each feature adds to each score, and the score of the mean document last."""
        self._refuse_context()
        whole = filled(X, self.fill, "network")
        bounds = row_ranges(X.shape[0], _ROWS).tolist()
        with one_blas_thread():
            parts = [
                self._attributed(whole[lo:hi], [self.layers[-1][0][:, 0]])[0]
                for lo, hi in pairwise(bounds)
            ]
            rest = self._score(self._middle()[-1])[0]
        return np.column_stack([np.concatenate(parts), np.full(X.shape[0], rest)])

    def contributions_of(self, data: RankingData) -> F64:
        """Return what each feature adds to each score through all documents of the query's list."""
        if not self.context:
            return self.contributions(data.X)
        whole, last = filled(data.X, self.fill, "network"), self.layers[-1][0]
        ways = [last[:, 0], *(value @ out @ last[:, 0] for _, _, value, out in self._by_head())]
        middle = self._middle()[-1]
        rest = self._score(middle)[0] + sum(float((middle @ way)[0]) for way in ways[1:])
        found = np.full((data.n_documents, data.n_features + 1), rest)
        with one_blas_thread():
            for lo, hi in zip(data.indptr[:-1], data.indptr[1:], strict=True):
                own, *through = self._attributed(whole[lo:hi], ways)
                shares = self._shares(self._hidden(whole[lo:hi])[-1])
                for share, part in zip(shares, through, strict=True):
                    own = own + share @ part
                found[lo:hi, :-1] = own
        return found

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the mean document and the fill values."""
        named: dict[str, AnyArray] = {"centre": self.centre, "heads": np.array([self.heads])}
        for number, (weight, bias) in enumerate(self.layers):
            named |= {f"weight_{number}": weight, f"bias_{number}": bias}
        for number, weight in enumerate(self.context):
            named[f"context_{number}"] = weight
        if self.fill is not None:
            named["fill"] = self.fill
        return named

    def texts(self) -> dict[str, str]:
        """Return the name of the activation."""
        return {"activation": self.activation}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedNetwork:
        """Build the fitted network from its own arrays and texts, checked."""
        count = sum(name.startswith("weight_") for name in arrays)
        context = "context_0" in arrays
        _schema(count, context).check(arrays, texts, features=n_features, scores=1)
        heads = int(arrays["heads"][0])
        if context and (heads < 1 or len(arrays[f"weight_{count - 1}"]) % heads):
            raise DataError(f"its list context of {heads} heads does not fit its last layer.")
        return cls(
            layers=tuple((arrays[f"weight_{k}"], arrays[f"bias_{k}"]) for k in range(count)),
            context=tuple(arrays[f"context_{k}"] for k in range(4) if context),
            heads=heads,
            activation=texts["activation"],
            centre=arrays["centre"],
            fill=arrays.get("fill"),
            n_features=n_features,
        )

    # --- forward ---------------------------------------------------------------------------------

    def _refuse_context(self) -> None:
        if self.context:
            raise UsageError(
                "this network looks at the whole list of a query: give the query of each row, as "
                "RankingData or qid=..."
            )

    def _hidden(self, X: Any) -> list[F64]:
        """Return z of each hidden layer, and the last h."""
        activate, _ = ACTIVATIONS[self.activation]
        h = _dense(X) if isinstance(X, np.ndarray) or len(self.layers) == 1 else X
        sums = []
        for weight, bias in self.layers[:-1]:
            sums.append(np.asarray(h @ weight) + bias)
            h = activate(sums[-1])
        return [*sums, h]

    def _score(self, h: F64) -> F64:
        weight, bias = self.layers[-1]
        scores: F64 = h @ weight[:, 0] + bias[0]
        return scores

    def _by_head(self) -> list[tuple[F64, ...]]:
        """Return Q, K, V and O of each head."""
        query, key, value, out = self.context
        width = query.shape[1] // self.heads
        spans = [slice(k * width, (k + 1) * width) for k in range(self.heads)]
        return [(query[:, s], key[:, s], value[:, s], out[s]) for s in spans]

    def _shares(self, h: F64) -> list[F64]:
        """Return A of (2) for each head."""
        return [
            special.softmax((h @ query) @ (h @ key).T / np.sqrt(query.shape[1]), axis=1)
            for query, key, _, _ in self._by_head()
        ]

    def _looked_up(self, h: F64, shares: list[F64]) -> F64:
        total = np.zeros_like(h)
        for share, (_, _, value, out) in zip(shares, self._by_head(), strict=True):
            total += share @ (h @ value) @ out  # (1)
        return total

    # --- contributions ---------------------------------------------------------------------------

    def _middle(self) -> list[F64]:
        return self._hidden(self.centre[None, :])

    def _attributed(self, X: Any, ways: list[F64]) -> list[F64]:
        """Return what each feature adds to h'way in each row, for each of ``ways``."""
        activate, derivative = ACTIVATIONS[self.activation]
        rates = []
        for z, centre in zip(self._hidden(X)[:-1], self._middle()[:-1], strict=True):
            apart = z - centre
            near = np.abs(apart) < _NEAR
            rate = (activate(z) - activate(centre)) / np.where(near, 1.0, apart)
            rates.append(np.where(near, derivative(z), rate))
        moved, found = _dense(X) - self.centre, []
        for way in ways:
            back = np.broadcast_to(way, (len(moved), len(way)))
            for rate, (weight, _) in zip(rates[::-1], self.layers[-2::-1], strict=True):
                back = (back * rate) @ weight.T
            found.append(back * moved)
        return found


def _dense(X: Any) -> F64:
    dense: F64 = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float64)
    return dense


# --- the model -------------------------------------------------------------------------------
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("single", "double", "tf32", "mixed")
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
    epochs : int
        Passes over the data.
    learning_rate : float
        Length of Adam's first steps.
    schedule : "constant", "cosine", "linear" or "step"
        How the rate falls over the epochs: not, to 0 along half a cosine or a line, or to a tenth
        at half of them and to a hundredth at three quarters.
    weight_decay : float
        How strongly matrices of weights are pulled to 0; biases are not.
    batch_size : int
        Documents in a step, in whole queries.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.
    device : "auto", "cpu" or "cuda"
        Where to train; "auto" takes a GPU where there is one. There features, scores, the loss
        and the weights stay on the GPU, but for losses that cannot be computed there: a warning
        names them. Scoring is on the CPU.
    precision : "single", "double", "tf32" or "mixed"
        Of training; on a GPU "tf32" multiplies matrices of single precision with 10 bits of each
        number, and "mixed" in bfloat16, all but the last, which makes the score. Both are single
        on the CPU.
    deterministic : bool
        On a GPU, let torch take reproducible algorithms alone; on the CPU all are.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="lambdarank", model=rw.models.Network(hidden_layer_sizes=(64, 32)))
    Ranker(loss='lambdarank', model=Network(hidden_layer_sizes=(64, 32)))
    """

    # On validation data of three folds of OHSUMED and MQ2008, one seed, as good as or better than
    # a dozen others tried for ranknet and lambdarank: 10 to 64 units, rates 0.0003 to 0.01.
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
            bound = bound_loss(loss, ordered, n_jobs=n_jobs)
            problem = NetworkProblem(
                design,
                design.draw(random_state) if start is None else design.unfolded(start),
                X,
                rows,
                ordered,
                bound,
                data,
                there=device_loss(loss, bound, torch) if device == "cuda" else None,
                batch_size=self.batch_size,
                device=device,
                precision=self.precision,
                seed=random_state,
                n_jobs=n_jobs,
            )
            names = {f.name for f in fields(Adam)} - {"random_state"}
            adam = Adam(**{name: getattr(self, name) for name in names}, random_state=random_state)
            try:
                end = adam.solve(problem, callback)
            finally:
                problem.close()
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
        elif device == "cuda":
            check_cuda("device='cpu' or 'auto'")
        threads, workspace = torch.get_num_threads(), os.environ.get(_WORKSPACE)
        products = torch.get_float32_matmul_precision()
        strict = torch.are_deterministic_algorithms_enabled()
        fills = torch.utils.deterministic.fill_uninitialized_memory
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.set_num_threads(1)
        torch.set_float32_matmul_precision("high" if self.precision == "tf32" else "highest")
        if device == "cuda" and self.deterministic:
            os.environ.setdefault(_WORKSPACE, ":4096:8")  # what torch asks for
            torch.use_deterministic_algorithms(True)
            torch.utils.deterministic.fill_uninitialized_memory = False  # all is written anyway
        try:
            yield device
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = fills
            torch.use_deterministic_algorithms(strict, warn_only=warn_only)
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(products)
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


# --- the problem that Adam sees --------------------------------------------------------------
# A network, a loss on scores and the data, as Adam sees them: gradients by batches of queries.
#
# The loss knows scores alone. Its gradient g in the scores of a batch goes back through the
# network,
#
#     dJ/dtheta = (ds/dtheta)' g                                                                 (1)
#
# which is torch's part, so that losses have no twin in torch. Queries stand one after the other
# in a seeded order; a batch is a run of whole queries of about ``batch_size`` documents, and a
# chunk a part of it. Chunks are worked on by threads, one thread of torch each, and their
# gradients added in order: the same bytes for any number of threads. On a GPU a batch is one
# chunk; features, scores and gradients stay there, with a loss that is computed there too. The
# GPU is waited for once an epoch, for the loss and for the scores that metrics need on the CPU.
# With any other loss the threads of the CPU share its work.


_CHUNK_WORK = 1 << 24  # multiplications of a forward pass: enough for a thread to be worth it
_CHUNK_DOCUMENTS = 2_048, 16_384
_MOST_RECORDED = 2_000  # batches
_DOCUMENTS_AT_ONCE = 1 << 18  # of validation data on a GPU
_SHARE_OF_GPU = 1 / 3  # of its free memory, that features may take; beyond they come in turn
_KEPT_CELLS = 1 << 28  # scaled features are kept up to a gigabyte, and made anew each time beyond


class NetworkProblem:
    """(1) on one data set.

    Parameters
    ----------
    design, weights
        The network, and where it begins.
    X, rows
        Features, and which row of them each document of ``ordered`` has.
    ordered
        Queries in the order in which batches take them; without features.
    loss
        The loss, bound to ``ordered``.
    data
        The caller's data, which the callback is shown the scores of.
    there
        The loss on the GPU, where it can be computed there.
    """

    def __init__(
        self,
        design: Design,
        weights: Arrays,
        X: FloatMatrix,
        rows: I64,
        ordered: RankingData,
        loss: Any,
        data: RankingData,
        *,
        there: Any = None,
        batch_size: int,
        device: str,
        precision: str,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self._torch = torch = load_torch()
        self._design, self._X, self._rows = design, X, rows
        self._loss, self._data, self._indptr = loss, data, ordered.indptr
        self._seed, self._n_jobs, self._device = seed, thread_count(n_jobs), device
        self._mixed = precision == "mixed" and device == "cuda"
        self._dtype = torch.float64 if precision == "double" else torch.float32
        self._features_dtype = torch.bfloat16 if self._mixed else self._dtype
        self._all = [
            torch.tensor(array, dtype=self._dtype, device=device, requires_grad=True)
            for array in weights
        ]
        self._fixed = None if design.output_bias else 2 * len(design.sizes) - 1
        self.parameters = [p for k, p in enumerate(self._all) if k != self._fixed]
        self.decayed = [p.ndim == 2 for p in self.parameters]
        work = max(1, sum(array.size for array in weights))
        per_chunk = int(np.clip(_CHUNK_WORK // work, *_CHUNK_DOCUMENTS))
        self._cut(batch_size, per_chunk if device == "cpu" and there is None else len(rows))
        self._there = there
        self._passes: LayerPasses | None = None
        self._score: Any = np.zeros(len(rows))
        self._gradient: Any = np.zeros(len(rows))
        if there is not None:
            self._score = torch.zeros(len(rows), dtype=torch.float64, device=device)
            self._gradient = torch.zeros_like(self._score)
            self._found = [torch.zeros_like(p) for p in self.parameters]
            if not design.heads and design.dropout == 0.0:
                self._passes = LayerPasses(
                    torch, design.activation, mixed=self._mixed, tf32=precision == "tf32"
                )
            self._values = torch.zeros(self.n_batches, dtype=torch.float64, device=device)
            self._visited: set[int] = set()
            self._recorded: dict[int, Any] = {}
            if device == "cuda":  # batches follow each other in the same memory
                self._graph_pool = torch.cuda.graph_pool_handle()
                self._apart = torch.cuda.Stream()
        self._kept: dict[int, Any] | None = {} if math.prod(X.shape) <= _KEPT_CELLS else None
        self._watched: tuple[RankingData, DeviceFeatures] | None = None
        self._rows_there: Any = None
        self._uploaded: DeviceFeatures | None = None
        if device == "cuda" or there is not None:
            chunks = [rows[ordered.indptr[lo] : ordered.indptr[hi]] for lo, hi in self._chunks]
            self._uploaded = self._upload(X, chunks)
        self._records = (
            device == "cuda"
            and self._uploaded is not None
            and self._uploaded.resident
            and design.dropout == 0.0
            and self.n_batches <= _MOST_RECORDED
        )

    def _upload(self, X: FloatMatrix, chunks: Sequence[I64 | slice]) -> DeviceFeatures:
        """Put features on the GPU, or let them come in turn where they take too much of it."""
        room = float("inf")
        if self._device == "cuda":
            room = self._torch.cuda.mem_get_info()[0] * _SHARE_OF_GPU
        needed = math.prod(X.shape) * self._features_dtype.itemsize
        return DeviceFeatures(
            self._torch,
            self._device,
            X,
            chunks,
            self._scaled,
            resident=needed <= room,
            n_jobs=self._n_jobs,
        )

    def _cut(self, batch_size: int, chunk_documents: int) -> None:
        """Cut the queries into batches, and these into chunks."""
        batches = runs_of_queries(self._indptr, 0, len(self._indptr) - 1, batch_size)
        cuts = [_even_parts(self._indptr, lo, hi, chunk_documents) for lo, hi in pairwise(batches)]
        self.n_batches = len(cuts)
        self._chunks = [span for cut in cuts for span in pairwise(cut)]
        self._begin = np.concatenate(([0], np.cumsum([len(cut) - 1 for cut in cuts])))

    def begin_epoch(self, t: int, order: Sequence[int]) -> None:
        """Sample the noise of epoch ``t``, where the loss has any, and read ahead."""
        set_iteration(self._there or self._loss, t)
        if self._uploaded is not None:
            self._uploaded.expect(order)  # a batch is one chunk here

    def epoch_value(self, t: int, values: list[Any]) -> float:
        """Return the sum of the losses of the batches; here a GPU is waited for."""
        if self._there is not None:
            *values, sum_of_scores = self._torch.stack([*values, self._score.sum()]).tolist()
            self._refuse_infinite(t, sum_of_scores)
        return math.fsum(values)

    def state(self) -> dict[str, AnyArray]:
        """Return the state of the loss beside the scores."""
        loss = self._there or self._loss
        memory: dict[str, AnyArray] = loss.state() if hasattr(loss, "state") else {}
        return memory

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Restore the state of the loss."""
        (self._there or self._loss).load_state(kept)

    def batch_grad(self, t: int, batch: int) -> tuple[Any, list[Any]]:
        """Return the loss of a batch and its gradient in each parameter.

        With a loss on the GPU both are there, and nothing waits for them.
        """
        first, last = self._begin[batch : batch + 2].tolist()
        if self._there is not None:
            return self._grad_there(t, first)
        found: list[Any] = [None] * (last - first)

        def work(lo: int, hi: int) -> None:
            for chunk in range(lo, hi):
                found[chunk - first] = self._chunk_grad(t, chunk)

        map_ranges(work, np.arange(first, last + 1), n_jobs=self._n_jobs)
        total = list(found[0][1])
        for _, gradient in found[1:]:
            for whole, part in zip(total, gradient, strict=True):
                whole += part
        return math.fsum(value for value, _ in found), total

    def weights(self, changing: Arrays | None = None) -> Arrays:
        """Return the weights as they are, or with ``changing`` in place of the parameters."""
        if changing is None:
            return tuple(p.detach().cpu().numpy() for p in self._all)
        given = iter(changing)
        return tuple(
            self._all[k].detach().cpu().numpy() if k == self._fixed else host_array(next(given))
            for k in range(len(self._all))
        )

    def watched_scores(self, callback: Callback) -> tuple[F64 | None, F64 | None]:
        """Return the scores on training and validation data that ``callback`` wants.

        On a GPU they are computed there and copied to the CPU, where the metrics are computed.
        """
        train = valid = now = None
        if callback.wants_train:
            if self._uploaded is not None and self._scores_all_that_matter:
                train = self._train_scores_there().cpu().numpy()
            else:
                now = self._design.fitted(self.weights())
                train = now.scores_of(self._data, n_jobs=self._n_jobs)
        if callback.valid is not None:
            if self._uploaded is not None:
                valid = self._scores_there(callback.valid).cpu().numpy()
            else:
                now = now or self._design.fitted(self.weights())
                valid = now.scores_of(callback.valid, n_jobs=self._n_jobs)
        return train, valid

    @cached_property
    def _scores_all_that_matter(self) -> bool:
        """Whether all queries that are in no batch have one grade, and so one value of a metric."""
        absent = np.ones(self._data.n_documents, bool)
        absent[self._rows] = False
        query = self._data.query_of_row()
        first = self._data.y[self._data.indptr[query]]
        return bool((self._data.y[absent] == first[absent]).all())

    def _train_scores_there(self) -> Any:
        """Return the scores of the training data, in its own order; 0 where no batch has them."""
        torch, uploaded = self._torch, self._uploaded
        assert uploaded is not None
        if self._rows_there is None:
            self._rows_there = torch.as_tensor(self._rows, device=self._device)
        found = torch.zeros(self._data.n_documents, dtype=torch.float64, device=self._device)
        uploaded.expect(range(len(self._chunks)))
        for chunk, (lo, hi) in enumerate(self._chunks):
            begin, end = int(self._indptr[lo]), int(self._indptr[hi])
            own = self._indptr[lo : hi + 1] - begin
            found[self._rows_there[begin:end]] = self._scores_of(uploaded[chunk], own)
        return found

    def _scores_there(self, data: RankingData) -> Any:
        """Return scores as they are found on the GPU."""
        bounds = runs_of_queries(data.indptr, 0, data.n_queries, _DOCUMENTS_AT_ONCE).tolist()
        if self._watched is None or self._watched[0] is not data:
            rows = [slice(*data.indptr[[lo, hi]].tolist()) for lo, hi in pairwise(bounds)]
            X = filled(data.X, self._design.fill, "network")
            self._watched = data, self._upload(X, rows)
        features = self._watched[1]
        features.expect(range(len(bounds) - 1))
        scores = [self._torch.zeros(0, dtype=self._torch.float64, device=self._device)]
        for number, (lo, hi) in enumerate(pairwise(bounds)):
            own = data.indptr[lo : hi + 1] - data.indptr[lo]
            scores.append(self._scores_of(features[number], own))
        return self._torch.cat(scores)

    def _scores_of(self, x: Any, indptr: I64) -> Any:
        """Return the scores (float64) of features on the device, without a gradient."""
        with self._torch.no_grad():
            if self._passes is not None:
                return self._passes.forward(self._all, x)[1].double()
            with self._precision():
                return self.forward(x, indptr).double()

    # --- a chunk -----------------------------------------------------------------------------

    def _grad_there(self, t: int, batch: int) -> tuple[Any, list[Any]]:
        """Return loss and gradient of a batch on the GPU, from the second epoch on recorded.

        A batch is the same in each epoch, so the GPU can repeat by itself what it was asked to do
        for it (a CUDA graph), without Python between the steps. Dropout's noise is not the same.
        """
        torch = self._torch
        if not self._records:
            value, gradient = self._chunk_grad(t, batch)
            return value, list(gradient)
        if batch not in self._visited:  # libraries make ready what they need
            self._visited.add(batch)
            value, gradient = self._chunk_grad(t, batch)
            self._keep(gradient)
            return value, self._found
        if batch not in self._recorded:
            graph = torch.cuda.CUDAGraph()
            try:
                self._record(t, batch, graph)
            except torch.OutOfMemoryError:  # what is recorded holds its memory
                self._records = False
                self.close()
                return self._grad_there(t, batch)
            self._recorded[batch] = graph
        self._recorded[batch].replay()
        return self._values[batch], self._found

    def _keep(self, gradient: Sequence[Any]) -> None:
        for kept, found in zip(self._found, gradient, strict=True):
            if kept is not found:
                kept.copy_(found)

    def _record(self, t: int, batch: int, graph: Any) -> None:
        """Record a batch; its loss and gradient are left in the same places each time."""
        torch = self._torch
        here, apart = torch.cuda.current_stream(), self._apart
        apart.wait_stream(here)
        with torch.cuda.stream(apart):
            graph.capture_begin(pool=self._graph_pool, capture_error_mode="thread_local")
            try:
                value, gradient = self._chunk_grad(t, batch)
                self._values[batch].copy_(value)
                self._keep(gradient)
            finally:
                graph.capture_end()
        here.wait_stream(apart)

    def close(self) -> None:
        """Give back the memory of what was recorded, and end what reads ahead."""
        for features in (self._uploaded, self._watched and self._watched[1]):
            if features is not None:
                features.close()
        if self._there is not None and self._recorded:
            self._recorded.clear()
            self._torch.cuda.empty_cache()

    def _chunk_grad(self, t: int, chunk: int) -> tuple[Any, Sequence[Any]]:
        if self._passes is not None:
            with self._torch.no_grad():
                return self._grad_by_passes(self._passes, chunk)
        torch = self._torch
        lo, hi = self._chunks[chunk]
        rows = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        noise = None
        if self._design.dropout > 0.0:
            noise = torch.Generator(device=self._device)
            noise.manual_seed(int(stream(self._seed, "dropout", t, chunk).integers(2**62)))
        with self._precision():
            s = self.forward(self._features(chunk), self._indptr[lo : hi + 1] - rows.start, noise)
        value: Any
        if self._there is not None:
            value, g = self._loss_there(lo, hi, s.detach())
        else:
            self._score[rows] = s.detach().to("cpu", torch.float64).numpy()
            self._refuse_infinite(t, self._score[rows].sum())
            value = self._loss_of(lo, hi)
            g = torch.from_numpy(self._gradient[rows]).to(self._device, s.dtype)
        return value, torch.autograd.grad(s, self.parameters, g)  # (1)

    def _grad_by_passes(self, passes: LayerPasses, chunk: int) -> tuple[Any, list[Any]]:
        """As `_chunk_grad`, without torch's record of operations."""
        hidden, s = passes.forward(self._all, self._features(chunk))
        value, g = self._loss_there(*self._chunks[chunk], s)
        found = iter(self._found)
        places = [None if k == self._fixed else next(found) for k in range(len(self._all))]
        passes.backward(self._all, hidden, g, places)
        return value, self._found

    def _loss_there(self, lo: int, hi: int, s: Any) -> tuple[Any, Any]:
        """Return the loss of the queries lo:hi and its gradient in their scores, on the GPU."""
        rows = slice(int(self._indptr[lo]), int(self._indptr[hi]))
        self._score[rows] = s
        self._there.grad_queries(lo, hi, self._score, self._gradient)
        return self._there.per_query[lo:hi].sum(), self._gradient[rows].to(s.dtype)

    @staticmethod
    def _refuse_infinite(t: int, sum_of_scores: float) -> None:
        if not math.isfinite(sum_of_scores):
            raise UsageError(
                f"the network's scores are no longer finite in epoch {t + 1}; "
                "use a smaller learning_rate."
            )

    def _loss_of(self, lo: int, hi: int) -> float:
        """Write the loss's gradient of the queries lo:hi and return its value."""
        if self._device == "cpu":  # a thread among others
            value: float = self._loss.grad_queries(lo, hi, self._score, self._gradient)
            return value
        bounds = _even_parts(self._indptr, lo, hi, _CHUNK_DOCUMENTS[0] // 2)
        values = np.zeros(hi)

        def work(first: int, last: int) -> None:
            values[first] = self._loss.grad_queries(first, last, self._score, self._gradient)

        map_ranges(work, bounds, n_jobs=self._n_jobs)
        return math.fsum(values)

    def forward(self, x: Any, indptr: I64, noise: Any = None) -> Any:
        """Return the scores of scaled features ``x``, whose lists begin at ``indptr``."""
        torch, design = self._torch, self._design
        activate = _activation(torch, design.activation)
        last = len(design.sizes) - 1
        for layer in range(last):
            weight, bias = self._all[2 * layer : 2 * layer + 2]
            x = self._dropped(activate(torch.addmm(bias, x, weight)), noise)
        if design.heads:
            x = x + self._dropped(self._looked_up(x, indptr), noise)
        weight, bias = self._all[2 * last : 2 * last + 2]
        with torch.autocast(self._device, enabled=False):  # in bfloat16 near scores would be equal
            return torch.addmm(bias, x.to(bias.dtype), weight)[:, 0]

    def _looked_up(self, h: Any, indptr: I64) -> Any:
        """Return what each document sees in its list."""
        torch, heads = self._torch, self._design.heads
        query, key, value, out = self._all[-4:]
        cut = np.diff(indptr).tolist()
        found = []
        for q, k, v in zip(*((h @ w).split(cut) for w in (query, key, value)), strict=True):
            q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in (q, k, v))
            shares = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), dim=2)
            found.append((shares @ v).transpose(0, 1).flatten(1))
        return torch.cat(found) @ out

    def _dropped(self, h: Any, noise: Any) -> Any:
        if noise is None:
            return h
        keep = 1.0 - self._design.dropout
        return h * (self._torch.empty_like(h).bernoulli_(keep, generator=noise) / keep)

    def _features(self, chunk: int) -> Any:
        """Return the scaled features of a chunk."""
        if self._uploaded is not None:
            return self._uploaded[chunk]
        if self._kept is not None and chunk in self._kept:
            return self._kept[chunk]
        lo, hi = self._chunks[chunk]
        part = self._X[self._rows[self._indptr[lo] : self._indptr[hi]]]
        wide = part if isinstance(part, np.ndarray) else part.toarray()
        made = self._scaled(self._torch.as_tensor(np.ascontiguousarray(wide)))
        if self._kept is not None:
            self._kept[chunk] = made
        return made

    def _scaled(self, part: Any) -> Any:
        """Return features on the device, scaled in double precision."""
        torch = self._torch
        shift, deviation = (
            torch.as_tensor(array, device=self._device)
            for array in (self._design.shift, self._design.deviation)
        )
        return ((part.to(torch.float64) - shift) / deviation).to(self._features_dtype)

    def _precision(self) -> AbstractContextManager[Any]:
        if not self._mixed:
            return nullcontext()
        autocast: AbstractContextManager[Any] = self._torch.autocast(
            "cuda", dtype=self._torch.bfloat16
        )
        return autocast


def runs_of_queries(indptr: I64, lo: int, hi: int, documents: int) -> I64:
    """Return where to cut the queries lo:hi into runs of at most ``documents``, or one query."""
    cuts = [lo]
    while cuts[-1] < hi:
        room = int(indptr[cuts[-1]]) + documents
        end = int(np.searchsorted(indptr[: hi + 1], room, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), hi))
    return np.array(cuts, np.int64)


def _even_parts(indptr: I64, lo: int, hi: int, documents: int) -> I64:
    """Return where to cut the queries lo:hi into as few parts of about ``documents`` as will do."""
    first, last = int(indptr[lo]), int(indptr[hi])
    pieces = math.ceil((last - first) / documents)
    goals = first + (last - first) * np.arange(1, pieces) / max(1, pieces)
    inner = np.searchsorted(indptr, goals)
    return np.unique(np.concatenate(([lo], np.clip(inner, lo, hi), [hi]))).astype(np.int64)


def _activation(torch: Any, name: str) -> Any:
    return torch.nn.functional.elu if name == "elu" else getattr(torch, name)
