"""One tree in LightGBM's model text, from arrays by node; `models.tree_text` joins trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64, AnyArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Nodes:
    """A tree's nodes, the root first; what is not of a split is not looked at in a leaf.

    Attributes
    ----------
    inner : (n,) bool
        Which are splits.
    left, right : (n,) int
        Children of a split.
    feature, threshold, decision, gain : (n,)
        Of a split: its column, what goes left, LightGBM's ``decision_type``, and its gain.
    value, weight, count : (n,)
        The score of a leaf, the mean of those below a split; documents by weight and by number.
    """

    inner: Any
    left: I64
    right: I64
    feature: I64
    threshold: F64
    decision: I64
    gain: F64
    value: F64
    weight: AnyArray
    count: I64


def tree_block(nodes: Nodes, shrinkage: float = 1) -> str:
    """Return the lines of a tree with numeric splits."""
    inner, leaf = nodes.inner, ~nodes.inner
    number = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(leaf))  # leaves are -1, -2, ...
    lines = [f"num_leaves={int(leaf.sum())}", "num_cat=0"]
    if inner.any():
        lines += [
            f"split_feature={_joined(nodes.feature[inner])}",
            f"split_gain={_joined(nodes.gain[inner])}",
            f"threshold={_joined(nodes.threshold[inner])}",
            f"decision_type={_joined(nodes.decision[inner])}",
            f"left_child={_joined(number[nodes.left[inner]])}",
            f"right_child={_joined(number[nodes.right[inner]])}",
        ]
    for kind, chosen in (("leaf", leaf), ("internal", inner)):
        if chosen.any():
            lines += [
                f"{kind}_value={_joined(nodes.value[chosen])}",
                f"{kind}_weight={_joined(nodes.weight[chosen])}",
                f"{kind}_count={_joined(nodes.count[chosen])}",
            ]
    return "\n".join([*lines, "is_linear=0", f"shrinkage={shrinkage!r}", "", "", ""])


def leaf_block(value: float) -> str:
    """Return the lines of a tree that is one leaf."""
    none, one = np.full(1, -1), np.ones(1, np.int64)
    nothing = np.zeros(1)
    return tree_block(
        Nodes(
            inner=np.zeros(1, bool),
            left=none,
            right=none,
            feature=none,
            threshold=nothing,
            decision=none,
            gain=nothing,
            value=np.array([value]),
            weight=one,
            count=one,
        )
    )


def _joined(values: AnyArray) -> str:
    return " ".join(map(repr, values.tolist()))
