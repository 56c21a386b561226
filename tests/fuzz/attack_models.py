"""Model files: of every family, of other libraries, checkpoints of fits, and exports."""

import hashlib
import json
import shutil
from contextlib import suppress

import catboost
import lightgbm
import numpy as np
import pandas
import xgboost
from damage import Attack, join_files
from scipy import sparse
from small_data import small_data

import rankwright as rw
from rankwright import registry
from rankwright.errors import RankwrightError
from rankwright.export import export_model, verify_export
from rankwright.export.folder import ABOUT
from rankwright.persist import runtime
from rankwright.persist.checkpoint import Checkpoint
from rankwright.persist.container import read_parts, write_parts
from rankwright.ranklib.conversion import save_ranklib

DATA = small_data(queries=6, documents=8, features=4, feature_names=list("abcd"))
QUICK = {
    "additive": {"n_rounds": 6},
    "coordinate_ascent": {"n_restarts": 1},
    "expression": {"n_generations": 3, "population": 30},
    "factorization": {"n_rounds": 3, "n_factors": 2},
    "feature_sum": {"n_rounds": 4},
    "forest": {"n_bags": 2, "num_leaves": 4},
    "network": {"hidden_layer_sizes": (4,), "epochs": 2, "list_context": 2},
    "trees": {"n_estimators": 3, "num_leaves": 4, "min_child_samples": 2},
}


# --- model files -------------------------------------------------------------------------------


def write_models(folder):
    """Save a fitted model of every family, and imported ones."""
    paths = []
    for family in registry.MODELS:
        path = folder / f"{family}.rw"
        fitted(family).save(path)
        paths.append(path)
    sparse_kernel = rw.Ranker(loss="ranknet", model=rw.models.Kernel())
    gaps = sparse.csr_array(np.where(DATA.X > 0.5, DATA.X, 0.0))
    sparse_kernel.fit(gaps, DATA.y, qid=np.repeat(DATA.qid, DATA.sizes))
    plain = rw.Ranker(loss="ranknet", model=rw.models.Network(hidden_layer_sizes=(3, 2), epochs=1))
    others = {"sparse-kernel": sparse_kernel, "plain-network": plain.fit(DATA)}
    for name, ranker in {**others, **dict(_imported())}.items():
        paths.append(folder / f"{name}.rw")
        ranker.save(paths[-1])
    return paths


def fitted(family):
    """Return a ranker with a small model of a family."""
    model = registry.resolve("models", family)(**QUICK.get(family, {}))
    named = (registry.resolve("rankers", name) for name in registry.RANKERS)
    kind = next((kind for kind in named if kind.model_class == family), rw.RankNet)
    return kind(model=model).fit(DATA)


def _imported():
    """Yield rankers of other libraries."""
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "min_data_in_leaf": 2}
    data = lightgbm.Dataset(DATA.X, DATA.y)
    yield "lightgbm", rw.import_model(lightgbm.train({**forest, "verbosity": -1}, data, 2))
    X = DATA.X.copy()
    X[:, 3] = np.arange(len(X)) % 5
    data = xgboost.DMatrix(X, DATA.y, feature_types=list("qqqc"), enable_categorical=True)
    yield "xgboost", rw.import_model(xgboost.train({"max_cat_to_onehot": 1}, data, 2))
    model = catboost.CatBoost({"iterations": 2, "depth": 2, "allow_writing_files": False})
    yield "catboost", rw.import_model(model.fit(DATA.X, DATA.y, verbose=False))


def split_model(path):
    """Return the receipt and the other parts of a model file."""
    receipt, parts = read_parts(path)
    return {"receipt": json.dumps(receipt).encode(), **parts}


def join_model(path, parts):
    """Write a model file with the digests of its parts."""
    parts = dict(parts)
    receipt = parts.pop("receipt", b"{}")
    try:
        receipt = {k: v for k, v in json.loads(receipt).items() if k not in ("format", "parts")}
        write_parts(path, receipt, parts)
    except (ValueError, TypeError, AttributeError, RecursionError):  # not JSON, or not finite
        write_parts(path, {}, parts)


def use_model(path, exports=tuple(registry.EXPORTS)):
    """Load a model file, rank, explain, export it to every format, and save it again."""
    ranker = rw.load_model(path)
    X = DATA.X[:, : ranker.n_features_in_]
    if X.shape[1] < ranker.n_features_in_:
        X = np.zeros((len(X), min(ranker.n_features_in_, 50)))
    qid = np.repeat(DATA.qid, DATA.sizes)
    names = getattr(ranker, "feature_names_in_", None)
    data = rw.RankingData.from_arrays(
        X, DATA.y, qid=qid, feature_names=None if names is None else list(names)[: X.shape[1]]
    )
    folder = path.parent / "exported"
    folder.mkdir(exist_ok=True)
    # A damaged feature id may be 99999, and each export has vectors of all features to compare.
    formats = exports if ranker.n_features_in_ <= 1000 else ()
    steps = [
        lambda: ranker.predict(data),
        lambda: ranker.predict(X.astype(np.float32), qid=qid),
        lambda: runtime.load(path).rank(X, qid=qid, top=3),
        lambda: str(rw.explain(ranker, data, query=data.qid[0])),
        lambda: _explain_pair(ranker, data),
        lambda: rw.importance(ranker, "gain"),
        lambda: rw.importance(ranker, "split"),
        lambda: rw.importance(ranker, "shap", data=data),
        lambda: ranker.describe() if hasattr(ranker, "describe") else None,
        *(lambda to=to: export_model(ranker, to, folder / to) for to in formats),
        lambda: ranker.save(path.parent / "again.rw"),
    ]
    for step in steps:
        with suppress(RankwrightError):
            step()
    shutil.rmtree(folder, ignore_errors=True)


def _explain_pair(ranker, data):
    if not getattr(ranker.model_, "looks_at_list", False):  # whose swaps take half a second
        str(rw.explain(ranker, data, query=data.qid[0], docs=[1, 2]))


MODEL_FILES = Attack(write_models, use_model, split_model, join_model)


# --- models of other libraries -----------------------------------------------------------------


def write_imported(folder):
    """Write models of the other libraries, those of the first two with categories."""
    frame = pandas.DataFrame(DATA.X, columns=list("abcd"))
    frame["d"] = pandas.Categorical([f"town {row % 3}" for row in range(len(frame))])
    params = {"min_data_in_leaf": 1, "min_data_per_group": 1, "cat_smooth": 0, "verbosity": -1}
    bagged = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    paths = []
    for name, more in (("lightgbm", {}), ("lightgbm-forest", bagged)):
        paths.append(folder / f"{name}.txt")
        lightgbm.train({**params, **more}, lightgbm.Dataset(frame, DATA.y), 3).save_model(paths[-1])
    matrix = xgboost.DMatrix(frame, DATA.y, enable_categorical=True)
    for ending, kind in (("json", "gbtree"), ("ubj", "dart")):
        paths.append(folder / f"xgboost.{ending}")
        xgboost.train({"booster": kind, "max_cat_to_onehot": 1}, matrix, 3).save_model(paths[-1])
    for policy in ("SymmetricTree", "Lossguide"):
        paths.append(folder / f"catboost-{policy}.json")
        quiet = {"verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoost({"iterations": 3, "depth": 3, "grow_policy": policy, **quiet})
        model.fit(DATA.X, DATA.y).save_model(str(paths[-1]), format="json")
    for family in ("additive", "coordinate_ascent", "feature_sum", "forest", "trees"):
        paths.append(folder / f"ranklib-{family}.txt")
        save_ranklib(fitted(family), paths[-1])
    return paths


IMPORTED = Attack(write_imported, use_model)


# --- exports -----------------------------------------------------------------------------------


def write_exports(folder):
    """Export trees, and a linear model, to every format that takes them."""
    trees = rw.LambdaMART(n_estimators=2, num_leaves=4, min_child_samples=2).fit(DATA)
    paths = []
    for name, ranker in (("trees", trees), ("linear", rw.RankSVM().fit(DATA))):
        for to in registry.EXPORTS:
            path = folder / f"{name}-{to}.export"
            with suppress(RankwrightError):  # not every format takes both, or is installed
                export_model(ranker, to, path)
                verify_export(path)
                paths.append(path)
    return paths


def join_export(path, parts):
    """Write an export with the digests of its files."""
    parts = dict(parts)
    with suppress(ValueError, TypeError, AttributeError, KeyError, RecursionError):
        about = json.loads(parts[ABOUT])
        for name in about["files"].keys() & parts.keys():
            about["files"][name] = hashlib.sha256(parts[name]).hexdigest()
        parts[ABOUT] = json.dumps(about).encode()
    join_files(path, parts)


def use_export(path):
    """Verify an export; one whose model is LightGBM's or XGBoost's is also loaded and used."""
    for file in path.iterdir():
        if file.name in ("model.txt", "model.json"):
            with suppress(RankwrightError):
                rw.load_model(file).predict(DATA.X)
    verify_export(path)


EXPORTS = Attack(write_exports, use_export, join=join_export)


# --- checkpoints -------------------------------------------------------------------------------


VALID = small_data(queries=3, documents=8, features=4, seed=1, feature_names=list("abcd"))
RUNS = {
    "trees": ("lambdamart", {"n_estimators": 6, "num_leaves": 4, "min_child_samples": 2}),
    "lbfgs-trees": ("intervalrank", {"n_estimators": 6, "model__direction": "lbfgs"}),
    "forest": ("random_forest", {"n_bags": 5, "num_leaves": 4}),
    "additive": ("rankboost", {"n_rounds": 8}),
    "feature_sum": ("adarank", {"n_rounds": 5}),
    "coordinate_ascent": ("coordinate_ascent", {"n_restarts": 1, "n_passes": 2}),
    "expression": ("rankgp", {"population": 20, "n_generations": 4}),
    "network": ("listnet", {"model": rw.models.Network(hidden_layer_sizes=(3,), epochs=4)}),
}


def write_checkpoints(folder):
    """Write the checkpoint of a fit of each kind, with its first state only."""
    for name in RUNS:
        _fit(folder / name, resume=False)
        for file in sorted((folder / name).glob("state-*"))[1:]:
            file.unlink()
    return [folder / name for name in RUNS]


def join_checkpoint(path, parts):
    """Write a checkpoint whose files are named by the digests of their content."""
    named = {}
    for name, content in parts.items():
        stem, _, digest = name.removesuffix(".safetensors").rpartition("-")
        digest = hashlib.sha256(content).hexdigest()[: len(digest)]
        named[f"{stem}-{digest}.safetensors" if stem else name] = content
    join_files(path, named)


def use_checkpoint(path):
    """Resume the fit in a copy of the folder."""
    copy = path.parent / "in-use" / path.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    _fit(copy, resume=True)


def _fit(folder, *, resume):
    name, settings = RUNS[folder.name]
    ranker = rw.ranker(name, **settings)
    ranker.fit(DATA, eval_set=VALID, checkpoint=Checkpoint(folder, every=2, resume=resume))
    ranker.predict(DATA)


CHECKPOINTS = Attack(write_checkpoints, use_checkpoint, join=join_checkpoint)
