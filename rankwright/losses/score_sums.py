"""Sums over the pairs of documents of different grades, over points that represent the documents.

The losses on pairs are sums over grades a above b, and a document i of a and j of b, of

    w_i w_j m f(x_j - x_i)                                                                      (1)

with weights w, scores x and m = min(1, a - b). `load_points` writes the points of each query grade
by grade, best first; the loss adds the pairs of points; `unload_points` writes the gradient and the
curvature of the documents. In short lists the points are the documents.

In lists of 2,048 documents or more the points of a large grade are nodes instead. The scores are
divided into cells no wider than 2. The functions f of the losses have no singularity closer to the
real line than the logistic function, at +-i pi, so that in each cell f is a polynomial of x to
1e-15 of its size: interpolated at 20 Chebyshev nodes z_k, with Lagrange's polynomials l_k,

    sum over j of w_j f(x_j - x) = sum over k of W_k f(z_k - x),   W_k = sum_j w_j l_k(x_j)      (2)
    F(x_j) = sum over k of l_k(x_j) F(z_k)                                                      (3)

where (3) is for the derivatives by document. The number of nodes depends only on the spread of the
scores. Documents with equal scores get equal sums.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.team import shared_range, wait
from rankwright.core.types import F64, I64
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.pair_sums import GradeBlocks, score_range

LONG = 2_048
"""Number of documents from which large grades become nodes."""
NODES = 20
_CELL = 2.0  # largest width of a cell
_WORTHWHILE = 200  # pairs per document from which nodes take less time than pairs
_FAR = 600.0  # exp(600) and its inverse are finite
_ANGLES = (np.arange(NODES) + 0.5) * np.pi / NODES
_NODES = np.cos(_ANGLES)
_FACTORS = np.where(np.arange(NODES) % 2, -1.0, 1.0) * np.sin(_ANGLES)


class PairWork(NamedTuple):
    """Numbers of each point."""

    x: F64  # score
    weight: F64
    grade: F64
    lead: F64  # exp(x - middle)
    gradient: F64  # for weight 1
    curvature: F64


class PairPoints(NamedTuple):
    """The documents of each query by grade, and work arrays for the points.

    Kernels take the fields before they loop over queries: Numba counts references to arrays, which
    takes more time than the pairs of a short list.
    """

    rows: I64  # of each place, as in `GradeBlocks`
    start: I64
    of_query: I64
    place_grade: F64  # of each place
    w: F64
    edges: I64  # the points of grade b of query q are edges[b + q]:edges[b + q + 1]
    step: I64  # of each query; see `set_leads`
    cells: I64  # number of cells of each query; 0 if its points are documents
    low: F64  # lowest score of each query
    width: F64  # of a cell
    middle: F64  # the x with lead 1 in each query
    work: PairWork

    @classmethod
    def of(cls, data: RankingData) -> PairPoints:
        """Return the points of the documents of ``data``."""
        blocks = GradeBlocks.of(data)
        edges = np.empty(len(blocks.start) + data.n_queries, np.int64)
        step, cells = np.empty((2, data.n_queries), np.int64)
        low, width, middle = np.empty((3, data.n_queries))
        w = document_weight(data)[blocks.rows]
        work = PairWork(*np.empty((6, data.n_documents)))
        return cls(
            *blocks.layout, blocks.place_grade(), w, edges, step, cells, low, width, middle, work
        )


# --- kernels -----------------------------------------------------------------------------------


@kernel
def load_points(queries, indptr, s, steepness, points):
    """Write the points of the queries, whose x are their scores times ``steepness``."""
    rows, start, of_query, place_grade, w, edges, step, cells, lowest, width, middle, _ = points
    x, weight, grade, lead, gradient, curvature = points.work
    for q in queries:
        begin, end = indptr[q], indptr[q + 1]
        first, last = of_query[q], of_query[q + 1]
        low, high = score_range(begin, end, s, rows)
        spread = steepness * (high - low)
        cells[q], lowest[q], step[q] = 0, low, 1
        if end - begin >= LONG and spread * NODES < _CELL * (end - begin):
            cells[q] = _count_cells(first, last, start, spread, s, rows)
        if cells[q] > 0:
            width[q] = max(spread / cells[q], 1e-9)
            end = _load_nodes(q, s, steepness, points)
        else:
            for b in range(first, last + 1):
                edges[b + q] = start[b]
            for p in shared_range(begin, end):
                x[p] = steepness * (s[rows[p]] - low)
                weight[p], grade[p] = w[p], place_grade[p]
                gradient[p] = curvature[p] = 0.0
        wait()
        if spread <= _FAR:
            step[q], middle[q] = end - begin + 1, 0.5 * spread
            for p in shared_range(begin, end):
                lead[p] = math.exp(x[p] - middle[q])
        wait()


@kernel
def set_leads(i, below, end, step, x, lead):
    """Write ``lead`` of the points below:end with point i as reference, if the step is 1.

    That is, if the scores of the query differ too much for one reference. Else the step is more
    than the number of points.
    """
    if step == 1:
        lead[i] = 1.0
        for j in shared_range(below, end):
            lead[j] = math.exp(min(max(x[j] - x[i], -0.5 * _FAR), 0.5 * _FAR))
        wait()


@kernel
def unload_points(queries, indptr, s, steepness, points, grad, curv):
    """Write the gradient and the curvature of the documents of the queries."""
    rows, cells, w = points.rows, points.cells, points.w
    gradient, curvature = points.work.gradient, points.work.curvature
    wait()
    for q in queries:
        if cells[q] > 0:
            _unload_nodes(q, s, steepness, points, grad, curv)
            continue
        for p in shared_range(indptr[q], indptr[q + 1]):
            share = steepness * w[p]
            grad[rows[p]] = share * gradient[p]
            curv[rows[p]] = share * steepness * curvature[p]
    wait()


# --- kernels for long lists --------------------------------------------------------------------


@kernel
def _count_cells(first, last, start, spread, s, rows):
    """Return the number of cells of a query with the blocks first:last.

    It is 0 if the query has few pairs, or a score that is NaN.
    """
    n, pairs = start[last] - start[first], 0
    for p in range(start[first], start[last]):
        if s[rows[p]] != s[rows[p]]:
            return 0
    for b in range(first, last):
        pairs += (start[b + 1] - start[b]) * (start[last] - start[b + 1])
    return int(spread / _CELL) + 1 if pairs > _WORTHWHILE * n else 0


@kernel
def _load_nodes(q, s, steepness, points):
    """Write nodes for the grades of query q that have more documents; return the last point."""
    start, x, weight = points.start, points.work.x, points.work.weight
    low, width, nodes = points.low[q], points.width[q], NODES * points.cells[q]
    at = start[points.of_query[q]]
    for b in range(points.of_query[q], points.of_query[q + 1]):
        points.edges[b + q] = at
        n = min(nodes, start[b + 1] - start[b])
        if n == nodes:
            for k in shared_range(0, n):
                x[at + k] = width * (k // NODES + 0.5 + 0.5 * _NODES[k % NODES])
                weight[at + k] = 0.0
            wait()
            for p in range(start[b], start[b + 1]):
                cell, u, total = _locate(q, s[points.rows[p]], steepness, points)
                for k in shared_range(0, NODES):
                    weight[at + cell * NODES + k] += points.w[p] * _factor(u, k) / total  # (2)
        else:
            for k in shared_range(0, n):
                x[at + k] = steepness * (s[points.rows[start[b] + k]] - low)
                weight[at + k] = points.w[start[b] + k]
        for k in shared_range(at, at + n):
            points.work.grade[k] = points.place_grade[start[b]]
            points.work.gradient[k] = points.work.curvature[k] = 0.0
        at += n
    points.edges[points.of_query[q + 1] + q] = at
    return at


@kernel
def _unload_nodes(q, s, steepness, points, grad, curv):
    """Write gradient and curvature of the documents of query q, some by (3)."""
    start, rows = points.start, points.rows
    gradient, curvature = points.work.gradient, points.work.curvature
    for b in range(points.of_query[q], points.of_query[q + 1]):
        at, n = points.edges[b + q], points.edges[b + q + 1] - points.edges[b + q]
        for p in shared_range(start[b], start[b + 1]):
            slope = bend = 0.0
            if n == NODES * points.cells[q]:
                cell, u, total = _locate(q, s[rows[p]], steepness, points)
                for k in range(NODES):
                    slope += _factor(u, k) / total * gradient[at + cell * NODES + k]
                    bend += _factor(u, k) / total * curvature[at + cell * NODES + k]
            else:
                slope, bend = gradient[at + p - start[b]], curvature[at + p - start[b]]
            share = steepness * points.w[p]
            grad[rows[p]], curv[rows[p]] = share * slope, share * steepness * bend


@kernel
def _locate(q, score, steepness, points):
    """Return the cell of a score, its place in it from -1 to 1, and the sum of all `_factor`."""
    x = steepness * (score - points.low[q]) / points.width[q]
    cell = min(int(x), points.cells[q] - 1)
    u, total = 2.0 * (x - cell) - 1.0, 0.0
    for k in range(NODES):
        total += _factor(u, k)
    return cell, u, total


@kernel
def _factor(u, k):
    """Return a number that l_k(u) is proportional to (the barycentric formula)."""
    gap = u - _NODES[k]
    return _FACTORS[k] / (gap if gap != 0.0 else 1e-300)


# --- API ---------------------------------------------------------------------------------------


def pair_weight(data: RankingData, *, normalize: bool) -> F64:
    """Return the weight of each query, divided by the weight of its pairs if ``normalize``."""
    weight = order_weight(data)
    if normalize:
        blocks = GradeBlocks.of(data)
        weight *= blocks.pair_share(document_weight(data)[blocks.rows])
    return weight
