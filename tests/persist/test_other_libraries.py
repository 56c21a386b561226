"""Files and objects of other libraries: what cannot be imported is refused in one sentence."""

import json
import random

import lightgbm
import numpy as np
import pytest
from other_models import NAMES, QID, refused, training_data

import rankwright as rw
from rankwright.errors import MissingExtraError, RankwrightError, UsageError
from rankwright.persist import runtime, xgboost_model

xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")
X, Y = training_data()


@pytest.mark.parametrize("name", ["model.txt", "model.json", "model.ubj", "catboost.json"])
def test_features_are_found_by_their_names(files, boosters, name):
    pd = pytest.importorskip("pandas")
    ranker = rw.load_model(files / name)
    assert list(ranker.feature_names_in_) == NAMES
    frame = pd.DataFrame(X[:, ::-1], columns=NAMES[::-1])
    np.testing.assert_array_equal(ranker.predict(frame), ranker.predict(X))
    ranker.save(files / "again.rw")
    assert list(rw.load_model(files / "again.rw").feature_names_in_) == NAMES


@pytest.mark.parametrize("name", ["model.txt", "model.json", "catboost.json"])
def test_the_small_runtime_takes_the_same_files(files, name):
    model = runtime.load(files / name)
    assert model.feature_names == tuple(NAMES)
    np.testing.assert_array_equal(model.scores(X), rw.load_model(files / name).predict(X))


def test_a_feature_without_a_name_has_none():
    booster = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(X, Y), 2)
    assert not hasattr(rw.import_model(booster), "feature_names_in_")


# --- refused -------------------------------------------------------------------------------------


def test_several_classes_are_refused():
    params = {"objective": "multiclass", "num_class": 4, "verbosity": -1}
    booster = lightgbm.train(params, lightgbm.Dataset(X, Y), 2)
    refused(lambda: rw.import_model(booster), "4 scores for each document")
    params = {"objective": "multi:softprob", "num_class": 4}
    booster = xgboost.train(params, xgboost.DMatrix(X, Y), 2)
    refused(lambda: rw.import_model(booster), "several scores")
    model = catboost.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False)
    refused(lambda: rw.import_model(model.fit(X, Y)), "several scores")


def test_what_has_no_trees_to_import_is_refused():
    whole = np.nan_to_num(X)
    linear = {"linear_tree": True, "verbosity": -1}
    booster = lightgbm.train(linear, lightgbm.Dataset(whole, Y, params=linear), 2)
    refused(lambda: rw.import_model(booster), "linear_tree")
    booster = xgboost.train({"booster": "gblinear"}, xgboost.DMatrix(whole, Y), 2)
    refused(lambda: rw.import_model(booster), "gblinear")
    booster = lightgbm.Booster({"verbosity": -1}, lightgbm.Dataset(X, Y))
    refused(lambda: rw.import_model(booster), "LightGBM", "no tree")


def test_objects_that_are_not_fitted_or_not_models_are_refused():
    for model in (lightgbm.LGBMRanker(), xgboost.XGBRanker(), catboost.CatBoostRanker()):
        refused(lambda m=model: rw.import_model(m), "not fitted")
    refused(lambda: rw.import_model(3), "not int")
    refused(lambda: rw.import_model("model.txt"), "load_model")
    ranker = xgboost.XGBRanker(n_estimators=2, missing=0.0).fit(X, Y, qid=QID)
    refused(lambda: rw.import_model(ranker), "0.0", "NaN")


def test_other_formats_of_the_libraries_say_which_to_save(boosters, tmp_path):
    boosters["catboost.json"].save_model(tmp_path / "model.cbm")
    refused(lambda: rw.load_model(tmp_path / "model.cbm"), "format='json'")
    (tmp_path / "dump.json").write_text(json.dumps(boosters["model.txt"].dump_model()))
    refused(lambda: rw.load_model(tmp_path / "dump.json"), "model.txt")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04K\x01.")
    refused(lambda: rw.load_model(tmp_path / "model.pkl"), "import_model")


def test_an_imported_model_is_not_fitted_again(files):
    with pytest.raises(UsageError, match="a model of XGBoost predicts and is not fitted again"):
        rw.load_model(files / "model.json").fit(X, Y, qid=QID)


def test_ubjson_needs_xgboost(files, monkeypatch):
    monkeypatch.setattr(xgboost_model, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"a model in UBJSON \(\.ubj\) needs xgboost"):
        rw.load_model(files / "model.ubj")


# --- damaged -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["model.txt", "model.json", "model.ubj", "catboost.json", "nested.json"]
)
def test_files_damaged_anywhere_score_or_are_refused(files, tmp_path, name):
    whole, draw = (files / name).read_bytes(), random.Random(name)
    path, outcomes = tmp_path / name, []
    for _ in range(12 if name.endswith(".ubj") else 120):  # XGBoost converts it in another process
        content = bytearray(whole)
        if draw.random() < 0.3:
            del content[draw.randrange(40, len(content)) :]
        else:
            for _ in range(draw.choice([1, 3, 20])):
                content[draw.randrange(len(content))] = draw.choice(b'09-.e,[]{}"\0\xffa1')
        path.write_bytes(content)
        try:
            with np.errstate(all="ignore"):
                ranker = rw.load_model(path)
                wide = np.zeros((9, ranker.n_features_in_))
                wide[1:4] = np.arange(3)[:, None]
                ranker.model_.scores(wide)
            outcomes.append("scored")
        except RankwrightError as error:
            outcomes.append("refused" if "\n" not in str(error) else "two lines")
    assert set(outcomes) == {"scored", "refused"}
