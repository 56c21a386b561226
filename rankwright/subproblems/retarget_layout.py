"""How retargeting lays out a query: places worst grade first, scores rising inside each grade.

Documents of weight 0 have no place. A place fixes the grade, so what depends on grades and ranks
alone (margins, rewards, targets) is known by place once and for all; which document stands where
inside its grade follows the scores.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.order import sort_query
from rankwright.core.types import F64, I64

Places: TypeAlias = NDArray[np.int32] | I64
"""Numbers of rows or places, as short as the data allow."""


class Terms(NamedTuple):
    """Numbers of the loss, as its kernels take them."""

    alpha: float
    c_r: float
    c_w: float
    floor: float  # -inf, or 0 under KL, for none; as r has it
    free: bool  # whether the level of the scores is free
    simplex: bool
    rewards: bool
    additive: bool  # whether margins lie between r rather than between log r
    by_rank: bool  # whether margins inside a grade tell tied documents apart


class Layout(NamedTuple):
    """Documents of positive weight by query, grade and row: places, worst grade first."""

    rows: Places
    start: I64  # where each grade of each query begins
    of_query: I64  # the first grade of each query
    w: F64
    w_of_row: F64
    d: F64  # running sum of the margins
    stop: Places  # where the run of equal d ends
    tilt: F64  # under KL, weight of the place in the projection, over w
    reward: F64  # of r at this place: (15) has one of opposite sign at both sides of a change
    q: F64  # target of the grade, as scores
    lift: F64  # (1 - alpha) q - d


class Desk(NamedTuple):
    """What a kernel leaves for the Hessian and the targets, by place or query, and scratch."""

    at: Places  # row of the document at each place, scores rising inside a grade
    w: F64
    v: F64  # score, less the level of the query
    target: F64  # the solution, as a score less that level
    r: F64
    share: F64  # m(s)
    level: F64  # of each query
    first: Places  # where pools begin
    pools: I64  # where the list of each query's pools ends
    cut: I64  # places of each query before this one lie at the floor
    key: F64
    order: Places
    spare: Places
    u: F64
    heavy: F64
    sums: F64
    mass: F64


_FEW = 0.25  # share of neighbours out of order up to which insertion is quicker

# --- kernels ---------------------------------------------------------------------------------


@kernel
def level_of(s, rows, w):  # type: ignore[no-untyped-def]
    """Return the weighted mean score of some rows, summed from the first of them."""
    base = s[rows[0]]
    total = mass = 0.0
    for k in range(len(rows)):
        total += w[k] * (s[rows[k]] - base)
        mass += w[k]
    return base + total / mass


@kernel
def sort_grades(  # type: ignore[no-untyped-def]
    grades, s, level, rows, w_of_row, at, w, v, key, order, spare, u
):
    """Fill ``at``, ``w`` and ``v`` of one query, scores rising inside each grade, then rows.

    ``grades`` is where its grades begin, and the last of them ends. The last order is where it
    starts from: near it when a solver makes small steps, and without effect on where it ends.
    """
    for g in range(len(grades) - 1):
        a, b = grades[g], grades[g + 1]
        here, score, heavy = at[a:b], v[a:b], w[a:b]
        for k in range(len(here)):
            score[k] = s[here[k]] - level
        falls = 0
        for k in range(1, len(here)):
            tied = (score[k] == score[k - 1]) & (here[k] < here[k - 1])
            falls += (score[k] < score[k - 1]) | tied
        if len(key) > 0 or falls > _FEW * len(here):
            own, negative, place = rows[a:b], u[a:b], order[a:b]
            for k in range(len(here)):
                negative[k] = level - s[own[k]]
            sort_query(a, b, u, key, order, spare)
            for k in range(len(here)):
                here[k], score[k] = own[place[k] - a], -negative[place[k] - a]
        elif falls > 0:
            _insert(here, score)
        for k in range(len(here)):
            heavy[k] = w_of_row[here[k]]


@kernel
def _insert(at, v):  # type: ignore[no-untyped-def]
    """Sort a few documents out of order into their places."""
    for p in range(1, len(at)):
        row, score, k = at[p], v[p], p
        while k > 0 and (v[k - 1] > score or (v[k - 1] == score and at[k - 1] > row)):
            at[k], v[k] = at[k - 1], v[k - 1]
            k -= 1
        at[k], v[k] = row, score


@kernel
def share_ties(grades, v, w, r):  # type: ignore[no-untyped-def]
    """Give documents of a query equal in grade, score and weight the mean of their r."""
    for g in range(len(grades) - 1):
        a, end = grades[g], grades[g + 1]
        while a < end:
            b, total = a, 0.0
            while b < end and v[b] == v[a] and w[b] == w[a]:
                total += r[b]
                b += 1
            for p in range(a, b):
                r[p] = total / (b - a)
            a = b


@kernel
def running_margins(of_query, start, w, size, power, d):  # type: ignore[no-untyped-def]
    """Fill d by grade: the margin below each grade but the first is size / rank^power."""
    for q in range(len(of_query) - 1):
        rank = 0.0
        for g in range(of_query[q + 1] - 1, of_query[q] - 1, -1):
            for p in range(start[g], start[g + 1]):
                rank += w[p]
            d[start[g]] = size / rank**power
        total = 0.0
        for g in range(of_query[q], of_query[q + 1]):
            total += d[start[g]] if g > of_query[q] else 0.0
            for p in range(start[g], start[g + 1]):
                d[p] = total


# --- API -------------------------------------------------------------------------------------


def new_desk(rows: Places, n_queries: int, key: F64) -> Desk:
    """Return a desk for documents that start in the order of ``rows``."""
    n = len(rows)
    return Desk(
        at=rows.copy(),
        w=np.zeros(n),
        v=np.zeros(n),
        target=np.zeros(n),
        r=np.zeros(n),
        share=np.zeros(n),
        level=np.zeros(n_queries),
        first=np.zeros(n, rows.dtype),
        pools=np.zeros(n_queries, np.int64),
        cut=np.zeros(n_queries, np.int64),
        key=key,
        order=np.zeros(n, rows.dtype),
        spare=np.zeros(n, rows.dtype),
        u=np.zeros(n),
        heavy=np.zeros(n),
        sums=np.zeros(n),
        mass=np.zeros(n),
    )
