"""Boosting: steps against the gradient in the space of scores, whatever the base learner.

Round t has scores f_t. The loss gives the gradient g and a curvature h of each document; the base
learner fits -g/h with weights h by least squares, and f_{t+1} = f_t + rate * fit.
(`moon2010intervalrank`, Algorithm 1, is curvature 1.) With ``direction="lbfgs"`` the fit is of -d,

    d = H_t g,   from the last pairs (f_{k+1} - f_k, g_{k+1} - g_k),  H_0 = a multiple of 1/h  (1)

the L-BFGS estimate of Newton's step in function space, kept near g/h
(`rankwright.models.boosting`).

Three things make the result depend on the data and the seed alone:

- documents and queries enter in an order fixed by their content, so shuffling rows changes no bit;
- g and h are rounded to a common grid on which every sum of n of them is exact in float64,

      step = 2^(exponent(max |g|) - 52 + ceil(log2 n)),                                       (2)

  so no histogram depends on the order of its additions;
- rows and columns of round t are sampled from streams named by t, so a resumed run draws alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.core.jit import kernel
from rankwright.core.parallel import map_ranges, ordered_sum, row_ranges, thread_count
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import (
    bound_loss,
    document_weight,
    load_loss_state,
    loss_state,
    order_weight,
    set_iteration,
)
from rankwright.registry import unknown

_ROWS = 1 << 15
_CHOICES = {"leaves": ("newton", "constant"), "direction": ("gradient", "lbfgs")}

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _round_to_grid(lo, hi, values, rows, step, out):  # type: ignore[no-untyped-def]
    """Round value i to the grid and write it to its row."""
    for i in range(lo, hi):
        out[rows[i]] = np.rint(values[i] / step) * step  # (2)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Boost:
    """How gradients become the targets of base learners.

    Parameters
    ----------
    leaves : "newton" or "constant"
        Weight documents by the loss's curvature, or all alike.
    direction : "gradient" or "lbfgs"
        Follow the gradient, or the L-BFGS direction in function space: longer steps where the
        gradient hardly turns, shorter ones where it turned round. A run continued from a finished
        model begins without memory, so its trees are not those of one long run.
    subsample, query_fraction, colsample_bytree : float
        Share of documents, of queries and of features sampled anew in each round.
    """

    leaves: str = "newton"
    direction: str = "gradient"
    subsample: float = 1.0
    query_fraction: float = 1.0
    colsample_bytree: float = 1.0

    def check(self) -> None:
        """Refuse shares and names that make no sense."""
        for name in ("subsample", "query_fraction", "colsample_bytree"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise UsageError(
                    f"{name} must be a share above 0, up to 1 for all, not {getattr(self, name)}."
                )
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UsageError(unknown(name, getattr(self, name), known))

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the choices of a model that has them among its own."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls)})

    def start(
        self,
        loss: Loss,
        data: RankingData,
        *,
        largest: float | None = None,
        first_query: int = 0,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> Descent:
        """Bind ``loss`` to ``data`` and return the state of a run.

        Where ``data`` are a part of others, ``largest`` is what the loss has to know of them all,
        and ``first_query`` the number of the first query among them.
        """
        self.check()
        options = {} if largest is None else {"largest": largest}
        return Descent(self, loss, data, seed, n_jobs, first_query, **options)


class Descent:
    """A boosting run: round by round, from scores to gradients and curvatures."""

    def __init__(
        self,
        boost: Boost,
        loss: Loss,
        data: RankingData,
        seed: int,
        n_jobs: int | None,
        first_query: int = 0,
        **options: Any,
    ) -> None:
        n_jobs = thread_count(n_jobs)  # once, not in each round
        self._boost, self._seed, self._n_jobs = boost, seed, n_jobs
        self._order, ordered = in_content_order(data, features=False, n_jobs=n_jobs)
        self._loss: Any = bound_loss(loss, ordered, n_jobs=n_jobs, **options)
        if first_query and loss.traits.stochastic:
            self._loss.number_from(first_query)
        self._shift_invariant = loss.traits.shift_invariant
        self._has_curvature = loss.traits.curvature
        self._newton = boost.leaves == "newton" and self._has_curvature
        self._weight = np.repeat(order_weight(ordered), ordered.sizes) * document_weight(ordered)
        self._query = ordered.query_of_row()
        self._n_queries, self._n_features = data.n_queries, data.n_features
        n = data.n_documents
        self._s, self._g, self._h = np.empty(n), np.empty(n), self._weight.copy()
        self._quasi: QuasiNewton | None = None

    def step(self, t: int, scores: F64) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
        """Return the loss at ``scores`` and the gradient and curvature of round ``t``."""
        np.take(scores, self._order, out=self._s)
        set_iteration(self._loss, t)
        if self._newton:
            value = self._loss.grad_curv(self._s, self._g, self._h)
        else:
            value = self._loss.grad(self._s, self._g)
        gradient, curvature = self._g, self._h
        if self._boost.direction == "lbfgs":
            if self._quasi is None:
                self._quasi = QuasiNewton(min(1.0, self._room()))
            # before rows are sampled: pairs from two draws would be noise
            gradient = self._quasi.direction(self._centred(), gradient, curvature)
        sampled = self._sample_rows(t)
        if sampled is not None:
            gradient, curvature = gradient * sampled, curvature * sampled
        return value, self._on_grid(gradient), self._on_grid(curvature)

    def columns(self, t: int) -> I64 | None:
        """Return the features that round ``t`` may use, or None for all."""
        if self._boost.colsample_bytree >= 1.0:
            return None
        count = max(1, round(self._boost.colsample_bytree * self._n_features))
        return np.sort(
            stream(self._seed, "boost", "columns", t).permutation(self._n_features)[:count]
        )

    def state(self) -> dict[str, AnyArray]:
        """Return what the next round needs beside the scores."""
        own: dict[str, AnyArray] = loss_state(self._loss)
        return own if self._quasi is None else {**own, **self._quasi.arrays()}

    def load_state(self, kept: Mapping[str, AnyArray]) -> None:
        """Continue as the run that had this `state`."""
        load_loss_state(self._loss, kept)
        if "quasi_numbers" in kept:
            self._quasi = QuasiNewton.restore(kept)

    @property
    def samples(self) -> bool:
        """Whether rounds differ by what they draw."""
        boost = self._boost
        return min(boost.subsample, boost.query_fraction, boost.colsample_bytree) < 1.0

    def best_constant(self) -> float:
        """Return the score to start from: 0 where a shift changes nothing, else a Newton step."""
        if self._shift_invariant:
            return 0.0
        derivative, curvature = self.at_zero()
        return -derivative / curvature if curvature > 0.0 else 0.0  # exact for squared error

    def at_zero(self) -> tuple[float, float]:
        """Return the sums of gradients and curvatures where all scores are 0.

        A document's weight stands for the curvature that a loss does not have.
        """
        self._s[:] = 0.0
        curvature = self._weight.copy()  # that of a square, where the loss has none of its own
        if self._has_curvature:
            self._loss.grad_curv(self._s, self._g, curvature)
        else:
            self._loss.grad(self._s, self._g)
        return float(self._g.sum()), float(curvature.sum())

    def _sample_rows(self, t: int) -> F64 | None:
        """Return what each document counts in round ``t``, or None where all count alike."""
        by_query = self._draw(t, "queries", self._boost.query_fraction)
        by_row = self._draw(t, "rows", self._boost.subsample)
        if by_query is None:
            return by_row
        sampled = by_query[self._query]
        return sampled if by_row is None else sampled * by_row

    def _draw(self, t: int, what: str, share: float) -> F64 | None:
        """Return 1 for each sampled query or row and 0 for the others; None for all of them."""
        if share >= 1.0:
            return None
        n = self._n_queries if what == "queries" else len(self._g)
        return (stream(self._seed, "boost", what, t).random(n) < share).astype(np.float64)

    def _room(self) -> float:
        """Return the curvature of the base learner over that of the loss, where it has any."""
        if self._newton or not self._has_curvature:
            return 1.0
        curvature = np.empty(len(self._s))
        self._loss.grad_curv(self._s, np.empty(len(self._s)), curvature)
        total = ordered_sum(curvature)
        return ordered_sum(self._h) / total if total > 0.0 else 1.0

    def _centred(self) -> F64:
        """Return the scores, less the mean of each query where a shift changes nothing.

        A shift moves scores without turning the gradient: to L-BFGS, a way without end.
        """
        if not self._shift_invariant:
            return self._s.copy()
        size = np.bincount(self._query, minlength=self._n_queries)
        mean = np.bincount(self._query, self._s, self._n_queries) / np.maximum(size, 1)
        return self._s - mean[self._query]

    def _on_grid(self, values: F64) -> NDArray[np.float32]:
        n = len(values)
        top = float(np.abs(values).max(initial=0.0))
        out = np.zeros(n, np.float32)
        if top > 0.0 and math.isfinite(top):
            step = 2.0 ** (math.frexp(top)[1] - 52 + math.ceil(math.log2(max(2, n))))
            bounds = row_ranges(n, _ROWS)
            args = (values, self._order, step, out)
            map_ranges(_round_to_grid, bounds, *args, n_jobs=self._n_jobs)
        return out


# --- the L-BFGS direction --------------------------------------------------------------------
#
# The L-BFGS direction in the space of scores, for boosting: there is no line search.
#
# With f_k the scores and g_k the gradient of round k, and h the curvature of each document,
#
#     d = H_t g,   from the last pairs (f_{k+1} - f_k, g_{k+1} - g_k),  H_0 = a multiple of 1/h  (3)
#
# The steps are a base learner's, which follows d only roughly; `QuasiNewton` says how d is kept
# safe.


_MEMORY = 8  # pairs of L-BFGS
_ACROSS = 1.0 / 3.0
_FARTHEST = 32.0  # times the plain step


class QuasiNewton:
    """The L-BFGS direction, safe where steps are a base learner's without a line search.

    With |v|^2 = sum h v^2, p = g/h the plain step and d = H_t g, what is followed is d

    - with no part across p larger than a third of its part along p, so that a base learner which
      follows it follows the gradient too; p itself where d does not descend;
    - of a length between |p| and reach |p| (reach |p| where reach is below 1).

    The derivative along the last step, now over before, decides the reach: 1 says that the gradient
    did not turn, 0 that the step went just far enough. Above a quarter the reach grows; below zero
    it shrinks to half of what would have been far enough, and the pairs are forgotten. Only
    derivatives are asked for, never values, so this also serves gradients that are those of no
    function.
    """

    def __init__(self, reach: float) -> None:
        self._pairs: list[tuple[F64, F64, float]] = []
        self._last: tuple[F64, F64] | None = None
        self._reach = self._length = reach

    def arrays(self) -> dict[str, AnyArray]:
        """Return its state."""
        assert self._last is not None, "it has been asked for a direction"
        named = {
            "quasi_numbers": np.array([self._reach, self._length]),
            "quasi_last": np.array(self._last),
            "quasi_bends": np.array([curvature for _, _, curvature in self._pairs]),
        }
        if self._pairs:
            named["quasi_pairs"] = np.array([pair[:2] for pair in self._pairs])
        return named

    @classmethod
    def restore(cls, named: Mapping[str, AnyArray]) -> QuasiNewton:
        """Build it from its own `arrays`."""
        reach, length = named["quasi_numbers"].tolist()
        made = cls(reach)
        made._length = length
        made._last = named["quasi_last"][0], named["quasi_last"][1]
        for k, curvature in enumerate(named["quasi_bends"].tolist()):
            moved, turned = named["quasi_pairs"][k]
            made._pairs.append((moved, turned, curvature))
        return made

    def direction(self, s: F64, g: F64, h: F64) -> F64:
        """Return h d at scores ``s``, whose gradient is ``g`` and whose curvature is ``h``."""
        present = h > 0.0
        inverse = np.divide(1.0, h, out=np.zeros(len(h)), where=present)
        if self._last is not None:
            self._learn((s - self._last[0]) * present, g, self._last[1], h)
        self._last = s, g.copy()
        plain = inverse * g
        size = _dot(g, plain)
        if size <= 0.0:
            return g
        d = self._two_loops(g, inverse)
        along = _dot(d, g) / size
        if along <= 0.0:
            d, along = plain, 1.0
        across = d - along * plain
        wide = math.sqrt(_dot(across, h * across) / size)
        share = min(1.0, _ACROSS * along / wide) if wide > 0.0 else 1.0
        d = along * plain + share * across
        length = math.hypot(along, share * wide)
        self._length = min(max(length, length / along * min(1.0, self._reach)), self._reach)
        return np.where(present, h * d * (self._length / length), g)

    def _learn(self, moved: F64, g: F64, before: F64, h: F64) -> None:
        """Take in what the last step did: reach and pairs."""
        fall = _dot(before, moved)
        if fall >= 0.0:  # the base learner went elsewhere
            self._pairs, self._reach = [], min(1.0, self._reach)
            return
        derivative = _dot(g, moved) / fall
        if derivative < 0.0:
            shrunk = max(1.0 / _FARTHEST, 0.5 / (1.0 - derivative))
            self._pairs, self._reach = [], self._length * shrunk
            return
        if derivative > 0.25:
            grown = min(4.0, 0.75 / max(1.0 - derivative, 0.1))
            self._reach = min(_FARTHEST, self._reach * grown)
        turned = g - before
        curvature, most = _dot(moved, turned), _dot(moved, h * moved)
        if curvature > 0.0:
            missing = max(0.0, most / _FARTHEST - curvature)  # no way is flatter than that
            turned = turned + missing / most * (h * moved)
            self._pairs = [*self._pairs[1 - _MEMORY :], (moved, turned, curvature + missing)]

    def _two_loops(self, g: F64, inverse: F64) -> F64:  # (3)
        d, shares = g.copy(), []
        for moved, turned, curvature in reversed(self._pairs):
            shares.append(_dot(moved, d) / curvature)
            d -= shares[-1] * turned
        d *= inverse
        if self._pairs:
            _, turned, curvature = self._pairs[-1]
            d *= curvature / _dot(turned, inverse * turned)
        for (moved, turned, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            d += (share - _dot(turned, d) / curvature) * moved
        return d


def _dot(a: F64, b: F64) -> float:
    return ordered_sum(a * b)  # the same bits whatever BLAS there is
