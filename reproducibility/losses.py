"""Losses of Rax, TensorFlow Ranking, allRank and CatBoost, next to LambdaRank and ListNet.

Each loss trains a linear model, whose penalty the validation set chooses, and boosted trees, whose
number it chooses. Test queries are scored once.
"""

from __future__ import annotations

from typing import Any

import rankwright as rw
from rankwright import losses
from reproducibility.data import mq2008, ohsumed
from reproducibility.protocol import Run, progress
from reproducibility.report import Report

METRIC = "ndcg@10"
LOSSES: dict[str, Any] = {
    "LambdaRank": losses.LambdaRank(),
    "ListNet": losses.ListNet(),
    "LambdaLoss, ndcg_loss1": losses.LambdaRank(weights="ndcg_loss1", metric="ndcg"),
    "LambdaLoss, ndcg_loss2": losses.LambdaRank(weights="ndcg_loss2", metric="ndcg"),
    "LambdaLoss, ndcg_loss2++": losses.LambdaRank(weights="ndcg_loss2++", metric="ndcg"),
    "Softmax": losses.Softmax(),
    "UniqueSoftmax": losses.UniqueSoftmax(),
    "SigmoidCrossEntropy": losses.SigmoidCrossEntropy(),
    "SoftZeroOne": losses.SoftZeroOne(),
    "position-aware ListMLE": losses.ListMLE(position_aware=True),
    "ApproxNDCG": losses.ApproxNDCG(),
    "ApproxNDCG, map": losses.ApproxNDCG(metric="map"),
    "ApproxNDCG, mrr": losses.ApproxNDCG(metric="mrr"),
    "Stochastic ApproxNDCG": losses.Stochastic("approx_ndcg"),
    "Stochastic LambdaRank": losses.Stochastic("lambdarank"),
}


def new_losses(run: Run) -> Report:
    """NDCG@10 of linear models and trees with losses that other tools have."""
    report = Report("new-losses", run, baseline="LambdaRank")
    models = {"linear": rw.models.Linear(l2="auto"), "trees": rw.models.Trees(n_estimators=300)}
    for data_set, folds in (("OHSUMED", ohsumed(run)), ("MQ2008", mq2008(run))):
        values: dict[str, dict[str, list[Any]]] = {}
        for name, loss in LOSSES.items():
            for kind, model in models.items():
                column = values.setdefault(name, {})
                column[f"{data_set} {kind}"] = [
                    _test_values(loss, model, fold, run) for fold in folds
                ]
            progress(f"{data_set}: {name}")
        report.add_values(data_set, values)
    return report


def _test_values(loss: Any, model: Any, fold: Any, run: Run) -> Any:
    """Return the metric of each test query after training on a fold."""
    ranker = rw.Ranker(
        loss=loss, model=model, metric=METRIC, random_state=run.seed, n_jobs=run.n_jobs
    )
    ranker.fit(fold.train, eval_set=fold.valid)
    return rw.evaluate(fold.test, ranker.predict(fold.test), METRIC).per_query[METRIC]


EXPERIMENTS = {"new-losses": new_losses}
