"""Scores of symmetric (oblivious) trees, in which all splits of a level are equal.

The results of the splits, from the root, are the bits of the leaf number, so that no tree has to be
traversed. For a block of rows, each feature is first replaced by the number of thresholds below it,
one byte; a split then compares the bytes of many rows at a time. Leaves are added in the order of
the trees, so that the scores equal those of the general kernel bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import I64, AnyArray

if TYPE_CHECKING:
    from rankwright.models.forest import Forest

_BLOCK = 128  # rows that are scored together
_MOST_BORDERS = 255  # of a column of bytes
_DEEPEST = 16

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _fill_bins(x, border, missing_above, bins):
    """Count the borders below each value; a missing value is above all or no borders."""
    bins[:] = 0
    if missing_above:
        for b in range(len(border)):
            for i in range(_BLOCK):
                bins[i] += np.uint8(not x[i] <= border[b])
    else:
        for b in range(len(border)):
            for i in range(_BLOCK):
                bins[i] += np.uint8(x[i] > border[b])


@kernel
def _score_block(rows, block, bins, leaf, columns, trees, total):
    """Add the leaf of each tree to ``total``; ``block`` has a row for each feature."""
    slot, missing_above, cut, border = columns
    for c in range(len(slot)):
        _fill_bins(block[slot[c]], border[cut[c] : cut[c + 1]], missing_above[c], bins[c])
    column, bound, first_split, first_leaf, values, _ = trees
    for t in range(len(first_leaf)):
        leaf[:] = 0
        for k in range(first_split[t], first_split[t + 1]):
            bin_of_row, most = bins[column[k]], bound[k]
            for i in range(_BLOCK):
                leaf[i] += leaf[i] + np.uint8(bin_of_row[i] > most)
        leaves = values[first_leaf[t] :]
        for i in range(rows):
            total[i] += leaves[leaf[i]]


@kernel
def score_dense(lo, hi, X, slots, columns, trees, base, out):
    """Score rows of a matrix."""
    feature, _, _ = slots
    block = np.zeros((len(feature), _BLOCK), X.dtype)
    bins = np.zeros((len(columns[0]), _BLOCK), np.uint8)
    leaf = np.zeros(_BLOCK, trees[-1].dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        for i in range(rows):
            for s in range(len(feature)):
                block[s, i] = X[first + i, feature[s]]
        total = np.full(_BLOCK, base)
        _score_block(rows, block, bins, leaf, columns, trees, total)
        for i in range(rows):
            out[first + i] = total[i]


@kernel
def score_sparse(lo, hi, indptr, indices, values, slots, columns, trees, base, out):
    """Score rows of a sparse matrix."""
    feature, slot_of, absent = slots
    block = np.zeros((len(feature), _BLOCK), values.dtype)
    bins = np.zeros((len(columns[0]), _BLOCK), np.uint8)
    leaf = np.zeros(_BLOCK, trees[-1].dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        block[:] = absent
        for i in range(rows):
            for k in range(indptr[first + i], indptr[first + i + 1]):
                s = slot_of[indices[k]]
                if s >= 0:
                    block[s, i] = values[k]
        total = np.full(_BLOCK, base)
        _score_block(rows, block, bins, leaf, columns, trees, total)
        for i in range(rows):
            out[first + i] = total[i]


# --- API -------------------------------------------------------------------------------------


def arrays_of(
    forest: Forest, view: I64, threshold: AnyArray, feature: I64, missing_above: Any, absent: float
) -> tuple[Any, Any, Any] | None:
    """Return slots, columns of bins and trees for the kernels; None unless all are symmetric.

    Parameters
    ----------
    view, threshold
        Of each node; thresholds have the type of the features.
    feature, missing_above
        Of each view; whether missing values are above all thresholds.
    absent
        Value that a sparse row does not store.
    """
    levels = _levels_of(forest, view)
    if levels is None:
        return None
    node, depth = levels
    view, threshold = view[node], threshold[node]
    features, slot_of_view = np.unique(feature, return_inverse=True)
    column, bound = np.zeros(len(node), np.int64), np.zeros(len(node), np.uint8)
    slot: list[int] = []
    above: list[bool] = []
    borders: list[AnyArray] = []
    for number in np.unique(view).tolist():
        here = np.flatnonzero(view == number)
        border, place = np.unique(threshold[here], return_inverse=True)
        column[here] = len(borders) + place // _MOST_BORDERS
        bound[here] = place % _MOST_BORDERS
        for a in range(0, len(border), _MOST_BORDERS):
            borders.append(border[a : a + _MOST_BORDERS])
            slot.append(slot_of_view[number])
            above.append(missing_above[number])
    slot_of = np.full(forest.n_features, -1)
    slot_of[features] = np.arange(len(features))
    n_leaves = 1 << depth
    leaf = np.empty(0, np.uint8 if depth.max() <= 8 else np.uint16)
    return (
        (features, slot_of, threshold.dtype.type(absent)),
        (
            np.array(slot, np.int64),
            np.array(above, bool),
            np.cumsum([0, *map(len, borders)]),
            np.concatenate([np.empty(0, threshold.dtype), *borders]),
        ),
        (
            column,
            bound,
            np.append(0, np.cumsum(depth)),
            np.cumsum(n_leaves) - n_leaves,
            forest.value[forest.is_leaf],
            leaf,
        ),
    )


def _levels_of(forest: Forest, view: I64) -> tuple[I64, I64] | None:
    """Return the first node of each level, from the root, tree by tree; and the depth of each tree.

    None unless all trees are symmetric with their splits in the order of the levels.
    """
    roots, left, right = forest.roots, forest.left, forest.right
    splits = forest.sizes // 2
    depth = np.log2(splits + 1).round().astype(np.int64)
    if not len(roots) or depth.max() > _DEEPEST or ((1 << depth) != splits + 1).any():
        return None
    inner = forest.splits
    root = np.repeat(roots, splits)
    place = inner - root
    head = root + (1 << np.floor(np.log2(place + 1)).astype(np.int64)) - 1
    if (left[inner] != root + 2 * place + 1).any() or (right[inner] != root + 2 * place + 2).any():
        return None
    threshold = forest.threshold
    if (view[inner] != view[head]).any() or (threshold[inner] != threshold[head]).any():
        return None
    return inner[head == inner], depth
