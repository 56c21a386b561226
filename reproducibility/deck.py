"""The rankers of the course deck, and tree rankers next to other libraries."""

from __future__ import annotations

from reproducibility.data import mq2008, ohsumed
from reproducibility.intervalrank import SMALL_TREES, random_forest
from reproducibility.protocol import Run, Study, columns, row
from reproducibility.report import Report


def deck_table(run: Run) -> Report:
    """Course deck: its rankers on OHSUMED and MQ2008.

    Rankers have their defaults, which were chosen on validation data; validation data picks the
    round. Some rows set one thing in addition: l2 is searched on validation data for the linear
    SVMs, ListNet and ListMLE, AdaRank.MAP climbs MAP, the random forest has 100 bags, and the rows
    called network, ApproxNDCG and NeuralNDCG train a network. Nothing else is tuned, so the table
    compares defaults, not what each method can reach. The deck has no figures.
    """
    report = Report("deck-table", run, baseline="LambdaMART")
    rows = [
        row("linear regression", "linear_regression"),
        row("RankNet", "ranknet"),
        row("RankBoost", "rankboost"),
        row("Ranking SVM", "ranksvm", l2="auto"),
        row("IR-SVM", "irsvm", l2="auto"),
        row("LambdaRank", "lambdarank"),
        row("LambdaMART", "lambdamart"),
        row("MART", "gbdt"),
        row("random forest", "random_forest", n_bags=100),
        row("SoftRank", "softrank"),
        row("AdaRank.MAP", "adarank", metric="map"),
        row("AdaRank.NDCG", "adarank"),
        row("ListNet", "listnet", l2="auto"),
        row("ListNet network", "listnet", model="network"),
        row("ListMLE", "listmle", l2="auto"),
        row("BoltzRank", "boltzrank"),
        row("FRank", "frank"),
        row("Coordinate Ascent", "coordinate_ascent"),
        row("RankGP", "rankgp"),
        row("ApproxNDCG", "ranker", loss="approx_ndcg", model="network"),
        row("NeuralNDCG", "ranker", loss="neural_ndcg", model="network"),
    ]
    measures = "ndcg@1", "ndcg@5", "ndcg@10", "map"
    for study in (
        Study("OHSUMED", ohsumed(run), "ndcg@10", columns(*measures)),
        Study("MQ2008", mq2008(run), "ndcg@10", columns(*measures, name="MQ2008 {metric}")),
    ):
        report.add_study(study, rows)
    return report


def mq2008_trees(run: Run) -> Report:
    """Tree rankers on MQ2008, next to LightGBM, XGBoost and CatBoost.

    The printed figures are of these libraries on the same folds, chosen on validation data by
    NDCG@10 as well.
    """
    report = Report("mq2008-trees", run, baseline="GBDT")
    trees = {**SMALL_TREES, "rounds": (200, 300, 400, 500, 600)}
    targets = ["linear", "gain"]
    rows = [
        row("IntervalRank", "intervalrank", **trees, lambda2=0.1,
            grid={"lambda1": [1.0, 10.0], "targets": targets}),
        row("IntervalRank calibrated", "intervalrank", **trees, lambda1=10.0, lambda2=0.1,
            grid={"targets": targets, "calibration": [0.03, 0.3]}),
        row("GBRank", "ranker", **trees, loss="gbrank", model="trees", loss__targets="gain",
            grid={"loss__lambda1": [0.0, 0.1]}),
        row("ListMLE", "listmle", **trees, model="trees"),
        row("LambdaMART", "lambdamart", **trees, grid={"metric": ["ndcg@10", "ndcg"]}),
        row("XE-NDCG", "xendcg", **trees),
        row("GBDT", "gbdt", **trees, grid={"targets": targets}),
        random_forest(),
    ]  # fmt: skip
    measures = columns("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
    report.add_study(Study("MQ2008", mq2008(run), "ndcg@10", measures), rows)
    return report


EXPERIMENTS = {"deck-table": deck_table, "mq2008-trees": mq2008_trees}
