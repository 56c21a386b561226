"""Coordinate descent over partitions: Newton steps on blocks of columns, with the l1 term whole.

A step along a single column would need a message to every part. A sweep over a block of columns is
one step in their place: with g and H the gradient and Hessian of the smooth part there,

    p = argmin  g'p + 1/2 p'H p + l1 |w + p|_1                                                (1)

is found on the driver, a column at a time, and w goes along p as far as the objective falls
(`yuan2012glmnet`). The parts give g and H, whose size is that of the block.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.errors import UsageError
from rankwright.models.linear_problem import SummedProblem, Sums
from rankwright.solvers.coordinate import residuals

_ALONG = 100  # most passes over a block of columns
_HALVINGS = 30


class BlockSums(Sums, Protocol):
    """Sums that tell a block of the Hessian too."""

    def hess_block(self, at: F64, columns: I64) -> F64:
        """Return the rows and columns ``columns`` of X' H X at the weights ``at``."""


class PartitionedColumns:
    """The problem with an l1 penalty, for `rankwright.solvers.coordinate`.

    ``sweep`` minimises along its columns the second-order model of the loss plus the penalties and
    goes as far that way as the objective falls.
    """

    def __init__(self, sums: BlockSums, total_weight: float, deviation: F64) -> None:
        self.size, self.l1, self.l2 = sums.n_features, 0.0, 0.0
        self._sums, self._total, self._deviation = sums, total_weight, deviation

    def value(self, w: F64) -> float:
        """Return the objective."""
        return self._problem().value(w) + self.l1 * float(np.abs(w).sum())

    def grad(self, w: F64, out: F64) -> float:
        """Write the gradient of all but the l1 term to ``out`` and return the objective."""
        return self._problem().grad(w, out) + self.l1 * float(np.abs(w).sum())

    def sweep(self, w: F64, columns: I64, *, step: str = "log1p") -> F64:
        """Take a step along ``columns`` together, changing ``w``.

        Returns how far from optimal each column was before.
        """
        if step != "log1p":
            raise UsageError("step='bound' runs in one process; leave step out.")
        slope = np.empty(self.size)
        before = self.grad(w, slope)
        missed: F64 = residuals(slope, w, self.l1)[columns]
        factor = 1.0 / self._deviation[columns]
        block = self._sums.hess_block(w / self._deviation, columns)
        H = block * np.outer(factor, factor) / self._total + self.l2 * np.eye(len(columns))
        p = _along_columns(slope[columns], H, w[columns], self.l1)
        own = w[columns]
        promised = float(slope[columns] @ p)
        promised += self.l1 * float(np.abs(own + p).sum() - np.abs(own).sum())
        length = 1.0
        for _ in range(_HALVINGS):
            w[columns] = own + length * p
            if self.value(w) <= before + 1e-4 * length * promised:
                return missed
            length *= 0.5
        w[columns] = own
        return missed

    def _problem(self) -> SummedProblem:
        return SummedProblem(self._sums, self._total, l2=self.l2, deviation=self._deviation)


def _along_columns(g: F64, H: F64, w: F64, l1: float) -> F64:
    """Return the p of (1), a column at a time."""
    p, Hp = np.zeros(len(g)), np.zeros(len(g))
    for _ in range(_ALONG):
        largest = 0.0
        for j in range(len(g)):
            bend = max(H[j, j], 1e-12)
            at = w[j] + p[j]
            aim = at - (g[j] + Hp[j]) / bend
            reached = np.sign(aim) * max(abs(aim) - l1 / bend, 0.0)
            if reached != at:
                Hp += (reached - at) * H[:, j]
                p[j] += reached - at
                largest = max(largest, bend * abs(reached - at))
        if largest <= 1e-9 * (np.abs(g).max(initial=0.0) + l1):
            break
    return p
