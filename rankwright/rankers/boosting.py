"""Rankers that add weak rankers, and rankers that optimise a metric directly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwright.core.parameters import part_name
from rankwright.core.types import Loss, Round
from rankwright.errors import IncompatibleError, UsageError
from rankwright.metrics.base import metric
from rankwright.models.formula import text
from rankwright.rankers.checkpointing import Resume
from rankwright.rankers.parameters import (
    MetricParameters,
    MissingParameters,
    StoppingParameters,
    named_ranker,
    parameter_group,
)
from rankwright.rankers.preparation import FitData, FitParts


@parameter_group
class RuleParameters(StoppingParameters):
    """Parameters of rankers that add rules of one feature and a threshold.

    Parameters
    ----------
    normalize : bool
        Use the mean over the pairs of a query instead of the sum, so that long lists do not
        outweigh short ones.
    n_rounds : int
        Number of rules to add. A rule that is added again increases its weight.
    n_candidates : int or "all"
        Number of candidate thresholds of a feature, at equal distances over its range as in RankLib
        (which has 10), or "all" for each value in the data.
    learning_rate : float
        Factor by which each step is multiplied.
    falling : bool
        Also use rules with a negative weight, for features with which relevance falls. RankLib does
        not.
    """

    model_class = "additive"

    normalize: bool = False
    n_rounds: int = 300
    n_candidates: int | str = 255
    learning_rate: float = 1.0
    falling: bool = False


@named_ranker
class RankBoost(RuleParameters):
    """RankBoost: rules of one feature and a threshold, boosted on misordered pairs.

    Exponential loss on pairs with a sum of rules. Each rule [x > theta] with weighted agreement r
    with the pairs has the weight 1/2 ln((1 + r) / (1 - r)) (`freund2003rankboost`). Missing values
    satisfy no rule.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankBoost(n_rounds=50).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "pair_exp"


@named_ranker
class FRank(RuleParameters):
    """FRank: rules of one feature and a threshold with the fidelity loss on pairs.

    The loss of a pair is at most 1, so that pairs that cannot be ordered do not dominate
    (`tsai2007frank`). Missing values satisfy no rule.

    Parameters
    ----------
    confidence : float
        Target probability, above 1/2 and at most 1, that the better document of a pair is ranked
        first.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.FRank(n_rounds=50).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "fidelity"

    confidence: float = 1.0
    n_rounds: int = 200
    learning_rate: float = 0.3


@parameter_group
class MetricRanker(MetricParameters, MissingParameters, StoppingParameters):
    """Base of AdaRank, Coordinate Ascent and RankGP, whose models optimise ``metric``.

    A metric has no weights of documents, so ``sample_weight`` can only exclude documents. Queries
    can have any weight.
    """

    def make_loss(self) -> Loss:
        """Refuse: there is none."""
        raise IncompatibleError(
            f"{self.name} optimises a metric and has no loss; use a ranker that minimises one, "
            "such as gbdt or lambdamart."
        )

    def build(self) -> FitParts:
        """Return the metric, which replaces the loss, and the model; there is no solver."""
        model = self.make_model()
        if not getattr(model, "optimises_metric", False):
            raise IncompatibleError(
                f"{self.name} optimises a metric, which model '{part_name('models', model)}' does "
                "not; leave model out, or use a ranker that minimises a loss, such as lambdamart."
            )
        return FitParts(metric(self.metric, convention=self.convention), model, None)

    def _rounds(self, parts: FitParts, inputs: FitData, resume: Resume) -> Iterator[Round]:
        """Return the rounds of ``model``; raise for weights of documents."""
        weight = inputs.data.sample_weight
        if weight is not None and np.ptp(weight) > 0.0:
            raise UsageError(
                f"{self.name} optimises a metric, which has no weights of documents: give weights "
                "of queries (query_weight), or documents the weights 0 and 1 to leave some out."
            )
        return super()._rounds(parts, inputs, resume)


@named_ranker
class AdaRank(MetricRanker):
    """AdaRank: a sum of features, each chosen for the queries that the current sum ranks badly.

    The defaults are RankLib's rules, which prevent a strong feature from ending the run. For the
    published algorithm (`xu2007adarank`) use ``weights="total", enqueue=False, tol=None,
    max_selections=None``. Queries can have weights; documents cannot, except that documents of
    weight 0 are excluded.

    Parameters
    ----------
    n_rounds : int
        Maximum number of features to add.
    weights : {"running", "total"}
        Weight queries by all rankings up to this iteration, or only by the current one as
        published.
    enqueue : bool
        Set a feature aside if it is chosen twice in a row.
    tol : float or None
        Stop when the mean metric decreases by more than this in an iteration. None never stops.
    max_selections : int or None
        Maximum number of times in a row that a feature can be chosen without effect. None sets no
        limit.
    falling : bool
        Also use features with a negative sign. RankLib does not.
    scale : bool
        Divide features by their standard deviation before they are added.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.AdaRank(metric="map").fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class = "feature_sum"

    n_rounds: int = 500
    weights: str = "running"
    enqueue: bool = True
    tol: float | None = 2e-3
    max_selections: int | None = 5
    falling: bool = False
    scale: bool = False


@named_ranker
class CoordinateAscent(MetricRanker):
    """Coordinate Ascent: maximise the metric over one weight at a time.

    For sums over the first ranks, such as ndcg@10, the maximum along a feature is exact, from all
    changes of the ranking; for other metrics it is found by steps (`metzler2007linear`). RankLib's
    method is ``steps="ranklib", scale=False``; its flags are ``n_restarts`` (-r), ``n_steps`` (-i),
    ``tol`` (-tolerance) and ``reg`` (-reg).

    Parameters
    ----------
    n_restarts : int
        Number of runs, each with a different order of the features.
    n_passes : int
        Maximum number of passes over the features per run.
    tol : float
        Stop a run after a pass that improves the metric by less than this.
    reg : float
        Penalty on the distance from the initial weights, both normalised; 0 for none.
    steps : {"auto", "exact", "ranklib"}
        Search along a feature: all changes of the ranking, or steps that double, up, down, then to
        0. "auto" is exact for metrics of the first 32 ranks or fewer, on average over documents. A
        metric that is not a sum over ranks, such as map, mrr or err, always uses steps.
    n_steps : int
        Number of steps in each direction.
    scale : bool
        Start with weights that are equal for features of unit standard deviation.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.CoordinateAscent(n_restarts=1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name = "coordinate_ascent"
    model_class = "coordinate_ascent"

    n_restarts: int = 3
    n_passes: int = 25
    tol: float = 1e-3
    reg: float = 0.0
    steps: str = "auto"
    n_steps: int = 25
    scale: bool = True


@named_ranker
class RankGP(MetricRanker):
    """RankGP: a short formula over features, found by genetic programming.

    The best formulas of each generation are combined and mutated. The best one on the validation
    set is simplified and returned (`yeh2007rankgp`); ``rankwright inspect`` prints it.

    Parameters
    ----------
    population : int
        Number of formulas in a generation.
    n_generations : int
        Number of generations, including the first.
    tournament : int
        Number of formulas sampled for each selection of a parent. More increase the selection
        pressure.
    crossover : float
        Fraction of children with two parents. The others are mutated copies of one.
    elites : int
        Number of best formulas that are copied unchanged to the next generation.
    parsimony : float
        Penalty per node of a formula in the selection of parents.
    max_nodes : int
        Maximum number of nodes of a formula.
    max_depth : int
        Maximum number of operations on a path of the formula.
    max_features : int
        Maximum number of features in the formula.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankGP(n_generations=5).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class = "expression"

    population: int = 400
    n_generations: int = 30
    tournament: int = 7
    crossover: float = 0.6
    elites: int = 2
    parsimony: float = 1e-4
    max_nodes: int = 31
    max_depth: int = 8
    max_features: int = 10

    @property
    def formula_(self) -> str:
        """The formula, with the names of the features."""
        return text(self._attribute("formula", "formula"), getattr(self, "feature_names_in_", None))
