"""Evolution: the better candidates are crossed and changed, generation after generation.

Each generation keeps its best candidates as they are (elites), so the best fitness never falls. A
parent is the best of ``tournament`` candidates drawn at random, by fitness less ``parsimony`` for
each node of its size; among equals the smaller wins. A child is two parents crossed, or one parent
changed; one that the generation already has is drawn again, so that no candidate takes it over.

Nothing here knows what a candidate is: the problem draws, crosses, changes and measures them
(`koza1992genetic`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64
from rankwright.errors import UsageError

_TRIES = 10  # draws of a child that is not there yet, before one that is will do


class Species(Protocol):
    """What candidates are; each is a value that can be compared and hashed."""

    def first(self, number: int, rng: np.random.Generator) -> Any:
        """Return candidate ``number`` of the first generation."""

    def cross(self, a: Any, b: Any, rng: np.random.Generator) -> Any:
        """Return a child of two parents."""

    def mutate(self, a: Any, rng: np.random.Generator) -> Any:
        """Return a changed copy."""

    def size(self, a: Any) -> int:
        """Return how large a candidate is."""


@dataclass(frozen=True, slots=True)
class Evolve:
    """Genetic search for the candidate of highest fitness.

    Parameters
    ----------
    population
        Candidates of a generation.
    n_generations
        Generations, the first one included.
    tournament
        Candidates drawn for each choice of a parent; the more, the harder the selection.
    crossover
        Share of children that have two parents; the others are changed copies.
    elites
        Best candidates that go on as they are.
    parsimony
        Fitness that a node costs a candidate when parents are chosen.
    """

    population: int = 400
    n_generations: int = 30
    tournament: int = 7
    crossover: float = 0.6
    elites: int = 2
    parsimony: float = 1e-4

    def check(self) -> None:
        """Refuse numbers that make no sense."""
        for name in ("population", "n_generations", "tournament", "elites"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, not {getattr(self, name)}.")
        if self.elites > self.population:
            raise UsageError(f"elites must be at most population, {self.population}.")
        if not 0.0 <= self.crossover <= 1.0:
            raise UsageError(f"crossover must be a share from 0 to 1, not {self.crossover}.")
        if self.parsimony < 0.0:
            raise UsageError(f"parsimony must be 0 or more, not {self.parsimony}.")

    def run(
        self,
        species: Species,
        fitness: Callable[[Sequence[Any]], F64],
        callback: Callable[[int, Any, float], bool],
        *,
        start: Iterable[Any] = (),
        seed: int = 0,
    ) -> None:
        """Evolve; ``callback`` is shown the best of each generation and may end the run.

        ``start`` are candidates of the first generation.
        """
        self.check()
        rng = stream(seed, "evolve", 1)
        drawn = (species.first(number, rng) for number in range(_TRIES * self.population))
        alive = self._filled([*start], drawn)
        for t in range(1, self.n_generations + 1):
            values = fitness(alive)
            sizes = np.array([species.size(one) for one in alive])
            order = np.lexsort((sizes, -values))
            if callback(t, alive[order[0]], float(values[order[0]])) or t == self.n_generations:
                return
            rng = stream(seed, "evolve", t + 1)
            place = np.empty(len(alive), np.int64)
            place[np.lexsort((sizes, -(values - self.parsimony * sizes)))] = np.arange(len(alive))
            children = (
                self._child(species, alive, place, rng) for _ in range(_TRIES * self.population)
            )
            alive = self._filled([alive[k] for k in order[: self.elites]], children)

    def _filled(self, kept: list[Any], more: Iterable[Any]) -> list[Any]:
        """Return ``kept`` and as many of ``more`` as there is room for, each candidate once."""
        made = list(dict.fromkeys(kept))
        known, spare = set(made), []
        for one in more:
            if len(made) >= self.population:
                break
            if one in known:
                spare.append(one)
            else:
                known.add(one)
                made.append(one)
        return made + spare[: self.population - len(made)]

    def _child(
        self, species: Species, alive: list[Any], place: I64, rng: np.random.Generator
    ) -> Any:
        a = alive[self._winner(place, rng)]
        if rng.random() < self.crossover:
            return species.cross(a, alive[self._winner(place, rng)], rng)
        return species.mutate(a, rng)

    def _winner(self, place: I64, rng: np.random.Generator) -> int:
        drawn = rng.integers(len(place), size=self.tournament)
        return int(drawn[np.argmin(place[drawn])])
