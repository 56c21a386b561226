"""RankLib's networks: RankNet, LambdaRank, and ListNet, whose network has no hidden layer.

    h_0 = x,   h_k = sigmoid(W_{k-1}' h_{k-1} + b_k),   score = h_K, of one neuron            (1)

The text lists the features, the number of hidden layers, their sizes, and for each neuron a line
``layer neuron weights``. The last neuron of layer 0 is the constant 1; its weights are the
b of every later layer, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import expit

from rankwright.core.types import F64, I64, FloatMatrix
from rankwright.ranklib.columns import matrix
from rankwright.ranklib.java_numbers import java_double
from rankwright.ranklib.text_lines import TextLines


@dataclass(frozen=True)
class Network:
    """Weights from layer to layer (rows: from, columns: to) and a constant per layer."""

    features: tuple[int, ...]
    weights: tuple[F64, ...]
    constants: tuple[F64, ...]

    @property
    def n_features(self) -> int:
        """The highest number of a feature."""
        return max(self.features)

    @property
    def hidden(self) -> list[int]:
        """Sizes of the hidden layers."""
        return [layer.shape[1] for layer in self.weights[:-1]]

    def scores(self, X: FloatMatrix) -> F64:
        """Return the score of each row, between 0 and 1."""
        h = matrix(X, list(self.features))
        for weights, constant in zip(self.weights, self.constants, strict=True):
            h = expit(_product(h, weights) + constant)  # (1)
        scores: F64 = h[:, 0]
        return scores

    def renumbered(self, numbers: I64) -> Network:
        """Return the model with feature f called ``numbers[f]``."""
        return replace(self, features=tuple(numbers[list(self.features)].tolist()))

    def text(self) -> str:
        """Return features, sizes of layers and a line per neuron."""
        lines = [" ".join(map(str, self.features)), str(len(self.hidden))]
        lines += [str(size) for size in self.hidden]
        for layer, weights in enumerate(self.weights):
            rows = [*weights]
            if layer == 0:
                rows.append(np.concatenate(self.constants))
            for neuron, row in enumerate(rows):
                values = " ".join(java_double(value) for value in row.tolist())
                lines.append(f"{layer} {neuron} {values}")
        return "\n".join(lines) + "\n"


def parse_network(lines: TextLines) -> Network:
    """Parse features, sizes of layers and a line per neuron."""
    words = lines.next_line("the line of feature numbers").split()
    features = tuple(lines.whole(word, "the feature", 1) for word in words)
    if len(set(features)) < len(features):
        lines.fail("a feature is listed twice")
    n_hidden = lines.whole(lines.next_line("the number of hidden layers"), "the number of layers")
    hidden = [
        lines.whole(lines.next_line("the size of a hidden layer"), "the size of the layer", 1)
        for _ in range(n_hidden)
    ]
    sizes = [len(features), *hidden, 1]
    weights, constants = [], np.empty(0)
    for layer, (here, below) in enumerate(pairwise(sizes)):
        rows = [_neuron(lines, layer, neuron, below) for neuron in range(here)]
        weights.append(np.array(rows))
        if layer == 0:
            constants = np.array(_neuron(lines, 0, here, sum(sizes[1:])))
    lines.end()
    of_layer = np.split(constants, np.cumsum(sizes[1:])[:-1])
    return Network(features, tuple(weights), tuple(of_layer))


def _neuron(lines: TextLines, layer: int, neuron: int, width: int) -> list[float]:
    words = lines.next_line(f"the weights of neuron {neuron} of layer {layer}").split()
    if words[:2] != [str(layer), str(neuron)]:
        lines.fail(f"the weights of neuron {neuron} of layer {layer} are expected here")
    if len(words) != width + 2:
        lines.fail(f"there are {len(words) - 2} weights where {width} are expected")
    return [lines.number(word, "the weight") for word in words[2:]]


def _product(h: F64, weights: F64) -> F64:
    """Return h times weights, summed neuron after neuron as RankLib does."""
    total = np.zeros((h.shape[0], weights.shape[1]))
    for j in range(h.shape[1]):
        total += h[:, j, None] * weights[j]
    return total
