"""Which ranker suits these data? `auto` tries the few that do, and keeps the best.

The candidates of `rankwright.rankers.candidates` are fitted as they stand, and the one with the
best metric on the validation set is kept. Without validation data, queries of the training data are
held out to choose, and the best is fitted again to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rankwright.core.rng import seed_of
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import k_folds, train_valid_test
from rankwright.errors import RankwrightError
from rankwright.metrics.base import Metric
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.names import metric as make_metric
from rankwright.metrics.names import metric_name
from rankwright.rankers.base import Ranker, ranker
from rankwright.rankers.candidates import Candidate, Outline, candidates
from rankwright.rankers.inputs import ranking_data, refuse_nothing_to_rank, valid_data
from rankwright.rankers.selection import ROUNDS

_CROSSED = 100  # with fewer queries than this, every query is held out once
_FOLDS = 5

OnProgress = Callable[[int, int, str, int, str], None]
"""Called with the fit and their number, the candidate, its round and a short text."""


@dataclass(frozen=True)
class Chosen:
    """What `auto` found.

    Attributes
    ----------
    ranker : Ranker
        The best, fitted.
    why : str
        A sentence or two on the data, the candidates and the choice.
    candidates : tuple of Candidate
        All that suit the data, with their values.
    metric : str
    """

    ranker: Ranker
    why: str
    candidates: tuple[Candidate, ...]
    metric: str

    def to_dict(self) -> dict[str, Any]:
        """Return the reason and the candidates as plain values."""
        return {"why": self.why, "candidates": [asdict(each) for each in self.candidates]}


def auto(
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group_sizes: Any = None,
    eval_set: Any = None,
    metric: Any = "ndcg@10",
    convention: str = "standard",
    on_progress: OnProgress | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Chosen:
    """Fit the rankers that suit the data and return the best, with the reason.

    Parameters
    ----------
    X, y, qid, group_sizes, eval_set
        As in `Ranker.fit`; ``eval_set`` chooses. Without it, every query is held out once by
        turns, or a fifth of the queries where there are 100 or more.
    metric, convention
        What is optimised, and chooses, with ties averaged.
    on_progress
        Called while fitting with the number of the fit, how many there are, the candidate, its
        round and a short text.

    Returns
    -------
    Chosen
        Its ``ranker`` is fitted to X; Ctrl-C keeps the best so far.
    """
    data = ranking_data(X, y, qid, group_sizes)
    valid = None if eval_set is None else valid_data(eval_set, data)
    refuse_nothing_to_rank(data)
    if valid is not None:
        refuse_nothing_to_rank(valid, " in the validation set")
    outline = Outline.of(data)
    seed = seed_of(random_state)
    chosen_metric = make_metric(metric, convention=convention)
    common = {"metric": metric, "convention": convention, "random_state": seed, "n_jobs": n_jobs}
    parts = list(_parts(data, valid, outline, seed))
    trial = _Trial(candidates(outline), common, parts, on_progress)
    trial.run()
    best = trial.best()
    fitted = best.last
    if valid is None and parts[0][0] is not data and not trial.interrupted:
        try:
            fitted = trial.make(best.candidate.ranker, **best.rounds()).fit(data)
        except KeyboardInterrupt:  # the fit to most queries is there
            trial.interrupted = True
    fitted.interrupted_ = fitted.interrupted_ or trial.interrupted
    found = tuple(trial.values())
    where = "the validation set" if valid is not None else "held-out queries"
    name = metric_name(metric, chosen_metric)
    return Chosen(fitted, _why(outline, found, best.candidate, name, where), found, name)


# --- trying them -----------------------------------------------------------------------------


@dataclass
class _Tried:
    """A candidate's fits, one per part, and its values on each query that was held out."""

    candidate: Candidate
    fits: list[Ranker] = field(default_factory=list)
    per_query: list[F64] = field(default_factory=list)

    @property
    def last(self) -> Ranker:
        return self.fits[-1]

    def value(self) -> float | None:
        if not self.per_query:
            return None
        return float(np.nanmean(np.concatenate(self.per_query)))

    def rounds(self) -> dict[str, int]:
        """Return as many rounds as the fits chose, for a model that is a sum of rounds."""
        name = ROUNDS.get(self.last.model_name)
        if name is None:
            return {}
        return {name: max(1, round(np.mean([fit.best_iteration_ for fit in self.fits])))}


@dataclass
class _Trial:
    """All candidates on the same parts: pairs of data to fit and data to choose by."""

    candidates: tuple[Candidate, ...]
    common: dict[str, Any]
    parts: list[tuple[RankingData, RankingData | None]]
    on_progress: OnProgress | None
    tried: list[_Tried] = field(default_factory=list)
    interrupted: bool = False

    def make(self, name: str, **parameters: Any) -> Ranker:
        return ranker(name, **self.common, **parameters)

    def run(self) -> None:
        """Fit candidate after candidate; one that cannot take the data is left out.

        Ctrl-C ends the run; what was fitted by then counts.
        """
        errors: list[RankwrightError] = []
        for candidate in self.candidates:
            done = _Tried(candidate)
            try:
                for train, chooses in self.parts:
                    self._fit(done, train, chooses)
            except RankwrightError as error:
                errors.append(error)
                continue
            except KeyboardInterrupt:
                self.interrupted = True
            if done.fits:
                self.tried.append(done)
            if self.interrupted or self.parts[0][1] is None:
                break
        if not self.tried:
            raise errors[0] if errors and not self.interrupted else KeyboardInterrupt

    def _fit(self, done: _Tried, train: RankingData, chooses: RankingData | None) -> None:
        """Fit to one part; Ctrl-C ends that fit and all after it."""
        if self.interrupted:
            return
        name = done.candidate.ranker
        fits = len(self.candidates) * len(self.parts)
        number = self.candidates.index(done.candidate) * len(self.parts) + len(done.fits)

        def progress(t: int, text: str) -> None:
            if self.on_progress is not None:
                self.on_progress(number, fits, name, t, text)

        made = self.make(name).fit(train, eval_set=chooses, progress=progress)
        self.interrupted = made.interrupted_
        done.fits.append(made)
        if chooses is not None:
            found = evaluate(chooses, made.predict(chooses), self._chooses_by())
            done.per_query.append(next(iter(found.per_query.values())))

    def best(self) -> _Tried:
        """Return the first of the best of those fitted to all parts, or else the first."""
        sign = 1.0 if self._chooses_by().maximise else -1.0

        def worth(done: _Tried) -> float:
            value = done.value()
            return -np.inf if value is None or np.isnan(value) else sign * value

        return max(self._whole() or self.tried, key=worth)

    def _chooses_by(self) -> Metric:
        """Return the metric with ties averaged."""
        return make_metric(
            self.common["metric"], convention=self.common["convention"]
        ).for_selection()

    def _whole(self) -> list[_Tried]:
        """Return those that were fitted to all parts, whose values are of the same queries."""
        return [done for done in self.tried if len(done.fits) == len(self.parts)]

    def values(self) -> Iterator[Candidate]:
        """Yield every candidate with its value."""
        known = {done.candidate.ranker: done.value() for done in self._whole() or self.tried}
        for each in self.candidates:
            yield replace(each, value=known.get(each.ranker))


def _parts(
    data: RankingData, valid: RankingData | None, outline: Outline, seed: int
) -> Iterator[tuple[RankingData, RankingData | None]]:
    """Yield what to fit to and what to choose by."""
    if valid is not None:
        yield data, valid
    elif outline.ratings or data.n_queries < _FOLDS:  # users are known by their own ratings
        yield data, None
    elif data.n_queries >= _CROSSED:
        fold = train_valid_test(data, (0.8, 0.0, 0.2), seed=seed)
        yield fold.train, fold.test
    else:
        for fold in k_folds(data, _FOLDS, valid=False, seed=seed):
            yield fold.train, fold.test


# --- the reason --------------------------------------------------------------------------------


def _why(
    outline: Outline, found: tuple[Candidate, ...], best: Candidate, metric: str, where: str
) -> str:
    values = [each for each in found if each.value is not None]
    if not values:
        return f"{outline}: {best.ranker} ({best.why}), not validated: no validation data given."
    results = ", ".join(f"{each.ranker} {each.value:.4f}" for each in values)
    return (
        f"{outline}: {best.ranker} ({best.why}) is the best of the candidates for such data. "
        f"{metric} on {where}: {results}."
    )
