"""Imported models go wherever trees go: every target is written, and verified by its evaluator."""

import numpy as np
import pytest
from other_models import CATEGORY, QID, SIZES, training_data

import rankwright as rw
from rankwright import registry
from rankwright.errors import UsageError
from rankwright.export import export_model, verify_export

X, Y = training_data()
X[:, 2] *= 1e38  # numbers that every target distinguishes


def _xgboost(categories=False):
    xgboost = pytest.importorskip("xgboost")
    types = ["c" if categories and j == CATEGORY else "q" for j in range(6)]
    data = xgboost.DMatrix(X, Y, feature_types=types, enable_categorical=True)
    data.set_group(SIZES)
    params = {"objective": "rank:ndcg", "max_depth": 3, "base_score": 0.25, "max_cat_to_onehot": 1}
    return xgboost.train(params, data, 6)


def _catboost():
    catboost = pytest.importorskip("catboost")
    params = {"loss_function": "QueryRMSE", "iterations": 6, "depth": 3, "nan_mode": "Max"}
    model = catboost.CatBoost({**params, "verbose": 0, "allow_writing_files": False})
    model.fit(catboost.Pool(X, Y, group_id=QID))
    model.set_scale_and_bias(0.5, 0.25)
    return model


@pytest.mark.parametrize("make", [_xgboost, _catboost])
@pytest.mark.parametrize("target", registry.EXPORTS)
def test_trees_of_other_libraries_go_to_every_target(make, target, tmp_path):
    if target == "onnx":
        pytest.importorskip("onnxruntime")
    folder = tmp_path / target
    export_model(rw.import_model(make()), target, folder)
    assert verify_export(folder).vectors > 50


def test_a_model_of_xgboost_goes_back_to_xgboost_bit_by_bit(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    booster = _xgboost()
    export_model(rw.import_model(booster), "xgboost-json", tmp_path / "back")
    again = xgboost.Booster(model_file=tmp_path / "back" / "model.json")
    again.feature_names = None
    data = xgboost.DMatrix(X, feature_types=["q"] * 6)
    theirs = booster.predict(data)
    again.feature_types = booster.feature_types
    np.testing.assert_array_equal(again.predict(data, output_margin=True), theirs)


@pytest.mark.parametrize("target", ["json", "c", "python"])
def test_categories_of_xgboost_go_where_sets_are_known(target, tmp_path):
    ranker = rw.import_model(_xgboost(categories=True))
    export_model(ranker, target, tmp_path / target)
    assert verify_export(tmp_path / target).vectors > 50


@pytest.mark.parametrize("target", ["lightgbm", "onnx", "ranklib", "xgboost-json"])
def test_categories_of_xgboost_are_refused_elsewhere(target, tmp_path):
    with pytest.raises(UsageError, match=r"categories.*json, c or python"):
        export_model(rw.import_model(_xgboost(categories=True)), target, tmp_path / target)
