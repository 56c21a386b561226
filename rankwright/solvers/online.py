"""Online gradient descent: one step per query, in the order in which they come.

At step t the part (query) f_t is charged at the present weights, then they move:

    w_{t+1} = w_t - grad f_t(w_t) / (sigma t + L_t)                                           (1)

sigma is how strongly convex the penalty makes every part, and L_t the largest bound on the
smoothness of the parts seen so far. The plain 1/(sigma t) of `acharyya2014memr`, section 3.2,
starts with steps of 1/sigma, far beyond 1/L, and overflows; with L_t each step is stable from the
first on, and the regret against the best fixed weights still grows like log T on strongly convex
parts (Theorem 1). With no penalty the steps stay at 1/L.

The answer is the mean of the weights with weight t, which forgets the start:

    mean_t = mean_{t-1} + 2/(t + 1) (w_{t+1} - mean_{t-1})                                    (2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, SolveResult, StochasticProblem
from rankwright.solvers.oracle_log import Answer, recall


@dataclass(frozen=True, slots=True)
class OnlineState:
    """All that is needed to go on with the next part.

    Parameters
    ----------
    w, mean
        The weights of (1) and their mean (2).
    t
        Steps taken.
    smoothness
        L, the largest bound seen.
    paid
        Sum of f_t(w_t), each charged before its step: what the regret is measured by.
    """

    w: F64
    mean: F64
    t: int = 0
    smoothness: float = 0.0
    paid: float = 0.0

    def parts(self) -> tuple[F64, F64, F64]:
        """Return the state as arrays."""
        return self.w, self.mean, np.array([self.t, self.smoothness, self.paid])

    @classmethod
    def of(cls, parts: Answer) -> OnlineState:
        """Return the state that has these `parts`."""
        w, mean, (t, smoothness, paid) = parts[0], parts[1], parts[2].tolist()
        return cls(w, mean, int(t), smoothness, paid)

    @classmethod
    def at(cls, w: F64) -> OnlineState:
        """Return the state before the first step, at weights ``w``."""
        return cls(np.array(w, np.float64), np.array(w, np.float64))


@dataclass(frozen=True, slots=True, repr=False)
class Online(Part):
    """A step per query, 1/(l2 t + L) long; goes on with new queries by `partial_fit`.

    Parameters
    ----------
    tol
        Stop when a pass over the data changes no weight by more than this share of the largest.
    max_iter
        Passes over the data.
    averaging
        Answer with the mean of the weights over all steps, later ones counting more; False: with
        the last.
    random_state
        Decides the order of the queries in each pass.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="precision_svm", solver=rw.solvers.Online(max_iter=10))
    Ranker(loss='precision_svm', solver=Online(max_iter=10))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"queries"})

    tol: float = 1e-3
    max_iter: int = 50
    averaging: bool = True
    random_state: int = 0

    def solve(
        self,
        problem: StochasticProblem,
        start: F64 | None = None,
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> SolveResult:
        """Go over the parts of ``problem`` from ``start`` (0 by default).

        The curve is the mean charge of each pass; optimality the largest component of the whole
        gradient at the answer.
        """
        state = OnlineState.at(np.zeros(problem.size) if start is None else start)
        curve: list[float] = []
        stopped = "max_iter was reached"
        while len(curve) < self.max_iter and problem.n_parts:
            before = state
            order = stream(self.random_state, "online", len(curve)).permutation(problem.n_parts)
            walk = partial(self.walk, state=before, parts=order)
            n = problem.size
            parts = recall(problem, lambda p: walk(p).parts(), before.w, sizes=[n, n, 3])  # noqa: B023
            state = OnlineState.of(parts)
            curve.append((state.paid - before.paid) / problem.n_parts)
            w = self.answer(state)
            if callback is not None and callback(len(curve), w, curve[-1]):
                stopped = "the callback ended the run"
                break
            if stand_still(w, self.answer(before), self.tol):
                stopped = "the weights no longer change"
                break
        return self._result(problem, state, curve, stopped)

    def go_on(self, problem: StochasticProblem, state: OnlineState) -> SolveResult:
        """Take one step for each part of ``problem``, in their own order."""
        end = self.walk(problem, state, np.arange(problem.n_parts))
        charge = (end.paid - state.paid) / max(problem.n_parts, 1)
        return self._result(problem, end, [charge], "all parts were seen")

    def walk(self, problem: StochasticProblem, state: OnlineState, parts: I64) -> OnlineState:
        """Take a step for each of ``parts``, in this order."""
        w, mean, gradient = state.w.copy(), state.mean.copy(), np.empty(problem.size)
        t, top, paid = state.t, state.smoothness, state.paid
        problem.begin_pass(t, w)
        for k in range(len(parts)):
            t += 1
            top = problem.part_smoothness(int(parts[k]), top)
            paid += problem.part_grad(parts[k : k + 1], w, gradient)
            pace = problem.strength * t + top
            if pace > 0.0:
                w -= gradient / pace  # (1)
            mean += 2.0 / (t + 1) * (w - mean)  # (2)
        return OnlineState(w, mean, t, top, paid)

    def answer(self, state: OnlineState) -> F64:
        """Return the weights to predict with."""
        return state.mean if self.averaging else state.w

    def _result(
        self, problem: StochasticProblem, state: OnlineState, curve: list[float], stopped: str
    ) -> SolveResult:
        w, gradient = self.answer(state), np.empty(problem.size)
        value = problem.grad(w, gradient)
        steepest = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(w, value, steepest, len(curve), stopped, curve, state)


def stand_still(w: F64, before: F64, tolerance: float) -> bool:
    """Whether no weight has changed by more than ``tolerance`` times the largest."""
    change = float(np.abs(w - before).max(initial=0.0))
    return change <= tolerance * float(np.abs(w).max(initial=0.0))
