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
e_rj = dL/dP_rj, for the P of (1), and G_rj = dL/dz_rj,

    G_rj = P_rj (e_rj - sum_l P_rl e_rl)                                                        (4)

Scaling a row of P by a number changes u alone, and scaling a column v alone. So with rounds of (3)
sum_r P_rj e_rj = 0, and the sum in (4) is dL/du_r of the u before the first round. e itself is a
sum of two products of a vector by rank and one by document for each round, and is not formed. With
c_r = n + 1 - 2 r and S_j = sum_r G_rj

    T dL/ds_j = sum_r c_r G_rj - sum_l (S_j + S_l) sign(s_j - s_l)                              (5)

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
from rankwright.core.team import member, members, new_table, once, shared_range, team_sum, wait
from rankwright.core.types import I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import KernelLoss
from rankwright.losses.gain_lists import gain_lists
from rankwright.metrics.base import AnyMetric

_NEGLIGIBLE = -50.0  # of a logarithm: its exponential is lost beside 1
_VECTORS = 10  # of a query, beside those of each round

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(  # type: ignore[no-untyped-def]
    lo, hi, indptr, s, lists, temperature, rounds, order, scratch, weight, value, grad, curv
):
    most = longest(lo, hi, lists.begin)
    vectors = _VECTORS + 3 * (rounds + 1)
    room = new_table(scratch, lo, 0, vectors, most + 1)
    by_rank = new_table(scratch, lo, vectors * (most + 1), most, most)
    by_document = new_table(scratch, lo, vectors * (most + 1) + most * most, most, most)
    us = room[_VECTORS : _VECTORS + rounds + 1]
    vs = room[_VECTORS + rounds + 1 : _VECTORS + 2 * (rounds + 1)]
    tilts = room[_VECTORS + 2 * (rounds + 1) :]
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        row = lists.row[lists.begin[q] : lists.begin[q + 1]]
        n, k = len(row), lists.cut[q]
        gap, b, d, x, c = room[0, :n], room[1, :n], room[2, :n], room[3, :n], room[4, :n]
        at, past = lists.begin[q], lists.begin[q + 1]
        ranked, spare = order[0, at:past], order[1, at:past]
        first, end = order[2, at:past], order[3, at:past]
        for j in shared_range(0, n):
            x[j] = s[row[j]] / temperature
        wait()
        sort_query(0, n, x, NO_KEY, ranked, spare)
        _gaps_and_ties(ranked, x, gap, first, end)
        for j in shared_range(0, n):
            b[j] = lists.gain[at + ranked[j]]
            d[j] = lists.discount[j] if j < k else 0.0
            c[j] = n - 1 - 2 * j
        ranks = n if rounds else k  # without scaling, ranks beyond the cut-off have no part
        documents = (order[4, at : at + ranks], order[5, at : at + ranks])
        P = (by_rank, by_document, documents, (order[6, at:past], order[7, at:past]))
        wait()
        _soft_sort(gap, P)
        _scale(P, rounds, c, us, vs, tilts)
        for j in shared_range(0, n):
            x[j] = vs[rounds, j] * b[j]
        wait()
        mean, total = room[5, :ranks], once(lists.best[q])
        for r in shared_range(0, ranks):
            mean[r] = _over_documents(P, r, x) if r < k else 0.0
            total -= d[r] * us[rounds, r] * mean[r]  # (2)
        value[q] = weight[q] * team_sum(total)
        wait()
        if len(grad):
            turn, dv, sums = room[6, :ranks], room[7, :n], room[8, :n]
            _back(P, rounds, (b, c, d, mean), (us, vs, tilts), (turn, dv), sums, x)
            _subtract_gaps(sums, first, end, room[9], x)
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
def _soft_sort(gap, P):  # type: ignore[no-untyped-def]
    """Write (1), by ranks and by documents, and which of them have a part in each other."""
    by_rank, by_document, (left, right), (top, bottom) = P
    n, ranks, team = len(gap), len(left), members() > 1
    for j in shared_range(0, n if team else 0):
        for r in range(ranks):
            by_rank[r, j] = 0.0  # a team goes through all that any of its members needs
    wait()
    for r in shared_range(0, ranks):
        left[r], right[r] = _soft_row(r, gap, by_rank[r])
    wait()
    first = end = 0
    for j in range(n):  # left and right rise with the rank
        while first < ranks and right[first] <= j:
            first += 1
        while end < ranks and left[end] <= j:
            end += 1
        top[j], bottom[j] = first, end
    wait()
    for j in shared_range(0, n):
        for r in range(0 if team else top[j], ranks if team else bottom[j]):
            by_document[j, r] = by_rank[r, j] if left[r] <= j < right[r] else 0.0
    wait()


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
def _over_documents(P, r, x):  # type: ignore[no-untyped-def]
    """Return sum_j P_rj x_j."""
    by_rank, by_document, (left, right), _ = P
    begin, end = _needed_by_team(r, left, right)
    row, total = np.uint64(r), 0.0
    for j in range(begin, end):
        total += x[j] * (by_document[j, row] if members() > 1 else by_rank[row, j])
    return total


@quick_kernel
def _over_ranks(P, j, x, c):  # type: ignore[no-untyped-def]
    """Return sum_r P_rj x_r and sum_r c_r P_rj x_r."""
    by_rank, by_document, _, (top, bottom) = P
    begin, end = _needed_by_team(j, top, bottom)
    row, total, tilt = np.uint64(j), 0.0, 0.0
    for r in range(begin, end):
        part = x[r] * (by_rank[r, row] if members() > 1 else by_document[row, r])
        total += part
        tilt += c[r] * part
    return total, tilt


@kernel
def _needed_by_team(i, begin, end):  # type: ignore[no-untyped-def]
    """Return where the range of row i begins and ends; for a team one that holds all its members'.

    Members then read side by side. Without a sign, indices do not count from the end, and loops are
    vectorised.
    """
    first = i - member()
    last = min(first + members(), len(begin)) - 1
    return np.uint64(begin[first]), np.uint64(end[last])


@kernel
def _scale(P, rounds, c, us, vs, tilts):  # type: ignore[no-untyped-def]
    """Write u and v of (3) for each round, those of round 0 are 1, and sum_r c_r u_r P_rj."""
    _, _, (left, _), (top, _) = P
    us[0, : len(left)] = 1.0
    vs[0, : len(top)] = 1.0
    wait()
    for t in range(1, rounds + 1):
        for j in shared_range(0, len(top)):
            total, tilts[t, j] = _over_ranks(P, j, us[t - 1], c)
            vs[t, j] = 1.0 / total
        wait()
        for r in shared_range(0, len(left)):
            us[t, r] = 1.0 / _over_documents(P, r, vs[t])
        wait()


@kernel
def _back(P, rounds, terms, scales, room, sums, out):  # type: ignore[no-untyped-def]
    """Go back from (2) through (3): write S of (4) to ``sums``, the first sum of (5) to ``out``."""
    b, c, d, du = terms  # du: the mean gains by rank, and from here on dL/du
    us, vs, tilts = scales
    turn, dv = room
    u, v, n, ranks = us[rounds], vs[rounds], len(b), len(du)
    for r in shared_range(0, ranks):
        turn[r] = -d[r] * u[r]
        du[r] *= -d[r]
    wait()
    for j in shared_range(0, n):
        total, tilt = _over_ranks(P, j, turn, c)
        dv[j], out[j] = b[j] * total, v[j] * b[j] * tilt
    for t in range(rounds, 0, -1):
        u, v = us[t], vs[t]
        wait()
        for r in shared_range(0, ranks):
            turn[r] = -du[r] * u[r] * u[r]
        wait()
        for j in shared_range(0, n):
            total, tilt = _over_ranks(P, j, turn, c)
            total += dv[j] if t == rounds else 0.0
            dv[j] = -total * v[j] * v[j]
            out[j] += v[j] * tilt + dv[j] * tilts[t, j]
        wait()
        for r in shared_range(0, ranks):
            du[r] = _over_documents(P, r, dv)
    wait()
    for j in shared_range(0, n):
        total, tilt = _over_ranks(P, j, du, c)
        sums[j] = (0.0 if rounds else dv[j]) - total  # (4)
        out[j] -= tilt
    wait()


@kernel
def _subtract_gaps(sums, first, end, before, out):  # type: ignore[no-untyped-def]
    """Subtract the second sum of (5): tied documents, ``first:end``, have sign 0."""
    n = len(out)
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
        order = np.empty((8, len(lists.row)), np.int64)
        args = (lists, float(self.temperature), rounds, order)

        def floats(sizes: I64, _lanes: int) -> I64:
            return (_VECTORS + 3 * (rounds + 1)) * (sizes + 1) + 2 * sizes * sizes

        return KernelLoss(_queries, data, *args, scratch=floats, team=True, n_jobs=n_jobs)
