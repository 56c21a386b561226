"""Which ranker suits these data? `auto` tries the few that do, and keeps the best.

The candidates of `rankwright.rankers.auto` are fitted as they stand, and the one with the
best metric on the validation set is kept. Without validation data, queries of the training data are
held out to choose, and the best is fitted again to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from rankwright.core.memory import blocks
from rankwright.core.parameters import seed_of
from rankwright.core.types import F64
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import k_folds, train_valid_test
from rankwright.errors import RankwrightError
from rankwright.metrics.base import Metric, metric_name
from rankwright.metrics.base import metric as make_metric
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import Ranker, ranker
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


# --- which rankers suit data -----------------------------------------------------------------
#
# An outline of the data names two to four candidates.
# The outline is queries, documents, features, zeros, missing values and grades; what suits data of
# which kind was measured, and is reported in docs/choose.md.


FEW_QUERIES = 30
LONG_LIST = 500
SMALL = 20_000  # documents
MANY_DOCUMENTS = 200_000
SPARSE = 0.1  # share of entries that are not zero
MANY_FEATURES = 500
FEW_FEATURES = 100


@dataclass(frozen=True)
class Outline:
    """What decides which rankers suit data."""

    queries: int
    documents: int
    features: int
    filled: float
    missing: bool
    grades: int
    ratings: bool
    categories: int = 0

    @classmethod
    def of(cls, data: RankingData) -> Outline:
        """Return the outline of ``data``."""
        values = data.X.data[:, None] if sparse.issparse(data.X) else data.X
        entries = max(1, data.n_documents * data.n_features)
        return cls(
            queries=data.n_queries,
            documents=data.n_documents,
            features=data.n_features,
            filled=float(np.count_nonzero(values) / entries),
            missing=any(np.isnan(values[block]).any() for block in blocks(values)),
            grades=len(np.unique(data.y)),
            ratings=_are_ratings(data),
            categories=len(data.categories or ()),
        )

    @property
    def length(self) -> int:
        """Documents of a query, on average."""
        return round(self.documents / max(1, self.queries))

    def __str__(self) -> str:
        if self.ratings:
            return (
                f"{_of(self.queries, 'user', 'users')} with {self.documents:,} ratings of "
                f"{_of(self.features, 'item', 'items')}"
            )
        parts = [
            f"{_of(self.queries, 'query', 'queries')} of about "
            f"{_of(self.length, 'document', 'documents')}",
            _of(self.features, "feature", "features"),
            _of(self.grades, "grade", "grades"),
        ]
        if self.filled < SPARSE:
            parts[1] += f" of which {self.filled:.1%} are not zero"
        if self.categories:
            parts[1] += f" of which {_of(self.categories, 'is a category', 'are categories')}"
        if self.missing:
            parts.append("missing values")
        return ", ".join(parts)


@dataclass(frozen=True)
class Candidate:
    """A ranker that suits the data, with its metric on validation data; None if not fitted."""

    ranker: str
    why: str
    value: float | None = None


def candidates(outline: Outline) -> tuple[Candidate, ...]:
    """Return the rankers that suit data of this outline, the likeliest first."""
    return tuple(Candidate(name, why) for name, why in _suited(outline))


def _suited(outline: Outline) -> Iterator[tuple[str, str]]:
    if outline.ratings:
        yield "cofirank", "ratings: learns users and items, and the order of each user's items"
        yield "mmmf", "ratings: learns users and items, and the levels of the ratings"
    elif outline.missing or outline.categories:
        why = f"{'categories' if outline.categories else 'missing values'}: trees take them"
        yield "xendcg", why
        yield "gbdt", why
        yield "lambdamart", why
    elif outline.filled < SPARSE and outline.features >= MANY_FEATURES:
        yield "domination", "sparse features: few weights, the others exactly 0"
        yield "pamir", "sparse features: a step costs the entries of two rows"
        if outline.documents < SMALL:
            yield "intervalrank", "few documents: trees on sparse features are affordable"
    elif outline.queries < FEW_QUERIES and outline.length < LONG_LIST:
        yield "memr", "few queries: linear, and hard to overfit"
        yield "listnet", "few queries: linear, and hard to overfit"
        yield "intervalrank", "few queries: trees with soft margins"
    elif outline.length >= LONG_LIST:
        yield "memr", "long lists: linear and quick"
        yield "domination", "long lists: good documents above all they dominate"
        yield "gbdt", "long lists: trees that form no pairs"
    else:
        yield "memr", "linear and quick"
        yield "xendcg", "trees that train for NDCG and form no pairs"
        if outline.documents < SMALL and outline.features <= FEW_FEATURES:
            yield "coordinate_ascent", "few features: optimises the metric itself"
        else:
            yield "lambdamart", "many documents: trees that optimise the metric"
        if outline.documents < MANY_DOCUMENTS:
            yield "gbdt", "trees on the grades"


def _of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _are_ratings(data: RankingData) -> bool:
    """Whether each row names one item, as ratings are read: a single 1 among zeros."""
    X = data.X
    if not sparse.issparse(X) or X.nnz != data.n_documents or data.n_features < 2:
        return False
    return bool((X.data == 1.0).all() and (np.diff(X.indptr) == 1).all())
