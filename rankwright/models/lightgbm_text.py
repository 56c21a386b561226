"""LightGBM's model text: read into node arrays and written from them, without LightGBM.

decision_type   1: split on categories, 2: missing values are sent left, 4 or 8: zeros or NaN are
missing
children        a negative number c is the leaf ~c
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
            _check_lines(block)
            tree = read_tree(block, n_features)
            tree.validate()
        except (KeyError, ValueError, OverflowError):  # a line is missing, or is not numeric
            raise DataError(
                f"tree {number} of the model is damaged: its splits do not make a tree over "
                f"{n_features} features; take another copy of the model."
            ) from None
        trees.append(tree)
    return Forest.of_trees(n_features, trees)


def read_tree(block: str, n_features: int) -> Forest:
    """Return a tree from its lines; raise ValueError or KeyError."""
    lines = dict(line.split("=", 1) for line in block.splitlines() if line)
    if lines.get("is_linear", "0") != "0":
        raise IncompatibleError(
            "these trees have linear models in their leaves, which only LightGBM can score; "
            "train them without linear_tree."
        )
    n_leaves = int(lines["num_leaves"])
    n = n_leaves - 1
    zeros = [0] * n_leaves
    leaves = range(n, n + n_leaves)
    left, right = (
        [child if child >= 0 else n + ~child for child in _numbers(lines, name, n, int)]
        for name in ("left_child", "right_child")
    )
    rule = [
        CATEGORY if decision & _CATEGORICAL else _RULES[decision]
        for decision in _numbers(lines, "decision_type", n, int)
    ]
    counts = [
        *_numbers(lines, "internal_count", n, optional=True),
        *_numbers(lines, "leaf_count", n_leaves, optional=True),
    ]
    with np.errstate(over="ignore"):
        gain = np.array(_numbers(lines, "split_gain", n, optional=True), np.float32)
    return Forest(
        n_features=n_features,
        roots=np.zeros(1, np.int64),
        feature=np.array([*_numbers(lines, "split_feature", n, int), *zeros], np.int64),
        threshold=np.array([*_numbers(lines, "threshold", n), *zeros], np.float64),
        left=np.array([*left, *leaves], np.int64),
        right=np.array([*right, *leaves], np.int64),
        value=np.append(np.zeros(n), _numbers(lines, "leaf_value", n_leaves)),
        rule=np.array([*rule, *zeros], np.int64),
        cover=np.array(counts, np.float64),
        gain=np.append(gain.astype(np.float64), np.zeros(n_leaves)),
        shrinkage=np.array([float(lines.get("shrinkage", 1))]),
        sets=_sets(lines),
        n_rounds=1,
    )


def _numbers(
    lines: Mapping[str, str],
    name: str,
    count: int,
    kind: Callable[[str], Any] = float,
    *,
    optional: bool = False,
) -> list[Any]:
    """Return the first ``count`` numbers of a line; zeros if an optional line is missing."""
    text = lines.get(name, "")
    if optional and not text:
        return [0.0] * count
    values = [kind(word) for word in text.split()[:count]]
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} numbers, not {count}")
    return values


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


def _check_lines(block: str) -> None:
    """Raise unless the lines of a tree are lists of numbers, including LightGBM's own lines."""
    matches = [_LINE.fullmatch(line) for line in block.splitlines() if line]
    lines = {match[1]: match[2] for match in matches if match is not None}
    if len(lines) != len(matches):
        raise ValueError("a line is not a list of numbers, or occurs twice")
    n_leaves = int(lines["num_leaves"])
    for kind, count in (("leaf", n_leaves), ("internal", n_leaves - 1)):
        _numbers(lines, f"{kind}_weight", count, optional=True)
        _numbers(lines, f"{kind}_value", count, optional=True)


def _sets(lines: Mapping[str, str]) -> tuple[NDArray[np.uint32], ...]:
    """Return the categories of each set as bits."""
    n_sets = int(lines.get("num_cat", 0))
    if not n_sets:
        return ()
    words = np.array([int(word) for word in lines["cat_threshold"].split()], np.uint32)
    ends = np.array([int(word) for word in lines["cat_boundaries"].split()], np.int64)
    if (
        len(ends) != n_sets + 1
        or ends[0] != 0
        or ends[-1] != len(words)
        or (np.diff(ends) < 0).any()
    ):
        raise ValueError("the sets of categories do not have the lengths that are listed")
    return tuple(np.split(words, ends[1:-1]))


# --- writing ---------------------------------------------------------------------------------


def model_text(
    names: Sequence[str], forest: Forest, categories: AllCategories | None = None
) -> str:
    """Return the text of a model with LightGBM's rules, without the offset of the forest.

    ``categories`` maps feature names to categories; LightGBM matches them by value in a pandas
    frame.
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
