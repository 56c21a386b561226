"""Damage models of LightGBM, XGBoost, CatBoost and RankLib: what is read scores, or is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from damage import Attack, mutated
from small_data import small_data

import rankwright
from rankwright.ranklib.conversion import load_ranklib, save_ranklib

DATA = small_data(queries=8, documents=6, features=3)
RANKERS: dict[str, dict[str, Any]] = {
    "lambdamart": {"n_estimators": 2, "num_leaves": 4},
    "random_forest": {"n_bags": 2, "n_estimators": 1},
    "rankboost": {"n_rounds": 3},
    "adarank": {"n_rounds": 3},
    "coordinate_ascent": {"n_restarts": 1},
    "linear_regression": {},
}


def write(folder: Path) -> Sequence[Path]:
    """Save a model of each library and kind."""
    paths = list(_of_other_libraries(folder))
    for name, settings in RANKERS.items():
        paths.append(folder / f"{name}.ranklib")
        save_ranklib(rankwright.ranker(name, **settings).fit(DATA), paths[-1])
    return paths


def _of_other_libraries(folder: Path) -> Iterator[Path]:
    """Write models of LightGBM, XGBoost and CatBoost, the first two with categories."""
    import catboost
    import lightgbm
    import pandas
    import xgboost

    frame = pandas.DataFrame(DATA.X, columns=list("abc"))
    towns = pandas.Categorical([f"town {row % 3}" for row in range(len(frame))])
    frame["c"] = pandas.Series(towns)
    params = {"min_data_in_leaf": 1, "min_data_per_group": 1, "cat_smooth": 0, "verbosity": -1}
    lightgbm.train(params, lightgbm.Dataset(frame, DATA.y), 3).save_model(folder / "lightgbm.txt")
    yield folder / "lightgbm.txt"
    forest = {**params, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    lightgbm.train(forest, lightgbm.Dataset(frame, DATA.y), 3).save_model(folder / "forest.txt")
    yield folder / "forest.txt"
    matrix = xgboost.DMatrix(frame, DATA.y, enable_categorical=True)
    for ending, kind in (("json", "gbtree"), ("ubj", "dart")):
        booster = xgboost.train({"booster": kind, "max_cat_to_onehot": 1}, matrix, 3)
        booster.save_model(folder / f"xgboost.{ending}")
        yield folder / f"xgboost.{ending}"
    for policy in ("SymmetricTree", "Lossguide"):
        quiet = {"verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoost({"iterations": 3, "depth": 3, "grow_policy": policy, **quiet})
        path = folder / f"catboost-{policy}.json"
        model.fit(DATA.X, DATA.y).save_model(str(path), format="json")
        yield path


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy with some bytes changed."""
    target.write_bytes(mutated(path.read_bytes(), rng))


def use(path: Path) -> None:
    """Score, explain, save and load again."""
    if path.suffix == ".ranklib":
        model: Any = load_ranklib(path, n_features=3)
    else:
        model = rankwright.load_model(path)
    model.predict(DATA.X)
    saved = path.with_name("saved.rw")
    model.save(saved)
    loaded = rankwright.load_model(saved)
    loaded.predict(DATA.X)
    rankwright.explain(loaded, DATA, query=DATA.qid[0])


ATTACK = Attack("models of LightGBM, XGBoost, CatBoost and RankLib", write, damage, use)
