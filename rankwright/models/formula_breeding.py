"""Formulas drawn at random, crossed and changed, within limits of size, depth and features.

What is bred is simplified at once, so that the limits count only what matters and formulas of the
same meaning are seen to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwright.models.formula import (
    BINARY,
    FEATURE,
    NUMBER,
    UNARY,
    Formula,
    columns_of,
    depth,
    is_leaf,
    parts_of,
    simplify,
    size,
)

_NUMBERS = 0.2  # share of leaves that are numbers
_INNER = 0.9  # share of cuts at an operation, where there is one (Koza)
_UNARY = 0.2  # share of operations on one part
_FIRST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Breeding:
    """Limits of formulas over some of the ``columns`` of the data."""

    columns: Sequence[int]
    max_nodes: int
    max_depth: int
    max_features: int

    def first(self, number: int, rng: np.random.Generator) -> Formula:
        """Return a formula of the first generation: ramped half-and-half.

        Depths go from 1 up in turn; of each, half are full and half grow as it falls.
        """
        most = min(self.max_depth, _FIRST_DEPTH)
        deep, full = 1 + (number // 2) % most, number % 2 == 0
        while True:
            made = self._within(self._drawn(deep, full, rng))
            if made is not None:
                return made
            deep = max(0, deep - 1)

    def cross(self, a: Formula, b: Formula, rng: np.random.Generator) -> Formula:
        """Return ``a`` with a part replaced by one of ``b``, or ``a`` if that is too much."""
        made = _replaced(a, _cut(a, rng), parts_of(b)[_cut(b, rng)])
        return self._within(made) or a

    def mutate(self, a: Formula, rng: np.random.Generator) -> Formula:
        """Return ``a`` with a part drawn anew, a node changed, a term added, or a part alone."""
        at = int(rng.integers(size(a)))
        kind = rng.random()
        if kind < 0.25:
            made = _replaced(a, at, self._drawn(2, False, rng))
        elif kind < 0.65:
            made = _replaced(a, at, self._changed(parts_of(a)[at], rng))
        elif kind < 0.9:
            term = ("*", self._feature(rng), _number(rng))
            made = (str(rng.choice(["+", "*", "max", "min"])), a, term)
        else:
            made = parts_of(a)[at]
        return self._within(made) or a

    def size(self, a: Formula) -> int:
        """Return the number of nodes."""
        return size(a)

    def _within(self, tree: Formula) -> Formula | None:
        """Return the formula simplified, or None where it breaks a limit."""
        tree = simplify(tree)
        fits = (
            size(tree) <= self.max_nodes
            and depth(tree) <= self.max_depth
            and len(columns_of(tree)) <= self.max_features
        )
        return tree if fits else None

    def _drawn(self, deep: int, full: bool, rng: np.random.Generator) -> Formula:
        if deep == 0 or (not full and rng.random() < 0.3):
            return _number(rng) if rng.random() < _NUMBERS else self._feature(rng)
        if rng.random() < _UNARY:
            return (_pick(UNARY, rng), self._drawn(deep - 1, full, rng))
        left, right = (self._drawn(deep - 1, full, rng) for _ in range(2))
        return (_pick(BINARY, rng), left, right)

    def _feature(self, rng: np.random.Generator) -> Formula:
        return (FEATURE, int(self.columns[int(rng.integers(len(self.columns)))]))

    def _changed(self, node: Formula, rng: np.random.Generator) -> Formula:
        """Return another node over the same parts."""
        if node[0] == FEATURE:
            return self._feature(rng)
        if node[0] == NUMBER:
            return (NUMBER, _short(node[1] * np.exp(0.5 * rng.normal())))
        return (_pick(UNARY if len(node) == 2 else BINARY, rng), *node[1:])


def _pick(names: Sequence[str], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]


def _number(rng: np.random.Generator) -> Formula:
    return (NUMBER, _short(rng.normal() * 10.0 ** rng.uniform(-1.0, 1.0)))


def _short(value: float) -> float:
    """Return a number of three digits, which is as good and easier to read."""
    return float(f"{value:.3g}")


def _cut(tree: Formula, rng: np.random.Generator) -> int:
    """Return a node, counted from the root, at which to cut: mostly an operation."""
    every = parts_of(tree)
    inner = [at for at, part in enumerate(every) if not is_leaf(part)]
    if inner and rng.random() < _INNER:
        return inner[int(rng.integers(len(inner)))]
    return int(rng.integers(len(every)))


def _replaced(tree: Formula, at: int, new: Formula) -> Formula:
    """Return the formula with its part at node ``at``, counted as by `parts_of`, replaced."""
    if at == 0:
        return new
    at -= 1
    parts = list(tree[1:])
    for k, part in enumerate(parts):
        length = size(part)
        if at < length:
            parts[k] = _replaced(part, at, new)
            break
        at -= length
    return (tree[0], *parts)
