"""Cross entropy against gains with random noise, a convex bound on NDCG (XE-NDCG).

With w_i the weight of document i and noise gamma_i, sampled uniformly from [0, 1) in each
iteration,

    rho_i = w_i exp(s_i) / sum_j w_j exp(s_j)                                                   (1)
    phi_i = w_i (2^g_i - gamma_i) / sum_j w_j (2^g_j - gamma_j)                                 (2)
    L(s)  = - sum_i phi_i log(rho_i / w_i) = log sum_j w_j exp(s_j) - sum_i phi_i s_i           (3)

(`bruch2021xendcg`). The gradient is rho - phi. The Hessian diag(rho) - rho rho' has the diagonal D
= rho (1 - rho), which is the curvature, and off-diagonal entries -R_ij = -rho_i rho_j. Its inverse
is D^-1 (1 + R D^-1 + (R D^-1)^2 + ...), so that the Newton step per document is D^-1 times

    lambda = (rho - phi) + R D^-1 (rho - phi) + (R D^-1)^2 (rho - phi) + ...                    (4)

``newton_terms=3``, as in LightGBM's ``rank_xendcg``, returns the first three terms as the gradient.
This suits boosting with Newton leaves, but is not the gradient of any function. The default 1 is
the gradient of (3).

The noise is a hash of seed, iteration, query number and position within the query (without
documents of weight 0), so that it depends neither on the number of threads nor on resumption.
``sampled=False`` uses the mean gamma = 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step, hash_uniform, query_seed
from rankwright.core.parameters import Count
from rankwright.core.types import Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.base import (
    BoundSample,
    KernelLoss,
    document_weight,
    exp2_of_grades,
    new_random_key,
)

_TINY = 1e-290  # if the other documents have less probability, the heaviest adds no Newton term


@kernel
def _xendcg(
    queries, indptr, s, random_key, power, w, sampled, newton_terms, rho, phi, value, grad, curv
):
    for q in queries:
        start, end = indptr[q], indptr[q + 1]
        seed = query_seed(random_key, q)
        heavy = start
        for i in range(start, end):
            noise = hash_uniform(hash_step(seed, i - start)) if sampled else 0.5
            phi[i] = w[i] * (power[i] - noise)
            heavy = i if s[i] > s[heavy] else heavy
        z = others = shares = 0.0
        for i in range(start, end):
            rho[i] = w[i] * math.exp(s[i] - s[heavy])
            z += rho[i]
            others += rho[i] if i != heavy else 0.0
            shares += phi[i]
        value[q] = math.log(z)
        for i in range(start, end):
            rho[i] /= z  # (1)
            phi[i] /= shares  # (2)
            value[q] += phi[i] * (s[heavy] - s[i])  # (3)
            curv[i] = rho[i] * (1.0 - rho[i] if i != heavy else others / z)
        query = slice(start, end)
        _newton(rho[query], phi[query], heavy - start, others / z, newton_terms, grad[query])


@kernel
def _newton(rho, phi, heavy, others, n_terms, out):
    """Write (4), given ``others`` = 1 - rho of the heaviest document; changes ``phi``."""
    for i in range(len(rho)):
        phi[i] = out[i] = rho[i] - phi[i]
    for _ in range(n_terms - 1):
        total = 0.0  # without the heaviest document, whose term can be larger by many digits
        lead = phi[heavy] / others if others > _TINY else 0.0
        for i in range(len(rho)):
            if i != heavy:
                total += phi[i] / (1.0 - rho[i])
        for i in range(len(rho)):
            if i != heavy:
                phi[i] = rho[i] * (total - phi[i] / (1.0 - rho[i]) + lead)
            else:
                phi[i] = rho[i] * total
            out[i] += phi[i]


@dataclass(frozen=True, slots=True, repr=False)
class XENDCG(KernelLoss):
    """Cross entropy of the softmax of the scores against gains with noise.

    Parameters
    ----------
    sampled : bool
        Sample the noise in each iteration. False uses its mean.
    newton_terms : int
        Number of terms of the series of the Newton step in the gradient: 1 is the gradient itself,
        3 is LightGBM's ``rank_xendcg``.
    random_state : int
        Seed of the noise.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.XENDCG(sampled=False), model="trees")
    Ranker(loss=XENDCG(sampled=False), model='trees')
    """

    sampled: bool = True
    newton_terms: Count = 1
    random_state: int = 0

    run = staticmethod(_xendcg)
    bound_class = BoundSample

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        is_gradient = self.newton_terms == 1
        return Traits(convex=is_gradient, integrable=is_gradient, stochastic=self.sampled)

    def terms(self, data: RankingData) -> tuple[Any, ...]:
        """Return the random key, 2^g, weights, parameters, and work arrays for rho and phi."""
        parameters = bool(self.sampled), int(self.newton_terms)
        work = np.empty((2, data.n_documents))
        key = new_random_key(self.random_state)
        return key, exp2_of_grades(data), document_weight(data), *parameters, work[0], work[1]
