"""SVM for precision at n: a bound on what the first n ranks lose."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class SVMPrecision(Ranker):
    """SVM for precision at n: a bound on what the first n ranks lose.

    SVM-perf's Prec@k (`joachims2005svmperf`), a query at a time.
    """

    loss_name = "precision_svm"
    models = ("linear", "trees", "kernel")
    defaults = {"solver": "bundle", "tolerance": 1e-8}
