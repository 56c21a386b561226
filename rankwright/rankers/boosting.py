"""Rankers that add up weak rankers, and those that optimise a metric itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from rankwright.core.parameters import part_name, seed_of
from rankwright.core.types import AnyArray, FittedModel, Loss, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.metrics.base import metric
from rankwright.rankers.base import Ranker
from rankwright.rankers.selection import Selection


class RankBoost(Ranker):
    """RankBoost: rules of one feature and a threshold, boosted against misordered pairs.

    Exponential loss on pairs with a sum of rules; each rule [x > theta] with r, by how much it
    agrees with the pairs as they are weighted, counts 1/2 ln((1 + r) / (1 - r))
    (`freund2003rankboost`). Missing values meet no rule.

    Parameters
    ----------
    normalize : bool, default False
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    n_rounds : int, default 300
        Rules that are added; one that comes again adds to its weight.
    n_candidates : int or "all", default 255
        Equal widths that the range of a feature is cut into for its thresholds, as in RankLib
        (which has 10), or "all" for every value in the data.
    learning_rate : float, default 1.0
        Share of each step that is taken.
    falling : bool, default False
        Also take rules with a negative weight, where less is better; RankLib does not.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a sum of rules, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the iteration on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankBoost(n_rounds=50).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "pair_exp"
    model_class: ClassVar[str | None] = "additive"

    def __init__(
        self,
        *,
        normalize: bool = False,
        n_rounds: int = 300,
        n_candidates: int | str = 255,
        learning_rate: float = 1.0,
        falling: bool = False,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.normalize = normalize
        self.n_rounds = n_rounds
        self.n_candidates = n_candidates
        self.learning_rate = learning_rate
        self.falling = falling
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class FRank(Ranker):
    """FRank: rules of one feature and a threshold under the fidelity loss on pairs.

    The loss of a pair is at most 1, so that hopeless pairs do not decide (`tsai2007frank`). Missing
    values meet no rule.

    Parameters
    ----------
    confidence : float, default 1.0
        Probability, above 1/2 and up to 1, with which a better document is to lead a worse one.
    normalize : bool, default False
        Take the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    n_rounds : int, default 200
        Rules that are added; one that comes again adds to its weight.
    n_candidates : int or "all", default 255
        Equal widths that the range of a feature is cut into for its thresholds, as in RankLib
        (which has 10), or "all" for every value in the data.
    learning_rate : float, default 0.3
        Share of each step that is taken.
    falling : bool, default False
        Also take rules with a negative weight, where less is better; RankLib does not.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a sum of rules, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects the iteration on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.FRank(n_rounds=50).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "fidelity"
    model_class: ClassVar[str | None] = "additive"

    def __init__(
        self,
        *,
        confidence: float = 1.0,
        normalize: bool = False,
        n_rounds: int = 200,
        n_candidates: int | str = 255,
        learning_rate: float = 0.3,
        falling: bool = False,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.confidence = confidence
        self.normalize = normalize
        self.n_rounds = n_rounds
        self.n_candidates = n_candidates
        self.learning_rate = learning_rate
        self.falling = falling
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class MetricRanker(Ranker):
    """Base of AdaRank, Coordinate Ascent and RankGP: ``metric`` is what the model optimises.

    ``select_metric`` chooses the iteration on the validation set, where that is to be another. A
    metric has no weights of documents, so ``sample_weight`` may only leave documents out; queries
    may have any weight.
    """

    def make_loss(self) -> Loss:
        """Refuse: there is none."""
        raise IncompatibleError(
            f"{self.name} optimises a metric and has no loss; use a ranker that minimises one, "
            "such as gbdt or lambdamart."
        )

    def _fit_model(
        self, model: Any, data: RankingData, callback: Selection, start: FittedModel | None
    ) -> FittedModel:
        self._check_metric_model(model, data)
        fitted: FittedModel = model.fit(
            metric(self.metric, convention=self.convention),
            data,
            callback=callback,
            start=start,
            random_state=seed_of(self.random_state),
            n_jobs=self.n_jobs,
        )
        return fitted

    def _rounds(
        self,
        model: Any,
        data: RankingData,
        valid: RankingData | None,
        *,
        start: FittedModel | None,
        resume: Mapping[str, AnyArray] | None,
    ) -> Iterator[Round]:
        """Return the rounds of ``model`` on this ranker's metric."""
        self._check_metric_model(model, data)
        rounds: Iterator[Round] = model.rounds(
            metric(self.metric, convention=self.convention),
            data,
            valid,
            start=start,
            resume=resume,
            random_state=seed_of(self.random_state),
            n_jobs=self.n_jobs,
        )
        return rounds

    def _check_metric_model(self, model: Any, data: RankingData) -> None:
        if not getattr(model, "optimises_metric", False):
            raise IncompatibleError(
                f"{self.name} optimises a metric, which model '{part_name('models', model)}' does "
                "not; leave model out, or use a ranker that minimises a loss, such as lambdamart."
            )
        weight = data.sample_weight
        if weight is not None and np.ptp(weight) > 0.0:
            raise UsageError(
                f"{self.name} optimises a metric, which has no weights of documents: give weights "
                "of queries (query_weight), or documents the weights 0 and 1 to leave some out."
            )


class AdaRank(MetricRanker):
    """AdaRank: features added up, each chosen for the queries that the sum so far serves badly.

    The defaults are RankLib's rules, which keep a strong feature from holding the run where it is;
    for the algorithm as printed (`xu2007adarank`) give ``weights="total", enqueue=False, tol=None,
    max_selections=None``. Queries may have weights; documents may not, but those of weight 0 are
    left out.

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the iteration on the validation set.
    n_rounds : int, default 500
        Most features that are added.
    weights : {"running", "total"}, default "running"
        Weight queries by all rankings up to this iteration, or by the present ranking alone, as
        published.
    enqueue : bool, default True
        Set a feature aside that is chosen twice in a row.
    tol : float or None, default 2e-3
        Loss of mean metric in an iteration that ends the run; None never ends it.
    max_selections : int or None, default 5
        How often in a row a feature may be chosen without any effect; None sets no limit.
    falling : bool, default False
        Let features take part with falling values too, where less is better; RankLib does not.
    scale : bool, default False
        Add features up in units of their standard deviation, not as they are.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a sum of features, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.AdaRank(metric="map").fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class: ClassVar[str | None] = "feature_sum"

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        n_rounds: int = 500,
        weights: str = "running",
        enqueue: bool = True,
        tol: float | None = 2e-3,
        max_selections: int | None = 5,
        falling: bool = False,
        scale: bool = False,
        missing: str | None = None,
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.n_rounds = n_rounds
        self.weights = weights
        self.enqueue = enqueue
        self.tol = tol
        self.max_selections = max_selections
        self.falling = falling
        self.scale = scale
        self.missing = missing
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class CoordinateAscent(MetricRanker):
    """Coordinate Ascent: weights moved one at a time, each to where the metric is highest.

    The best place along a feature is found exactly for sums over the first ranks such as ndcg@10,
    by following the changes of the ranking, and by steps for others (`metzler2007linear`).
    RankLib's own method is ``steps="ranklib", scale=False``; its flags are ``n_restarts`` (-r),
    ``n_steps`` (-i), ``tol`` (-tolerance), ``reg`` (-reg).

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the iteration on the validation set.
    n_restarts : int, default 3
        How often to begin, each time with another order of the features.
    n_passes : int, default 25
        Most passes over the features from one beginning.
    tol : float, default 1e-3
        A pass that gains less is the last.
    reg : float, default 0.0
        Penalty on the distance from the first weights, both normalised; 0 for none.
    steps : {"auto", "exact", "ranklib"}, default "auto"
        How the best place along a feature is found: by every change of the ranking, or by steps
        that double, up, down, then to 0. "auto" is exact for metrics of the first 32 ranks or
        fewer, on average over documents. A metric that is not a sum over ranks, such as map, mrr
        or err, always takes the steps.
    n_steps : int, default 25
        Number of steps in each direction, where steps are taken.
    scale : bool, default True
        Begin with weights that are equal for features of unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is coordinate ascent, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.CoordinateAscent(n_restarts=1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name: ClassVar[str] = "coordinate_ascent"
    model_class: ClassVar[str | None] = "coordinate_ascent"

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        n_restarts: int = 3,
        n_passes: int = 25,
        tol: float = 1e-3,
        reg: float = 0.0,
        steps: str = "auto",
        n_steps: int = 25,
        scale: bool = True,
        missing: str | None = None,
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.n_restarts = n_restarts
        self.n_passes = n_passes
        self.tol = tol
        self.reg = reg
        self.steps = steps
        self.n_steps = n_steps
        self.scale = scale
        self.missing = missing
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class RankGP(MetricRanker):
    """RankGP: a short formula over features, found by genetic programming.

    The formulas that rank best are crossed and changed for some generations; the best one on the
    validation set is kept, simplified, and printed by ``rankwright inspect`` (`yeh2007rankgp`).

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects the iteration on the validation set.
    population : int, default 400
        Formulas of a generation.
    n_generations : int, default 30
        Number of generations, the first included; the best on the validation set is kept.
    tournament : int, default 7
        Formulas sampled for each choice of a parent; the more, the harder the selection.
    crossover : float, default 0.6
        Share of children that have two parents; the others are changed copies of one.
    elites : int, default 2
        Best formulas that are kept as they are in the next generation.
    parsimony : float, default 1e-4
        Fitness that each node costs a formula when parents are chosen.
    max_nodes : int, default 31
        Most nodes of a formula.
    max_depth : int, default 8
        Most operations on its longest path.
    max_features : int, default 10
        Most features in it.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a formula, with the parameters given here.
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop after this many iterations without a better value on the validation set; None never
        does.
    random_state : int, RandomState, Generator or None, default 0
        Seed of everything that is sampled. The same int gives the same model; None does not.
    n_jobs : int or None, default None
        Number of threads. None and -1 take all CPUs that the process may use; the result is the
        same for any number.
    verbose : bool, default False
        Write a line per iteration to standard error.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankGP(n_generations=5).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class: ClassVar[str | None] = "expression"

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        population: int = 400,
        n_generations: int = 30,
        tournament: int = 7,
        crossover: float = 0.6,
        elites: int = 2,
        parsimony: float = 1e-4,
        max_nodes: int = 31,
        max_depth: int = 8,
        max_features: int = 10,
        missing: str | None = None,
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.population = population
        self.n_generations = n_generations
        self.tournament = tournament
        self.crossover = crossover
        self.elites = elites
        self.parsimony = parsimony
        self.max_nodes = max_nodes
        self.max_depth = max_depth
        self.max_features = max_features
        self.missing = missing
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def formula_(self) -> str:
        """The formula, with the names of the features."""
        formula: str = self._part("written", "formula")
        return formula
