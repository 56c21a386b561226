"""Logistic pairs of one query, eight at a time: the arithmetic of RankNet and LambdaRank.

Documents are sorted by score, so a document a stands above a document b where s_a >= s_b, and

    r = exp(-sigma (s_a - s_b)) <= 1,     q = 1 / (1 + r),     p = r q                           (1)

are a quotient of exponentials computed once per document, the probability that a is the better of
the two, and that b is. No pair costs an exponential, and none overflows.

They lie in **tiles** of `LANES` documents, field by field, all in one array: tile 0 is empty, the
document of rank k is lane k % LANES of tile k // LANES + 1. The distances between fields are
constants, so the compiler sees that nothing overlaps and computes the lanes of a tile at once. A
loss walks the ranking row by row: `begin_row`, its own loop over the tiles below, `end_row`.
"""

from __future__ import annotations

import math

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.queries import longest

LANES = 8
(
    RANK,  # from 0; the places that fill up the last tile go on counting, with weight 0
    SCORE,
    RATIO,  # exp(sigma (score - a reference score))
    GAIN,  # larger for the better document
    WEIGHT,
    DISCOUNT,  # what the rank is worth
    SWAP,  # what a swap with the document of the current row would change
    GRAD,
    CURV,
    VALUE,
    SIZE,  # sum of absolute gradients of pairs
    ROW_GRAD,  # running sums over the tiles of the current row
    ROW_CURV,
) = range(0, 13 * LANES, LANES)
TILE = 13 * LANES
_WIDE = 600.0  # exp(-600) and its inverse are both finite

# --- kernels ---------------------------------------------------------------------------------


@kernel
def n_tiles(n):  # type: ignore[no-untyped-def]
    """Return how many tiles hold n documents."""
    return (n + LANES - 1) // LANES


@kernel
def place(rank):  # type: ignore[no-untyped-def]
    """Return where the fields of the document at ``rank`` are counted from."""
    return (rank // LANES + 1) * TILE + rank % LANES


@kernel
def new_tiles(lo, hi, indptr):  # type: ignore[no-untyped-def]
    """Return tiles for the longest of the queries lo:hi."""
    return np.zeros((n_tiles(longest(lo, hi, indptr)) + 1) * TILE)


@kernel
def load_tiles(ranked, s, gain, scale, w, sigma, tiles):  # type: ignore[no-untyped-def]
    """Lay out the rows ``ranked``, best score first, and clear the sums.

    Returns whether the scores spread too wide for one reference; rows then call `set_ratio`.
    """
    n = len(ranked)
    best = s[ranked[0]]
    wide = sigma * (best - s[ranked[n - 1]]) > _WIDE
    for rank in range(n_tiles(n) * LANES):
        at = place(rank)
        i = ranked[min(rank, n - 1)]
        tiles[at + RANK] = rank
        tiles[at + SCORE] = s[i]
        tiles[at + RATIO] = 1.0 if wide else math.exp(sigma * (s[i] - best))
        tiles[at + GAIN] = gain[i] * scale
        tiles[at + WEIGHT] = w[i] if rank < n else 0.0
        tiles[at + GRAD] = tiles[at + CURV] = tiles[at + VALUE] = tiles[at + SIZE] = 0.0
    return wide


@kernel
def set_ratio(n, row, sigma, tiles):  # type: ignore[no-untyped-def]
    """Make the score at rank ``row`` the reference of those below it."""
    score = tiles[place(row) + SCORE]
    for rank in range(row, n_tiles(n) * LANES):
        at = place(rank)
        tiles[at + RATIO] = math.exp(sigma * (tiles[at + SCORE] - score))


@kernel
def begin_row(row, tiles):  # type: ignore[no-untyped-def]
    """Start the running sums of a row; return the number of the first tile below it."""
    first = (row + 1) // LANES
    for at in range(first * TILE, first * TILE + LANES):
        tiles[at + ROW_GRAD] = tiles[at + ROW_CURV] = 0.0
    return first


@kernel
def end_row(n, row, tiles):  # type: ignore[no-untyped-def]
    """Give the document at rank ``row`` its side of the pairs."""
    last = n_tiles(n) * TILE
    at = place(row)
    tiles[at + GRAD] -= _lane_sum(last + ROW_GRAD, tiles)
    tiles[at + CURV] += _lane_sum(last + ROW_CURV, tiles)


@kernel
def _lane_sum(at, tiles):  # type: ignore[no-untyped-def]
    found = 0.0
    for lane in range(LANES):
        found += tiles[at + lane]
    return found


@kernel
def total(n, field, tiles):  # type: ignore[no-untyped-def]
    """Return the sum of a field over all documents."""
    found = 0.0
    for t in range(1, n_tiles(n) + 1):
        found += _lane_sum(t * TILE + field, tiles)
    return found


@kernel
def unload(ranked, field, scale, tiles, out):  # type: ignore[no-untyped-def]
    """Write a field, scaled, to the rows it belongs to."""
    for rank in range(len(ranked)):
        out[ranked[rank]] = scale * tiles[place(rank) + field]
