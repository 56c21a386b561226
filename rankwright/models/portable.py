"""Fitted models in parts that any other system can hold: weights, trees or layers.

    linear    score = sum_j w_j x_j
    forest    score = initial + sum over trees of the leaf that x falls into; rules [x > t] of an
              additive model are trees with one split
    network   h_l = a(W_l' h_{l-1} + b_l), score = w'h + b
    blend     the sum of some of these

Scaling of features is part of the weights; ``fill`` holds the value that replaces a missing one.

A forest is one array of nodes. A split sends x left where x <= threshold; `RULES` has what else it
may do, by name:

    plain                     a missing value is 0
    nan_left, nan_right       a missing value goes there
    zero_left, zero_right     so does 0
    category                  what is in a set goes left
    member, member_or_nan     as category, for numbers from 0 alone; the latter sends NaN left too
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankwright.core.types import F64, I64, FittedModel
from rankwright.errors import UsageError
from rankwright.models.additive import FittedAdditive
from rankwright.models.blend import FittedBlend
from rankwright.models.fitted_network import FittedNetwork
from rankwright.models.forest_scorer import ForestScorer
from rankwright.models.imported_trees import ImportedForest
from rankwright.models.linear import FittedLinear
from rankwright.models.tree_text import DEFAULT_LEFT, Nodes, leaf_block, tree_block
from rankwright.models.trees import FittedTrees


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
        """What a missing value of each feature counts as; NaN where the model refuses it."""
        return np.full(len(self.coef), np.nan) if self.fill is None else self.fill

    @property
    def largest(self) -> float:
        """Largest absolute value of a weight, a fill value or the intercept."""
        return _largest(self.coef, self.fill, np.array([self.intercept]))

    def error(self, X: F64, epsilon: float) -> F64:
        """Return how far rounding each number by ``epsilon`` may take the score of each row."""
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
        """What a missing value of each feature counts as; NaN where the model refuses it."""
        return np.full(self.n_features, np.nan) if self.fill is None else self.fill

    @property
    def largest(self) -> float:
        """The largest weight, constant or fill value, whatever its sign."""
        return _largest(self.fill, *(part for layer in self.layers for part in layer))

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


# --- forests -----------------------------------------------------------------------------------


RULES = (
    "plain", "nan_left", "nan_right", "zero_left", "zero_right", "category", "member",
    "member_or_nan",
)  # fmt: skip
SETS = ("category", "member", "member_or_nan")
_PLAIN, _NAN_LEFT, _NAN_RIGHT = range(3)
# what a scorer calls exact is all that a target knows: thresholds have what LightGBM takes for 0
_OF_SCORER = np.array([0, 1, 2, 3, 4, 5, _NAN_LEFT, _NAN_RIGHT, 6, 7])
_DEEPEST = 400  # splits; readers of JSON stop at 1,000 levels, two of them per split
HIGHEST = float(np.finfo(np.float32).max)
LOWEST = float(np.finfo(np.float64).min)
_NAN = 2 << 2  # missing type NaN, in LightGBM's decision_type
ZERO = float(np.float32(1e-35))  # what LightGBM takes for 0, and all that is nearer


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as one run of nodes; the children of a leaf are itself.

    Parameters
    ----------
    family : "trees" or "additive"
    scorer
        The trees.
    initial
        The score that every document starts from.
    text
        LightGBM's text, where the trees come from it.
    precision
        How much the model itself rounds its sums, relative to their size.
    """

    family: str
    scorer: ForestScorer
    initial: float
    text: str = ""
    precision: float = 0.0

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.scorer.n_features

    @cached_property
    def feature(self) -> I64:
        """What each split looks at."""
        return self.scorer.feature[self.scorer.view]

    @property
    def is_leaf(self) -> Any:
        """Whether each node is a leaf."""
        return self.left == np.arange(len(self.left))

    @cached_property
    def rule(self) -> I64:
        """What each split makes of missing values."""
        return np.where(self.is_leaf, _PLAIN, _OF_SCORER[self.scorer.rule[self.scorer.view]])

    @property
    def roots(self) -> I64:
        """The first node of each tree."""
        return self.scorer.roots

    @property
    def threshold(self) -> F64:
        """Of each split."""
        return self.scorer.threshold

    @property
    def left(self) -> I64:
        """Where x <= threshold goes."""
        return self.scorer.left

    @property
    def right(self) -> I64:
        """Where the others go."""
        return self.scorer.right

    @property
    def value(self) -> F64:
        """Of each leaf."""
        return self.scorer.value

    @property
    def splits(self) -> I64:
        """The nodes that are splits."""
        return np.flatnonzero(~self.is_leaf)

    @property
    def is_set(self) -> Any:
        """Whether each node is a split on a set of categories."""
        return np.isin(self.rule, [RULES.index(name) for name in SETS])

    @property
    def categories(self) -> dict[int, list[int]]:
        """The categories that go left, by node."""
        found = {}
        for node in self.splits[self.is_set[self.splits]].tolist():
            words = self.scorer.sets[int(self.scorer.view[node])].tolist()
            found[node] = [32 * w + b for w, word in enumerate(words) for b in range(32)
                           if word >> b & 1]  # fmt: skip
        return found

    @property
    def missing_left(self) -> Any:
        """Whether a missing value goes left, by node; a plain split takes it for 0."""
        plain = (self.rule == _PLAIN) & (self.threshold >= 0.0)
        return plain | (self.rule == _NAN_LEFT)

    @property
    def fill_value(self) -> F64:
        """The number that a missing value of each feature counts as, NaN where none does."""
        numbers, left = np.zeros(self.scorer.n_features), self.missing_left
        for f in np.unique(self.feature[self.splits]).tolist():
            at = self.splits[self.feature[self.splits] == f]
            if (self.rule[at] > _NAN_RIGHT).any():
                numbers[f] = np.nan
            elif (self.rule[at] != _PLAIN).any():
                mixed = left[at].any() and not left[at].all()
                numbers[f] = np.nan if mixed else -HIGHEST if left[at[0]] else HIGHEST
        return numbers

    @property
    def largest(self) -> float:
        """The largest value of a leaf or of the start, whatever its sign."""
        return _largest(self.value, np.array([self.initial]))

    def check_numeric(self, target: str) -> None:
        """Refuse splits that ``target`` does not know."""
        rules = set(self.rule[self.splits].tolist())
        if self.is_set.any():
            others = "lightgbm, json, c or python" if self.text else "json, c or python"
            raise UsageError(
                f"{target} does not support splits on categories; fit without categorical_feature "
                f"and columns of categories, or export to {others}."
            )
        if rules & {RULES.index("zero_left"), RULES.index("zero_right")}:
            raise UsageError(
                f"{target} cannot take zeros for missing values, as these trees do; export to "
                "lightgbm, json, c or python."
            )

    def check_depth(self, target: str) -> None:
        """Refuse trees deeper than what readers of nested splits take."""
        depth = np.zeros(len(self.left), np.int64)
        for node in self.splits.tolist():  # children come after their parent
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
        """Return a bound that no score is below, added up with roundings of ``epsilon``."""
        leaf = self.is_leaf
        leaves = [self.value[a:b][leaf[a:b]] for a, b in self.spans()]
        least = np.array([self.initial, *(own.min() for own in leaves)])
        if (least >= 0.0).all():
            return float(least.sum())  # no rounding takes a sum of these below 0
        size = abs(self.initial) + sum(np.abs(own).max() for own in leaves)
        return float(least.sum() - epsilon * (len(least) + 1) * size)

    def error(self, X: F64, epsilon: float) -> F64:
        """Return how far rounding each number by ``epsilon`` may take the score of each row."""
        epsilon = max(epsilon, self.precision)
        sizes = replace(self.scorer, value=np.abs(self.value))
        size = sizes.scores(X, initial=abs(self.initial), n_jobs=1)
        return epsilon * added(len(self.roots)) * size


def one_split_each(rules: list[Any], alone: F64, n_features: int) -> ForestScorer:
    """Return a tree with one split for each rule [x_f > t], then one leaf for each of ``alone``."""
    feature, threshold, weight = rules
    k, m = len(feature), len(alone)
    views = np.unique(feature).astype(np.int64) if k else np.zeros(1, np.int64)
    at, own = 3 * np.arange(k), 3 * k + np.arange(m)
    left, right = np.arange(3 * k + m), np.arange(3 * k + m)
    left[at], right[at] = at + 1, at + 2
    value, cut = np.zeros(3 * k + m), np.zeros(3 * k + m)
    value[at + 2], value[own], cut[at] = weight, alone, threshold
    view = np.zeros(3 * k + m, np.int64)
    view[at] = np.searchsorted(views, feature)
    return ForestScorer(
        n_features=n_features,
        roots=np.append(at, own),
        leaves=np.append(at + 1, own),
        threshold=cut,
        left=left,
        right=right,
        value=value,
        view=view,
        feature=views,
        rule=np.full(len(views), _NAN_LEFT),
        sets=tuple(np.empty(0, np.uint32) for _ in views),
    )


def lightgbm_blocks(model: Forest) -> list[str]:
    """Return trees with numeric splits as LightGBM writes them, one text for each tree."""
    model.check_numeric("lightgbm")
    found = []
    for a, b in model.spans():
        n, inner = b - a, model.left[a:b] != np.arange(a, b)
        if not inner.any():
            found.append(leaf_block(float(model.value[a])))
            continue
        nodes = Nodes(
            inner=inner,
            left=model.left[a:b] - a,
            right=model.right[a:b] - a,
            feature=model.feature[a:b],
            threshold=np.maximum(model.threshold[a:b], LOWEST),
            decision=_NAN + DEFAULT_LEFT * model.missing_left[a:b].astype(np.int64),
            gain=np.ones(n),
            value=np.where(inner, 0.0, model.value[a:b]),
            weight=np.ones(n),
            count=np.where(inner, 2, 1),
        )
        found.append(tree_block(nodes))
    return found


def _largest(*parts: F64 | None) -> float:
    return max(float(np.abs(part).max(initial=0.0)) for part in parts if part is not None)


def added(terms: int) -> float:
    """Return how roundings of so many terms add up, which is like a walk with random signs."""
    return 4.0 + 2.0 * float(np.sqrt(terms))


# --- sums of several -----------------------------------------------------------------------------


OneKind = Linear | Forest | Network


@dataclass(frozen=True, eq=False)
class Blend:
    """The sum of weights, a forest and networks: at most one of the former two for each fill."""

    family: ClassVar[str] = "blend"
    parts: tuple[OneKind, ...]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.parts[0].n_features

    @property
    def largest(self) -> float:
        """The largest number of a part, whatever its sign."""
        return max(part.largest for part in self.parts)

    def error(self, X: F64, epsilon: float) -> F64:
        """Return how far rounding each number by ``epsilon`` may take the score of each row."""
        errors = np.array([part.error(X, epsilon) for part in self.parts])
        found: F64 = added(len(self.parts)) / 4.0 * errors.sum(axis=0)
        return found


def forest_in(model: Portable) -> Forest | None:
    """Return the forest that a model is or has among its parts, if any."""
    if isinstance(model, Blend):
        return next((part for part in model.parts if isinstance(part, Forest)), None)
    return model if isinstance(model, Forest) else None


def _scaled(model: Portable, factor: float) -> OneKind:
    """Return a model whose scores are ``factor`` times those of ``model``."""
    assert not isinstance(model, Blend)
    if isinstance(model, Linear):
        return replace(model, coef=factor * model.coef, intercept=factor * model.intercept)
    if isinstance(model, Forest):
        scorer = replace(model.scorer, value=factor * model.value.astype(np.float64))
        return replace(model, scorer=scorer, initial=factor * model.initial, text="")
    *hidden, (weight, constant) = model.layers
    return replace(model, layers=(*hidden, (factor * weight, factor * constant)))


def _added_weights(parts: list[Linear]) -> list[Linear]:
    """Return one set of weights for each way to fill in missing values."""
    found: list[Linear] = []
    for part in parts:
        for k, own in enumerate(found):
            neither = part.fill is None and own.fill is None
            if neither or (
                part.fill is not None
                and own.fill is not None
                and np.array_equal(part.fill, own.fill)
            ):
                intercept = own.intercept + part.intercept
                found[k] = replace(own, coef=own.coef + part.coef, intercept=intercept)
                break
        else:
            found.append(part)
    return found


def _joined(forests: list[Forest]) -> Forest:
    """Return the trees of several forests as one."""
    if len(forests) == 1:
        return forests[0]
    scorers = [forest.scorer for forest in forests]
    nodes = np.cumsum([0, *(len(own.left) for own in scorers)])[:-1]
    views = np.cumsum([0, *(len(own.feature) for own in scorers)])[:-1]
    feature = np.concatenate([own.feature for own in scorers])
    order = np.argsort(feature, kind="stable")  # views stand in order of feature
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    sets = [words for own in scorers for words in own.sets]

    def moved(name: str, by: I64) -> I64:
        parts = [getattr(own, name) + k for own, k in zip(scorers, by.tolist(), strict=True)]
        return np.concatenate(parts)

    joined = ForestScorer(
        n_features=scorers[0].n_features,
        roots=moved("roots", nodes),
        leaves=moved("leaves", nodes),
        threshold=np.concatenate([own.threshold for own in scorers]),
        left=moved("left", nodes),
        right=moved("right", nodes),
        value=np.concatenate([own.value for own in scorers]),
        view=place[moved("view", views)],
        feature=feature[order],
        rule=np.concatenate([own.rule for own in scorers])[order],
        sets=tuple(sets[k] for k in order.tolist()),
    )
    family = "additive" if all(own.family == "additive" for own in forests) else "trees"
    initial = float(sum(own.initial for own in forests))
    return Forest(family, joined, initial, precision=max(own.precision for own in forests))


# --- from fitted models ------------------------------------------------------------------------


Portable = OneKind | Blend


def portable(model: FittedModel, name: str) -> Portable:
    """Return a fitted model, of the kind ``name``, in parts, or say why it cannot be exported."""
    for kind in type(model).__mro__:
        if kind in _KINDS:
            return _KINDS[kind](model)
    why = _REFUSED.get(name, f"models of the kind '{name}' exist only in rankwright")
    raise UsageError(
        f"{why}; linear, additive, tree and network models can be exported, this one cannot."
    )


def columns_missing_is_not_zero(model: Portable) -> I64:
    """Return the columns in which a missing value scores differently from 0.

    Those of a model that refuses missing values are not among them.
    """
    if isinstance(model, Blend):
        return np.unique(np.concatenate([*map(columns_missing_is_not_zero, model.parts)]))
    if isinstance(model, Forest):
        at = model.splits
        apart = model.missing_left[at] != (model.threshold[at] >= 0.0)
        return np.unique(model.feature[at][apart])
    if model.fill is None:
        return np.empty(0, np.int64)
    weights = model.coef[:, None] if isinstance(model, Linear) else model.layers[0][0]
    return np.flatnonzero((model.fill != 0.0) & (weights != 0.0).any(axis=1))


_REFUSED = {
    "kernel": "a kernel model compares a document with those it was trained on, which no target "
    "keeps",
    "factorization": "a factorisation scores the items of the users it has seen, not features",
    "jrank": "a joint kernel scores the items of the users it has seen, not features",
    "classifier": "an expected grade is a mean over probabilities, which no target computes",
    "expression": "a formula has functions of its own, held to a range, which no target has",
}


def _of_linear(model: FittedLinear) -> Linear:
    return Linear(model.coef, model.fill, model.intercept)


def _of_trees(model: FittedTrees) -> Forest:
    if model.n_trees == 0:
        empty = one_split_each([np.empty(0)] * 3, np.zeros(1), model.n_features)
        return Forest("trees", empty, model.initial)
    scorer = model.forest.scorer
    cut = scorer.threshold.copy()
    # LightGBM treats numbers this near to 0 as 0: the thresholds say so, for every other system
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


def _of_blend(model: FittedBlend) -> Portable:
    """Return trees as one forest and weights as one set; what is left of one kind is just that."""
    parts = [
        _scaled(portable(member, kind), float(factor))
        for member, kind, factor in zip(model.members, model.kinds, model.factors, strict=True)
    ]
    forests = [part for part in parts if isinstance(part, Forest)]
    whole: list[OneKind] = [
        *_added_weights([part for part in parts if isinstance(part, Linear)]),
        *([_joined(forests)] if forests else []),
        *(part for part in parts if isinstance(part, Network)),
    ]
    return whole[0] if len(whole) == 1 else Blend(tuple(whole))


_KINDS: dict[type, Callable[[Any], Portable]] = {
    FittedBlend: _of_blend,
    FittedLinear: _of_linear,
    FittedTrees: _of_trees,
    ImportedForest: _of_imported,
    FittedAdditive: _of_additive,
    FittedNetwork: _of_network,
}


def _filled(X: F64, fill: F64 | None) -> F64:
    return X if fill is None else np.where(np.isnan(X), fill, X)
