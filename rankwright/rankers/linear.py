"""Rankers whose default model is linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from rankwright.core.parameters import params_of, with_params
from rankwright.core.types import AnyArray, FittedModel, Loss, Round
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.rankers.base import Ranker
from rankwright.rankers.fitting import last_model
from rankwright.rankers.search_space import Choice, Log
from rankwright.rankers.search_space import Domain as SearchDomain
from rankwright.rankers.selection import Selection

_HELD = 1e6  # a C_r at which the targets are those of the grades
VARIANTS = ("base", "multi", "margin")


class MEMR(Ranker):
    """MEMR: margin equipped monotone retargeting.

    Scores may be any that order the grades with a margin; those nearest to what the model can say
    are its targets (`acharyya2014memr`). As fast as a least squares fit, or nearly. The default l2
    is 1, since the loss is a sum over the documents of a query. Parameters that are not here
    (``within_grade``, ``floor``, ``intercept``) are those of `rankwright.losses.Retarget`. With
    ``model="kernel"`` l2 is 0.01 (validation parts of OHSUMED and MQ2008: .450 and .506, where 1e-3
    has .429, .507).

    Parameters
    ----------
    divergence : {"square", "kl"}, default "square"
        Bregman divergence between targets and scores: half the squared distance, or
        Kullback-Leibler.
    domain : {"simplex", "cone"}, default "simplex"
        Where the targets of KL lie: among distributions, or among positive numbers. On the cone
        all targets and scores can sink together, so it needs ``C_r`` or ``C_w`` above 0, or
        ``kl_margin="additive"``; ``margin="large"`` needs ``C_r``.
    margin : {"grade", "none", "constant", "sqrt", "power", "large"}, default "grade"
        What separates neighbours of different grade: the difference of the grades' targets, 0, a
        constant, size / sqrt(rank), size / rank^power; or "large", a reward for what does.
    size : float, default 1.0
        Factor of the margins, and of the rewards of margin "large".
    power : float, default 1.0
        Power of the rank in margin "power".
    kl_margin : {"ratio", "additive", "surrogate"}, default "ratio"
        Under KL, margins between log r, between r, or between log r by the paper's Propositions 2
        and 3, whose solution is not the nearest one, so that the gradient is that of no value.
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target of a grade, for margins and ``C_r``: "linear" is the grade, "gain" is 2^grade - 1, a
        tuple has a value per grade.
    C_r : float, default 0.0
        Pull of the targets toward those of the grades.
    C_w : float, default 0.0
        Pull of the scores toward 0, or toward their mean where their level is free.
    query_weight_exponent : float, default 0.0
        The loss of a query of n documents is multiplied by n^-exponent; 1 as printed.
    l2 : float or "auto", default 1.0
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "tron"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.MEMR(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "retarget"
    model_class: ClassVar[str | None] = "linear"
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {"kernel": {"l2": 0.01}}

    def __init__(
        self,
        *,
        divergence: str = "square",
        domain: str = "simplex",
        margin: str = "grade",
        size: float = 1.0,
        power: float = 1.0,
        kl_margin: str = "ratio",
        targets: str | tuple[float, ...] = "linear",
        C_r: float = 0.0,
        C_w: float = 0.0,
        query_weight_exponent: float = 0.0,
        l2: float | str = 1.0,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "tron",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.divergence = divergence
        self.domain = domain
        self.margin = margin
        self.size = size
        self.power = power
        self.kl_margin = kl_margin
        self.targets = targets
        self.C_r = C_r
        self.C_w = C_w
        self.query_weight_exponent = query_weight_exponent
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class MR(Ranker):
    """MR: monotone retargeting without margins, targets and weights fitted in turns.

    The baseline of `acharyya2014memr`. ``C_r`` holds the targets to those of the grades.

    ``C_r=0`` is the paper's (3) as it stands. Equal scores, of weights of 0, have a loss of 0 then
    and are a solution; targets on the simplex (KL) and an intercept for each query, both of which
    (3) has, do not exclude it. What ranks is the way there: the first targets are those of the
    grades, from which turns lead toward 0, and l2 chosen on the validation set decides how far. A
    run from weights of 0 would stay there; over partitions, give a fitted ``init_model``. ``memr``
    has margins in place of all this.

    Parameters
    ----------
    divergence : {"square", "kl"}, default "square"
        Bregman divergence between targets and scores: half the squared distance, or
        Kullback-Leibler.
    domain : {"simplex", "cone"}, default "simplex"
        Where the targets of KL lie: among distributions, or among positive numbers. On the cone
        all targets and scores can sink together, so it needs ``C_r`` or ``C_w`` above 0, or
        ``kl_margin="additive"``; ``margin="large"`` needs ``C_r``.
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target of a grade, toward which ``C_r`` pulls: "linear" is the grade, "gain" is 2^grade - 1,
        a tuple has a value per grade.
    C_r : float, default 1.0
        Pull of the targets toward those of the grades.
    C_w : float, default 0.0
        Pull of the scores toward 0, or toward their mean where their level is free.
    query_weight_exponent : float, default 0.0
        The loss of a query of n documents is multiplied by n^-exponent; 1 as printed.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "alternating"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.MR(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "retarget"
    model_class: ClassVar[str | None] = "linear"
    fixed: ClassVar[dict[str, Any]] = {"margin": "none"}
    search_space: ClassVar[dict[str, SearchDomain | None]] = {"C_r": Log(0.01, 100.0)}

    def __init__(
        self,
        *,
        divergence: str = "square",
        domain: str = "simplex",
        targets: str | tuple[float, ...] = "linear",
        C_r: float = 1.0,
        C_w: float = 0.0,
        query_weight_exponent: float = 0.0,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "alternating",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.divergence = divergence
        self.domain = domain
        self.targets = targets
        self.C_r = C_r
        self.C_w = C_w
        self.query_weight_exponent = query_weight_exponent
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit_model(
        self, model: Any, data: RankingData, callback: Selection, start: FittedModel | None
    ) -> FittedModel:
        of_weights = getattr(model, "takes_solver", False)
        if start is None and self.C_r == 0.0 and of_weights:
            start = self._from_the_grades(model, data)
        return super()._fit_model(model, data, callback, start)

    def _rounds(
        self,
        model: Any,
        data: RankingData,
        valid: RankingData | None,
        *,
        start: FittedModel | None,
        resume: Mapping[str, AnyArray] | None,
    ) -> Iterator[Round]:
        if start is None and self.C_r == 0.0 and getattr(model, "takes_solver", False):
            start = self._from_the_grades(model, data)
        return super()._rounds(model, data, valid, start=start, resume=resume)

    def _from_the_grades(self, model: Any, data: RankingData) -> FittedModel:
        """Return the model whose scores come nearest to the targets of the grades."""
        loss: Any = self.make_loss()
        l2 = params_of(model).get("l2")
        model = with_params(model, {"l2": 1.0} if l2 == "auto" else {})
        loss = replace(loss, C_r=_HELD)
        if hasattr(model, "rounds"):
            return last_model(model.rounds(loss, data, solver="lbfgs", n_jobs=self.n_jobs))
        quiet = Selection(metric=self.metric, convention=self.convention, train=data, valid=None)
        fitted: FittedModel = model.fit(
            loss, data, callback=quiet, solver="lbfgs", n_jobs=self.n_jobs
        )
        return fitted


class NDCGGLM(Ranker):
    """NDCG-consistent GLM: regression on gains over the ideal DCG, square or KL.

    The pointwise losses of `ravikumar2011ndcg`.

    Parameters
    ----------
    divergence : {"square", "kl"}, default "square"
        Squared error between gains over the ideal DCG and the scores, up to a constant per query,
        or cross entropy against the shares of gain.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "tron"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.NDCGGLM().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name: ClassVar[str] = "ndcg_glm"
    loss_class: ClassVar[str | None] = "ndcg_glm"
    model_class: ClassVar[str | None] = "linear"
    search_space: ClassVar[dict[str, SearchDomain | None]] = {"divergence": Choice("square", "kl")}

    def __init__(
        self,
        *,
        divergence: str = "square",
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "tron",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.divergence = divergence
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class RankSVM(Ranker):
    """RankSVM: a linear ranker with a squared hinge on every pair of different grade.

    Each better document is to lead each worse one of its query by a margin (`joachims2002ranksvm`);
    pairs are summed by sorting and never listed. The sum C over pairs of other tools is l2 = 1 / (C
    x queries) with ``pairs="uniform"`` and ``scale=False``. A pair of grades less than 1 apart, as
    of relevance estimated from clicks, counts as much as they differ.

    With ``model="kernel"`` l2 is 10: on the validation parts of OHSUMED and MQ2008 (mean NDCG@10 of
    five folds) .454 and .496, where 1e-3 has .372 and .493, and gamma = 1/features .356 and .469.

    Parameters
    ----------
    form : {"squared", "hinge"}, default "squared"
        What a missing part of the margin costs: its square, which is smooth, or itself, which
        solver bundle minimises.
    margin : float, default 1.0
        By how much a better document is to lead.
    pairs : {"uniform", "query", "ir"}, default "uniform"
        Weight of a pair: 1; such that the pairs of each query sum to 1; or IR-SVM's, by query and
        by what NDCG would lose.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "tron"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.RankSVM(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "pair_hinge"
    model_class: ClassVar[str | None] = "linear"
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {"kernel": {"l2": 10.0}}
    search_space: ClassVar[dict[str, SearchDomain | None]] = {"pairs": Choice("uniform", "query")}

    def __init__(
        self,
        *,
        form: str = "squared",
        margin: float = 1.0,
        pairs: str = "uniform",
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "tron",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.form = form
        self.margin = margin
        self.pairs = pairs
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class IRSVM(Ranker):
    """IR-SVM: RankSVM with pairs weighted by their query and by what NDCG would lose.

    Queries of many pairs do not outweigh the others, and a pair of grades counts by what trading
    places costs in the ideal list (`cao2006irsvm`).

    Parameters
    ----------
    form : {"squared", "hinge"}, default "squared"
        What a missing part of the margin costs: its square, which is smooth, or itself, which
        solver bundle minimises.
    margin : float, default 1.0
        By how much a better document is to lead.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "tron"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.IRSVM(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "pair_hinge"
    model_class: ClassVar[str | None] = "linear"
    fixed: ClassVar[dict[str, Any]] = {"pairs": "ir"}
    model_defaults: ClassVar[dict[str, dict[str, Any]]] = {"kernel": {"l2": 10.0}}

    def __init__(
        self,
        *,
        form: str = "squared",
        margin: float = 1.0,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "tron",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.form = form
        self.margin = margin
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class ListNet(Ranker):
    """ListNet: cross entropy between the softmax of the grades and that of the scores.

    Compares the probabilities of being ranked first under grades and under scores
    (`cao2007listnet`). The loss by itself is `rankwright.losses.ListNet`.

    Parameters
    ----------
    target : {"softmax", "gain"}, default "softmax"
        Target distribution: softmax of the grades, or 2^grade - 1 over the ideal DCG.
    k : int, default 1
        Number of first ranks whose probabilities are compared; above 1 only with
        ``target="softmax"``.
    samples : int, default 0
        For k above 1, orders of the first k documents sampled in each iteration; 0 visits all of
        them.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "lbfgs"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.ListNet().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "listnet"
    model_class: ClassVar[str | None] = "linear"
    search_space: ClassVar[dict[str, SearchDomain | None]] = {"target": Choice("softmax", "gain")}

    def __init__(
        self,
        *,
        target: str = "softmax",
        k: int = 1,
        samples: int = 0,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "lbfgs",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.target = target
        self.k = k
        self.samples = samples
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class ListMLE(Ranker):
    """ListMLE: the likelihood of the graded order under a Plackett-Luce model.

    Documents of one grade share their place (Breslow ties); `xia2008listmle`.

    Parameters
    ----------
    calibration : float, default 0.0
        Weight of the squared error of the scores to the targets, which fixes the level of the
        scores; 0 leaves it free.
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target score of a grade, used by the calibration alone: "linear" is the grade, "gain" is
        2^grade - 1, a tuple has a value per grade.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "lbfgs"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.ListMLE().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "listmle"
    model_class: ClassVar[str | None] = "linear"

    def __init__(
        self,
        *,
        calibration: float = 0.0,
        targets: str | tuple[float, ...] = "linear",
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "lbfgs",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.calibration = calibration
        self.targets = targets
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class RankCosine(Ranker):
    """RankCosine: the angle between the scores of a query and the targets of its grades.

    Every query has a loss from 0 to 1, so that long lists do not outweigh short ones
    (`qin2008rankcosine`). ``centred=True`` compares deviations from the means instead: .436 and
    .502 mean NDCG@10 on the validation parts of OHSUMED and MQ2008, where the published form has
    .440 and .501. Not convex: a linear model ends in a minimum near where it began.

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target score of a grade: "linear" is the grade, "gain" is 2^grade - 1, a tuple has a value
        per grade.
    centred : bool, default False
        Leave the level of each query's scores free: the cosine is then their correlation with the
        targets. False is as published.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "lbfgs"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.RankCosine().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "rank_cosine"
    model_class: ClassVar[str | None] = "linear"

    def __init__(
        self,
        *,
        targets: str | tuple[float, ...] = "linear",
        centred: bool = False,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "lbfgs",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.targets = targets
        self.centred = centred
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class Classification(Ranker):
    """Classification: multinomial logistic regression, ranked by the expected grade.

    The pointwise family (`li2007mcrank`): each grade is a class, whatever the query, and a document
    scores sum over grades of probability x grade. ``model_.probabilities`` gives the probabilities.
    l2 was chosen on the validation parts of OHSUMED and MQ2008.

    Parameters
    ----------
    l2 : float or "auto", default 30.0
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "lbfgs"
        What minimises: lbfgs or tron; None is lbfgs.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is multinomial logistic regression, with the parameters
        given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.Classification().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class: ClassVar[str | None] = "classifier"

    def __init__(
        self,
        *,
        l2: float | str = 30.0,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "lbfgs",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def make_loss(self) -> Loss:
        """Return the cross entropy over the grades of a document."""
        from rankwright.losses.listnet import ListNet as CrossEntropy

        return CrossEntropy(target="gain")


class LinearRegression(Ranker):
    """Linear regression: the line through the grades, in closed form.

    The plainest baseline. An intercept is fitted and left out of the scores, since it changes no
    ranking. RankLib's linear regression is the same but for a slip: it leaves the last feature out
    and takes the intercept for its weight. RankLib's -L2, which is not divided by the number of
    queries, is 1e-10 by default: next to none.

    Parameters
    ----------
    targets : {"linear", "gain"} or tuple of float, default "linear"
        Target score of a grade: "linear" is the grade, "gain" is 2^grade - 1, a tuple has a value
        per grade.
    l2 : float or "auto", default 30.0
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is least squares, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
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
    >>> ranker = rw.LinearRegression().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name: ClassVar[str] = "linear_regression"
    loss_class: ClassVar[str | None] = "squared"
    model_class: ClassVar[str | None] = "least_squares"

    def __init__(
        self,
        *,
        targets: str | tuple[float, ...] = "linear",
        l2: float | str = 30.0,
        scale: bool = True,
        missing: str | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.targets = targets
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.model = model
        self.metric = metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class Domination(Ranker):
    """Domination rank: few weights that put good documents above all they dominate.

    For few good documents among many, sparse features and small models: coordinate descent with an
    l1 penalty leaves most weights at exactly 0 (`stevens2010domination`).

    Parameters
    ----------
    variant : {"multi", "base", "margin"}, default "multi"
        Which documents dominate which: each all of lower grade; good ones, of grade 1 and up, all
        others ("base"); or each all of lower grade, by a lead of ``margin_scale`` times the
        difference of the grades ("margin").
    margin : {"linear", "gain"}, tuple of float or None, default None
        Lead that is asked for, times ``margin_scale``: the difference of the grades, of 2^grade -
        1, or of a value per grade. None asks for no lead, or with variant "margin" for "linear".
    margin_scale : float, default 1.0
        Factor of the margin, where there is one.
    tiers : tuple of float or None, default None
        Increasing thresholds that sort grades into tiers, a grade at a threshold into the upper
        one; documents dominate those of lower tiers. None makes each grade a tier of its own, or
        with variant "base" divides at grade 1.
    l1 : float or "auto", default 1e-3
        Penalty on absolute weights, which makes most of them 0, for solver coordinate; "auto" tries
        twenty, from the least that makes all weights 0 down to a thousandth of it, and keeps the
        best on the validation set.
    l2 : float or "auto", default 0.0
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default False
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "coordinate"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default "auto"
        Tolerance at which the solver stops; "auto" is the default of the solver.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is a linear model, with the parameters given here.
    metric : str, Metric or callable, default "ndcg@10"
        Metric that selects what is "auto" on the validation set.
    convention : str, default "standard"
        How metrics are computed: one of ``rankwright list conventions``.
    early_stopping_rounds : int or None, default None
        Stop a path of penalties after this many without a better value on the validation set.
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
    >>> ranker = rw.Domination(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "domination"
    model_class: ClassVar[str | None] = "linear"
    search_space: ClassVar[dict[str, SearchDomain | None]] = {
        "variant": Choice(*VARIANTS),
        "l1": Log(1e-5, 0.1),
        "l2": None,
    }

    def __init__(
        self,
        *,
        variant: str = "multi",
        margin: str | tuple[float, ...] | None = None,
        margin_scale: float = 1.0,
        tiers: tuple[float, ...] | None = None,
        l1: float | str = 1e-3,
        l2: float | str = 0.0,
        scale: bool = False,
        missing: str | None = None,
        solver: Any = "coordinate",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.variant = variant
        self.margin = margin
        self.margin_scale = margin_scale
        self.tiers = tiers
        self.l1 = l1
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def sparsity_(self) -> list[dict[str, float]]:
        """How many weights each penalty that was tried keeps, and its metric on both data sets.

        A list of l1, l2, kept, zero_share and the metrics, as they were tried; the chosen one is
        number ``best_iteration_``, counted from 1.
        """
        path = self._part("path", "linear")
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
        if self.variant not in VARIANTS:
            raise UsageError(
                f"domination's variant must be base, multi or margin, not '{self.variant}'."
            )
        made: Any = super().make_loss()
        if self.variant == "base" and made.tiers is None:
            made = replace(made, tiers=(1.0,))
        elif self.variant == "margin" and made.margin is None:
            made = replace(made, margin="linear")
        loss: Loss = made
        return loss


class PAMIR(Ranker):
    """PAMIR: passive-aggressive steps on sampled pairs of documents.

    Each step costs the non-zeros of two rows, whatever the size of the data: made for large, sparse
    sets (`grangier2008pamir`). ``partial_fit`` goes on with more data, or more steps.

    Parameters
    ----------
    C : float, default 0.1
        The longest step.
    n_steps : int, default 100000
        Pairs sampled, in ten rounds of which the best on the validation set is kept.
    averaging : bool, default True
        Keep the mean of the weights over all steps; False keeps the last.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is passive-aggressive steps, with the parameters given
        here.
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
    >>> ranker = rw.PAMIR(n_steps=1000).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class: ClassVar[str | None] = "passive_aggressive"

    def __init__(
        self,
        *,
        C: float = 0.1,
        n_steps: int = 100000,
        averaging: bool = True,
        missing: str | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.n_steps = n_steps
        self.averaging = averaging
        self.missing = missing
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def make_loss(self) -> Loss:
        """Return the mean hinge over pairs, which says how far the steps have come."""
        from rankwright.losses.pair_hinge import PairHinge

        return PairHinge(form="hinge", pairs="query")

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on with ``n_steps`` pairs of more data: ``partial_fit(X, y, *, qid, ...)``."""
        return self._go_on


class PRank(Ranker):
    """PRank: a perceptron whose score is cut into grades by thresholds.

    It corrects itself at each mistake, a document at a time (`crammer2002prank`). The published
    steps are ``threshold_step=1, by_query=False``; the defaults rank better where documents have
    many features and queries differ in how many are relevant.

    Parameters
    ----------
    n_passes : int, default 10
        Passes over the data; the best on the validation set is kept.
    averaging : bool, default True
        Keep the mean of the weights over all steps; False keeps the last.
    threshold_step : float or "auto", default "auto"
        How far a mistake moves a threshold; "auto": by the mean squared length of a document, as
        far as a mistake moves its score on average. 1 is as published.
    by_query : bool, default True
        Visit documents query after query; False: all in one order.
    scale : bool, default True
        Take steps as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    model : model, str or None, default None
        Replaces the default model: an object such as ``models.Linear(l2=1)``, or a name of
        ``rankwright list models``. None is the perceptron, with the parameters given here.
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
    >>> ranker = rw.PRank().fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    model_class: ClassVar[str | None] = "prank"

    def __init__(
        self,
        *,
        n_passes: int = 10,
        averaging: bool = True,
        threshold_step: float | str = "auto",
        by_query: bool = True,
        scale: bool = True,
        missing: str | None = None,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        early_stopping_rounds: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_passes = n_passes
        self.averaging = averaging
        self.threshold_step = threshold_step
        self.by_query = by_query
        self.scale = scale
        self.missing = missing
        self.model = model
        self.metric = metric
        self.convention = convention
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def make_loss(self) -> Loss:
        """Return the smooth hinge against thresholds, which is reported after each pass."""
        from rankwright.losses.all_threshold import AllThreshold

        return AllThreshold()
