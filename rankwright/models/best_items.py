"""The best items of many users: blocks of a matrix product, each cut down to the best of a row.

The score of an item is u'v + b, u being the vector of the user. The product of a block of users
with all items is made by BLAS in float32, from vectors that are scaled to length 1 at the most:

    p = (u, 1) / |(u, 1)|,    z = (v, b) / max |(v, b)|                                         (1)

so that no product is wrong by more than

    slack = 2 (n_factors + 8) 2^-24                                                             (2)

whatever the order in which BLAS adds. Items within twice this of the n-th best are computed again
in float64 and put in order, so the result is that of float64: the same bytes for any block, BLAS
and number of threads. Equal scores stay in the order of the columns.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.products import one_blas_thread
from rankwright.core.types import F64, I64, AnyArray

_BLOCK_BYTES = 4 << 20
_CHUNK = 64  # scores that are compared at once; most chunks have nothing to keep

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _sift(heap, size, value):  # type: ignore[no-untyped-def]
    """Put ``value`` in the place of the least of ``size`` numbers, which stands first."""
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = value


@kernel
def _nth_best(row, n, heap):  # type: ignore[no-untyped-def]
    """Return the n-th largest number of ``row``."""
    heap[:n] = -np.inf
    for begin in range(0, len(row), _CHUNK):
        chunk = row[begin : begin + _CHUNK]
        least, above = heap[0], 0
        for j in range(len(chunk)):
            above += chunk[j] > least
        if above:
            for j in range(len(chunk)):
                if chunk[j] > heap[0]:
                    _sift(heap, n, chunk[j])
    return heap[0]


@kernel
def _near_best(row, least, found):  # type: ignore[no-untyped-def]
    """Write the places of the numbers from ``least`` on, -inf left out; return how many."""
    count = 0
    for begin in range(0, len(row), _CHUNK):
        chunk = row[begin : begin + _CHUNK]
        above = 0
        for j in range(len(chunk)):
            above += chunk[j] >= least
        if above:
            for j in range(len(chunk)):
                if chunk[j] >= least and chunk[j] > -np.inf:
                    found[count] = begin + j
                    count += 1
    return count


@kernel
def _best_of_block(  # type: ignore[no-untyped-def]
    first, block, slack, user, U, level, V, b, rated_begin, rated, place, n, item, score
):
    """Write the ``n`` best items of the users from ``first`` on, whose products are ``block``."""
    m, n_factors = block.shape[1], V.shape[1]
    heap = np.empty(n, block.dtype)
    found, order, spare, own = (
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m),
    )
    for i in range(len(block)):
        row, q = block[i], user[first + i]
        if q >= 0 and len(place):
            for j in range(rated_begin[q], rated_begin[q + 1]):
                if place[rated[j]] >= 0:
                    row[place[rated[j]]] = -np.inf
        count = _near_best(row, _nth_best(row, n, heap) - slack, found)
        for j in range(count):
            k = found[j]
            total = 0.0
            if q >= 0:
                for f in range(n_factors):
                    total += U[q, f] * V[k, f]
            own[j] = total + b[k]
        sort_query(0, count, own, NO_KEY, order, spare)
        for j in range(min(n, count)):
            item[first + i, j] = found[order[j]]
            score[first + i, j] = own[order[j]] + (level[q] if q >= 0 else 0.0)


# --- API -------------------------------------------------------------------------------------


def best_items(
    user: I64,
    n: int,
    vectors: tuple[F64, F64, F64, F64],
    *,
    columns: I64 | None = None,
    rated: tuple[I64, I64] | None = None,
    n_jobs: int | None = None,
) -> tuple[I64, F64]:
    """Return the columns of the best ``n`` items of each user, best first, and their scores.

    Both have a row for each user. Where fewer items are left the column is -1 and the score -inf.

    Parameters
    ----------
    user : (m,) int64
        The rows of the users; below 0 for users without a vector, who get the biases alone.
    n : int
    vectors
        U, levels, V and b.
    columns : ascending int64
        The items to choose from; None: all.
    rated
        Where the items of each row of U begin, and these: items to leave out.
    """
    U, level, V, b = vectors
    place: AnyArray = np.empty(0, np.int32)
    if rated is not None:
        place = np.arange(len(b), dtype=np.int32)
    if columns is not None:
        if rated is not None:
            place = np.full(len(b), -1, np.int32)
            place[columns] = np.arange(len(columns))
        V, b = V[columns], b[columns]
    n = min(n, len(b))
    item, score = np.full((len(user), n), -1, np.int64), np.full((len(user), n), -np.inf)
    if item.size == 0:
        return item, score
    items32 = _unit(np.column_stack([V, b]), whole=True)
    slack = 4.0 * (V.shape[1] + 8) * 2.0**-24  # twice (2)
    begin, rows = rated if rated is not None else (np.empty(0, np.int64), np.empty(0, np.int64))
    args = user, U, level, np.ascontiguousarray(V), b, begin, rows, place, n, item, score

    def block(lo: int, hi: int) -> None:
        known = user[lo:hi] >= 0
        own = np.ones((hi - lo, U.shape[1] + 1))
        own[:, :-1] = np.where(known[:, None], U[user[lo:hi]], 0.0)
        products = _unit(own) @ items32.T
        _best_of_block(lo, products, np.float32(slack), *args)

    with one_blas_thread():
        bounds = row_ranges(len(user), max(1, _BLOCK_BYTES // (4 * len(b))))
        map_ranges(block, bounds, n_jobs=n_jobs)
    if columns is not None:
        item = np.where(item >= 0, columns[item], -1)
    return item, score


def _unit(vectors: F64, *, whole: bool = False) -> AnyArray:
    """Return (1) in float32: each vector at length 1, or all divided by the longest."""
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    if whole:
        length = length.max(initial=0.0)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0), np.float32)
