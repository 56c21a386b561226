"""Stochastic gradient descent on small batches of queries, for every loss (AdaGrad).

With g_t the gradient of batch t and all operations by component,

    S_t = S_{t-1} + g_t^2,    w_{t+1} = w_t - rate g_t / sqrt(S_t)                            (1)

(`duchi2011adagrad`). The gradients of losses differ by orders of magnitude (a sum over pairs
compared with a mean over documents); (1) cancels the size, so one rate, in units of the scaled
weights, fits all losses, smooth or not, even if the gradient is not the gradient of any function.
Steps shrink like 1/sqrt(t).

The result is the mean of the weights with weight t, so that the noise of single steps cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part, Positive
from rankwright.core.rng import stream
from rankwright.core.types import F64, SolveResult, StochasticProblem
from rankwright.solvers.online import has_converged


@dataclass(frozen=True, slots=True, repr=False)
class SGD(Part):
    """Stochastic gradient descent; supports every loss, LambdaRank's and hinges included.

    Parameters
    ----------
    tol
        Stop when a pass over the data changes no weight by more than this share of the largest.
    max_iter
        Maximum number of passes over the data.
    learning_rate
        Length of the first step in each (scaled) weight.
    batch_size
        Queries in a step.
    averaging
        Return the mean of the weights over all steps, with larger weights for later steps; False:
        the last weights.
    random_state
        Seed of the batches.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="lambdarank", solver=rw.solvers.SGD(batch_size=32))
    Ranker(loss='lambdarank', solver=SGD(batch_size=32))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"grad_queries"})

    tol: NonNegative = 1e-3
    max_iter: Count = 100
    learning_rate: Positive = 0.1
    batch_size: Count = 8
    averaging: bool = True
    random_state: int = 0

    def solve(self, problem: StochasticProblem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default).

        The curve has the mean value of the batches in each pass, each before its step; optimality
        is the largest component of the whole gradient at the result.
        """
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        mean, gradient, squares = w.copy(), np.empty(problem.size), np.zeros(problem.size)
        result = mean if self.averaging else w
        curve: list[float] = []
        steps, stopped = 0, "max_iter was reached"
        while len(curve) < self.max_iter and problem.n_parts:
            before, total = result.copy(), 0.0
            problem.begin_pass(len(curve), w)
            order = stream(self.random_state, "sgd", len(curve)).permutation(problem.n_parts)
            for first in range(0, problem.n_parts, self.batch_size):
                batch = order[first : first + self.batch_size]
                total += len(batch) * problem.part_grad(batch, w, gradient)
                squares += gradient**2
                size = np.sqrt(np.where(squares > 0.0, squares, 1.0))
                w -= self.learning_rate * gradient / size  # (1)
                steps += 1
                mean += 2.0 / (steps + 1) * (w - mean)
            curve.append(total / problem.n_parts)
            if has_converged(result, before, self.tol):
                stopped = "the weights no longer change"
                break
        value = problem.grad(result, gradient)
        optimality = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(result, value, optimality, len(curve), stopped, curve)
