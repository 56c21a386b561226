"""A fitted model taken apart into what targets can be told: weights, trees or layers.

    linear    score = sum_j w_j x_j
    forest    score = initial + sum over trees of the leaf that x falls into; rules [x > t] of an
              additive model are trees with one split
    network   h_l = a(W_l' h_{l-1} + b_l), score = w'h + b

Scaling of features is part of the weights; ``fill`` has what stands for a missing value. Forests
are in `rankwright.export.forest`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import UsageError
from rankwright.export.forest import RULES, ZERO, Forest, added, one_split_each
from rankwright.models.additive import FittedAdditive
from rankwright.models.forest_scorer import ForestScorer
from rankwright.models.imported_trees import ImportedForest
from rankwright.models.linear import FittedLinear
from rankwright.models.network import FittedNetwork
from rankwright.models.trees import FittedTrees
from rankwright.rankers.base import Ranker

_CLASHES = {"name", "score"}


@dataclass(frozen=True, eq=False)
class Linear:
    """One weight per feature."""

    family: ClassVar[str] = "linear"
    coef: F64
    fill: F64 | None

    @property
    def stand_in(self) -> F64:
        """What a missing value of each feature counts as; NaN where the model refuses it."""
        return np.full(len(self.coef), np.nan) if self.fill is None else self.fill

    def error(self, X: F64, epsilon: float) -> F64:
        """Return how far rounding each number by ``epsilon`` may take the score of each row."""
        size = np.abs(_filled(X, self.fill)) @ np.abs(self.coef)
        bound: F64 = epsilon * added(len(self.coef)) * size
        return bound


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of weights (rows: from, columns: to) and constants; the last makes the score."""

    family: ClassVar[str] = "network"
    layers: tuple[tuple[F64, F64], ...]
    activation: str
    fill: F64 | None
    centre: F64

    @property
    def stand_in(self) -> F64:
        """What a missing value of each feature counts as; NaN where the model refuses it."""
        n = len(self.layers[0][0])
        return np.full(n, np.nan) if self.fill is None else self.fill

    def error(self, X: F64, epsilon: float) -> F64:
        """Return how far rounding each number by ``epsilon`` may take the score of each row."""
        h = np.abs(_filled(X, self.fill))
        off = np.zeros_like(h)
        for weight, constant in self.layers:
            size = h @ np.abs(weight) + np.abs(constant)
            off = off @ np.abs(weight) + epsilon * added(len(weight)) * size
            h = size if self.activation in ("relu", "elu") else np.minimum(size, 1.0)
            off = off + 4 * epsilon * h
        found: F64 = off[:, 0]
        return found


Portable = Linear | Forest | Network


def portable(ranker: Ranker) -> Portable:
    """Return the model of a fitted ranker as targets take it, or say why none does."""
    model: Any = ranker._fitted()
    for kind in type(model).__mro__:
        if kind in _KINDS:
            return _KINDS[kind](model)
    why = _REFUSED.get(
        ranker.model_name, f"models of the kind '{ranker.model_name}' have no form elsewhere"
    )
    raise UsageError(
        f"{why}; linear, additive, tree and network models can be exported, this one cannot."
    )


def gaps_not_zero(model: Portable) -> I64:
    """Return the columns whose missing values score otherwise than zeros do.

    Those of a model that refuses missing values are not among them.
    """
    if isinstance(model, Forest):
        at = model.splits
        apart = model.missing_left[at] != (model.threshold[at] >= 0.0)
        return np.unique(model.feature[at][apart])
    if model.fill is None:
        return np.empty(0, np.int64)
    weights = model.coef[:, None] if isinstance(model, Linear) else model.layers[0][0]
    return np.flatnonzero((model.fill != 0.0) & (weights != 0.0).any(axis=1))


def names_of(ranker: Ranker) -> tuple[str, ...]:
    """Return names of the features that any target takes: letters, digits and _, each once."""
    given = getattr(ranker, "feature_names_in_", None)
    if given is None:
        return tuple(f"feature_{j}" for j in range(1, ranker.n_features_in_ + 1))
    seen, names = set(_CLASHES), []
    for j, name in enumerate(map(str, given), 1):
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = f"feature_{plain}" if not plain or plain[0].isdigit() else plain
        while plain.lower() in seen:
            plain = f"{plain}_{j}"
        seen.add(plain.lower())
        names.append(plain)
    return tuple(names)


_REFUSED = {
    "kernel": "a kernel model compares a document with those it was trained on, which no target "
    "keeps",
    "factorization": "a factorisation scores the items of the users it has seen, not features",
    "jrank": "a joint kernel scores the items of the users it has seen, not features",
    "classifier": "an expected grade is a mean over probabilities, which no target computes",
    "expression": "a formula has functions of its own, held to a range, which no target has",
}


def _of_linear(model: FittedLinear) -> Linear:
    return Linear(model.coef, model.fill)


def _of_trees(model: FittedTrees) -> Forest:
    if model.n_trees == 0:
        empty = one_split_each([np.empty(0)] * 3, np.zeros(1), model.n_features)
        return Forest("trees", empty, model.initial)
    scorer = ForestScorer.from_text(model.text, model.n_features)
    cut = scorer.threshold.copy()
    # LightGBM takes numbers this near to 0 for 0: said by the thresholds, others need not know
    numeric = scorer.rule[scorer.view] != RULES.index("category")
    cut[numeric & (cut >= -ZERO) & (cut < 0.0)] = np.nextafter(-ZERO, -np.inf)
    cut[numeric & (cut >= 0.0) & (cut < ZERO)] = ZERO
    return Forest("trees", replace(scorer, threshold=cut), model.initial, model.text)


def _of_imported(model: ImportedForest) -> Forest:
    scorer, initial = model.in_double()
    if model.n_trees == 0:
        scorer = one_split_each([np.empty(0)] * 3, np.zeros(1), model.n_features)
    single = float(np.finfo(np.float32).eps) if model.single else 0.0
    return Forest("trees", scorer, initial, precision=single)


def _of_additive(model: FittedAdditive) -> Forest:
    rules = [model.feature, model.threshold, model.weight]
    alone = np.zeros(0 if len(model.weight) else 1)
    return Forest("additive", one_split_each(rules, alone, model.n_features), model.initial)


def _of_network(model: FittedNetwork) -> Network:
    if model.context:
        raise UsageError(
            "a network with a list context scores whole lists, which no target does; fit with "
            "list_context=0, or serve it with rankwright."
        )
    return Network(model.layers, model.activation, model.fill, model.centre)


_KINDS: dict[type, Callable[[Any], Portable]] = {
    FittedLinear: _of_linear,
    FittedTrees: _of_trees,
    ImportedForest: _of_imported,
    FittedAdditive: _of_additive,
    FittedNetwork: _of_network,
}


def _filled(X: F64, fill: F64 | None) -> F64:
    return X if fill is None else np.where(np.isnan(X), fill, X)
