"""Alternating minimisation over targets and weights: Monotone Retargeting as it was published.

A loss that is a minimum over targets r gives a joint objective F(r, w), minimised in turns:

    r_{t+1} = argmin_r F(r, w_t)        the targets nearest to the present scores             (1)
    w_{t+1} = argmin_w F(r_{t+1}, w)    a generalised linear model toward fixed targets       (2)

(`acharyya2014memr`, updates (4), (5) and (7)). Neither half can raise F, but the pair creeps: the
other solvers minimise G(w) = min_r F(r, w) itself and need a small share of the time. Kept as the
baseline that MEMR is compared with.

Pooling adjacent violators gives (1) exactly. The paper takes exponentiated gradient steps under
KL. With p the scores' distribution, a step of rate eta from r, brought back to the targets allowed,
is

    r_{t+1} = nearest allowed to  r_t exp(-eta grad KL(r_t || p))  =  r_t^(1 - eta) p^eta     (3)

in the scale of scores a mean of the two, and (1) itself for eta = 1. Once such steps make no more
headway the last turns are exact. (With C_r or rewards (3) is off, and only they count.)

Without margins, C_r or rewards F has the minimum 0 at scores that are all equal, and the turns go
there, by a factor each: they end once F is `tolerance` squared times what it was, and what ranks is
the direction of the weights by then.

`joint_convexity` says whether F is convex in r and w together, so that (1), (2) end in the one
minimum. With A_i the features of query i, omega_i its weight in the objective and s the strong
convexity of the divergence's function on its domain,

    l2 >= sum_i omega_i sigma_max(A_i)^2 / (s (1 + C_r))                                      (4)

is enough. (Corollary 1 lacks the A_i.) s is 1 for KL on the simplex, where r <= 1; on the cone r
has no bound and no l2 will do; the square needs none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.types import F64, I64, VANISHED, FloatMatrix, SolveResult, TargetProblem
from rankwright.errors import UsageError
from rankwright.solvers.lbfgs import LBFGS
from rankwright.solvers.oracle_log import recall


@dataclass(frozen=True, slots=True, repr=False)
class Alternating(Part):
    """Targets, weights, targets, weights, …, each the best for the other.

    Parameters
    ----------
    tol
        Stop when a turn lowers the joint objective by less than this share of it.
    max_iter
        Turns.
    learning_rate
        eta of (3), from 0 to 1: how far targets go in a turn. 1: all the way, as (1) says.
    inner_tol, inner_max_iter
        When L-BFGS stops in (2).

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="retarget", solver=rw.solvers.Alternating(learning_rate=0.5))
    Ranker(loss='retarget', solver=Alternating(learning_rate=0.5))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "integrable", "targets"})

    tol: float = 1e-6
    max_iter: int = 500
    learning_rate: float = 1.0
    inner_tol: float = 1e-8
    inner_max_iter: int = 500

    def solve(
        self,
        problem: TargetProblem,
        start: F64 | None = None,
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default).

        The curve is F after each turn; value and optimality are those of G(w) = min_r F(r, w).
        """
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        inner = LBFGS(tol=self.inner_tol, max_iter=self.inner_max_iter)
        gradient, rate = np.empty(problem.size), self.learning_rate
        value, r = problem.grad(w, gradient), problem.targets(w)
        vanished = self.tol**2 * abs(value)
        curve: list[float] = []
        stopped = "max_iter was reached"

        def turn(itself: TargetProblem) -> tuple[F64, float, float, F64, F64]:
            near = itself.targets(w, r if rate < 1.0 else None, rate)  # (1), (3)
            found = inner.solve(itself.with_targets(near), w)  # (2)
            after = itself.grad(found.w, gradient)
            return found.w, found.value, after, gradient, near if rate < 1.0 else np.empty(0)

        while len(curve) < self.max_iter:
            before = value
            w, joint, after, gradient, r = recall(problem, turn, w)
            value = float(after[0])
            curve.append(float(joint[0]))
            if callback is not None and callback(len(curve), w, curve[-1]):
                stopped = "the callback ended the run"
                break
            if abs(value) <= vanished < abs(before):
                stopped = VANISHED
                break
            if before - value <= self.tol * abs(value):
                if rate == 1.0:
                    stopped = "the objective no longer changes"
                    break
                rate = 1.0
        steepest = float(np.abs(gradient).max(initial=0.0))
        return SolveResult(w, value, steepest, len(curve), stopped, curve)


@dataclass(frozen=True, slots=True)
class JointConvexity:
    """Whether the joint objective is convex, and the penalty that makes sure of it.

    Parameters
    ----------
    l2
        The penalty there is.
    needed
        The penalty that is enough, infinite where none is.
    holds
        ``l2 >= needed``. Where it does not, the objective may be convex all the same.
    """

    l2: float
    needed: float

    @property
    def holds(self) -> bool:
        """Whether the penalty is enough."""
        return self.l2 >= self.needed

    def __str__(self) -> str:
        if self.needed == 0.0:
            return "jointly convex, whatever l2"
        if math.isinf(self.needed):
            return "no l2 makes sure of joint convexity"
        verdict = "jointly convex" if self.holds else "perhaps not jointly convex"
        return f"{verdict}: l2 is {self.l2:g}, and {self.needed:g} is enough"


def joint_convexity(
    X: FloatMatrix,
    indptr: I64,
    *,
    l2: float,
    divergence: str = "square",
    domain: str = "simplex",
    C_r: float = 0.0,
    query_weight: F64 | None = None,
) -> JointConvexity:
    """Return whether Monotone Retargeting over these features is convex in targets and weights.

    Parameters
    ----------
    X, indptr
        Features as the penalty sees them (divided by their deviations where ``scale=True``), and
        where queries begin.
    l2
        The penalty.
    divergence, domain
        "square" or "kl"; for "kl", "simplex" or "cone".
    C_r
        How strongly targets are pulled to the given scores.
    query_weight
        omega_i of (4): the weight of each query in the objective. By default 1/Q, as in a linear
        ranker with equal weights and query weight exponent 0.

    Returns
    -------
    JointConvexity
    """
    if divergence not in ("square", "kl") or domain not in ("simplex", "cone"):
        raise UsageError(
            f"joint_convexity knows the divergences square and kl, on the simplex or the cone; "
            f"not {divergence!r} on {domain!r}."
        )
    if divergence == "square":
        return JointConvexity(l2, 0.0)
    if domain == "cone":
        return JointConvexity(l2, math.inf)
    n = len(indptr) - 1
    weight = np.full(n, 1.0 / max(n, 1)) if query_weight is None else query_weight
    top = [_largest_singular_value(X[indptr[i] : indptr[i + 1]]) ** 2 for i in range(n)]
    return JointConvexity(l2, float(weight @ np.array(top)) / (1.0 + C_r))  # (4), s = 1


def _largest_singular_value(A: FloatMatrix) -> float:
    """Return sigma_max(A), by the Gram matrix of its shorter side."""
    if 0 in A.shape:
        return 0.0
    tall = A.T if A.shape[0] > A.shape[1] else A
    gram = tall @ tall.T
    dense = gram if isinstance(gram, np.ndarray) else gram.toarray()
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(dense.astype(np.float64))[-1])))
