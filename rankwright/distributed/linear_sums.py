"""Sums of a linear problem over parts of the data, added up in the order of the parts.

They are those of `rankwright.models.linear_problem`: each part answers for itself, where it is
(`rankwright.distributed.pieces`), and the driver adds the answers from the first to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.core.types import F64, I64
from rankwright.distributed.cluster import Here
from rankwright.distributed.partitions import Partitions
from rankwright.distributed.pieces import Recipe, ask, ask_with_targets, forget
from rankwright.errors import UsageError


class PartitionedSums:
    """Sums over parts, added up in their order; see `rankwright.models.linear_problem.Sums`."""

    def __init__(self, parts: Partitions, recipe: Recipe) -> None:
        self.n_features = parts.n_features
        self._parts, self._recipe = parts, recipe
        self._numbers = list(range(len(parts)))
        self._firsts = parts.first_queries
        self._at = np.zeros(self.n_features)
        self._turn = 0
        self.round = 0  # of the noise, where the loss has any

    def scores(self, w: F64) -> Any:  # noqa: ARG002
        """Refuse: scores stay where the data are."""
        raise UsageError("scores of partitions stay on their workers; use distributed.predict.")

    def value(self, w: F64) -> float:
        """Return the loss."""
        return float(in_order(self.each("value", w)))

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        self._at = w.copy()
        return pairs_in_order(self.each("grad", w))

    def hess_vec(self, u: F64) -> F64:
        """Return X' H X u at the w of the last ``grad``."""
        total: F64 = in_order(self.each("hess_vec", self._at, u))
        return total

    def hess_block(self, at: F64, columns: I64) -> F64:
        """Return a block of X' H X at the weights ``at``."""
        total: F64 = in_order(self.each("hess_block", at, columns))
        return total

    def squares(self) -> F64:
        """Return the weighted sum of squares of each feature."""
        total: F64 = in_order(self.each("squares"))
        return total

    def convex_part(self, w: F64) -> tuple[float, F64]:
        """Return M and X' times its slope, where the loss is M - N; else as ``grad``."""
        return pairs_in_order(self.each("convex_part", w))

    def concave_part(self, w: F64) -> tuple[float, F64]:
        """Return N and X' times its slope."""
        return pairs_in_order(self.each("concave_part", w))

    def targets(self, w: F64, near: Any, rate: float) -> list[Any]:
        """Return the targets of each part, which stay where they are."""
        assert near is None or rate == 1.0, "fit_linear has refused other rates"
        return self._held("targets", w)

    def with_targets(self, r: list[Any]) -> HeldSums:
        """Return the sums of coming near to fixed targets."""
        self._turn += 1
        return HeldSums(self, r, self._turn)

    def each(self, question: str, *args: Any, only: list[int] | None = None) -> list[Any]:
        """Return the answers of the parts, or of some of them; ``args`` may hold one per part.

        An argument that is a `PerPart` has its own value for each part that is asked.
        """
        return self._parts.place.results(self._held(question, *args, only=only))

    def _held(self, question: str, *args: Any, only: list[int] | None = None) -> list[Any]:
        chosen = self._numbers if only is None else only
        columns = [arg.values if isinstance(arg, PerPart) else [arg] * len(chosen) for arg in args]
        return self._parts.place.call(
            ask,
            [self._parts.parts[k] for k in chosen],
            chosen,
            [self._firsts[k] for k in chosen],
            [self._recipe] * len(chosen),
            [self.round] * len(chosen),
            [question] * len(chosen),
            *columns,
        )

    def each_with_targets(self, r: list[Any], turn: int, *asked: Any) -> list[Any]:
        """Return the answers of the losses that are held to ``r``."""
        constant = [self._recipe, turn, *asked]
        n = len(self._numbers)
        held = self._parts.place.call(
            ask_with_targets,
            self._parts.parts,
            r,
            self._numbers,
            self._firsts,
            *([value] * n for value in constant),
        )
        return self._parts.place.results(held)

    def close(self) -> None:
        """Let workers forget what they kept."""
        if isinstance(self._parts.place, Here):
            forget(self._recipe.key)
        else:
            self._parts.client.run(forget, self._recipe.key, on_error="ignore")


@dataclass(frozen=True)
class PerPart:
    """An argument with a value for each part."""

    values: list[Any]


class HeldSums(PartitionedSums):
    """The sums of losses that are held to targets; only what L-BFGS asks for."""

    def __init__(self, sums: PartitionedSums, r: list[Any], turn: int) -> None:
        super().__init__(sums._parts, sums._recipe)
        self._sums, self._r, self._turn = sums, r, turn

    def value(self, w: F64) -> float:
        """Return the loss."""
        return float(in_order(self._sums.each_with_targets(self._r, self._turn, "value", w)))

    def grad(self, w: F64) -> tuple[float, F64]:
        """Return the loss and X' g."""
        return pairs_in_order(self._sums.each_with_targets(self._r, self._turn, "grad", w))


def in_order(values: Any) -> Any:
    """Add numbers or arrays from the first to the last."""
    rest = iter(values)
    total = next(rest)
    for value in rest:
        total = total + value
    return total


def pairs_in_order(pairs: Any) -> tuple[Any, Any]:
    """Add the first of all pairs, and the second, from the first pair to the last."""
    pairs = list(pairs)
    return in_order(a for a, _ in pairs), in_order(b for _, b in pairs)
