"""Trust-region Newton by conjugate gradients, for problems with Hessian products (TRON).

Around w the objective is modelled as

    q(p) = g'p + 1/2 p'H p,    within  |p|_M <= Delta                                         (1)

and minimised by conjugate gradients preconditioned with the diagonal M. They end at the border of
the region, at a direction of negative curvature (followed to the border), or when the residual is
small compared with the gradient:

    |H p + g| <= min(1/2, sqrt(|g| / |g_0|)) |g|,    norms by M^-1                            (2)

so that the last steps converge superlinearly. The step is taken if the decrease of the objective is
at least a small share of the decrease predicted by (1); the region grows or shrinks with that share
(`lin2008trust`, Algorithms 1 and 2). Across a kink of the gradient, as of squared hinges, the
decrease is far below the prediction. The step is then shortened until the
derivative along it has nearly vanished, and the region keeps its size, because shrinking it at
every kink would make the run slow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Count, NonNegative, Part
from rankwright.core.types import F64, NewtonProblem, SolveResult

_ACCEPT = 1e-4  # take the step at this share of the predicted decrease
_TRIES = 30  # gradients along a step across a kink
_SHRINK, _GROW = 0.25, 0.75  # shares below and above which the region changes


@dataclass(frozen=True, slots=True, repr=False)
class TRON(Part):
    """Newton steps without a Hessian matrix; few passes over the data for losses with a Hessian.

    Parameters
    ----------
    tol
        Stop when no component of the gradient exceeds this.
    max_iter
        Maximum number of steps.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="pair_hinge", solver=rw.solvers.TRON(tol=1e-08))
    Ranker(loss='pair_hinge', solver=TRON(tol=1e-08))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "integrable", "hess_vec"})

    tol: NonNegative = 1e-6
    max_iter: Count = 500

    def solve(self, problem: NewtonProblem, start: F64 | None = None) -> SolveResult:
        """Minimise ``problem`` from ``start`` (0 by default)."""
        w = np.zeros(problem.size) if start is None else np.array(start, np.float64)
        g, ahead = np.empty(problem.size), np.empty(problem.size)
        value = problem.grad(w, g)
        M = problem.precondition()
        first = radius = _norm(g, M)
        curve: list[float] = []
        stopped = "the gradient is small"
        while not np.abs(g).max(initial=0.0) <= self.tol:
            if len(curve) == self.max_iter:
                stopped = "max_iter was reached"
                break
            strict = min(0.5, math.sqrt(_norm(g, M) / first)) if first > 0.0 else 0.5
            p, predicted, at_border = _step(problem, g, M, radius, strict)
            if -predicted <= 1e-15 * abs(value):
                stopped = "no step makes the objective fall any more"
                break
            reached = problem.grad(w + p, ahead)
            share = (reached - value) / predicted if predicted < 0.0 else -1.0
            if share < _SHRINK:  # a kink: shorten the step and keep the region
                t, shortened = _along(problem, w, p, float(g @ p), ahead)
                if shortened < value:
                    p, reached, share = t * p, shortened, _GROW
                else:
                    share = -1.0
            length = math.sqrt(float(p @ (M * p)))
            curve.append(min(value, reached))
            if share < _SHRINK:
                radius = 0.25 * length
            elif share > _GROW and at_border:
                radius = 2.0 * radius
            if share > _ACCEPT:
                w, value = w + p, reached
                g, ahead = ahead, g
            else:
                problem.grad(w, g)  # the next Hessian products are at w
        optimality = float(np.abs(g).max(initial=0.0))
        return SolveResult(w, value, optimality, len(curve), stopped, curve)


def _step(
    problem: NewtonProblem, g: F64, M: F64, radius: float, strict: float
) -> tuple[F64, float, bool]:
    """Return a step for (1), the predicted change, and whether the step ends at the border."""
    p, residual = np.zeros(len(g)), -g
    z = residual / M
    d, Hd = z.copy(), np.empty(len(g))
    rz = float(residual @ z)
    tolerance = strict * math.sqrt(rz)
    at_border = False
    for _ in range(2 * len(g) + 10):
        problem.hess_vec(d, Hd)
        curvature = float(d @ Hd)
        length = rz / curvature if curvature > 0.0 else math.inf
        # The border is at the t > 0 with |p + t d|_M = radius.
        pp, pd, dd = float(p @ (M * p)), float(p @ (M * d)), float(d @ (M * d))
        room = max(0.0, radius * radius - pp)
        root = math.sqrt(pd * pd + dd * room)
        limit = room / (pd + root) if pd >= 0.0 else (root - pd) / dd
        at_border = length >= limit
        length = min(length, limit)
        p += length * d
        residual -= length * Hd
        if at_border:
            break
        z = residual / M
        next_rz = float(residual @ z)
        if math.sqrt(next_rz) <= tolerance:  # (2)
            break
        d = z + (next_rz / rz) * d
        rz = next_rz
    predicted = 0.5 * (float(g @ p) - float(p @ residual))  # H p = -residual - g
    return p, predicted, at_border


def _along(
    problem: NewtonProblem, w: F64, p: F64, derivative: float, out: F64
) -> tuple[float, float]:
    """Return a t in (0, 1) near the minimum along p and its value; write the gradient to ``out``.

    Secant steps and bisections in turn reduce the derivative along p, which is ``derivative`` at w,
    to a tenth.
    """
    low, high = 0.0, 1.0
    at_low, at_high = derivative, float(out @ p)
    t, value = 1.0, math.inf
    for k in range(_TRIES):
        share = at_low / (at_low - at_high) if at_high > 0.0 and k % 2 == 0 else 0.5
        t = low + share * (high - low)
        value = problem.grad(w + t * p, out)
        steep = float(out @ p)
        if abs(steep) <= 0.1 * abs(derivative):
            break
        if steep < 0.0:
            low, at_low = t, steep
        else:
            high, at_high = t, steep
    return t, value


def _norm(g: F64, M: F64) -> float:
    return math.sqrt(float(g @ (g / M)))
