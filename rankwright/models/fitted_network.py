"""Fitted networks: scores and feature contributions in NumPy, without torch.

With h_0 = x the features of a document, a layer is h_l = a(z_l) with z_l = W_l' h_{l-1} + b_l and
an activation a applied to each component. The score is w'h + b of the last h. With a list context,
the documents of a query first attend to each other (`vaswani2017attention`). With heads k of width
m,

    h_i <- h_i + sum_k sum_j A_kij O_k' V_k' h_j                                               (1)
    A_ki = softmax over j of (Q_k' h_i)'(K_k' h_j) / sqrt(m)                                   (2)

Contributions follow the rescale rule of DeepLIFT (`shrikumar2017deeplift`) with the mean document c
of the training data as the reference. Going back from the score, each activation multiplies by
(a(z(x)) - a(z(c))) / (z(x) - z(c)), and feature f contributes its gradient times x_f - c_f. The
contributions add up to score(x) - score(c) exactly. In (1) the weights A are constants, so a score
is a sum over the documents of the list, and a feature contributes through every document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy import sparse, special

from rankwright.core.checks import ArraySpec
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.missing import filled
from rankwright.models.schema import FILL, Schema

_ROWS = 4_096
_NEAR = 1e-6  # below this difference of z(x) and z(c) the quotient is replaced by the derivative


ACTIVATIONS: dict[str, tuple[Callable[[F64], F64], Callable[[F64], F64]]] = {
    "relu": (lambda z: np.maximum(z, 0.0), lambda z: (z > 0.0).astype(np.float64)),
    "sigmoid": (special.expit, lambda z: special.expit(z) * special.expit(-z)),
    "tanh": (np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
    "elu": (
        lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0))),
        lambda z: np.exp(np.minimum(z, 0.0)),
    ),
}
"""Activations and their derivatives."""


def _schema(n_layers: int, *, context: bool) -> Schema:
    """Return the arrays and texts of a network in a model file."""
    units = ["features", *(f"units_{k}" for k in range(1, n_layers)), "scores"]
    specs = [ArraySpec("centre", "float64", ("features",)), FILL]
    specs += [ArraySpec("heads", "int64", (1,), low=0)]
    for k in range(max(n_layers, 1)):
        specs += [
            ArraySpec(f"weight_{k}", "float64", (units[k], units[k + 1])),
            ArraySpec(f"bias_{k}", "float64", (units[k + 1],)),
        ]
    if context:
        specs += [ArraySpec(f"context_{k}", "float64", (units[-2], units[-2])) for k in range(4)]
    return Schema(tuple(specs), {"activation": tuple(ACTIVATIONS)})


def _attention(h: F64, query: F64, key: F64) -> F64:
    """Return A of a head for the documents of a query."""
    products = (h @ query) @ (h @ key).T
    attention: F64 = special.softmax(products / np.sqrt(query.shape[1]), axis=1)  # (2)
    return attention


@dataclass(frozen=True, repr=False)
class FittedNetwork:
    """Weights of a network that takes features in the scale of the data.

    Parameters
    ----------
    layers
        W_l and b_l of each layer. The last layer returns the score.
    context
        Q, K, V and O of (1), each with the heads side by side; empty without a list context.
    heads
        Number of heads.
    activation
        Name of a.
    centre
        The mean document, the reference of contributions.
    fill
        Replacement for missing values of each feature.
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
        context = f", list context of {self.heads} heads" if self.context else ""
        return f"network {sizes} x 1, {self.activation}{context}"

    @property
    def looks_at_list(self) -> bool:
        """Whether a score depends on the other documents of the query."""
        return bool(self.context)

    # --- scores ------------------------------------------------------------------------------

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row. A network with a list context needs `scores_of`."""
        self._refuse_context()
        return self._scores(X, row_ranges(X.shape[0], _ROWS), n_jobs)

    def scores_of(self, data: RankingData, *, n_jobs: int | None = None) -> F64:
        """Return the score of each document in the list of its query."""
        if not self.context:
            return self.scores(data.X, n_jobs=n_jobs)
        return self._scores(data.X, data.indptr, n_jobs)

    def _scores(self, X: FloatMatrix, bounds: I64, n_jobs: int | None) -> F64:
        """Return the scores of blocks of rows; with a list context, a block is a query."""
        X, scores = filled(X, self.fill, "network"), np.empty(X.shape[0])
        heads = self._heads()

        def score(lo: int, hi: int) -> None:
            *_, h = self._hidden(X[lo:hi])
            if heads:
                h = h + sum(_attention(h, q, k) @ (h @ v) @ out for q, k, v, out in heads)  # (1)
            scores[lo:hi] = self._score(h)

        with one_blas_thread():
            map_ranges(score, bounds, n_jobs=n_jobs)
        return scores

    def _refuse_context(self) -> None:
        if self.context:
            raise UsageError(
                "this network looks at the whole list of a query: give the query of each row, as "
                "RankingData or qid=..."
            )

    def _hidden(self, X: Any) -> list[Any]:
        """Return z of each hidden layer, and the last h."""
        activate, _ = ACTIVATIONS[self.activation]
        h: Any = X if sparse.issparse(X) else np.asarray(X, np.float64)
        sums = []
        for weight, bias in self.layers[:-1]:
            sums.append(h @ weight + bias)
            h = activate(sums[-1])
        return [*sums, h]

    def _score(self, h: F64) -> F64:
        weight, bias = self.layers[-1]
        scores: F64 = h @ weight[:, 0] + bias[0]
        return scores

    def _heads(self) -> list[tuple[F64, ...]]:
        """Return Q, K, V and O of each head."""
        if not self.context:
            return []
        *columns, out = self.context
        parts = [*(np.split(weight, self.heads, axis=1) for weight in columns)]
        return list(zip(*parts, np.split(out, self.heads), strict=True))

    # --- gradients and contributions -----------------------------------------------------------

    def gradients(self, X: FloatMatrix) -> F64:
        """Return the gradient of each score in the features, for a network without list context."""
        self._refuse_context()
        _, derivative = ACTIVATIONS[self.activation]
        *sums, _ = self._hidden(filled(X, self.fill, "network"))
        rates = [derivative(z) for z in sums]
        return np.array(self._back(self.layers[-1][0][:, 0], rates, X.shape[0]))

    def contributions(self, X: FloatMatrix) -> F64:
        """Return the contribution of each feature to each score, and the mean document's score."""
        self._refuse_context()
        return self._contributions(X, row_ranges(X.shape[0], _ROWS))

    def contributions_of(self, data: RankingData) -> F64:
        """Return the contribution of each feature through all documents of the query's list."""
        if not self.context:
            return self.contributions(data.X)
        return self._contributions(data.X, data.indptr)

    def _contributions(self, X: FloatMatrix, bounds: I64) -> F64:
        X, last, heads = filled(X, self.fill, "network"), self.layers[-1][0][:, 0], self._heads()
        directions = [last, *(value @ out @ last for _, _, value, out in heads)]
        *central_sums, central = self._hidden(self.centre[None, :])
        rest = self._score(central)[0] + sum(float((central @ d)[0]) for d in directions[1:])
        contributions = np.full((X.shape[0], self.n_features + 1), rest)
        with one_blas_thread():
            for lo, hi in pairwise(bounds.tolist()):
                rows = X[lo:hi]
                *sums, h = self._hidden(rows)
                rates = [self._rate(z, c) for z, c in zip(sums, central_sums, strict=True)]
                moved = (rows.toarray() if sparse.issparse(rows) else rows) - self.centre
                total, *by_head = (self._back(d, rates, hi - lo) * moved for d in directions)
                for (query, key, _, _), part in zip(heads, by_head, strict=True):
                    total = total + _attention(h, query, key) @ part
                contributions[lo:hi, :-1] = total
        return contributions

    def _rate(self, z: F64, centre: F64) -> F64:
        """Return the difference quotient of the activation."""
        activate, derivative = ACTIVATIONS[self.activation]
        difference = z - centre
        is_near = np.abs(difference) < _NEAR
        quotient = (activate(z) - activate(centre)) / np.where(is_near, 1.0, difference)
        return np.where(is_near, derivative(z), quotient)

    def _back(self, direction: F64, rates: Sequence[F64], n_rows: int) -> F64:
        """Return the gradient of h'direction in the features, with these rates of activations."""
        back: F64 = np.broadcast_to(direction, (n_rows, len(direction)))
        for rate, (weight, _) in zip(rates[::-1], self.layers[-2::-1], strict=True):
            back = (back * rate) @ weight.T
        return back

    # --- files -----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the mean document and the fill values."""
        arrays: dict[str, AnyArray] = {"centre": self.centre, "heads": np.array([self.heads])}
        for number, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight_{number}": weight, f"bias_{number}": bias}
        for number, weight in enumerate(self.context):
            arrays[f"context_{number}"] = weight
        if self.fill is not None:
            arrays["fill"] = self.fill
        return arrays

    def texts(self) -> dict[str, str]:
        """Return the name of the activation."""
        return {"activation": self.activation}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedNetwork:
        """Build the fitted network from its own arrays and texts, checked."""
        n_layers = sum(name.startswith("weight_") for name in arrays)
        context = "context_0" in arrays
        _schema(n_layers, context=context).check(arrays, texts, features=n_features, scores=1)
        heads = int(arrays["heads"][0])
        if context and (heads < 1 or len(arrays[f"weight_{n_layers - 1}"]) % heads):
            raise DataError(f"its list context of {heads} heads does not fit its last layer.")
        return cls(
            layers=tuple((arrays[f"weight_{k}"], arrays[f"bias_{k}"]) for k in range(n_layers)),
            context=tuple(arrays[f"context_{k}"] for k in range(4) if context),
            heads=heads,
            activation=texts["activation"],
            centre=arrays["centre"],
            fill=arrays.get("fill"),
            n_features=n_features,
        )
