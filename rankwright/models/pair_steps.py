"""Passive-aggressive steps on pairs drawn at random: the ranker PAMIR.

Step t draws a document i and one that it dominates, j. Where i does not lead by 1, the weights
move as little as makes it so, but never by more than the cap C allows (PA-I):

    w <- w + tau (x_i - x_j),     tau = min(C, (1 - w.(x_i - x_j))_+ / |x_i - x_j|^2)           (1)

(`grangier2008pamir`, `crammer2006pa`). The answer is the mean of the weights over the T steps. With
t steps before the one that adds d_t, that mean is

    w - (1/T) sum_t t d_t                                                                       (2)

so that only the sum has to be kept, and a step costs the non-zeros of two rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwright.core.jit import kernel
from rankwright.core.types import F64
from rankwright.errors import UsageError
from rankwright.losses.pair_draws import PairDraws, draw_pair
from rankwright.solvers.journal import Answer

# --- kernels ---------------------------------------------------------------------------------


@kernel
def _steps(t, end, seed, draws, indptr, indices, values, C, w, lag):  # type: ignore[no-untyped-def]
    """Take steps t:end and return how many moved the weights."""
    moved = 0
    for number in range(t, end):
        i, j = draw_pair(seed, number, draws)
        lead, square = _compare(i, j, indptr, indices, values, w)
        if lead < 1.0 and square > 0.0:
            tau = min(C, (1.0 - lead) / square)  # (1)
            _add(i, tau, number, indptr, indices, values, w, lag)
            _add(j, -tau, number, indptr, indices, values, w, lag)
            moved += 1
    return moved


@kernel
def _compare(i, j, indptr, indices, values, w):  # type: ignore[no-untyped-def]
    """Return w.(x_i - x_j) and |x_i - x_j|^2, merging two rows of rising columns."""
    lead = square = 0.0
    a, b = indptr[i], indptr[j]
    while a < indptr[i + 1] or b < indptr[j + 1]:
        left = indices[a] if a < indptr[i + 1] else len(w)
        right = indices[b] if b < indptr[j + 1] else len(w)
        x = 0.0
        if left <= right:
            x += values[a]
            a += 1
        if right <= left:
            x -= values[b]
            b += 1
        lead += w[min(left, right)] * x
        square += x * x
    return lead, square


@kernel
def _add(i, tau, number, indptr, indices, values, w, lag):  # type: ignore[no-untyped-def]
    for k in range(indptr[i], indptr[i + 1]):
        step = tau * values[k]
        w[indices[k]] += step
        lag[indices[k]] += number * step  # (2)


# --- API -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairState:
    """Where a run stands: weights, the sum of (2), steps taken, and how many moved the weights."""

    w: F64
    lag: F64
    t: int = 0
    moved: int = 0

    @classmethod
    def at(cls, w: F64) -> PairState:
        """Return the state before the first step, from weights ``w``."""
        return cls(w.copy(), np.zeros(len(w)))

    def parts(self) -> tuple[F64, F64, F64]:
        """Return the state as arrays."""
        return self.w, self.lag, np.array([self.t, self.moved], np.float64)

    @classmethod
    def of(cls, parts: Answer) -> PairState:
        """Return the state that has these `parts`."""
        t, moved = parts[2].astype(int).tolist()
        return cls(parts[0], parts[1], t, moved)

    @property
    def mean(self) -> F64:
        """The mean of the weights over the steps taken."""
        return self.w - self.lag / self.t if self.t else self.w.copy()


@dataclass(frozen=True, slots=True)
class PassiveAggressive:
    """Steps (1) on pairs that are drawn at random, seeded.

    Parameters
    ----------
    C : float
        The longest step.
    """

    C: float = 0.1

    def go_on(
        self, X: Any, draws: PairDraws, state: PairState, n_steps: int, *, seed: int = 0
    ) -> PairState:
        """Return the state after ``n_steps`` more; X is CSR with rising columns in each row."""
        if not 0.0 < self.C < np.inf:
            raise UsageError(f"C, the longest step, must be above 0, not {self.C}.")
        end = state.t + n_steps
        if not draws.are_there:
            return replace(state, t=end)
        w, lag = state.w.copy(), state.lag.copy()
        rows = X.indptr, X.indices, X.data
        moved = _steps(state.t, end, seed, draws, *rows, float(self.C), w, lag)
        return PairState(w, lag, end, state.moved + int(moved))
