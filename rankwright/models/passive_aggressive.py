"""Linear scores learnt from pairs that are sampled at random, step by step.

The steps are those of `rankwright.models.passive_aggressive`; the loss that is fitted only shows
how far they have come. Rows and queries are sampled from in an order fixed by their content, so
that shuffled rows and renamed queries change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.checks import ArraySpec
from rankwright.core.jit import kernel
from rankwright.core.parameters import Part
from rankwright.core.products import times_vector
from rankwright.core.types import F64, AnyArray, Callback, FloatMatrix, Loss, SolveResult
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.base import bound_loss, document_weight, order_weight
from rankwright.losses.pair_sampler import PairSampler, sample_pair
from rankwright.models.callbacks import until_interrupted
from rankwright.models.linear import WEIGHTS, FittedLinear, WeightRounds, fill_values, filled
from rankwright.models.schema import Schema
from rankwright.solvers.oracle_log import Answer, OracleLog

_ROUNDS = 10


@dataclass(frozen=True, slots=True, repr=False)
class PassiveAggressiveLinear(Part):
    """A weight for each feature, moved a little for each sampled pair that stands wrong.

    Parameters
    ----------
    C : float
        The longest step.
    n_steps : int
        Pairs sampled. They are cut into ten rounds, of which the best on the validation set is
        kept.
    averaging : bool
        Answer with the mean of the weights over all steps; False: with the last.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.PAMIR(model=rw.models.PassiveAggressiveLinear(C=1.0))
    PAMIR(model=PassiveAggressiveLinear(C=1.0))
    """

    C: float = 0.1
    n_steps: int = 100_000
    averaging: bool = True
    missing: str | None = None

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedPassiveAggressive | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedPassiveAggressive:
        """Take the steps, from where ``start`` ended."""
        if self.n_steps < 1:
            raise UsageError(f"n_steps must be 1 or more, not {self.n_steps}.")
        rounds = WeightRounds(data, callback, self.missing, n_jobs=n_jobs)
        bound = bound_loss(loss, data, n_jobs=n_jobs)
        total = float(order_weight(data).sum()) or 1.0
        sampler, rows = _sampler(data, n_jobs), _as_csr(rounds.features)
        state = _state_of(start, data.n_features)
        states: list[PairState] = []
        ends = np.linspace(0, self.n_steps, min(_ROUNDS, self.n_steps) + 1).astype(int)
        log, steps = OracleLog(callback), PassiveAggressive(C=self.C)
        with until_interrupted(callback, rounds):
            for count in np.diff(ends).tolist():
                go_on = partial(steps.go_on, rows, data.y, sampler, state, count, seed=random_state)
                n = len(state.w)
                parts = log.recall(lambda: go_on().parts(), state.w, sizes=[n, n, 2])  # noqa: B023
                state = PairState.of(parts)
                states.append(state)
                coef = self._coef(state)
                scores = rounds.scores(coef)
                if rounds.see(coef, bound.value(scores) / total, scores):
                    break
        return self._fitted(states[rounds.best() - 1], rounds.fill)

    def partial_fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        start: FittedPassiveAggressive | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedPassiveAggressive:
        """Go on from ``start`` with ``n_steps`` pairs of ``data``."""
        fill = fill_values(data.X, self.missing) if start is None else start.fill
        X = filled(data.X, fill, "linear")
        state = _state_of(start, data.n_features)
        sampler = _sampler(data, n_jobs)
        state = PassiveAggressive(C=self.C).go_on(
            _as_csr(X), data.y, sampler, state, self.n_steps, seed=random_state
        )
        fitted = self._fitted(state, fill)
        total = float(order_weight(data).sum()) or 1.0
        bound = bound_loss(loss, data, n_jobs=n_jobs)
        value = bound.value(times_vector(X, fitted.coef)) / total
        result = SolveResult(
            fitted.coef, value, np.nan, state.t, "all pairs were sampled", [value], state
        )
        return replace(fitted, solution=result)

    def _coef(self, state: PairState) -> F64:
        return state.mean if self.averaging else state.w.copy()

    def _fitted(self, state: PairState, fill: F64 | None) -> FittedPassiveAggressive:
        return FittedPassiveAggressive(self._coef(state), fill, len(state.w), pairs=state)

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray],
        texts: Mapping[str, str],
        n_features: int,
    ) -> FittedPassiveAggressive:
        """Build the fitted model from its own arrays and texts, checked."""
        _SCHEMA.check(arrays, texts, features=n_features)
        t, moved = arrays["steps"].tolist()
        state = PairState(arrays["last"], arrays["lag"], t, moved)
        return FittedPassiveAggressive(arrays["coef"], arrays.get("fill"), n_features, pairs=state)


_SCHEMA = Schema(
    (
        *WEIGHTS,
        ArraySpec("last", "float64", ("features",)),
        ArraySpec("lag", "float64", ("features",)),
        ArraySpec("steps", "int64", (2,), low=0),
    )
)


@dataclass(frozen=True)
class FittedPassiveAggressive(FittedLinear):
    """As `FittedLinear`, with the state from which further steps go on."""

    pairs: PairState | None = field(default=None, compare=False)

    def arrays(self) -> dict[str, AnyArray]:
        """Return the weights, the fill values and the state."""
        assert self.pairs is not None
        steps = np.array([self.pairs.t, self.pairs.moved])
        own = {"last": self.pairs.w, "lag": self.pairs.lag, "steps": steps}
        return {**FittedLinear.arrays(self), **own}


def _state_of(start: FittedPassiveAggressive | None, n_features: int) -> PairState:
    if start is None:
        return PairState.at(np.zeros(n_features))
    return start.pairs or PairState.at(start.coef)


def _sampler(data: RankingData, n_jobs: int | None) -> PairSampler:
    """Return pairs of rows of ``data``, sampled from in an order fixed by content."""
    rows, queries = content_order(data, n_jobs=n_jobs)
    ordered = RankingData(
        X=np.empty((data.n_documents, 0)),
        y=data.y[rows],
        indptr=np.append(0, np.cumsum(data.sizes[queries])),
        qid=data.qid[queries],
    )
    weight = document_weight(data)[rows]
    sampler = PairSampler.of(ordered, order_weight(data)[queries], weight)
    return sampler._replace(rows=rows[sampler.rows])


def _as_csr(X: FloatMatrix) -> FloatMatrix:
    return sparse.csr_array(X) if isinstance(X, np.ndarray) else X


# --- steps over sampled pairs ----------------------------------------------------------------
# Passive-aggressive steps on pairs sampled at random: the ranker PAMIR.
#
# Step t samples a document i and one that it dominates, j. Where i does not lead by 1, the weights
# move as little as makes it so, but never by more than the cap C allows (PA-I):
#
#     w <- w + tau (x_i - x_j),     tau = min(C m, (1 - w.(x_i - x_j))_+ / |x_i - x_j|^2)        (1)
#
# (`grangier2008pamir`, `crammer2006pa`). A pair counts m = min(1, g_i - g_j): 1 for whole grades,
# the difference for estimated relevance. The answer is the mean of the weights over the T steps.
# With t steps before the one that adds d_t, that mean is
#
#     w - (1/T) sum_t t d_t                                                                      (2)
#
# so that only the sum has to be kept, and a step costs the non-zeros of two rows.


# --- kernels ---------------------------------------------------------------------------------


@kernel
def _steps(t, end, seed, sampler, indptr, indices, values, grade, C, w, lag):  # type: ignore[no-untyped-def]
    """Take steps t:end and return how many moved the weights."""
    moved = 0
    for number in range(t, end):
        i, j = sample_pair(seed, number, sampler)
        lead, square = _compare(i, j, indptr, indices, values, w)
        if lead < 1.0 and square > 0.0:
            tau = min(C * min(grade[i] - grade[j], 1.0), (1.0 - lead) / square)  # (1)
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
    """Steps (1) on pairs that are sampled at random, seeded.

    Parameters
    ----------
    C : float
        The longest step.
    """

    C: float = 0.1

    def go_on(
        self, X: Any, y: F64, sampler: PairSampler, state: PairState, n_steps: int, *, seed: int = 0
    ) -> PairState:
        """Return the state after ``n_steps`` more; X is CSR with rising columns in each row."""
        if not 0.0 < self.C < np.inf:
            raise UsageError(f"C, the longest step, must be above 0, not {self.C}.")
        end = state.t + n_steps
        if not sampler.has_pairs:
            return replace(state, t=end)
        w, lag = state.w.copy(), state.lag.copy()
        rows = X.indptr, X.indices, X.data
        moved = _steps(state.t, end, seed, sampler, *rows, y, float(self.C), w, lag)
        return PairState(w, lag, end, state.moved + int(moved))
