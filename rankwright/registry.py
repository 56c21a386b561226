"""Every part by its name: ``name -> "module:Class"``, imported when first asked for.

Adding a part is one class and one line here; the key is also the word on the command line and the
heading in the documentation, and the class a public name. The suffixes of our formats
are here too (`EXTENSIONS`). Packages announce parts of their own by
entry points: ``rankwright.losses``, ``.models``, ``.solvers``, ``.metrics``, ``.formats``,
``.exports`` and ``.rankers``, with the key as the name of the entry point. A name that is ours
stays ours; one that two packages announce is that of the package whose name comes first.
"""

from __future__ import annotations

import difflib
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwright.errors import PluginError, UsageError, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    "arrow": "rankwright.data.tables:Arrow",
    "csv": "rankwright.data.tables:Csv",
    "feature_log": "rankwright.data.feature_log:FeatureLog",
    "letor": "rankwright.data.letor:Letor",
    "lightgbm": "rankwright.data.lightgbm:LightGBMText",
    "parquet": "rankwright.data.tables:Parquet",
    "store": "rankwright.data.store:Store",
    "trec": "rankwright.data.trec:Trec",
    "tsv": "rankwright.data.tables:Tsv",
}

EXTENSIONS: dict[str, tuple[str, ...]] = {
    "arrow": (".arrow", ".ipc", ".feather"),
    "csv": (".csv",),
    "feature_log": (".jsonl", ".ndjson", ".json"),
    "letor": (".txt", ".letor", ".svmlight", ".svm", ".libsvm", ".dat"),
    "lightgbm": (),
    "parquet": (".parquet", ".pq"),
    "store": (".store",),
    "trec": (".run", ".trec"),
    "tsv": (".tsv", ".tab"),
}
"""The suffixes of each of our formats: a file is read without importing all of them."""

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
    "softrank": "rankwright.losses.softrank:SoftRank",
    "squared": "rankwright.losses.squared:Squared",
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
"""Parts that a model file may hold and that are not chosen by name: no loss is fitted with them."""


OWN_NAMES = {"rankers": "name", "metrics": "key"}
"""What a class of a kind calls itself, which must be the name it is announced under."""


def resolve(kind: str, name: str) -> Any:
    """Return the part ``name`` of ``kind``, ours or a plug-in's, or say which names come near."""
    table = {**KINDS[kind], **UNLISTED.get(kind, {})}
    name = ALIASES.get(name, name)
    if name in table:
        module, _, attribute = table[name].partition(":")
        return getattr(import_module(module), attribute)
    if name in plugins(kind):
        return _load(kind, plugins(kind)[name])
    raise UsageError(unknown(singular(kind), name, names(kind)))


@cache
def plugins(kind: str) -> dict[str, EntryPoint]:
    """Return what installed packages announce under the entry points ``rankwright.<kind>``."""
    from importlib.metadata import entry_points  # on use: it takes its time

    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=f"rankwright.{kind}"), key=lambda e: (e.name, _dist(e))):
        if entry.name not in KINDS[kind] and entry.name not in ALIASES:
            found.setdefault(entry.name, entry)
    return found


def package_of(kind: str, name: str) -> str | None:
    """Return the package that announces a part; None for our own and for unknown names."""
    entry = None if name in KINDS[kind] else plugins(kind).get(name)
    return None if entry is None else _dist(entry)


def _dist(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]


def _load(kind: str, entry: EntryPoint) -> Any:
    """Return the class of an entry point, or say which package is broken and how."""
    what = f"{singular(kind)} {quoted(entry.name)} of the package {_dist(entry)} ({entry.value})"
    try:
        part = entry.load()
    except Exception as error:  # whatever a module of others raises
        raise PluginError(
            f"the {what} cannot be imported: {type(error).__name__}: {error}; repair or uninstall "
            "the package."
        ) from error
    own = OWN_NAMES.get(kind)
    if own is not None and getattr(part, own, None) != entry.name:
        raise PluginError(
            f"the {what} is announced under another name than its own; its class must have "
            f"{own} = {quoted(entry.name)}."
        )
    return part


def names(kind: str) -> list[str]:
    """Return the names of every part of ``kind``, ours first, then those of plug-ins."""
    return [*KINDS[kind], *plugins(kind)]


def is_known(kind: str, name: str) -> bool:
    """Whether `resolve` finds a part: one of `names`, or one that only a model file holds."""
    return name in names(kind) or name in UNLISTED.get(kind, {})


def name_of(kind: str, cls: type) -> str | None:
    """Return the name under which a class is registered or announced; None where it is not."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    for name, known in {**KINDS[kind], **UNLISTED.get(kind, {})}.items():
        if known == path:
            return name
    package = cls.__module__.partition(".")[0]
    for name, entry in plugins(kind).items():
        # the package is imported already, so that of its entry points this one may be loaded
        if entry.module.partition(".")[0] == package and entry.attr == cls.__qualname__:
            try:
                if entry.load() is cls:
                    return name
            except Exception:  # a broken entry point names nothing
                continue
    return None


def singular(kind: str) -> str:
    """Return what one part of ``kind`` is called."""
    return "loss" if kind == "losses" else kind.removesuffix("s")


def classes(kind: str) -> dict[str, str]:
    """Return the module of each of our own classes of ``kind``, by the name of the class."""
    paths = (path.partition(":") for path in KINDS[kind].values())
    return {name: module for module, _, name in paths}


def all_of(kind: str) -> dict[str, Any]:
    """Return every part of ``kind`` by name; plug-ins that cannot be loaded are left out."""
    found = {name: resolve(kind, name) for name in KINDS[kind]}
    for name in plugins(kind):
        with suppress(PluginError):
            found[name] = resolve(kind, name)
    return found


def unknown(what: str, name: str, known: Any) -> str:
    """Return the sentence for a name that is not ``known``, with the nearest right ones."""
    return f"there is no {what} {quoted(name)}; {nearest(name, known)}"


def nearest(name: str, known: Any) -> str:
    """Return the question after the ``known`` names that come near, or else the list of all."""
    near = difflib.get_close_matches(name, list(known), cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known))}."
