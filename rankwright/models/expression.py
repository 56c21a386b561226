"""A score that is a short formula over features, found by genetic programming (RankGP).

The fitness of a formula f is the mean of the measure when documents are ranked by f
(`yeh2007rankgp`), averaged over the orders of documents that f scores alike: a formula that is the
same for all of them gains nothing from the order of the file. `rankwright.solvers.evolve` breeds
the formulas, `rankwright.models.formula` says what they are made of. The best of each generation is
shown to the watch, and the valid data choose between them.

A whole generation is evaluated at once (`rankwright.models.fitted_expression`). A formula met
before, after simplification, is not evaluated again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from rankwright.core.types import F64, Metric, Watch
from rankwright.data.content import in_content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics import base
from rankwright.metrics.evaluation import Evaluator
from rankwright.models.fitted_expression import FittedExpression, columns_as_rows, values_of
from rankwright.models.formula import Formula, columns_of, postfix, size, text
from rankwright.models.formula_breeding import Breeding
from rankwright.models.interrupt import until_interrupted
from rankwright.models.missing import fill_values, filled
from rankwright.solvers.evolve import Evolve
from rankwright.solvers.journal import Journal

_AT_ONCE = 1 << 22  # scores of a generation held at a time
_MOST_FEATURES = 16  # of which contributions are still quick


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula over features that climbs a measure by genetic programming.

    Parameters
    ----------
    population, n_generations, tournament, crossover, elites, parsimony
        See `rankwright.solvers.evolve.Evolve`; the best generation on valid is kept.
    max_nodes, max_depth, max_features
        The largest formula: its nodes, the operations on its longest way, its features.
    missing : None, "mean" or "zero"
        What stands for a missing value; None refuses them.

    Weights of queries count as they do in the measure, which knows no weights of documents.
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

    def fit(
        self,
        metric: Metric,
        data: RankingData,
        *,
        watch: Watch,
        start: FittedExpression | None = None,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> FittedExpression:
        """Breed formulas for a high mean of ``metric``, with that of ``start`` among the first."""
        self._check()
        evolve = Evolve(**{field.name: getattr(self, field.name) for field in fields(Evolve)})
        fill = fill_values(data.X, self.missing)
        whole = replace(data, X=filled(data.X, fill, "formula"))
        _, ordered = in_content_order(whole, n_threads=n_threads)
        train = _Generation(metric, ordered, Journal(watch), n_threads)
        valid = None if watch.valid is None else filled(watch.valid.X, fill, "formula")
        tried: list[FittedExpression] = []

        def show(t: int, best: Formula, fitness: float) -> bool:
            model = _fitted(best, train.means, fill, data)
            tried.append(model)
            on_train = model.scores(whole.X, n_threads=n_threads) if watch.wants_train else None
            on_valid = None if valid is None else model.scores(valid, n_threads=n_threads)
            return watch.seen(t, -fitness, on_train, on_valid)

        species = Breeding(train.varied, self.max_nodes, self.max_depth, self.max_features)
        known = () if start is None else (start.formula,)
        with until_interrupted(watch, tried):
            evolve.run(species, train.fitness, show, start=known, seed=seed)
        return tried[min(watch.best(), len(tried)) - 1]

    def _check(self) -> None:
        for name in ("max_nodes", "max_depth", "max_features"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, not {getattr(self, name)}.")
        if self.max_features > _MOST_FEATURES:
            raise UsageError(
                f"max_features must be at most {_MOST_FEATURES}, not {self.max_features}; "
                "a longer formula cannot be explained."
            )

    restore = staticmethod(FittedExpression.restore)


class _Generation:
    """Training data by columns, and the fitness of formulas on it."""

    def __init__(
        self, metric: Metric, data: RankingData, journal: Journal, n_threads: int | None
    ) -> None:
        assert isinstance(metric, base.Metric)
        self._journal = journal
        self._measure = metric.for_selection()
        self._evaluator = Evaluator(data, self._measure, n_threads=n_threads)
        self._columns = columns_as_rows(data.X, list(range(data.n_features)))
        self._n_threads = n_threads
        self._known: dict[Formula, float] = {}
        self.means: F64 = self._columns.mean(axis=1)
        spread = np.ptp(self._columns, axis=1)
        self.varied: list[int] = np.flatnonzero((spread > 0.0) | ~(spread > 0.0).any()).tolist()

    def fitness(self, formulas: Sequence[Formula]) -> F64:
        """Return the mean of the measure for each formula, its negative where that falls."""
        unknown = [one for one in dict.fromkeys(formulas) if one not in self._known]
        sizes = np.array([size(one) for one in unknown])
        (found,) = self._journal.recall(lambda: (self._means(unknown),), sizes)
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
        return mean if self._measure.maximise else -mean

    def _scores(self, formulas: Sequence[Formula]) -> F64:
        codes, values = zip(*map(postfix, formulas), strict=True)
        starts = np.concatenate(([0], np.cumsum([len(code) for code in codes])))
        made = (starts, np.concatenate(codes), np.concatenate(values))
        return values_of(*made, self._columns, n_threads=self._n_threads)


def _fitted(tree: Formula, means: F64, fill: F64 | None, data: RankingData) -> FittedExpression:
    code, value = postfix(tree)
    written = text(tree, data.feature_names)
    return FittedExpression(code, value, means[columns_of(tree)], fill, data.n_features, written)
