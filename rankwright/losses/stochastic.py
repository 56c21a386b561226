"""Expected value of a loss under Gumbel noise on the scores.

With m noisy copies of the scores, s_i + scale * e_i with e_i sampled from the standard Gumbel
distribution, the loss of a query is

    L(s) = 1/m sum over samples of loss(s + scale * e)                                          (1)

(`bruch2020stochastic`). The order of s + e is a sample of the Plackett-Luce model with scores s, so
that the loss sees orders that the scores make likely instead of one order. Value, gradient and
curvature are means over the samples.

The noise is a hash of seed, iteration, query number, sample and position within the query (without
documents of weight 0). It does not depend on the scores: within an iteration, (1) is a fixed
function with the properties of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwright.core.checks import without_prefix
from rankwright.core.jit import kernel
from rankwright.core.kernels import hash_step, hash_uniform, query_seed
from rankwright.core.parameters import Count, Positive, resolve_part
from rankwright.core.types import F64, AnyArray, Traits
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.base import (
    BoundSample,
    KernelLoss,
    bound_loss,
    document_weight,
    new_random_key,
    set_iteration,
)


@kernel
def _add_noise(lo, hi, indptr, s, w, random_key, scale, sample, out):
    for q in range(lo, hi):
        state, place = hash_step(query_seed(random_key, q), sample), 0
        for i in range(indptr[q], indptr[q + 1]):
            u = max(hash_uniform(hash_step(state, place)), 2.0**-54)
            out[i] = s[i] - scale * math.log(-math.log(u))
            place += w[i] > 0.0


class BoundStochastic(BoundSample):
    """`Stochastic` on one data set; ``bound`` is the loss whose mean is computed."""

    def __init__(self, loss: Stochastic, data: RankingData, *, n_jobs: int | None = None) -> None:
        super().__init__(loss, data, n_jobs=n_jobs)
        needs = ("grad_curv", "grad_queries", "per_query")
        self.bound = bound_loss(loss.resolved, data, needs=needs, n_jobs=n_jobs)
        self._document_weight = document_weight(data)

    def set_iteration(self, t: int) -> None:
        """Use the samples of iteration ``t``."""
        super().set_iteration(t)
        set_iteration(self.bound, t)

    def number_from(self, first: int) -> None:
        """Set the number of the first query, if the data is a part of a larger data set."""
        super().number_from(first)
        if hasattr(self.bound, "number_from"):
            self.bound.number_from(first)

    def state(self) -> dict[str, AnyArray]:
        """Return the random key, and the state of the loss whose mean is computed."""
        state = self.bound.state() if hasattr(self.bound, "state") else {}
        return super().state() | {f"loss.{name}": array for name, array in state.items()}

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore the arrays that `state` returned."""
        super().load_state(arrays)
        if hasattr(self.bound, "load_state"):
            self.bound.load_state(without_prefix("loss.", arrays))

    def on_device(self, torch: Any) -> Any:  # noqa: ARG002
        """Raise: the mean is computed on the CPU."""
        raise IncompatibleError("its mean over samples is computed on the CPU.")

    def _compute(
        self, s: F64, out: F64 | None, curv: F64 | None, lo: int = 0, hi: int | None = None
    ) -> float:
        """Average value, gradient and curvature over noisy scores."""
        begin, end = self.layout.begin, len(self.weight) if hi is None else hi
        rows = slice(begin[lo], begin[end])
        noisy, grad, bend, value = np.empty(len(s)), np.empty(len(s)), np.empty(len(s)), 0.0
        sums = [(self.per_query[lo:end], self.bound.per_query[lo:end])]
        sums += [(x[rows], y[rows]) for x, y in ((out, grad), (curv, bend)) if x is not None]
        for total, _ in sums:
            total[:] = 0.0
        samples = int(self.loss.samples)
        for sample in range(samples):
            _add_noise(lo, end, begin, s, self._document_weight, *self.terms, sample, noisy)
            if hi is None:
                value += self.bound.grad_curv(noisy, grad, bend) / samples  # (1)
            else:
                value += self.bound.grad_queries(lo, end, noisy, grad) / samples
            for total, part in sums:
                total += part / samples
        return value


@dataclass(frozen=True, slots=True, repr=False)
class Stochastic(KernelLoss):
    """Mean of a loss over scores with Gumbel noise, sampled in each iteration.

    With LambdaRank as the loss, this is similar to CatBoost's YetiRank (`gulin2011winning`), which
    also averages over orders of noisy scores. YetiRank adds logistic noise, uses only pairs of
    neighbours in each order, and computes the derivative of a pair at the scores without noise.

    Parameters
    ----------
    loss : loss or str
        The loss whose mean is computed.
    samples : int
        Number of samples per iteration. The time is proportional to it.
    scale : float
        Factor of the noise, which has a standard deviation of 1.28.
    random_state : int
        Seed of the noise.

    Examples
    --------
    >>> import rankwright as rw
    >>> loss = rw.losses.Stochastic(rw.losses.LambdaRank(), samples=4)
    >>> rw.Ranker(loss=loss, model="trees")
    Ranker(loss=Stochastic(loss=LambdaRank(), samples=4), model='trees')
    """

    loss: Any = "approx_ndcg"
    samples: Count = 8
    scale: Positive = 1.0
    random_state: int = 0

    run = staticmethod(_add_noise)
    bound_class = BoundStochastic

    @property
    def resolved(self) -> Any:
        """The loss whose mean is computed, as an object."""
        loss = resolve_part("losses", self.loss)
        if not (hasattr(loss, "bind") and hasattr(loss, "traits")):
            raise UsageError(f"loss must be a loss or the name of one, not {self.loss!r}.")
        return loss

    @property
    def traits(self) -> Traits:
        """Properties of the loss with these parameters."""
        traits: Traits = replace(self.resolved.traits, stochastic=True)
        return traits

    def terms(self, data: RankingData) -> tuple[AnyArray, float]:  # noqa: ARG002
        """Return the random key and the scale of the noise."""
        return new_random_key(self.random_state), float(self.scale)
