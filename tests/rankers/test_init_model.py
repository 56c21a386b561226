"""``fit(init_model=...)`` continues a ranker or a model of LightGBM and refuses others."""

import lightgbm
import numpy as np
import pytest
from other_models import QID, SIZES, training_data

import rankwright as rw
from rankwright.errors import DataError, IncompatibleError, UsageError

X, Y = training_data()
NAMES = ["price", "page rank", "tiny", "age", "kind", "side"]


def _booster(names="auto"):
    data = lightgbm.Dataset(X, Y, group=SIZES, feature_name=names)
    return lightgbm.train({"objective": "lambdarank", "verbosity": -1}, data, 5)


def _more(**params):
    return rw.LambdaMART(n_estimators=4, **params)


def test_a_booster_of_lightgbm_is_continued():
    booster = _booster()
    ranker = _more().fit(X, Y, qid=QID, init_model=booster)
    assert ranker.model_.n_trees == 9
    first = ranker.booster_.predict(X, num_iteration=5)
    np.testing.assert_array_equal(first, booster.predict(X))
    assert ranker.score(X, Y, qid=QID) > rw.import_model(booster).score(X, Y, qid=QID)


def test_a_ranker_of_lightgbm_and_its_import_are_continued_alike():
    model = lightgbm.LGBMRanker(n_estimators=3, verbose=-1).fit(X, Y, group=SIZES)
    one = _more().fit(X, Y, qid=QID, init_model=model)
    two = _more().fit(X, Y, qid=QID, init_model=rw.import_model(model))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_trees_of_other_libraries_are_not_continued():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRanker(n_estimators=2).fit(X, Y, qid=QID)
    with pytest.raises(IncompatibleError, match="'trees' cannot continue from a model of XGBoost"):
        _more().fit(X, Y, qid=QID, init_model=model)


def test_another_kind_of_model_is_not_continued():
    with pytest.raises(IncompatibleError, match="'linear' cannot continue from a model of Light"):
        rw.ListNet().fit(np.nan_to_num(X), Y, qid=QID, init_model=_booster())
    linear = rw.ListNet().fit(np.nan_to_num(X), Y, qid=QID)
    with pytest.raises(IncompatibleError, match="'trees' cannot continue from a model 'linear'"):
        _more().fit(X, Y, qid=QID, init_model=linear)


@pytest.mark.parametrize("given", [3, "model.txt", "", object()])
def test_what_is_no_model_is_refused(given):
    with pytest.raises(
        UsageError, match=r"init_model is a fitted ranker or a fitted model of LightGBM"
    ):
        _more().fit(X, Y, qid=QID, init_model=given)


def test_other_features_are_refused():
    with pytest.raises(DataError, match="init_model has 6 features and the data 5"):
        _more().fit(X[:, :5], Y, qid=QID, init_model=_booster())
    pd = pytest.importorskip("pandas")
    booster = _booster([name.replace(" ", "_") for name in NAMES])
    frame = pd.DataFrame(X, columns=NAMES)
    assert _more().fit(frame, Y, qid=QID, init_model=booster).model_.n_trees == 9
    with pytest.raises(
        DataError, match="init_model has the feature 'price' in the place of 'side' in the data"
    ):
        _more().fit(frame[NAMES[::-1]], Y, qid=QID, init_model=booster)
