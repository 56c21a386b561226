"""``feature_importances_``: LightGBM's gain of trees, weights times deviations of linear models."""

import numpy as np
import pytest
from sklearn.feature_selection import SelectFromModel
from small_data import small_data

import rankwright as rw

DATA = small_data()
SCALE = np.array([1.0, 100.0, 0.01, 1.0, 1.0, 1.0])
SCALED = rw.RankingData.from_arrays(DATA.X * SCALE, DATA.y, qid=DATA.query_of_row())


@pytest.mark.parametrize("name", ["lambdamart", "gbdt"])
def test_of_trees_they_are_the_boosters_gain(name):
    fitted = rw.ranker(name, n_estimators=5).fit(DATA)
    expected = fitted.booster_.feature_importance("gain")
    np.testing.assert_array_equal(fitted.feature_importances_, expected)
    assert set(np.argsort(-expected)[:2].tolist()) == {0, 1}


def test_of_a_linear_model_they_are_weights_times_deviations_whatever_the_scale(tmp_path):
    fitted = rw.RankSVM().fit(SCALED)
    expected = np.abs(fitted.coef_) * SCALED.X.std(axis=0)
    np.testing.assert_allclose(fitted.feature_importances_, expected)
    plain = rw.RankSVM().fit(DATA)
    np.testing.assert_allclose(fitted.feature_importances_, plain.feature_importances_, rtol=1e-3)
    fitted.save(tmp_path / "model.rw")
    again = rw.load_model(tmp_path / "model.rw")
    np.testing.assert_array_equal(again.feature_importances_, fitted.feature_importances_)


def test_a_constant_feature_has_none():
    X = np.column_stack([DATA.X, np.full(DATA.n_documents, 7.0)])
    fitted = rw.RankSVM().fit(X, DATA.y, qid=DATA.query_of_row())
    assert fitted.feature_importances_[-1] == 0.0


def test_missing_values_count_as_what_stands_for_them():
    X = DATA.X.copy()
    X[::7, 0] = np.nan
    fitted = rw.RankSVM(missing="mean").fit(X, DATA.y, qid=DATA.query_of_row())
    whole = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    expected = np.abs(fitted.coef_) * whole.std(axis=0)
    np.testing.assert_allclose(fitted.feature_importances_, expected)


def test_other_models_have_none_and_say_what_does():
    fitted = rw.RankNet(epochs=1, hidden_layer_sizes=(2,)).fit(DATA)
    assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match=r"fits 'network'.*rankwright\.importance"):
        _ = fitted.feature_importances_


def test_scikit_learn_selects_features_by_them():
    fitted = rw.LambdaMART(n_estimators=5).fit(DATA)
    chosen = SelectFromModel(fitted, prefit=True, max_features=2, threshold=-np.inf)
    assert chosen.transform(DATA.X).shape[1] == 2
