"""Linear assignment: a column of its own for every row, at the least total cost.

    minimise sum_i cost[i, column(i)],   columns distinct                                       (1)

with at least as many columns as rows, by shortest augmenting paths (`jonker1987assignment`). The
dual prices of the columns, v, and of the rows,

    u_i = min over j of cost[i, j] - v_j,     u_i + v_j <= cost[i, j],                          (2)

start from any v. Rows whose cheapest column is free take it, and only other rows search for a path,
so the search is short if v is close to the optimal prices. The price of a column that no row takes
must stay 0, so v starts at 0 if there are more columns than rows.

SciPy's ``linear_sum_assignment`` solves (1) too. This one runs inside kernels without the GIL and
accepts prices to start from.
"""

from __future__ import annotations

import numpy as np

from rankwright.core.jit import kernel

FORBIDDEN = 1e100


@kernel
def by_assignment(cost, v):
    """Return the column of each row that solves (1); ``v`` has the prices and gets the new ones."""
    rows, columns = cost.shape
    column_of, row_of = np.empty(rows, np.int64), np.full(columns, -1)
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
    return column_of


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

    ``columns`` lists the ``done`` columns that are reached, then those that are still open.
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
            column = columns[k]
            length = base + cost[i, column] - v[column]
            if length < distance[column]:
                distance[column], before[column] = length, i
    for k in range(done):
        v[columns[k]] += distance[columns[k]] - least
    while True:
        i = before[j]
        row_of[j] = i
        column_of[i], j = j, column_of[i]
        if i == start:
            break
