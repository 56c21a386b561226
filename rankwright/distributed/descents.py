"""The boosting runs of several parts of the data as one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankwright.core.rng import stream
from rankwright.core.types import F64, I64, AnyArray, Loss
from rankwright.data.ranking_data import RankingData
from rankwright.models.boosting import Boost, Descent
from rankwright.models.trees import Trees


class Descents:
    """The runs of some parts, in the form that `Trees.grow` takes.

    Every part binds the loss and draws rows and queries for itself, from streams named by its
    number, so that nothing depends on which parts a machine has.

    Parameters
    ----------
    parts
        The number of each, the number of its first query among all, and the part.
    largest
        What the loss has to know of all the data, where it asks for it.
    """

    def __init__(
        self,
        model: Trees,
        loss: Loss,
        parts: list[tuple[int, int, RankingData]],
        seed: int,
        *,
        largest: float | None = None,
        n_jobs: int,
    ) -> None:
        self.values: list[dict[int, float]] = []
        self._numbers = [number for number, *_ in parts]
        self._runs: list[Descent] = []
        boost = Boost.of(model)
        for number, first, part in parts:
            own = int(stream(seed, "part", number).integers(2**62))
            run = boost.start(
                loss, part, largest=largest, first_query=first, seed=own, n_jobs=n_jobs
            )
            self._runs.append(run)
        self._ends = np.cumsum([part.n_documents for *_, part in parts])
        one_query = parts[0][2].select([0])  # for the columns, which are the same for all parts
        self._common = boost.start(loss, one_query, seed=seed, n_jobs=n_jobs)

    def step(self, t: int, scores: F64) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
        """Return the loss at ``scores`` and the gradient and curvature of round ``t``."""
        found = [
            run.step(t, own)
            for run, own in zip(self._runs, np.split(scores, self._ends[:-1]), strict=True)
        ]
        values, gradients, curvatures = zip(*found, strict=True)
        self.values.append(dict(zip(self._numbers, values, strict=True)))
        return sum(values), np.concatenate(gradients), np.concatenate(curvatures)

    def columns(self, t: int) -> I64 | None:
        """Return the features that round ``t`` may use, or None for all."""
        return self._common.columns(t)

    def state(self) -> dict[str, AnyArray]:
        """Return what the next round needs beside the scores."""
        return {
            f"{number}.{name}": array
            for number, run in zip(self._numbers, self._runs, strict=True)
            for name, array in run.state().items()
        }

    def go_on(self, kept: Mapping[str, AnyArray]) -> None:
        """Be as the runs that had this `state`."""
        for number, run in zip(self._numbers, self._runs, strict=True):
            begin = f"{number}."
            own = {k.removeprefix(begin): v for k, v in kept.items() if k.startswith(begin)}
            run.go_on(own)

    @property
    def samples(self) -> bool:
        """Whether rounds differ by what they draw."""
        return self._common.samples
