"""Rankers with a linear model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

from rankwright.core.parameters import params_of, with_params
from rankwright.core.types import FittedModel, Loss, Round
from rankwright.rankers.base import Rounds
from rankwright.rankers.checkpointing import Resume
from rankwright.rankers.fitting import last_model
from rankwright.rankers.parameters import (
    LinearParameters,
    MissingParameters,
    StoppingParameters,
    named_ranker,
)
from rankwright.rankers.preparation import FitData, FitParts

_FIXED_TARGETS = 1e6  # C_r for which all targets are the targets of the grades
Variant = Literal["base", "multi", "margin"]


@named_ranker
class MEMR(LinearParameters):
    """MEMR: margin equipped monotone retargeting.

    The targets of a query are the values closest to its scores that order the grades with a margin;
    weights and targets are fitted together (`acharyya2014memr`). A fit takes about as long as one
    of least squares. The default l2 is 1, because the loss is a sum over the documents of a query.
    `rankwright.losses.Retarget` has further parameters (``within_grade``, ``floor``,
    ``intercept``). With ``model="kernel"``, l2 is 0.01 (NDCG@10 on the validation parts of OHSUMED
    and MQ2008: .450 and .506; with 1e-3 it is .429 and .507).

    Parameters
    ----------
    divergence : {"square", "kl"}
        Bregman divergence between targets and scores: half the squared distance, or
        Kullback-Leibler.
    domain : {"simplex", "cone"}
        Domain of the targets under KL: probability distributions or positive numbers. On the cone
        all targets and scores can decrease together, so it needs ``C_r`` or ``C_w`` above 0, or
        ``kl_margin="additive"``; ``margin="large"`` needs ``C_r``.
    margin : {"grade", "none", "constant", "sqrt", "power", "large"}
        Margin between neighbours of different grade: the difference of the grades' targets, 0, a
        constant, size / sqrt(rank), or size / rank^power. "large" rewards separation instead.
    size : float
        Factor of the margins, and of the rewards of margin "large".
    power : float
        Power of the rank in margin "power".
    kl_margin : {"ratio", "additive", "surrogate"}
        Margins under KL: between log r, between r, or between log r by Propositions 2 and 3 of the
        paper. Their solution is not the nearest one, so the gradient of "surrogate" is not the
        gradient of any function.
    targets : {"linear", "gain"} or tuple of float
        Target of a grade, for margins and ``C_r``: the grade, 2^grade - 1, or a value per grade.
    C_r : float
        Penalty on the distance of the targets from the targets of the grades.
    C_w : float
        Penalty on the scores, or on their deviation from the mean if their level is free.
    query_weight_exponent : float
        The loss of a query of n documents is multiplied by n^-exponent. 1 is as published.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.MEMR(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "retarget"
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {"kernel": {"l2": 0.01}}

    divergence: str = "square"
    domain: str = "simplex"
    margin: str = "grade"
    size: float = 1.0
    power: float = 1.0
    kl_margin: str = "ratio"
    targets: str | tuple[float, ...] = "linear"
    C_r: float = 0.0
    C_w: float = 0.0
    query_weight_exponent: float = 0.0
    l2: float | str = 1.0
    solver: Any = "tron"


@named_ranker
class MR(LinearParameters):
    """MR: monotone retargeting without margins; targets and weights are fitted in turns.

    The baseline of `acharyya2014memr`.

    ``C_r=0`` is the paper's (3) as published. Weights of 0 give equal scores and a loss of 0, and
    are therefore a solution; neither targets on the simplex (KL) nor an intercept per query, which
    (3) has, excludes it. The result depends on the path: the first targets are the targets of the
    grades, the turns then move towards 0, and l2, chosen on the validation set, determines how far.
    A run from weights of 0 would not move; on partitions, give a fitted ``init_model``. ``memr``
    uses margins instead.

    Parameters
    ----------
    divergence : {"square", "kl"}
        Bregman divergence between targets and scores: half the squared distance, or
        Kullback-Leibler.
    domain : {"simplex", "cone"}
        Domain of the targets under KL: probability distributions or positive numbers. On the cone
        all targets and scores can decrease together, so it needs ``C_r`` or ``C_w`` above 0.
    targets : {"linear", "gain"} or tuple of float
        Target of a grade for ``C_r``: the grade, 2^grade - 1, or a value per grade.
    C_r : float
        Penalty on the distance of the targets from the targets of the grades.
    C_w : float
        Penalty on the scores, or on their deviation from the mean if their level is free.
    query_weight_exponent : float
        The loss of a query of n documents is multiplied by n^-exponent. 1 is as published.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.MR(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "retarget"
    fixed: ClassVar[dict[str, Any]] = {"margin": "none"}
    search_space = {"C_r": (0.01, 100.0, "log")}

    divergence: str = "square"
    domain: str = "simplex"
    targets: str | tuple[float, ...] = "linear"
    C_r: float = 1.0
    C_w: float = 0.0
    query_weight_exponent: float = 0.0
    solver: Any = "alternating"

    def _rounds(self, parts: FitParts, inputs: FitData, resume: Resume) -> Iterator[Round]:
        """Return the rounds of ``model``; without C_r, from the targets of the grades."""
        if inputs.start is None and self.C_r == 0.0 and getattr(parts.model, "takes_solver", False):
            start = _from_the_grades(parts.loss, parts.model, inputs.data, self.n_jobs)
            inputs = replace(inputs, start=start)
        return super()._rounds(parts, inputs, resume)


def _from_the_grades(loss: Any, model: Any, data: Any, n_jobs: int | None) -> FittedModel:
    """Return the model whose scores are nearest to the targets of the grades."""
    l2 = params_of(model).get("l2")
    model = with_params(model, {"l2": 1.0} if l2 == "auto" else {})
    loss = replace(loss, C_r=_FIXED_TARGETS)
    return last_model(model.rounds(loss, data, solver="lbfgs", n_jobs=n_jobs))


@named_ranker
class NDCGGLM(LinearParameters):
    """NDCG-consistent GLM: regression on gains divided by the ideal DCG.

    The pointwise losses of `ravikumar2011ndcg`.

    Parameters
    ----------
    divergence : {"square", "kl"}
        Squared error between the normalised gains and the scores, up to a constant per query, or
        cross entropy with the shares of the gain.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.NDCGGLM().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name = "ndcg_glm"
    loss_class = "ndcg_glm"
    search_space = {"divergence": ["square", "kl"]}

    divergence: str = "square"
    solver: Any = "tron"


@named_ranker
class RankSVM(LinearParameters):
    """RankSVM: linear model with a squared hinge loss on each pair of different grade.

    Each better document must have a higher score than each worse document of the query, by a margin
    (`joachims2002ranksvm`). Pairs are summed by sorting and never listed. The sum C over pairs of
    other tools is l2 = 1 / (C x queries) with ``pairs="uniform"`` and ``scale=False``. A pair of
    grades less than 1 apart, such as relevance estimated from clicks, is weighted by the difference
    of the grades.

    With ``model="kernel"``, l2 is 10 (mean NDCG@10 of five folds on the validation parts of OHSUMED
    and MQ2008: .454 and .496; with 1e-3 it is .372 and .493; with gamma = 1/features .356 and
    .469).

    Parameters
    ----------
    form : {"squared", "hinge"}
        Squared hinge, which is smooth, or hinge, for solver bundle.
    margin : float
        Margin between the scores of a pair.
    pairs : {"uniform", "query", "ir"}
        Weight of a pair: 1; such that the pairs of each query sum to 1; or IR-SVM's, by query and
        by the NDCG loss of the pair.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankSVM(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "pair_hinge"
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {"kernel": {"l2": 10.0}}
    search_space = {"pairs": ["uniform", "query"]}

    form: str = "squared"
    margin: float = 1.0
    pairs: str = "uniform"
    solver: Any = "tron"


@named_ranker
class IRSVM(LinearParameters):
    """IR-SVM: RankSVM with pairs weighted by their query and by NDCG.

    Queries with many pairs do not outweigh others, and the weight of two grades is the loss of NDCG
    when they are swapped in the ideal list (`cao2006irsvm`).

    Parameters
    ----------
    form : {"squared", "hinge"}
        Squared hinge, which is smooth, or hinge, for solver bundle.
    margin : float
        Margin between the scores of a pair.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.IRSVM(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "pair_hinge"
    fixed: ClassVar[dict[str, Any]] = {"pairs": "ir"}
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {"kernel": {"l2": 10.0}}

    form: str = "squared"
    margin: float = 1.0
    solver: Any = "tron"


@named_ranker
class ListNet(LinearParameters):
    """ListNet: cross entropy between the softmax of the grades and the softmax of the scores.

    Compares the probabilities of each document to be ranked first (`cao2007listnet`). The loss is
    `rankwright.losses.ListNet`.

    Parameters
    ----------
    target : {"softmax", "gain"}
        Target distribution: softmax of the grades, or 2^grade - 1 divided by its sum.
    k : int
        Number of first ranks with probabilities that are compared. Values above 1 need
        ``target="softmax"``.
    samples : int
        For k above 1, number of orders of the first k documents to sample in each iteration. 0
        visits all of them.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.ListNet().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "listnet"
    search_space = {"target": ["softmax", "gain"]}

    target: str = "softmax"
    k: int = 1
    samples: int = 0
    solver: Any = "lbfgs"


@named_ranker
class ListMLE(LinearParameters):
    """ListMLE: likelihood of the graded order under a Plackett-Luce model.

    Ties of grades are treated as in Breslow's method (`xia2008listmle`).

    Parameters
    ----------
    calibration : float
        Weight of the squared error between scores and targets, which fixes the level of the scores.
        0 leaves it free.
    targets : {"linear", "gain"} or tuple of float
        Target score of a grade for ``calibration``: the grade, 2^grade - 1, or a value per grade.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.ListMLE().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "listmle"

    calibration: float = 0.0
    targets: str | tuple[float, ...] = "linear"
    solver: Any = "lbfgs"


@named_ranker
class RankCosine(LinearParameters):
    """RankCosine: cosine distance between the scores of a query and the targets of its grades.

    The loss of each query is between 0 and 1, so long lists do not outweigh short ones
    (`qin2008rankcosine`). ``centred=True`` subtracts the means first: mean NDCG@10 on the
    validation parts of OHSUMED and MQ2008 is .436 and .502, and .440 and .501 in the published
    form. The loss is not convex: a linear model ends in a minimum near its start.

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.
    centred : bool
        Leave the level of each query's scores free, so that the cosine is the correlation with the
        targets. False is as published.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.RankCosine().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "rank_cosine"

    targets: str | tuple[float, ...] = "linear"
    centred: bool = False
    solver: Any = "lbfgs"


@named_ranker
class Classification(LinearParameters):
    """Multinomial logistic regression, ranked by the expected grade.

    The pointwise family (`li2007mcrank`): each grade is a class, and the score of a document is the
    sum over grades of probability x grade. ``model_.probabilities`` returns the probabilities. l2
    was chosen on the validation parts of OHSUMED and MQ2008.

    Parameters
    ----------
    solver : solver, str or None
        lbfgs or tron. None uses lbfgs.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.Classification().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class = "classifier"

    l2: float | str = 30.0
    solver: Any = "lbfgs"

    def make_loss(self) -> Loss:
        """Return the cross entropy over the grades of a document."""
        from rankwright.losses.listnet import ListNet as CrossEntropy

        return CrossEntropy(target="gain")


@named_ranker
class LinearRegression(MissingParameters):
    """Linear regression on the grades, in closed form.

    The simplest baseline. The intercept is fitted but not part of the scores, because it changes no
    ranking. RankLib's linear regression is the same except for an error: it ignores the last
    feature and uses the intercept as its weight. RankLib's -L2, which is not divided by the number
    of queries, is 1e-10 by default.

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float
        Target score of a grade: the grade, 2^grade - 1, or a value per grade.
    l2 : float or "auto"
        Ridge penalty. "auto" tries 1000, 100, …, 1e-6 and selects the best on the validation set.
    scale : bool
        Apply the penalty as if all features had unit standard deviation.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.LinearRegression().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name = "linear_regression"
    loss_class = "squared"
    model_class = "least_squares"

    targets: str | tuple[float, ...] = "linear"
    l2: float | str = 30.0
    scale: bool = True


@named_ranker
class Domination(LinearParameters):
    """Domination rank: sparse weights that rank good documents above the documents they dominate.

    For data with few good documents, sparse features and small models: coordinate descent with an
    l1 penalty sets most weights to exactly 0 (`stevens2010domination`).

    Parameters
    ----------
    variant : {"multi", "base", "margin"}
        Definition of domination. "multi": a document dominates all documents of lower grade.
        "base": documents of grade 1 and above dominate all others. "margin": as "multi", by
        ``margin_scale`` times the difference of the grades.
    margin : {"linear", "gain"}, tuple of float or None
        Margin before multiplication by ``margin_scale``: the difference of the grades, of 2^grade -
        1, or of a value per grade. None is no margin, or "linear" with variant "margin".
    margin_scale : float
        Factor of the margin.
    tiers : tuple of float or None
        Increasing thresholds that divide grades into tiers; a grade equal to a threshold is in the
        upper tier. Documents dominate documents of lower tiers. None makes each grade a tier, or
        uses the threshold 1 with variant "base".
    l1 : float or "auto"
        Penalty on absolute weights, for solver coordinate. "auto" tries twenty values, from the
        smallest penalty that makes all weights 0 down to a thousandth of it, and selects the best
        on the validation set.
    early_stopping_rounds : int or None
        Stop the path of penalties after this many without improvement on the validation set. None
        tries all of them.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.Domination(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "domination"
    search_space = {"variant": ["base", "multi", "margin"], "l1": (1e-5, 0.1, "log"), "l2": None}

    variant: Variant = "multi"
    margin: str | tuple[float, ...] | None = None
    margin_scale: float = 1.0
    tiers: tuple[float, ...] | None = None
    l1: float | str = 1e-3
    l2: float | str = 0.0
    scale: bool = False
    solver: Any = "coordinate"
    early_stopping_rounds: Rounds = None

    @property
    def sparsity_(self) -> list[dict[str, float]]:
        """Number of nonzero weights and metrics of each penalty of the path.

        A list of dicts with l1, l2, kept, zero_share and the metrics, in the order of the path. The
        selected penalty is number ``best_iteration_``, counted from 1.
        """
        path = self._attribute("path", "linear")
        if path is None:
            raise AttributeError("only solver 'coordinate' leaves a path of penalties.")
        curves = {name: curve for name, curve in self.curve_.items() if name != "loss"}
        return [
            {
                "l1": float(l1),
                "l2": float(l2),
                "kept": int(kept),
                "zero_share": 1.0 - kept / self.n_features_in_,
                **{name: curve[number] for name, curve in curves.items()},
            }
            for number, (l1, l2, kept) in enumerate(path.tolist())
        ]

    def make_loss(self) -> Loss:
        """Return the loss of the chosen variant."""
        loss: Any = super().make_loss()
        if self.variant == "base" and loss.tiers is None:
            loss = replace(loss, tiers=(1.0,))
        elif self.variant == "margin" and loss.margin is None:
            loss = replace(loss, margin="linear")
        bindable: Loss = loss
        return bindable


@named_ranker
class PAMIR(MissingParameters, StoppingParameters):
    """PAMIR: passive-aggressive steps on sampled pairs of documents.

    The cost of a step is the number of nonzeros of two rows, so large, sparse sets are practical
    (`grangier2008pamir`).

    Parameters
    ----------
    C : float
        Maximum length of a step.
    n_steps : int
        Number of sampled pairs, in ten rounds. The best round on the validation set is selected.
    averaging : bool
        Use the mean of the weights over all steps. False uses the last weights.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.PAMIR(n_steps=1000).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class = "passive_aggressive"

    C: float = 0.1
    n_steps: int = 100000
    averaging: bool = True

    def make_loss(self) -> Loss:
        """Return the mean hinge over pairs, which the learning curve shows."""
        from rankwright.losses.pair_hinge import PairHinge

        return PairHinge(form="hinge", pairs="query")


@named_ranker
class PRank(MissingParameters, StoppingParameters):
    """PRank: perceptron with thresholds that divide the scores into grades.

    It makes a correction at each mistake, one document at a time (`crammer2002prank`). The
    published steps are ``threshold_step=1, by_query=False``. The defaults rank better for documents
    with many features and queries with different numbers of relevant documents.

    Parameters
    ----------
    n_passes : int
        Number of passes over the data. The best pass on the validation set is selected.
    averaging : bool
        Use the mean of the weights over all steps. False uses the last weights.
    threshold_step : float or "auto"
        Step of a threshold at a mistake. "auto" is the mean squared length of a document, the
        average step of a score. 1 is as published.
    by_query : bool
        Visit documents query by query. False visits them in one random order.
    scale : bool
        Take steps as if all features had unit standard deviation.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.PRank().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class = "prank"

    n_passes: int = 10
    averaging: bool = True
    threshold_step: float | str = "auto"
    by_query: bool = True
    scale: bool = True

    def make_loss(self) -> Loss:
        """Return the smooth hinge at thresholds, which the learning curve shows."""
        from rankwright.losses.all_threshold import AllThreshold

        return AllThreshold()
