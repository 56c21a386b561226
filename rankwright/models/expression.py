"""Scores by a short formula over features, found by genetic programming (RankGP).

The fitness of a formula is the mean of the metric when documents are ranked by its values
(`yeh2007rankgp`), averaged over the orders of documents with equal values: a constant gains nothing
from the order of the file. Each generation retains its best formulas unchanged (elites), so the
best fitness never falls. A parent is the best of ``tournament`` formulas sampled at random, by
fitness less ``parsimony`` for each node; the smaller wins among equals. A child is a crossover of
two parents or a mutation of one (`koza1992genetic`). A child that is already in its generation is
sampled again, so that no formula takes the generation over.

Each new formula is simplified (`rankwright.models.formula`), so that the limits count only nodes
with an effect and a formula that occurs again is not evaluated again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parameters import Count, Missing, NonNegative
from rankwright.core.rng import stream
from rankwright.core.types import F64, AnyArray, FloatMatrix, Metric, Round
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics import base
from rankwright.metrics.evaluation import Evaluator
from rankwright.models.formula import (
    BINARY,
    FEATURE,
    MOST_DEPTH,
    NUMBER,
    UNARY,
    Formula,
    columns_of,
    depth,
    formula_values,
    from_json,
    is_leaf,
    limited_columns,
    parts_of,
    simplify,
    size,
    text,
)
from rankwright.models.missing import fill_values, filled
from rankwright.models.schema import FILL, ModelPart, Schema

Item = TypeVar("Item")

_TRIES = 10  # samples for each place of a generation, before duplicates are accepted
_NUMBERS = 0.2  # share of leaves that are numbers
_INNER = 0.9  # share of cuts at an operation, if there is one (Koza)
_UNARY = 0.2  # share of operations with one operand
_FIRST_DEPTH = 4

# --- the fitted model ------------------------------------------------------------------------

_SCHEMA = Schema((FILL,), {"formula": ()})


@dataclass(frozen=True, eq=False)
class FittedExpression:
    """A formula as a fitted model.

    Attributes
    ----------
    formula
        Nested tuples; see `rankwright.models.formula`.
    fill
        Replacement of a missing value of each feature, or None.
    """

    formula: Formula
    fill: F64 | None
    n_features: int

    def describe(self, names: Sequence[str]) -> list[str]:
        """Return a heading and the formula with the ``names`` of features."""
        nodes, features = size(self.formula), len(columns_of(self.formula))
        lines = [f"a formula of {nodes} nodes over {features} features"]
        lines.append(f"score = {text(self.formula, names)}")
        if any(part[0] == "/" for part in parts_of(self.formula)):
            lines.append("a quotient is 1 where its divisor is 0")
        return lines

    def scores(self, X: FloatMatrix, *, n_jobs: int | None = None) -> F64:
        """Return the value of the formula for each row."""
        columns = limited_columns(filled(X, self.fill, "formula"), columns_of(self.formula))
        return formula_values(self.formula, columns, X.shape[0], n_jobs=n_jobs)

    def contributions(self, X: FloatMatrix) -> F64:  # noqa: ARG002
        """Raise: the score of a formula is not a sum over features."""
        raise UsageError(
            "a formula's score is not a sum over features; print the formula with inspect, or use "
            "permutation importance."
        )

    def arrays(self) -> dict[str, AnyArray]:
        """Return the fill values of features, if there are any."""
        return {} if self.fill is None else {"fill": self.fill}

    def texts(self) -> dict[str, str]:
        """Return the formula as JSON."""
        return {"formula": json.dumps([self.formula])}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> FittedExpression:
        """Build the fitted model from its checked arrays and texts."""
        _SCHEMA.check(arrays, texts, features=n_features)
        return cls(from_json(texts["formula"], n_features)[0], arrays.get("fill"), n_features)


# --- the model -------------------------------------------------------------------------------

_STATE = (ArraySpec("best", "uint8", ("best",)), ArraySpec("population", "uint8", ("population",)))


@dataclass(frozen=True, slots=True, repr=False)
class Expression(ModelPart):
    """A formula over features that maximises a metric by genetic programming.

    Query weights count as in the metric. Document weights are not used.

    Parameters
    ----------
    population
        Number of formulas of a generation.
    n_generations
        Number of generations, the first included. The best one on the validation set is selected.
    tournament
        Number of formulas sampled for each choice of a parent. A larger number selects harder.
    crossover
        Share of children with two parents. The remaining children are mutations of one parent.
    elites
        Number of best formulas that pass to the next generation unchanged.
    parsimony
        Fitness subtracted for each node when parents are selected.
    max_nodes, max_depth, max_features
        Largest numbers of nodes, of operations on the longest path, and of features of a formula.
    missing : None, "mean" or "zero"
        Replacement of missing values. None refuses them.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RankGP(model=rw.models.Expression(population=100))
    RankGP(model=Expression(population=100))
    """

    population: Count = 400
    n_generations: Count = 30
    tournament: Count = 7
    crossover: float = 0.6
    elites: Count = 2
    parsimony: NonNegative = 1e-4
    max_nodes: Count = 31
    max_depth: Count = 8
    max_features: Count = 10
    missing: Missing = None

    fitted_class: ClassVar[Any] = FittedExpression
    optimises_metric: ClassVar[bool] = True
    resumable: ClassVar[bool] = True

    def check(self) -> None:
        """Raise for parameters out of range."""
        if self.max_depth > MOST_DEPTH:
            raise UsageError(f"max_depth must be at most {MOST_DEPTH}, not {self.max_depth}.")
        if self.elites > self.population:
            raise UsageError(f"elites must be at most population, {self.population}.")
        if not 0.0 <= self.crossover <= 1.0:
            raise UsageError(f"crossover must be a share from 0 to 1, not {self.crossover}.")

    def rounds(
        self,
        metric: Metric,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: FittedExpression | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield the best formula of each generation; the first one includes that of ``start``."""
        self.check()
        fill = fill_values(data.X, self.missing)
        _, ordered = in_content_order(
            replace(data, X=filled(data.X, fill, "formula")), n_jobs=n_jobs
        )
        valid_X = None if valid is None else filled(valid.X, fill, "formula")
        columns = limited_columns(ordered.X, range(data.n_features))
        varied = [column for column, x in columns.items() if np.ptp(x) > 0.0] or [*columns]
        fitness = _fitness(metric, ordered, columns, n_jobs)

        def build(formula: Formula) -> FittedExpression:
            return FittedExpression(formula, fill, data.n_features)

        best: list[Formula] = []
        population: list[Formula] = []
        if resume is not None:
            check_arrays(_STATE, resume, "the checkpoint")
            best, population = (
                from_json(resume[spec.name].tobytes(), data.n_features) for spec in _STATE
            )
            for t, formula in enumerate(best, start=1):
                yield Round(t, np.nan, None, partial(build, formula))
        for t in range(len(best), self.n_generations):
            if t == 0:
                population = self.first_generation(start, varied, random_state)
            else:
                values = fitness(population)
                population = self.next_generation(population, values, varied, t, random_state)
            values = fitness(population)
            leader = int(np.lexsort((_sizes(population), -values))[0])
            best.append(population[leader])
            model = partial(build, best[-1])
            scores = None if valid_X is None else model().scores(valid_X, n_jobs=n_jobs)
            state = partial(_state, best[:], population)
            yield Round(t + 1, -float(values[leader]), scores, model, state)

    # --- generations -------------------------------------------------------------------------

    def first_generation(
        self, start: FittedExpression | None, columns: Sequence[int], seed: int
    ) -> list[Formula]:
        """Return sampled formulas: ramped half-and-half, after the formula of ``start``.

        Depths rise in turn from 1. Of each depth, half of the formulas are full trees.
        """
        rng = stream(seed, "evolve", 1)
        deepest = min(self.max_depth, _FIRST_DEPTH)
        samples = (
            self._first_formula(1 + (number // 2) % deepest, number % 2 == 0, columns, rng)
            for number in range(_TRIES * self.population)
        )
        return self._without_duplicates([] if start is None else [start.formula], samples)

    def _first_formula(
        self, deep: int, full: bool, columns: Sequence[int], rng: np.random.Generator
    ) -> Formula:
        while True:
            formula = self._within_limits(_sampled(deep, full, columns, rng))
            if formula is not None:
                return formula
            deep = max(0, deep - 1)

    def next_generation(
        self, population: list[Formula], values: F64, columns: Sequence[int], t: int, seed: int
    ) -> list[Formula]:
        """Return generation ``t`` + 1: the elites of generation ``t``, and children of it."""
        rng = stream(seed, "evolve", t + 1)
        sizes = _sizes(population)
        order = np.lexsort((sizes, -values))
        rank = np.argsort(np.lexsort((sizes, self.parsimony * sizes - values)))

        def parent() -> Formula:
            sampled = rng.integers(len(rank), size=self.tournament)
            return population[int(sampled[np.argmin(rank[sampled])])]

        def child() -> Formula:
            first = parent()
            if rng.random() < self.crossover:
                return self.cross(first, parent(), rng)
            return self.mutate(first, columns, rng)

        children = (child() for _ in range(_TRIES * self.population))
        return self._without_duplicates([population[k] for k in order[: self.elites]], children)

    def _without_duplicates(
        self, formulas: list[Formula], samples: Iterable[Formula]
    ) -> list[Formula]:
        """Return ``formulas`` and new samples, with duplicates only if new ones are too few."""
        generation, duplicates = dict.fromkeys(formulas), []
        for formula in samples:
            if len(generation) >= self.population:
                break
            if formula in generation:
                duplicates.append(formula)
            generation.setdefault(formula)
        return [*generation, *duplicates[: self.population - len(generation)]]

    # --- crossover and mutation --------------------------------------------------------------

    def cross(self, a: Formula, b: Formula, rng: np.random.Generator) -> Formula:
        """Return ``a`` with a part replaced by one of ``b``, or ``a`` if that breaks a limit."""
        return self._within_limits(_replaced(a, _cut(a, rng), parts_of(b)[_cut(b, rng)])) or a

    def mutate(self, a: Formula, columns: Sequence[int], rng: np.random.Generator) -> Formula:
        """Return ``a`` with a new part, a changed node or one more term, or a part of ``a``."""
        at = int(rng.integers(size(a)))
        kind = rng.random()
        if kind < 0.25:
            mutant = _replaced(a, at, _sampled(2, False, columns, rng))
        elif kind < 0.65:
            mutant = _replaced(a, at, _changed(parts_of(a)[at], columns, rng))
        elif kind < 0.9:
            term = ("*", _feature(columns, rng), _number(rng))
            mutant = (str(rng.choice(["+", "*", "max", "min"])), a, term)
        else:
            mutant = parts_of(a)[at]
        return self._within_limits(mutant) or a

    def _within_limits(self, formula: Formula) -> Formula | None:
        """Return the simplified formula, or None if it breaks a limit."""
        formula = simplify(formula)
        fits = (
            size(formula) <= self.max_nodes
            and depth(formula) <= self.max_depth
            and len(columns_of(formula)) <= self.max_features
        )
        return formula if fits else None


def _fitness(
    metric: Metric, data: RankingData, columns: Mapping[int, F64], n_jobs: int | None
) -> Callable[[Sequence[Formula]], F64]:
    """Return a function from formulas to means of the metric, negative if the metric falls."""
    assert isinstance(metric, base.Metric)
    selection = metric.for_selection()
    evaluator = Evaluator(data, selection, n_jobs=n_jobs)

    @cache
    def mean(formula: Formula) -> float:
        scores = formula_values(formula, columns, data.n_documents, n_jobs=n_jobs)
        (value,) = evaluator.means(scores).values()
        if math.isnan(value):  # no query counts
            return 0.0
        return value if selection.maximise else -value

    return lambda formulas: np.array([mean(formula) for formula in formulas])


def _sizes(formulas: Sequence[Formula]) -> AnyArray:
    return np.array([size(formula) for formula in formulas])


def _state(best: Sequence[Formula], population: Sequence[Formula]) -> dict[str, AnyArray]:
    """Return the best formula of each generation and the last generation as bytes of JSON."""
    formulas = {"best": best, "population": population}
    return {
        name: np.frombuffer(json.dumps(part).encode(), np.uint8) for name, part in formulas.items()
    }


# --- formulas sampled and changed ------------------------------------------------------------


def _sampled(deep: int, full: bool, columns: Sequence[int], rng: np.random.Generator) -> Formula:
    if deep == 0 or (not full and rng.random() < 0.3):
        return _number(rng) if rng.random() < _NUMBERS else _feature(columns, rng)
    if rng.random() < _UNARY:
        return (_pick([*UNARY], rng), _sampled(deep - 1, full, columns, rng))
    left, right = (_sampled(deep - 1, full, columns, rng) for _ in range(2))
    return (_pick([*BINARY], rng), left, right)


def _changed(node: Formula, columns: Sequence[int], rng: np.random.Generator) -> Formula:
    """Return another node with the same operands."""
    if node[0] == FEATURE:
        return _feature(columns, rng)
    if node[0] == NUMBER:
        return (NUMBER, _short(node[1] * np.exp(0.5 * rng.normal())))
    return (_pick([*(UNARY if len(node) == 2 else BINARY)], rng), *node[1:])


def _feature(columns: Sequence[int], rng: np.random.Generator) -> Formula:
    return (FEATURE, int(_pick(columns, rng)))


def _pick(items: Sequence[Item], rng: np.random.Generator) -> Item:
    return items[int(rng.integers(len(items)))]


def _number(rng: np.random.Generator) -> Formula:
    return (NUMBER, _short(rng.normal() * 10.0 ** rng.uniform(-1.0, 1.0)))


def _short(value: float) -> float:
    """Return the number rounded to three digits, which is as good and easier to read."""
    return float(f"{value:.3g}")


def _cut(formula: Formula, rng: np.random.Generator) -> int:
    """Return the position of a node to replace, usually an operation."""
    parts = parts_of(formula)
    inner = [at for at, part in enumerate(parts) if not is_leaf(part)]
    if inner and rng.random() < _INNER:
        return _pick(inner, rng)
    return int(rng.integers(len(parts)))


def _replaced(formula: Formula, at: int, new: Formula) -> Formula:
    """Return the formula with the part at node ``at``, in the order of `parts_of`, replaced."""
    if at == 0:
        return new
    parts, begin = [], 1
    for part in formula[1:]:
        end = begin + size(part)
        parts.append(_replaced(part, at - begin, new) if begin <= at < end else part)
        begin = end
    return (formula[0], *parts)
