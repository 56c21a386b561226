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

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, FloatMatrix
from rankwright.models import symmetric_trees
from rankwright.models.thresholds import not_above

if TYPE_CHECKING:
    from rankwright.models.forest import Forest

PLAIN, NAN_LEFT, NAN_RIGHT, ZERO_LEFT, ZERO_RIGHT, CATEGORY = range(6)
EXACT_LEFT, EXACT_RIGHT, MEMBER, MEMBER_OR_NAN = range(6, 10)


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
def view_code(x, bits, rule, words, sign, highest, tiny):
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
def _step(n, row, nodes):
    """Return the child of node ``n`` for a row."""
    at = np.uint64(n)
    return nodes[at + _TWO + np.uint64(row[nodes[at + _ONE]] > nodes[at])]


@kernel
def _add_trees(rows, block, nodes, values, roots, leaves, base, out):
    """Write the scores of the first ``rows`` of a block to ``out``, eight rows at a time."""
    total = np.full(_BLOCK, base)
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
    for i in range(rows):
        out[i] = total[i]


@kernel
def fill_codes(first, rows, X, bits, views, tiny, block):
    """Write the code of each view to ``block`` for dense rows from ``first``."""
    feature, rule, _, cut, words, _, _, sign, highest = views
    for i in range(rows):
        for v in range(len(feature)):
            j = feature[v]
            members = words[cut[v] : cut[v + 1]]
            block[i, v] = view_code(
                X[first + i, j], bits[first + i, j], rule[v], members, sign, highest, tiny
            )


@kernel
def _score_dense(lo, hi, X, views, trees, base, out):
    bits = X.view(views[6].dtype)
    block = np.zeros((_BLOCK, len(views[0])), bits.dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        fill_codes(first, rows, X, bits, views, TINY, block)
        _add_trees(rows, block, *trees, base, out[first:])


@kernel
def _score_sparse(lo, hi, indptr, indices, values, views, trees, base, out):
    feature, rule, of_feature, cut, words, absent, absent_bits, sign, highest = views
    bits = values.view(absent_bits.dtype)
    blank = np.zeros(len(feature), bits.dtype)
    for v in range(len(feature)):
        members = words[cut[v] : cut[v + 1]]
        blank[v] = view_code(absent[0], absent_bits[0], rule[v], members, sign, highest, 0.0)
    block = np.zeros((_BLOCK, len(feature)), bits.dtype)
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
        _add_trees(rows, block, *trees, base, out[first:])


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scorer:
    """The arrays of a forest for the kernels, for features of one type.

    Attributes
    ----------
    views : tuple
        Feature and rule of each view, sorted by feature; first view of each feature; the category
        sets of the views and where each begins; a value that a sparse row does not store, as a
        number and as bits; the sign bit and the highest code.
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
        unsigned: Any = np.uint32 if dtype == np.float32 else np.uint64
        highest = unsigned(np.iinfo(unsigned).max)
        sign = unsigned((int(highest) + 1) // 2)
        n = len(forest.left)
        is_leaf = forest.left == np.arange(n)
        is_set = has_set(forest.rule)
        first: dict[bytes, int] = {}  # equal sets share a view
        number = [first.setdefault(words.tobytes(), k) for k, words in enumerate(forest.sets)]
        set_of = np.zeros(n, np.int64)
        if number:
            set_of[is_set] = np.array(number)[forest.threshold[is_set].astype(np.int64)]
        key = (forest.feature * _RULES + forest.rule) * max(1, len(number)) + set_of
        view = np.zeros(n, np.int64)
        keys, view[~is_leaf] = np.unique(key[~is_leaf], return_inverse=True)
        keys, set_of_view = np.divmod(keys, max(1, len(number)))
        feature, rule = np.divmod(keys, _RULES)
        sets = [
            forest.sets[k] if is_category else np.empty(0, np.uint32)
            for k, is_category in zip(set_of_view.tolist(), has_set(rule).tolist(), strict=True)
        ]
        threshold = not_above(forest.threshold) if dtype == np.float32 else forest.threshold
        bits = (threshold + 0).view(unsigned)  # + 0: no -0
        code = np.where(bits & sign, bits ^ highest, bits | sign)
        code[is_set] = 0
        code[is_leaf] = highest  # no code is above it
        nodes = np.empty((n, 4), unsigned)
        nodes[:, 0], nodes[:, 1] = code, view
        nodes[:, 2], nodes[:, 3] = 4 * forest.left, 4 * forest.right
        ends = np.append(forest.roots[1:], n)
        positions = [4 * forest.roots, 4 * ((forest.roots + ends) // 2)]
        absent = np.array([np.nan if forest.absent_is_missing else 0.0], dtype)
        symmetric = None
        if len(rule) and ((rule == EXACT_LEFT) | (rule == EXACT_RIGHT)).all():
            symmetric = symmetric_trees.arrays_of(
                forest, view, threshold, feature, rule == EXACT_RIGHT, absent[0]
            )
        return cls(
            (
                feature,
                rule,
                np.searchsorted(feature, np.arange(forest.n_features + 1)),
                np.cumsum([0, *map(len, sets)]),
                np.concatenate([np.empty(0, np.uint32), *sets]),
                absent,
                absent.view(unsigned),
                sign,
                highest,
            ),
            (nodes.ravel(), forest.value, *(array.astype(unsigned) for array in positions)),
            symmetric,
        )

    def scores(self, X: FloatMatrix, base: float, n_jobs: int | None) -> F64:
        """Return ``base`` plus the trees for each row, added in the precision of the leaves."""
        kernels, arrays = (_score_dense, _score_sparse), (self.views, self.trees)
        if self.symmetric is not None:
            kernels = (symmetric_trees.score_dense, symmetric_trees.score_sparse)
            arrays = self.symmetric
        values, out = self.trees[1], np.empty(X.shape[0])
        is_dense = isinstance(X, np.ndarray)
        matrix = (X,) if isinstance(X, np.ndarray) else (X.indptr, X.indices, X.data)
        map_ranges(
            kernels[0] if is_dense else kernels[1],
            row_ranges(len(out), max(_RANGE, _VISITS // max(1, len(values)))),
            *map(np.ascontiguousarray, matrix),
            *arrays,
            values.dtype.type(base),
            out,
            n_jobs=n_jobs,
        )
        return out
