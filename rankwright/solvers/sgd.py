"""Stochastic gradient steps over small batches of queries, for any loss whatever (AdaGrad).

With g_t the gradient of batch t and all operations by component,

    S_t = S_{t-1} + g_t^2,    w_{t+1} = w_t - rate g_t / sqrt(S_t)                            (1)

(`duchi2011adagrad`). Losses differ by orders of magnitude in the size of their gradients (a sum
over pairs against a mean over documents); (1) cancels it, so one rate, in units of the scaled
weights, serves all of them, smooth or not, with a value behind the gradient or none. Steps shrink
like 1/sqrt(t) by themselves.

The answer is the mean of the weights with weight t, where the noise of single steps cancels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.rng import stream
from rankwright.core.types import F64, SolveResult, StochasticProblem
from rankwright.solvers.online import stand_still
from rankwright.solvers.oracle_log import recall


@dataclass(frozen=True, slots=True, repr=False)
class SGD(Part):
    """Small steps, each on a few queries; takes every loss, LambdaRank's and hinges included.

    Parameters
    ----------
    tol
        Stop when a pass over the data changes no weight by more than this share of the largest.
    max_iter
        Passes over the data.
    learning_rate
        Length of the first step in each (scaled) weight.
    batch_size
        Queries in a step.
    averaging
        Answer with the mean of the weights over all steps, later ones counting more; False: with
        the last.
    random_state
        Decides the batches.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="lambdarank", solver=rw.solvers.SGD(batch_size=32))
    Ranker(loss='lambdarank', solver=SGD(batch_size=32))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"queries"})

    tol: float = 1e-3
    max_iter: int = 100
    learning_rate: float = 0.1
    batch_size: int = 8
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

        The curve is the mean of the batches' values in each pass, before their steps; optimality
        the largest component of the whole gradient at the answer.
        """
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        mean, gradient, squares = w.copy(), np.empty(problem.size), np.zeros(problem.size)
        curve: list[float] = []
        stopped = "max_iter was reached"
        answer = mean if self.averaging else w

        def go_over(itself: StochasticProblem) -> tuple[F64, F64, F64, float]:
            passes, total = len(curve), 0.0
            itself.begin_pass(passes, w)
            order = stream(self.random_state, "sgd", passes).permutation(itself.n_parts)
            firsts = range(0, itself.n_parts, self.batch_size)
            for t, first in enumerate(firsts, start=passes * len(firsts) + 1):
                batch = order[first : first + self.batch_size]
                total += len(batch) * itself.part_grad(batch, w, gradient)
                squares[:] += gradient**2
                size = np.sqrt(np.where(squares > 0.0, squares, 1.0))
                w[:] -= self.learning_rate * gradient / size  # (1)
                mean[:] += 2.0 / (t + 1) * (w - mean)
            return w, mean, squares, total

        while len(curve) < self.max_iter and problem.n_parts:
            before = answer.copy()
            w[:], mean[:], squares[:], total = recall(problem, go_over, w)
            curve.append(float(total[0]) / problem.n_parts)
            if callback is not None and callback(len(curve), answer, curve[-1]):
                stopped = "the callback ended the run"
                break
            if stand_still(answer, before, self.tol):
                stopped = "the weights no longer change"
                break
        value = problem.grad(answer, gradient)
        steepest = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(answer, value, steepest, len(curve), stopped, curve)
