"""Scores of tree ensembles by compiled code: LightGBM's own to the last bit, several times as fast.

A split of LightGBM's text sends x left where x <= threshold; missing values, zeros that stand for
them, and categories have rules of their own. Here every split becomes one comparison of unsigned
whole numbers: the bits of a number, turned so that they count up as the number does. What the rules
say of x is decided once per row and *view*, a feature under one rule, before any tree is walked:

    plain        NaN is 0
    nan_left     NaN is below every threshold           nan_right     above every threshold
    zero_left    NaN and 0 are below every threshold    zero_right    above every threshold
    category     below the threshold if the category is in the set, above if not

Other libraries compare numbers as they are, however near to 0, and have a set of their own:

    exact_left   NaN is below every threshold           exact_right   above every threshold
    member       as category, for whole numbers from 0 alone; member_or_nan takes NaN for a member

Rows are walked eight at a time through one tree after another, so that eight chains of loads are
under way at once; a leaf leads to itself until all eight have arrived. The leaves of a row are
added in the order of the trees, in double precision as LightGBM adds them, or in single precision
as XGBoost does: in that of the leaves. Scores of float32 rows come from thresholds rounded down to
float32, which split float32 numbers alike.

There is no early exit for the first k ranks: with 500 trees of 64 leaves, bounds on what the rest
of the trees can add would have spared 7 % of the steps for the first 10 of 1,000 documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.core.dtypes import not_above
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.errors import DataError
from rankwright.models import symmetric_trees
from rankwright.models.tree_text import CATEGORICAL, DEFAULT_LEFT, TextTree, tree_blocks

_RANGE = 256  # rows of a range for one thread
_BLOCK = 64  # rows, of those, that one tree after another is walked for
TINY = float(np.float32(1e-35))  # what LightGBM takes for zero
_PLAIN, _NAN_LEFT, _NAN_RIGHT, _ZERO_LEFT, _ZERO_RIGHT, _CATEGORY = range(6)
EXACT_LEFT, EXACT_RIGHT, MEMBER, MEMBER_OR_NAN = range(6, 10)
SETS = (_CATEGORY, MEMBER, MEMBER_OR_NAN)

_ONE, _TWO = np.uint64(1), np.uint64(2)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def view_code(x, bits, rule, words, sign, highest, tiny):  # type: ignore[no-untyped-def]
    """Return what a view shows of x: its bits, turned to count up with x, or an end of them.

    Numbers up to ``tiny`` are 0: LightGBM has it so for the rows of a dense matrix, not of a sparse
    one; a rule that takes 0 for missing has it for both.
    """
    if rule < _CATEGORY:
        if abs(x) > (TINY if rule >= _ZERO_LEFT else tiny):
            return bits ^ (highest if bits & sign else sign)
        if rule == _PLAIN or (x == x and rule < _ZERO_LEFT):
            return sign  # 0
        return highest if rule in (_NAN_RIGHT, _ZERO_RIGHT) else highest ^ highest
    if rule in (EXACT_LEFT, EXACT_RIGHT):
        if x == x:
            return bits ^ (highest if bits & sign else sign)
        return highest if rule == EXACT_RIGHT else highest ^ highest
    if rule >= MEMBER:
        x = np.float32(x)
        if x != x:
            return highest ^ highest if rule == MEMBER_OR_NAN else highest
        if x < 0.0:
            return highest
    if x > -1.0 and x < 32.0 * len(words):
        category = int(x)
        if words[category >> 5] >> np.uint32(category & 31) & np.uint32(1):
            return highest ^ highest
    return highest


@kernel
def _step(n, row, nodes):  # type: ignore[no-untyped-def]
    """Return the node below ``n`` that a row goes to."""
    at = np.uint64(n)
    return nodes[at + _TWO + np.uint64(row[nodes[at + _ONE]] > nodes[at])]


@kernel
def _add_trees(rows, block, nodes, values, roots, leaves, total):  # type: ignore[no-untyped-def]
    """Add the leaf of each tree to ``total``, for the first rows of the block by eights."""
    for t in range(len(roots)):
        leaf = leaves[t]
        for i in range(0, rows, 8):
            n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = roots[t]
            r0, r1, r2, r3 = block[i], block[i + 1], block[i + 2], block[i + 3]
            r4, r5, r6, r7 = block[i + 4], block[i + 5], block[i + 6], block[i + 7]
            while min(min(min(n0, n1), min(n2, n3)), min(min(n4, n5), min(n6, n7))) < leaf:
                n0, n1 = _step(n0, r0, nodes), _step(n1, r1, nodes)
                n2, n3 = _step(n2, r2, nodes), _step(n3, r3, nodes)
                n4, n5 = _step(n4, r4, nodes), _step(n5, r5, nodes)
                n6, n7 = _step(n6, r6, nodes), _step(n7, r7, nodes)
            total[i] += values[n0 >> _TWO]
            total[i + 1] += values[n1 >> _TWO]
            total[i + 2] += values[n2 >> _TWO]
            total[i + 3] += values[n3 >> _TWO]
            total[i + 4] += values[n4 >> _TWO]
            total[i + 5] += values[n5 >> _TWO]
            total[i + 6] += values[n6 >> _TWO]
            total[i + 7] += values[n7 >> _TWO]


@kernel
def _score_dense(lo, hi, X, bits, views, forest, begin, initial, out):  # type: ignore[no-untyped-def]
    feature, rule, _, cut, words, blank, sign, highest = views
    block = np.zeros((_BLOCK, len(feature)), blank.dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        for i in range(rows):
            for v in range(len(feature)):
                j = feature[v]
                held = words[cut[v] : cut[v + 1]]
                block[i, v] = view_code(
                    X[first + i, j], bits[first + i, j], rule[v], held, sign, highest, TINY
                )
        total = np.full(_BLOCK, begin)
        _add_trees(rows, block, *forest, total)
        for i in range(rows):
            out[first + i] = initial + total[i]


@kernel
def _score_sparse(  # type: ignore[no-untyped-def]
    lo, hi, indptr, indices, values, bits, views, forest, begin, initial, out
):
    feature, rule, of_feature, cut, words, blank, sign, highest = views
    block = np.zeros((_BLOCK, len(feature)), blank.dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        for i in range(rows):
            block[i] = blank
            for k in range(indptr[first + i], indptr[first + i + 1]):
                j = indices[k]
                for v in range(of_feature[j], of_feature[j + 1]):
                    held = words[cut[v] : cut[v + 1]]
                    block[i, v] = view_code(values[k], bits[k], rule[v], held, sign, highest, 0.0)
        total = np.full(_BLOCK, begin)
        _add_trees(rows, block, *forest, total)
        for i in range(rows):
            out[first + i] = initial + total[i]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ForestScorer:
    """A tree ensemble as flat arrays.

    Attributes
    ----------
    roots, leaves : (T,) arrays
        The first node of each tree, and the first of its leaves, which come after its splits.
    threshold, left, right : (N,) arrays
        Of each node; a leaf leads to itself.
    value : (N,) array
        Of each leaf, 0 for a split; leaves of float32 are added in single precision.
    view : (N,) array
        What a split looks at, as a place in the next three.
    feature, rule : (V,) arrays
        The views, in order of feature.
    sets : tuple of V arrays
        Bits of the categories that go left; empty where the rule is another.
    absent_is_missing : bool
        Whether what a sparse row does not hold is missing; it is 0 otherwise.
    """

    n_features: int
    roots: I64
    leaves: I64
    threshold: F64
    left: I64
    right: I64
    value: AnyArray
    view: I64
    feature: I64
    rule: I64
    sets: tuple[NDArray[np.uint32], ...]
    absent_is_missing: bool = False

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    def is_sound(self) -> bool:
        """Whether every row of a matrix ends in a leaf of each tree: kernels check no bounds."""
        n, trees = len(self.threshold), len(self.roots)
        views = len(self.feature)
        by_node = (self.left, self.right, self.value, self.view)
        if {len(array) for array in by_node} - {n} or len(self.leaves) != trees or not views:
            return False
        if len(self.rule) != views or len(self.sets) != views:
            return False
        ends = np.append(self.roots[1:], n)
        if n and (not trees or self.roots[0] != 0):
            return False
        if not ((self.roots <= self.leaves) & (self.leaves < ends)).all():
            return False
        children = np.concatenate([self.left[self.splits], self.right[self.splits]])
        others = np.delete(np.arange(n), self.roots)
        if not np.array_equal(np.sort(children), others):  # each is the child of one split
            return False
        sizes = ends - self.roots
        first, end = np.repeat(self.leaves, sizes), np.repeat(ends, sizes)
        at = np.arange(n)
        sides = (self.left, self.right)
        leaf = at >= first
        return bool(
            all((np.where(leaf, side == at, (side > at) & (side < end))).all() for side in sides)
            and ((self.view >= 0) & (self.view < views)).all()
            and ((self.feature >= 0) & (self.feature < self.n_features)).all()
            and (np.diff(self.feature) >= 0).all()
            and ((self.rule >= 0) & (self.rule <= MEMBER_OR_NAN)).all()
            and not np.isnan(self.threshold).any()
            and np.isfinite(self.value).all()
        )

    @property
    def is_constant(self) -> bool:
        """Whether no tree tells rows apart: the leaves of each have one value."""
        ends = np.append(self.roots[1:], len(self.value))
        return all(
            (self.value[first:end] == self.value[first]).all()
            for first, end in zip(self.leaves.tolist(), ends.tolist(), strict=True)
        )

    @cached_property
    def splits(self) -> I64:
        """The nodes that are no leaves."""
        return np.flatnonzero(self.left != np.arange(len(self.left)))

    def breakpoints(self, column: int) -> F64:
        """Return the values of a feature after which scores may change."""
        view = self.view[self.splits]
        numeric = ~np.isin(self.rule[view], SETS)
        return np.unique(self.threshold[self.splits[numeric & (self.feature[view] == column)]])

    def sum_by_feature(self, weights: F64) -> F64:
        """Return the sum of ``weights``, which nodes have, over each feature's splits."""
        columns = self.feature[self.view[self.splits]]
        return np.bincount(columns, weights[self.splits], self.n_features).astype(np.float64)

    def scores(
        self,
        X: FloatMatrix,
        *,
        begin: float = 0.0,
        initial: float = 0.0,
        n_jobs: int | None = None,
    ) -> F64:
        """Return the sum of the trees for each row.

        The first tree is added to ``begin``, and ``initial`` to the sum of all: the two differ in
        the last digits.
        """
        out = np.empty(X.shape[0])
        begin = self.value.dtype.type(begin)
        bounds = row_ranges(X.shape[0], _RANGE)
        if self._levels is not None:
            self._score_symmetric(X, bounds, (begin, initial, out), n_jobs)
        elif isinstance(X, np.ndarray):
            dense = np.ascontiguousarray(X)
            more = (*self.arrays_for(dense), begin, initial, out)
            map_ranges(
                _score_dense, bounds, dense, dense.view(_bits_of(dense)), *more, n_jobs=n_jobs
            )
        else:
            values = np.ascontiguousarray(X.data)
            own = (X.indptr, X.indices, values, values.view(_bits_of(values)))
            more = (*self.arrays_for(values), begin, initial, out)
            map_ranges(_score_sparse, bounds, *own, *more, n_jobs=n_jobs)
        return out

    def _score_symmetric(self, X: FloatMatrix, bounds: I64, sums: Any, n_jobs: int | None) -> None:
        values = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.data)
        single = values.dtype == np.float32
        more = (*(self._symmetric_float32 if single else self._symmetric_float64), *sums)
        if isinstance(X, np.ndarray):
            map_ranges(symmetric_trees.score_dense, bounds, values, *more, n_jobs=n_jobs)
        else:
            own = (X.indptr, X.indices, values)
            map_ranges(symmetric_trees.score_sparse, bounds, *own, *more, n_jobs=n_jobs)

    @cached_property
    def _levels(self) -> symmetric_trees.Levels | None:
        """The splits of symmetric trees; None where trees are to be walked."""
        exact = np.isin(self.rule, (EXACT_LEFT, EXACT_RIGHT)).all()
        nodes = (self.roots, self.leaves, self.left, self.right, self.view, self.threshold)
        return symmetric_trees.levels_of(*nodes) if exact else None

    @cached_property
    def _symmetric_float32(self) -> tuple[Any, Any, Any]:
        return self._symmetric(not_above(self.threshold))

    @cached_property
    def _symmetric_float64(self) -> tuple[Any, Any, Any]:
        return self._symmetric(self.threshold)

    def _symmetric(self, threshold: AnyArray) -> tuple[Any, Any, Any]:
        assert self._levels is not None
        at = self._levels.node
        return symmetric_trees.kernel_arrays(
            self._levels,
            self.view[at],
            threshold[at],
            self.value[self.left == np.arange(len(self.left))],
            self.feature,
            self.rule == EXACT_RIGHT,
            self.n_features,
            np.nan if self.absent_is_missing else 0.0,
        )

    def arrays_for(self, values: AnyArray) -> tuple[Any, Any]:
        """Return the views and the trees as kernels take them for features of the type given."""
        return self._for_float32 if values.dtype == np.float32 else self._for_float64

    @cached_property
    def _for_float32(self) -> tuple[Any, Any]:
        return self._flat(np.uint32, not_above(self.threshold))

    @cached_property
    def _for_float64(self) -> tuple[Any, Any]:
        return self._flat(np.uint64, self.threshold)

    def _flat(self, unsigned: Any, threshold: AnyArray) -> tuple[Any, Any]:
        """Return the views and the trees as the kernels take them.

        A node is four numbers in a row: threshold, view, left and right, the last two as places.
        """
        highest = unsigned(np.iinfo(unsigned).max)
        sign = unsigned((int(highest) + 1) // 2)
        bits = (threshold + 0).view(unsigned)  # + 0: no -0
        turned = np.where(bits & sign, bits ^ highest, bits | sign)
        turned[self.left == np.arange(len(self.left))] = highest  # nothing is above a leaf's
        turned[np.isin(self.rule[self.view], SETS) & (self.left != np.arange(len(self.left)))] = 0
        nodes = np.empty((len(turned), 4), unsigned)
        for k, column in enumerate((turned, self.view, 4 * self.left, 4 * self.right)):
            nodes[:, k] = column
        cut = np.cumsum([0, *map(len, self.sets)])
        words = np.concatenate([np.empty(0, np.uint32), *self.sets])
        of_feature = np.searchsorted(self.feature, np.arange(self.n_features + 1))
        blank = np.array([self._blank(v, sign, highest) for v in range(len(self.rule))], unsigned)
        views = (self.feature, self.rule, of_feature, cut, words, blank, sign, highest)
        places = (4 * self.roots).astype(unsigned), (4 * self.leaves).astype(unsigned)
        return views, (nodes.ravel(), self.value, *places)

    def _blank(self, v: int, sign: Any, highest: Any) -> Any:
        """Return what a view shows of a value that a sparse row does not hold."""
        rule = int(self.rule[v])
        if self.absent_is_missing and rule > _CATEGORY:
            return 0 if rule in (EXACT_LEFT, MEMBER_OR_NAN) else highest
        if rule in SETS:
            return 0 if len(self.sets[v]) and self.sets[v][0] & 1 else highest
        return {_ZERO_LEFT: 0, _ZERO_RIGHT: highest}.get(rule, sign)


class TextForest(NamedTuple):
    """The trees of LightGBM's text: as a scorer, and by node their documents and gains."""

    scorer: ForestScorer
    cover: F64
    gain: F64

    @classmethod
    def read(cls, text: str, n_features: int) -> TextForest:
        """Read LightGBM's model text; refuse trees that would lead a row astray."""
        trees = []
        for number, block in enumerate(tree_blocks(text)):
            try:
                tree = TextTree.read(block)
                sound = tree.is_sound(n_features)
            except (KeyError, ValueError, OverflowError):  # a line that is missing, or no number
                sound = False
            if not sound:
                raise DataError(
                    f"tree {number} of the model is damaged: its splits do not make a tree over "
                    f"{n_features} features; take another copy of the model."
                )
            trees.append(tree)
        none = np.empty(0)
        return cls(
            _assembled(trees, n_features),
            np.concatenate([none, *(tree.count for tree in trees)]),
            np.concatenate([none, *(part for t in trees for part in (t.gain, 0.0 * t.value))]),
        )


def _looks_of(tree: TextTree) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return what each split looks at: feature, rule and set of categories."""
    found = []
    for feature, kind, threshold in zip(
        tree.feature.tolist(), tree.kind.tolist(), tree.threshold.tolist(), strict=True
    ):
        if kind & CATEGORICAL:
            found.append((feature, _CATEGORY, tuple(tree.sets[int(threshold)].tolist())))
        else:
            left = (_PLAIN, _ZERO_LEFT, _NAN_LEFT)
            rules = left if kind & DEFAULT_LEFT else (_PLAIN, _ZERO_RIGHT, _NAN_RIGHT)
            found.append((feature, rules[kind >> 2 & 3], ()))
    return found


def _assembled(trees: list[TextTree], n_features: int) -> ForestScorer:
    """Return the trees as one run of nodes: of each tree its splits, then its leaves."""
    looks = [_looks_of(tree) for tree in trees]
    views = sorted({view for some in looks for view in some}) or [(0, _PLAIN, ())]
    place = {view: k for k, view in enumerate(views)}
    splits = np.array([len(tree.feature) for tree in trees], np.int64)
    sizes = np.array([len(tree.feature) + len(tree.value) for tree in trees], np.int64)
    roots = np.cumsum(sizes) - sizes
    parts: dict[str, list[Any]] = {
        name: [] for name in ("threshold", "left", "right", "value", "view")
    }
    for tree, some, root in zip(trees, looks, roots.tolist(), strict=True):
        n, leaves = len(tree.feature), len(tree.value)
        itself = root + n + np.arange(leaves)
        parts["threshold"] += [tree.threshold, np.zeros(leaves)]
        parts["view"] += [np.array([place[view] for view in some] + [0] * leaves, np.int64)]
        parts["value"] += [np.zeros(n), tree.value]
        for side, child in (("left", tree.left), ("right", tree.right)):
            parts[side] += [root + np.where(child >= 0, child, n + ~child), itself]
    nothing = {"left": np.int64, "right": np.int64, "view": np.int64}
    joined: dict[str, Any] = {
        name: np.concatenate([np.empty(0, nothing.get(name, np.float64)), *some])
        for name, some in parts.items()
    }
    return ForestScorer(
        n_features=n_features,
        roots=roots,
        leaves=roots + splits,
        feature=np.array([view[0] for view in views], np.int64),
        rule=np.array([view[1] for view in views], np.int64),
        sets=tuple(np.array(view[2], np.uint32) for view in views),
        **joined,
    )


def _bits_of(values: AnyArray) -> Any:
    return np.uint32 if values.dtype == np.float32 else np.uint64
