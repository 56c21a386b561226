"""BoltzRank: expected loss of a ranking metric over rankings sampled by their energy.

The energy of a ranking R of n documents, in which i is at rank r_i, is (`volkovs2009boltzrank`)

    E(R) = 2 / (n (n - 1)) sum over j below i of (r_j - r_i) (s_j - s_i) sharpness
         = 2 / (n - 1) sum_i (r_i - mean rank) s_i sharpness                                    (1)

plus, with a weight ``pair_potential`` = beta, a potential of pairs that is bounded for scores far
apart, so that no pair of documents can outvote the others:

    2 beta / (n - 1) sum over j below i of tanh(s_j - s_i)                                      (2)

Rankings have the probability P(R) = exp(-E(R)) / Z. With N(R) the metric, a sum over ranks, and Q
the same distribution with labels instead of scores,

    L(s) = best - sum_R P(R) N(R)  +  divergence sum_R Q(R) log(Q(R) / P(R))                    (3)

Z, P, Q and (3) are sums over ``samples`` sampled rankings, as in the paper. Every second one is
sampled from the labels by Plackett-Luce, in order of g_i + Gumbel noise, and the others uniformly,
so that the samples contain both good and ordinary rankings. The noise is a hash of seed, iteration,
query number, sample and position. It does not depend on the scores, so that (3) is a smooth
function within an iteration, with the gradient

    dL/ds_k = sum_R P(R) (N(R) - mean N) dE(R)/ds_k + divergence sum_R (Q(R) - P(R)) dE(R)/ds_k (4)

The **curvature** bounds the diagonal of the Hessian, with the absolute value of N - mean N.
**Weights**: each document has one rank. Documents of weight 0 are removed, all others count alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import copy_values, hash_step, hash_uniform, query_seed
from rankwright.core.order import NO_KEY, sort_query
from rankwright.core.parameters import NonNegative, at_least
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import BoundSample, KernelLoss, new_random_key
from rankwright.losses.gain_lists import gain_lists
from rankwright.metrics.base import AnyMetric


@kernel
def _boltzrank(queries, indptr, s, random_key, lists, y, parameters, value, grad, curv):
    gain, discount, cut, best = lists.gain, lists.discount, lists.cut, lists.best
    samples, sharpness, beta, divergence = parameters
    for q in queries:
        start, end = indptr[q], indptr[q + 1]
        n = end - start
        x, labels = s[start:end], y[start:end]
        rankings, pulls = np.empty((samples, n), np.int64), np.empty((samples, n))
        of, pairs = np.empty((5, samples)), np.empty((n, n) if beta != 0.0 else (0, 0))
        _sample_rankings(query_seed(random_key, q), labels, rankings)
        _metrics(rankings, gain[start:end], discount, cut[q], of[0])
        _log_probabilities(rankings, labels, sharpness, beta, pairs, of[1])
        _log_probabilities(rankings, x, sharpness, beta, pairs, of[2])
        value[q] = best[q] + _loss(divergence, of)
        _gradients(rankings, sharpness, beta, pairs, of, pulls, grad[start:end])
        _curvatures(rankings, beta, pairs, divergence, of, pulls, curv[start:end])


@kernel
def _sample_rankings(seed, labels, rankings):
    """Write rankings: row m has the document at each rank."""
    n = len(labels)
    noisy, order, spare = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for m in range(len(rankings)):
        state = hash_step(seed, m)
        if m % 2 == 0:
            for i in range(n):
                u = max(hash_uniform(hash_step(state, i)), 2.0**-54)
                noisy[i] = labels[i] - math.log(-math.log(u))
            sort_query(0, n, noisy, NO_KEY, order, spare)
            copy_values(order, rankings[m])
        else:
            for r in range(n):
                other = int(hash_uniform(hash_step(state, r)) * (r + 1))
                rankings[m, r] = rankings[m, other]
                rankings[m, other] = r


@kernel
def _metrics(sampled, gain, discount, cut, out):
    """Write the metric of each ranking."""
    for m in range(len(sampled)):
        out[m] = 0.0
        for r in range(cut):
            out[m] += discount[r] * gain[sampled[m, r]]


@kernel
def _log_probabilities(sampled, x, sharpness, beta, pairs, out):
    """Write log P of each ranking for scores ``x``, and to ``pairs`` the terms of (2)."""
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

    The rows of ``of`` are N, log Q and log P, which becomes P, and, written here, the gradient of
    (3) in log P and the absolute value of its first term.
    """
    mean = apart = 0.0
    for m in range(of.shape[1]):
        q = math.exp(of[1, m])
        apart += q * (of[1, m] - of[2, m]) if q > 0.0 else 0.0
        of[2, m] = math.exp(of[2, m])
        mean += of[2, m] * of[0, m]
    for m in range(of.shape[1]):
        p, q = of[2, m], math.exp(of[1, m])
        of[3, m] = p * (mean - of[0, m]) + divergence * (p - q)
        of[4, m] = p * abs(of[0, m] - mean)
    return divergence * apart - mean


@kernel
def _gradients(sampled, sharpness, beta, pairs, of, pulls, gradient):
    """Write -dE(R)/ds_k to ``pulls`` and the gradient (4) to ``gradient``."""
    count, n = sampled.shape
    middle, unit = 0.5 * (n - 1), 2.0 / (n - 1)
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
            mean += of[2, m] * pulls[m, k]
        for m in range(count):
            apart = pulls[m, k] - mean
            curvature[k] += (of[4, m] + divergence * of[2, m]) * apart * apart
        if beta != 0.0:
            turn = 0.0  # upper bound of the second derivative of (2) over rankings
            for j in range(n):
                turn += 2.0 * abs(pairs[k, j]) * (1.0 - pairs[k, j] * pairs[k, j])
            curvature[k] += (size + 2.0 * divergence) * abs(beta) * turn * 2.0 / (n - 1)


@dataclass(frozen=True, slots=True, repr=False)
class BoltzRank(KernelLoss):
    """Expected loss of a ranking metric over rankings sampled by their energy.

    Parameters
    ----------
    metric : str or Metric
        ndcg, dcg, p or another sum over ranks, with a cut-off as in ``ndcg@10``, under the standard
        convention.
    divergence : float
        Weight of the divergence between the distributions over rankings of labels and of scores.
    pair_potential : float
        Weight of the potential of pairs, which is bounded for scores far apart.
    sharpness : float
        Factor of the energy; with large values, only the best ranking has a probability.
    samples : int
        Number of rankings sampled per query and iteration; at least 2.
    random_state : int
        Seed of the samples.

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

    traits = Traits(stochastic=True)
    run = staticmethod(_boltzrank)
    bound_class = BoundSample

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the random key, the metric, the labels and the parameters."""
        lists = gain_lists("boltzrank", self.metric, data)
        weights = float(self.sharpness), float(self.pair_potential), float(self.divergence)
        return new_random_key(self.random_state), lists, data.y, (int(self.samples), *weights)
