"""Damage models of LightGBM, XGBoost, CatBoost and RankLib: read and used, or refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import catboost
import lightgbm
import pandas
import xgboost
from attack_models import DATA, fitted, text_changes, use
from damage import Attack, mutated

from rankwright.ranklib.conversion import save_ranklib

IN_RANKLIB = ("additive", "coordinate_ascent", "feature_sum", "forest", "trees")


def write(folder: Path) -> Sequence[Path]:
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
    for family in IN_RANKLIB:
        paths.append(folder / f"ranklib-{family}.txt")
        save_ranklib(fitted(family), paths[-1])
    return paths


def damage(path: Path, target: Path, rng: random.Random) -> None:
    """Write a copy with a line or number changed, or with pieces put in or taken out."""
    content = path.read_bytes()
    if path.suffix == ".txt" and rng.random() < 0.6:
        _, text = rng.choice(list(text_changes(content.decode(), rng)))
        content = text.encode()
    else:
        content = mutated(content, rng)
    target.write_bytes(content)


ATTACK = Attack("models of other libraries", write, damage, use)
