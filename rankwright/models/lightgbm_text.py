"""LightGBM's model text: read into node arrays and written from them, without LightGBM.

decision_type   1: split on categories, 2: missing values go left, 4 or 8: zeros or NaN are
missing
children        a negative one is the leaf ~child
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.core.types import AnyArray
from rankwright.data.frames import AllCategories, Categories
from rankwright.errors import DataError, IncompatibleError
from rankwright.models.forest import Forest, node_means
from rankwright.models.forest_scoring import (
    CATEGORY,
    NAN_LEFT,
    NAN_RIGHT,
    PLAIN,
    ZERO_LEFT,
    ZERO_RIGHT,
)

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
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_RULES = {  # by decision_type
    0: PLAIN, 2: PLAIN, 4: ZERO_RIGHT, 6: ZERO_LEFT, 8: NAN_RIGHT, 10: NAN_LEFT,
}  # fmt: skip
_DECISIONS = {
    PLAIN: 2, ZERO_RIGHT: 4, ZERO_LEFT: 6, NAN_RIGHT: 8, NAN_LEFT: 10, CATEGORY: _CATEGORICAL,
}  # fmt: skip

# --- reading ---------------------------------------------------------------------------------


def read_trees(text: str, n_features: int) -> Forest:
    """Return the trees of a model text; raise if a tree is damaged."""
    trees = []
    for number, block in enumerate(tree_blocks(text)):
        try:
            tree = read_tree(block, n_features)
            is_valid = tree.is_valid()
        except (KeyError, ValueError, OverflowError):  # a line is missing, or is not numeric
            is_valid = False
        if not is_valid:
            raise DataError(
                f"tree {number} of the model is damaged: its splits do not make a tree over "
                f"{n_features} features; take another copy of the model."
            )
        trees.append(tree)
    return Forest.of_trees(n_features, trees)


def read_tree(block: str, n_features: int) -> Forest:
    """Return the tree that the lines of a block describe; raise ValueError or KeyError."""
    lines = _lines(block)
    if lines.get("is_linear", "0") != "0":
        raise IncompatibleError(
            "these trees have linear models in their leaves, which only LightGBM can score; "
            "train them without linear_tree."
        )
    n_leaves = int(lines["num_leaves"])
    n = n_leaves - 1

    def numbers(name: str, kind: Any, count: int) -> AnyArray:
        values = np.array(lines.get(name, "").split()[:count], kind)
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} numbers, not {count}")
        return values

    def or_zeros(name: str, count: int) -> AnyArray:
        return numbers(name, np.float64, count) if lines.get(name) else np.zeros(count)

    for name, count in (("leaf_weight", n_leaves), ("internal_weight", n), ("internal_value", n)):
        or_zeros(name, count)  # only checked
    decision = numbers("decision_type", np.int64, n)
    threshold = numbers("threshold", np.float64, n)
    is_set = decision & _CATEGORICAL != 0
    sets = _sets(lines)
    if not set(threshold[is_set].tolist()) <= set(range(len(sets))):
        raise ValueError("a split has a set of categories that is not there")
    rule = [
        CATEGORY if kind & _CATEGORICAL else _RULES[kind & ~_CATEGORICAL]
        for kind in decision.tolist()
    ]
    leaves, none = n + np.arange(n_leaves), np.zeros(n_leaves)
    children = [numbers(f"{side}_child", np.int64, n) for side in ("left", "right")]
    left, right = (np.append(np.where(c >= 0, c, n + ~c), leaves) for c in children)
    with np.errstate(over="ignore"):
        gain = or_zeros("split_gain", n).astype(np.float32).astype(np.float64)
    return Forest(
        n_features=n_features,
        roots=np.zeros(1, np.int64),
        feature=np.append(numbers("split_feature", np.int64, n), np.zeros(n_leaves, np.int64)),
        threshold=np.append(threshold, none),
        left=left,
        right=right,
        value=np.append(np.zeros(n), numbers("leaf_value", np.float64, n_leaves)),
        rule=np.append(np.array(rule, np.int64), np.zeros(n_leaves, np.int64)),
        cover=np.append(or_zeros("internal_count", n), or_zeros("leaf_count", n_leaves)),
        gain=np.append(gain, none),
        shrinkage=np.array([float(lines.get("shrinkage", 1))]),
        sets=tuple(sets),
        n_rounds=1,
    )


def tree_blocks(text: str) -> list[str]:
    """Return the lines of each tree, in one pass over the text."""
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
    """Raise unless the lines before the trees describe ``n_features`` and one score.

    LightGBM does not check them, and ends the process if they are wrong.
    """
    head = _HEAD_END.split(text, maxsplit=1)[0].splitlines()
    names = [line.partition("=")[0] for line in head if "=" in line]
    lines = dict(line.split("=", 1) for line in head if "=" in line)
    expected = {"num_class": 1, "num_tree_per_iteration": 1, "max_feature_idx": n_features - 1}
    for name, value in expected.items():
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


def is_whole(text: str) -> bool:
    """Return whether a text has its end, and the trees of the sizes that its head lists."""
    trees = _with_titles(tree_blocks(text))
    head = _HEAD_END.split(text, maxsplit=1)[0]
    sizes = f"tree_sizes={_sizes(trees)}"
    return text.startswith(f"{re.sub('tree_sizes=.*', sizes, head)}{''.join(trees)}end of trees\n")


def _lines(block: str) -> dict[str, str]:
    """Return the lines of a tree by name; raise ValueError if a line is not a list of numbers."""
    lines: dict[str, str] = {}
    for line in filter(None, block.splitlines()):
        match = _LINE.fullmatch(line)
        if match is None or match[1] in lines:
            raise ValueError("a line is not a list of numbers, or comes twice")
        lines[match[1]] = match[2]
    return lines


def _sets(lines: Mapping[str, str]) -> list[NDArray[np.uint32]]:
    """Return the categories of each set that go left, as bits."""
    words = np.array(lines.get("cat_threshold", "").split(), np.uint32)
    ends = np.array(lines.get("cat_boundaries", "0").split(), np.int64)
    if len(ends) != int(lines.get("num_cat", 0)) + 1:
        raise ValueError("sets of categories are missing")
    if ends[0] != 0 or ends[-1] != len(words) or (np.diff(ends) < 0).any():
        raise ValueError("sets of categories are cut wrongly")
    return [words[a:b] for a, b in pairwise(ends.tolist())]


# --- writing ---------------------------------------------------------------------------------


def model_text(
    names: Sequence[str], forest: Forest, categories: AllCategories | None = None
) -> str:
    """Return the text of a model with LightGBM's rules; the offset of the forest is left out.

    ``categories`` are those of the features; LightGBM finds them by value in a pandas frame.
    """
    known = categories or {}
    trees = _with_titles(_blocks(forest))
    head = _HEAD.format(
        last=len(names) - 1,
        names=" ".join(names),
        ranges=" ".join(_range(known.get(name)) for name in names),
        sizes=_sizes(trees),
    )
    text = f"{head}{''.join(trees)}end of trees\n"
    listed = [list(known[name].values) for name in names if name in known]
    return f"{text}\npandas_categorical:{json.dumps(listed)}\n" if listed else text


def _with_titles(blocks: Iterable[str]) -> list[str]:
    return [f"Tree={number}\n{block}" for number, block in enumerate(blocks)]


def _sizes(trees: Sequence[str]) -> str:
    return " ".join(str(len(tree.encode())) for tree in trees)


def _range(categories: Categories | None) -> str:
    """Return the range of a feature; LightGBM treats ordered categories as numbers."""
    if categories is None:
        return "[-inf:inf]"
    codes = range(len(categories))
    return f"[0:{len(codes) - 1}]" if categories.ordered else ":".join(map(str, codes))


def _blocks(forest: Forest) -> Iterator[str]:
    """Yield the lines of each tree."""
    _, mean, _ = node_means(forest.left, forest.right, forest.value, forest.cover)
    decision = np.array([_DECISIONS[rule] for rule in forest.rule.tolist()], np.int64)
    count = np.maximum(np.rint(forest.cover), 1.0).astype(np.int64)
    sizes, roots = forest.sizes.tolist(), forest.roots.tolist()
    for root, size, shrinkage in zip(roots, sizes, forest.shrinkage.tolist(), strict=True):
        n = size // 2
        splits, leaves = slice(root, root + n), slice(root + n, root + size)
        is_set = decision[splits] == _CATEGORICAL
        threshold = forest.threshold[splits].copy()
        sets = [forest.sets[int(number)] for number in threshold[is_set]]
        threshold[is_set] = np.arange(len(sets))
        lines: dict[str, Any] = {"num_leaves": [n + 1], "num_cat": [len(sets)]}
        if n:
            lines |= {
                "split_feature": forest.feature[splits],
                "split_gain": forest.gain[splits],
                "threshold": threshold,
                "decision_type": decision[splits],
                "left_child": _numbered(forest.left[splits] - root, n),
                "right_child": _numbered(forest.right[splits] - root, n),
            }
        if sets:
            lines |= {
                "cat_boundaries": np.cumsum([0, *map(len, sets)]),
                "cat_threshold": np.concatenate(sets),
            }
        for kind, nodes in (("leaf", leaves), ("internal", splits)):
            if n or kind == "leaf":
                lines |= {
                    f"{kind}_value": mean[nodes],
                    f"{kind}_weight": forest.cover[nodes],
                    f"{kind}_count": count[nodes],
                }
        lines |= {"is_linear": [0], "shrinkage": [shrinkage]}
        yield "".join(f"{name}={_listed(values)}\n" for name, values in lines.items()) + "\n\n"


def _numbered(child: AnyArray, n_splits: int) -> AnyArray:
    return np.where(child < n_splits, child, ~(child - n_splits))


def _listed(values: Any) -> str:
    return " ".join(map(repr, np.asarray(values).tolist()))
