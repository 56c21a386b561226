"""Registry of all parts by name: ``name -> "module:Class"``, imported on first use.

A part needs one class and one line here; a format is not a class but a
`rankwright.data.formats.Format`. The key of a part is also its word on the command line and its
heading in the documentation. Other packages register parts by entry points in the groups
``rankwright.losses``, ``.models``, ``.solvers``, ``.metrics``, ``.formats``, ``.exports`` and
``.rankers``; the name of the entry point is the key. Built-in names cannot be overridden. If two
packages register the same name, the alphabetically first package is used.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright.errors import PluginError, UsageError, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

METRICS = {
    "alpha_ndcg": "rankwright.metrics.subtopics:AlphaNDCG",
    "auc": "rankwright.metrics.auc:AUC",
    "best": "rankwright.metrics.best:Best",
    "bpref": "rankwright.metrics.bpref:BPref",
    "coverage_error": "rankwright.metrics.coverage_error:CoverageError",
    "dcg": "rankwright.metrics.dcg:DCG",
    "domination_error": "rankwright.metrics.domination_error:DominationError",
    "err": "rankwright.metrics.err:ERR",
    "err_ia": "rankwright.metrics.subtopics:ERRIA",
    "eru": "rankwright.metrics.eru:ERU",
    "f1": "rankwright.metrics.f1:F1",
    "gm_map": "rankwright.metrics.gm_map:GMMAP",
    "hit": "rankwright.metrics.hit:Hit",
    "iprec": "rankwright.metrics.iprec:IPrec",
    "judged": "rankwright.metrics.judged:JudgedShare",
    "kendall": "rankwright.metrics.kendall:Kendall",
    "map": "rankwright.metrics.map:MAP",
    "mrr": "rankwright.metrics.mrr:MRR",
    "ndcg": "rankwright.metrics.ndcg:NDCG",
    "num_rel": "rankwright.metrics.counts:NumRel",
    "num_rel_ret": "rankwright.metrics.counts:NumRelRet",
    "num_ret": "rankwright.metrics.counts:NumRet",
    "p": "rankwright.metrics.p:Precision",
    "p_ia": "rankwright.metrics.subtopics:PIA",
    "pair_error": "rankwright.metrics.pair_error:PairError",
    "rbp": "rankwright.metrics.rbp:RBP",
    "recall": "rankwright.metrics.recall:Recall",
    "rprec": "rankwright.metrics.rprec:RPrec",
    "wta": "rankwright.metrics.wta:WTA",
}

FORMATS = {
    "arrow": "rankwright.data.tables:ARROW",
    "csv": "rankwright.data.tables:CSV",
    "feature_log": "rankwright.data.feature_log:FEATURE_LOG",
    "letor": "rankwright.data.letor:LETOR",
    "lightgbm": "rankwright.data.lightgbm:LIGHTGBM",
    "parquet": "rankwright.data.tables:PARQUET",
    "store": "rankwright.data.store:STORE",
    "tsv": "rankwright.data.tables:TSV",
}

EXTENSIONS: dict[str, tuple[str, ...]] = {
    "arrow": (".arrow", ".ipc", ".feather"),
    "csv": (".csv",),
    "feature_log": (".jsonl", ".ndjson", ".json"),
    "letor": (".txt", ".letor", ".svmlight", ".svm", ".libsvm", ".dat"),
    "lightgbm": (),
    "parquet": (".parquet", ".pq"),
    "store": (".store",),
    "tsv": (".tsv", ".tab"),
}
"""File suffixes of the built-in formats, which are known without importing the formats."""

LOSSES = {
    "all_threshold": "rankwright.losses.all_threshold:AllThreshold",
    "approx_ndcg": "rankwright.losses.approx_ndcg:ApproxNDCG",
    "boltzrank": "rankwright.losses.boltzrank:BoltzRank",
    "domination": "rankwright.losses.domination:Domination",
    "dual_softmax": "rankwright.losses.dual_softmax:DualSoftmax",
    "fidelity": "rankwright.losses.fidelity:Fidelity",
    "gbrank": "rankwright.losses.gbrank:GBRank",
    "interval": "rankwright.losses.interval:Interval",
    "lambdarank": "rankwright.losses.lambdarank:LambdaRank",
    "listmle": "rankwright.losses.listmle:ListMLE",
    "listnet": "rankwright.losses.listnet:ListNet",
    "ndcg_glm": "rankwright.losses.ndcg_glm:NDCGGLM",
    "neural_ndcg": "rankwright.losses.neural_ndcg:NeuralNDCG",
    "pair_exp": "rankwright.losses.pair_exp:PairExp",
    "pair_hinge": "rankwright.losses.pair_hinge:PairHinge",
    "position_svm": "rankwright.losses.position_svm:PositionSVM",
    "precision_svm": "rankwright.losses.precision_svm:PrecisionSVM",
    "query_offset": "rankwright.losses.query_offset:QueryOffset",
    "rank_cosine": "rankwright.losses.rank_cosine:RankCosine",
    "ranknet": "rankwright.losses.ranknet:RankNet",
    "retarget": "rankwright.losses.retarget:Retarget",
    "rocarea_svm": "rankwright.losses.rocarea_svm:ROCAreaSVM",
    "sigmoid_cross_entropy": "rankwright.losses.sigmoid_cross_entropy:SigmoidCrossEntropy",
    "soft_zero_one": "rankwright.losses.soft_zero_one:SoftZeroOne",
    "softmax": "rankwright.losses.softmax:Softmax",
    "softrank": "rankwright.losses.softrank:SoftRank",
    "squared": "rankwright.losses.squared:Squared",
    "stochastic": "rankwright.losses.stochastic:Stochastic",
    "unique_softmax": "rankwright.losses.unique_softmax:UniqueSoftmax",
    "xendcg": "rankwright.losses.xendcg:XENDCG",
}

MODELS = {
    "additive": "rankwright.models.additive:Additive",
    "classifier": "rankwright.models.pointwise:Classifier",
    "coordinate_ascent": "rankwright.models.coordinate_ascent:CoordinateAscent",
    "expression": "rankwright.models.expression:Expression",
    "factorization": "rankwright.models.factorization:Factorization",
    "feature_sum": "rankwright.models.feature_sum:FeatureSum",
    "forest": "rankwright.models.bagged_trees:BaggedTrees",
    "jrank": "rankwright.models.jrank:JRank",
    "kernel": "rankwright.models.kernel:Kernel",
    "least_squares": "rankwright.models.pointwise:LeastSquares",
    "linear": "rankwright.models.linear:Linear",
    "network": "rankwright.models.network:Network",
    "passive_aggressive": "rankwright.models.perceptron:PassiveAggressiveLinear",
    "prank": "rankwright.models.perceptron:PRankLinear",
    "trees": "rankwright.models.trees:Trees",
}

SOLVERS = {
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
    "adarank": "rankwright.rankers.boosting:AdaRank",
    "blend": "rankwright.rankers.blend:Blend",
    "boltzrank": "rankwright.rankers.neural:BoltzRank",
    "classification": "rankwright.rankers.linear:Classification",
    "cofirank": "rankwright.rankers.ratings:CofiRank",
    "coordinate_ascent": "rankwright.rankers.boosting:CoordinateAscent",
    "domination": "rankwright.rankers.linear:Domination",
    "dorm": "rankwright.rankers.structured:DORM",
    "frank": "rankwright.rankers.boosting:FRank",
    "gbdt": "rankwright.rankers.trees:GBDT",
    "gbrank": "rankwright.rankers.trees:GBRank",
    "intervalrank": "rankwright.rankers.trees:IntervalRank",
    "irsvm": "rankwright.rankers.linear:IRSVM",
    "jrank": "rankwright.rankers.ratings:JRank",
    "lambdamart": "rankwright.rankers.trees:LambdaMART",
    "lambdarank": "rankwright.rankers.neural:LambdaRank",
    "linear_regression": "rankwright.rankers.linear:LinearRegression",
    "listmle": "rankwright.rankers.linear:ListMLE",
    "listnet": "rankwright.rankers.linear:ListNet",
    "memr": "rankwright.rankers.linear:MEMR",
    "mmmf": "rankwright.rankers.ratings:MMMF",
    "mr": "rankwright.rankers.linear:MR",
    "ndcg_glm": "rankwright.rankers.linear:NDCGGLM",
    "pamir": "rankwright.rankers.linear:PAMIR",
    "prank": "rankwright.rankers.linear:PRank",
    "random_forest": "rankwright.rankers.trees:RandomForest",
    "rankboost": "rankwright.rankers.boosting:RankBoost",
    "rankcosine": "rankwright.rankers.linear:RankCosine",
    "ranker": "rankwright.rankers.base:Ranker",
    "rankgp": "rankwright.rankers.boosting:RankGP",
    "ranknet": "rankwright.rankers.neural:RankNet",
    "ranksvm": "rankwright.rankers.linear:RankSVM",
    "softrank": "rankwright.rankers.neural:SoftRank",
    "svm_precision": "rankwright.rankers.structured:SVMPrecision",
    "svm_rocarea": "rankwright.rankers.structured:SVMROCArea",
    "xendcg": "rankwright.rankers.trees:XENDCG",
}

EXPORTS = {
    "c": "rankwright.export.c:C",
    "elasticsearch": "rankwright.export.ltr_plugin:Elasticsearch",
    "json": "rankwright.export.json:Json",
    "lightgbm": "rankwright.export.lightgbm:LightGBM",
    "onnx": "rankwright.export.onnx:Onnx",
    "opensearch": "rankwright.export.ltr_plugin:OpenSearch",
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


UNLISTED: dict[str, dict[str, str]] = {
    "models": {
        "blend": "rankwright.models.blend:Blend",
        "imported_trees": "rankwright.models.imported_trees:ImportedTrees",
    },
}
"""Parts that a model file can contain and that cannot be chosen by name."""

NAME_ATTRIBUTES = {"rankers": "name", "metrics": "key"}
"""Attribute of a class that must be the name under which the class is registered."""


def resolve(kind: str, name: str) -> Any:
    """Return the part ``name`` of ``kind``, or raise an error with the nearest names."""
    name = ALIASES.get(name, name)
    path = KINDS[kind].get(name) or UNLISTED.get(kind, {}).get(name)
    if path is not None:
        module, _, attribute = path.partition(":")
        return getattr(import_module(module), attribute)
    if name in plugins(kind):
        return _load(kind, plugins(kind)[name])
    raise UsageError(unknown(singular(kind), name, names(kind)))


@cache
def plugins(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of installed packages in the group ``rankwright.<kind>``."""
    from importlib.metadata import entry_points  # slow to import

    entries: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=f"rankwright.{kind}"), key=lambda e: (e.name, _dist(e))):
        if entry.name not in KINDS[kind] and entry.name not in ALIASES:
            entries.setdefault(entry.name, entry)
    return entries


def package_of(kind: str, name: str) -> str | None:
    """Return the package of a plug-in; None for built-in parts and unknown names."""
    entry = None if name in KINDS[kind] else plugins(kind).get(name)
    return None if entry is None else _dist(entry)


def _dist(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]


def _load(kind: str, entry: EntryPoint) -> Any:
    """Return the class of an entry point; an error names the broken package."""
    title = f"{singular(kind)} {quoted(entry.name)} of the package {_dist(entry)} ({entry.value})"
    try:
        part = entry.load()
    except Exception as error:  # a module of another package can raise anything
        raise PluginError(
            f"the {title} cannot be imported: {type(error).__name__}: {error}; repair or uninstall "
            "the package."
        ) from error
    attribute = NAME_ATTRIBUTES.get(kind)
    if attribute is not None and getattr(part, attribute, None) != entry.name:
        raise PluginError(
            f"the {title} is registered under a wrong name; its class must have "
            f"{attribute} = {quoted(entry.name)}."
        )
    return part


def names(kind: str) -> list[str]:
    """Return the names of all parts of ``kind``: built-in parts, then plug-ins."""
    return [*KINDS[kind], *plugins(kind)]


def is_known(kind: str, name: str) -> bool:
    """Return whether `resolve` finds a part, except for aliases."""
    return name in names(kind) or name in UNLISTED.get(kind, {})


def name_of(kind: str, cls: type) -> str | None:
    """Return the name under which a class is registered, or None."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    for name, registered in {**KINDS[kind], **UNLISTED.get(kind, {})}.items():
        if registered == path:
            return name
    package = cls.__module__.partition(".")[0]
    for name, entry in plugins(kind).items():
        # the package of cls is imported already, so only its entry points may be loaded
        if entry.module.partition(".")[0] == package and entry.attr == cls.__qualname__:
            with suppress(Exception):  # a broken entry point does not register the class
                if entry.load() is cls:
                    return name
    return None


def singular(kind: str) -> str:
    """Return the word for one part of ``kind``."""
    return "loss" if kind == "losses" else kind.removesuffix("s")


def all_of(kind: str) -> dict[str, Any]:
    """Return all parts of ``kind`` by name, without plug-ins that cannot be imported."""
    parts = {name: resolve(kind, name) for name in KINDS[kind]}
    for name in plugins(kind):
        with suppress(PluginError):
            parts[name] = resolve(kind, name)
    return parts


def unknown(what: str, name: str, known: Any) -> str:
    """Return the error message for an unknown name, with the nearest of the ``known`` names."""
    return f"there is no {what} {quoted(name)}; {nearest(name, known)}"


def nearest(name: str, known: Any) -> str:
    """Return a question with the nearest of the ``known`` names, or the list of all names."""
    from difflib import get_close_matches  # only needed for wrong names

    near = get_close_matches(name, list(known), cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known))}."
