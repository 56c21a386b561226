"""One ranking function per topic, hundreds of them over one shared sparse matrix.

Each topic is a query over all documents of a collection: those that are on the topic are to stand
above all others. Topics are fitted side by side on threads. They share the matrix, by columns or
by rows as their method wants it, and nothing of it is copied; a topic's own memory is some numbers
per document.

    >>> models = fit_topics(X, labels, SparseDomination(), valid=(X_valid, labels_valid))
    >>> scores = X_test @ models.coef.T
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from rankwright import registry
from rankwright.core.dtypes import as_feature_matrix
from rankwright.core.parallel import map_ranges
from rankwright.core.products import one_blas_thread, times_vector
from rankwright.core.types import F64, I64, Loss, SolveResult
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.losses import loss
from rankwright.losses.base import document_weight, order_weight
from rankwright.losses.domination import Domination
from rankwright.losses.domination_columns import Columns
from rankwright.losses.pair_sampler import PairSampler
from rankwright.metrics.base import metric as named
from rankwright.metrics.evaluation import Evaluator
from rankwright.models.linear_problem import LinearProblem
from rankwright.models.passive_aggressive import PairState, PassiveAggressive
from rankwright.registry import unknown
from rankwright.solvers.choice import choose_solver
from rankwright.solvers.coordinate import Coordinate, falling_l1


class TopicMethod(Protocol):
    """A way to fit one topic; it offers candidates, of which valid chooses."""

    def share(self, X: Any, n_jobs: int | None) -> Any:
        """Return the matrix in the form that all topics share."""

    def candidates(self, shared: Any, data: RankingData, number: int) -> Iterator[Candidate]:
        """Yield weights for the topic of that number, the sparsest first."""


@dataclass(frozen=True)
class SparseDomination:
    """Domination loss by coordinate descent; the candidates are a path of penalties.

    Parameters
    ----------
    loss : Domination
    l1 : float or "auto"
        "auto" is a path of ``steps`` penalties from the least that makes all weights 0 down to
        ``least`` times that.
    l2 : float or tuple
        One or, falling, several to choose from, each with every l1.
    step, tol, max_iter
        Of the solver; ``tol`` is a share of the largest slope at weights 0.
    """

    loss: Domination = field(default_factory=Domination)
    l1: float | str = "auto"
    l2: float | tuple[float, ...] = 0.0
    steps: int = 20
    least: float = 1e-2
    step: str = "log1p"
    tol: float = 1e-3
    max_iter: int = 500

    def share(self, X: Any, n_jobs: int | None) -> Columns:
        """Return X by columns; a CSC matrix is taken as it is."""
        csc = X if X.format == "csc" and X.has_sorted_indices else sparse.csc_array(X)
        return Columns.of(csc, np.array([0, X.shape[0]]), n_jobs=n_jobs)

    def candidates(
        self,
        shared: Columns,
        data: RankingData,
        number: int,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """Yield the solutions of the path, each found from the one before."""
        problem = self.loss.bind(data, n_jobs=1).by_column(shared, n_jobs=1)
        path = falling_l1(problem, steps=self.steps, least=self.least)
        top = path[0] / self.least ** (1.0 / self.steps)
        solver = Coordinate(self.tol * top, self.max_iter, self.step)
        penalties = path if self.l1 == "auto" else [float(self.l1)]
        for l2 in self.l2 if isinstance(self.l2, tuple) else (self.l2,):
            problem.l2 = l2
            result: SolveResult
            for l1, result in zip(penalties, solver.path(problem, penalties), strict=True):
                yield Candidate(result.w, {"l1": l1, "l2": l2}, result.optimality)


@dataclass(frozen=True)
class SampledPairs:
    """Passive-aggressive steps on sampled pairs (PAMIR); the candidates are rounds and caps.

    Parameters
    ----------
    C : tuple of floats
        Caps to choose from.
    n_steps, rounds : int
        Pairs drawn for each cap, and in how many rounds valid may stop them.
    averaging : bool
    seed : int
    """

    C: tuple[float, ...] = (0.01, 0.1, 1.0)
    n_steps: int = 100_000
    rounds: int = 5
    averaging: bool = True
    seed: int = 0

    def share(self, X: Any, n_jobs: int | None) -> Any:  # noqa: ARG002
        """Return X by rows; a CSR matrix is taken as it is."""
        return X if X.format == "csr" and X.has_canonical_format else sparse.csr_array(X)

    def candidates(self, shared: Any, data: RankingData, number: int) -> Iterator[Candidate]:
        """Yield the weights after each round, for each cap."""
        draws = PairSampler.of(data, order_weight(data), document_weight(data))
        seed = self.seed + (number << 32)
        for cap in self.C:
            state = PairState.at(np.zeros(shared.shape[1]))
            for _ in range(self.rounds):
                state = PassiveAggressive(cap).go_on(
                    shared, draws, state, self.n_steps // self.rounds, seed=seed
                )
                coef = state.mean if self.averaging else state.w
                yield Candidate(coef, {"C": cap, "steps": float(state.t)})


@dataclass(frozen=True)
class TopicModels:
    """The ranking functions of all topics.

    Attributes
    ----------
    coef : CSR matrix, topics x features
        Scores of documents are ``X @ coef.T``.
    settings : tuple of dicts
        What was chosen for each topic.
    optimality, valid : (topics,) float64
        How far from optimal the solver ended, and the metric on valid (NaN without).
    """

    coef: Any
    settings: tuple[dict[str, float], ...]
    optimality: F64
    valid: F64

    @property
    def zero_share(self) -> F64:
        """The share of weights that are exactly 0, for each topic."""
        share: F64 = 1.0 - np.diff(self.coef.indptr) / self.coef.shape[1]
        return share

    def scores(self, X: Any, topic: int, *, n_jobs: int | None = None) -> F64:
        """Return the score of each row of X for one topic."""
        return times_vector(X, self.coef[[topic]].toarray()[0], n_jobs=n_jobs)


def fit_topics(
    X: Any,
    grades: Any,
    method: TopicMethod,
    *,
    valid: tuple[Any, Any] | None = None,
    metric: str = "map",
    within: float = 0.0,
    early_stopping_rounds: int | None = None,
    together: bool = False,
    min_zero: float = 0.0,
    report: Callable[[int], None] = lambda _: None,
    n_jobs: int | None = None,
) -> TopicModels:
    """Fit a ranking function to each topic.

    Parameters
    ----------
    X : sparse matrix, documents x features
        By rows or by columns; `SparseDomination` uses a CSC matrix as it is, `SampledPairs` a CSR.
    grades : array or sparse matrix, documents x topics
        0 for documents that are not on a topic.
    valid : (X, grades)
        Of other documents; the candidate with the best ``metric`` is kept, the first of equals.
        Without, the last.
    within : float
        Keep the first candidate whose metric is within this share of the best.
    early_stopping_rounds : int
        Leave out the rest of a topic's candidates after this many without a better one.
    together : bool
        Choose one candidate for all topics, by its number and the mean of the metric: steadier
        where topics have few valid documents each. All candidates are held until then.
    min_zero : float
        Consider only candidates with at least this share of weights 0, on average over the topics
        where they are chosen together.
    report
        Called with the number of each topic that is done, from any thread.
    """
    labels = sparse.csc_array(grades)
    if labels.shape[0] != X.shape[0]:
        raise DataError(f"X has {X.shape[0]} documents, but grades has {labels.shape[0]}.")
    if not 0.0 <= within < 1.0:
        raise UsageError(f"within is a share from 0 to below 1, not {within}.")
    rule = Rule(within, early_stopping_rounds, min_zero)
    judge = None if valid is None else _Judge(valid, metric, labels.shape[1])
    if together and (judge is None or early_stopping_rounds is not None):
        raise UsageError(
            "together=True needs valid, and every candidate: no early_stopping_rounds."
        )
    shared = method.share(X, n_jobs)
    offers: list[list[Offer]] = [[] for _ in range(labels.shape[1])]

    def fit(lo: int, hi: int) -> None:
        for topic in range(lo, hi):
            data = _topic_data(labels, topic)
            offered = method.candidates(shared, data, topic) if order_weight(data).any() else ()
            measured = _measured(offered, judge, topic)
            offers[topic] = list(map(packed, measured)) if together else rule.choose(measured)
            report(topic)

    map_ranges(fit, np.arange(labels.shape[1] + 1), n_jobs=n_jobs)
    if together:
        offers = rule.choose_together(offers)
    none = Offer(sparse.csr_array((1, X.shape[1])), {}, np.nan, np.nan)
    return _models([found[0] if found else none for found in offers])


def _models(found: Sequence[Offer]) -> TopicModels:
    return TopicModels(
        coef=sparse.csr_array(sparse.vstack([one.coef for one in found])),
        settings=tuple(one.setting for one in found),
        optimality=np.array([one.optimality for one in found]),
        valid=np.abs([one.value for one in found]),
    )


class _Judge:
    """Measures candidates on valid documents."""

    def __init__(self, valid: tuple[Any, Any], metric: str, n_topics: int) -> None:
        self._X, self._labels, self._metric = (
            as_feature_matrix(valid[0]),
            sparse.csc_array(valid[1]),
            metric,
        )
        if self._labels.shape != (self._X.shape[0], n_topics):
            raise DataError(
                f"the grades of valid are {self._labels.shape[0]} x {self._labels.shape[1]}, where "
                f"{self._X.shape[0]} documents x {n_topics} topics are expected."
            )

    def of_topic(self, topic: int) -> Callable[[F64], float]:
        """Return what measures weights for a topic; larger is better."""
        selects = named(self._metric).for_selection()
        evaluator = Evaluator(_topic_data(self._labels, topic), selects, n_jobs=1)
        sign = 1.0 if selects.maximise else -1.0
        return lambda coef: (
            sign * evaluator.means(times_vector(self._X, coef, n_jobs=1))[repr(selects)]
        )


def _measured(
    offered: Iterable[Candidate], judge: _Judge | None, topic: int
) -> Iterator[tuple[Candidate, float]]:
    measure = None if judge is None else judge.of_topic(topic)
    for one in offered:
        yield one, np.nan if measure is None else measure(one.coef)


def _topic_data(labels: Any, topic: int) -> RankingData:
    """Return all documents as one query, without features."""
    n = labels.shape[0]
    y = np.zeros(n)
    entries: slice = slice(labels.indptr[topic], labels.indptr[topic + 1])
    y[labels.indices[entries]] = labels.data[entries]
    indptr: I64 = np.array([0, n])
    return RankingData(np.empty((n, 0)), y, indptr, np.array([topic]))


# --- choice on validation data ---------------------------------------------------------------
# Which of the weights that a method offers for a topic are kept.


@dataclass(frozen=True)
class Candidate:
    """Weights that a method offers for a topic, and how they were found."""

    coef: F64
    setting: dict[str, float]
    optimality: float = np.nan


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate with its weights as a sparse row, and its value on valid, larger is better."""

    coef: Any
    setting: dict[str, float]
    optimality: float
    value: float

    @property
    def zero_share(self) -> float:
        """The share of weights that are 0."""
        return 1.0 - float(self.coef.nnz) / float(self.coef.shape[1])


def packed(measured: tuple[Candidate, float]) -> Offer:
    """Return a candidate and its value as an offer."""
    one, value = measured
    return Offer(sparse.csr_array(one.coef[None]), one.setting, one.optimality, value)


@dataclass(frozen=True, slots=True)
class Rule:
    """Keep the best on valid of those that are sparse enough; or the first that is near it.

    Parameters
    ----------
    within
        How near, as a share of the best value; 0: the best itself, the first of equals.
    early_stopping_rounds
        Look no further after this many candidates without a better one.
    min_zero
        The share of weights 0 that makes a candidate sparse enough.
    """

    within: float
    early_stopping_rounds: int | None
    min_zero: float

    def choose(self, measured: Iterable[tuple[Candidate, float]]) -> list[Offer]:
        """Return the one that is kept for a topic, none where there is none."""
        kept: list[Offer] = []
        best, best_at = -np.inf, 0
        for number, one in enumerate(measured):
            offer = packed(one)
            if offer.zero_share < self.min_zero:
                continue
            if np.isnan(offer.value):  # without valid the last is kept
                kept = [offer]
                continue
            if offer.value > best:
                best, best_at = offer.value, number
                kept = [before for before in kept if self._near(before.value, best)]
            if self._near(offer.value, best):
                kept.append(offer)
            if (
                self.early_stopping_rounds is not None
                and number - best_at >= self.early_stopping_rounds
            ):
                break
        return kept[:1]

    def choose_together(self, offers: Sequence[Sequence[Offer]]) -> list[list[Offer]]:
        """Return for each topic the one whose number is best on average."""
        able = [found for found in offers if found]
        numbers = range(min(map(len, able), default=0))
        mean = {
            k: float(np.mean([found[k].value for found in able]))
            for k in numbers
            if np.mean([found[k].zero_share for found in able]) >= self.min_zero
        }
        if not mean:
            return [[] for _ in offers]
        best = max(mean.values())
        chosen = next(k for k, value in mean.items() if self._near(value, best))
        return [[found[chosen]] if found else [] for found in offers]

    def _near(self, value: float, best: float) -> bool:
        return value >= best - self.within * abs(best)


# --- methods by name -------------------------------------------------------------------------
# Methods of `reproducibility.topics` by the names that experiment files have for them.
#
#     domination   domination loss by coordinate descent, over a path of l1 penalties
#     pamir        passive-aggressive steps on sampled pairs
#     linear       any smooth loss with an l2 penalty, and so no weight at 0
#
# Beside its own parameters and those of its loss, a setting may say ``within`` and ``min_zero``:
# how `reproducibility.topics.fit_topics` chooses among what the method offers.


@dataclass(frozen=True)
class DenseLinear:
    """A loss with a ridge; the candidates are its strengths.

    Parameters
    ----------
    loss : Loss
    l2 : tuple of floats
        Falling; each is solved from the weights of the one before.
    solver, tol, max_iter
        A solver of linear models, such as tron or lbfgs, and when it stops.
    """

    loss: Loss
    l2: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    solver: str = "tron"
    tol: float = 1e-3
    max_iter: int = 100

    def share(self, X: Any, n_jobs: int | None) -> Any:  # noqa: ARG002
        """Return X by rows; a CSR matrix is taken as it is."""
        return X if X.format == "csr" else sparse.csr_array(X)

    def candidates(
        self,
        shared: Any,
        data: RankingData,
        number: int,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """Yield the solution for each strength."""
        bound: Any = self.loss.bind(data, n_jobs=1)
        solver = registry.resolve("solvers", self.solver)(self.tol, self.max_iter)
        w = np.zeros(shared.shape[1])
        for l2 in self.l2:
            problem = LinearProblem(
                shared,
                data.indptr,
                bound,
                float(order_weight(data).sum()),
                l2=l2,
                deviation=np.ones(len(w)),
                document_weight=document_weight(data),
                traits=self.loss.traits,
                n_jobs=1,
            )
            with one_blas_thread():
                result = solver.solve(problem, w)
            w = result.w
            yield Candidate(w, {"l2": l2}, result.optimality)


METHODS: dict[str, type[Any]] = {
    "domination": SparseDomination,
    "pamir": SampledPairs,
    "linear": DenseLinear,
}


CHOICE = ("within", "min_zero")


def topic_method(
    name: str, *, seed: int = 0, **setting: Any
) -> tuple[TopicMethod, dict[str, float]]:
    """Return the method called ``name``, and what its setting says on the choice.

    Parameters
    ----------
    **setting
        Such as ``loss="pair_hinge", pairs="query", l2=[0.1, 0.01]``. ``loss`` is for ``linear``
        alone, domination by default.
    """
    if name not in METHODS:
        raise UsageError(unknown("method for topics", name, METHODS))
    kind = METHODS[name]
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in setting.items()}
    choice = {key: float(given.pop(key)) for key in CHOICE if key in given}
    own = {field.name for field in fields(kind)} - {"loss", "seed"}
    mine = {key: given.pop(key) for key in own & given.keys()}
    if name == "pamir":
        for stray in given:
            raise UsageError(unknown("parameter of method 'pamir'", stray, (*own, *CHOICE)))
        return SampledPairs(**mine, seed=seed), choice
    made = kind(loss=loss(given.pop("loss", "domination"), **given), **mine)
    if name == "linear":
        choose_solver(made.solver, made.loss)
    elif not isinstance(made.loss, Domination):
        raise UsageError(
            "method 'domination' has its own loss; another loss needs method 'linear'."
        )
    return made, choice
