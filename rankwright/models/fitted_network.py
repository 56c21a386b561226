"""A trained network without torch: scores, and what each feature adds to them, in NumPy.

With h_0 = x the features of a document, a layer is h_l = a(W_l' h_{l-1} + b_l) with an activation a
by component; the score is w'h + b of the last h. The scaling of the features is part of W_1 and
b_1. With a list context the h_i of the documents of a query look at each other first: with heads k

    h_i <- h_i + sum_k sum_j A_kij O_k' V_k' h_j                                               (1)
    A_ki = softmax over j of (Q_k' h_i)'(K_k' h_j) / sqrt(m)                                   (2)

where m is the width of a head (`vaswani2017attention`).

Contributions are those of DeepLIFT's rescale rule (`shrikumar2017deeplift`) against the mean
document c of the training data: going back from the score, each activation passes on what comes in
times (a(z(x)) - a(z(c))) / (z(x) - z(c)), and a feature adds what arrives at it times x_f - c_f.
They add up to score(x) - score(c) exactly. In (1) the shares A stand as they are, so that a score
is a sum over the documents of the list and a feature adds what its values in all of them add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy import special

from rankwright.core.blas import one_blas_thread
from rankwright.core.parallel import map_ranges, query_ranges, row_ranges
from rankwright.core.types import F64, AnyArray, FloatMatrix
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.missing import filled

_ROWS = 4_096
_NEAR = 1e-6  # where z(x) and z(c) are this close, their slope is the derivative

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

    def slopes(self, X: FloatMatrix) -> F64:
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
        """Build the fitted network from its own arrays and texts."""
        count = sum(name.startswith("weight_") for name in arrays)
        return cls(
            layers=tuple((arrays[f"weight_{k}"], arrays[f"bias_{k}"]) for k in range(count)),
            context=tuple(arrays[f"context_{k}"] for k in range(4) if "context_0" in arrays),
            heads=int(arrays["heads"][0]),
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
