"""SVM for the area under the ROC curve: the mean hinge over pairs of a query."""

from __future__ import annotations

from rankwright.rankers.base import Ranker


class SVMROCArea(Ranker):
    """SVM for the area under the ROC curve: the mean hinge over pairs of a query.

    SVM-perf's ROCArea (`joachims2005svmperf`), a query at a time.
    """

    loss_name = "rocarea_svm"
    models = ("linear", "trees", "kernel")
    defaults = {"solver": "bundle", "tolerance": 1e-8}
