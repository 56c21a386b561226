"""Logistic loss on pairs of documents of different grades (RankNet).

With w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of w_i w_j log(1 + exp(-sigma (s_i - s_j)))                       (1)

(`burges2005ranknet`). With p = 1 / (1 + exp(sigma (s_i - s_j))) a pair adds -sigma w_i w_j p to the
gradient of i, +sigma w_i w_j p to that of j, and sigma^2 w_i w_j p (1 - p) to the curvature of
both, which makes the exact diagonal of the Hessian, and sigma^2 w_i w_j p (1 - p) (v_i - v_j) to
row i of the Hessian times v. ``normalize=True`` divides the loss of each query by the sum of
w_i w_j over its pairs.

LambdaRank is the same with other pair weights. The arithmetic is that of `losses.pair_sums`:
O(n^2) pairs a query, without an exponential for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import log1p_unit
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import Part, check_above_zero
from rankwright.core.team import LANES, new_floats, shared_range, wait, zero
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight
from rankwright.losses.pair_sums import (
    CURV,
    GAIN,
    GRAD,
    RANK,
    RATIO,
    ROW_CURV,
    ROW_GRAD,
    SCORE,
    SWAP,
    TILE,
    VALUE,
    WEIGHT,
    GradeBlocks,
    begin_row,
    end_row,
    load_tiles,
    n_tiles,
    place,
    set_ratio,
    tile_floats,
    tiles_size,
    total,
    unload,
)


class _Terms(NamedTuple):
    grade: F64
    w: F64
    scale: F64  # of each query
    sigma: float


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, terms, order, scratch, weight, value, grad, curv):  # type: ignore[no-untyped-def]
    grade, w, scale, sigma = terms
    tiles = new_floats(scratch, lo, 0, tiles_size(lo, hi, indptr))
    zero(tiles)
    for q in range(lo, hi):
        value[q] = 0.0
        start, n = indptr[q], indptr[q + 1] - indptr[q]
        if n == 0:
            continue
        sort_query(start, start + n, s, NO_KEY, order[0], order[1])
        ranked = order[0, start : start + n]
        wide = load_tiles(ranked, s, grade, 1.0, w, sigma, tiles)
        if weight[q] > 0.0:
            for row in range(n - 1):
                if wide:
                    set_ratio(n, row, sigma, tiles)
                _add_row(n, row, sigma, tiles)
        factor = weight[q] * scale[q]
        value[q] = factor * total(n, VALUE, tiles)
        if len(grad):
            unload(ranked, GRAD, factor * sigma, tiles, grad)
        if len(curv):
            unload(ranked, CURV, factor * sigma * sigma, tiles, curv)


@kernel
def _add_row(n, row, sigma, tiles):  # type: ignore[no-untyped-def]
    """Add the pairs of the document at rank ``row`` with all that stand below it."""
    at = place(row)
    score, grade, weight = tiles[at + SCORE], tiles[at + GAIN], tiles[at + WEIGHT]
    inverse = 1.0 / tiles[at + RATIO]
    for t in range(begin_row(row, tiles), n_tiles(n)):
        two = tiles[t * TILE : (t + 2) * TILE]
        _add_tile(row, score, grade, weight, inverse, sigma, two)
    end_row(n, row, tiles)


@kernel
def _add_tile(row, score, grade, weight, inverse, sigma, two):  # type: ignore[no-untyped-def]
    """Pair a document with the second of ``two`` tiles; running sums come from the first."""
    for lane in shared_range(0, LANES):
        other = two[TILE + GAIN + lane]
        pair = weight * two[TILE + WEIGHT + lane]
        pair = pair if two[TILE + RANK + lane] > row else 0.0
        pair = pair if grade != other else 0.0
        r = two[TILE + RATIO + lane] * inverse
        q = 1.0 / (1.0 + r)
        p = r * q
        lead = sigma * (score - two[TILE + SCORE + lane])
        step = pair * (p if grade > other else -q)
        curvature = pair * p * q
        two[TILE + GRAD + lane] += step
        two[TILE + CURV + lane] += curvature
        two[TILE + VALUE + lane] += pair * (log1p_unit(r) + (0.0 if grade > other else lead))  # (1)
        two[TILE + ROW_GRAD + lane] = two[ROW_GRAD + lane] + step
        two[TILE + ROW_CURV + lane] = two[ROW_CURV + lane] + curvature


@kernel
def _hessian(lo, hi, indptr, s, terms, order, scratch, weight, v, out):  # type: ignore[no-untyped-def]
    """Write the Hessian times v, in the order of the scores found at s; SWAP holds v."""
    grade, w, scale, sigma = terms
    tiles = new_floats(scratch, lo, 0, tiles_size(lo, hi, indptr))
    zero(tiles)
    for q in range(lo, hi):
        n = indptr[q + 1] - indptr[q]
        if n == 0:
            continue
        ranked = order[0, indptr[q] : indptr[q + 1]]
        wide = load_tiles(ranked, s, grade, 1.0, w, sigma, tiles)
        for rank in shared_range(0, n_tiles(n) * LANES):
            tiles[place(rank) + SWAP] = v[ranked[min(rank, n - 1)]]
        wait()
        if weight[q] > 0.0:
            for row in range(n - 1):
                if wide:
                    set_ratio(n, row, sigma, tiles)
                _turn_row(n, row, tiles)
        unload(ranked, GRAD, weight[q] * scale[q] * sigma * sigma, tiles, out)


@kernel
def _turn_row(n, row, tiles):  # type: ignore[no-untyped-def]
    """Add what the pairs of the document at rank ``row`` with those below it make of v."""
    at = place(row)
    grade, weight, turn = tiles[at + GAIN], tiles[at + WEIGHT], tiles[at + SWAP]
    inverse = 1.0 / tiles[at + RATIO]
    for t in range(begin_row(row, tiles), n_tiles(n)):
        two = tiles[t * TILE : (t + 2) * TILE]
        _turn_tile(row, grade, weight, turn, inverse, two)
    end_row(n, row, tiles)


@kernel
def _turn_tile(row, grade, weight, turn, inverse, two):  # type: ignore[no-untyped-def]
    """As `_add_tile`, for the Hessian; one plain loop each, so that lanes are computed at once."""
    lanes = len(two) // (2 * TILE // LANES)  # LANES, but no constant: that would be unrolled
    for lane in shared_range(0, lanes):
        other = two[TILE + GAIN + lane]
        pair = weight * two[TILE + WEIGHT + lane]
        pair = pair if two[TILE + RANK + lane] > row else 0.0
        pair = pair if grade != other else 0.0
        r = two[TILE + RATIO + lane] * inverse
        q = 1.0 / (1.0 + r)
        p = r * q
        curvature = pair * p * q
        step = curvature * (two[TILE + SWAP + lane] - turn)
        two[TILE + GRAD + lane] += step
        two[TILE + ROW_GRAD + lane] = two[ROW_GRAD + lane] + step
        two[TILE + ROW_CURV + lane] = two[ROW_CURV + lane] + curvature


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class RankNet(Part):
    """Logistic loss on every pair of documents of different grades.

    Parameters
    ----------
    sigma : float
        Steepness: how far apart two scores must be to count as decided.
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    """

    sigma: float = 1.0
    normalize: bool = False

    traits: ClassVar[Traits] = Traits(
        family="pairwise", queries=True, convex=True, curvature=True, hess_vec=True
    )

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_above_zero("ranknet's sigma", self.sigma)
        w, scale = document_weight(data), np.ones(data.n_queries)
        if self.normalize:
            blocks = GradeBlocks.of(data)
            scale = blocks.pair_share(w[blocks.rows])
        order = np.empty((2, data.n_documents), np.int64)
        args = (_Terms(data.y, w, scale, float(self.sigma)), order)
        return KernelLoss(
            _queries,
            data,
            *args,
            curvature=True,
            hessian=_hessian,
            scratch=tile_floats,
            team=True,
            n_jobs=n_jobs,
        )
