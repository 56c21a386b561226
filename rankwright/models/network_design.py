"""What a network looks like beside its weights, where these begin, and what they make in the end.

Training sees features that are scaled; the weights of a fitted network take them as the data has
them, by folding the scaling into the first layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray
from rankwright.models.fitted_network import FittedNetwork
from rankwright.solvers.adam import Arrays


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
        See `rankwright.models.fitted_network.FittedNetwork`.
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
