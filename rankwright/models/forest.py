"""A tree ensemble as node arrays: the fitted model of every tree ranker.

    score(x) = (base + tree_1(x) + ... + tree_T(x)) scale + offset                              (1)

The trees follow each other in the node arrays; a tree has its splits first, the root foremost, and
then its leaves. Models of LightGBM, XGBoost, CatBoost and RankLib are converted to this form when
they are read and from it when they are written; scoring, SHAP values, importance, exports and model
files use the arrays.

Each library has its own arithmetic, which scoring repeats bit for bit:

    LightGBM    double sums; a random forest divides the sum by the number of trees
    XGBoost     x < threshold on float32 features; single-precision sums from the base score; values
                that a sparse row does not store are missing
    CatBoost    x > border on float32 features; double sums, times a scale, plus a bias

XGBoost and CatBoost round features to float32. Here each of their thresholds is the highest float64
that rounds to a float32 on the left, so that features need not be rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.core.checks import ArraySpec
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.errors import DataError
from rankwright.models.forest_scoring import CATEGORY, EXACT_LEFT, MEMBER_OR_NAN, Scorer, has_set
from rankwright.models.schema import Schema
from rankwright.models.tree_shap import TreeShap

if TYPE_CHECKING:
    import lightgbm as lgb

_DEEPEST = 10_000  # splits; the trees of other libraries have dozens
_NODES = {
    "feature": np.int64,
    "threshold": np.float64,
    "left": np.int64,
    "right": np.int64,
    "value": np.float64,
    "rule": np.int64,
    "cover": np.float64,
    "gain": np.float64,
}
_TREES = {"roots": np.int64, "shrinkage": np.float64}
_SCHEMA = Schema(
    (
        ArraySpec("feature", "int32", ("nodes",), below="features"),
        ArraySpec("threshold", "float64", ("nodes",), low=-np.inf, finite=False),
        ArraySpec("left", "int32", ("nodes",), below="nodes"),
        ArraySpec("right", "int32", ("nodes",), below="nodes"),
        ArraySpec("value", "float32 float64", ("nodes",)),
        ArraySpec("rule", "int32", ("nodes",), low=0, high=MEMBER_OR_NAN),
        ArraySpec("cover", "float64", ("nodes",)),
        ArraySpec("gain", "float64", ("nodes",), finite=False),
        ArraySpec("roots", "int32", ("trees",), below="nodes"),
        ArraySpec("shrinkage", "float64", ("trees",)),
        ArraySpec("set_sizes", "int32", ("sets",), low=0),
        ArraySpec("set_words", "uint32", ("words",)),
        ArraySpec("arithmetic", "float64", (3,)),
        ArraySpec("flags", "bool", (2,)),
        ArraySpec("n_rounds", "int64", (1,), low=0),
    )
)


@dataclass(frozen=True, eq=False)
class Forest:
    """A tree ensemble.

    Parameters
    ----------
    n_features : int
    roots : (T,) array
        First node of each tree.
    feature, rule : (N,) arrays
        Column of each split and its rule for missing values (`forest_scoring`); 0 for leaves.
    threshold : (N,) array
        A row is sent left if x <= threshold. For a split on categories, the index in ``sets``.
    left, right : (N,) arrays
        Children of each split; a leaf is its own child.
    value : (N,) array
        Value of each leaf; 0 for splits. Leaves in float32 are added in single precision.
    cover, gain : (N,) arrays
        Weight of the training documents in each node, and gain of each split.
    shrinkage : (T,) array
        Learning rate that the values of each tree include.
    sets : tuple of arrays of uint32
        Sets of categories that are sent left, as bits.
    base, scale, offset : float
        See (1).
    is_mean : bool
        Whether the sum of the trees is divided by their number.
    absent_is_missing : bool
        Whether values that a sparse row does not store are missing instead of 0.
    n_rounds : int
        Number of boosting rounds; a fit that continues from this model counts from it.
    """

    n_features: int
    roots: I64
    feature: I64
    threshold: F64
    left: I64
    right: I64
    value: AnyArray
    rule: I64
    cover: F64
    gain: F64
    shrinkage: F64
    sets: tuple[NDArray[np.uint32], ...] = ()
    base: float = 0.0
    scale: float = 1.0
    offset: float = 0.0
    is_mean: bool = False
    absent_is_missing: bool = False
    n_rounds: int = 0

    unbounded: ClassVar[frozenset[str]] = frozenset({"threshold", "gain"})

    # --- constructors --------------------------------------------------------------------------

    @classmethod
    def empty(cls, n_features: int, *, base: float = 0.0, offset: float = 0.0) -> Self:
        """Return a forest without trees."""
        arrays: dict[str, Any] = {
            name: np.empty(0, kind) for name, kind in {**_NODES, **_TREES}.items()
        }
        return cls(n_features, **arrays, base=base, offset=offset)

    @classmethod
    def of_trees(cls, n_features: int, trees: Sequence[Self], **arithmetic: Any) -> Self:
        """Return the sum of single trees; ``arithmetic`` has other parameters of the forest."""
        if not trees:
            return replace(cls.empty(n_features), **arithmetic)
        return replace(trees[0].join(trees[1:]), **arithmetic)

    @classmethod
    def leaf(cls, n_features: int, value: float) -> Self:
        """Return a tree without a split."""
        arrays: dict[str, Any] = {name: np.zeros(1, kind) for name, kind in _NODES.items()}
        arrays |= {"value": np.array([value]), "cover": np.ones(1)}
        roots, shrinkage = np.zeros(1, np.int64), np.ones(1)
        return cls(n_features, **arrays, roots=roots, shrinkage=shrinkage, n_rounds=1)

    @classmethod
    def of_nodes(
        cls,
        n_features: int,
        *,
        left: I64,
        right: I64,
        feature: I64,
        threshold: F64,
        rule: I64,
        value: AnyArray,
        cover: F64,
        gain: F64,
        shrinkage: float = 1.0,
        sets: Mapping[int, AnyArray] | None = None,
    ) -> Self:
        """Return one tree from nodes in any order, the root first; leaves have children -1.

        ``sets`` maps nodes to the categories that are sent left, as bits.
        """
        n = len(left)
        arrays = (right, feature, threshold, rule, value, cover, gain)
        if n == 0 or {len(array) for array in arrays} != {n}:
            raise DataError("a tree has lists of different lengths.")
        order, n_splits = _splits_first(left, right)
        splits, nodes = order[:n_splits], np.arange(len(order))
        if n_splits and not 0 <= feature[splits].min() <= feature[splits].max() < n_features:
            raise DataError(f"a tree splits on a feature beyond the {n_features} of the model.")
        position = np.zeros(n, np.int64)
        position[order] = nodes
        is_split = nodes < n_splits
        words = sets or {}
        set_nodes = [node for node in splits.tolist() if node in words]
        cuts = threshold.astype(np.float64)
        cuts[set_nodes] = np.arange(len(set_nodes))
        return cls(
            n_features=n_features,
            roots=np.zeros(1, np.int64),
            feature=np.where(is_split, feature[order], 0),
            threshold=np.where(is_split, cuts[order], 0.0),
            left=np.where(is_split, position[left[order]], nodes),
            right=np.where(is_split, position[right[order]], nodes),
            value=np.where(is_split, value.dtype.type(0), value[order]),
            rule=np.where(is_split, rule[order], 0),
            cover=cover[order].astype(np.float64),
            gain=np.where(is_split, gain[order], 0.0),
            shrinkage=np.array([shrinkage], np.float64),
            sets=tuple(np.asarray(words[node], np.uint32) for node in set_nodes),
            n_rounds=1,
        )

    @classmethod
    def of_rules(
        cls, n_features: int, feature: I64, threshold: F64, weight: F64, *, base: float = 0.0
    ) -> Self:
        """Return the sum of weighted rules [x > threshold], each a tree with one split.

        The gain of a split is the absolute weight. With this cover, the SHAP value of a rule is its
        weight for documents that meet it and 0 for other documents.
        """
        n = len(feature)
        roots = 3 * np.arange(n)
        none, nodes = np.zeros(n), np.arange(3 * n)
        is_split = nodes % 3 == 0
        return cls(
            n_features=n_features,
            roots=roots,
            feature=np.where(is_split, np.repeat(feature, 3), 0),
            threshold=np.where(is_split, np.repeat(threshold, 3), 0.0),
            left=np.where(is_split, nodes + 1, nodes),
            right=np.where(is_split, nodes + 2, nodes),
            value=np.stack([none, none, weight], axis=1).ravel(),
            rule=np.where(is_split, EXACT_LEFT, 0),
            cover=np.tile([1.0, 1.0, 0.0], n),
            gain=np.stack([np.abs(weight), none, none], axis=1).ravel(),
            shrinkage=np.ones(n),
            base=base,
            n_rounds=n,
        )

    # --- structure -----------------------------------------------------------------------------

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @cached_property
    def sizes(self) -> I64:
        """Number of nodes of each tree."""
        return np.diff(np.append(self.roots, len(self.left)))

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf."""
        is_leaf: NDArray[np.bool_] = self.left == np.arange(len(self.left))
        return is_leaf

    @cached_property
    def splits(self) -> I64:
        """The nodes that are not leaves."""
        return np.flatnonzero(~self.is_leaf)

    @property
    def is_set(self) -> NDArray[np.bool_]:
        """Whether each node is a split on categories."""
        is_set: NDArray[np.bool_] = has_set(self.rule)
        return is_set

    @property
    def has_lightgbm_rules(self) -> bool:
        """Whether LightGBM can score the trees: their rules and the sums are LightGBM's."""
        plain = self.base == 0.0 and self.scale == 1.0 and not self.absent_is_missing
        return plain and self.value.dtype == np.float64 and bool((self.rule <= CATEGORY).all())

    @property
    def is_rules(self) -> bool:
        """Whether every tree is a weighted rule [x > threshold], as an additive model has them."""
        at = self.roots
        return bool(
            self.n_trees
            and (self.scale, self.offset, self.is_mean) == (1.0, 0.0, False)
            and self.value.dtype == np.float64
            and (self.sizes == 3).all()
            and (self.rule[at] == EXACT_LEFT).all()
            and not self.value[self.left[at]].any()
        )

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same score, because the leaves of each tree are equal."""
        if not self.n_trees:
            return True
        values = self.value[self.is_leaf]
        n_leaves = self.sizes // 2 + 1
        first = np.cumsum(n_leaves) - n_leaves
        low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        return bool((low == high).all())

    def select(self, first: int, end: int) -> Self:
        """Return the trees ``first:end``."""
        ends = np.append(self.roots, len(self.left))
        a, b = int(ends[first]), int(ends[end])
        nodes: dict[str, Any] = {name: getattr(self, name)[a:b] for name in _NODES}
        nodes["left"], nodes["right"] = nodes["left"] - a, nodes["right"] - a
        at = self.is_set[a:b]
        low = int(nodes["threshold"][at].min()) if at.any() else 0
        high = int(nodes["threshold"][at].max()) + 1 if at.any() else 0
        nodes["threshold"] = np.where(at, nodes["threshold"] - low, nodes["threshold"])
        return replace(
            self,
            **nodes,
            roots=self.roots[first:end] - a,
            shrinkage=self.shrinkage[first:end],
            sets=self.sets[low:high],
            n_rounds=end - first,
        )

    def join(self, others: Sequence[Forest]) -> Self:
        """Return the forest with the trees of ``others`` appended and the same base and offset."""
        forests: list[Forest] = [self, *others]
        n_nodes = [len(forest.left) for forest in forests]
        first_node = np.cumsum([0, *n_nodes[:-1]])
        first_set = np.cumsum([0, *(len(forest.sets) for forest in forests[:-1])])
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(forest, name) for forest in forests])
            for name in (*_NODES, *_TREES)
        }
        arrays["left"] += np.repeat(first_node, n_nodes)
        arrays["right"] += np.repeat(first_node, n_nodes)
        arrays["roots"] += np.repeat(first_node, [forest.n_trees for forest in forests])
        is_set = has_set(arrays["rule"])
        arrays["threshold"][is_set] += np.repeat(first_set, n_nodes)[is_set]
        return replace(
            self,
            **arrays,
            sets=tuple(words for forest in forests for words in forest.sets),
            n_rounds=sum(forest.n_rounds for forest in forests),
        )

    def as_sum(self) -> Self:
        """Return a forest whose score is the plain sum of its trees and an offset, in double."""
        factor = self.scale / self.n_trees if self.is_mean else self.scale
        return replace(
            self,
            value=self.value.astype(np.float64) * factor,
            base=0.0,
            scale=1.0,
            offset=self.base * factor + self.offset,
            is_mean=False,
        )

    # --- use -----------------------------------------------------------------------------------

    @cached_property
    def _scorer32(self) -> Scorer:
        return Scorer.of(self, np.float32)

    @cached_property
    def _scorer64(self) -> Scorer:
        return Scorer.of(self, np.float64)

    def scorer(self, dtype: Any) -> Scorer:
        """Return the compiled forest for features of ``dtype``."""
        return self._scorer32 if dtype == np.float32 else self._scorer64

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row, equal to the score of the original library."""
        total = self.scorer(X.dtype).scores(X, self.base, n_jobs)
        if self.is_mean:
            total /= self.n_trees
        if self.scale != 1.0:
            total *= self.scale
        if self.offset:
            total += self.offset
        return total

    def running_scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the scores that training continues from, with the bits of one long run.

        Training adds each tree to the scores before it; `scores` adds the offset last.
        """
        if not self.n_trees:  # a first fit compiles no kernels of scoring
            return np.full(X.shape[0], self.offset)
        return self.scorer(X.dtype).scores(X, self.offset, n_jobs)

    def contributions(self, X: FloatMatrix) -> F64:
        """Return SHAP values: one column per feature, and the expected score last."""
        offset = self._shap.forest.offset + self._shap.expected
        return np.hstack([self._shap.values(X), np.full((X.shape[0], 1), offset)])

    @cached_property
    def _shap(self) -> TreeShap:
        return TreeShap.of(self.as_sum())

    @property
    def split_by(self) -> str:
        """Method of `contributions`."""
        return "rules" if self.is_rules else "SHAP values"

    def importance(self, kind: str) -> F64:
        """Return the total gain of each feature, or its number of splits."""
        at = self.splits
        weight = self.gain[at] if kind == "gain" else np.ones(len(at))
        if self.has_lightgbm_rules:  # LightGBM counts splits with a positive gain only
            weight = np.where(self.gain[at] > 0.0, weight, 0.0)
        return np.bincount(self.feature[at], weight, self.n_features).astype(np.float64)

    @cached_property
    def booster(self) -> lgb.Booster:
        """LightGBM's model of the trees, without the offset."""
        if not self.has_lightgbm_rules:
            raise AttributeError("these trees have rules that LightGBM does not have.")
        from rankwright.models.lightgbm_engine import booster_of

        return booster_of(self)

    # --- model files ---------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays of the model."""
        named: dict[str, AnyArray] = {name: getattr(self, name) for name in (*_NODES, *_TREES)}
        named["set_sizes"] = np.array([len(words) for words in self.sets], np.int64)
        named = {
            name: array.astype(np.int32) if array.dtype == np.int64 else array
            for name, array in named.items()
        }
        return {
            **named,
            "set_words": np.concatenate([np.empty(0, np.uint32), *self.sets]),
            "arithmetic": np.array([self.base, self.scale, self.offset]),
            "flags": np.array([self.is_mean, self.absent_is_missing]),
            "n_rounds": np.array([self.n_rounds], np.int64),
        }

    def texts(self) -> dict[str, str]:
        """Return an empty mapping: the arrays are the whole model."""
        return {}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> Self:
        """Build the model from its arrays, checked."""
        _SCHEMA.check(arrays, texts, features=n_features)
        nodes: dict[str, Any] = {
            name: array.astype(np.int64) if array.dtype == np.int32 else array
            for name, array in arrays.items()
            if name in (*_NODES, *_TREES)
        }
        ends = np.cumsum(arrays["set_sizes"])
        if ends[-1:].sum() != len(arrays["set_words"]):
            raise DataError("the categories of the trees are damaged.")
        base, scale, offset = arrays["arithmetic"].tolist()
        is_mean, absent_is_missing = arrays["flags"].tolist()
        forest = cls(
            n_features=n_features,
            **nodes,
            sets=tuple(np.split(arrays["set_words"], ends[:-1])) if len(ends) else (),
            base=base,
            scale=scale,
            offset=offset,
            is_mean=is_mean,
            absent_is_missing=absent_is_missing,
            n_rounds=int(arrays["n_rounds"][0]),
        )
        forest.validate()
        return forest

    def validate(self) -> None:
        """Raise unless every row ends in a leaf of each tree; the kernels check no bounds."""
        if not self._is_valid():
            raise DataError("its trees are damaged: their nodes or numbers do not make scores.")

    def _is_valid(self) -> bool:
        n = len(self.left)
        if any(len(getattr(self, name)) != n for name in _NODES):
            return False
        if len(self.shrinkage) != self.n_trees or (n > 0) != (self.n_trees > 0):
            return False
        if n and (self.roots[0] != 0 or (self.sizes % 2 != 1).any() or (self.sizes < 1).any()):
            return False
        node = np.arange(n)
        is_leaf = node >= np.repeat(self.roots + self.sizes // 2, self.sizes)
        children = np.concatenate([self.left[~is_leaf], self.right[~is_leaf]])
        ends = np.repeat(self.roots + self.sizes, self.sizes)
        sets = self.threshold[self.is_set]
        return bool(
            np.array_equal(np.sort(children), np.delete(node, self.roots))  # each has one parent
            and all(
                np.where(is_leaf, side == node, (side > node) & (side < ends)).all()
                for side in (self.left, self.right)
            )
            and ((self.feature >= 0) & (self.feature < self.n_features)).all()
            and ((self.rule >= 0) & (self.rule <= MEMBER_OR_NAN)).all()
            and not self.is_set[is_leaf].any()
            and not np.isnan(self.threshold).any()
            and ((sets >= 0) & (sets < len(self.sets)) & (sets == np.floor(sets))).all()
            and np.isfinite(self.value).all()
            and np.isfinite(self.cover).all()
            and np.isfinite(self.shrinkage).all()
        )


def node_means(left: I64, right: I64, value: AnyArray, cover: F64) -> tuple[F64, F64, F64]:
    """Return the cover of each node, the mean value below it, and the gain of each split.

    The index of a child is above the index of its parent. The children of a leaf are -1 or the leaf
    itself. The gain is the decrease of the weighted variance of the values,

        gain = w_left w_right / (w_left + w_right) (mean_left - mean_right)^2.                  (2)
    """
    covers, means, gains = cover.tolist(), value.tolist(), [0.0] * len(left)
    for node, (a, b) in reversed([*enumerate(zip(left.tolist(), right.tolist(), strict=True))]):
        if a in (-1, node):
            continue
        total = covers[node] = covers[a] + covers[b]
        means[node] = 0.5 * (means[a] + means[b])
        if total > 0.0:
            means[node] = (covers[a] * means[a] + covers[b] * means[b]) / total
            gains[node] = covers[a] * covers[b] / total * (means[a] - means[b]) ** 2  # (2)
    return np.array(covers, np.float64), np.array(means, np.float64), np.array(gains)


def _splits_first(left: I64, right: I64) -> tuple[I64, int]:
    """Return the nodes of a tree, splits level by level and then leaves; and the number of splits.

    Raise if they do not form a tree.
    """
    n = len(left)
    level, levels, seen = np.zeros(1, np.int64), [], 0
    while len(level):
        seen += len(level)
        if seen > n:
            raise DataError("a tree has a cycle.")
        levels.append(level)
        if len(levels) > _DEEPEST:
            raise DataError(f"a tree is more than {_DEEPEST:,} splits deep.")
        inner = level[(left[level] != -1) | (right[level] != -1)]
        level = np.stack([left[inner], right[inner]], axis=1).ravel()
        if len(level) and not 0 <= level.min() <= level.max() < n:
            raise DataError("a tree has a split without a child.")
    order = np.concatenate(levels)
    if len(np.unique(order)) != len(order):
        raise DataError("a tree has a node with two parents.")
    is_leaf = left[order] == -1
    return np.concatenate([order[~is_leaf], order[is_leaf]]), int((~is_leaf).sum())
