"""Likelihood of the ideal order under the Plackett-Luce model (ListMLE).

Documents are sampled one after the other, each with probability proportional to exp(score) among
those not sampled yet. Documents of one grade have no order among themselves, so each is sampled
from all that are not above it (Breslow's treatment of ties). With w_i the weight of document i,

    L(s) = sum_i w_i [log Z(g_i) - s_i],    Z(g) = sum over g_j <= g of w_j exp(s_j)            (1)
         + calibration/2 sum_i w_i (y_i - s_i)^2                                                (2)

(`xia2008listmle`, with the calibration of `moon2010intervalrank`). With W(g) the weight of the
documents of grade g, gradient and the exact diagonal of the Hessian are

    dL/ds_i   = w_i exp(s_i) sum over g >= g_i of W(g)/Z(g)  -  w_i                             (3)
    d2L/ds_i2 = w_i exp(s_i) sum of W(g)/Z(g)  -  w_i^2 exp(2 s_i) sum of W(g)/Z(g)^2           (4)

and with M(g) the mean of v over g_j <= g by weights w_j exp(s_j), the Hessian times v is

    (H v)_i   = w_i exp(s_i) sum over g >= g_i of W(g)/Z(g) (v_i - M(g))                        (5)

Grades are fixed, so nothing is sorted: two passes over the grades, O(n) a query. Each Z(g) is kept
relative to exp(m(g)), m(g) the largest score so far, hence no score overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.parameters import NonNegative, Part, check_parameters
from rankwright.core.team import once, shared_range, team_max, team_sum
from rankwright.core.types import F64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import KernelLoss, Targets, document_weight, grade_targets
from rankwright.losses.pair_sums import GradeBlocks


class _Terms(NamedTuple):
    y: F64  # target of each place
    w: F64
    calibration: float


class _Workspace(NamedTuple):
    """What the kernel leaves for the Hessian, by block."""

    top: F64  # m(g)
    z: F64  # Z(g) exp(-m(g))
    n: F64  # W(g)
    mean: F64  # M(g)


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, _indptr, s, layout, terms, workspace, weight, value, grad, curv):
    rows, start, of_query = layout
    y, w, calibration = terms
    top, z, n, _ = workspace
    for q in range(lo, hi):
        first, last = of_query[q], of_query[q + 1]
        total = once(_sample(first, last, start, s, rows, w, top, z, n))
        one = two = 0.0  # the sums of (3) and (4), times exp(m) and exp(2m)
        for b in range(first, last):  # from the best grade down, so g >= g_i comes first
            if z[b] > 0.0:
                fall = math.exp(top[b] - top[b - 1]) if b > first else 0.0
                one = one * fall + n[b] / z[b]
                two = two * fall * fall + n[b] / (z[b] * z[b])
            for p in shared_range(start[b], start[b + 1]):
                i = rows[p]
                e = w[p] * math.exp(s[i] - top[b]) if w[p] > 0.0 else 0.0
                error = s[i] - y[p]
                total += 0.5 * calibration * w[p] * error * error  # (2)
                if len(grad):
                    grad[i] = weight[q] * (e * one - w[p] + calibration * w[p] * error)  # (3)
                if len(curv):
                    curv[i] = weight[q] * (max(e * one - e * e * two, 0.0) + calibration * w[p])
        value[q] = weight[q] * team_sum(total)


@kernel
def _hessian(lo, hi, _indptr, s, layout, terms, workspace, weight, v, out):
    rows, start, of_query = layout
    _, w, calibration = terms
    top, z, n, mean = workspace
    for q in range(lo, hi):
        first, last = of_query[q], of_query[q + 1]
        _sample_mean(first, last, start, s, rows, w, v, top, z, mean)
        one = turned = 0.0  # the sums of W/Z and of W/Z M in (5), times exp(m)
        for b in range(first, last):
            if z[b] > 0.0:
                fall = math.exp(top[b] - top[b - 1]) if b > first else 0.0
                one = one * fall + n[b] / z[b]
                turned = turned * fall + n[b] / z[b] * mean[b]
            for p in shared_range(start[b], start[b + 1]):
                i = rows[p]
                e = w[p] * math.exp(s[i] - top[b]) if w[p] > 0.0 else 0.0
                out[i] = weight[q] * (e * (one * v[i] - turned) + calibration * w[p] * v[i])  # (5)


@kernel
def _sample_mean(first, last, start, s, rows, w, v, top, z, mean):
    """Write M(g) of each block to ``mean``, from ``top`` and ``z`` as `_sample` left them."""
    total = 0.0
    for b in range(last - 1, first - 1, -1):
        if total != 0.0:
            total *= math.exp(top[b + 1] - top[b])
        total = once(total)
        for p in shared_range(start[b], start[b + 1]):
            if w[p] > 0.0:
                total += w[p] * math.exp(s[rows[p]] - top[b]) * v[rows[p]]
        total = team_sum(total)
        mean[b] = total / z[b] if z[b] > 0.0 else 0.0


@kernel
def _sample(first, last, start, s, rows, w, top, z, n):
    """Return (1), leaving m(g), Z(g) exp(-m(g)) and W(g) of each block in ``top``, ``z``, ``n``."""
    total = 0.0
    m, mass = -np.inf, 0.0
    for b in range(last - 1, first - 1, -1):  # from the lowest grade up
        highest = m
        for p in shared_range(start[b], start[b + 1]):
            if w[p] > 0.0:
                highest = max(highest, s[rows[p]])
        highest = team_max(highest)
        if mass > 0.0:
            mass *= math.exp(m - highest)
        m, mass = highest, once(mass)
        size = scores = 0.0
        for p in shared_range(start[b], start[b + 1]):
            if w[p] > 0.0:
                mass += w[p] * math.exp(s[rows[p]] - m)
                size += w[p]
                scores += w[p] * (m - s[rows[p]])
        mass, size, scores = team_sum(mass), team_sum(size), team_sum(scores)
        top[b], z[b], n[b] = m, mass, size
        if mass > 0.0:
            total += size * math.log(mass) + scores
    return total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class ListMLE(Part):
    """Negative log-likelihood of the ideal order, document after document (Plackett-Luce).

    Parameters
    ----------
    calibration : float
        Weight of the squared error to the target, which fixes the level of the scores.
    targets : "linear", "gain" or a tuple
        Target score of a grade, used by the calibration alone.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.ListMLE(calibration=0.1), model="trees")
    Ranker(loss=ListMLE(calibration=0.1), model='trees')
    """

    calibration: NonNegative = 0.0
    targets: Targets = "linear"

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        return Traits(convex=True, shift_invariant=self.calibration == 0.0)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        blocks = GradeBlocks.of(data)
        y = grade_targets(data, self.targets)[blocks.rows]
        w = document_weight(data)[blocks.rows]
        workspace = _Workspace(*np.empty((4, len(blocks.start) - 1)))
        args = (blocks.layout, _Terms(y, w, float(self.calibration)), workspace)
        return KernelLoss(
            _queries, data, *args, curvature=True, hessian=_hessian, team=True, n_jobs=n_jobs
        )
