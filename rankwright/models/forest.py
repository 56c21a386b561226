"""Random forests for ranking: many small boosted models, each on queries sampled with replacement.

A query sampled m times counts with weight m, so the data is binned once and never copied. The
forest's score is the mean over its bags; leaf values are divided by the number of bags, and what
is kept is one ensemble of trees like any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rankwright.core.checks import ArraySpec, check_arrays
from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Callback, Loss
from rankwright.data.content import content_order
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.models.callbacks import until_interrupted
from rankwright.models.tree_text import first_trees, mean_of_forests
from rankwright.models.trees import (
    BinnedData,
    FittedTrees,
    Trees,
    current_scores,
    empty_forest,
)

_SUMS = ("train", "valid")
_STATE = tuple(ArraySpec(name, "float64", (name,), optional=True) for name in _SUMS)


@dataclass(frozen=True, slots=True, repr=False)
class Forest(Trees):
    """A mean of boosted models, each on its own sample of queries and features.

    Parameters
    ----------
    n_bags
        Number of bags.
    bag_fraction
        Queries sampled for a bag, with replacement, as a share of all.

    The other parameters are those of `Trees`; by default a bag is one large tree.

    Examples
    --------
    >>> import rankwright as rw
    >>> rw.RandomForest(model=rw.models.Forest(n_bags=50))
    RandomForest(model=Forest(n_bags=50))
    """

    boosts: ClassVar[bool] = False

    n_bags: int = 300
    bag_fraction: float = 1.0
    n_estimators: int = 1
    num_leaves: int | str = 100
    min_child_samples: int = 1
    learning_rate: float | str = 0.1
    colsample_bytree: float | str = 0.3

    def check(self) -> None:
        """Refuse what is no forest."""
        Trees.check(self)
        if not self.bag_fraction > 0.0:
            raise UsageError(f"bag_fraction must be above 0, not {self.bag_fraction}.")

    def fit(
        self,
        loss: Loss,
        data: RankingData,
        *,
        callback: Callback,
        start: FittedTrees | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> FittedTrees:
        """Fit the bags one after the other; ``callback`` sees the mean of those so far."""
        if start is not None:
            raise UsageError("a forest cannot be continued; fit one with more bags.")
        return Trees.fit(
            self, loss, data, callback=callback, random_state=random_state, n_jobs=n_jobs
        )

    def _fit(
        self,
        loss: Loss,
        data: RankingData,
        callback: Callback,
        start: FittedTrees | None,  # noqa: ARG002
        random_state: int,
        n_jobs: int | None,
    ) -> FittedTrees:
        _, queries = content_order(data, n_jobs=n_jobs)
        binned = BinnedData(data, callback.valid, self.lightgbm_params(data, random_state, n_jobs))
        initial = self.descent(loss, data, seed=random_state, n_jobs=n_jobs).best_constant()
        none = empty_forest(initial, data.n_features)
        silent, mean = _Silent(callback), _RunningMean()
        texts: list[str] = []
        kept = callback.load_state()
        if kept is not None:
            texts = [text for part in kept.added for text in json.loads(part["bags"].tobytes())]
            for text in texts:
                FittedTrees(text, initial, data.n_features).check()
            check_arrays(_STATE, kept.state, "the checkpoint", **_documents(data, callback.valid))
            mean.go_on(kept.state, len(texts))
        written = len(texts)

        def added() -> dict[str, AnyArray]:
            nonlocal written
            fresh, written = texts[written:], len(texts)
            return {"bags": np.frombuffer(json.dumps(fresh).encode(), np.uint8)}

        with until_interrupted(callback, texts):
            for bag in range(len(texts), self.n_bags):
                sampled = _sample_queries(data, queries, self.bag_fraction, random_state, bag)
                bag_seed = int(stream(random_state, "forest", "seed", bag).integers(2**62))
                run = self.descent(loss, sampled, seed=bag_seed, n_jobs=n_jobs)
                booster = binned.booster(none)
                self.grow(booster, run, silent, 0)
                if silent.interrupted:  # half a bag is none
                    raise KeyboardInterrupt
                mean.add(*current_scores(booster, callback))
                texts.append(first_trees(booster.model_to_string(), booster.current_iteration()))
                if callback.on_iteration(bag + 1, silent.value, *mean.scores()):
                    break
                callback.save_state(bag + 1, mean.state, added)
        return FittedTrees(mean_of_forests(texts[: callback.best()]), initial, data.n_features)


def _documents(data: RankingData, valid: RankingData | None) -> dict[str, int]:
    """Return the number of documents that scores are kept of."""
    return {"train": data.n_documents, **({} if valid is None else {"valid": valid.n_documents})}


class _Silent:
    """Lets a bag grow without looking at it; keeps the loss."""

    def __init__(self, callback: Callback) -> None:
        self.valid = callback.valid
        self.wants_train = self.interrupted = self.wants_state = False
        self.value = float("nan")

    def on_iteration(self, _t: int, value: float, *_: Any) -> bool:
        self.value = value
        return False

    def best(self) -> int:
        return 0

    def load_state(self) -> None:
        return None

    def save_state(self, *_: Any) -> None:
        return None


class _RunningMean:
    """Scores on the training and validation data, averaged over the bags so far."""

    def __init__(self) -> None:
        self._sums: list[F64 | None] = [None, None]
        self._count = 0

    def add(self, *scores: F64 | None) -> None:
        self._count += 1
        for i, values in enumerate(scores):
            so_far = self._sums[i]
            self._sums[i] = values if so_far is None or values is None else so_far + values

    def state(self) -> dict[str, AnyArray]:
        """Return the sums."""
        named = zip(_SUMS, self._sums, strict=True)
        return {name: total for name, total in named if total is not None}

    def go_on(self, kept: Mapping[str, AnyArray], count: int) -> None:
        """Be as the mean over ``count`` bags that had this `state`."""
        self._sums, self._count = [kept.get(name) for name in _SUMS], count

    def scores(self) -> tuple[F64 | None, F64 | None]:
        train, valid = (None if total is None else total / self._count for total in self._sums)
        return train, valid


def _sample_queries(
    data: RankingData, queries: I64, fraction: float, seed: int, bag: int
) -> RankingData:
    """Return ``data`` with each query weighted by how often it was sampled."""
    count = max(1, round(fraction * data.n_queries))
    picked = stream(seed, "forest", "queries", bag).integers(0, data.n_queries, count)
    times = np.zeros(data.n_queries)
    times[queries] = np.bincount(picked, minlength=data.n_queries)
    weight = times if data.query_weight is None else times * data.query_weight
    return replace(data, query_weight=weight)
