"""Every part by its name: ``name -> "module:Class"``, imported when first asked for.

Adding a part is one file and one line here; the key is also the file's name, the word on the
command line and the heading in the documentation.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

from rankwright.errors import UsageError, quoted

METRICS = {
    "auc": "rankwright.metrics.auc:AUC",
    "best": "rankwright.metrics.best:Best",
    "bpref": "rankwright.metrics.bpref:BPref",
    "dcg": "rankwright.metrics.dcg:DCG",
    "domination_error": "rankwright.metrics.domination_error:DominationError",
    "err": "rankwright.metrics.err:ERR",
    "eru": "rankwright.metrics.eru:ERU",
    "f1": "rankwright.metrics.f1:F1",
    "hit": "rankwright.metrics.hit:Hit",
    "kendall": "rankwright.metrics.kendall:Kendall",
    "map": "rankwright.metrics.map:MAP",
    "mrr": "rankwright.metrics.mrr:MRR",
    "ndcg": "rankwright.metrics.ndcg:NDCG",
    "p": "rankwright.metrics.p:Precision",
    "pair_error": "rankwright.metrics.pair_error:PairError",
    "rbp": "rankwright.metrics.rbp:RBP",
    "recall": "rankwright.metrics.recall:Recall",
    "rprec": "rankwright.metrics.rprec:RPrec",
    "wta": "rankwright.metrics.wta:WTA",
}

FORMATS = {
    "arrow": "rankwright.data.tabular:Arrow",
    "csv": "rankwright.data.tabular:Csv",
    "letor": "rankwright.data.letor:Letor",
    "lightgbm": "rankwright.data.lightgbm:LightGBMText",
    "parquet": "rankwright.data.tabular:Parquet",
    "ratings": "rankwright.data.ratings:Ratings",
    "store": "rankwright.data.store:Store",
    "trec": "rankwright.data.trec:Trec",
    "tsv": "rankwright.data.tabular:Tsv",
}

LOSSES = {
    "all_threshold": "rankwright.losses.all_threshold:AllThreshold",
    "approx_ndcg": "rankwright.losses.approx_ndcg:ApproxNDCG",
    "boltzrank": "rankwright.losses.boltzrank:BoltzRank",
    "domination": "rankwright.losses.domination:Domination",
    "fidelity": "rankwright.losses.fidelity:Fidelity",
    "gbrank": "rankwright.losses.gbrank:GBRank",
    "interval": "rankwright.losses.interval:Interval",
    "lambdarank": "rankwright.losses.lambdarank:LambdaRank",
    "listmle": "rankwright.losses.listmle:ListMLE",
    "listnet": "rankwright.losses.listnet:ListNet",
    "ndcg_glm": "rankwright.losses.ndcg_glm:NDCGGLM",
    "neural_ndcg": "rankwright.losses.neural_ndcg:NeuralNDCG",
    "ordinal_hinge": "rankwright.losses.ordinal_hinge:OrdinalHinge",
    "pair_exp": "rankwright.losses.pair_exp:PairExp",
    "pair_hinge": "rankwright.losses.pair_hinge:PairHinge",
    "position_svm": "rankwright.losses.position_svm:PositionSVM",
    "precision_svm": "rankwright.losses.precision_svm:PrecisionSVM",
    "query_offset": "rankwright.losses.query_offset:QueryOffset",
    "rank_cosine": "rankwright.losses.rank_cosine:RankCosine",
    "ranknet": "rankwright.losses.ranknet:RankNet",
    "retarget": "rankwright.losses.retarget:Retarget",
    "rocarea_svm": "rankwright.losses.rocarea_svm:ROCAreaSVM",
    "softrank": "rankwright.losses.softrank:SoftRank",
    "squared": "rankwright.losses.squared:Squared",
    "xendcg": "rankwright.losses.xendcg:XENDCG",
}

MODELS = {
    "additive": "rankwright.models.additive:Additive",
    "classifier": "rankwright.models.classifier:Classifier",
    "coordinate_ascent": "rankwright.models.coordinate_ascent:CoordinateAscent",
    "expression": "rankwright.models.expression:Expression",
    "factorization": "rankwright.models.factorization:Factorization",
    "feature_sum": "rankwright.models.feature_sum:FeatureSum",
    "forest": "rankwright.models.forest:Forest",
    "jrank": "rankwright.models.jrank:JRank",
    "kernel": "rankwright.models.kernel:Kernel",
    "least_squares": "rankwright.models.least_squares:LeastSquares",
    "linear": "rankwright.models.linear:Linear",
    "network": "rankwright.models.network:Network",
    "passive_aggressive": "rankwright.models.passive_aggressive:PassiveAggressiveLinear",
    "prank": "rankwright.models.prank:PRankLinear",
    "trees": "rankwright.models.trees:Trees",
}

SOLVERS = {
    "adam": "rankwright.solvers.adam:Adam",
    "alternating": "rankwright.solvers.alternating:Alternating",
    "bundle": "rankwright.solvers.bundle:Bundle",
    "column_generation": "rankwright.solvers.column_generation:ColumnGeneration",
    "coordinate": "rankwright.solvers.coordinate:Coordinate",
    "lbfgs": "rankwright.solvers.lbfgs:LBFGS",
    "online": "rankwright.solvers.online:Online",
    "sgd": "rankwright.solvers.sgd:SGD",
    "tron": "rankwright.solvers.tron:TRON",
}

RANKERS = {
    "boltzrank": "rankwright.rankers.boltzrank:BoltzRank",
    "adarank": "rankwright.rankers.adarank:AdaRank",
    "classification": "rankwright.rankers.classification:Classification",
    "cofirank": "rankwright.rankers.cofirank:CofiRank",
    "compose": "rankwright.rankers.compose:Compose",
    "coordinate_ascent": "rankwright.rankers.coordinate_ascent:CoordinateAscent",
    "domination": "rankwright.rankers.domination:Domination",
    "dorm": "rankwright.rankers.dorm:DORM",
    "frank": "rankwright.rankers.frank:FRank",
    "gbdt": "rankwright.rankers.gbdt:GBDT",
    "gbrank": "rankwright.rankers.gbrank:GBRank",
    "intervalrank": "rankwright.rankers.intervalrank:IntervalRank",
    "irsvm": "rankwright.rankers.irsvm:IRSVM",
    "jrank": "rankwright.rankers.jrank:JRank",
    "lambdamart": "rankwright.rankers.lambdamart:LambdaMART",
    "lambdarank": "rankwright.rankers.lambdarank:LambdaRank",
    "linear_regression": "rankwright.rankers.linear_regression:LinearRegression",
    "listmle": "rankwright.rankers.listmle:ListMLE",
    "listnet": "rankwright.rankers.listnet:ListNet",
    "memr": "rankwright.rankers.memr:MEMR",
    "mmmf": "rankwright.rankers.mmmf:MMMF",
    "mr": "rankwright.rankers.mr:MR",
    "ndcg_glm": "rankwright.rankers.ndcg_glm:NDCGGLM",
    "pamir": "rankwright.rankers.pamir:PAMIR",
    "ordinal_svm": "rankwright.rankers.ordinal_svm:OrdinalSVM",
    "prank": "rankwright.rankers.prank:PRank",
    "random_forest": "rankwright.rankers.random_forest:RandomForest",
    "rankcosine": "rankwright.rankers.rankcosine:RankCosine",
    "rankgp": "rankwright.rankers.rankgp:RankGP",
    "rankboost": "rankwright.rankers.rankboost:RankBoost",
    "ranknet": "rankwright.rankers.ranknet:RankNet",
    "ranksvm": "rankwright.rankers.ranksvm:RankSVM",
    "softrank": "rankwright.rankers.softrank:SoftRank",
    "svm_precision": "rankwright.rankers.svm_precision:SVMPrecision",
    "svm_rocarea": "rankwright.rankers.svm_rocarea:SVMROCArea",
    "xendcg": "rankwright.rankers.xendcg:XENDCG",
}

EXPORTS = {
    "c": "rankwright.export.c:C",
    "elasticsearch": "rankwright.export.elasticsearch:Elasticsearch",
    "json": "rankwright.export.json:Json",
    "lightgbm": "rankwright.export.lightgbm:LightGBM",
    "onnx": "rankwright.export.onnx:Onnx",
    "opensearch": "rankwright.export.opensearch:OpenSearch",
    "python": "rankwright.export.python:Python",
    "ranklib": "rankwright.export.ranklib:RankLib",
    "solr": "rankwright.export.solr:Solr",
    "vespa": "rankwright.export.vespa:Vespa",
    "xgboost-json": "rankwright.export.xgboost_json:XGBoostJson",
}

ALIASES = {"mart": "gbdt"}

KINDS: dict[str, dict[str, str]] = {
    "rankers": RANKERS,
    "losses": LOSSES,
    "models": MODELS,
    "solvers": SOLVERS,
    "metrics": METRICS,
    "formats": FORMATS,
    "exports": EXPORTS,
}


def resolve(kind: str, name: str) -> Any:
    """Return the registered part ``name`` of ``kind``, or say which names come near."""
    table = KINDS[kind]
    name = ALIASES.get(name, name)
    if name not in table:
        what = "loss" if kind == "losses" else kind.removesuffix("s")
        raise UsageError(unknown(what, name, table))
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)


def all_of(kind: str) -> dict[str, Any]:
    """Return every part of ``kind`` by name."""
    return {name: resolve(kind, name) for name in KINDS[kind]}


def unknown(what: str, name: str, known: Any) -> str:
    """Return the sentence for a name that is not ``known``, with the nearest right ones."""
    near = difflib.get_close_matches(name, list(known), cutoff=0.5)
    every = ", ".join(sorted(known))
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {every}."
    return f"there is no {what} {quoted(name)}; {hint}"
