"""Linear assignment: every row gets a column of its own, at the least total cost.

    minimise sum_i cost[i, column(i)],   columns distinct                                       (1)

with as many columns as rows or more, by shortest augmenting paths (`jonker1987assignment`). The
dual prices of the columns, v, and those of the rows,

    u_i = min over j of cost[i, j] - v_j,     u_i + v_j <= cost[i, j],                          (2)

start from any v: rows whose cheapest column is free take it, and only the others search for a path,
so the nearer v is to the answer's, the sooner it is found. A column that no row takes must keep the
price 0, so with more columns than rows v starts at 0.

SciPy's ``linear_sum_assignment`` solves (1) too; this one runs inside kernels without the GIL and
starts from prices.

The problem of DORM (`le2007dorm`, (24)) has documents as rows and ranks as columns, and

    cost[i, j] = a_j b_i - c_j s_i                                                              (3)

Were a = 0, documents sorted by score would be best, with v_{j+1} - v_j anywhere between
(c_j - c_{j+1}) times the scores of ranks j + 1 and j: `sorted_prices` starts there. (Prices of the
same query under other scores are a worse start once scores change by a tenth of their spread.)
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64, I64

FORBIDDEN = 1e100

# --- kernels ---------------------------------------------------------------------------------


@kernel
def assign(cost, v, column_of, row_of):
    """Solve (1): write the column of each row and the row of each column (-1: none); keep v.

    ``cost`` has at least as many columns as rows; with more, ``v`` must come as zeros.
    """
    rows, columns = cost.shape
    row_of[:columns] = -1
    waiting = np.empty(rows, np.int64)
    n_waiting = 0
    for i in range(rows):
        j = _cheapest(cost[i], v)
        if row_of[j] < 0:
            row_of[j], column_of[i] = i, j
        else:
            waiting[n_waiting] = i
            n_waiting += 1
    distance, before = np.empty(columns), np.empty(columns, np.int64)
    open_columns = np.empty(columns, np.int64)
    for k in range(n_waiting):
        _augment(waiting[k], cost, v, column_of, row_of, distance, before, open_columns)


@kernel
def _cheapest(cost, v):
    best = 0
    for j in range(1, len(cost)):
        if cost[j] - v[j] < cost[best] - v[best]:
            best = j
    return best


@kernel
def _augment(start, cost, v, column_of, row_of, distance, before, columns):
    """Give row ``start`` a column along the shortest path to a free one, and adjust v.

    ``columns`` lists reached columns first, [0, done), then those still open.
    """
    n = len(distance)
    for j in range(n):
        columns[j] = j
        distance[j] = cost[start, j] - v[j]
        before[j] = start
    done = 0
    while True:
        at = done
        for k in range(done + 1, n):
            if distance[columns[k]] < distance[columns[at]]:
                at = k
        j = columns[at]
        columns[at], columns[done] = columns[done], j
        least = distance[j]
        if row_of[j] < 0:
            break
        done += 1
        i = row_of[j]
        base = least - (cost[i, j] - v[j])
        for k in range(done, n):
            other = columns[k]
            length = base + cost[i, other] - v[other]
            if length < distance[other]:
                distance[other], before[other] = length, i
    for k in range(done):
        v[columns[k]] += distance[columns[k]] - least
    while True:
        i = before[j]
        row_of[j] = i
        column_of[i], j = j, column_of[i]
        if i == start:
            break


@kernel
def sorted_prices(ranked, s, c, v):
    """Write the prices of ranks that suit documents sorted by score; ``ranked`` is that order."""
    v[0] = 0.0
    for j in range(1, len(ranked)):
        between = 0.5 * (s[ranked[j - 1]] + s[ranked[j]])
        v[j] = v[j - 1] + (c[j - 1] - c[j]) * between


@kernel
def fill_costs(s, b, a, c, cut, cost):
    """Write (3); a counts on the first ``cut`` ranks alone."""
    for i in range(len(s)):
        for j in range(len(s)):
            cost[i, j] = -c[j] * s[i]
        for j in range(min(cut, len(s))):
            cost[i, j] += a[j] * b[i]


@kernel
def assign_groups(s, b, group, n_groups, top, a, c, position):
    """Fill the first ``top`` ranks at the least cost (3) with a document of each group at most.

    Groups are assigned to ranks, each by the document that is cheapest there ((33) of
    `le2007dorm`). ``position`` gets each document's rank, or -1.
    """
    cost = np.full((top, n_groups), FORBIDDEN)
    chosen = np.full((top, n_groups), -1)
    for i in range(len(s)):
        for j in range(top):
            here = a[j] * b[i] - c[j] * s[i]
            if chosen[j, group[i]] < 0 or here < cost[j, group[i]]:
                cost[j, group[i]], chosen[j, group[i]] = here, i
    column_of, row_of = np.empty(top, np.int64), np.empty(n_groups, np.int64)
    assign(cost, np.zeros(n_groups), column_of, row_of)
    position[:] = -1
    for j in range(top):
        position[chosen[j, column_of[j]]] = j


@kernel
def assign_benches(s, b, group, n_groups, limit, top, a, c, position):
    """As `assign_groups`, with at most ``limit`` documents of each group.

    A group of m documents has m - limit bench seats that only its documents may take; whatever
    seats are left over are open to all. All seats are taken, so no group gets more than its limit.
    """
    n = len(s)
    cost = np.zeros((n, n))
    size = np.zeros(n_groups, np.int64)
    for i in range(n):
        size[group[i]] += 1
        for j in range(top):
            cost[i, j] = a[j] * b[i] - c[j] * s[i]
    seat = top
    for g in range(n_groups):
        for _ in range(size[g] - limit):
            for i in range(n):
                cost[i, seat] = 0.0 if group[i] == g else FORBIDDEN
            seat += 1
    column_of, row_of = np.empty(n, np.int64), np.empty(n, np.int64)
    assign(cost, np.zeros(n), column_of, row_of)
    for i in range(n):
        position[i] = column_of[i] if column_of[i] < top else -1


# --- API -------------------------------------------------------------------------------------


def least_cost(cost: F64) -> I64:
    """Return the column of each row that makes the sum of costs least.

    ``cost`` has a row of costs for each row, and at least as many columns as rows.
    """
    rows, columns = cost.shape
    column_of, row_of = np.empty(rows, np.int64), np.empty(columns, np.int64)
    assign(np.ascontiguousarray(cost, np.float64), np.zeros(columns), column_of, row_of)
    return column_of
