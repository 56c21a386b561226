"""What NDCG loses when the sort itself is made soft (NeuralNDCG).

A sort is a matrix with a row by rank and a column by document. NeuralSort makes it soft
(`grover2019neuralsort`): the row of rank r is a softmax at ``temperature`` T,

    P_r = softmax of z_rj / T,     z_rj = (n + 1 - 2 r) s_j - sum_l |s_j - s_l|                 (1)

and the metric, a sum over ranks of discount d by rank times gain b by document, takes the mean
gain of the row for that of the document at the rank (`pobrotyn2021neuralndcg`):

    L(s) = best - sum_r d_r m_r,     m_r = sum_j P_rj b_j                                       (2)

As T goes to 0, (2) tends to what the metric loses. Rows of (1) add up to 1 but columns do not:
where scores are close, documents in the middle are counted at many ranks and those at the ends at
few, and (2) falls as good documents move to the middle. ``sinkhorn`` rounds of scaling, columns and
then rows to a sum of 1, take that away:

    P <- diag(u) P diag(v),     v_j = 1 / sum_r u_r P_rj,   then   u_r = 1 / sum_j P_rj v_j     (3)

The gradient goes back through (3), u and v being kept for each round, to G_rj = dL/dz_rj, and with
S_j = sum_r G_rj through (1):

    T dL/ds_j = sum_r (n + 1 - 2 r) G_rj - sum_l (S_j + S_l) sign(s_j - s_l)                    (4)

where tied documents have sign 0: the loss has kinks at ties. The differences in (1) grow with n, so
T is in units of n scores. Documents far from a rank have no part in its row and cost nothing.

**Weights**: ranks are held by whole documents; one of weight 0 is left out, any other counts like
the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.jit import kernel, quick_kernel
from rankwright.core.kernels import clear_query, longest
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import Part, check_above_zero, check_whole
from rankwright.core.team import new_table, once, shared_range, team_sum, wait
from rankwright.core.types import I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss
from rankwright.losses.gain_lists import gain_lists
from rankwright.metrics.base import AnyMetric

_NEGLIGIBLE = -50.0  # of a logarithm: its exponential is lost beside 1

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, lists, temperature, rounds, order, scratch, weight, value, grad, curv
):
    most = longest(lo, hi, lists.begin)
    used = 8 * (most + 1)
    room = new_table(scratch, lo, 0, 8, most + 1)
    us = new_table(scratch, lo, used, rounds + 1, most)
    used += (rounds + 1) * most
    vs = new_table(scratch, lo, used, rounds + 1, most)
    used += (rounds + 1) * most
    P = new_table(scratch, lo, used, most, most)
    pull = new_table(scratch, lo, used + most * most, most if len(grad) else 0, most)
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        row = lists.row[lists.begin[q] : lists.begin[q + 1]]
        n, k = len(row), lists.cut[q]
        gap, b, d, x = room[0, :n], room[1, :n], room[2, :n], room[3, :n]
        at, past = lists.begin[q], lists.begin[q + 1]
        ranked, spare = order[0, at:past], order[1, at:past]
        first, end = order[2, at:past], order[3, at:past]
        left, right = order[4, at:past], order[5, at:past]
        for j in shared_range(0, n):
            x[j] = s[row[j]] / temperature
        wait()
        sort_query(0, n, x, NO_KEY, ranked, spare)
        _gaps_and_ties(ranked, x, gap, first, end)
        for j in shared_range(0, n):
            b[j] = lists.gain[at + ranked[j]]
            d[j] = lists.discount[j] if j < k else 0.0
        ranks = n if rounds else k  # without scaling, ranks beyond the cut-off have no part
        wait()
        for r in shared_range(0, ranks):
            left[r], right[r] = _soft_row(r, gap, P[r])
        band = (left[:ranks], right[:ranks])
        wait()
        _scale(P, band, rounds, n, us, vs)
        total = once(lists.best[q])
        for r in shared_range(0, k):
            for j in range(left[r], right[r]):
                total -= d[r] * us[rounds, r] * P[r, j] * vs[rounds, j] * b[j]  # (2)
        value[q] = weight[q] * team_sum(total)
        if len(grad):
            _scale_back(P, band, rounds, d, b, us, vs, room[4], room[5], pull)
            _gradient(P, band, pull, first, end, room[6], room[7], x)
            for j in shared_range(0, n):
                grad[row[ranked[j]]] = weight[q] * x[j] / temperature


@kernel
def _gaps_and_ties(ranked, x, gap, first, end):  # type: ignore[no-untyped-def]
    """Write how far each document is above the next, and where its ties begin and end."""
    start = 0
    for j in range(len(ranked)):
        last = j + 1 == len(ranked)
        gap[j] = 0.0 if last else x[ranked[j]] - x[ranked[j + 1]]
        if last or gap[j] > 0.0:
            for i in range(start, j + 1):
                first[i], end[i] = start, j + 1
            start = j + 1


@kernel
def _soft_row(r, gap, p):  # type: ignore[no-untyped-def]
    """Write the row of rank r, from 0, to ``p[left:right]``; return left and right.

    From (1), z falls to both sides of the document at rank r: by (2 i - 1) times the gap to the
    next at the i-th step.
    """
    p[r] = total = 1.0
    left, right, z = r, r + 1, 0.0
    while left > 0:
        z -= gap[left - 1] * (2 * (r - left) + 1)
        if z < _NEGLIGIBLE:
            break
        left -= 1
        p[left] = math.exp(z)
        total += p[left]
    z = 0.0
    while right < len(gap):
        z -= gap[right - 1] * (2 * (right - r) - 1)
        if z < _NEGLIGIBLE:
            break
        p[right] = math.exp(z)
        total += p[right]
        right += 1
    for j in range(left, right):
        p[j] /= total
    return left, right


@quick_kernel
def _scale(P, band, rounds, n, us, vs):  # type: ignore[no-untyped-def]
    """Write u and v of (3) for each round; those of round 0 are 1."""
    left, right = band
    us[0, : len(left)] = 1.0
    vs[0, :n] = 1.0
    for t in range(1, rounds + 1):
        v = vs[t, :n]
        v[:] = 0.0
        wait()
        for r in range(len(left)):
            u = us[t - 1, r]
            for j in shared_range(left[r], right[r]):
                v[j] += u * P[r, j]
        for j in shared_range(0, n):
            v[j] = 1.0 / v[j]
        wait()
        for r in shared_range(0, len(left)):
            total = 0.0
            for j in range(left[r], right[r]):
                total += P[r, j] * v[j]
            us[t, r] = 1.0 / total
        wait()


@quick_kernel
def _scale_back(P, band, rounds, d, b, us, vs, du, dv, pull):  # type: ignore[no-untyped-def]
    """Write dL/dP, with P that of (1), to ``pull``: from (2) back through each round of (3)."""
    left, right = band
    u, v = us[rounds], vs[rounds]
    dv[: len(b)] = 0.0
    wait()
    for r in shared_range(0, len(left)):
        du[r] = 0.0
        for j in range(left[r], right[r]):
            pull[r, j] = -d[r] * u[r] * v[j] * b[j]
            du[r] -= d[r] * P[r, j] * v[j] * b[j]
    for r in range(len(left)):
        for j in shared_range(left[r], right[r]):
            dv[j] -= d[r] * u[r] * P[r, j] * b[j]
    wait()
    for t in range(rounds, 0, -1):
        u, v = us[t], vs[t]
        for r in range(len(left)):
            turn = -du[r] * u[r] * u[r]
            for j in shared_range(left[r], right[r]):
                pull[r, j] += turn * v[j]
                dv[j] += turn * P[r, j]
        for j in shared_range(0, len(b)):
            dv[j] *= -v[j] * v[j]
        for r in range(len(left)):
            before, total = us[t - 1, r], 0.0
            for j in shared_range(left[r], right[r]):
                pull[r, j] += before * dv[j]
                total += P[r, j] * dv[j]
            du[r] = team_sum(total)
        wait()
        dv[: len(b)] = 0.0
        wait()


@quick_kernel
def _gradient(P, band, pull, first, end, sums, before, out):  # type: ignore[no-untyped-def]
    """Write (4)."""
    left, right = band
    n = len(out)
    out[:] = 0.0
    sums[:] = 0.0
    wait()
    for r in range(len(left)):
        mean = 0.0
        for j in shared_range(left[r], right[r]):
            mean += P[r, j] * pull[r, j]
        mean = team_sum(mean)
        for j in shared_range(left[r], right[r]):
            g = P[r, j] * (pull[r, j] - mean)
            out[j] += (n - 1 - 2 * r) * g
            sums[j] += g
    wait()
    before[0] = 0.0
    for j in range(n):
        before[j + 1] = before[j] + sums[j]
    wait()
    for j in shared_range(0, n):
        others = before[n] - before[end[j]] - before[first[j]]
        out[j] -= sums[j] * (n - end[j] - first[j]) + others


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class NeuralNDCG(Part):
    """What NDCG loses when the sort itself is made soft.

    Parameters
    ----------
    metric : str or Metric
        The metric: ndcg, dcg, p or another sum over ranks, with a cut-off as in ``ndcg@10``, under
        the standard convention.
    temperature : float
        How soft the sort is; small values come close to the metric itself.
    sinkhorn : int
        Rounds of scaling by which every document is counted at one rank in all.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.NeuralNDCG(temperature=0.5), model="linear")
    Ranker(loss=NeuralNDCG(temperature=0.5))
    """

    metric: AnyMetric = "ndcg"
    temperature: float = 1.0
    sinkhorn: int = 10

    traits: ClassVar[Traits] = Traits(family="listwise", queries=True, smooth=False)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_above_zero("neural_ndcg's temperature", self.temperature)
        check_whole("neural_ndcg's sinkhorn", self.sinkhorn, 0)
        lists = gain_lists("neural_ndcg", self.metric, data)
        rounds = int(self.sinkhorn)
        order = np.empty((6, len(lists.row)), np.int64)
        args = (lists, float(self.temperature), rounds, order)

        def floats(sizes: I64, _lanes: int) -> I64:
            return 8 * (sizes + 1) + 2 * (rounds + 1) * sizes + 2 * sizes * sizes

        return KernelLoss(_queries, data, *args, scratch=floats, team=True, n_jobs=n_jobs)
