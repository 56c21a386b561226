"""Random forests for ranking: the mean of boosted models, each on a bootstrap sample of queries.

A query that is sampled m times has weight m, so the data is binned once and never copied. The leaf
values are divided by the number of bags, so that the fitted model is a `Forest` as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.parameters import Auto, Count, Positive, at_least
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss, Round
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models.boosting import Boost
from rankwright.models.forest import Forest, mean_of
from rankwright.models.trees import Trees

_TREES = "trees."
_COUNTS = (ArraySpec("counts", "int64", ("bags",), low=0),)


@dataclass(frozen=True, slots=True, repr=False)
class BaggedTrees(Trees):
    """A mean of boosted models, each on its own sample of queries and features.

    Parameters
    ----------
    n_bags
        Number of bags.
    bag_fraction
        Number of queries sampled for a bag, with replacement, relative to all queries.

    The other parameters are those of `Trees`. By default a bag is one large tree.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RandomForest(model=rw.models.BaggedTrees(n_bags=50))
    RandomForest(model=BaggedTrees(n_bags=50))
    """

    boosts: ClassVar[bool] = False

    n_bags: Count = 300
    bag_fraction: float = 1.0
    n_estimators: Count = 1
    num_leaves: Annotated[int, at_least(2)] | Auto = 100
    min_child_samples: int = 1
    learning_rate: Positive | Auto = 0.1
    colsample_bytree: float | Auto = 0.3

    def check(self) -> None:
        """Raise for parameters out of range."""
        Trees.check(self)
        if not self.bag_fraction > 0.0:
            raise UsageError(f"bag_fraction must be above 0, not {self.bag_fraction}.")

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
        """Yield a round for each bag, with the mean of the bags so far."""
        self.check()
        if start is not None:
            raise UsageError("a forest cannot be continued; fit one with more bags.")
        model = self.resolve(data.n_documents, data.n_queries)
        boost = Boost.of(model)
        initial = boost.start(loss, data, seed=random_state, n_jobs=n_jobs).best_constant()
        empty = Forest.empty(data.n_features, offset=initial)
        bags = [] if resume is None else _bags_of(resume, empty)
        for number in range(len(bags)):
            yield Round(number + 1, math.nan, None, partial(_mean_of_first, bags, number + 1))
        valid_sum = None if valid is None else np.zeros(valid.n_documents)
        for bag in bags:
            valid_sum = _add_scores(valid_sum, bag, valid, n_jobs)
        _, order = content_order(data, n_jobs=n_jobs)
        engine = model.engine(data, seed=random_state, n_jobs=n_jobs)
        for number in range(len(bags), self.n_bags):
            sampled = _sample_queries(data, order, self.bag_fraction, random_state, number)
            seed = int(stream(random_state, "forest", "seed", number).integers(2**62))
            descent = boost.start(loss, sampled, seed=seed, n_jobs=n_jobs)
            engine.begin(np.full(data.n_documents, initial))
            trees = []
            for t in range(self.n_estimators):
                value, tree = engine.grow(partial(descent.step, t), descent.columns(t))
                if tree is not None:
                    trees.append(tree)
                elif not descent.samples:
                    break
            bags.append(empty.join(trees))
            valid_sum = _add_scores(valid_sum, bags[-1], valid, n_jobs)
            yield Round(
                number + 1,
                value,
                None if valid_sum is None else valid_sum / len(bags),
                partial(_mean_of_first, bags, len(bags)),
                partial(_state, bags, len(bags)),
            )


def _mean_of_first(bags: list[Forest], count: int) -> Forest:
    return replace(mean_of(bags[:count]), n_rounds=count)


def _add_scores(
    total: F64 | None, bag: Forest, valid: RankingData | None, n_jobs: int | None
) -> F64 | None:
    """Return ``total`` plus the scores of a bag on the validation data."""
    if total is None or valid is None:
        return None
    return total + bag.running_scores(valid.X, n_jobs=n_jobs)


def _state(bags: list[Forest], count: int) -> dict[str, AnyArray]:
    """Return the first bags as arrays."""
    first, *others = bags[:count]
    arrays = first.join(others).arrays()
    counts = np.array([bag.n_trees for bag in bags[:count]], np.int64)
    return {"counts": counts, **{f"{_TREES}{name}": array for name, array in arrays.items()}}


def _bags_of(resume: Mapping[str, AnyArray], empty: Forest) -> list[Forest]:
    """Return the bags of an earlier run, checked."""
    counts = {name: array for name, array in resume.items() if name == "counts"}
    check_arrays(_COUNTS, counts, "the checkpoint")
    arrays = {k.removeprefix(_TREES): v for k, v in resume.items() if k.startswith(_TREES)}
    forest = Forest.restore(arrays, {}, empty.n_features)
    ends = np.cumsum(resume["counts"])
    if forest.n_trees != ends[-1:].sum():
        raise DataError("the checkpoint has another number of trees than its bags.")
    return [
        forest.select(end - count, end)
        for end, count in zip(ends.tolist(), resume["counts"].tolist(), strict=True)
    ]


def _sample_queries(
    data: RankingData, order: I64, fraction: float, seed: int, bag: int
) -> RankingData:
    """Return ``data`` with each query weighted by the number of times it is sampled."""
    count = max(1, round(fraction * data.n_queries))
    drawn = stream(seed, "forest", "queries", bag).integers(0, data.n_queries, count)
    times = np.zeros(data.n_queries)
    times[order] = np.bincount(drawn, minlength=data.n_queries)
    weight = times if data.query_weight is None else times * data.query_weight
    return replace(data, query_weight=weight)
