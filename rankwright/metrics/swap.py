"""What a metric changes by when two documents of a ranking trade places, in O(1) a pair.

`SwapForm` holds a metric on one data set: gains by row, weights by rank, a cut-off and a scale by
query. For one query, with ``b`` the gains in rank order, a kernel (LambdaRank's, say) calls

    prepare(kind, b, cut, u, v)              once, with scratch ``u`` and ``v`` of length n + 1
    change(kind, i, j, b, a, cut, u, v)      for ranks i < j from 0: new value minus old value

and multiplies with the scale of the query. The rules by kind, with R_r the gain at rank r, C_r the
number of relevant documents up to r, and ranks from 1:

    linear   (b_j - b_i) (a_i - a_j)                                                             (1)
    map      sum_r rel_r C_r / r: the moved document's own term, and +-1/r for every relevant
             document between i and j                                                            (2)
    mrr      1/first: only the first two relevant ranks matter                                   (3)
    err      terms between i and j are multiplied by (1 - R_j) / (1 - R_i), those after j stay   (4)

`mean_products` serves means over the orders of ties: E_j, the mean product of 1 - R over all
subsets of j of n documents, comes from those of n - 1 documents and the n-th,

    E_j = ((n - j) E_j + j (1 - R_n) E_{j - 1}) / n                                              (5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64
from rankwright.errors import IncompatibleError

if TYPE_CHECKING:
    from rankwright.metrics.base import Metric
    from rankwright.metrics.ranked import Judged

LINEAR_SWAP, MAP_SWAP, MRR_SWAP, ERR_SWAP = range(4)

# --- kernels ---------------------------------------------------------------------------------


@kernel
def prepare(kind, b, cut, u, v):  # type: ignore[no-untyped-def]
    """Fill the running sums of one query that `change` looks up."""
    if kind == MAP_SWAP:
        u[0], v[0] = 0.0, 0.0
        for r in range(len(b)):
            u[r + 1] = u[r] + b[r]
            v[r + 1] = v[r] + (b[r] / (r + 1) if r < cut else 0.0)
    elif kind == ERR_SWAP:
        u[0], v[0] = 1.0, 0.0
        for r in range(len(b)):
            u[r + 1] = u[r] * (1.0 - b[r])
            v[r + 1] = v[r] + (u[r] * b[r] / (r + 1) if r < cut else 0.0)
    elif kind == MRR_SWAP:
        u[0] = v[0] = len(b)
        for r in range(len(b) - 1, -1, -1):
            if b[r] > 0.0:
                v[0], u[0] = u[0], r


@kernel
def change(kind, i, j, b, a, cut, u, v):  # type: ignore[no-untyped-def]
    """Return new minus old value, before scaling, when ranks i < j (from 0) trade documents."""
    if b[i] == b[j] or i >= cut:
        return 0.0
    if kind == MAP_SWAP:
        return _map_change(i, j, b, cut, u, v)
    if kind == MRR_SWAP:
        return _mrr_change(i, j, b, cut, u, v)
    if kind == ERR_SWAP:
        return _err_change(i, j, b, cut, u, v)
    return (b[j] - b[i]) * (a[i] - (a[j] if j < cut else 0.0))  # (1)


@kernel
def changes_below(kind, i, b, cut, u, v, out):  # type: ignore[no-untyped-def]
    """Write `change` of rank i with each rank j > i to ``out[j]``, for map, mrr and err.

    One call a row: passing the arrays costs more than a pair does.
    """
    for j in range(i + 1, len(b)):
        out[j] = 0.0
    if i < cut:
        for j in range(i + 1, len(b)):
            if b[i] != b[j]:
                if kind == MAP_SWAP:
                    out[j] = _map_change(i, j, b, cut, u, v)
                elif kind == MRR_SWAP:
                    out[j] = _mrr_change(i, j, b, cut, u, v)
                else:
                    out[j] = _err_change(i, j, b, cut, u, v)


@kernel
def _map_change(i, j, b, cut, u, v):  # type: ignore[no-untyped-def]
    between = v[j] - v[i + 1]
    at_j = u[j + 1] / (j + 1) if j < cut else 0.0
    if b[i] > b[j]:
        return at_j - u[i + 1] / (i + 1) - between  # (2), moving down
    return (u[i + 1] + 1.0) / (i + 1) + between - at_j


@kernel
def _mrr_change(i, j, b, cut, u, v):  # type: ignore[no-untyped-def]
    first, second = u[0], v[0]
    new = first
    if b[i] > b[j] and i == first:
        new = min(j, second)
    elif b[j] > b[i]:
        new = min(first, i)
    before = 1.0 / (first + 1) if first < cut else 0.0
    return (1.0 / (new + 1) if new < cut else 0.0) - before  # (3)


@kernel
def _err_change(i, j, b, cut, u, v):  # type: ignore[no-untyped-def]
    direct = u[i] * (b[j] - b[i]) / (i + 1)
    if abs(1.0 - b[i]) > 1e-6:
        ratio = (1.0 - b[j]) / (1.0 - b[i])
        within = (v[j] - v[i + 1]) * (ratio - 1.0)  # (4)
        at_j = (u[j] * ratio * b[i] - u[j] * b[j]) / (j + 1) if j < cut else 0.0
        return direct + within + at_j
    # No reader gets past a document that satisfies for sure, so sums below it are added anew.
    alive = u[i]
    within = 0.0
    for r in range(i + 1, min(j, cut)):
        within += alive * ((1.0 - b[j]) - (1.0 - b[i])) * b[r] / (r + 1)
        alive *= 1.0 - b[r]
    if j < cut:
        within += alive * ((1.0 - b[j]) * b[i] - (1.0 - b[i]) * b[j]) / (j + 1)
    return direct + within


@kernel
def mean_products(stop, depth):  # type: ignore[no-untyped-def]
    """Return the mean product of 1 - stop over all subsets of 0, 1, ..., depth documents (5)."""
    products = np.zeros(depth + 1)
    products[0] = 1.0
    for n in range(1, len(stop) + 1):
        for j in range(min(n, depth), 0, -1):
            products[j] += j * ((1.0 - stop[n - 1]) * products[j - 1] - products[j]) / n
    return products


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SwapForm:
    """A metric on one data set, as the kernels above take it.

    Attributes
    ----------
    kind : int
        ``LINEAR_SWAP``, ``MAP_SWAP``, ``MRR_SWAP`` or ``ERR_SWAP``.
    gain : (n,) array
        Gain of each row of the data.
    weight : array
        Weight of each rank, from the first; past the cut-off it counts as 0.
    cut : (Q,) array
        How many ranks of each query count.
    scale : (Q,) array
        What changes are multiplied by; 0 where there is nothing to find.
    """

    kind: int
    gain: F64
    weight: F64
    cut: I64
    scale: F64

    @classmethod
    def of(
        cls,
        metric: Metric,
        judged: Judged,
        kind: int,
        gain: F64,
        weight: F64,
        divisor: F64,
    ) -> SwapForm:
        """Build the form of ``metric``, whose sums are divided by ``divisor``."""
        if metric.max_per_group is not None:
            raise IncompatibleError(
                f"{metric!r} depends on which documents of a group stay, so a swap of two has no "
                "value of its own; take it without max_per_group."
            )
        nothing = metric.nothing_to_find(judged) | (divisor == 0)
        scale = np.where(nothing, 0.0, 1.0 / np.where(nothing, 1.0, divisor))
        return cls(kind, gain, weight, metric.cut(judged), scale)
