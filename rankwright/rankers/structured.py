"""Support vector rankers with a loss that is a maximum over orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankwright.core.types import F64
from rankwright.rankers.parameters import LinearParameters, MetricParameters, named_ranker


@named_ranker
class DORM(MetricParameters, LinearParameters):
    """DORM: direct optimisation of a ranking metric by a structured SVM (`le2007dorm`).

    The default solver visits one query at a time. ``solver="bundle"`` minimises the bound and
    reports the distance from the optimum; ``solver="column_generation"`` (with ``ties="mean"`` or
    ``"file"``) is the published solver. If relevant documents resemble others, as in OHSUMED, the
    optimum is at or near w = 0, where the bound is 1 and gives no ranking. The C of the paper is
    l2 = 1/(C x queries).

    Parameters
    ----------
    metric : str, Metric or callable
        Metric to optimise: ndcg, dcg, p, wta, eru or another sum over ranks, or mrr. It also
        selects on the validation set unless ``select_metric`` is set.
    decay : float, "log", "loglog" or "metric"
        Weight of rank i, from 1, in the bound: (i + 1)^-decay; 1/log(i + 2) with "log" and
        1/log(log(i + 2)) with "loglog", which decrease more slowly; or the discount of the metric
        with "metric".
    ties : {"score", "mean", "file"}
        Order of documents of equal grade in the reference order: by their current scores, so that
        no order is required; the mean over all orders; or by row.
    per_group : int or None
        Maximum number of documents of each group (host, topic) in the ranks of the metric; topics
        may overlap. None sets no limit.
    cost : callable or None
        Cost of each document at each rank, instead of the metric's: a function of the grades of a
        query, best first, that returns a matrix of documents by ranks.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.DORM(metric="ndcg@10").fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    loss_class = "position_svm"
    search_space = {"decay": (0.25, 3.0)}

    metric: Any = "ndcg@10"
    decay: float | str = 1.0
    ties: str = "score"
    per_group: int | None = None
    cost: Callable[[F64], Any] | None = None
    solver: Any = "online"


@named_ranker
class SVMROCArea(LinearParameters):
    """SVM for the area under the ROC curve: mean hinge loss over the pairs of a query.

    SVM-perf's ROCArea (`joachims2005svmperf`), one query at a time.

    Parameters
    ----------
    margin : float
        Margin between the scores of a pair.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.SVMROCArea(l2=0.1).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name = "svm_rocarea"
    loss_class = "rocarea_svm"

    margin: float = 1.0
    solver: Any = "bundle"
    tol: float | str = 1e-8


@named_ranker
class SVMPrecision(LinearParameters):
    """SVM for precision at n: an upper bound on the loss of the first n ranks.

    SVM-perf's Prec@k (`joachims2005svmperf`), one query at a time. ``solver="bundle"`` minimises
    the bound exactly; if relevant documents resemble others, its optimum is w = 0, which gives no
    ranking.

    Parameters
    ----------
    n : int
        Number of ranks. A larger n uses more documents of a query (on validation data of OHSUMED,
        more than 10 help). A list of n documents or fewer has the same precision at n in any order;
        it uses the precision at its number of relevant documents.
    min_grade : float
        Lowest grade of a relevant document.

    Examples
    --------
    >>> import rankwright as rw
    >>> data = rw.load("digits/train", queries=8, documents=12)
    >>> ranker = rw.SVMPrecision(n=5).fit(data)
    >>> rw.evaluate(data, ranker.predict(data), "ndcg@10")["ndcg@10"] > 0.6
    True
    """

    name = "svm_precision"
    loss_class = "precision_svm"
    search_space = {"n": (3, 30, "log")}

    n: int = 15
    min_grade: float = 1.0
    solver: Any = "online"
