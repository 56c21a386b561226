"""Logistic loss on pairs of documents of different grades (RankNet).

With w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j log(1 + exp(-sigma (s_i - s_j)))                     (1)

(`burges2005ranknet`), where a pair counts m = min(1, g_i - g_j): 1 for whole grades, the difference
for estimated relevance. With w_i w_j for that product and p = 1 / (1 + exp(sigma (s_i - s_j))) a
pair adds -sigma w_i w_j p to the gradient of i, +sigma w_i w_j p to that of j, and sigma^2 w_i w_j
p (1 - p) to the curvature of both, which makes the exact diagonal of the Hessian, and sigma^2 w_i
w_j p (1 - p) (v_i - v_j) to row i of the Hessian times v. ``normalize=True`` divides the loss of
each query by the sum of w_i w_j over its pairs.

LambdaRank is the same with other pair weights. The arithmetic is that of `losses.pair_sums`:
O(n^2) pairs a query, without an exponential for each. On the CPU, a list of 2,048 documents or more
is summed up by `losses.score_sums`, in O(n) and to 1e-13 of the same, unless its scores times sigma
are a thousand apart or grades are less than 1 apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import log1p_exp, log1p_unit, sigmoid
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import Part, Positive, check_parameters
from rankwright.core.team import LANES, new_floats, shared_range, wait, zero
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import KernelLoss, document_weight
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
    BlockLayout,
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
from rankwright.losses.score_sums import (
    LONG,
    NODES,
    add_higher,
    add_lower,
    count_cells,
    different_grades,
    make_coefficients,
    new_cells,
    new_values,
    node_gap,
)


class _Terms(NamedTuple):
    grade: F64
    w: F64
    scale: F64  # of each query
    sigma: float
    layout: BlockLayout  # for long lists


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, terms, order, scratch, weight, value, grad, curv):
    grade, w, scale, sigma, _ = terms
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
def _add_row(n, row, sigma, tiles):
    """Add the pairs of the document at rank ``row`` with all that stand below it."""
    at = place(row)
    score, grade, weight = tiles[at + SCORE], tiles[at + GAIN], tiles[at + WEIGHT]
    inverse = 1.0 / tiles[at + RATIO]
    for t in range(begin_row(row, tiles), n_tiles(n)):
        two = tiles[t * TILE : (t + 2) * TILE]
        _add_tile(row, score, grade, weight, inverse, sigma, two)
    end_row(n, row, tiles)


@kernel
def _add_tile(row, score, grade, weight, inverse, sigma, two):
    """Pair a document with the second of ``two`` tiles; running sums come from the first."""
    for lane in shared_range(0, LANES):
        other = two[TILE + GAIN + lane]
        pair = weight * two[TILE + WEIGHT + lane]
        pair = pair if two[TILE + RANK + lane] > row else 0.0
        pair = pair * min(abs(grade - other), 1.0)
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
def _hessian(lo, hi, indptr, s, terms, order, scratch, weight, v, out):
    """Write the Hessian times v, in the order of the scores found at s; SWAP holds v."""
    grade, w, scale, sigma, _ = terms
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
def _turn_row(n, row, tiles):
    """Add what the pairs of the document at rank ``row`` with those below it make of v."""
    at = place(row)
    grade, weight, turn = tiles[at + GAIN], tiles[at + WEIGHT], tiles[at + SWAP]
    inverse = 1.0 / tiles[at + RATIO]
    for t in range(begin_row(row, tiles), n_tiles(n)):
        two = tiles[t * TILE : (t + 2) * TILE]
        _turn_tile(row, grade, weight, turn, inverse, two)
    end_row(n, row, tiles)


@kernel
def _turn_tile(row, grade, weight, turn, inverse, two):
    """As `_add_tile`, for the Hessian; one plain loop each, so that lanes are computed at once."""
    lanes = len(two) // (2 * TILE // LANES)  # LANES, but no constant: that would be unrolled
    for lane in shared_range(0, lanes):
        other = two[TILE + GAIN + lane]
        pair = weight * two[TILE + WEIGHT + lane]
        pair = pair if two[TILE + RANK + lane] > row else 0.0
        pair = pair * min(abs(grade - other), 1.0)
        r = two[TILE + RATIO + lane] * inverse
        q = 1.0 / (1.0 + r)
        p = r * q
        curvature = pair * p * q
        step = curvature * (two[TILE + SWAP + lane] - turn)
        two[TILE + GRAD + lane] += step
        two[TILE + ROW_GRAD + lane] = two[ROW_GRAD + lane] + step
        two[TILE + ROW_CURV + lane] = two[ROW_CURV + lane] + curvature


# --- kernels for long lists ------------------------------------------------------------------


@kernel
def _any_queries(lo, hi, indptr, s, terms, order, scratch, weight, value, grad, curv):
    begin = lo
    for q in range(lo, hi):
        if indptr[q + 1] - indptr[q] >= LONG and weight[q] > 0.0:
            _queries(begin, q, indptr, s, terms, order, scratch, weight, value, grad, curv)
            begin = q
            if _long_query(q, indptr, s, terms, weight, value, grad, curv):
                begin = q + 1
    _queries(begin, hi, indptr, s, terms, order, scratch, weight, value, grad, curv)


@kernel
def _long_query(q, indptr, s, terms, weight, value, grad, curv):
    """Do as `_queries`, by cells of scores; return whether that is quicker."""
    x, w, edges = _by_grade(q, indptr, s, terms)
    rows, sigma, n = terms.layout[0][indptr[q] : indptr[q + 1]], terms.sigma, len(x)
    count = count_cells(x, edges, different_grades(edges), 5)
    if count == 0:
        return False
    cells, A = new_cells(x, count), new_values(count)
    lower, higher, both = np.zeros(n), np.zeros(n), np.zeros(n)
    factor = weight[q] * terms.scale[q]
    _set_function(0, A)
    add_lower(edges, x, w, A, cells, lower)
    value[q] = 0.0
    for p in range(n):
        value[q] += factor * w[p] * lower[p]  # (1)
        lower[p] = 0.0
    if len(grad):
        _set_function(1, A)
        add_lower(edges, x, w, A, cells, lower)
        _set_function(2, A)
        add_higher(edges, x, w, A, cells, higher)
        for p in range(n):
            grad[rows[p]] = factor * sigma * w[p] * (higher[p] - lower[p])
    if len(curv):
        _set_function(3, A)
        add_lower(edges, x, w, A, cells, both)
        add_higher(edges, x, w, A, cells, both)
        for p in range(n):
            curv[rows[p]] = factor * sigma * sigma * w[p] * both[p]
    return True


@kernel
def _any_hessian(lo, hi, indptr, s, terms, order, scratch, weight, v, out):
    begin = lo
    for q in range(lo, hi):
        if indptr[q + 1] - indptr[q] >= LONG and weight[q] > 0.0:
            _hessian(begin, q, indptr, s, terms, order, scratch, weight, v, out)
            begin = q
            if _long_hessian(q, indptr, s, terms, weight, v, out):
                begin = q + 1
    _hessian(begin, hi, indptr, s, terms, order, scratch, weight, v, out)


@kernel
def _long_hessian(q, indptr, s, terms, weight, v, out):
    x, w, edges = _by_grade(q, indptr, s, terms)
    rows, sigma, n = terms.layout[0][indptr[q] : indptr[q + 1]], terms.sigma, len(x)
    count = count_cells(x, edges, different_grades(edges), 5)  # as `_long_query` has found
    if count == 0:
        return False
    cells, A, turn = new_cells(x, count), new_values(count), np.empty(n)
    for p in range(n):
        turn[p] = w[p] * v[rows[p]]
    own, others = np.zeros(n), np.zeros(n)
    _set_function(3, A)
    add_lower(edges, x, w, A, cells, own)
    add_higher(edges, x, w, A, cells, own)
    add_lower(edges, x, turn, A, cells, others)
    add_higher(edges, x, turn, A, cells, others)
    factor = weight[q] * terms.scale[q] * sigma * sigma
    for p in range(n):
        out[rows[p]] = factor * (turn[p] * own[p] - w[p] * others[p])
    return True


@kernel
def _by_grade(q, indptr, s, terms):
    """Return scores and weights of a query grade by grade, and where grades begin."""
    rows, start, of_query = terms.layout
    begin, n = indptr[q], indptr[q + 1] - indptr[q]
    x, w = np.empty(n), np.empty(n)
    for p in range(n):  # a level that all scores have would cost digits of their differences
        x[p], w[p] = terms.sigma * (s[rows[begin + p]] - s[begin]), terms.w[rows[begin + p]]
    return x, w, start[of_query[q] : of_query[q + 1] + 1] - begin


@kernel
def _set_function(number, A):
    """Set log(1 + exp(x)), its derivative, that of the negative, or the second derivative."""
    far = len(A) // 2
    for k in range(len(A)):
        for a in range(NODES):
            for b in range(NODES):
                gap = node_gap(k - far, a, b)
                if number == 0:
                    A[k, a, b] = log1p_exp(gap)
                elif number == 1:
                    A[k, a, b] = sigmoid(gap)
                elif number == 2:
                    A[k, a, b] = sigmoid(-gap)
                else:
                    A[k, a, b] = sigmoid(gap) * sigmoid(-gap)
    make_coefficients(A)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class RankNet(Part):
    """Logistic loss on every pair of documents of different grades.

    A pair of grades less than 1 apart, as of relevance estimated from clicks, counts as much as
    they differ.

    Parameters
    ----------
    sigma : float
        Steepness: how far apart two scores must be to count as decided.
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.RankNet(sigma=2.0), model="trees")
    Ranker(loss=RankNet(sigma=2.0), model='trees')
    """

    sigma: Positive = 1.0
    normalize: bool = False

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        w, scale = document_weight(data), np.ones(data.n_queries)
        long = bool(data.sizes.max(initial=0) >= LONG)
        layout = BlockLayout(*(np.empty(0, np.int64),) * 3)
        if self.normalize or long:
            blocks = GradeBlocks.of(data)
            long = long and not blocks.fractional
            layout = blocks.layout if long else layout
            scale = blocks.pair_share(w[blocks.rows]) if self.normalize else scale
        order = np.empty((2, data.n_documents), np.int64)
        args = (_Terms(data.y, w, scale, float(self.sigma), layout), order)
        return KernelLoss(
            _queries,
            data,
            *args,
            curvature=True,
            hessian=_hessian,
            scratch=tile_floats,
            team=True,
            cpu_kernel=_any_queries if long else None,
            cpu_hessian=_any_hessian if long else None,
            n_jobs=n_jobs,
        )
