"""A score that is a short formula over features, found by genetic programming (RankGP).

The fitness of a formula f is the mean of the metric when documents are ranked by f
(`yeh2007rankgp`), averaged over the orders of documents that f scores alike: a formula that is the
same for all of them gains nothing from the order of the file. `rankwright.models.expression` breeds
the formulas, `rankwright.models.formula` says what they are made of. The best of each generation is
shown to the callback, and the validation data choose between them.

A whole generation is evaluated at once (`rankwright.models.formula`). A formula met
before, after simplification, is not evaluated again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from rankwright.core.parameters import Part
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, Callback, Metric
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics import base
from rankwright.metrics.evaluation import Evaluator
from rankwright.models.callbacks import until_interrupted
from rankwright.models.formula import (
    BINARY,
    FEATURE,
    MOST_DEPTH,
    MOST_FEATURES,
    MOST_NODES,
    NUMBER,
    UNARY,
    FittedExpression,
    Formula,
    columns_as_rows,
    columns_of,
    depth,
    is_leaf,
    parts_of,
    postfix,
    simplify,
    size,
    text,
    values_of,
)
from rankwright.models.linear import fill_values, filled
from rankwright.solvers.oracle_log import OracleLog

_AT_ONCE = 1 << 22  # scores of a generation held at a time


@dataclass(frozen=True, slots=True, repr=False)
class Expression(Part):
    """A formula over features that climbs a metric by genetic programming.

    Parameters
    ----------
    population, n_generations, tournament, crossover, elites, parsimony
        See `rankwright.models.expression.Evolve`; the best generation on the validation set is
        kept.
    max_nodes, max_depth, max_features
        The largest formula: its nodes, the operations on its longest way, its features.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Weights of queries count as they do in the metric, which knows no weights of documents.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RankGP(model=rw.models.Expression(population=100))
    RankGP(model=Expression(population=100))
    """

    population: int = 400
    n_generations: int = 30
    tournament: int = 7
    crossover: float = 0.6
    elites: int = 2
    parsimony: float = 1e-4
    max_nodes: int = 31
    max_depth: int = 8
    max_features: int = 10
    missing: str | None = None

    optimises_metric: ClassVar[bool] = True

    def fit(
        self,
        metric: Metric,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedExpression | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedExpression:
        """Breed formulas for a high mean of ``metric``, with that of ``start`` among the first."""
        self._check()
        evolve = Evolve(**{field.name: getattr(self, field.name) for field in fields(Evolve)})
        evolve.check()
        fill = fill_values(data.X, self.missing)
        whole = replace(data, X=filled(data.X, fill, "formula"))
        _, ordered = in_content_order(whole, n_jobs=n_jobs)
        train = _Generation(metric, ordered, OracleLog(callback), n_jobs)
        valid = None if callback.valid is None else filled(callback.valid.X, fill, "formula")
        tried: list[FittedExpression] = []

        def show(t: int, best: Formula, fitness: float) -> bool:
            model = _fitted(best, train.means, fill, data)
            tried.append(model)
            on_train = model.scores(whole.X, n_jobs=n_jobs) if callback.wants_train else None
            on_valid = None if valid is None else model.scores(valid, n_jobs=n_jobs)
            return callback.on_iteration(t, -fitness, on_train, on_valid)

        species = Breeding(train.varied, self.max_nodes, self.max_depth, self.max_features)
        known = () if start is None else (start.formula,)
        with until_interrupted(callback, tried):
            evolve.run(species, train.fitness, show, start=known, seed=random_state)
        return tried[min(callback.best(), len(tried)) - 1]

    def _check(self) -> None:
        for name in ("max_nodes", "max_depth", "max_features"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, not {getattr(self, name)}.")
        bounds = {"max_nodes": MOST_NODES, "max_depth": MOST_DEPTH, "max_features": MOST_FEATURES}
        for name, most in bounds.items():
            if getattr(self, name) > most:
                raise UsageError(
                    f"{name} must be at most {most}, not {getattr(self, name)}; a longer formula "
                    "cannot be explained."
                )

    restore = staticmethod(FittedExpression.restore)


class _Generation:
    """Training data by columns, and the fitness of formulas on it."""

    def __init__(
        self, metric: Metric, data: RankingData, log: OracleLog, n_jobs: int | None
    ) -> None:
        assert isinstance(metric, base.Metric)
        self._log = log
        self._metric = metric.for_selection()
        self._evaluator = Evaluator(data, self._metric, n_jobs=n_jobs)
        self._columns = columns_as_rows(data.X, list(range(data.n_features)))
        self._n_jobs = n_jobs
        self._known: dict[Formula, float] = {}
        self.means: F64 = self._columns.mean(axis=1)
        spread = np.ptp(self._columns, axis=1)
        self.varied: list[int] = np.flatnonzero((spread > 0.0) | ~(spread > 0.0).any()).tolist()

    def fitness(self, formulas: Sequence[Formula]) -> F64:
        """Return the mean of the metric for each formula, its negative where that falls."""
        unknown = [one for one in dict.fromkeys(formulas) if one not in self._known]
        sizes = np.array([size(one) for one in unknown])
        (found,) = self._log.recall(lambda: (self._means(unknown),), sizes)
        self._known.update(zip(unknown, found.tolist(), strict=True))
        return np.array([self._known[one] for one in formulas])

    def _means(self, formulas: Sequence[Formula]) -> list[float]:
        at_once = max(1, _AT_ONCE // max(1, self._columns.shape[1]))
        return [
            self._mean(scores)
            for first in range(0, len(formulas), at_once)
            for scores in self._scores(formulas[first : first + at_once])
        ]

    def _mean(self, scores: F64) -> float:
        (mean,) = self._evaluator.means(scores).values()
        if math.isnan(mean):  # no query counts
            return 0.0
        return mean if self._metric.maximise else -mean

    def _scores(self, formulas: Sequence[Formula]) -> F64:
        codes, values = zip(*map(postfix, formulas), strict=True)
        starts = np.concatenate(([0], np.cumsum([len(code) for code in codes])))
        made = (starts, np.concatenate(codes), np.concatenate(values))
        return values_of(*made, self._columns, n_jobs=self._n_jobs)


def _fitted(tree: Formula, means: F64, fill: F64 | None, data: RankingData) -> FittedExpression:
    code, value = postfix(tree)
    written = text(tree, data.feature_names)
    return FittedExpression(code, value, means[columns_of(tree)], fill, data.n_features, written)


# --- evolution -------------------------------------------------------------------------------
# Evolution: the better candidates are crossed and changed, generation after generation.
#
# Each generation keeps its best candidates as they are (elites), so the best fitness never falls.
# A parent is the best of ``tournament`` candidates sampled at random, by fitness less ``parsimony``
# for each node of its size; among equals the smaller wins. A child is two parents crossed, or one
# parent changed; one that the generation already has is sampled again, so that no candidate takes
# it over.
#
# Nothing here knows what a candidate is: the problem draws, crosses, changes and metrics them
# (`koza1992genetic`).


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
        Candidates sampled for each choice of a parent; the more, the harder the selection.
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
        sampled = (species.first(number, rng) for number in range(_TRIES * self.population))
        alive = self._filled([*start], sampled)
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
        sampled = rng.integers(len(place), size=self.tournament)
        return int(sampled[np.argmin(place[sampled])])


# --- formulas sampled, crossed and changed ---------------------------------------------------
# Formulas sampled at random, crossed and changed, within limits of size, depth and features.
#
# What is bred is simplified at once, so that the limits count only what matters and formulas of the
# same meaning are seen to be the same.


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
            made = self._within(self._sampled(deep, full, rng))
            if made is not None:
                return made
            deep = max(0, deep - 1)

    def cross(self, a: Formula, b: Formula, rng: np.random.Generator) -> Formula:
        """Return ``a`` with a part replaced by one of ``b``, or ``a`` if that is too much."""
        made = _replaced(a, _cut(a, rng), parts_of(b)[_cut(b, rng)])
        return self._within(made) or a

    def mutate(self, a: Formula, rng: np.random.Generator) -> Formula:
        """Return ``a`` with a part sampled anew, a node changed, a term added, or a part alone."""
        at = int(rng.integers(size(a)))
        kind = rng.random()
        if kind < 0.25:
            made = _replaced(a, at, self._sampled(2, False, rng))
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

    def _sampled(self, deep: int, full: bool, rng: np.random.Generator) -> Formula:
        if deep == 0 or (not full and rng.random() < 0.3):
            return _number(rng) if rng.random() < _NUMBERS else self._feature(rng)
        if rng.random() < _UNARY:
            return (_pick(UNARY, rng), self._sampled(deep - 1, full, rng))
        left, right = (self._sampled(deep - 1, full, rng) for _ in range(2))
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
