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

The gradient goes back through (3), u and v being kept for each round, and then through (1). With
e_rj = dL/dP_rj for the P of (1), G_rj = dL/dz_rj, c_r = n + 1 - 2 r and S_j = sum_r G_rj,

    G_rj = P_rj (e_rj - sum_l P_rl e_rl)                                                        (4)
    T dL/ds_j = sum_r c_r G_rj - sum_l (S_j + S_l) sign(s_j - s_l)                              (5)

where tied documents have sign 0: the loss has kinks at ties. The differences in (1) grow with n, so
T is in units of n scores. A query of n documents takes time and memory in proportion to n^2.

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
from rankwright.core.parameters import CountOrZero, Part, Positive, check_parameters
from rankwright.core.team import new_table, once, shared_range, team_sum, wait
from rankwright.core.types import I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.gain_lists import gain_lists
from rankwright.losses.old_base import KernelLoss
from rankwright.metrics.base import AnyMetric

_VECTORS = 10  # of a query, in addition to u and v of each round

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(
    lo, hi, indptr, s, lists, temperature, rounds, order, scratch, weight, value, grad, curv
):
    most = longest(lo, hi, lists.begin)
    vectors = _VECTORS + 2 * (rounds + 1)
    room = new_table(scratch, lo, 0, vectors, most)
    P = new_table(scratch, lo, vectors * most, most, most)
    e = new_table(scratch, lo, (vectors + most) * most, most, most)
    us, vs = room[_VECTORS : _VECTORS + rounds + 1], room[_VECTORS + rounds + 1 :]
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        at, past = lists.begin[q], lists.begin[q + 1]
        row, n = lists.row[at:past], past - at
        ranked = order[0, at:past]
        unsorted, x, b, d, m = room[0, :n], room[1, :n], room[2, :n], room[3, :n], room[4, :n]
        for j in shared_range(0, n):
            unsorted[j] = s[row[j]] / temperature
            us[0, j] = vs[0, j] = 1.0
        wait()
        sort_query(0, n, unsorted, NO_KEY, ranked, order[1, at:past])
        for j in shared_range(0, n):
            x[j] = unsorted[ranked[j]]
            b[j] = lists.gain[at + ranked[j]]
            d[j] = lists.discount[j] if j < lists.cut[q] else 0.0
        wait()
        for r in shared_range(0, n):
            _soft_row(r, x, P[r])
        wait()
        for t in range(1, rounds + 1):
            _over_ranks(P, us[t - 1, :n], vs[t, :n])
            _invert(vs[t, :n])
            _over_documents(P, vs[t, :n], us[t, :n])
            _invert(us[t, :n])
        vb, total = room[5, :n], once(lists.best[q])
        for j in shared_range(0, n):
            vb[j] = vs[rounds, j] * b[j]
        wait()
        _over_documents(P, vb, m)
        for r in shared_range(0, n):
            total -= d[r] * us[rounds, r] * m[r]  # (2)
        value[q] = weight[q] * team_sum(total)
        wait()
        if len(grad):
            _derivative(P, us, vs, b, d, m, vb, room[6:], e)
            sums, out = room[6, :n], room[7, :n]
            _through_soft_sort(P, e, x, sums, out)
            for j in shared_range(0, n):
                grad[row[ranked[j]]] = weight[q] * out[j] / temperature


@kernel
def _soft_row(r, x, p):
    """Write the row of rank r, from 0, of (1), for scores in descending order.

    From (1), z falls on both sides of document r: by (2 i - 1) times the gap at the i-th step.
    """
    n = len(x)
    p[r] = total = 1.0
    z = 0.0
    for j in range(r - 1, -1, -1):
        z -= (x[j] - x[j + 1]) * (2 * (r - j) - 1)
        p[j] = math.exp(z)
        total += p[j]
    z = 0.0
    for j in range(r + 1, n):
        z -= (x[j - 1] - x[j]) * (2 * (j - r) - 1)
        p[j] = math.exp(z)
        total += p[j]
    for j in range(n):
        p[j] /= total


@quick_kernel
def _over_documents(P, x, out):
    """Write sum_j P_rj x_j for each rank."""
    for r in shared_range(0, len(x)):
        total = 0.0
        for j in range(len(x)):
            total += P[r, j] * x[j]
        out[r] = total
    wait()


@kernel
def _over_ranks(P, x, out):
    """Write sum_r P_rj x_r for each document."""
    for j in shared_range(0, len(x)):
        out[j] = 0.0
    for r in range(len(x)):
        for j in shared_range(0, len(x)):
            out[j] += P[r, j] * x[r]
    wait()


@kernel
def _invert(x):
    for i in shared_range(0, len(x)):
        x[i] = 1.0 / x[i]
    wait()


@kernel
def _derivative(P, us, vs, b, d, m, vb, room, e):
    """Write dL/dP to ``e``, going back from (2) through the rounds of (3)."""
    n, rounds = len(b), len(us) - 1
    du, dv, turn, back = room[0, :n], room[1, :n], room[2, :n], room[3, :n]
    for r in shared_range(0, n):
        du[r] = -d[r] * m[r]
        turn[r] = -d[r] * us[rounds, r]
        for j in range(n):
            e[r, j] = turn[r] * vb[j]
    wait()
    _over_ranks(P, turn, dv)
    for j in shared_range(0, n):
        dv[j] *= b[j]
    for t in range(rounds, 0, -1):
        for r in shared_range(0, n):
            turn[r] = -du[r] * us[t, r] ** 2
        wait()
        _over_ranks(P, turn, back)
        for j in shared_range(0, n):
            dv[j] = -(dv[j] + back[j]) * vs[t, j] ** 2
        wait()
        _over_documents(P, dv, du)
        for r in shared_range(0, n):
            for j in range(n):
                e[r, j] += turn[r] * vs[t, j] + us[t - 1, r] * dv[j]
        wait()
        for j in shared_range(0, n):
            dv[j] = 0.0


@kernel
def _through_soft_sort(P, e, x, sums, out):
    """Write (5), times T, to ``out`` and S to ``sums``; ``e`` becomes G of (4)."""
    n = len(x)
    for r in shared_range(0, n):
        mean = 0.0
        for j in range(n):
            mean += P[r, j] * e[r, j]
        for j in range(n):
            e[r, j] = P[r, j] * (e[r, j] - mean)  # (4)
    for j in shared_range(0, n):
        sums[j] = out[j] = 0.0
    wait()
    for r in range(n):
        for j in shared_range(0, n):
            sums[j] += e[r, j]
            out[j] += (n - 1 - 2 * r) * e[r, j]
    wait()
    for j in shared_range(0, n):
        for i in range(n):
            if x[i] > x[j]:
                out[j] += sums[j] + sums[i]  # (5)
            elif x[i] < x[j]:
                out[j] -= sums[j] + sums[i]


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
    temperature: Positive = 1.0
    sinkhorn: CountOrZero = 10

    traits: ClassVar[Traits] = Traits(smooth=False)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        lists = gain_lists("neural_ndcg", self.metric, data)
        rounds = int(self.sinkhorn)
        order = np.empty((2, len(lists.row)), np.int64)
        args = (lists, float(self.temperature), rounds, order)

        def floats(sizes: I64, _lanes: int) -> I64:
            return (_VECTORS + 2 * (rounds + 1)) * sizes + 2 * sizes * sizes

        return KernelLoss(_queries, data, *args, scratch=floats, team=True, n_jobs=n_jobs)
