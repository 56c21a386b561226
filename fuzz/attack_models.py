"""Damage model files of every family and seal them again: what is read must be used or refused.

A file that is read ranks, explains, is exported to every format and saved again.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from damage import Attack, mutated
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from scipy import sparse
from small_data import small_data

import rankwright as rw
from rankwright import registry, runtime
from rankwright.errors import RankwrightError
from rankwright.export import export_model
from rankwright.persist.container import read_parts, write_parts

DATA = small_data(queries=6, documents=8, features=4, feature_names=list("abcd"))
QUICK: dict[str, dict[str, Any]] = {
    "additive": {"n_rounds": 6},
    "coordinate_ascent": {"n_restarts": 1},
    "expression": {"n_generations": 3, "population": 30},
    "factorization": {"n_rounds": 3, "n_factors": 2},
    "feature_sum": {"n_rounds": 4},
    "forest": {"n_bags": 2, "num_leaves": 4},
    "network": {"hidden_layer_sizes": (4,), "epochs": 2, "list_context": 2},
    "trees": {"n_estimators": 3, "num_leaves": 4, "min_child_samples": 2},
}
ARRAYS = "arrays.safetensors"
_INTEGERS = [-1, 0, 1, 7, 2**31 - 1, -(2**31), 2**62, -(2**63)]
_FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 5e-324]
_TYPES = ["int8", "int32", "int64", "uint8", "bool", "float16", "float32", "float64"]
_RECEIPT = [None, -1, 0, 1, 3, 5, 10**18, 1e300, "x", "linear", "trees", [], {}, [1], True]
_NUMBERS = ["-1", "0", "1", "99999", "-99999", "9" * 30, "nan", "inf", "1e999", "x", ""]


# --- whole files -------------------------------------------------------------------------------


def write(folder: Path) -> Sequence[Path]:
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


def fitted(family: str) -> Any:
    """Return a ranker with a small model of a family."""
    model = registry.resolve("models", family)(**QUICK.get(family, {}))
    named = (registry.resolve("rankers", name) for name in registry.RANKERS)
    kind = next((kind for kind in named if kind.model_class == family), rw.RankNet)
    return kind(model=model).fit(DATA)


def _imported() -> Iterator[tuple[str, Any]]:
    """Yield rankers of other libraries, as far as these are installed."""
    import lightgbm

    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "min_data_in_leaf": 2}
    data = lightgbm.Dataset(DATA.X, DATA.y)
    yield "lightgbm", rw.import_model(lightgbm.train({**forest, "verbosity": -1}, data, 2))
    with suppress(ImportError):
        import xgboost

        X = DATA.X.copy()
        X[:, 3] = np.arange(len(X)) % 5
        data = xgboost.DMatrix(X, DATA.y, feature_types=list("qqqc"), enable_categorical=True)
        yield "xgboost", rw.import_model(xgboost.train({"max_cat_to_onehot": 1}, data, 2))
    with suppress(ImportError):
        import catboost

        model = catboost.CatBoost({"iterations": 2, "depth": 2, "allow_writing_files": False})
        yield "catboost", rw.import_model(model.fit(DATA.X, DATA.y, verbose=False))


# --- damage ------------------------------------------------------------------------------------


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy with one to three parts changed, and the digests of what it then holds."""
    receipt, parts = read_parts(path)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(["receipt", *sorted(parts)])
        if name == "receipt":
            _, change = rng.choice(list(receipt_changes(receipt, rng)))
            receipt = change
        elif rng.random() < 0.1:
            parts[name] = mutated(parts[name], rng)
        elif name == ARRAYS:
            with suppress(Exception):  # of arrays that are damaged already
                arrays = load_arrays(parts[ARRAYS])
                _, changed = rng.choice(list(array_changes(arrays, rng)))
                parts[ARRAYS] = save_arrays(changed)
        else:
            _, text = rng.choice(list(text_changes(parts[name].decode("utf-8", "ignore"), rng)))
            parts[name] = text.encode()
    seal(target, receipt, parts)


def every_damage(path: Path, target: Path, *, receipts: bool = True) -> Iterator[str]:
    """Write each change of one part in turn; yield what it is, once it is written.

    Without ``receipts`` the receipt, which is alike for all families, stays as it is.
    """
    receipt, parts = read_parts(path)
    rng = random.Random(0)
    for label, changed in receipt_changes(receipt, rng) if receipts else ():
        seal(target, changed, parts)
        yield f"receipt: {label}"
    for label, arrays in array_changes(load_arrays(parts[ARRAYS]), rng):
        seal(target, receipt, {**parts, ARRAYS: save_arrays(arrays)})
        yield label
    for name in sorted(parts):
        others = {other: parts[other] for other in parts if other != name}
        seal(target, receipt, others)
        yield f"{name}: dropped"
        seal(target, receipt, {**parts, name: parts[name][: len(parts[name]) // 2]})
        yield f"{name}: cut off"
        if name != ARRAYS:
            for label, text in text_changes(parts[name].decode(), rng):
                seal(target, receipt, {**others, name: text.encode()})
                yield f"{name}: {label}"


def seal(target: Path, receipt: dict[str, Any], parts: dict[str, bytes]) -> None:
    """Write a model file with the digests of its parts."""
    plain = {key: value for key, value in receipt.items() if key not in ("format", "parts")}
    write_parts(target, plain, parts)


def receipt_changes(
    receipt: dict[str, Any], rng: random.Random
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield receipts without a field, or with another value of it."""
    for key in sorted(receipt):
        yield f"{key} dropped", {k: v for k, v in receipt.items() if k != key}
        value = rng.choice(_RECEIPT)
        yield f"{key} = {value!r}", {**receipt, key: value}
    for count in (1, 5):
        yield f"{count} features", {**receipt, "n_features": count, "feature_names": None}
    for family in ("linear", "trees", "network", "kernel"):
        yield f"of the family {family}", {**receipt, "model": family}


def array_changes(
    arrays: dict[str, Any], rng: random.Random
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield arrays of which one is not there, or has another shape, type or number."""
    yield "another array", {**arrays, "another": np.zeros(3)}
    for name in sorted(arrays):
        own = arrays[name]
        yield f"{name} dropped", {k: v for k, v in arrays.items() if k != name}
        for label, changed in _changes_of(own, rng):
            yield f"{name} {label}", {**arrays, name: np.ascontiguousarray(changed)}


def _changes_of(own: Any, rng: random.Random) -> Iterator[tuple[str, Any]]:
    yield "empty", own[:0]
    yield "shorter", own[:-1]
    yield "longer", np.concatenate([own, own[-1:], own[-1:]])
    yield "with an axis more", own[None]
    yield "flat", own.ravel()
    yield "turned", own.T
    for kind in _TYPES:
        if own.dtype != kind:
            with np.errstate(all="ignore"):
                yield f"as {kind}", own.astype(kind)
    if own.size and own.dtype.kind in "iuf":
        for value in _FLOATS if own.dtype.kind == "f" else _INTEGERS:
            changed = own.copy().ravel()
            with np.errstate(all="ignore"):
                changed[rng.randrange(changed.size)] = np.array(value).astype(own.dtype)
            yield f"with {value}", changed.reshape(own.shape)


def text_changes(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield texts that are empty or cut off, or with a line or number changed."""
    yield "empty", ""
    yield "something else", "x"
    yield "twice", text + text
    yield "cut off", text[: rng.randrange(len(text) + 1)]
    lines = text.split("\n")
    for line in dict.fromkeys(one.partition("=")[0] for one in lines if "=" in one):
        at = rng.choice([k for k, one in enumerate(lines) if one.startswith(f"{line}=")])
        yield f"{line} dropped", "\n".join(lines[:at] + lines[at + 1 :])
        yield f"{line} twice", "\n".join([*lines[:at], lines[at], *lines[at:]])
        for value in rng.sample(_NUMBERS, 4):
            numbers = lines[at].partition("=")[2].split(" ")
            numbers[rng.randrange(len(numbers))] = value
            changed = f"{line}={' '.join(numbers)}"
            yield f"{line} with {value}", "\n".join([*lines[:at], changed, *lines[at + 1 :]])


# --- use ---------------------------------------------------------------------------------------


def use(path: Path, exports: Iterable[str] = registry.EXPORTS) -> None:
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
        *(lambda to=to: export_model(ranker, to, folder / to) for to in exports),
        lambda: ranker.save(path.parent / "again.rw"),
    ]
    for step in steps:
        with suppress(RankwrightError):
            step()
    shutil.rmtree(folder, ignore_errors=True)


def _explain_pair(ranker: Any, data: Any) -> None:
    if not getattr(ranker.model_, "looks_at_list", False):  # whose swaps take half a second
        str(rw.explain(ranker, data, query=data.qid[0], docs=[1, 2]))


ATTACK = Attack("model files of every family, sealed again", write, damage, use)
