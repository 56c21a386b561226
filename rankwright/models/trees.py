"""Gradient-boosted regression trees under any loss.

In each round a tree engine grows a tree on the gradient and curvature of the loss
(`rankwright.models.boosting`) at the scores so far. LightGBM is the built-in engine; another one is
a class with the methods of `TreeEngine`, returned by `Trees.engine`. The initial score is not part
of the trees: it is the offset of the fitted `Forest`.

On few queries, large trees that see all features overfit. The parameters that are "auto" therefore
depend on the size of the data: with m = min(documents, 100 queries) and

    a = log(m / 20,000) / log(100,000 / 20,000),   at least 0 and at most 1                    (1)

they go from their value for small data (a = 0) to the value for large data (a = 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Protocol, Self

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parameters import Auto, Count, Part, Positive, at_least
from rankwright.core.types import F64, I64, AnyArray, FittedModel, Loss, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.boosting import Boost, Descent
from rankwright.models.forest import Forest
from rankwright.models.lightgbm_engine import Gradients, LightGBMEngine

_MOST_LEAVES = 131_072  # of LightGBM
_SMALL, _LARGE = 20_000, 100_000  # documents
_PER_QUERY = 100  # largest number of documents that a query counts for
_BY_SIZE: dict[str, Callable[[float], Any]] = {
    "num_leaves": lambda a: round(7.0 * (31.0 / 7.0) ** a),
    "learning_rate": lambda a: 0.05 * 2.0**a,
    "colsample_bytree": lambda a: 0.5 ** (1.0 - a),
}


class TreeEngine(Protocol):
    """Grows regression trees on the data and with the parameters that it was made for."""

    def begin(self, scores: F64) -> None:
        """Begin an ensemble whose training scores are ``scores`` before its first tree."""

    def grow(self, gradients: Gradients, columns: I64 | None) -> tuple[float, Forest | None]:
        """Add a tree that splits on ``columns`` only, None for all.

        Return the loss before the tree, and the tree, or None if there is no split.
        """


@dataclass(frozen=True, slots=True, repr=False)
class Trees(Part):
    """Gradient-boosted regression trees, with native missing values and categories.

    Parameters
    ----------
    n_estimators, num_leaves, learning_rate, max_depth
        Size of the model and of its steps; the depth is not limited by default.
    min_child_samples, min_child_weight
        Minimum number of documents in a leaf, and minimum sum of curvature.
    reg_lambda, reg_alpha
        L2 and L1 penalties on leaf values.
    leaves, direction, subsample, query_fraction, colsample_bytree
        See `rankwright.models.boosting.Boost`.
    monotone_constraints : mapping or sequence
        1 or -1 for features in which the score must increase or decrease, by name, by column or
        in order.
    categorical_feature : sequence
        Features that are category codes, by name or column. Columns of the type category need not
        be listed; ordered categories are split as numbers.
    max_bins
        Maximum number of bins of a feature, between which thresholds are tried.

    The values for "auto" depend on the size of the data; see `resolve`.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.LambdaMART(model=rw.models.Trees(max_bins=63))
    LambdaMART(model=Trees(max_bins=63))
    """

    takes_categories: ClassVar[bool] = True
    boosts: ClassVar[bool] = True  # rounds are many small steps
    compares_values: ClassVar[bool] = True  # whatever their size
    resumable: ClassVar[bool] = True

    n_estimators: Count = 100
    num_leaves: Annotated[int, at_least(2)] | Auto = "auto"
    learning_rate: Positive | Auto = "auto"
    max_depth: int | None = None
    min_child_samples: int = 20
    min_child_weight: float = 1e-3
    reg_lambda: float = 0.0
    reg_alpha: float = 0.0
    leaves: str = "newton"
    direction: str = "gradient"
    subsample: float = 1.0
    query_fraction: float = 1.0
    colsample_bytree: float | Auto = "auto"
    monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None
    categorical_feature: Sequence[str | int] | None = None
    max_bins: int = 255

    def resolve(self, n_documents: int, n_queries: int) -> Self:
        """Return the model with a number for each parameter that is "auto".

        ================ ========== ==========
        parameter        small data large data
        ================ ========== ==========
        num_leaves       7          31
        learning_rate    0.05       0.1
        colsample_bytree 0.5        1
        ================ ========== ==========

        Small data has at most 20,000 documents or 200 queries, large data at least 100,000
        documents and 1,000 queries; (1) interpolates between them.

        Examples
        --------
        >>> import rankwright as rw
        >>> rw.models.Trees().resolve(n_documents=10_000, n_queries=100).num_leaves
        7
        """
        named = {name: getattr(self, name) for name in _BY_SIZE}
        size = min(n_documents, _PER_QUERY * n_queries)
        share = math.log(max(size, _SMALL) / _SMALL) / math.log(_LARGE / _SMALL)
        resolved = {
            name: _BY_SIZE[name](min(share, 1.0))  # (1)
            for name, value in named.items()
            if isinstance(value, str) and value == "auto"
        }
        return replace(self, **resolved)

    def check(self) -> None:
        """Raise for parameters out of range."""
        for name in _BY_SIZE:
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise UsageError(f"{name} must be a number or 'auto', not {value!r}.")
        self.resolve(1, 1)._check_numbers()

    def _check_numbers(self) -> None:
        Boost.of(self).check()
        for name in ("reg_alpha", "reg_lambda", "min_child_weight", "min_child_samples"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must be 0 or more, not {getattr(self, name)}.")
        if not 2 <= int(self.num_leaves) <= _MOST_LEAVES:
            raise UsageError(
                f"num_leaves must be from 2 to {_MOST_LEAVES:,}, not {self.num_leaves}."
            )
        if self.max_bins < 2:
            raise UsageError(f"max_bins must be 2 or more, not {self.max_bins}.")
        if self.max_depth is not None and self.max_depth < 1:
            raise UsageError(
                f"max_depth must be 1 or more, not {self.max_depth}; leave it out for no limit."
            )

    def engine(self, data: RankingData, *, seed: int, n_jobs: int | None) -> TreeEngine:
        """Return what grows the trees on ``data``; parameters that are "auto" are resolved."""
        return LightGBMEngine.of(self, data, seed=seed, n_jobs=n_jobs)

    def can_continue(self, fitted: FittedModel) -> bool:
        """Return whether ``start=`` takes this fitted model."""
        return isinstance(fitted, Forest) and fitted.has_lightgbm_rules

    def rounds(
        self,
        loss: Loss,
        data: RankingData,
        valid: RankingData | None = None,
        *,
        start: Forest | None = None,
        resume: Mapping[str, AnyArray] | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Iterator[Round]:
        """Yield a round for each of ``n_estimators`` trees, after the rounds of ``start``.

        A round has the loss before its tree. With the direction "gradient", continued fits add the
        trees of one long run. A round in which sampling leaves no split has no tree.
        """
        self.check()
        model = self.resolve(data.n_documents, data.n_queries)
        descent = Boost.of(model).start(loss, data, seed=random_state, n_jobs=n_jobs)
        if start is None:
            start = Forest.empty(data.n_features, offset=descent.best_constant())
        grown = GrownTrees(start.as_sum())
        if resume is not None:
            grown = GrownTrees.restore(start.as_sum(), resume)
            descent.load_state(_without_prefix(_LOSS, resume))
        yield from grown.earlier_rounds()
        forest = grown.model()()
        valid_scores = None if valid is None else forest.running_scores(valid.X, n_jobs=n_jobs)
        engine = model.engine(data, seed=random_state, n_jobs=n_jobs)
        engine.begin(forest.running_scores(data.X, n_jobs=n_jobs))
        for t in range(grown.next, grown.first + self.n_estimators):
            value, tree = engine.grow(partial(descent.step, t), descent.columns(t))
            if tree is None and not descent.samples and grown.trees:
                return
            grown.trees.append(tree)
            if tree is not None and valid is not None and valid_scores is not None:
                valid_scores = valid_scores + tree.scores(valid.X, n_jobs=n_jobs)
            yield Round(t + 1, value, valid_scores, grown.model(), partial(_state, grown, descent))
            if tree is None and not descent.samples:
                return

    @staticmethod
    def restore(
        arrays: Mapping[str, AnyArray], texts: Mapping[str, str], n_features: int
    ) -> Forest:
        """Build the fitted model from its arrays, checked."""
        return Forest.restore(arrays, texts, n_features)


_LOSS, _TREES = "loss.", "trees."
_ROUNDS = (ArraySpec("has_tree", "bool", ("rounds",)),)


@dataclass(frozen=True)
class GrownTrees:
    """The tree of each round after ``start``; None for a round without a tree."""

    start: Forest
    trees: list[Forest | None] = field(default_factory=list)

    @property
    def first(self) -> int:
        """Number of rounds of ``start``."""
        return self.start.n_rounds

    @property
    def next(self) -> int:
        """Number of rounds so far, with those of ``start``."""
        return self.first + len(self.trees)

    def model(self, rounds: int | None = None) -> Callable[[], Forest]:
        """Return a function that builds the forest after the first ``rounds``, or all so far."""
        return partial(self._forest, len(self.trees) if rounds is None else rounds)

    def earlier_rounds(self) -> Iterator[Round]:
        """Yield the rounds of an earlier run: their models only."""
        for number in range(1, len(self.trees) + 1):
            yield Round(self.first + number, math.nan, None, self.model(number))

    def _forest(self, rounds: int) -> Forest:
        trees = [tree for tree in self.trees[:rounds] if tree is not None]
        return replace(self.start.join(trees), n_rounds=self.first + rounds)

    def state(self) -> dict[str, AnyArray]:
        """Return the trees as arrays."""
        trees = [tree for tree in self.trees if tree is not None]
        arrays = Forest.of_trees(self.start.n_features, trees).arrays()
        has_tree = np.array([tree is not None for tree in self.trees])
        return {"has_tree": has_tree, **{f"{_TREES}{name}": a for name, a in arrays.items()}}

    @classmethod
    def restore(cls, start: Forest, arrays: Mapping[str, AnyArray]) -> GrownTrees:
        """Build the trees from their `state`, checked."""
        counts = {name: array for name, array in arrays.items() if name == "has_tree"}
        check_arrays(_ROUNDS, counts, "the checkpoint")
        forest = Forest.restore(_without_prefix(_TREES, arrays), {}, start.n_features)
        has_tree = arrays["has_tree"].tolist()
        if sum(has_tree) != forest.n_trees:
            raise DataError("the checkpoint has another number of trees than its rounds.")
        trees = iter([forest.select(number, number + 1) for number in range(forest.n_trees)])
        return cls(start, [next(trees) if present else None for present in has_tree])


def _state(grown: GrownTrees, descent: Descent) -> dict[str, AnyArray]:
    """Return the arrays from which the fit continues."""
    losses = {f"{_LOSS}{name}": array for name, array in descent.state().items()}
    return {**grown.state(), **losses}


def _without_prefix(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
