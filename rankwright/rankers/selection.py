"""Watching a fit: learning curves, the best round on valid, early stopping, the progress bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rankwright.core.parallel import thread_count
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.metrics.evaluate import Evaluator, metric

Progress = Callable[[int, str], None]


@dataclass
class Selection:
    """Records the metric after each round and keeps the best round on valid.

    Parameters
    ----------
    metric, convention
        What is recorded and selects the model; a metric that falls as rankings improve
        (such as ``pair_error``) is minimised.
    train, valid
        The data; without ``valid`` the last round is kept.
    early_stopping
        End the run after this many rounds without a better value; None never does.
    progress
        Called with the round and a short text after each round; one that has a method ``tell`` is
        also told the round and the metric on valid, and may end the run by raising.
    """

    metric: str
    convention: str
    train: RankingData
    valid: RankingData | None
    early_stopping: int | None = None
    progress: Progress | None = None
    n_threads: int | None = None
    curve: dict[str, list[float]] = field(default_factory=dict)
    interrupted: bool = False
    _best: int = 0
    _last: int = 0

    def __post_init__(self) -> None:
        self._maximise = metric(self.metric, convention=self.convention).maximise
        self._measures: dict[str, Evaluator] = {}
        if self.valid is not None:
            threads = thread_count(self.n_threads)  # once, not in each round
            self._measures = {
                name: Evaluator(data, [self.metric], convention=self.convention, n_threads=threads)
                for name, data in (("train", self.train), ("valid", self.valid))
            }

    @property
    def wants_train(self) -> bool:
        """Whether scores on train are of use: only beside those on valid."""
        return self.valid is not None

    def seen(self, t: int, value: float, train: F64 | None, valid: F64 | None) -> bool:
        """Take in the loss and the scores after round ``t``; True ends the run."""
        self._last = t
        self._add("loss", value)
        text = f"loss {value:.6g}"
        if train is not None:
            self._measure("train", train)
        if valid is not None:
            past = self._measure("valid", valid)
            text = f"valid {self.metric} {past[-1]:.4f}"
            if self._is_best(past):
                self._best = t
        if self.progress is not None:
            self.progress(t, text)
            if valid is not None and hasattr(self.progress, "tell"):
                self.progress.tell(t, past[-1])
        return (
            self.early_stopping is not None
            and self._best > 0
            and t - self._best >= self.early_stopping
        )

    def best(self) -> int:
        """Return the best round on valid, or the last one."""
        return self._best or self._last

    def _is_best(self, past: list[float]) -> bool:
        """Whether the last value is better than all before it."""
        *before, value = past
        if not before:
            return True
        return value > max(before) if self._maximise else value < min(before)

    def _measure(self, name: str, scores: F64) -> list[float]:
        """Add the metric of these scores to its curve and return the curve."""
        value = self._measures[name].means(scores)[self.metric]
        return self._add(f"{name} {self.metric}", value)

    def _add(self, name: str, value: float) -> list[float]:
        past = self.curve.setdefault(name, [])
        past.append(value)
        return past
