"""Damaged models of CatBoost, and its categories, are refused in one sentence."""

import json

import numpy as np
import pytest
from cases import each
from other_models import refused, training_data

import rankwright as rw

catboost = pytest.importorskip("catboost")
X, Y = training_data()


def test_categories_of_catboost_are_refused():
    rows = [[float(x), str(int(k))] for x, k in np.nan_to_num(X[:, [0, 4]])]
    pool = catboost.Pool(rows, Y, cat_features=[1])
    model = catboost.CatBoost({"iterations": 3, "verbose": 0, "allow_writing_files": False})
    refused(lambda: rw.import_model(model.fit(pool)), "numeric features")


@each(
    "damage",
    [
        lambda m: m["oblivious_trees"][0]["leaf_values"].pop(),
        lambda m: m["oblivious_trees"][0]["leaf_weights"].pop(),
        lambda m: m["oblivious_trees"][0]["splits"][0].update(float_feature_index=77),
        lambda m: m["oblivious_trees"][0]["splits"][0].update(border=None),
        lambda m: m["features_info"]["float_features"][0].update(flat_feature_index=-3),
        lambda m: m["features_info"]["float_features"][0].update(nan_value_treatment="Perhaps"),
        lambda m: m.pop("scale_and_bias"),
        lambda m: m["oblivious_trees"][0]["leaf_values"].__setitem__(0, float("nan")),
    ],
)
def test_damaged_trees_of_catboost_are_refused(files, tmp_path, damage):
    found = json.loads((files / "catboost.json").read_text())
    damage(found)
    (tmp_path / "model.json").write_text(json.dumps(found))
    refused(lambda: rw.load_model(tmp_path / "model.json"), "CatBoost", "save it again")
