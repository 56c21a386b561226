"""Softmax cross entropy of each document against the documents of lower grades (unique softmax).

With w_i the weight of document i, the loss of a query is

    L(s) = sum_i c_i (log Z_i - s_i),     c_i = w_i (2^g_i - 1)                                 (1)
           Z_i = exp(s_i) + sum over g_j < g_i of w_j exp(s_j)

(`zhu2020listwise`): documents of the same grade do not compete. The gradient and the diagonal of
the Hessian are

    dL/ds_i    = c_i (p_i - 1) + w_i exp(s_i) sum over g_k > g_i of c_k / Z_k                   (2)
    d2L/ds_i^2 = c_i p_i (1 - p_i) + sum over g_k > g_i of c_k q_ki (1 - q_ki)                  (3)

with p_i = exp(s_i) / Z_i and q_ki = w_i exp(s_i) / Z_k. Two passes over the grades take O(n) time.
Sums of exponentials are stored relative to exp(m), with m the largest score of lower grades.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.team import once, shared_range, team_max, team_sum
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss, document_weight, exp2_of_grades
from rankwright.losses.listmle import grade_blocks


@kernel
def _unique_softmax(queries, _indptr, s, row, start, of_query, w, c, log_z, top, value, grad, curv):
    for q in queries:
        first, last = of_query[q], of_query[q + 1]
        highest, mass, total = -np.inf, 0.0, 0.0
        for b in range(last - 1, first - 1, -1):  # from the lowest grade up
            below, top[b] = highest, highest  # m of this grade
            for p in shared_range(start[b], start[b + 1]):
                score = s[row[p]]
                m = max(below, score)
                log_z[p] = m + math.log(math.exp(score - m) + mass * math.exp(below - m))
                total += c[p] * (log_z[p] - score)  # (1)
                highest = max(highest, score)
            highest = team_max(highest)
            mass = once(mass * math.exp(below - highest))
            for p in shared_range(start[b], start[b + 1]):
                mass += w[p] * math.exp(s[row[p]] - highest)
            mass = team_sum(mass)
        value[q] = team_sum(total)
        a = a2 = 0.0  # sums of c / Z and c / Z^2 over higher grades, times exp(m) and exp(2m)
        for b in range(first, last):
            for p in shared_range(start[b], start[b + 1]):
                i, share = row[p], math.exp(s[row[p]] - log_z[p])
                e = w[p] * math.exp(s[i] - top[b - 1]) if b > first else 0.0
                grad[i] = c[p] * (share - 1.0) + e * a  # (2)
                curv[i] = c[p] * share * (1.0 - share) + max(e * a - e * e * a2, 0.0)  # (3)
            fall = math.exp(top[b] - top[b - 1]) if b > first else 0.0
            a, a2 = once(a * fall), once(a2 * fall * fall)
            for p in shared_range(start[b], start[b + 1]):
                ratio = math.exp(top[b] - log_z[p])  # 0 at the lowest grade
                a += c[p] * ratio
                a2 += c[p] * ratio * ratio
            a, a2 = team_sum(a), team_sum(a2)


@dataclass(frozen=True, slots=True, repr=False)
class UniqueSoftmax(KernelLoss):
    """Softmax cross entropy of each document against those of lower grades, weighted by its gain.

    The value of a query is ``unique_softmax_loss`` of Rax and the unique softmax loss of TensorFlow
    Ranking, for documents without weights.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.UniqueSoftmax(), model="linear")
    Ranker(loss=UniqueSoftmax())
    """

    traits = Traits(convex=True)
    run = staticmethod(_unique_softmax)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the documents by grade with w and c of (1), and work arrays."""
        row, start, of_query = grade_blocks(data)
        w = document_weight(data)[row]
        c = w * (exp2_of_grades(data)[row] - 1.0)
        return row, start, of_query, w, c, np.empty(len(row)), np.empty(len(start) - 1)
