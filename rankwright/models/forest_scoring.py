"""Scores of a forest by compiled code, equal to the scores of the original library bit for bit.

A split sends x left if x <= threshold. Missing values, zeros that represent them, and categories
have rules:

    PLAIN          NaN is 0
    NAN_LEFT       NaN is below every threshold           NAN_RIGHT     above every threshold
    ZERO_LEFT      NaN and 0 are below every threshold    ZERO_RIGHT    above every threshold
    CATEGORY       left if the category is in the set of the split

These are LightGBM's, which replaces numbers near 0 by 0. Other libraries compare numbers as they
are and have their own sets:

    EXACT_LEFT     NaN is below every threshold           EXACT_RIGHT   above every threshold
    MEMBER         as CATEGORY, for numbers from 0 only   MEMBER_OR_NAN   NaN is in the set

A *view* is a feature under one rule. The value of each view is computed once per row, as an
unsigned integer that is ordered as the number is, so that every split is one integer comparison.
Eight rows pass through a tree at a time, which hides the latency of the loads; a leaf is its own
child until all eight rows have arrived. The leaves of a row are added in the order of the trees, in
the precision of the leaves: double for LightGBM, single for XGBoost. Rows in float32 are compared
with thresholds that are rounded down to float32, which splits float32 numbers in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.dtypes import not_above
from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.models import symmetric_trees

if TYPE_CHECKING:
    from rankwright.models.forest import Forest

PLAIN, NAN_LEFT, NAN_RIGHT, ZERO_LEFT, ZERO_RIGHT, CATEGORY = range(6)
EXACT_LEFT, EXACT_RIGHT, MEMBER, MEMBER_OR_NAN = range(6, 10)
SETS = (CATEGORY, MEMBER, MEMBER_OR_NAN)
"""The rules whose splits have a set of categories instead of a threshold."""


def has_set(rule: Any) -> Any:
    """Return whether the splits of each rule have a set of categories."""
    return (rule == CATEGORY) | (rule >= MEMBER)


TINY = float(np.float32(1e-35))
"""LightGBM replaces numbers up to this size by 0."""

_RANGE = 256  # rows of a range for one thread, at least
_VISITS = 1 << 18  # rows of a range times nodes: small forests take long ranges
_BLOCK = 64  # rows that pass through all trees together
_RULES = 16  # more than there are

_ONE, _TWO = np.uint64(1), np.uint64(2)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def view_code(x, bits, rule, words, sign, highest, tiny):  # type: ignore[no-untyped-def]
    """Return the code of x under a view: an unsigned number that is ordered as x is.

    Numbers up to ``tiny`` are 0. LightGBM does this for dense input only; the rules that treat 0
    as missing do it for sparse input too.
    """
    if rule < CATEGORY:
        if abs(x) > (TINY if rule >= ZERO_LEFT else tiny):
            return bits ^ (highest if bits & sign else sign)
        if rule == PLAIN or (x == x and rule < ZERO_LEFT):
            return sign  # 0
        return highest if rule in (NAN_RIGHT, ZERO_RIGHT) else highest ^ highest
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
    """Return the child of node ``n`` for a row."""
    at = np.uint64(n)
    return nodes[at + _TWO + np.uint64(row[nodes[at + _ONE]] > nodes[at])]


@kernel
def _add_trees(rows, block, nodes, values, roots, leaves, total):  # type: ignore[no-untyped-def]
    """Add the leaf of each tree to ``total`` for the first ``rows`` of a block, eight at a time."""
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
def _score_dense(lo, hi, X, bits, views, trees, base, out):  # type: ignore[no-untyped-def]
    feature, rule, _, cut, words, blank, sign, highest = views
    block = np.zeros((_BLOCK, len(feature)), blank.dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        for i in range(rows):
            for v in range(len(feature)):
                j = feature[v]
                members = words[cut[v] : cut[v + 1]]
                block[i, v] = view_code(
                    X[first + i, j], bits[first + i, j], rule[v], members, sign, highest, TINY
                )
        total = np.full(_BLOCK, base)
        _add_trees(rows, block, *trees, total)
        for i in range(rows):
            out[first + i] = total[i]


@kernel
def _score_sparse(  # type: ignore[no-untyped-def]
    lo, hi, indptr, indices, values, bits, views, trees, base, out
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
                    members = words[cut[v] : cut[v + 1]]
                    block[i, v] = view_code(
                        values[k], bits[k], rule[v], members, sign, highest, 0.0
                    )
        total = np.full(_BLOCK, base)
        _add_trees(rows, block, *trees, total)
        for i in range(rows):
            out[first + i] = total[i]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scorer:
    """A forest as the kernels take it, for features of one type.

    Attributes
    ----------
    views : tuple
        Feature, rule and category set of each view, by feature; their codes of an absent value.
    trees : tuple
        Nodes, four numbers each: threshold, view, position of the left and of the right child;
        the value of each node; positions of the root and of the first leaf of each tree.
    symmetric : tuple or None
        The arrays for the kernels of symmetric trees, if all trees are symmetric.
    """

    views: tuple[Any, ...]
    trees: tuple[Any, ...]
    symmetric: tuple[Any, ...] | None

    @classmethod
    def of(cls, forest: Forest, dtype: Any) -> Scorer:
        """Compile a forest for features of ``dtype``."""
        unsigned = _bits_of(dtype)
        threshold = not_above(forest.threshold) if dtype == np.float32 else forest.threshold
        feature, rule, sets, view = _views_of(forest)
        highest = unsigned(np.iinfo(unsigned).max)
        sign = unsigned((int(highest) + 1) // 2)
        bits = (threshold + 0).view(unsigned)  # + 0: no -0
        code = np.where(bits & sign, bits ^ highest, bits | sign)
        code[forest.is_set] = 0
        code[forest.is_leaf] = highest  # no code is above it
        nodes = np.stack([code, view, 4 * forest.left, 4 * forest.right], axis=1, dtype=unsigned,
                         casting="unsafe")  # fmt: skip
        absent = np.nan if forest.absent_is_missing else 0.0
        blank = np.array(
            [_blank(r, words, absent, sign, highest) for r, words in zip(rule, sets, strict=True)],
            unsigned,
        )
        of_feature = np.searchsorted(feature, np.arange(forest.n_features + 1))
        cut = np.cumsum([0, *map(len, sets)])
        words = np.concatenate([np.empty(0, np.uint32), *sets])
        positions = [(4 * node).astype(unsigned) for node in (forest.roots, forest.leaves)]
        symmetric = None
        if ((rule == EXACT_LEFT) | (rule == EXACT_RIGHT)).all():
            symmetric = symmetric_trees.arrays_of(
                forest, view, threshold, feature, rule == EXACT_RIGHT, absent
            )
        return cls(
            (feature, rule, of_feature, cut, words, blank, sign, highest),
            (nodes.ravel(), forest.value, *positions),
            symmetric,
        )

    def scores(self, X: FloatMatrix, base: float, n_jobs: int | None) -> F64:
        """Return ``base`` plus the trees for each row, added in the precision of the leaves."""
        out = np.empty(X.shape[0])
        own = (self.views, self.trees) if self.symmetric is None else self.symmetric
        more = (*own, self.trees[1].dtype.type(base), out)
        n_nodes = max(1, len(self.trees[1]))
        bounds = row_ranges(X.shape[0], max(_RANGE, _VISITS // n_nodes))
        if isinstance(X, np.ndarray):
            dense = np.ascontiguousarray(X)
            bits = dense.view(_bits_of(dense.dtype))
            if self.symmetric is None:
                map_ranges(_score_dense, bounds, dense, bits, *more, n_jobs=n_jobs)
            else:
                map_ranges(symmetric_trees.score_dense, bounds, dense, *more, n_jobs=n_jobs)
            return out
        values = np.ascontiguousarray(X.data)
        rows = (X.indptr, X.indices, values)
        if self.symmetric is None:
            bits = values.view(_bits_of(values.dtype))
            map_ranges(_score_sparse, bounds, *rows, bits, *more, n_jobs=n_jobs)
        else:
            map_ranges(symmetric_trees.score_sparse, bounds, *rows, *more, n_jobs=n_jobs)
        return out


def _views_of(forest: Forest) -> tuple[I64, I64, list[AnyArray], I64]:
    """Return feature, rule and category set of each view, by feature, and the view of each node."""
    at = forest.splits
    first: dict[bytes, int] = {}  # equal sets share a view
    number = [first.setdefault(words.tobytes(), k) for k, words in enumerate(forest.sets)]
    category = np.zeros(len(at), np.int64)
    is_set = has_set(forest.rule[at])
    category[is_set] = np.array([0, *number])[1 + forest.threshold[at[is_set]].astype(np.int64)]
    n_sets = len(number) + 1
    keys, of_split = np.unique(
        (forest.feature[at] * _RULES + forest.rule[at]) * n_sets + category, return_inverse=True
    )
    keys = keys if len(keys) else np.zeros(1, np.int64)
    view = np.zeros(len(forest.left), np.int64)
    view[at] = of_split
    feature, rule = np.divmod(keys // n_sets, _RULES)
    empty = np.empty(0, np.uint32)
    sets = [
        forest.sets[k] if r in SETS else empty
        for k, r in zip((keys % n_sets).tolist(), rule.tolist(), strict=True)
    ]
    return feature, rule, sets, view


def _blank(rule: int, words: AnyArray, absent: float, sign: Any, highest: Any) -> Any:
    """Return the code of a value that a sparse row does not store."""
    if np.isnan(absent) and rule > CATEGORY:
        return 0 if rule in (EXACT_LEFT, MEMBER_OR_NAN) else highest
    if rule in SETS:
        return 0 if len(words) and words[0] & 1 else highest
    return {ZERO_LEFT: 0, ZERO_RIGHT: highest}.get(rule, sign)


def _bits_of(dtype: Any) -> Any:
    return np.uint32 if dtype == np.float32 else np.uint64
