"""Is one row better than another? A test for each column that was asked for, told in a sentence.

``randomisation`` is paired, over the pooled test queries, with the bootstrap interval of the mean
difference. ``welch_t`` is unpaired, over the means of folds or draws, with Welch's own interval.
P-values are adjusted by Holm's rule for the columns of a contrast.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankwright.core.types import F64
from rankwright.data.split import Fold
from reproducibility.experiment import Contrast, Experiment
from rankwright.metrics.significance import (
    LEVEL,
    bootstrap_interval,
    holm,
    randomisation,
    welch_t,
)

TESTS = {
    "randomisation": "paired randomisation over {n} test queries",
    "welch_t": "unpaired t over {n} draws each",
}


@dataclass(frozen=True, slots=True)
class ContrastResult:
    """How far a row is above another in one column, with its 95 % interval and p-value."""

    row: str
    against: str
    column: str
    test: str
    n: int
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def verdict(self) -> str:
        """Which row is better, if any is."""
        if not self.p_value <= LEVEL:
            return "no difference beyond luck"
        return f"{self.row if self.difference > 0 else self.against} is better"

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        how = TESTS[self.test].format(n=self.n)
        digits = 2 if max(abs(self.low), abs(self.high)) > 1 else 4
        return (
            f"{self.column}: {self.row} against {self.against} {self.difference:+.{digits}f} "
            f"(95 % {self.low:+.{digits}f} to {self.high:+.{digits}f}, p = {self.p_value:.4f}, "
            f"{how}): {self.verdict}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it, with the verdict."""
        return {**asdict(self), "verdict": self.verdict}


def contrasted(
    experiment: Experiment,
    values: Mapping[str, Mapping[str, F64]],
    folds: Mapping[str, Sequence[Fold]],
    *,
    seed: int = 0,
) -> Iterator[ContrastResult]:
    """Yield what came out of each contrast, from the values of every query by row and column."""
    for contrast in experiment.contrasts:
        found = {
            column: _tested(
                contrast,
                values[contrast.row][column],
                values[contrast.against][column],
                _ends(experiment, column, folds),
                seed,
            )
            for column in contrast.columns
        }
        adjusted = holm({column: p for column, (*_, p) in found.items()})
        for column, (n, difference, low, high, _) in found.items():
            yield ContrastResult(
                contrast.row, contrast.against, column, contrast.test,
                n, difference, low, high, adjusted[column],
            )  # fmt: skip


def _tested(
    contrast: Contrast, a: F64, b: F64, ends: Sequence[int], seed: int
) -> tuple[int, float, float, float, float]:
    """Return the number of values, the difference, its interval and its p-value."""
    if contrast.test == "welch_t":
        from scipy import stats

        a, b = (np.array([np.nanmean(part) for part in np.split(x, ends)]) for x in (a, b))
        found = welch_t(a, b)
        if np.ptp(a) == 0.0 and np.ptp(b) == 0.0:
            low = high = found.difference
        else:
            low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
        return len(a), found.difference, float(low), float(high), found.p_value
    found = randomisation(a, b, seed=seed)
    interval = bootstrap_interval(a - b, seed=seed)
    return found.n, found.difference, interval.low, interval.high, found.p_value


def _ends(
    experiment: Experiment, column: str, folds: Mapping[str, Sequence[Fold]]
) -> Sequence[int]:
    """Return where the test queries of one fold end and those of the next begin."""
    study = next(s for s in experiment.studies if column in {c.name for c in s.columns})
    sizes = [fold.test.n_queries for fold in folds[study.name]]
    return list(itertools.accumulate(sizes[:-1]))
