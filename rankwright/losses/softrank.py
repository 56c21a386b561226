"""What a ranking metric loses on average when every score is shaken by Gaussian noise (SoftRank).

Scores are independent normal variables around s with standard deviation sigma, so every document
has a distribution over ranks. For a metric that is a sum over ranks of discount d by rank times
gain b by document,

    L(s) = best - sum_i b_i E_i,     E_i = sum_r d_r P(document i is at rank r)                 (1)

with best the metric of the best order: 1 for NDCG (`taylor2008softrank`). The rank of i is one
more than the number of documents above it, and each adds one with its own probability p:

    P(r) <- (1 - p) P(r) + p P(r - 1)     for every other document                              (2)

Ranks beyond the cut-off k never come back, so a query costs O(n^2 k); documents without a gain cost
nothing.

``form="recursion"`` is the paper's: p_ij = Phi((s_j - s_i) / (sqrt(2) sigma)), as if the pairs of
one document were independent. They are not, since all hold its own score: an unlucky sample puts it
below many others at once. ``form="exact"`` averages (2) over that score, by Gauss-Hermite
quadrature; given s_i + sigma z, p_ij = Phi((s_j - s_i) / sigma - z), and these are independent.
With nearly equal scores the ranks of the recursion crowd around n/2, and a cut-off far above that
leaves no gradient to start from: take ndcg without one, or the exact form.

The gradient is that of (1), by going through (2) backwards. The **curvature** bounds the diagonal
of the Hessian: with gradient g_ij of the pair i, j, and u the argument of Phi over its scale tau,
it is the sum over pairs of |g_ij| (1 + |u|) / tau, plus what E_i bends down as two probabilities
move together: nothing where the discounts are convex to the last rank. No Newton step is longer
than tau.

**Weights**: ranks are held by whole documents; one of weight 0 is left out, any other counts like
the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rankwright.core.jit import inline_kernel, kernel, quick_kernel
from rankwright.core.kernels import clear_query, longest
from rankwright.core.parameters import Count, Part, Positive, check_parameters
from rankwright.core.team import (
    member,
    members,
    new_floats,
    once,
    own_table,
    shared_range,
    team_sum,
    wait,
    zero,
)
from rankwright.core.types import F64, I64, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.gain_lists import gain_lists
from rankwright.losses.old_base import KernelLoss
from rankwright.metrics.base import AnyMetric

_ROOT_HALF = math.sqrt(0.5)
_NEGLIGIBLE = 1e-17  # of a node's share: its chances are not worth computing
_PEAK = 1.0 / math.sqrt(2.0 * math.pi)
_LEAST_WORKERS = 4
_ROOM = 1 << 20  # numbers that the workers of a query may take on a GPU, unless so few need more


class _Terms(NamedTuple):
    convex: bool  # whether the discounts are
    nodes: F64  # of the quadrature
    share: F64  # weight of each node
    tau: float


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, lists, terms, scratch, weight, value, grad, curv):
    convex, nodes, share, tau = terms
    most, depth = longest(lo, hi, lists.begin), 0
    for q in range(lo, hi):
        depth = max(depth, lists.cut[q])
    size = _floats_of_worker(most, depth)
    workers = min(members(), max(_LEAST_WORKERS, _ROOM // size))  # each with documents of its own
    x, room = new_floats(scratch, lo, 0, most), new_floats(scratch, lo, most, workers * size)
    zero(room)
    worker, used = min(member(), workers - 1), 5 * most
    pairs = own_table(room, 0, 5, most, workers, worker)
    ranks = own_table(room, used, 4, depth + 2, workers, worker)
    used += 4 * (depth + 2)
    states = own_table(room, used, most + 1, depth + 1, workers, worker)
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        row = lists.row[lists.begin[q] : lists.begin[q + 1]]
        gain = lists.gain[lists.begin[q] : lists.begin[q + 1]]
        n, k = len(row), lists.cut[q]
        for j in shared_range(0, n):
            x[j] = s[row[j]] / tau
        wait()
        gradient, curvature, u = pairs[0, :n], pairs[1, :n], pairs[2, :n]
        above, dense = pairs[3, :n], pairs[4, :n]
        total = once(lists.best[q])
        if member() < workers:
            for j in range(n):
                gradient[j] = curvature[j] = 0.0
            i = _following(-1, member() + 1, gain)
            while i < n:
                for m in range(len(nodes)):
                    _chances(i, x[:n], nodes[m], len(grad) > 0, u, above, dense)
                    part = gain[i] * share[m]
                    total -= part * _expected(i, above, lists.discount, k, states)
                    if len(grad):
                        _gradients(
                            i, part, above, dense, u, lists.discount, k, states, ranks,
                            gradient, curvature,
                        )  # fmt: skip
                    if len(curv) and not (convex and k == n):
                        mixed = _second(i, above, dense, lists.discount, k, ranks)
                        curvature[i] += part * max(0.0, -mixed)
                i = _following(i, workers, gain)
        value[q] = weight[q] * team_sum(total)
        wait()
        if len(grad):
            for j in shared_range(0, n):
                grad[row[j]] = weight[q] * _over_workers(j, workers, room) / tau
        if len(curv):
            for j in shared_range(0, n):
                bent = _over_workers(most + j, workers, room)
                curv[row[j]] = weight[q] * bent / (tau * tau)
        wait()


@kernel
def _following(i, steps, gain):
    """Return which document with a gain is so many steps after i, or how many there are in all."""
    while steps > 0:
        i += 1
        if i == len(gain):
            return i
        steps -= 1 if gain[i] != 0.0 else 0
    return i


@inline_kernel
def _floats_of_worker(most, depth):
    return 5 * most + 4 * (depth + 2) + (most + 1) * (depth + 1)


@kernel
def _over_workers(j, workers, room):
    """Return the sum of the numbers j of all workers, in their order."""
    total = room[j * workers]
    for worker in range(1, workers):
        total += room[j * workers + worker]
    return total


@quick_kernel
def _chances(i, x, z, gradients, u, above, dense):
    """Write the chance of each document to stand above i, and its derivative."""
    for j in range(len(x)):
        u[j] = x[j] - x[i] - z
        above[j] = 0.5 * math.erfc(-_ROOT_HALF * u[j])
    if gradients:
        for j in range(len(x)):
            dense[j] = _PEAK * math.exp(-0.5 * u[j] * u[j])


@quick_kernel
def _expected(i, above, discount, k, states):
    """Return E_i of (1); row j of ``states`` holds P of (2) before document j, from column 1."""
    states[0, 1] = 1.0
    for j in range(len(above)):
        before, after = states[j], states[j + 1]
        p = above[j] if j != i else 0.0
        reach = min(k, j + 2)  # so far, no rank beyond can be reached
        if j + 2 <= k:
            before[reach] = 0.0
        for r in range(1, reach + 1):
            after[r] = before[r] + p * (before[r - 1] - before[r])  # (2)
    total = 0.0
    for r in range(k):
        total += discount[r] * states[len(above), r + 1]
    return total


@quick_kernel
def _gradients(i, part, above, dense, u, discount, k, states, ranks, gradient, curvature):
    """Take the gradient of ``part`` times E_i off ``gradient``, going back through (2)."""
    worth, before_j = ranks[0], ranks[1]  # of rank r to i, once the documents from j on have come
    for r in range(k):
        worth[r] = discount[r]
    worth[k] = before_j[k] = 0.0
    own = around = 0.0
    for j in range(len(above) - 1, -1, -1):
        if j == i:
            continue
        before, p = states[j], above[j]
        change = 0.0
        reach = min(k, j + 1)
        for r in range(reach):
            change += before[r + 1] * (worth[r + 1] - worth[r])
        for r in range(reach):
            before_j[r] = worth[r] + p * (worth[r + 1] - worth[r])
        worth, before_j = before_j, worth
        pull = part * change * dense[j]
        bent = abs(pull) * (1.0 + abs(u[j]))
        gradient[j] -= pull
        curvature[j] += bent
        own += pull
        around += bent
    gradient[i] += own
    curvature[i] += around


@kernel
def _second(i, above, dense, discount, k, ranks):
    """Return how E_i bends along s_i by two probabilities that move together."""
    p0, p1, p2 = ranks[1], ranks[2], ranks[3]  # P and its first two derivatives, from index 1
    p0[:] = 0.0
    p1[:] = 0.0
    p2[:] = 0.0
    p0[1] = 1.0
    for j in range(len(above)):
        if j == i:
            continue
        p, d = above[j], -dense[j]
        for r in range(k, 0, -1):
            p2[r] += p * (p2[r - 1] - p2[r]) + 2.0 * d * (p1[r - 1] - p1[r])
            p1[r] += p * (p1[r - 1] - p1[r]) + d * (p0[r - 1] - p0[r])
            p0[r] += p * (p0[r - 1] - p0[r])
    total = 0.0
    for r in range(k):
        total += discount[r] * p2[r + 1]
    return total


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class SoftRank(Part):
    """What a ranking metric loses on average under Gaussian noise on the scores.

    Parameters
    ----------
    metric : str or Metric
        The metric: ndcg, dcg, p or another sum over ranks, with a cut-off as in ``ndcg@10``, under
        the standard convention.
    sigma : float
        Standard deviation of the noise; the smaller, the closer to the metric itself.
    form : "recursion" or "exact"
        Take the pairs of a document as independent, as the paper does, or average over its score.
    nodes : int
        Points of the quadrature of the exact form. 32 hold the value to 0.001 and more; long lists
        of nearly equal scores need more for the same precision in the gradient.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.SoftRank(sigma=0.5), model="linear")
    Ranker(loss=SoftRank(sigma=0.5))
    """

    metric: AnyMetric = "ndcg"
    sigma: Positive = 1.0
    form: Literal["recursion", "exact"] = "recursion"
    nodes: Count = 32

    traits: ClassVar[Traits] = Traits()

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        nodes, share, tau = np.zeros(1), np.ones(1), math.sqrt(2.0) * self.sigma
        if self.form == "exact":
            nodes, share = np.polynomial.hermite_e.hermegauss(int(self.nodes))
            nodes, share = nodes[share > _NEGLIGIBLE], share[share > _NEGLIGIBLE]
            share, tau = share / share.sum(), float(self.sigma)
        lists = gain_lists("softrank", self.metric, data)
        convex = bool((np.diff(lists.discount, 2) >= 0.0).all())
        scratch = partial(_scratch_floats, int(lists.cut.max(initial=0)))
        args = (lists, _Terms(convex, nodes, share, tau))
        return KernelLoss(
            _queries, data, *args, curvature=True, scratch=scratch, team=True, n_jobs=n_jobs
        )


def _scratch_floats(deepest: int, sizes: I64, lanes: int) -> I64:
    """Return what x and the workers of each query need, whose ranks go to ``deepest`` at most."""
    size = 5 * sizes + 4 * (sizes + 2) + (sizes + 1) * (np.minimum(sizes, deepest) + 1)
    most = np.maximum(np.minimum(lanes * size, _ROOM), min(lanes, _LEAST_WORKERS) * size)
    floats: I64 = sizes + most
    return floats
