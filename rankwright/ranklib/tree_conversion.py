"""Trees of RankLib as trees of ours (LightGBM's text), and back.

- RankLib rounds features to float32 before it compares. The threshold becomes the highest float64
  that float32 rounds to RankLib's, so both send every document to the same leaf, whether the data
  is held in float32 or float64. Back, it is the highest float32 that is not above.
- A leaf's value is weight x output; outputs have float32 precision.
- RankLib's text does not tell how many documents a leaf had: each counts as one. Gains and SHAP
  values of a model that came from RankLib rest on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankwright.core.dtypes import highest_rounded_to, not_above
from rankwright.core.types import F64, I64
from rankwright.errors import UsageError
from rankwright.export.lightgbm_tree import Nodes, tree_block
from rankwright.models.tree_text import model_text, tree_blocks
from rankwright.models.trees import FittedTrees
from rankwright.ranklib.model_trees import Tree

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of decision_type


def fitted_trees(trees: Sequence[Tree], n_features: int, *, share: float = 1.0) -> FittedTrees:
    """Return the model that adds up ``share`` times each tree's weight and output."""
    names = [f"Column_{j}" for j in range(n_features)]
    blocks = [_block(tree, tree.weight * tree.output * share) for tree in trees]
    return FittedTrees(model_text(names, blocks), 0.0, n_features)


def ensembles_of(model: FittedTrees, n_bags: int = 1) -> tuple[tuple[Tree, ...], ...]:
    """Return a model's trees as RankLib has them, in ``n_bags`` ensembles whose mean they are.

    The initial score, which RankLib does not know, goes to the leaves of each first tree.
    """
    trees = [_parse_block(block, 1.0 / n_bags) for block in tree_blocks(model.text)]
    trees = trees or [_single_leaf(0.0)] * n_bags
    size = len(trees) // n_bags
    bags = [trees[i * size : (i + 1) * size] for i in range(n_bags)]
    return tuple((_raised(bag[0], model.initial), *bag[1:]) for bag in bags)


def _raised(tree: Tree, by: float) -> Tree:
    output = np.where(tree.feature > 0, 0.0, _single(tree.output + by / tree.weight))
    return replace(tree, output=output) if by else tree


# --- to LightGBM -------------------------------------------------------------------------------


def _block(tree: Tree, value: F64) -> str:
    inner = tree.feature > 0
    count, mean = _counts_and_means(tree, value)
    left, right = tree.left[inner], tree.right[inner]
    gain = np.zeros(len(value))
    gain[inner] = count[left] * count[right] / count[inner] * (mean[left] - mean[right]) ** 2
    nodes = Nodes(
        inner=inner,
        left=tree.left,
        right=tree.right,
        feature=tree.feature - 1,
        threshold=highest_rounded_to(tree.threshold),
        decision=np.full(len(value), _DEFAULT_LEFT),
        gain=gain,
        value=np.where(inner, mean, value),
        weight=count,
        count=count,
    )
    return tree_block(nodes, tree.weight)


def _counts_and_means(tree: Tree, value: F64) -> tuple[I64, F64]:
    """Return for each node how many leaves lie below it, and the mean of their values."""
    count, total = np.zeros(len(value), np.int64), np.zeros(len(value))
    for node in range(len(value) - 1, -1, -1):  # children come after their parent
        if tree.feature[node] == 0:
            count[node], total[node] = 1, value[node]
        else:
            children = [tree.left[node], tree.right[node]]
            count[node], total[node] = count[children].sum(), total[children].sum()
    return count, total / count


# --- from LightGBM -----------------------------------------------------------------------------


def _parse_block(block: str, share: float) -> Tree:
    fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    weight = float(np.float32(float(fields.get("shrinkage", 1.0)))) or 1.0
    value = _numbers(fields["leaf_value"]) / (weight * share)
    if "split_feature" not in fields or len(value) == 1:
        return replace(_single_leaf(float(value[0])), weight=weight)
    if (_whole(fields["decision_type"]) & _CATEGORICAL).any():
        raise UsageError(
            "the model has splits on categories, which RankLib does not know; "
            "fit it without categorical_feature and columns of categories."
        )
    n_inner = len(value) - 1
    threshold = np.append(not_above(_numbers(fields["threshold"])), np.zeros(len(value)))
    below = np.stack([_whole(fields["left_child"]), _whole(fields["right_child"])])
    child = np.full((2, 2 * n_inner + 1), -1)
    child[:, :n_inner] = np.where(below >= 0, below, n_inner - 1 - below)
    feature = np.zeros(2 * n_inner + 1, np.int64)
    feature[:n_inner] = _whole(fields["split_feature"]) + 1
    output = np.append(np.zeros(n_inner), _single(value))
    tree = Tree(weight, feature, threshold.astype(np.float32), child[0], child[1], output)
    return _in_text_order(tree)


def _in_text_order(tree: Tree) -> Tree:
    """Return the tree with its nodes in the order in which the text has them."""
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if tree.feature[node] > 0:
            waiting += [int(tree.right[node]), int(tree.left[node])]
    place = np.full(len(order) + 1, -1)  # the last stands for no child
    place[order] = np.arange(len(order))
    return Tree(
        tree.weight,
        tree.feature[order],
        tree.threshold[order],
        place[tree.left[order]],
        place[tree.right[order]],
        tree.output[order],
    )


def _single_leaf(output: float) -> Tree:
    zero, none = np.zeros(1, np.int64), np.full(1, -1)
    return Tree(1.0, zero, np.zeros(1, np.float32), none, none, _single(np.array([output])))


def _single(values: F64) -> F64:
    return values.astype(np.float32).astype(np.float64)


def _numbers(text: str) -> F64:
    return np.array(text.split(), np.float64)


def _whole(text: str) -> I64:
    return np.array(text.split(), np.int64)
