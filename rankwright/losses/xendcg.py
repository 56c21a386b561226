"""Cross entropy against randomly softened gains, a convex bound on NDCG (XE-NDCG).

With w_i the weight of document i and noise gamma_i, uniform in [0, 1) and sampled anew each round,

    rho_i = w_i exp(s_i) / sum_j w_j exp(s_j)                                                   (1)
    phi_i = w_i (2^g_i - gamma_i) / sum_j w_j (2^g_j - gamma_j)                                 (2)
    L(s)  = - sum_i phi_i log(rho_i / w_i) = log sum_j w_j exp(s_j) - sum_i phi_i s_i           (3)

(`bruch2021xendcg`). The gradient is rho - phi; its Hessian diag(rho) - rho rho' has the diagonal
D = rho (1 - rho), the curvature here, and off-diagonal entries -R_ij = -rho_i rho_j. Its inverse is
D^-1 (1 + R D^-1 + (R D^-1)^2 + ...), so that the Newton step per document is D^-1 times

    lambda = (rho - phi) + R D^-1 (rho - phi) + (R D^-1)^2 (rho - phi) + ...                    (4)

``newton_terms=3``, LightGBM's ``rank_xendcg``, returns the first three terms as the gradient: fit
for boosting with Newton leaves, but the gradient of no function. The default 1 is the gradient of
(3).

The noise is a hash of seed, round, query number and position within the query (documents of weight
0 not counted), so a round comes out the same on any number of threads and in a resumed run.
``sampled=False`` takes gamma = 1/2, its mean, throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step, hash_uniform, query_seed
from rankwright.core.parameters import Count, Part, check_parameters
from rankwright.core.types import F64, AnyArray, BoundLoss, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.losses.old_base import (
    SampledLoss,
    document_weight,
    exp2_of_grades,
    new_random_key,
    present_documents,
)

_TINY = 1e-290  # below, the rest of the documents has no say in the Newton step


class _Terms(NamedTuple):
    power: F64  # 2^g
    w: F64
    sampled: bool
    random_key: AnyArray
    newton_terms: int


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _queries(lo, hi, indptr, s, terms, rho, phi, weight, value, grad, curv):
    power, w, sampled, random_key, newton_terms = terms
    for q in range(lo, hi):
        start, end = indptr[q], indptr[q + 1]
        if start == end:
            value[q] = 0.0
            continue
        seed = query_seed(random_key, q)
        heavy = start
        for i in range(start, end):
            noise = hash_uniform(hash_step(seed, i - start)) if sampled else 0.5
            phi[i] = w[i] * (power[i] - noise)
            heavy = i if s[i] > s[heavy] else heavy
        z = rest = shares = 0.0
        for i in range(start, end):
            rho[i] = w[i] * math.exp(s[i] - s[heavy])
            z += rho[i]
            rest += rho[i] if i != heavy else 0.0
            shares += phi[i]
        total = math.log(z)
        for i in range(start, end):
            rho[i] /= z  # (1)
            phi[i] /= shares  # (2)
            total += phi[i] * (s[heavy] - s[i])  # (3)
        value[q] = weight[q] * total
        if len(grad):
            own = slice(start, end)
            _newton(rho[own], phi[own], heavy - start, rest / z, newton_terms, grad[own])
            for i in range(start, end):
                grad[i] *= weight[q]
        if len(curv):
            for i in range(start, end):
                curv[i] = weight[q] * rho[i] * (1.0 - rho[i] if i != heavy else rest / z)


@kernel
def _newton(rho, phi, heavy, rest, n_terms, out):
    """Write (4), given rest = 1 - rho of the heaviest document; ``phi`` is used up."""
    for i in range(len(rho)):
        phi[i] = out[i] = rho[i] - phi[i]
    for _ in range(n_terms - 1):
        others = 0.0  # the heaviest apart, since its own part can be larger by many digits
        lead = phi[heavy] / rest if rest > _TINY else 0.0
        for i in range(len(rho)):
            if i != heavy:
                others += phi[i] / (1.0 - rho[i])
        for i in range(len(rho)):
            if i != heavy:
                phi[i] = rho[i] * (others - phi[i] / (1.0 - rho[i]) + lead)
            else:
                phi[i] = rho[i] * others
            out[i] += phi[i]


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class XENDCG(Part):
    """Cross entropy of the softmax of the scores against gains with noise, new in each round.

    Parameters
    ----------
    sampled : bool
        Draw the noise; False takes its mean.
    newton_terms : int
        How many terms of the series for the Newton step make up the gradient: 1 is the gradient
        itself, 3 is what LightGBM's ``rank_xendcg`` boosts.
    random_state : int
        Of the noise.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss=rw.losses.XENDCG(sampled=False), model="trees")
    Ranker(loss=XENDCG(sampled=False), model='trees')
    """

    sampled: bool = True
    newton_terms: Count = 1
    random_state: int = 0

    @property
    def traits(self) -> Traits:
        """What this loss can do with these parameters."""
        return Traits(
            convex=self.newton_terms == 1,
            integrable=self.newton_terms == 1,
            stochastic=self.sampled,
        )

    def bind(self, data: RankingData, *, n_jobs: int | None = None) -> BoundLoss:
        """Prepare the loss for one data set."""
        check_parameters(self)
        random_key, seen = new_random_key(self.random_state), present_documents(data)
        terms = _Terms(
            power=exp2_of_grades(seen),
            w=document_weight(seen),
            sampled=bool(self.sampled),
            random_key=random_key,
            newton_terms=int(self.newton_terms),
        )
        args = (terms, np.empty(seen.n_documents), np.empty(seen.n_documents))
        return SampledLoss(
            random_key, _queries, data, *args, curvature=True, present=seen, n_jobs=n_jobs
        )
