"""Sums over pairs of a smooth function of the difference of scores, in O(n) for long lists.

For a function f, sources j with weights w_j and targets i, all in one query,

    F_i = sum over j of w_j f(x_j - x_i)                                                        (1)

Scores are sorted into cells of width 1. A function whose singular points lie as far from the real
line as those of the logistic function, at +-i pi, is on each two cells a polynomial of the places u
and v in them, from -1 to 1, to 1e-15 of its size: interpolated at 16 Chebyshev nodes in each,

    f(x_j - x_i) = sum over a, b of A_ab T_a(v_i) T_b(u_j)                                      (2)

where A depends on the distance of the two cells alone. So the moments M_b = sum of w_j T_b(u_j) of
each cell give its sources, and what they add up to at a target is a polynomial of its place: 16
numbers for each document, whatever their number. That is the fast multipole method in one
dimension without its tree. Equal scores get equal sums, and sums do not depend on threads.

A loss writes f at the nodes (`node_gap`), `make_coefficients` turns that into A;
`add_all`, `add_lower` and `add_higher` do the rest. `count_cells` says which lists are worth it.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import inline_kernel, kernel

NODES = 16
LONG = 2048
"""Lists below are added up pair by pair."""
_MOST_CELLS = 1024
_PAIR = 4  # what a pair costs, counted in products of (2)

_ANGLES = (np.arange(NODES) + 0.5) * np.pi / NODES
_POINTS = np.cos(_ANGLES)
_TO_COEFFICIENTS = np.cos(np.outer(np.arange(NODES), _ANGLES)) * 2.0 / NODES
_TO_COEFFICIENTS[0] /= 2.0

# --- kernels ---------------------------------------------------------------------------------


@kernel
def count_cells(x, edges, pairs, functions):
    """Return the cells of the scores x of a query, 0 where so many pairs are quicker one by one.

    ``edges`` are the places where sets of targets begin, and where the last one ends.
    """
    n = len(x)
    if n < LONG:
        return 0
    low = high = x[0]
    for i in range(n):
        if not abs(x[i]) < np.inf:
            return 0
        low, high = min(low, x[i]), max(high, x[i])
    if high - low >= _MOST_CELLS:
        return 0
    cells = int(high - low) + 1
    products = 4.0 * cells * NODES
    for b in range(len(edges) - 1):
        products += float(min(edges[b + 1] - edges[b], cells)) * cells
    products = functions * NODES * (products * NODES + 4.0 * n)
    return cells if products < _PAIR * pairs else 0


@kernel
def different_grades(edges):
    """Return the number of pairs of documents of different sets."""
    n = float(edges[-1])
    pairs = n * n
    for b in range(len(edges) - 1):
        size = float(edges[b + 1] - edges[b])
        pairs -= size * size
    return 0.5 * pairs


@kernel
def new_cells(x, cells):
    """Return where the first cell begins, moments, sums by cell, and which cells have sums."""
    low = x[0]
    for i in range(len(x)):
        low = min(low, x[i])
    return low, np.zeros((cells, NODES)), np.empty((cells, NODES)), np.zeros(cells, np.bool_)


@inline_kernel
def new_values(cells):
    """Return room for f at the nodes, by distance + cells - 1, a and b."""
    return np.empty((2 * cells - 1, NODES, NODES))


@inline_kernel
def node_gap(distance, a, b):
    """Return source less target at nodes b and a of two cells, the source's ``distance`` above."""
    return distance + 0.5 * (_POINTS[b] - _POINTS[a])


@kernel
def make_coefficients(values):
    """Turn f at the nodes into A of (2), in place."""
    spare = np.empty((NODES, NODES))
    for k in range(len(values)):
        for a in range(NODES):
            for b in range(NODES):
                total = 0.0
                for c in range(NODES):
                    total += _TO_COEFFICIENTS[a, c] * values[k, c, b]
                spare[a, b] = total
        for a in range(NODES):
            for b in range(NODES):
                total = 0.0
                for c in range(NODES):
                    total += spare[a, c] * _TO_COEFFICIENTS[b, c]
                values[k, a, b] = total


@kernel
def add_all(x, w, A, cells, out):
    """Add (1) over all documents to ``out``; ``cells`` are those of `new_cells`."""
    cells[1][:] = 0.0
    _add_moments(0, len(x), x, w, cells)
    _add_sums(0, len(x), x, A, cells, out)


@kernel
def add_lower(edges, x, w, A, cells, out):
    """Add (1) to ``out``, where the sources of a set of targets are all sets behind it."""
    cells[1][:] = 0.0
    for b in range(len(edges) - 2, -1, -1):
        if b < len(edges) - 2:
            _add_sums(edges[b], edges[b + 1], x, A, cells, out)
        _add_moments(edges[b], edges[b + 1], x, w, cells)


@kernel
def add_higher(edges, x, w, A, cells, out):
    """Add (1) to ``out``, where the sources of a set of targets are all sets before it."""
    cells[1][:] = 0.0
    for b in range(len(edges) - 1):
        if b > 0:
            _add_sums(edges[b], edges[b + 1], x, A, cells, out)
        _add_moments(edges[b], edges[b + 1], x, w, cells)


@kernel
def _add_moments(lo, hi, x, w, cells):
    low, moments, _, _ = cells
    for i in range(lo, hi):
        cell = min(int(x[i] - low), len(moments) - 1)
        u = 2.0 * (x[i] - low - cell) - 1.0
        here, before, now = moments[cell], w[i], w[i] * u
        here[0] += before
        for b in range(1, NODES):
            here[b] += now
            before, now = now, 2.0 * u * now - before


@kernel
def _add_sums(lo, hi, x, A, cells, out):
    low, moments, sums, known = cells
    known[:] = False
    for i in range(lo, hi):
        cell = min(int(x[i] - low), len(moments) - 1)
        here = sums[cell]
        if not known[cell]:
            known[cell] = True
            _sum_at_cell(cell, moments, A, here)
        v = 2.0 * (x[i] - low - cell) - 1.0
        total, before, now = here[0], 1.0, v
        for a in range(1, NODES):
            total += here[a] * now
            before, now = now, 2.0 * v * now - before
        out[i] += total


@kernel
def _sum_at_cell(cell, moments, A, out):
    """Write what all sources add up to in a cell, as a polynomial of the place in it."""
    out[:] = 0.0
    for source in range(len(moments)):
        near, of_source = A[source - cell + len(moments) - 1], moments[source]
        if not of_source.any():
            continue
        for a in range(NODES):
            total = 0.0
            for b in range(NODES):
                total += near[a, b] * of_source[b]
            out[a] += total
