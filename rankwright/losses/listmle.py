"""ListMLE: likelihood of the ideal order under the Plackett-Luce model.

Documents are sampled one after the other, each with probability proportional to exp(score) among
those not sampled yet. Documents of one grade have no order among themselves: each is sampled from
all documents that are not above it (Breslow's treatment of ties). With w_i the weight of document
i,

    L(s) = sum_i a(g_i) w_i [log Z(g_i) - s_i],    Z(g) = sum over g_j <= g of w_j exp(s_j)     (1)
         + calibration/2 sum_i w_i (y_i - s_i)^2                                                (2)

with a(g) = 1 (`xia2008listmle`), and the calibration of `moon2010intervalrank`. With W(g) the
weight of the documents of grade g, the gradient and the diagonal of the Hessian are

    dL/ds_i   = w_i exp(s_i) sum over g >= g_i of a(g) W(g)/Z(g)  -  a(g_i) w_i                 (3)
    d2L/ds_i2 = w_i exp(s_i) sum of a(g) W(g)/Z(g)  -  w_i^2 exp(2 s_i) sum of a(g) W(g)/Z(g)^2 (4)

plus the derivatives of (2). The ideal order is fixed, so that nothing is sorted: two passes over
the grades take O(n) time per query. Z(g) is stored relative to exp(m(g)), with m(g) the largest
score of grades up to g, so that no score overflows.

``position_aware=True`` is p-ListMLE (`lan2014plistmle`): a document at rank r of the ideal order of
n documents has the factor

    a(r) = (2^(n - r) - 1) / (2^n - 1 - n)                                                      (5)

and a(g) is its mean over the ranks of the documents of grade g. The paper does not divide by
2^n - 1 - n, the sum over ranks, with which long queries would outweigh all others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.order import first_of_runs
from rankwright.core.parameters import NonNegative
from rankwright.core.team import once, shared_range, team_max, team_sum
from rankwright.core.types import F64, I64, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, Targets, document_weight, grade_targets


class _Blocks(NamedTuple):
    """Documents by query and grade, the best grade first, with work arrays."""

    row: I64  # of each document in this order
    w: F64
    y: F64  # target
    start: I64  # first document of each block, which has the documents of one grade
    of_query: I64  # first block of each query
    factor: F64  # a(g)
    top: F64  # m(g)
    z: F64  # Z(g) exp(-m(g))
    size: F64  # a(g) W(g)


@kernel
def _listmle(queries, _indptr, s, blocks, calibration, value, grad, curv):
    row, w, y, start, of_query, factor, top, z, size = blocks
    for q in queries:
        first, last = of_query[q], of_query[q + 1]
        total = once(_log_likelihood(first, last, s, row, w, start, factor, top, z, size))
        a = a2 = 0.0  # the sums of (3) and (4), times exp(m) and exp(2m)
        for b in range(first, last):  # from the best grade down, so that g >= g_i comes first
            fall = math.exp(top[b] - top[b - 1]) if b > first else 0.0
            a = a * fall + size[b] / z[b]
            a2 = a2 * fall * fall + size[b] / (z[b] * z[b])
            for p in shared_range(start[b], start[b + 1]):
                i = row[p]
                e, error = w[p] * math.exp(s[i] - top[b]), s[i] - y[p]
                total += 0.5 * calibration * w[p] * error * error  # (2)
                grad[i] = e * a - factor[b] * w[p] + calibration * w[p] * error  # (3)
                curv[i] = max(e * a - e * e * a2, 0.0) + calibration * w[p]  # (4)
        value[q] = team_sum(total)


@kernel
def _log_likelihood(first, last, s, row, w, start, factor, top, z, size):
    """Return (1) and write m(g), Z(g) exp(-m(g)) and a(g) W(g) of each block."""
    total = mass = 0.0
    highest = -np.inf
    for b in range(last - 1, first - 1, -1):  # from the lowest grade up
        below = highest
        for p in shared_range(start[b], start[b + 1]):
            highest = max(highest, s[row[p]])
        highest = team_max(highest)
        mass = once(mass * math.exp(below - highest))
        weight = scores = 0.0
        for p in shared_range(start[b], start[b + 1]):
            mass += w[p] * math.exp(s[row[p]] - highest)
            weight += w[p]
            scores += w[p] * (highest - s[row[p]])
        mass, weight, scores = team_sum(mass), team_sum(weight), team_sum(scores)
        top[b], z[b], size[b] = highest, mass, factor[b] * weight
        total += factor[b] * (weight * math.log(mass) + scores)  # (1)
    return total


@dataclass(frozen=True, slots=True, repr=False)
class ListMLE(KernelLoss):
    """Negative log-likelihood of the ideal order, document after document (Plackett-Luce).

    Without ties and weights this is ``listmle_loss`` of Rax, and with ``position_aware=True`` times
    2^n - 1 - n the ListMLE loss of TensorFlow Ranking with the discount 2^(n - rank) - 1.

    Parameters
    ----------
    calibration : float
        Weight of the squared error to the target, which fixes the level of the scores.
    targets : "linear", "gain" or a tuple
        Target score of a label, used by the calibration only.
    position_aware : bool
        Weight the ranks of the ideal order by (5), which falls by half from rank to rank.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ListMLE(calibration=0.1), model="trees")
    Ranker(loss=ListMLE(calibration=0.1), model='trees')
    """

    calibration: NonNegative = 0.0
    targets: Targets = "linear"
    position_aware: bool = False

    run = staticmethod(_listmle)

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        return Traits(convex=True, shift_invariant=self.calibration == 0.0)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the blocks of documents of one grade, and the weight of the calibration."""
        row, start, of_query = grade_blocks(data)
        factor = _rank_factors(start, of_query) if self.position_aware else np.ones(len(start) - 1)
        w, y = document_weight(data)[row], grade_targets(data, self.targets)[row]
        work = np.empty((3, len(start) - 1))
        return _Blocks(row, w, y, start, of_query, factor, *work), float(self.calibration)


def grade_blocks(data: RankingData) -> tuple[I64, I64, I64]:
    """Return the rows of the data by query and falling grade, and blocks of one grade.

    Block b has the rows ``row[start[b]:start[b + 1]]``; query q has the blocks ``of_query[q]`` to
    ``of_query[q + 1]``.
    """
    row = np.lexsort((-data.y, data.query_of_row()))
    start = np.append(np.flatnonzero(first_of_runs(data.y[row], data.indptr)), len(row))
    return row, start, np.searchsorted(start, data.indptr)


def _rank_factors(start: I64, of_query: I64) -> F64:
    """Return the mean of (5) over the ranks of each block."""
    n_blocks = np.diff(of_query)
    begin, end = (np.repeat(start[ends], n_blocks) for ends in (of_query[:-1], of_query[1:]))
    n, above, below = 1.0 * (end - begin), 1.0 * (start[:-1] - begin), 1.0 * (start[1:] - begin)
    # The sum over the first k ranks of the numerator of (5) is 2^n - 2^(n - k) - k.
    share = np.exp2(-above) - np.exp2(-below) - (below - above) * np.exp2(-n)
    total = np.where(n > 1.0, 1.0 - (1.0 + n) * np.exp2(-n), 1.0)
    factors: F64 = share / (total * (below - above))
    return factors
