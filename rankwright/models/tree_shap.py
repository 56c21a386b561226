"""SHAP values of tree ensembles by the documents in their leaves (path-dependent TreeSHAP).

On the way to a leaf of value v stand d features. Let z_j be the share of the documents that follow
the leaf's way at the splits on feature j, and A those features at which the row follows it too. The
row's share of the leaf in what feature i adds (`lundberg2020local`) is

    v prod_{j not in A} z_j (1 - z_i) sum_k w_k e_k(A without i)      for i in A,             (1)
    - v prod_{j not in A} z_j         sum_k w_k e_k(A)                for the others,         (2)

where e_k is the coefficient of t^k in prod_j (z_j + t) and w_k = k! (d - 1 - k)! / d!. The products
are taken without any division, so that shares of 0 do no harm.
"""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import F64, I64, AnyArray
from rankwright.models.forest_scorer import ForestScorer, view_code

_RANGE = 16  # rows of a range for one thread

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _weighted(shares, follows, skipped, weights, e):  # type: ignore[no-untyped-def]
    """Return sum_k w_k e_k over the features that the row follows, but one."""
    e[0] = 1.0
    n = 0
    for j in range(len(shares)):
        if follows[j] and j != skipped:
            n += 1
            e[n] = e[n - 1]
            for k in range(n - 1, 0, -1):
                e[k] = e[k - 1] + shares[j] * e[k]
            e[0] *= shares[j]
    total = 0.0
    for k in range(n + 1):
        total += weights[k] * e[k]
    return total


@kernel
def _add_shap(lo, hi, X, bits, views, nodes, paths, weights, out):  # type: ignore[no-untyped-def]
    feature, rule, _, cut, words, blank, sign, highest = views
    leaf_value, first_on, on_feature, on_share, first_step, step_node, step_right, step_on = paths
    codes = np.zeros(len(feature), blank.dtype)
    follows = np.zeros(weights.shape[0], np.bool_)
    e = np.zeros(weights.shape[0] + 1)
    for i in range(lo, hi):
        for v in range(len(feature)):
            j = feature[v]
            held = words[cut[v] : cut[v + 1]]
            codes[v] = view_code(X[i, j], bits[i, j], rule[v], held, sign, highest, 0.0)
        for leaf in range(len(leaf_value)):
            a, b = first_on[leaf], first_on[leaf + 1]
            d = b - a
            follows[:d] = True
            for s in range(first_step[leaf], first_step[leaf + 1]):
                at = 4 * step_node[s]
                if (codes[nodes[at + 1]] > nodes[at]) != step_right[s]:
                    follows[step_on[s]] = False
            value = leaf_value[leaf]
            for j in range(d):
                if not follows[j]:
                    value *= on_share[a + j]
            if value == 0.0 or d == 0:
                continue
            own, w = on_share[a:b], weights[d]
            others = np.nan  # (2), when first needed
            for j in range(d):
                if follows[j]:
                    part = (1.0 - own[j]) * _weighted(own, follows, j, w, e)  # (1)
                else:
                    if others != others:
                        others = -_weighted(own, follows, -1, w, e)
                    part = others
                out[i, on_feature[a + j]] += value * part


# --- API -------------------------------------------------------------------------------------


class Paths(NamedTuple):
    """The way to each leaf: its features with their shares, and its splits.

    Leaf l has the features ``first_on[l]`` up to ``first_on[l + 1]`` and the splits
    ``first_step[l]`` up to ``first_step[l + 1]``; ``step_on`` is the feature of a split, counted
    from the leaf's first.
    """

    leaf_value: F64
    first_on: I64
    on_feature: I64
    on_share: F64
    first_step: I64
    step_node: I64
    step_right: AnyArray
    step_on: I64

    @property
    def expected(self) -> float:
        """The score of all trees that the documents in their leaves have on average."""
        shares = np.append(self.on_share, 1.0)  # a leaf without features has none to multiply
        ends = self.first_on[1:]
        total = 0.0
        for leaf, (a, b) in enumerate(zip(self.first_on[:-1], ends, strict=True)):
            total += float(self.leaf_value[leaf] * np.prod(shares[a:b]))
        return total


def leaf_paths(scorer: ForestScorer, cover: F64) -> Paths:
    """Return the ways to all leaves; ``cover`` is the weight of the documents in each node."""
    feature = scorer.feature[scorer.view].tolist()
    left, right, held = scorer.left.tolist(), scorer.right.tolist(), cover.tolist()
    values: list[float] = []
    first_on, first_step = [0], [0]
    on_feature: list[int] = []
    on_share: list[float] = []
    step_node: list[int] = []
    step_right: list[bool] = []
    step_on: list[int] = []
    for root in scorer.roots.tolist():
        waiting: list[tuple[int, tuple[tuple[int, bool], ...]]] = [(root, ())]
        while waiting:
            node, way = waiting.pop()
            if left[node] != node:
                waiting.append((right[node], (*way, (node, True))))
                waiting.append((left[node], (*way, (node, False))))
                continue
            shares: dict[int, float] = {}
            for above, to_right in way:
                parts = held[left[above]] + held[right[above]]
                own = held[right[above] if to_right else left[above]]
                share = own / parts if parts > 0.0 else 0.5
                shares[feature[above]] = shares.get(feature[above], 1.0) * share
            place = {column: k for k, column in enumerate(shares)}
            values.append(float(scorer.value[node]))
            on_feature += shares
            on_share += shares.values()
            first_on.append(len(on_feature))
            step_node += [above for above, _ in way]
            step_right += [to_right for _, to_right in way]
            step_on += [place[feature[above]] for above, _ in way]
            first_step.append(len(step_node))
    return Paths(
        np.array(values),
        np.array(first_on, np.int64),
        np.array(on_feature, np.int64),
        np.array(on_share, np.float64),
        np.array(first_step, np.int64),
        np.array(step_node, np.int64),
        np.array(step_right, np.bool_),
        np.array(step_on, np.int64),
    )


def shap_values(
    scorer: ForestScorer, paths: Paths, X: AnyArray, *, n_jobs: int | None = None
) -> F64:
    """Return what each feature adds to the sum of the trees, for each row of a dense matrix."""
    out = np.zeros((len(X), scorer.n_features))
    most = int(np.diff(paths.first_on).max(initial=0))
    weights = np.zeros((most + 1, most + 1))
    for d in range(1, most + 1):
        for k in range(d):
            weights[d, k] = factorial(k) * factorial(d - 1 - k) / factorial(d)
    dense = np.ascontiguousarray(X)
    bits = dense.view(np.uint32 if dense.dtype == np.float32 else np.uint64)
    views, trees = scorer.arrays_for(dense)
    rest = (dense, bits, views, trees[0], tuple(paths), weights, out)
    map_ranges(_add_shap, row_ranges(len(X), _RANGE), *rest, n_jobs=n_jobs)
    return out
