"""Trees that another library has grown: scored as that library scores them, and never fitted here.

Each library has its own arithmetic, which is kept to the last bit:

    LightGBM    double sums; a random forest's are divided by the number of its trees
    XGBoost     x < threshold on float32 features; leaves and sums in single precision, starting
                from the base score; what a sparse row does not hold is missing
    CatBoost    x > border on float32 features; double sums, times a scale, plus a bias

Features of XGBoost and CatBoost are rounded to float32 first. Here thresholds are the highest
float64 that rounds to what goes left, so that features need not be rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rankwright.core.checks import ArraySpec
from rankwright.core.parameters import Part
from rankwright.core.types import F64, I64, AnyArray, Callback, FloatMatrix, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.forest_scorer import MEMBER_OR_NAN, ForestScorer, TextForest
from rankwright.models.schema import Schema
from rankwright.models.tree_shap import TreeShap
from rankwright.models.tree_text import check_head, tree_blocks, with_scaled_leaves
from rankwright.models.trees import INITIAL, FittedTrees, Trees

_BY_NODE = ("threshold", "left", "right", "value", "view")
_BY_TREE = ("roots", "leaves")
_BY_VIEW = ("feature", "rule")
_RULES = 16  # more than there are
_DEEPEST = 10_000  # splits; other libraries grow trees of some dozens
_MEAN = Schema((INITIAL,), {"lightgbm": (), "mean_of": ()})
_FOREST = Schema(
    (
        ArraySpec("tree_threshold", "float64", ("nodes",), low=-np.inf, finite=False),
        ArraySpec("tree_left", "int64", ("nodes",), below="nodes"),
        ArraySpec("tree_right", "int64", ("nodes",), below="nodes"),
        ArraySpec("tree_value", "float32 float64", ("nodes",)),
        ArraySpec("tree_view", "int64", ("nodes",), below="views"),
        ArraySpec("tree_roots", "int64", ("trees",), below="nodes"),
        ArraySpec("tree_leaves", "int64", ("trees",), below="nodes"),
        ArraySpec("tree_feature", "int64", ("views",), below="features", monotone=True),
        ArraySpec("tree_rule", "int64", ("views",), low=0, high=MEMBER_OR_NAN),
        ArraySpec("set_sizes", "int64", ("views",), low=0),
        ArraySpec("set_words", "uint32", ("words",)),
        ArraySpec("absent_is_missing", "bool", (1,)),
        ArraySpec("cover", "float64", ("nodes",)),
        ArraySpec("gain", "float64", ("nodes",), finite=False),
        ArraySpec("arithmetic", "float64", (3,)),
    ),
    {"library": ()},
)


@dataclass(frozen=True, slots=True, repr=False)
class ImportedTrees(Part):
    """Trees of another library; they predict, and are not fitted again.

    Parameters
    ----------
    library : str
        The library that grew them: LightGBM, XGBoost or CatBoost.
    objective : str
        What they were trained for, by the library's own name.
    """

    library: str = ""
    objective: str = ""

    def check(self) -> None:
        """Refuse to be fitted."""
        go_on = (
            "continue it with fit(..., init_model=ranker) of a ranker with trees such as LambdaMART"
            if self.library == "LightGBM"
            else "fit a ranker of Rankwright instead, such as LambdaMART"
        )
        raise UsageError(f"a model of {self.library} predicts and is not fitted again; {go_on}.")

    def fit(
        self,
        loss: Loss,  # noqa: ARG002
        data: RankingData,  # noqa: ARG002
        *,
        callback: Callback,  # noqa: ARG002
        start: Any = None,  # noqa: ARG002
        random_state: int = 0,  # noqa: ARG002
        n_jobs: int | None = None,  # noqa: ARG002
    ) -> Any:
        """Refuse to be fitted."""
        self.check()

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedTrees | ImportedForest:
        """Build the model from its own arrays and texts."""
        if "mean_of" in texts:
            _MEAN.check(arrays, texts)
            mean = FittedMean(texts["lightgbm"], 0.0, n_features, texts["mean_of"])
            mean.check()
            return mean
        if "lightgbm" in texts:
            return Trees.restore(arrays, texts, n_features)
        return ImportedForest.restore(arrays, texts, n_features)


@dataclass(frozen=True)
class FittedMean(FittedTrees):
    """LightGBM's random forest: the mean of the trees of ``whole``, to the last bit.

    ``text`` has the same trees with their leaves divided, whose sum differs in the last digits.
    """

    whole: str = ""

    @classmethod
    def of(cls, whole: str, n_features: int) -> FittedMean:
        """Return the mean of the trees of a text."""
        share = 1.0 / len(tree_blocks(whole))
        text = with_scaled_leaves(whole.replace("\naverage_output\n", "\n", 1), share)
        return cls(text, 0.0, n_features, whole)

    def check(self) -> None:
        """Raise where one of the texts is damaged."""
        FittedTrees.check(self)
        check_head(self.whole, self.n_features)
        if not 0 < self.n_trees == self._whole.n_trees:
            raise DataError("its trees with divided leaves are not those of the whole text.")

    @cached_property
    def _whole(self) -> ForestScorer:
        return TextForest.read(self.whole, self.n_features).scorer

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row: LightGBM's to the last bit."""
        return self._whole.scores(X, n_jobs=n_jobs) / self._whole.n_trees

    def texts(self) -> dict[str, str]:
        """Return LightGBM's model text, with divided leaves and as it was."""
        return {**super().texts(), "mean_of": self.whole}


@dataclass(frozen=True, eq=False)
class ImportedForest:
    """Trees with the arithmetic of the library that grew them.

    The score is ``(begin + tree + tree + ...) * scale + bias``, where the sum is in the precision
    of the leaves.

    Attributes
    ----------
    library : str
    scorer : ForestScorer
    begin, scale, bias : float
    cover : (N,) array
        Weight of the training documents in each node.
    gain : (N,) array
        What each split gained; 0 for leaves.
    """

    library: str
    scorer: ForestScorer
    begin: float
    cover: F64
    gain: F64
    scale: float = 1.0
    bias: float = 0.0

    @property
    def n_features(self) -> int:
        """Number of features that it takes."""
        return self.scorer.n_features

    unbounded: ClassVar[frozenset[str]] = frozenset({"tree_threshold", "gain"})

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.scorer.n_trees

    @property
    def single(self) -> bool:
        """Whether the leaves are added in single precision."""
        return self.scorer.value.dtype == np.float32

    def check(self) -> None:
        """Raise where the arrays do not make trees: kernels check no bounds."""
        n = len(self.scorer.threshold)
        whole = len(self.cover) == len(self.gain) == n
        if not whole or not self.scorer.is_sound():
            raise DataError("its trees are damaged: their nodes or numbers make no scores.")

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row: the library's own to the last bit."""
        return self._final(self.scorer.scores(X, begin=self.begin, n_jobs=n_jobs))

    def _final(self, total: F64) -> F64:
        if self.scale != 1.0:
            total = total * self.scale
        return total + self.bias if self.bias else total

    def contributions(self, X: FloatMatrix) -> F64:
        """Return SHAP values: one column per feature, and the expected score last."""
        expected = (self.begin + self._shap.expected) * self.scale + self.bias
        return np.hstack([self._shap.values(X) * self.scale, np.full((X.shape[0], 1), expected)])

    @cached_property
    def _shap(self) -> TreeShap:
        return TreeShap.of(self.scorer, self.cover)

    def breakpoints(self, column: int) -> F64:
        """Return the values of a feature after which scores may change."""
        return self.scorer.breakpoints(column)

    def importance(self, kind: str) -> F64:
        """Return each feature's total gain, or its number of splits."""
        gain = self.gain if kind == "gain" else np.ones(len(self.gain))
        return self.scorer.sum_by_feature(gain)

    def in_double(self) -> tuple[ForestScorer, float]:
        """Return trees that add up to the score in double precision, and what they start from."""
        leaves = self.scorer.value.astype(np.float64) * self.scale
        return replace(self.scorer, value=leaves), self.begin * self.scale + self.bias

    # --- model files -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """Return the trees and their arithmetic."""
        own = self.scorer
        names = (*_BY_NODE, *_BY_TREE, *_BY_VIEW)
        return {
            **{f"tree_{name}": getattr(own, name) for name in names},
            "set_sizes": np.array([len(words) for words in own.sets], np.int64),
            "set_words": np.concatenate([np.empty(0, np.uint32), *own.sets]),
            "absent_is_missing": np.array([own.absent_is_missing]),
            "cover": self.cover,
            "gain": self.gain,
            "arithmetic": np.array([self.begin, self.scale, self.bias]),
        }

    def texts(self) -> dict[str, str]:
        """Return the name of the library."""
        return {"library": self.library}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> ImportedForest:
        """Build the model from its own arrays and texts, checked."""
        _FOREST.check(arrays, texts, features=n_features)
        found = {name: arrays[f"tree_{name}"] for name in (*_BY_NODE, *_BY_TREE, *_BY_VIEW)}
        sizes, words = arrays["set_sizes"], arrays["set_words"]
        if sizes.sum() != len(words):
            raise DataError("the categories of the trees are damaged.")
        begin, scale, bias = arrays["arithmetic"].tolist()
        scorer = ForestScorer(
            n_features=n_features,
            sets=tuple(np.split(words, np.cumsum(sizes)[:-1])),
            absent_is_missing=bool(arrays["absent_is_missing"][0]),
            **{name: found[name] for name in found},
        )
        model = cls(
            texts["library"],
            scorer,
            begin,
            arrays["cover"],
            arrays["gain"],
            scale,
            bias,
        )
        model.check()
        return model


# --- from trees in any order of nodes ------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeTree:
    """A tree by node, the root first and the others in any order; a leaf has no children (-1).

    ``sets`` has the categories that go left, as bits, by node.
    """

    left: I64
    right: I64
    feature: I64
    threshold: F64
    rule: I64
    value: AnyArray
    cover: F64
    gain: F64
    sets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def order(self, n_features: int) -> I64:
        """Return the nodes from the root on: splits level by level, then leaves."""
        n = len(self.left)
        arrays = (self.right, self.feature, self.threshold, self.rule, self.value, self.cover)
        if n == 0 or {len(array) for array in (*arrays, self.gain)} != {n}:
            raise DataError("a tree has lists of different lengths.")
        level, levels, seen = np.zeros(1, np.int64), [], 0
        while len(level):
            seen += len(level)
            if seen > n:
                raise DataError("a tree has a cycle.")
            levels.append(level)
            if len(levels) > _DEEPEST:
                raise DataError(f"a tree is more than {_DEEPEST:,} splits deep.")
            inner = level[(self.left[level] != -1) | (self.right[level] != -1)]
            level = np.stack([self.left[inner], self.right[inner]], axis=1).ravel()
            if len(level) and not 0 <= level.min() <= level.max() < n:
                raise DataError("a tree has a split without a child.")
        order = np.concatenate(levels)
        if len(np.unique(order)) != len(order):
            raise DataError("a tree has a node with two parents.")
        is_leaf = self.left[order] == -1
        splits = order[~is_leaf]
        if len(splits) and not 0 <= self.feature[splits].min() <= self.feature[splits].max() < (
            n_features
        ):
            raise DataError(f"a tree splits on a feature beyond the {n_features} of the model.")
        return np.concatenate([splits, order[is_leaf]])


def joined(
    trees: Sequence[NodeTree], n_features: int, leaves: Any, *, absent_is_missing: bool = False
) -> tuple[ForestScorer, F64, F64]:
    """Return the trees as a scorer with ``leaves`` of a type, their cover and gain by node."""
    nodes = [_Renumbered(tree, tree.order(n_features)) for tree in trees]
    looks: dict[tuple[int, int, tuple[int, ...]], None] = {}
    for one in nodes:
        looks.update(dict.fromkeys(one.looks()))
    views = sorted(looks) or [(0, 0, ())]
    place = {view: k for k, view in enumerate(views)}
    sizes = np.array([len(one.order) for one in nodes], np.int64)
    roots = np.cumsum(sizes) - sizes
    splits = np.array([one.n_splits for one in nodes], np.int64)

    def by_node(parts: list[AnyArray], kind: Any) -> AnyArray:
        return np.concatenate([np.empty(0, kind), *parts]).astype(kind)

    at = list(zip(nodes, roots.tolist(), strict=True))
    scorer = ForestScorer(
        n_features=n_features,
        roots=roots,
        leaves=roots + splits,
        threshold=by_node([one.taken("threshold", 0.0) for one in nodes], np.float64),
        left=by_node([root + one.child("left") for one, root in at], np.int64),
        right=by_node([root + one.child("right") for one, root in at], np.int64),
        value=by_node([one.leaf_values() for one in nodes], leaves),
        view=by_node([one.views(place) for one in nodes], np.int64),
        feature=np.array([view[0] for view in views], np.int64),
        rule=np.array([view[1] for view in views], np.int64),
        sets=tuple(np.array(view[2], np.uint32) for view in views),
        absent_is_missing=absent_is_missing,
    )
    cover = by_node([one.tree.cover[one.order] for one in nodes], np.float64)
    return scorer, cover, by_node([one.taken("gain", 0.0) for one in nodes], np.float64)


@dataclass(frozen=True, eq=False)
class _Renumbered:
    """A tree with its nodes in the order in which the scorer has them."""

    tree: NodeTree
    order: I64

    @cached_property
    def n_splits(self) -> int:
        return int((self.tree.left[self.order] != -1).sum())

    def child(self, side: str) -> I64:
        place = np.zeros(len(self.tree.left), np.int64)
        place[self.order] = np.arange(len(self.order))
        found = np.arange(len(self.order))  # a leaf leads to itself
        found[: self.n_splits] = place[getattr(self.tree, side)[self.order[: self.n_splits]]]
        return found

    def taken(self, name: str, of_leaf: float) -> F64:
        found = np.full(len(self.order), of_leaf)
        found[: self.n_splits] = getattr(self.tree, name)[self.order[: self.n_splits]]
        return found

    def leaf_values(self) -> AnyArray:
        found = np.zeros(len(self.order), self.tree.value.dtype)
        found[self.n_splits :] = self.tree.value[self.order[self.n_splits :]]
        return found

    @cached_property
    def _looks(self) -> tuple[list[tuple[int, int, tuple[int, ...]]], I64]:
        """Return what splits look at, each once, and which of them each split does."""
        at = self.order[: self.n_splits]
        if self.tree.sets:
            every = [(int(self.tree.feature[node]), int(self.tree.rule[node]),
                      self.tree.sets.get(node, ())) for node in at.tolist()]  # fmt: skip
            once = list(dict.fromkeys(every))
            number = {look: k for k, look in enumerate(once)}
            return once, np.array([number[look] for look in every], np.int64)
        keys, which = np.unique(
            self.tree.feature[at] * _RULES + self.tree.rule[at], return_inverse=True
        )
        return [(int(key) // _RULES, int(key) % _RULES, ()) for key in keys], which

    def looks(self) -> list[tuple[int, int, tuple[int, ...]]]:
        return self._looks[0]

    def views(self, place: Mapping[tuple[int, int, tuple[int, ...]], int]) -> I64:
        once, which = self._looks
        found = np.zeros(len(self.order), np.int64)
        found[: self.n_splits] = np.array([place[look] for look in once], np.int64)[which]
        return found
