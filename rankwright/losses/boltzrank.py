"""What a ranking metric loses on average over rankings sampled by their energy (BoltzRank).

The energy of a ranking R of n documents, in which i is at rank r_i, is (`volkovs2009boltzrank`)

    E(R) = 2 / (n (n - 1)) sum over j below i of (r_j - r_i) (s_j - s_i) sharpness
         = 2 / (n - 1) sum_i (r_i - mean rank) s_i sharpness                                    (1)

plus, with a weight ``pair_potential`` = beta, a potential of pairs that levels off for scores far
apart, so that no pair of documents can outvote the others:

    2 beta / (n - 1) sum over j below i of tanh(s_j - s_i)                                      (2)

Rankings have the probability P(R) = exp(-E(R)) / Z. With N(R) the metric, a sum over ranks, and Q
the same distribution made of grades in place of scores,

    L(s) = best - sum_R P(R) N(R)  +  divergence sum_R Q(R) log(Q(R) / P(R))                    (3)

Z, P, Q and (3) are sums over ``samples`` sampled rankings, as in the paper. Every second one is
sampled from the grades by Plackett-Luce, in order of g_i + Gumbel noise, and the others uniformly,
so that the samples contain both good and ordinary rankings. The noise is a hash of seed, round,
query number, sample and position. It does not depend on the scores, so that (3) is a smooth
function within a round, with the gradient

    dL/ds_k = sum_R P(R) (N(R) - mean N) dE(R)/ds_k + divergence sum_R (Q(R) - P(R)) dE(R)/ds_k (4)

The **curvature** bounds the diagonal of the Hessian: in place of N - mean N stands its size.
**Weights**: ranks are held by whole documents; one of weight 0 is left out, any other counts like
the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import (
    clear_query,
    copy_values,
    hash_step,
    hash_uniform,
    longest,
    query_seed,
)
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import NonNegative, Part, at_least, check_parameters
from rankwright.core.types import F64, AnyArray, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.gain_lists import gain_lists
from rankwright.losses.old_base import SampledLoss, new_random_key
from rankwright.metrics.base import AnyMetric


class _Terms(NamedTuple):
    y: F64
    random_key: AnyArray
    samples: int
    sharpness: float
    beta: float
    divergence: float


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, lists, terms, weight, value, grad, curv):
    y, random_key, samples, sharpness, beta, divergence = terms
    most = longest(lo, hi, lists.begin)
    rankings = np.empty((samples, most), np.int64)
    pulls = np.empty(rankings.shape) if len(grad) else np.empty((0, 0))
    of, places = np.empty((5, samples)), np.empty((4, most))
    pairs = np.empty((most, most)) if beta != 0.0 else np.empty((0, 0))
    order = np.empty((2, most), np.int64)
    for q in range(lo, hi):
        clear_query(q, indptr, value, grad, curv)
        if weight[q] == 0.0:
            continue
        row = lists.row[lists.begin[q] : lists.begin[q + 1]]
        n = len(row)
        x, grades, gradient, curvature = places[0, :n], places[1, :n], places[2, :n], places[3, :n]
        for i in range(n):
            x[i], grades[i] = s[row[i]], y[row[i]]
        _sample_rankings(query_seed(random_key, q), grades, gradient, order, rankings)
        sampled = rankings[:, :n]
        gain = lists.gain[lists.begin[q] : lists.begin[q + 1]]
        _metrics(sampled, gain, lists.discount, lists.cut[q], of[0])
        _log_chances(sampled, grades, sharpness, beta, pairs, of[1])
        _log_chances(sampled, x, sharpness, beta, pairs, of[2])
        value[q] = weight[q] * (lists.best[q] + _loss(divergence, of))
        if len(grad):
            _gradients(sampled, sharpness, beta, pairs, of, pulls, gradient)
            for i in range(n):
                grad[row[i]] = weight[q] * gradient[i]
        if len(curv):
            _curvatures(sampled, beta, pairs, divergence, of, pulls, curvature)
            for i in range(n):
                curv[row[i]] = weight[q] * curvature[i]


@kernel
def _sample_rankings(seed, grades, noisy, order, rankings):
    """Write rankings: row m holds the document at each rank."""
    n = len(grades)
    for m in range(len(rankings)):
        state = hash_step(seed, m)
        if m % 2 == 0:
            for i in range(n):
                u = max(hash_uniform(hash_step(state, i)), 2.0**-54)
                noisy[i] = grades[i] - math.log(-math.log(u))
            sort_query(0, n, noisy, NO_KEY, order[0], order[1])
            copy_values(order[0, :n], rankings[m])
        else:
            for r in range(n):
                other = int(hash_uniform(hash_step(state, r)) * (r + 1))
                rankings[m, r] = rankings[m, other]
                rankings[m, other] = r


@kernel
def _metrics(sampled, gain, discount, cut, out):
    for m in range(len(sampled)):
        out[m] = 0.0
        for r in range(cut):
            out[m] += discount[r] * gain[sampled[m, r]]


@kernel
def _log_chances(sampled, x, sharpness, beta, pairs, out):
    """Write log P of each ranking for scores ``x``; ``pairs`` keeps what (2) is made of."""
    n = sampled.shape[1]
    middle = 0.5 * (n - 1)
    if beta != 0.0:
        for i in range(n):
            for j in range(n):
                pairs[i, j] = math.tanh(x[i] - x[j])
    top = -np.inf
    for m in range(len(sampled)):
        lift = tilt = 0.0
        for r in range(n):
            lift += (middle - r) * x[sampled[m, r]]  # (1)
            if beta != 0.0:
                for below in range(r + 1, n):
                    tilt += pairs[sampled[m, r], sampled[m, below]]  # (2)
        out[m] = (sharpness * lift + beta * tilt) * 2.0 / (n - 1)
        top = max(top, out[m])
    total = 0.0
    for m in range(len(sampled)):
        total += math.exp(out[m] - top)
    for m in range(len(sampled)):
        out[m] -= top + math.log(total)


@kernel
def _loss(divergence, of):
    """Return (3) less best.

    Rows of ``of``: N, log Q, log P; then the gradient of (3) in log P, and its absolute value.

    The gradient is that of (4), with the sign of E; its size has no sign to cancel.
    """
    mean = apart = 0.0
    for m in range(of.shape[1]):
        mean += math.exp(of[2, m]) * of[0, m]
    for m in range(of.shape[1]):
        p, q = math.exp(of[2, m]), math.exp(of[1, m])
        apart += q * (of[1, m] - of[2, m]) if q > 0.0 else 0.0
        of[3, m] = p * (mean - of[0, m]) + divergence * (p - q)
        of[4, m] = p * abs(of[0, m] - mean)
    return divergence * apart - mean


@kernel
def _gradients(sampled, sharpness, beta, pairs, of, pulls, gradient):
    """Write -dE(R)/ds_k to ``pulls`` and the gradient (4) to ``gradient``."""
    count, n = sampled.shape
    middle, unit = 0.5 * (n - 1), 2.0 / (n - 1)
    gradient[:] = 0.0
    for m in range(count):
        for r in range(n):
            k = sampled[m, r]
            pull = sharpness * (middle - r)
            if beta != 0.0:
                for other in range(n):
                    level = pairs[k, sampled[m, other]]
                    if other != r:
                        pull += beta * (1.0 - level * level) * (1.0 if other > r else -1.0)
            pulls[m, k] = unit * pull
        for k in range(n):
            gradient[k] += of[3, m] * pulls[m, k]


@kernel
def _curvatures(sampled, beta, pairs, divergence, of, pulls, curvature):
    """Write a bound on the diagonal of the Hessian."""
    count, n = sampled.shape
    size = 0.0
    for m in range(count):
        size += of[4, m]
    for k in range(n):
        mean = 0.0
        for m in range(count):
            mean += math.exp(of[2, m]) * pulls[m, k]
        curvature[k] = 0.0
        for m in range(count):
            apart = pulls[m, k] - mean
            curvature[k] += (of[4, m] + divergence * math.exp(of[2, m])) * apart * apart
        if beta != 0.0:
            turn = 0.0  # no ranking bends the sum of (2) by more
            for j in range(n):
                turn += 2.0 * abs(pairs[k, j]) * (1.0 - pairs[k, j] * pairs[k, j])
            curvature[k] += (size + 2.0 * divergence) * abs(beta) * turn * 2.0 / (n - 1)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class BoltzRank(Part):
    """What a ranking metric loses on average over rankings sampled by their energy.

    Parameters
    ----------
    metric : str or Metric
        The metric: ndcg, dcg, p or another sum over ranks, with a cut-off as in ``ndcg@10``, under
        the standard convention.
    divergence : float
        Weight of the divergence of the rankings by score from those by grade.
    pair_potential : float
        Weight of the potential of pairs, which levels off for scores far apart.
    sharpness : float
        How much a ranking's energy is worth: large values leave the best ranking alone.
    samples : int
        Number of rankings sampled for a query in each round; at least 2.
    random_state : int
        Of the samples.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.BoltzRank(samples=64), model="linear")
    Ranker(loss=BoltzRank(samples=64))
    """

    metric: AnyMetric = "ndcg"
    divergence: NonNegative = 1.0
    pair_potential: NonNegative = 0.0
    sharpness: NonNegative = 5.0
    samples: Annotated[int, at_least(2)] = 32
    random_state: int = 0

    traits: ClassVar[Traits] = Traits(stochastic=True)

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        self._check()
        lists = gain_lists("boltzrank", self.metric, data)
        random_key = new_random_key(self.random_state)
        terms = _Terms(
            y=data.y,
            random_key=random_key,
            samples=int(self.samples),
            sharpness=float(self.sharpness),
            beta=float(self.pair_potential),
            divergence=float(self.divergence),
        )

        return SampledLoss(random_key, _queries, data, lists, terms, curvature=True, n_jobs=n_jobs)

    def _check(self) -> None:
        check_parameters(self)
