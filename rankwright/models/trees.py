"""Gradient-boosted regression trees under any loss.

In each round a tree engine grows a tree on the gradient and curvature of the loss
(`rankwright.models.boosting`) at the scores so far. LightGBM is the built-in engine; another one is
a class with the methods of `TreeEngine`, returned by `Trees.engine`. The initial score is not part
of the trees: it is the offset of the fitted `Forest`.

On few queries, large trees that see all features overfit. The parameters that are "auto" therefore
depend on the size of the data: with m = min(documents, 100 queries) and

    a = log(m / 20,000) / log(100,000 / 20,000),   at least 0 and at most 1                    (1)

their values change from small data (a = 0) to large data (a = 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol, Self

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays, without_prefix
from rankwright.core.parameters import (
    Auto,
    Count,
    CountOrZero,
    NonNegative,
    Positive,
    Share,
    at_least,
)
from rankwright.core.types import F64, I64, AnyArray, FittedModel, Loss, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.boosting import Descent
from rankwright.models.forest import Forest
from rankwright.models.lightgbm_engine import Gradients, LightGBMEngine
from rankwright.models.schema import ModelPart
from rankwright.registry import unknown

_MOST_LEAVES = 131_072  # of LightGBM
_SMALL, _LARGE = 20_000, 100_000  # documents
_PER_QUERY = 100  # largest number of documents that a query counts for
_CHOICES = {"leaves": ("newton", "constant"), "direction": ("gradient", "lbfgs")}


class TreeEngine(Protocol):
    """A method to grow regression trees on one data set."""

    def begin(self, scores: F64) -> None:
        """Begin an ensemble whose training scores are ``scores`` before its first tree."""

    def grow(self, gradients: Gradients, columns: I64 | None) -> tuple[float, Forest | None]:
        """Add a tree that splits on ``columns``; None allows all columns.

        Return the loss before the tree is added, and the tree or None if there is no split.
        """


@dataclass(frozen=True, slots=True, repr=False)
class Trees(ModelPart):
    """Gradient-boosted regression trees, with native missing values and categories.

    Parameters
    ----------
    n_estimators, num_leaves, learning_rate, max_depth
        Number of trees, leaves of a tree, step size and maximum depth, by default without limit.
    min_child_samples, min_child_weight
        Minimum number of documents in a leaf, and minimum sum of curvature.
    reg_lambda, reg_alpha
        L2 and L1 penalties on leaf values.
    leaves : "newton" or "constant"
        Weight documents by the curvature of the loss, or by their own weights.
    direction : "gradient" or "lbfgs"
        Follow the gradient, or the L-BFGS direction in the space of scores. A run that continues
        from a fitted model has no pairs at first, so its trees are not those of one long run.
    subsample, query_fraction, colsample_bytree
        Shares of documents, queries and features that are sampled in each round.
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

    fitted_class: ClassVar[Any] = Forest
    takes_categories: ClassVar[bool] = True
    boosts: ClassVar[bool] = True  # rounds are many small steps
    compares_values: ClassVar[bool] = True  # features of any size
    resumable: ClassVar[bool] = True

    n_estimators: Count = 100
    num_leaves: Annotated[int, at_least(2)] | Auto = "auto"
    learning_rate: Positive | Auto = "auto"
    max_depth: int | None = None
    min_child_samples: CountOrZero = 20
    min_child_weight: NonNegative = 1e-3
    reg_lambda: NonNegative = 0.0
    reg_alpha: NonNegative = 0.0
    leaves: str = "newton"
    direction: str = "gradient"
    subsample: Share = 1.0
    query_fraction: Share = 1.0
    colsample_bytree: Share | Auto = "auto"
    monotone_constraints: Mapping[str | int, int] | Sequence[int] | None = None
    categorical_feature: Sequence[str | int] | None = None
    max_bins: Annotated[int, at_least(2)] = 255

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
        size = min(n_documents, _PER_QUERY * n_queries)
        a = min(1.0, math.log(max(size, _SMALL) / _SMALL) / math.log(_LARGE / _SMALL))  # (1)
        by_size = {
            "num_leaves": round(7.0 * (31.0 / 7.0) ** a),
            "learning_rate": 0.05 * 2.0**a,
            "colsample_bytree": 0.5 ** (1.0 - a),
        }
        is_auto = {name for name in by_size if getattr(self, name) == "auto"}
        return replace(self, **{name: by_size[name] for name in is_auto})

    def check(self) -> None:
        """Raise for parameters out of range."""
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(unknown(name, getattr(self, name), choices))
        if self.num_leaves != "auto" and not 2 <= self.num_leaves <= _MOST_LEAVES:
            raise UsageError(
                f"num_leaves must be from 2 to {_MOST_LEAVES:,}, not {self.num_leaves}."
            )
        if self.max_depth is not None and self.max_depth < 1:
            raise UsageError(
                f"max_depth must be 1 or more, not {self.max_depth}; leave it out for no limit."
            )

    def engine(self, data: RankingData, *, seed: int, n_jobs: int | None) -> TreeEngine:
        """Return an engine for ``data``; no parameter of this model is "auto"."""
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

        The loss of a round is computed before its tree is added. With the direction "gradient", a
        continued fit adds the same trees as one long fit. A round has no tree if its sample has no
        split.
        """
        self.check()
        model = self.resolve(data.n_documents, data.n_queries)
        descent = Descent(model, loss, data, seed=random_state, n_jobs=n_jobs)
        if start is None:
            start = Forest.empty(data.n_features, offset=descent.best_constant())
        grown = GrownTrees(start.as_sum())
        if resume is not None:
            grown.trees.extend(unpack(resume, Forest.empty(data.n_features)))
            descent.load_state(without_prefix("loss.", resume))
        yield from grown.earlier_rounds()
        forest = grown.model()()
        valid_scores = None if valid is None else forest.running_scores(valid.X, n_jobs=n_jobs)
        engine = model.engine(data, seed=random_state, n_jobs=n_jobs)
        engine.begin(forest.running_scores(data.X, n_jobs=n_jobs))
        for t in range(grown.n_rounds, start.n_rounds + self.n_estimators):
            value, tree = engine.grow(partial(descent.step, t), descent.columns(t))
            is_last = tree is None and not descent.samples
            if is_last and grown.trees:
                return
            grown.trees.append(tree)
            if tree is not None and valid is not None and valid_scores is not None:
                valid_scores = valid_scores + tree.scores(valid.X, n_jobs=n_jobs)
            yield Round(t + 1, value, valid_scores, grown.model(), partial(_state, grown, descent))
            if is_last:
                return


@dataclass(frozen=True)
class GrownTrees:
    """The tree of each round after ``start``; None or a forest without trees if it has none."""

    start: Forest
    trees: list[Forest | None] = field(default_factory=list)

    @property
    def n_rounds(self) -> int:
        """Number of rounds, including the rounds of ``start``."""
        return self.start.n_rounds + len(self.trees)

    def model(self, rounds: int | None = None) -> Callable[[], Forest]:
        """Return a function that builds the forest after the first ``rounds``, or all so far."""
        return partial(self._forest, len(self.trees) if rounds is None else rounds)

    def _forest(self, rounds: int) -> Forest:
        trees = [tree for tree in self.trees[:rounds] if tree is not None]
        return replace(self.start.join(trees), n_rounds=self.start.n_rounds + rounds)

    def earlier_rounds(self) -> Iterator[Round]:
        """Yield the rounds of an earlier run: their models only."""
        for number in range(1, len(self.trees) + 1):
            yield Round(self.start.n_rounds + number, math.nan, None, self.model(number))

    def state(self) -> dict[str, AnyArray]:
        """Return the trees as arrays."""
        empty = Forest.empty(self.start.n_features)
        return pack([empty if tree is None else tree for tree in self.trees], empty)


def _state(grown: GrownTrees, descent: Descent) -> dict[str, AnyArray]:
    """Return the arrays to resume the fit from."""
    losses = {f"loss.{name}": array for name, array in descent.state().items()}
    return {**grown.state(), **losses}


def pack(forests: Sequence[Forest], empty: Forest) -> dict[str, AnyArray]:
    """Return arrays of some forests; ``empty`` has their number of features and their offset."""
    counts = np.array([forest.n_trees for forest in forests], np.int64)
    arrays = empty.join(forests).arrays()
    return {"counts": counts, **{f"trees.{name}": array for name, array in arrays.items()}}


def unpack(arrays: Mapping[str, AnyArray], empty: Forest) -> list[Forest]:
    """Build the forests from their arrays (`pack`), checked."""
    counts = {name: array for name, array in arrays.items() if name == "counts"}
    check_arrays((ArraySpec("counts", "int64", ("rounds",), low=0),), counts, "the checkpoint")
    forest = Forest.restore(without_prefix("trees.", arrays), {}, empty.n_features)
    ends = np.cumsum(np.append(0, counts["counts"])).tolist()
    if forest.n_trees != ends[-1]:
        raise DataError("the checkpoint has another number of trees than its rounds.")
    return [forest.select(first, end) for first, end in pairwise(ends)]
