"""LightGBM's model text: taken apart into trees and put together again, without LightGBM."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.core.types import F64, I64, AnyArray
from rankwright.data.frames import AllCategories, Categories
from rankwright.errors import DataError, IncompatibleError

_TREE, _TREE_END = re.compile(r"^Tree=\d+\n", flags=re.MULTILINE), "\n\n\n"
_LINE = re.compile(r"([a-z_]+)=([-+.0-9einfa ]*)", flags=re.ASCII)
_HEAD_END = re.compile(r"^Tree=0\n|^end of trees\n", flags=re.MULTILINE)
_HEAD = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=custom
feature_names={names}
feature_infos={ranges}
tree_sizes={sizes}

"""
CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a split's decision_type; the missing type follows
_VALUES = re.compile(r"^(leaf_value|internal_value)=(.*)$", flags=re.MULTILINE)


def model_text(
    names: Sequence[str], blocks: Sequence[str], categories: AllCategories | None = None
) -> str:
    """Return the text of a model with these features and the lines of each tree.

    LightGBM finds the ``categories`` of the columns of a pandas frame that have the type by value.
    """
    known = categories or {}
    head = _HEAD.format(
        last=len(names) - 1,
        names=" ".join(names),
        ranges=" ".join(_range(known.get(name)) for name in names),
        sizes="",
    )
    text = _assemble(head, blocks)
    kept = [list(known[name].values) for name in names if name in known]
    return f"{text}\npandas_categorical:{json.dumps(kept)}\n" if kept else text


def _range(own: Categories | None) -> str:
    """Return what the text says of the values of a feature: an ordered category is a number."""
    if own is None:
        return "[-inf:inf]"
    return f"[0:{len(own) - 1}]" if own.ordered else ":".join(map(str, range(len(own))))


def first_trees(text: str, n_trees: int) -> str:
    """Return the first trees alone; the parameter block, which names thread counts, goes too."""
    return _assemble(text, tree_blocks(text)[:n_trees])


def without_first_tree(text: str) -> str:
    """Return all trees but the first."""
    return _assemble(text, tree_blocks(text)[1:])


def begins_with_a_stump(text: str) -> bool:
    """Whether the first tree has no split."""
    blocks = tree_blocks(text)
    return bool(blocks) and blocks[0].startswith("num_leaves=1\n")


def join_trees(texts: Sequence[str]) -> str:
    """Return one text with the trees of all ``texts``, in order."""
    return _assemble(texts[-1], [block for text in texts for block in tree_blocks(text)])


def mean_of_forests(texts: Sequence[str]) -> str:
    """Return one text that scores the mean of what ``texts`` score."""
    return with_scaled_leaves(join_trees(texts), 1.0 / len(texts))


def with_scaled_leaves(text: str, share: float) -> str:
    """Return the text with the values of its trees multiplied by ``share``."""
    blocks = tree_blocks(text)
    scaled = [_VALUES.sub(lambda found: _scaled(found, share), block) for block in blocks]
    return _assemble(text, scaled)


def tree_blocks(text: str) -> list[str]:
    """Return the lines of each tree, found in one pass."""
    blocks: list[str] = []
    start = _TREE.search(text)
    while start:
        end = text.find(_TREE_END, start.end())
        if end < 0:
            raise DataError(
                f"tree {len(blocks)} of the model has no end; take another copy of the model."
            )
        blocks.append(text[start.end() : end + len(_TREE_END)])
        start = _TREE.search(text, end)
    return blocks


def check_head(text: str, n_features: int) -> None:
    """Raise unless the lines before the trees are those of ``n_features`` and one score.

    LightGBM believes them, and ends the process where they are wrong.
    """
    head = _HEAD_END.split(text, maxsplit=1)[0].splitlines()
    names = [line.partition("=")[0] for line in head if "=" in line]
    lines = dict(line.split("=", 1) for line in head if "=" in line)
    asked = {"num_class": 1, "num_tree_per_iteration": 1, "max_feature_idx": n_features - 1}
    for name, value in asked.items():
        if lines.get(name) != str(value):
            raise DataError(
                f"the text of the trees has {name}={lines.get(name)}, where {value} is expected."
            )
    for name in ("feature_names", "feature_infos", "monotone_constraints"):
        count = len(lines.get(name, "").split(" "))
        if name in lines and count != n_features:
            raise DataError(f"the text of the trees has {count} {name} for {n_features} features.")
    if len(names) != len(lines):
        raise DataError("the text of the trees has a line twice before its trees.")


@dataclass(frozen=True, slots=True)
class TextTree:
    """One tree of LightGBM's text; a negative child is the leaf ~child.

    ``count`` has the documents of each split and then of each leaf, where the text has them.
    """

    feature: I64
    threshold: F64
    kind: I64
    left: I64
    right: I64
    gain: F64
    value: F64
    count: F64
    sets: list[NDArray[np.uint32]]

    @classmethod
    def read(cls, block: str) -> TextTree:
        """Read the lines of one tree; raise ValueError or KeyError where they make none."""
        lines = _lines(block)
        if lines.get("is_linear", "0") != "0":
            raise IncompatibleError(
                "these trees have linear models in their leaves, which only LightGBM can score; "
                "train them without linear_tree."
            )
        if not np.isfinite(float(lines.get("shrinkage", 1))):
            raise ValueError("shrinkage is not finite")
        leaves = int(lines["num_leaves"])

        def numbers(name: str, kind: Any, count: int) -> AnyArray:
            found = np.array(lines.get(name, "").split()[:count], kind)
            if len(found) != count:
                raise ValueError(f"{name} has {len(found)} numbers, not {count}")
            return found

        def or_zeros(name: str, kind: Any, count: int) -> AnyArray:
            return numbers(name, kind, count) if lines.get(name) else np.zeros(count, kind)

        splits = leaves - 1
        for name, count in (("internal", splits), ("leaf", leaves)):  # LightGBM reads these too
            or_zeros(f"{name}_weight", np.float64, count)
        or_zeros("internal_value", np.float64, splits)
        inner = or_zeros("internal_count", np.float64, splits)
        return cls(
            feature=numbers("split_feature", np.int64, splits),
            threshold=numbers("threshold", np.float64, splits),
            kind=numbers("decision_type", np.int64, splits),
            left=numbers("left_child", np.int64, splits),
            right=numbers("right_child", np.int64, splits),
            gain=or_zeros("split_gain", np.float32, splits).astype(np.float64),
            value=numbers("leaf_value", np.float64, leaves),
            count=np.append(inner, or_zeros("leaf_count", np.float64, leaves)),
            sets=_sets(lines),
        )

    def is_sound(self, n_features: int) -> bool:
        """Whether every row ends in a leaf: each node but the first is the child of one before it.

        A feature is one of ``n_features``, a set is there, and leaves are finite.
        """
        n = len(self.feature)
        children = np.concatenate([self.left, self.right])
        once = np.concatenate([np.arange(-n - 1, 0), np.arange(1, n)])
        after = (children < 0) | (np.tile(np.arange(n), 2) < children)
        sets = self.threshold[self.kind & CATEGORICAL != 0]
        return bool(
            np.array_equal(np.sort(children), once[: 2 * n])
            and after.all()
            and ((self.feature >= 0) & (self.feature < n_features)).all()
            and ((sets >= 0) & (sets < len(self.sets))).all()
            and (self.kind >> 2 & 3 < 3).all()
            and not np.isnan(self.threshold).any()  # below infinity is all but NaN
            and np.isfinite(self.value).all()
            and np.isfinite(self.count).all()
        )


def _lines(block: str) -> dict[str, str]:
    """Return the lines of a tree by name; raise ValueError where one is no list of numbers."""
    lines: dict[str, str] = {}
    for line in filter(None, block.splitlines()):
        found = _LINE.fullmatch(line)
        if found is None or found[1] in lines:
            raise ValueError("a line is no list of numbers, or comes twice")
        lines[found[1]] = found[2]
    return lines


def _sets(lines: Mapping[str, str]) -> list[NDArray[np.uint32]]:
    """Return the categories that go left, as bits, of each set."""
    words = np.array(lines.get("cat_threshold", "").split(), np.uint32)
    ends = np.array(lines.get("cat_boundaries", "0").split(), np.int64)
    if len(ends) != int(lines.get("num_cat", 0)) + 1:
        raise ValueError("sets of categories are missing")
    if ends[0] != 0 or ends[-1] != len(words) or (np.diff(ends) < 0).any():
        raise ValueError("sets of categories are cut wrongly")
    return [words[a:b] for a, b in pairwise(ends.tolist())]


def _scaled(found: re.Match[str], factor: float) -> str:
    values = " ".join(repr(float(value) * factor) for value in found[2].split())
    return f"{found[1]}={values}"


def _assemble(text: str, blocks: Sequence[str]) -> str:
    trees = [f"Tree={i}\n{block}" for i, block in enumerate(blocks)]
    sizes = " ".join(str(len(tree.encode())) for tree in trees)
    head = re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", _HEAD_END.split(text, maxsplit=1)[0])
    return f"{head}{''.join(trees)}end of trees\n"


# --- writing trees ---------------------------------------------------------------------------


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
