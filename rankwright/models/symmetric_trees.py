"""Scores of symmetric (oblivious) trees, whose splits of one level are all the same.

The bits of the splits, from the root on, are the number of the leaf, so that there is nothing to
walk. For a block of rows each feature is first replaced by the number of thresholds below it, one
byte; a split then compares bytes, of many rows at a time. Leaves are added in the order of the
trees, so that scores are those of the walk to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64, AnyArray

_BLOCK = 128  # rows that one tree after another is scored for
_MOST_BORDERS = 255  # that a byte can count
_DEEPEST = 16

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _fill_bins(x, border, missing_above, bins):  # type: ignore[no-untyped-def]
    """Count the borders below each value; a missing one is above all of them or none."""
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
def _score_block(rows, held, bins, leaf, columns, trees, total):  # type: ignore[no-untyped-def]
    """Add the leaf of each tree to ``total``; ``held`` has the features of the block as rows."""
    slot, missing_above, cut, border = columns
    for c in range(len(slot)):
        _fill_bins(held[slot[c]], border[cut[c] : cut[c + 1]], missing_above[c], bins[c])
    column, bound, first_split, first_leaf, values, _ = trees
    for t in range(len(first_leaf)):
        leaf[:] = 0
        for k in range(first_split[t], first_split[t + 1]):
            own, most = bins[column[k]], bound[k]
            for i in range(_BLOCK):
                leaf[i] += leaf[i] + np.uint8(own[i] > most)
        at = values[first_leaf[t] :]
        for i in range(rows):
            total[i] += at[leaf[i]]


@kernel
def score_dense(lo, hi, X, views, columns, trees, begin, initial, out):  # type: ignore[no-untyped-def]
    """Score rows of a matrix."""
    feature, _, _ = views
    held = np.zeros((len(feature), _BLOCK), X.dtype)
    bins = np.zeros((len(columns[0]), _BLOCK), np.uint8)
    leaf = np.zeros(_BLOCK, trees[-1].dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        for i in range(rows):
            for s in range(len(feature)):
                held[s, i] = X[first + i, feature[s]]
        total = np.full(_BLOCK, begin)
        _score_block(rows, held, bins, leaf, columns, trees, total)
        for i in range(rows):
            out[first + i] = initial + total[i]


@kernel
def score_sparse(  # type: ignore[no-untyped-def]
    lo, hi, indptr, indices, values, views, columns, trees, begin, initial, out
):
    """Score rows of a sparse matrix."""
    feature, slot_of, absent = views
    held = np.zeros((len(feature), _BLOCK), values.dtype)
    bins = np.zeros((len(columns[0]), _BLOCK), np.uint8)
    leaf = np.zeros(_BLOCK, trees[-1].dtype)
    for first in range(lo, hi, _BLOCK):
        rows = min(_BLOCK, hi - first)
        held[:] = absent
        for i in range(rows):
            for k in range(indptr[first + i], indptr[first + i + 1]):
                s = slot_of[indices[k]]
                if s >= 0:
                    held[s, i] = values[k]
        total = np.full(_BLOCK, begin)
        _score_block(rows, held, bins, leaf, columns, trees, total)
        for i in range(rows):
            out[first + i] = initial + total[i]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Levels:
    """The splits of symmetric trees, one for each level.

    Attributes
    ----------
    node : (L,) array
        The first node of each level, from the root on, of one tree after another.
    depth : (T,) array
        Number of levels of each tree.
    """

    node: I64
    depth: I64


def levels_of(
    roots: I64, leaves: I64, left: I64, right: I64, view: I64, threshold: F64
) -> Levels | None:
    """Return the levels of trees that are all symmetric, None where one is not.

    Nodes of a tree are its splits and then its leaves, as a `ForestScorer` has them; those of a
    symmetric one must come level by level.
    """
    sizes = np.diff(np.append(roots, len(left)))
    splits = leaves - roots
    depth = np.log2(splits + 1).round().astype(np.int64)
    if not len(roots) or depth.max() > _DEEPEST or ((1 << depth) != splits + 1).any():
        return None
    if (sizes != 2 * splits + 1).any():
        return None
    root = np.repeat(roots, sizes)
    place = np.arange(len(left)) - root
    inner = np.flatnonzero(place < np.repeat(splits, sizes))
    root, place = root[inner], place[inner]
    level = np.floor(np.log2(place + 1)).astype(np.int64)
    head = root + (1 << level) - 1
    if (left[inner] != root + 2 * place + 1).any() or (right[inner] != root + 2 * place + 2).any():
        return None
    if (view[inner] != view[head]).any() or (threshold[inner] != threshold[head]).any():
        return None
    return Levels(inner[head == inner], depth)


def kernel_arrays(
    levels: Levels,
    view: I64,
    threshold: AnyArray,
    values: AnyArray,
    features: I64,
    missing_above: AnyArray,
    n_features: int,
    absent: float,
) -> tuple[Any, Any, Any]:
    """Return views, columns of bins and trees as the kernels take them.

    Parameters
    ----------
    view, threshold
        Of each level, in the type of the features that are to be scored.
    values
        Of the leaves, those of one tree after another.
    features, missing_above
        Of each view.
    absent
        What a sparse row does not hold.
    """
    slots, slot_of_view = np.unique(features, return_inverse=True)
    column, bound = np.zeros(len(view), np.int64), np.zeros(len(view), np.uint8)
    slot: list[int] = []
    above: list[bool] = []
    parts: list[AnyArray] = []
    for one in np.unique(view).tolist():
        here = np.flatnonzero(view == one)
        border, place = np.unique(threshold[here], return_inverse=True)
        column[here] = len(parts) + place // _MOST_BORDERS
        bound[here] = place % _MOST_BORDERS
        for a in range(0, len(border), _MOST_BORDERS):
            parts.append(border[a : a + _MOST_BORDERS])
            slot.append(slot_of_view[one])
            above.append(missing_above[one])
    cut = np.cumsum([0, *map(len, parts)])
    slot_of = np.full(n_features, -1)
    slot_of[slots] = np.arange(len(slots))
    first_split = np.append(0, np.cumsum(levels.depth))
    n_leaves = 1 << levels.depth
    leaf = np.empty(0, np.uint8 if levels.depth.max() <= 8 else np.uint16)
    border = np.concatenate([np.empty(0, threshold.dtype), *parts])
    return (
        (slots, slot_of, threshold.dtype.type(absent)),
        (np.array(slot, np.int64), np.array(above, bool), cut, border),
        (column, bound, first_split, np.cumsum(n_leaves) - n_leaves, values, leaf),
    )
