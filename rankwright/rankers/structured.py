"""Support vector rankers whose loss is a maximum over orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rankwright.core.types import F64
from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Domain, Floats, Ints


class DORM(Ranker):
    """DORM: direct optimisation of a ranking metric, by a bound on what it loses.

    The metric is any sum over ranks (ndcg, dcg, p, wta, eru) or mrr (`le2007dorm`).

    The default solver visits query after query. ``solver="bundle"`` minimises the bound itself and
    says how far from the optimum it is, and ``solver="column_generation"`` (with ``ties="mean"`` or
    ``"file"``) is the published one; where relevant documents look much like others, as in OHSUMED,
    that optimum is at or near w = 0, where the bound is 1 and says nothing. The C of the paper is
    l2 = 1/(C x queries).

    Parameters
    ----------
    metric : str, Metric or callable, default "ndcg@10"
        Metric that is optimised, and selects on the validation set: ndcg, dcg, p, wta, eru or
        another sum over ranks, or mrr.
    decay : float, "log", "loglog" or "metric", default 1.0
        Weight of rank i, from 1, in the bound: (i + 1)^-decay; 1/log(i + 2) with "log" and
        1/log(log(i + 2)) with "loglog", which fall more slowly; or the discount of the metric with
        "metric".
    ties : {"score", "mean", "file"}, default "score"
        Order of documents of equal grade in the reference: by their current scores, which asks for
        none; the mean over all orders; or by row.
    per_group : int or None, default None
        Most documents of each group (host, topic) within the ranks that count; topics may overlap.
        None sets no limit.
    cost : callable or None, default None
        Cost of each document at each rank, in place of the metric's: takes the grades of a query,
        best first, and returns a matrix of documents by ranks.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "online"
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
    select_metric : str, Metric, callable or None, default None
        Metric that selects on the validation set; None is ``metric``.
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
    >>> ranker = rw.DORM(metric="ndcg@10").fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class: ClassVar[str | None] = "position_svm"
    model_class: ClassVar[str | None] = "linear"
    search_space: ClassVar[dict[str, Domain | None]] = {"decay": Floats(0.25, 3.0)}

    def __init__(
        self,
        *,
        metric: Any = "ndcg@10",
        decay: float | str = 1.0,
        ties: str = "score",
        per_group: int | None = None,
        cost: Callable[[F64], Any] | None = None,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "online",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        select_metric: Any = None,
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.decay = decay
        self.ties = ties
        self.per_group = per_group
        self.cost = cost
        self.l2 = l2
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.model = model
        self.select_metric = select_metric
        self.convention = convention
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class SVMROCArea(Ranker):
    """SVM for the area under the ROC curve: the mean hinge over pairs of a query.

    SVM-perf's ROCArea (`joachims2005svmperf`), a query at a time.

    Parameters
    ----------
    margin : float, default 1.0
        By how much a better document is to lead a worse one.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "bundle"
        What minimises the loss: an object such as ``solvers.TRON(tol=1e-6)`` or a name of
        ``rankwright list solvers``. None is one that suits the loss.
    max_iter : int or "auto", default "auto"
        Most iterations of the solver, for sgd and online passes over the data; "auto" is the
        default of the solver.
    tol : float or "auto", default 1e-8
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
    >>> ranker = rw.SVMROCArea(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name: ClassVar[str] = "svm_rocarea"
    loss_class: ClassVar[str | None] = "rocarea_svm"
    model_class: ClassVar[str | None] = "linear"

    def __init__(
        self,
        *,
        margin: float = 1.0,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "bundle",
        max_iter: int | str = "auto",
        tol: float | str = 1e-8,
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
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


class SVMPrecision(Ranker):
    """SVM for precision at n: a bound on what the first n ranks lose.

    SVM-perf's Prec@k (`joachims2005svmperf`), a query at a time. The default solver visits query
    after query; ``solver="bundle"`` minimises the bound itself, which where relevant documents look
    much like others has its optimum at w = 0 and ranks nothing.

    Parameters
    ----------
    n : int, default 15
        Ranks that count. The more, the more documents of a query are learnt from (on validation
        data, more than 10 help much on OHSUMED). A list of n documents or fewer, which has the same
        precision at n in any order, counts by the precision at its number of relevant documents.
    min_grade : float, default 1.0
        Lowest grade that counts as relevant.
    l2 : float or "auto", default 1e-3
        Ridge penalty; "auto" tries 1000, 100, …, 1e-6 and keeps the best on the validation set.
    scale : bool, default True
        Penalise weights as if all features had unit standard deviation.
    missing : {"mean", "zero"} or None, default None
        What stands for a missing value; None refuses them.
    solver : solver, str or None, default "online"
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
    >>> ranker = rw.SVMPrecision(n=5).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name: ClassVar[str] = "svm_precision"
    loss_class: ClassVar[str | None] = "precision_svm"
    model_class: ClassVar[str | None] = "linear"
    search_space: ClassVar[dict[str, Domain | None]] = {"n": Ints(3, 30, log=True)}

    def __init__(
        self,
        *,
        n: int = 15,
        min_grade: float = 1.0,
        l2: float | str = 1e-3,
        scale: bool = True,
        missing: str | None = None,
        solver: Any = "online",
        max_iter: int | str = "auto",
        tol: float | str = "auto",
        model: Any = None,
        metric: Any = "ndcg@10",
        convention: str = "standard",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n = n
        self.min_grade = min_grade
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
