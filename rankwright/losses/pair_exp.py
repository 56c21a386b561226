"""Exponential loss on pairs of documents of different grades (RankBoost).

With w_i the weight of document i, the loss of a query is

    L(s) = sum over g_i > g_j of m w_i w_j exp(s_j - s_i)                                       (1)

(`freund2003rankboost`), where a pair counts m = min(1, g_i - g_j): 1 for whole grades, the
difference for estimated relevance. With m = 1 for all pairs, for each document, what its pairs with
lower and with higher grades add up to is a product,

    push_i = w_i exp(-s_i) x sum of w_j exp(s_j) over lower grades                              (2)
    pull_j = w_j exp(s_j) x sum of w_i exp(-s_i) over higher grades                             (3)

so running sums from grade to grade give the value sum_i push_i, the gradient pull - push and the
exact diagonal of the Hessian pull + push in O(n) a query, once grades are in order; sums of
positive terms, so nothing cancels. ``normalize=True`` divides the loss of each query by the sum of
w_i w_j over its pairs.

Where s_j - s_i is above 600, exp is continued by its tangent, so that the loss stays finite and
convex; a query whose scores spread that far is added up pair by pair, and so are all queries where
grades are less than 1 apart.

A rule h with values 0 and 1 moves each term of (1) by a factor exp(a), exp(-a) or 1. With
r = -(derivative of L along h) / L, L(s + a h) is at most L ((1 - r) exp(a) + (1 + r) exp(-a)) / 2
and so

    a = 1/2 ln((1 + r) / (1 - r))                                                               (4)

is RankBoost's step: it brings L down by a factor of sqrt(1 - r^2) at least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import Part, check_parameters
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import KernelLoss, document_weight
from rankwright.losses.pair_sums import GradeBlocks, preference, score_range

_FAR = 600.0
_SURE = 1.0 - 1e-6  # a rule that is never wrong gets a weight of 7.25, not infinity


class _Terms(NamedTuple):
    w: F64  # of each place
    scale: F64  # of each query
    grade: F64  # of each place
    fractional: bool  # whether some pairs count less than 1


class _Workspace(NamedTuple):
    """What the kernel leaves for the Hessian, by place."""

    up: F64  # w exp(s)
    down: F64  # w exp(-s)
    push: F64  # (2)
    pull: F64  # (3)


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, layout, terms, workspace, weight, value, grad, curv):
    rows, start, of_query = layout
    w, scale, grade, fractional = terms
    push, pull = workspace.push, workspace.pull
    for q in range(lo, hi):
        first, last, total = of_query[q], of_query[q + 1], 0.0
        if weight[q] == 0.0:
            push[indptr[q] : indptr[q + 1]] = 0.0
            pull[indptr[q] : indptr[q + 1]] = 0.0
        elif fractional or _spread_out(indptr[q], indptr[q + 1], s, rows, w, workspace):
            total = _pair_by_pair(first, last, start, s, rows, w, grade, workspace)
        else:
            total = _by_grade(first, last, start, workspace)
        factor = weight[q] * scale[q]
        value[q] = factor * total
        for p in range(indptr[q], indptr[q + 1]):
            if len(grad):
                grad[rows[p]] = factor * (pull[p] - push[p])
            if len(curv):
                curv[rows[p]] = factor * (pull[p] + push[p])


@kernel
def _spread_out(lo, hi, s, rows, w, workspace):
    """Whether the scores of a query differ by more than _FAR; if not, write their exponentials."""
    up, down = workspace.up, workspace.down
    low, high = score_range(lo, hi, s, rows)
    if high - low > _FAR:
        return True
    for p in range(lo, hi):
        lead = math.exp(s[rows[p]] - 0.5 * (low + high))
        up[p], down[p] = w[p] * lead, w[p] / lead
    return False


@kernel
def _by_grade(first, last, start, workspace):
    """Write (2) and (3) and return (1)."""
    up, down, push, pull = workspace
    below = 0.0
    for b in range(last - 1, first - 1, -1):
        for p in range(start[b], start[b + 1]):
            push[p] = down[p] * below  # (2)
        for p in range(start[b], start[b + 1]):
            below += up[p]
    above, total = 0.0, 0.0
    for b in range(first, last):
        for p in range(start[b], start[b + 1]):
            pull[p] = up[p] * above  # (3)
            total += pull[p]
        for p in range(start[b], start[b + 1]):
            above += down[p]
    return total


@kernel
def _pair_by_pair(first, last, start, s, rows, w, grade, workspace):
    """As `_by_grade`, with m and the tangent of exp beyond _FAR, which take each pair by itself."""
    push, pull = workspace.push, workspace.pull
    push[start[first] : start[last]] = 0.0
    pull[start[first] : start[last]] = 0.0
    total = 0.0
    for b in range(first, last):
        for p in range(start[b], start[b + 1]):
            for j in range(start[b + 1], start[last]):
                gap = s[rows[j]] - s[rows[p]]
                share = preference(grade[p], grade[j])
                term = share * w[p] * w[j] * math.exp(min(gap, _FAR))
                push[p] += term
                pull[j] += term
                total += term * (1.0 + max(gap - _FAR, 0.0))
    return total


@kernel
def _hessian(lo, hi, indptr, s, layout, terms, workspace, weight, v, out):
    """Write the Hessian times v, from what the last run left in ``workspace``."""
    rows, start, of_query = layout
    w, scale, grade, fractional = terms
    up, down, push, pull = workspace
    for q in range(lo, hi):
        out[rows[indptr[q] : indptr[q + 1]]] = 0.0
        first, last, factor = of_query[q], of_query[q + 1], weight[q] * scale[q]
        if factor == 0.0:
            continue
        if fractional or _spread_out(indptr[q], indptr[q + 1], s, rows, w, workspace):
            _turn_pairs(first, last, start, s, rows, w, grade, factor, v, out)
            continue
        below = 0.0
        for b in range(last - 1, first - 1, -1):
            for p in range(start[b], start[b + 1]):
                out[rows[p]] = factor * ((push[p] + pull[p]) * v[rows[p]] - down[p] * below)
            for p in range(start[b], start[b + 1]):
                below += up[p] * v[rows[p]]
        above = 0.0
        for b in range(first, last):
            for p in range(start[b], start[b + 1]):
                out[rows[p]] -= factor * up[p] * above
            for p in range(start[b], start[b + 1]):
                above += down[p] * v[rows[p]]


@kernel
def _turn_pairs(first, last, start, s, rows, w, grade, factor, v, out):
    for b in range(first, last):
        for p in range(start[b], start[b + 1]):
            for j in range(start[b + 1], start[last]):
                gap = s[rows[j]] - s[rows[p]]
                if gap <= _FAR:  # beyond, the tangent has no curvature
                    pair = factor * w[p] * w[j] * preference(grade[p], grade[j])
                    turn = pair * math.exp(gap) * (v[rows[p]] - v[rows[j]])
                    out[rows[p]] += turn
                    out[rows[j]] -= turn


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class PairExp(Part):
    """Exponential loss on every pair of documents of different grades.

    A pair of grades less than 1 apart, as of relevance estimated from clicks, counts as much as
    they differ.

    Parameters
    ----------
    normalize : bool
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.PairExp(normalize=True), model="linear")
    Ranker(loss=PairExp(normalize=True))
    """

    normalize: bool = False

    traits: ClassVar[Traits] = Traits(convex=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        blocks = GradeBlocks.of(data)
        w = document_weight(data)[blocks.rows]
        scale = blocks.pair_share(w) if self.normalize else np.ones(data.n_queries)
        workspace = _Workspace(*np.empty((4, data.n_documents)))
        terms = _Terms(w, scale, blocks.place_grade(), blocks.fractional)
        args = (blocks.layout, terms, workspace)
        return KernelLoss(_queries, data, *args, curvature=True, hessian=_hessian, n_jobs=n_jobs)

    @staticmethod
    def rule_step(value: float, derivative: float) -> float:
        """Return RankBoost's weight (4) of a rule, from the loss and its derivative along it."""
        r = min(max(-derivative / value, -_SURE), _SURE)
        return 0.5 * math.log((1.0 + r) / (1.0 - r))
