"""Fitted models in the forms that export targets take: weights, trees or layers.

    linear    score = sum_j w_j x_j
    forest    score = offset + sum of the leaves of x; rules [x > t] are trees with one split
    network   h_l = a(W_l' h_{l-1} + b_l), score = w'h + b
    blend     the sum of some of these

Scaling of features is part of the weights; ``fill`` has the replacements of missing values.

A split of a forest sends x left if x <= threshold. `RULES` has the names of the rules for missing
values and categories:

    plain                     a missing value is 0
    nan_left, nan_right       a missing value goes left or right
    zero_left, zero_right     so does 0
    category                  the categories of a set go left
    member, member_or_nan     as category, for numbers from 0 only; member_or_nan sends NaN left
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64, I64, FittedModel
from rankwright.errors import UsageError
from rankwright.models.blend import FittedBlend
from rankwright.models.fitted_network import FittedNetwork
from rankwright.models.forest import Forest
from rankwright.models.forest_scoring import (
    CATEGORY,
    EXACT_LEFT,
    EXACT_RIGHT,
    NAN_LEFT,
    NAN_RIGHT,
    PLAIN,
    TINY,
    ZERO_LEFT,
    ZERO_RIGHT,
)
from rankwright.models.linear import FittedLinear


@dataclass(frozen=True, eq=False)
class Linear:
    """A weight for each feature and an intercept."""

    family: ClassVar[str] = "linear"
    coef: F64
    fill: F64 | None
    intercept: float = 0.0

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.coef)

    @property
    def fill_value(self) -> F64:
        """Replacement of a missing value of each feature; NaN if the model refuses it."""
        return np.full(len(self.coef), np.nan) if self.fill is None else self.fill

    @property
    def largest(self) -> float:
        """Largest absolute value of a weight, a fill value or the intercept."""
        return _largest(self.coef, self.fill, np.array([self.intercept]))

    def error(self, X: F64, epsilon: float) -> F64:
        """Return a bound of the error of each score if numbers are rounded by ``epsilon``."""
        size = np.abs(_filled(X, self.fill)) @ np.abs(self.coef) + abs(self.intercept)
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
    def n_features(self) -> int:
        """Number of features."""
        return len(self.layers[0][0])

    @property
    def fill_value(self) -> F64:
        """Replacement of a missing value of each feature; NaN if the model refuses it."""
        return np.full(self.n_features, np.nan) if self.fill is None else self.fill

    @property
    def largest(self) -> float:
        """Largest absolute weight, constant or fill value."""
        return _largest(self.fill, *(part for layer in self.layers for part in layer))

    def error(self, X: F64, epsilon: float) -> F64:
        """Return a bound of the error of each score if numbers are rounded by ``epsilon``."""
        h = np.abs(_filled(X, self.fill))
        off = np.zeros_like(h)
        for weight, constant in self.layers:
            size = h @ np.abs(weight) + np.abs(constant)
            off = off @ np.abs(weight) + epsilon * added(len(weight)) * size
            h = size if self.activation in ("relu", "elu") else np.minimum(size, 1.0)
            off = off + 4 * epsilon * h
        bound: F64 = off[:, 0]
        return bound


# --- forests -----------------------------------------------------------------------------------


RULES = (
    "plain", "nan_left", "nan_right", "zero_left", "zero_right", "category", "nan_left",
    "nan_right", "member", "member_or_nan",
)  # fmt: skip
"""Names of the rules of `forest_scoring`; targets do not replace numbers near 0."""
SETS = ("category", "member", "member_or_nan")
_DEEPEST = 400  # splits; readers of JSON support 1,000 levels, two per split
HIGHEST = float(np.finfo(np.float32).max)
LOWEST = float(np.finfo(np.float64).min)


@dataclass(frozen=True, eq=False)
class PortableForest(Forest):
    """A forest as targets take it: a plain sum in double precision, with the rules of `RULES`.

    Thresholds include LightGBM's treatment of numbers near 0.

    Parameters
    ----------
    family : "trees" or "additive"
    source : Forest or None
        The forest before the conversion, if it is one forest with LightGBM's rules.
    precision
        Relative rounding error of the sums of the model itself.
    """

    family: str = "trees"
    source: Forest | None = None
    precision: float = 0.0

    @classmethod
    def of(cls, model: Forest) -> PortableForest:
        """Convert a fitted forest."""
        source = model.as_sum()
        forest = source
        if not forest.n_trees:
            leaf = Forest.leaf(forest.n_features, 0.0)
            forest = replace(leaf, offset=forest.offset)
        numeric = (forest.rule < CATEGORY) & ~forest.is_leaf
        cut = forest.threshold.copy()
        cut[numeric & (cut >= -TINY) & (cut < 0.0)] = np.nextafter(-TINY, -np.inf)
        cut[numeric & (cut >= 0.0) & (cut < TINY)] = TINY
        arrays = {field.name: getattr(forest, field.name) for field in fields(Forest)}
        rule = np.where(forest.rule == EXACT_LEFT, NAN_LEFT, forest.rule)
        arrays |= {"rule": np.where(rule == EXACT_RIGHT, NAN_RIGHT, rule), "threshold": cut}
        is_single = model.value.dtype == np.float32
        return cls(
            **arrays,
            family="additive" if model.is_rules else "trees",
            source=source if source.n_trees and source.has_lightgbm_rules else None,
            precision=float(np.finfo(np.float32).eps) if is_single else 0.0,
        )

    @property
    def categories(self) -> dict[int, list[int]]:
        """Map nodes to the categories that are sent left."""
        return {
            node: [
                32 * k + bit
                for k, word in enumerate(self.sets[int(self.threshold[node])].tolist())
                for bit in range(32)
                if word >> bit & 1
            ]
            for node in np.flatnonzero(self.is_set).tolist()
        }

    @property
    def missing_left(self) -> Any:
        """Whether each node sends a missing value left; a plain split treats it as 0."""
        plain = (self.rule == PLAIN) & (self.threshold >= 0.0)
        return plain | (self.rule == NAN_LEFT)

    @property
    def fill_value(self) -> F64:
        """The number that replaces a missing value of each feature; NaN if no number does."""
        numbers, left = np.zeros(self.n_features), self.missing_left
        for f in np.unique(self.feature[self.splits]).tolist():
            at = self.splits[self.feature[self.splits] == f]
            if (self.rule[at] > NAN_RIGHT).any():
                numbers[f] = np.nan
            elif (self.rule[at] != PLAIN).any():
                mixed = left[at].any() and not left[at].all()
                numbers[f] = np.nan if mixed else -HIGHEST if left[at[0]] else HIGHEST
        return numbers

    @property
    def largest(self) -> float:
        """Largest absolute value of a leaf or of the offset."""
        return _largest(self.value, np.array([self.offset]))

    def check_numeric(self, target: str) -> None:
        """Raise for splits that ``target`` does not support."""
        rules = set(self.rule[self.splits].tolist())
        if self.is_set.any():
            others = "lightgbm, json, c or python" if self.source else "json, c or python"
            raise UsageError(
                f"{target} does not support splits on categories; fit without categorical_feature "
                f"and columns of categories, or export to {others}."
            )
        if rules & {ZERO_LEFT, ZERO_RIGHT}:
            raise UsageError(
                f"{target} cannot take zeros for missing values, as these trees do; export to "
                "lightgbm, json, c or python."
            )

    def check_depth(self, target: str) -> None:
        """Raise for trees that are too deep for readers of nested splits."""
        depth = np.zeros(len(self.left), np.int64)
        for node in self.splits.tolist():  # the index of a child is above the index of its parent
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        if depth.max(initial=0) > _DEEPEST:
            raise UsageError(
                f"a tree is {depth.max()} splits deep, and readers of {target} stop at {_DEEPEST}; "
                "fit with fewer leaves, or export to another format."
            )

    def spans(self) -> list[tuple[int, int]]:
        """Return the first node of each tree and the end of its nodes."""
        return list(pairwise(np.append(self.roots, len(self.left)).tolist()))

    def lowest(self, epsilon: float) -> float:
        """Return a lower bound of all scores, summed with rounding errors of ``epsilon``."""
        leaf = self.is_leaf
        leaves = [self.value[a:b][leaf[a:b]] for a, b in self.spans()]
        least = np.array([self.offset, *(values.min() for values in leaves)])
        if (least >= 0.0).all():
            return float(least.sum())  # rounding cannot make the sum negative
        size = abs(self.offset) + sum(np.abs(values).max() for values in leaves)
        return float(least.sum() - epsilon * (len(least) + 1) * size)

    def error(self, X: F64, epsilon: float) -> F64:
        """Return a bound of the error of each score if numbers are rounded by ``epsilon``."""
        epsilon = max(epsilon, self.precision)
        sizes = replace(self, value=np.abs(self.value), offset=abs(self.offset))
        return epsilon * added(self.n_trees) * sizes.scores(X, n_jobs=1)

    def in_lightgbm(self) -> Forest:
        """Return the forest with LightGBM's rules; raise for splits that LightGBM lacks."""
        if self.source is not None:
            return self.source
        self.check_numeric("lightgbm")
        is_split = ~self.is_leaf
        rule = np.where(self.missing_left & is_split, NAN_LEFT, NAN_RIGHT)
        arrays = {field.name: getattr(self, field.name) for field in fields(Forest)}
        arrays["rule"] = np.where(is_split, rule, PLAIN)
        arrays["threshold"] = np.maximum(self.threshold, LOWEST)
        arrays["cover"] = np.ones(len(self.left))
        return Forest(**arrays)


def _largest(*parts: F64 | None) -> float:
    return max(float(np.abs(part).max(initial=0.0)) for part in parts if part is not None)


def added(terms: int) -> float:
    """Return the growth of rounding errors over a sum of terms, as of a random walk."""
    return 4.0 + 2.0 * float(np.sqrt(terms))


# --- sums of several -----------------------------------------------------------------------------


OneKind = Linear | PortableForest | Network


@dataclass(frozen=True, eq=False)
class Blend:
    """The sum of weights, a forest and networks; weights with equal fill values are added."""

    family: ClassVar[str] = "blend"
    parts: tuple[OneKind, ...]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.parts[0].n_features

    @property
    def largest(self) -> float:
        """Largest absolute number of a part."""
        return max(part.largest for part in self.parts)

    def error(self, X: F64, epsilon: float) -> F64:
        """Return a bound of the error of each score if numbers are rounded by ``epsilon``."""
        errors = np.array([part.error(X, epsilon) for part in self.parts])
        bound: F64 = added(len(self.parts)) / 4.0 * errors.sum(axis=0)
        return bound


def forest_in(model: Portable) -> PortableForest | None:
    """Return the forest that a model is or contains, or None."""
    if isinstance(model, Blend):
        return next((part for part in model.parts if isinstance(part, PortableForest)), None)
    return model if isinstance(model, PortableForest) else None


def _scaled(model: Portable, factor: float) -> OneKind:
    """Return the model with its scores multiplied by ``factor``."""
    assert not isinstance(model, Blend)
    if isinstance(model, Linear):
        return replace(model, coef=factor * model.coef, intercept=factor * model.intercept)
    if isinstance(model, PortableForest):
        return replace(model, value=factor * model.value, offset=factor * model.offset, source=None)
    *hidden, (weight, constant) = model.layers
    return replace(model, layers=(*hidden, (factor * weight, factor * constant)))


def _added_weights(parts: list[Linear]) -> list[Linear]:
    """Return one set of weights for each set of fill values."""
    merged: dict[bytes | None, Linear] = {}
    for part in parts:
        key = None if part.fill is None else part.fill.tobytes()
        if key in merged:
            coef, intercept = merged[key].coef + part.coef, merged[key].intercept + part.intercept
            merged[key] = replace(merged[key], coef=coef, intercept=intercept)
        else:
            merged[key] = part
    return list(merged.values())


def _joined(forests: list[PortableForest]) -> PortableForest:
    """Return the trees of several forests as one."""
    first, *others = forests
    return replace(
        first.join(others),
        offset=float(sum(forest.offset for forest in forests)),
        family="additive" if all(forest.family == "additive" for forest in forests) else "trees",
        precision=max(forest.precision for forest in forests),
        source=first.source if not others else None,
    )


# --- from fitted models ------------------------------------------------------------------------


Portable = OneKind | Blend


def portable(model: FittedModel, name: str) -> Portable:
    """Return a fitted model of the kind ``name`` in a form for targets; raise if it has none."""
    for kind in type(model).__mro__:
        if kind in _KINDS:
            return _KINDS[kind](model)
    why = _REFUSED.get(name, f"models of the kind '{name}' exist only in rankwright")
    raise UsageError(
        f"{why}; linear, additive, tree and network models can be exported, this one cannot."
    )


def columns_missing_is_not_zero(model: Portable) -> I64:
    """Return the columns in which a missing value and 0 may have different scores.

    No column is returned for a model that refuses missing values.
    """
    if isinstance(model, Blend):
        return np.unique(np.concatenate([*map(columns_missing_is_not_zero, model.parts)]))
    if isinstance(model, PortableForest):
        at = model.splits
        apart = model.missing_left[at] != (model.threshold[at] >= 0.0)
        return np.unique(model.feature[at][apart])
    if model.fill is None:
        return np.empty(0, np.int64)
    weights = model.coef[:, None] if isinstance(model, Linear) else model.layers[0][0]
    return np.flatnonzero((model.fill != 0.0) & (weights != 0.0).any(axis=1))


_REFUSED = {
    "kernel": "a kernel model compares a document with its training documents, which no export "
    "format has",
    "factorization": "a factorisation scores the items of its training users, not features",
    "jrank": "a joint kernel scores the items of its training users, not features",
    "classifier": "an expected grade is a mean over probabilities, which no target computes",
    "expression": "a formula has functions that no export format has",
}


def _of_network(model: FittedNetwork) -> Network:
    if model.context:
        raise UsageError(
            "a network with a list context scores whole lists, which no target does; fit with "
            "list_context=0, or serve it with rankwright."
        )
    return Network(model.layers, model.activation, model.fill, model.centre)


def _of_blend(model: FittedBlend) -> Portable:
    """Return the members in as few parts as possible: one forest, one set of weights per fill."""
    parts = [
        _scaled(portable(member, kind), float(factor))
        for member, kind, factor in zip(model.members, model.kinds, model.factors, strict=True)
    ]
    forests = [part for part in parts if isinstance(part, PortableForest)]
    merged: list[OneKind] = [
        *_added_weights([part for part in parts if isinstance(part, Linear)]),
        *([_joined(forests)] if forests else []),
        *(part for part in parts if isinstance(part, Network)),
    ]
    return merged[0] if len(merged) == 1 else Blend(tuple(merged))


_KINDS: dict[type, Callable[[Any], Portable]] = {
    FittedBlend: _of_blend,
    FittedLinear: lambda model: Linear(model.coef, model.fill, model.intercept),
    Forest: PortableForest.of,
    FittedNetwork: _of_network,
}


def _filled(X: F64, fill: F64 | None) -> F64:
    return X if fill is None else np.where(np.isnan(X), fill, X)
