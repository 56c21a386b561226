"""Boosted trees over the parts of a data set, on the workers of a Dask cluster.

Each worker has a process beside it (`rankwright.distributed.tree_machine`) that holds its parts in
bins and has the loss bound to them. Round by round every process takes the gradients of its own
queries, and LightGBM adds the histograms of all up over its own network, so that they all grow the
same tree. Labels never reach LightGBM, and lists may be of any length.

What differs from one process:

- bins come from 200,000 rows, drawn from all parts by what they hold, where there are more;
- gradients are rounded (equation (2) of `rankwright.models.boosting`) part by part;
- rows and queries are drawn part by part, and so is the noise of losses; columns as ever;
- with several workers LightGBM estimates the number of documents of a leaf from their curvature, so
  that ``min_child_samples`` binds at other leaves.

So the trees depend on the parts, and on whether there is one worker or more. Which worker has which
part changes at most the last bits of sums.

Trees come back every `EVERY` rounds, or as often as checkpoints are: then valid is looked at, tree
by tree, and a checkpoint may be written. When a worker is lost, the network is given up, and
another one of the workers that are there goes on from the last trees that came back; Dask makes the
lost parts again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankwright.core.types import F64, AnyArray, Callback, Loss
from rankwright.data.ranking_data import RankingData, concatenate
from rankwright.distributed.cluster import ClusterError
from rankwright.distributed.partitions import Partitions
from rankwright.distributed.tree_network import (
    Came,
    NoWorkerError,
    TreeNetwork,
    largest_of_all,
)
from rankwright.distributed.tree_worker import NetworkBrokenError
from rankwright.errors import UsageError
from rankwright.models.boosting import Boost
from rankwright.models.tree_text import first_trees, join_trees, model_text, tree_blocks
from rankwright.models.trees import FittedTrees, Trees, empty_forest

EVERY = 20
"""Rounds from one look at the trees to the next."""
_ATTEMPTS = 3  # networks in a row that break before any of their trees came back


def fit_trees(
    model: Trees,
    loss: Loss,
    data: Partitions,
    *,
    callback: Callback,
    start: FittedTrees | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> FittedTrees:
    """Boost trees against ``loss`` over all parts, after those of ``start``.

    ``n_jobs`` are those of each worker; by default those that Dask gives it.
    """
    _refuse(model)
    if data.client is None:
        whole = concatenate(data.parts)
        return model.fit(
            loss, whole, callback=callback, start=start, random_state=random_state, n_jobs=n_jobs
        )
    every = min(EVERY, getattr(getattr(callback, "checkpoint", None), "every", EVERY))
    largest = largest_of_all(data, loss)
    begun = start or empty_forest(_best_constant(loss, data, largest), data.n_features)
    grown = _Grown(begun, callback)
    network = TreeNetwork(model, loss, data, random_state, n_jobs, largest)
    failures = 0
    try:
        while grown.rounds < model.n_estimators and not grown.ended:
            rounds = min(every, model.n_estimators - grown.rounds)
            try:
                came = network.grow(grown, rounds)
                failures = 0
                grown.take(came)
                if not grown.ended:  # else the rounds after the end would be in it
                    grown.offer(network.state)
            except NetworkBrokenError as fault:
                network.close()
                failures += 1
                if failures == _ATTEMPTS or isinstance(fault, NoWorkerError):
                    raise ClusterError(grown.told(fault, failures)) from None
                continue
            if len(came.losses) < rounds:  # no tree can grow any more
                break
    except KeyboardInterrupt:  # what came back so far is kept
        if grown.rounds == 0:
            raise
        callback.interrupted = True
    finally:
        network.close()
    return grown.model(callback.best())


# --- what has come back ------------------------------------------------------------------------


class _Grown:
    """The trees that came back so far, shown to the callback one by one."""

    def __init__(self, start: FittedTrees, callback: Callback) -> None:
        self._start, self._callback = start, callback
        self.ended = False
        kept = callback.load_state()
        added = [] if kept is None else kept.added
        self.state = {} if kept is None else dict(kept.state)  # of the losses, when trees go on
        self._texts = [part["trees"].tobytes().decode() for part in added]
        self._counts = [int(count) for part in added for count in part["counts"]]
        self._texts_kept, self._kept = len(self._texts), len(self._counts)
        self._valid = (
            None if callback.valid is None else self.model().running_scores(callback.valid.X)
        )

    @property
    def rounds(self) -> int:
        """Rounds so far; one may have grown nothing where rows are drawn."""
        return len(self._counts)

    @property
    def next_round(self) -> int:
        """Number of the next round, where the trees of the start count as rounds."""
        return self._start.n_trees + self.rounds

    def take(self, came: Came) -> None:
        """Take trees and the losses before them; the callback may end the run at any of them."""
        before = self._counts[-1] if self._counts else 0
        shown, blocks = before, tree_blocks(came.text)
        self._texts.append(came.text)
        self.state = {}
        for value, count in zip(came.losses, came.counts, strict=True):
            self._counts.append(before + count)
            for block in blocks[shown - before : count]:
                if self._valid is not None and self._callback.valid is not None:
                    self._valid = self._valid + self._scores(block, self._callback.valid)
            shown = before + count
            if self._callback.on_iteration(self.next_round, value, None, self._valid):
                self.ended = True
                self._texts[-1] = first_trees(came.text, count)
                return

    def offer(self, state: Callable[[], dict[str, AnyArray]]) -> None:
        """Offer the callback a checkpoint."""
        self._callback.save_state(self.next_round, state, self._added)

    def _added(self) -> dict[str, AnyArray]:
        text = join_trees(self._texts[self._texts_kept :]).encode()
        counts = np.array(self._counts[self._kept :], np.int64)
        self._texts_kept, self._kept = len(self._texts), self.rounds
        return {"trees": np.frombuffer(text, np.uint8), "counts": counts}

    def _scores(self, block: str, data: RankingData) -> F64:
        names = [str(column) for column in range(self._start.n_features)]
        tree = FittedTrees(model_text(names, [block]), 0.0, self._start.n_features)
        return tree.scores(data.X)

    def model(self, rounds: int | None = None) -> FittedTrees:
        """Return the model of all trees, or of those up to a round."""
        own = self.rounds if rounds is None else min(self.rounds, rounds - self._start.n_trees)
        if own <= 0:
            return self._start
        before = [self._start.text] if self._start.n_trees else []
        n_trees = self._start.n_trees + self._counts[own - 1]
        text = first_trees(join_trees([*before, *self._texts]), n_trees)
        return FittedTrees(text, self._start.initial, self._start.n_features)

    def told(self, fault: Exception, times: int) -> str:
        """Return the sentence with which a run ends."""
        folder = getattr(getattr(self._callback, "checkpoint", None), "folder", None)
        round_kept = self._start.n_trees + self._kept
        in_a_row = f", {times} times in a row" if times > 1 else ""
        return f"trees cannot grow beyond round {self.next_round}: {fault}{in_a_row}. " + (
            f"{folder} has the trees up to round {round_kept}; resume it."
            if folder and self._kept
            else "No checkpoint was written; begin again, with one."
        )


# --- what all parts have a say in ---------------------------------------------------------------


def _refuse(model: Trees) -> None:
    if model.direction != "gradient":
        raise UsageError(
            f"direction='{model.direction}' needs the gradients of all documents in one place; "
            "leave it out on a cluster."
        )


def _best_constant(loss: Loss, data: Partitions, largest: float | None) -> float:
    """Return the score to start from, as `Descent.best_constant` does for one data set."""
    if loss.traits.shift_invariant:
        return 0.0
    n = len(data)
    held = data.place.call(_at_zero, data.parts, data.first_queries, [loss] * n, [largest] * n)
    slopes, curvatures = zip(*data.place.results(held), strict=True)
    total = sum(curvatures)
    return -sum(slopes) / total if total > 0.0 else 0.0


def _at_zero(
    part: RankingData, first: int, loss: Loss, largest: float | None
) -> tuple[float, float]:
    return Boost().start(loss, part, largest=largest, first_query=first, n_jobs=1).at_zero()
