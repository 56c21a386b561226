"""The items with the highest scores for each of many users.

The score of an item is u'v + b for a user with vector u. The scores of a block of users are first
computed in float32 by one matrix product of vectors scaled to a length of at most 1,

    p = (u, 1) / |(u, 1)|,    z = (v, b) / max |(v, b)|                                         (1)

The error of a product is at most

    slack = 2 (n_factors + 8) 2^-24                                                             (2)

for any order of the additions in BLAS. Items within twice this error of the n-th best are scored
again in float64 and sorted, so that the result does not depend on the block, BLAS or the number of
threads. Items with equal scores keep the order of their columns.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64, AnyArray

_BLOCK_BYTES = 4 << 20
_CHUNKS = 16  # for each of the n items


def best_items(
    user: I64,
    n: int,
    vectors: tuple[F64, F64, F64, F64],
    *,
    columns: I64 | None = None,
    rated: tuple[I64, I64] | None = None,
    n_jobs: int | None = None,
) -> tuple[I64, F64]:
    """Return the columns of the ``n`` best items of each user, best first, and their scores.

    Both arrays have a row for each user. If there are fewer items, the row ends with the column
    -1 and the score -inf.

    Parameters
    ----------
    user : (m,) int64
        The row of each user in U; below 0 for users without a vector, whose scores are the biases.
    n : int
    vectors
        U, levels, V and b.
    columns : ascending int64, optional
        The items to choose from; by default all.
    rated : offsets and columns, optional
        The items of each row of U, which are not chosen.
    """
    U, level, V, b = vectors
    if rated is not None:
        begin, item = rated
        is_rated = sparse.csr_array((np.ones(len(item), bool), item, begin), (len(U), len(V)))
    columns = np.arange(len(b)) if columns is None else columns
    position = np.full(len(b), -1)
    position[columns] = np.arange(len(columns))
    V, b = V[columns], b[columns]
    n = min(n, len(columns))
    best, scores = np.full((len(user), n), -1, np.int64), np.full((len(user), n), -np.inf)
    if best.size == 0:
        return best, scores
    items = _scaled(np.column_stack([V, b]), together=True)
    chunks = np.arange(0, len(columns), max(1, len(columns) // (_CHUNKS * n)))
    margin = np.float32(4.0 * (V.shape[1] + 8) * 2.0**-24)  # twice (2)

    def fill(lo: int, hi: int) -> None:
        users = user[lo:hi]
        is_known = users >= 0
        factors = np.where(is_known[:, None], U[users], 0.0)
        products = _scaled(np.column_stack([factors, np.ones(hi - lo)])) @ items.T
        if rated is not None:
            known, rated_item = is_rated[users[is_known]].nonzero()
            choosable = position[rated_item] >= 0
            rated_row = np.flatnonzero(is_known)[known[choosable]]
            products[rated_row, position[rated_item[choosable]]] = -np.inf
        # The n-th highest maximum of disjoint chunks is a lower bound of the n-th highest score.
        maxima = np.maximum.reduceat(products, chunks, axis=1)
        bound = np.partition(maxima, len(chunks) - n, axis=1)[:, [len(chunks) - n]]
        is_near = products >= np.maximum(bound - margin, np.float32(-2.0))
        row, item = np.divmod(np.flatnonzero(is_near), len(columns))
        exact = np.zeros(len(row))
        for f in range(V.shape[1]):  # BLAS and einsum may add in an order that depends on the block
            exact += factors[row, f] * V[item, f]
        exact += b[item]
        order = np.lexsort((item, -exact, row))
        row, item, exact = row[order], item[order], exact[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        is_best = rank < n
        row, item, exact, rank = row[is_best], item[is_best], exact[is_best], rank[is_best]
        best[lo + row, rank] = columns[item]
        scores[lo + row, rank] = exact + np.where(is_known, level[users], 0.0)[row]

    with one_blas_thread():
        bounds = row_ranges(len(user), max(1, _BLOCK_BYTES // (4 * len(columns))))
        map_ranges(fill, bounds, n_jobs=n_jobs)
    return best, scores


def _scaled(vectors: F64, *, together: bool = False) -> AnyArray:
    """Return (1) in float32: vectors of length 1, or ``together`` divided by the longest."""
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    if together:
        length = length.max(initial=0.0)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0), np.float32)
