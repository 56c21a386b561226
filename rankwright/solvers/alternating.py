"""Alternating minimisation over targets and weights: Monotone Retargeting as it was published.

A loss that is a minimum over targets r gives a joint objective F(r, w), minimised in turns:

    r_{t+1} = argmin_r F(r, w_t)        the targets nearest to the present scores             (1)
    w_{t+1} = argmin_w F(r_{t+1}, w)    a generalised linear model with fixed targets         (2)

(`acharyya2014memr`, updates (4), (5) and (7)). Neither half can raise F, but the turns converge
slowly: the other solvers minimise G(w) = min_r F(r, w) itself in a small fraction of the time. This
solver is the baseline that MEMR is compared with.

Pooling adjacent violators gives (1) exactly. Under KL the paper takes exponentiated gradient steps.
With p the distribution of the scores, a step of rate eta from r, projected on the allowed targets,
is

    r_{t+1} = nearest allowed to  r_t exp(-eta grad KL(r_t || p))  =  r_t^(1 - eta) p^eta     (3)

In the scale of scores it is a mean of the two, and (1) itself for eta = 1. Once such steps no
longer lower the objective, the last turns are exact. (With C_r or rewards (3) is only approximate,
and only the exact turns count.)

Without margins, C_r or rewards F has the minimum 0 at scores that are all equal, and the turns
approach it by a factor each. They end once F is `tolerance` squared times its first value; the
direction of the weights, which decides the ranking, has converged by then.

`rankwright.joint_convexity` tests whether F is convex in r and w together, so that (1), (2) end in
the global minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.types import F64, VANISHED, SolveResult, TargetProblem
from rankwright.solvers.lbfgs import LBFGS


@dataclass(frozen=True, slots=True, repr=False)
class Alternating(Part):
    """Alternating minimisation over targets and weights.

    Parameters
    ----------
    tol
        Stop when a turn lowers the joint objective by less than this share of it.
    max_iter
        Maximum number of turns.
    learning_rate
        eta of (3), from 0 to 1: the fraction of the way to the nearest targets in each turn. 1
        takes them exactly, as in (1).
    inner_tol, inner_max_iter
        Tolerance and maximum number of iterations of L-BFGS in (2).

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="retarget", solver=rw.solvers.Alternating(learning_rate=0.5))
    Ranker(loss='retarget', solver=Alternating(learning_rate=0.5))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "integrable", "targets"})

    tol: NonNegative = 1e-6
    max_iter: Count = 500
    learning_rate: float = 1.0
    inner_tol: NonNegative = 1e-8
    inner_max_iter: Count = 500

    def solve(self, problem: TargetProblem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default).

        The curve is F after each turn; value and optimality refer to G(w) = min_r F(r, w).
        """
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        inner = LBFGS(tol=self.inner_tol, max_iter=self.inner_max_iter)
        gradient, rate = np.empty(problem.size), self.learning_rate
        value, targets = problem.grad(w, gradient), problem.targets(w)
        vanished = self.tol**2 * abs(value)
        curve: list[float] = []
        stopped = "max_iter was reached"
        while len(curve) < self.max_iter:
            before = value
            targets = problem.targets(w, targets if rate < 1.0 else None, rate)  # (1), (3)
            solution = inner.solve(problem.with_targets(targets), w)  # (2)
            w = solution.w
            value = problem.grad(w, gradient)
            curve.append(solution.value)
            if abs(value) <= vanished < abs(before):
                stopped = VANISHED
                break
            if before - value <= self.tol * abs(value):
                if rate == 1.0:
                    stopped = "the objective no longer changes"
                    break
                rate = 1.0
        optimality = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(w, value, optimality, len(curve), stopped, curve)
