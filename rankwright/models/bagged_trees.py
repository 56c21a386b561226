"""Random forests for ranking: the mean of boosted models, each on a bootstrap sample of queries.

A query that is sampled m times has weight m, so the data is binned once and never copied. The leaf
values are divided by the number of bags, so that the fitted model is a `Forest` as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from rankwright.core.parameters import Auto, Count, CountOrZero, Positive, Share, at_least
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss, Round
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.boosting import Descent
from rankwright.models.forest import Forest
from rankwright.models.trees import Trees, pack, unpack


@dataclass(frozen=True, slots=True, repr=False)
class BaggedTrees(Trees):
    """A mean of boosted models, each on its own sample of queries and features.

    Parameters
    ----------
    n_bags
        Number of bags.
    bag_fraction
        Number of queries sampled for a bag, with replacement, relative to all queries.

    See `Trees` for the other parameters. By default a bag is one large tree.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RandomForest(model=rw.models.BaggedTrees(n_bags=50))
    RandomForest(model=BaggedTrees(n_bags=50))
    """

    boosts: ClassVar[bool] = False

    n_bags: Count = 300
    bag_fraction: Positive = 1.0
    n_estimators: Count = 1
    num_leaves: Annotated[int, at_least(2)] | Auto = 100
    min_child_samples: CountOrZero = 1
    learning_rate: Positive | Auto = 0.1
    colsample_bytree: Share | Auto = 0.3

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
        initial = Descent(model, loss, data, seed=random_state, n_jobs=n_jobs).best_constant()
        empty = Forest.empty(data.n_features, offset=initial)
        bags = [] if resume is None else unpack(resume, empty)
        for number in range(1, len(bags) + 1):
            yield Round(number, math.nan, None, partial(mean_of, bags[:number]))
        valid_sum: F64 | None = None
        if valid is not None:
            valid_sum = np.zeros(valid.n_documents)
            for bag in bags:
                valid_sum = valid_sum + bag.running_scores(valid.X, n_jobs=n_jobs)
        _, order = content_order(data, n_jobs=n_jobs)
        engine = model.engine(data, seed=random_state, n_jobs=n_jobs)
        for number in range(len(bags), self.n_bags):
            sampled = _sample_queries(data, order, self.bag_fraction, random_state, number)
            seed = int(stream(random_state, "forest", "seed", number).integers(2**62))
            descent = Descent(model, loss, sampled, seed=seed, n_jobs=n_jobs)
            engine.begin(np.full(data.n_documents, initial))
            trees = []
            for t in range(self.n_estimators):
                value, tree = engine.grow(partial(descent.step, t), descent.columns(t))
                if tree is not None:
                    trees.append(tree)
                elif not descent.samples:
                    break
            bag = empty.join(trees)
            bags.append(bag)
            if valid is not None and valid_sum is not None:
                valid_sum = valid_sum + bag.running_scores(valid.X, n_jobs=n_jobs)
            yield Round(
                number + 1,
                value,
                None if valid_sum is None else valid_sum / len(bags),
                partial(mean_of, tuple(bags)),
                partial(pack, tuple(bags), empty),
            )


def mean_of(forests: Sequence[Forest]) -> Forest:
    """Return a forest that scores the mean of plain sums with the same offset."""
    total = forests[0].join(forests[1:])
    return replace(total, value=total.value * (1.0 / len(forests)), n_rounds=len(forests))


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
