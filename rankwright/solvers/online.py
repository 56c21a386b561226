"""Online gradient descent: one step per query, in order of arrival.

Step t pays the loss of part (query) f_t at the present weights, and then moves them:

    w_{t+1} = w_t - grad f_t(w_t) / (sigma t + L_t)                                           (1)

sigma is the strong convexity that the penalty gives every part, and L_t the largest bound on the
smoothness of the parts so far. The plain 1/(sigma t) of `acharyya2014memr`, section 3.2, starts
with steps of 1/sigma, far longer than 1/L, and overflows. With L_t each step is stable from the
first on, and the regret compared with the best fixed weights still grows like log T on strongly
convex parts (Theorem 1). Without a penalty the steps stay at 1/L.

The result is the mean of the weights with weight t, which forgets the start:

    mean_t = mean_{t-1} + 2/(t + 1) (w_{t+1} - mean_{t-1})                                    (2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, SolveResult, StochasticProblem


@dataclass(frozen=True, slots=True)
class OnlineState:
    """State from which the next part continues.

    Parameters
    ----------
    w, mean
        The weights of (1) and their mean (2).
    t
        Number of steps.
    smoothness
        L, the largest bound so far.
    paid
        Sum of f_t(w_t), each before its step: the first term of the regret.
    """

    w: F64
    mean: F64
    t: int = 0
    smoothness: float = 0.0
    paid: float = 0.0

    def arrays(self) -> dict[str, AnyArray]:
        """Return the state as the arrays of a model file."""
        so_far = np.array([self.t, self.smoothness, self.paid])
        return {"online_w": self.w, "online_mean": self.mean, "online_so_far": so_far}

    @classmethod
    def of(cls, arrays: Mapping[str, AnyArray]) -> OnlineState:
        """Return the state in the arrays of a model file."""
        t, smoothness, paid = arrays["online_so_far"].tolist()
        return cls(arrays["online_w"], arrays["online_mean"], int(t), smoothness, paid)

    @classmethod
    def at(cls, w: F64) -> OnlineState:
        """Return the state before the first step, at weights ``w``."""
        return cls(np.array(w, np.float64), np.array(w, np.float64))


@dataclass(frozen=True, slots=True, repr=False)
class Online(Part):
    """Online gradient descent with a step of 1/(l2 t + L) per query; supports `partial_fit`.

    Parameters
    ----------
    tol
        Stop when a pass over the data changes no weight by more than this share of the largest.
    max_iter
        Maximum number of passes over the data.
    averaging
        Return the mean of the weights over all steps, with larger weights for later steps; False:
        the last weights.
    random_state
        Seed of the order of the queries in each pass.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="precision_svm", solver=rw.solvers.Online(max_iter=10))
    Ranker(loss='precision_svm', solver=Online(max_iter=10))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"grad_queries"})

    tol: NonNegative = 1e-3
    max_iter: Count = 50
    averaging: bool = True
    random_state: int = 0

    def solve(self, problem: StochasticProblem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default).

        The curve has the mean loss paid in each pass; optimality is the largest component of the
        whole gradient at the result.
        """
        state = OnlineState.at(np.zeros(problem.size) if start is None else start)
        curve: list[float] = []
        stopped = "max_iter was reached"
        while len(curve) < self.max_iter and problem.n_parts:
            before = state
            order = stream(self.random_state, "online", len(curve)).permutation(problem.n_parts)
            state = self.walk(problem, before, order)
            curve.append((state.paid - before.paid) / problem.n_parts)
            if has_converged(self._answer(state), self._answer(before), self.tol):
                stopped = "the weights no longer change"
                break
        return self._result(problem, state, curve, stopped)

    def resume(self, problem: StochasticProblem, state: OnlineState) -> SolveResult:
        """Take one step for each part of ``problem``, in order, from ``state``."""
        end = self.walk(problem, state, np.arange(problem.n_parts))
        paid = (end.paid - state.paid) / max(problem.n_parts, 1)
        return self._result(problem, end, [paid], "all parts were seen")

    def walk(self, problem: StochasticProblem, state: OnlineState, parts: I64) -> OnlineState:
        """Return the state after a step for each of ``parts``, in this order."""
        w, mean, gradient = state.w.copy(), state.mean.copy(), np.empty(problem.size)
        t, smoothness, paid = state.t, state.smoothness, state.paid
        problem.begin_pass(t, w)
        for k in range(len(parts)):
            t += 1
            smoothness = problem.part_smoothness(int(parts[k]), smoothness)
            paid += problem.part_grad(parts[k : k + 1], w, gradient)
            inverse_rate = problem.l2 * t + smoothness
            if inverse_rate > 0.0:
                w -= gradient / inverse_rate  # (1)
            mean += 2.0 / (t + 1) * (w - mean)  # (2)
        return OnlineState(w, mean, t, smoothness, paid)

    def _answer(self, state: OnlineState) -> F64:
        """Return the weights that predict."""
        return state.mean if self.averaging else state.w

    def _result(
        self, problem: StochasticProblem, state: OnlineState, curve: list[float], stopped: str
    ) -> SolveResult:
        w, gradient = self._answer(state), np.empty(problem.size)
        value = problem.grad(w, gradient)
        optimality = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(w, value, optimality, len(curve), stopped, curve, state)


def has_converged(w: F64, before: F64, tolerance: float) -> bool:
    """Return whether no weight has changed by more than ``tolerance`` times the largest."""
    change = float(np.abs(w - before).max(initial=0.0))
    return change <= tolerance * float(np.abs(w).max(initial=0.0))
