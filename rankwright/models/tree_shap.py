"""SHAP values of tree ensembles, weighted by the training documents (path-dependent TreeSHAP).

The path to a leaf of value v has splits on d features. Let z_j be the share of the documents that
take this path at the splits on feature j, and A the set of features at which the row takes it too.
The contribution of feature i through the leaf (`lundberg2020local`) is

    v prod_{j not in A} z_j (1 - z_i) sum_k w_k e_k(A without i)      for i in A,             (1)
    - v prod_{j not in A} z_j         sum_k w_k e_k(A)                otherwise,              (2)

where e_k is the coefficient of t^k in prod_j (z_j + t) and w_k = k! (d - 1 - k)! / d!. Each w_k is
the integral of t^k (1 - t)^(d - 1 - k), so that with the factor of each feature

    f_j(t) = z_j (1 - t) + t  for j in A,       z_j (1 - t)  otherwise,                       (3)

both sums are integrals of a product of factors without that of i, a polynomial of degree d - 1,

    v int_0^1 p_i prod_j f_j dt,    p_i = (1 - z_i) / f_i  for i in A,  -1 / (1 - t)  else,   (4)

which Gauss-Legendre quadrature with (d + 1) / 2 points computes exactly (`yu2022linear`). The
product at each point is computed from the root to the leaves, and the sums from the leaves to the
root: a few operations per node and point, independent of the depth. The points lie inside (0, 1),
so no denominator is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, ordered_sum, row_ranges
from rankwright.core.types import F64, I64, AnyArray, FloatMatrix
from rankwright.errors import UsageError
from rankwright.models.forest_scoring import TINY, fill_codes

if TYPE_CHECKING:
    from rankwright.models.forest import Forest

_RANGE = 16  # rows of a range for one thread
_ROWS = 4096  # largest number of rows of a sparse matrix that are dense at a time
_VALUES = 1 << 22  # largest number of values in these rows
_MOST_PRODUCTS = 1 << 24  # of one tree, nodes times points, that a thread holds
_MOST_POINTS = 1 << 10  # finding them takes a second

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _find_ways(roots, left, right, feature, cover, ways, reached):
    """Fill in ``ways``, see `TreeShap`, and the share of documents that reach each node.

    Return the largest number of features on one path of each tree.
    """
    parent, before, on, share, product = ways
    most = np.zeros(len(roots), np.int64)
    last = np.full(feature.max() + 1, -1)  # the node that the last split on a feature led to
    waiting = np.empty(2 * len(left), np.int64)
    for t in range(len(roots)):
        waiting[0] = roots[t]
        n, distinct = 1, 0
        while n > 0:
            n -= 1
            node = waiting[n]
            if node < 0:  # all below it are done
                node = ~node
                last[on[node]] = before[node]
                distinct -= before[node] < 0
                continue
            if node != roots[t]:
                earlier = last[on[node]]
                before[node] = earlier
                product[node] = share[node] * (product[earlier] if earlier >= 0 else 1.0)
                distinct += earlier < 0
                most[t] = max(most[t], distinct)
                last[on[node]] = node
                waiting[n] = ~node
                n += 1
            if left[node] != node:
                weight = cover[left[node]] + cover[right[node]]
                for child in (right[node], left[node]):
                    parent[child], on[child] = node, feature[node]
                    share[child] = cover[child] / weight if weight > 0.0 else 0.5
                    reached[child] = reached[node] * share[child]
                    waiting[n] = child
                    n += 1
    return most


@kernel
def _carry_down(codes, nodes, first, end, ways, to_right, value, points, follows, g, s):
    """Fill in the product of factors (3) at each node, times the value at leaves."""
    parent, before, _, share, product = ways
    t, rest, weight = points
    follows[0] = True
    g[0, : len(t)] = weight
    for node in range(first + 1, end):
        k, up = node - first, parent[node] - first
        at = 4 * parent[node]
        takes_path = (codes[nodes[at + 1]] > nodes[at]) == to_right[node]
        earlier = before[node]
        if earlier >= 0 and not follows[earlier - first]:
            takes_path = False
            for q in range(len(t)):
                g[k, q] = g[up, q] * share[node]
        elif earlier >= 0:
            for q in range(len(t)):
                f = product[node] * rest[q] + takes_path * t[q]
                g[k, q] = g[up, q] * f / (product[earlier] * rest[q] + t[q])
        else:
            for q in range(len(t)):
                g[k, q] = g[up, q] * (product[node] * rest[q] + takes_path * t[q])  # (3)
        follows[k] = takes_path
        for q in range(len(t)):
            s[k, q] = g[k, q] * value[node]


@kernel
def _carry_up(first, end, ways, points, follows, s, out):
    """Add the leaves below each node, and (4) for the feature of the split that leads to it.

    If an earlier split was on the same feature, its p no longer applies to these leaves.
    """
    parent, before, on, _, product = ways
    t, rest, _ = points
    for node in range(end - 1, first, -1):
        k, up, earlier = node - first, parent[node] - first, before[node]
        z, total = product[node], 0.0
        if follows[k]:
            for q in range(len(t)):
                total += s[k, q] * (1.0 - z) / (z * rest[q] + t[q])
        elif earlier < 0 or follows[earlier - first]:
            for q in range(len(t)):
                total -= s[k, q] / rest[q]
        if earlier >= 0 and follows[earlier - first]:
            z = product[earlier]
            for q in range(len(t)):
                total -= s[k, q] * (1.0 - z) / (z * rest[q] + t[q])
        out[on[node]] += total
        for q in range(len(t)):
            s[up, q] += s[k, q]


@kernel
def _add_shap(lo, hi, X, tiny, views, nodes, trees, quadratures, sizes, out):
    ends, ways, to_right, value, first_point, n_points = trees
    bits = X.view(views[6].dtype)
    codes = np.zeros((1, len(views[0])), bits.dtype)
    follows = np.zeros(sizes[0], np.bool_)
    g, s = np.zeros((sizes[0], sizes[1])), np.zeros((sizes[0], sizes[1]))
    for i in range(lo, hi):
        fill_codes(i, 1, X, bits, views, tiny, codes)
        for tree in range(len(n_points)):
            first, end = ends[tree], ends[tree + 1]
            rule_of_tree = quadratures[:, first_point[tree] : first_point[tree] + n_points[tree]]
            points = rule_of_tree[0], rule_of_tree[1], rule_of_tree[2]
            _carry_down(codes[0], nodes, first, end, ways, to_right, value, points, follows, g, s)
            _carry_up(first, end, ways, points, follows, s, out[i])


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TreeShap:
    """A forest with the shares of documents that its SHAP values depend on.

    Attributes
    ----------
    ways : tuple of (N,) arrays
        For each node: the split that leads to it; the node that an earlier split on the same
        feature led to, or -1; the feature; the share of documents that the split sends here; the
        product of these shares over the splits on the feature so far.
    points : (3, P) array
        Points t of the quadratures, 1 - t, and their weights.
    first_point, n_points : (T,) arrays
        Points of each tree.
    expected : float
        Mean score of the documents in the leaves.
    """

    forest: Forest
    ways: tuple[I64, I64, I64, F64, F64]
    points: F64
    first_point: I64
    n_points: I64
    expected: float

    @classmethod
    def of(cls, forest: Forest) -> TreeShap:
        """Prepare a forest."""
        n, sizes = len(forest.left), forest.sizes
        ways = (
            np.zeros(n, np.int64),
            np.full(n, -1),
            np.zeros(n, np.int64),
            np.ones(n),
            np.ones(n),
        )
        most, reached = np.zeros(0, np.int64), np.ones(n)
        if n:
            nodes = (forest.roots, forest.left, forest.right, forest.feature)
            most = _find_ways(*nodes, np.maximum(forest.cover, 0.0), ways, reached)
        n_points = (most + 1) // 2
        products = sizes * n_points
        if max(products, default=0) > _MOST_PRODUCTS or max(n_points, default=0) > _MOST_POINTS:
            raise UsageError(
                f"a tree has {sizes.max():,} nodes and up to {most.max():,} features on "
                "the way to a leaf, too many for SHAP values; use importance by permutation."
            )
        counts = np.unique(n_points)
        first = np.cumsum(counts) - counts
        first_point = first[np.searchsorted(counts, n_points)]
        quadratures = [_quadrature(count) for count in counts.tolist()]
        points = np.concatenate([np.empty((3, 0)), *quadratures], axis=1)
        expected = ordered_sum(forest.value * reached)
        return cls(forest, ways, points, first_point, n_points, expected)

    def values(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the contribution of each feature to the sum of the trees, for each row."""
        out = np.zeros((X.shape[0], self.forest.n_features))
        if isinstance(X, np.ndarray):
            self._add(X, TINY, out, n_jobs)
            return out
        step = max(1, min(_ROWS, _VALUES // X.shape[1]))
        for a in range(0, X.shape[0], step):
            self._add(self._dense(X[a : a + step]), 0.0, out[a : a + step], n_jobs)
        return out

    def _add(self, X: AnyArray, tiny: float, out: F64, n_jobs: int | None) -> None:
        forest, dense = self.forest, np.ascontiguousarray(X)
        scorer = forest.scorer(dense.dtype)
        ends = np.append(forest.roots, len(forest.left))
        to_right = forest.right[self.ways[0]] == np.arange(len(forest.left))  # not used for roots
        trees = (ends, self.ways, to_right, forest.value, self.first_point, self.n_points)
        sizes = int(forest.sizes.max(initial=1)), int(self.n_points.max(initial=0))
        more = (dense, tiny, scorer.views, scorer.trees[0], trees, self.points, sizes, out)
        map_ranges(_add_shap, row_ranges(len(dense), _RANGE), *more, n_jobs=n_jobs)

    def _dense(self, rows: Any) -> AnyArray:
        absent = np.nan if self.forest.absent_is_missing else 0.0
        dense = np.full(rows.shape, absent, rows.dtype)
        at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        dense[at, rows.indices] = rows.data
        return dense


def _quadrature(count: int) -> F64:
    """Return the points of a quadrature, their distances from 1, and their weights."""
    if not count:
        return np.empty((3, 0))
    at, weight = np.polynomial.legendre.leggauss(count)
    return np.stack([0.5 + 0.5 * at, 0.5 - 0.5 * at, 0.5 * weight])
