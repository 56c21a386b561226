"""SVM for precision at n: a bound on what the first n ranks lose."""

from __future__ import annotations

from rankwright.rankers.base import Ranker
from rankwright.rankers.search_space import Ints


class SVMPrecision(Ranker):
    """SVM for precision at n: a bound on what the first n ranks lose.

    SVM-perf's Prec@k (`joachims2005svmperf`), a query at a time. The default solver visits query
    after query; ``solver="bundle"`` minimises the bound itself, which where relevant documents look
    much like others has its optimum at w = 0 and ranks nothing.

    Parameters
    ----------
    n : int
        Ranks that count. The more, the more documents of a query are learnt from (on valid, more
        than 10 help much on OHSUMED); lists of n documents or fewer teach nothing.
    """

    loss_name = "precision_svm"
    models = ("linear", "trees", "kernel")
    defaults = {"solver": "online", "n": 15}
    search_space = {"n": Ints(3, 30, log=True)}
