"""Trust-region Newton by conjugate gradients, for problems with Hessian products (TRON).

Around w the objective is modelled as

    q(p) = g'p + 1/2 p'H p,    within  |p|_M <= Delta                                         (1)

and minimised by conjugate gradients preconditioned with the diagonal M, which end at the border of
the region, at a direction of negative curvature (followed to the border), or when the residual is
small against the gradient:

    |H p + g| <= min(1/2, sqrt(|g| / |g_0|)) |g|,    norms by M^-1                            (2)

so that the last steps converge superlinearly. The step is taken if the objective falls by a small
share of what (1) promised; the region grows or shrinks with that share (`lin2008trust`,
Algorithms 1 and 2). A step that meets a kink of the gradient, as those of squared hinges, keeps far
less than (1) promised: it is then cut where the derivative along it has nearly vanished, and the
region stays, for shrinking it at every kink would make the run crawl.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.types import F64, NewtonProblem, SolveResult

_ACCEPT = 1e-4  # take the step at this share of the promised decrease
_TRIES = 30  # looks along a step that met a kink
_SHRINK, _GROW = 0.25, 0.75  # shares below and above which the region changes


@dataclass(frozen=True, slots=True, repr=False)
class TRON(Part):
    """Newton steps without a matrix; few passes over the data where the loss has a Hessian.

    Parameters
    ----------
    tol
        Stop when no component of the gradient exceeds this.
    max_iter

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.Ranker(loss="pair_hinge", solver=rw.solvers.TRON(tol=1e-08))
    Ranker(loss='pair_hinge', solver=TRON(tol=1e-08))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "integrable", "hess_vec"})

    tol: float = 1e-6
    max_iter: int = 500

    def solve(
        self,
        problem: NewtonProblem,
        start: F64 | None = None,
        *,
        callback: Callable[[int, F64, float], bool] | None = None,
    ) -> SolveResult:
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
            p, promised, at_border = _step(problem, g, M, radius, strict)
            if -promised <= 1e-15 * abs(value):
                stopped = "no step makes the objective fall any more"
                break
            reached = problem.grad(w + p, ahead)
            share = (reached - value) / promised if promised < 0.0 else -1.0
            if share < _SHRINK:  # a kink on the way: go as far as it pays, and keep the region
                t, found = _along(problem, w, p, float(g @ p), ahead)
                if found < value:
                    p, reached, share = t * p, found, _GROW
                else:
                    share = -1.0
            long = math.sqrt(float(p @ (M * p)))
            curve.append(min(value, reached))
            if share < _SHRINK:
                radius = 0.25 * long
            elif share > _GROW and at_border:
                radius = 2.0 * radius
            if share > _ACCEPT:
                w, value = w + p, reached
                g, ahead = ahead, g
            else:
                problem.grad(w, g)  # Hessian products are asked for here again
            if callback is not None and callback(len(curve), w, value):
                stopped = "the callback ended the run"
                break
        steepest = float(np.abs(g).max(initial=0.0))
        return SolveResult(w, value, steepest, len(curve), stopped, curve)


def _step(
    problem: NewtonProblem, g: F64, M: F64, radius: float, strict: float
) -> tuple[F64, float, bool]:
    """Return a step for (1), what it promises, and whether it ends at the border."""
    p, residual = np.zeros(len(g)), -g
    z = residual / M
    d, Hd = z.copy(), np.empty(len(g))
    rz = float(residual @ z)
    enough = strict * math.sqrt(rz)
    at_border = False
    for _ in range(2 * len(g) + 10):
        problem.hess_vec(d, Hd)
        curvature = float(d @ Hd)
        length = rz / curvature if curvature > 0.0 else math.inf
        most = _to_border(p, d, M, radius)
        at_border = length >= most
        length = min(length, most)
        p += length * d
        residual -= length * Hd
        if at_border:
            break
        z = residual / M
        next_rz = float(residual @ z)
        if math.sqrt(next_rz) <= enough:  # (2)
            break
        d = z + (next_rz / rz) * d
        rz = next_rz
    promised = 0.5 * (float(g @ p) - float(p @ residual))  # H p = -residual - g
    return p, promised, at_border


def _along(
    problem: NewtonProblem, w: F64, p: F64, derivative: float, out: F64
) -> tuple[float, float]:
    """Return a t in (0, 1) near the minimum of w + t p, with its value; ``out`` gets the gradient.

    The derivative along p, which starts at ``derivative``, is brought to a tenth by secants and
    halves in turn.
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


def _to_border(p: F64, d: F64, M: F64, radius: float) -> float:
    """Return the t > 0 with |p + t d|_M = radius."""
    pp, pd, dd = float(p @ (M * p)), float(p @ (M * d)), float(d @ (M * d))
    rest = max(0.0, radius * radius - pp)
    root = math.sqrt(pd * pd + dd * rest)
    return rest / (pd + root) if pd >= 0.0 else (root - pd) / dd


def _norm(g: F64, M: F64) -> float:
    return math.sqrt(float(g @ (g / M)))
