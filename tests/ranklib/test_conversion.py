"""Rankers of ours written for RankLib: the same ranking there, read back by the strict parser."""

import warnings

import numpy as np
import pytest

import rankwright
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.ranklib.conversion import ranker_of, save_ranklib, text_of
from rankwright.ranklib.model_text import parse_model_text, read_model_text

QUICK = {
    "gbdt": {"n_estimators": 5, "num_leaves": 4},
    "lambdamart": {"n_estimators": 5, "num_leaves": 4},
    "intervalrank": {"n_estimators": 5, "num_leaves": 4},
    "random_forest": {"n_bags": 3, "num_leaves": 4},
    "ranksvm": {},
    "coordinate_ascent": {"n_restarts": 1, "n_passes": 1},
    "linear_regression": {},
    "adarank": {"n_rounds": 5},
    "rankboost": {"n_rounds": 5},
    "listnet": {},
}


@pytest.fixture(scope="module")
def data():
    made = rankwright.synthetic("mq2008", queries=20, seed=3)
    X = np.asarray(made.X, np.float32)  # what a search engine hands to a model
    return RankingData.from_arrays(X, made.y, group_sizes=made.sizes)


def written(ranker):
    text = text_of(ranker).text()
    read = parse_model_text(text)
    assert read.text() == text
    return read


@pytest.mark.parametrize("name", QUICK)
def test_a_written_ranker_ranks_as_ours(data, name):
    ranker = rankwright.ranker(name, **QUICK[name]).fit(data)
    ours, theirs = ranker.predict(data), written(ranker).scores(data.X)
    if name == "listnet":
        theirs = np.log(theirs) - np.log1p(-theirs)  # RankLib's score is a sigmoid of ours
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", QUICK)
def test_a_written_ranker_comes_back_as_a_ranker(data, name):
    ranker = rankwright.ranker(name, **QUICK[name]).fit(data)
    back = ranker_of(written(ranker), n_features=data.n_features)
    assert text_of(back).body.text() == text_of(ranker).body.text()
    np.testing.assert_allclose(
        back.predict(data), text_of(ranker).scores(data.X), rtol=1e-5, atol=1e-6
    )


def test_settings_are_those_of_the_ranker(data, tmp_path):
    ranker = rankwright.ranker("lambdamart", n_estimators=3, num_leaves=4, learning_rate=0.2).fit(
        data
    )
    save_ranklib(ranker, tmp_path / "model.txt")
    model = read_model_text(tmp_path / "model.txt")
    assert dict(model.settings)["No. of leaves"] == "4"
    parameters = ranker_of(model).get_params()
    assert parameters["model__learning_rate"] == 0.2
    assert parameters["model__n_estimators"] == 3


def test_a_sigmoid_network_is_written_with_its_layers(data):
    pytest.importorskip("torch")
    ranker = rankwright.ranker("ranknet", hidden_layer_sizes=(4, 3), epochs=1).fit(data)
    theirs = written(ranker).scores(data.X)
    score = np.log(theirs) - np.log1p(-theirs)
    np.testing.assert_allclose(score, ranker.predict(data), rtol=1e-6, atol=1e-6)


def with_gaps(data, *, least=-np.inf):
    """The first feature is missing for what is relevant, and about 0 for the rest."""
    X = np.asarray(data.X, np.float64).copy()
    X[:, 0] = np.where(data.y > 0, np.nan, np.arange(len(X)) % 7 - 2.0)
    return RankingData.from_arrays(np.maximum(X, least), data.y, group_sizes=data.sizes)


@pytest.mark.parametrize("name", ["ranksvm", "gbdt"])
def test_missing_values_that_are_no_zeros_here_are_reported(data, tmp_path, name):
    options = {"missing": "mean"} if name == "ranksvm" else QUICK[name]
    ranker = rankwright.ranker(name, **options).fit(with_gaps(data))
    X = np.zeros((2, data.n_features))
    X[0, 0] = np.nan
    missing, zero = ranker.predict(X)
    assert missing != zero
    with pytest.warns(UserWarning, match="RankLib counts a missing value as 0, .* for feature 1"):
        save_ranklib(ranker, tmp_path / "model.txt")


def test_missing_values_that_are_zeros_here_need_no_word(data, tmp_path):
    rankers = [
        rankwright.ranker("ranksvm", missing="zero").fit(with_gaps(data)),
        rankwright.ranker("ranksvm").fit(data),  # refuses them
        rankwright.ranker("rankboost", n_rounds=5).fit(with_gaps(data, least=1.0)),
    ]  # of which the last has no threshold below 0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for ranker in rankers:
            save_ranklib(ranker, tmp_path / "model.txt")
    assert found == []


def test_a_model_that_ranklib_has_no_form_for_is_refused(data):
    ranker = rankwright.Ranker("ranknet", model="kernel").fit(data)
    with pytest.raises(UsageError, match="RankLib has no model like"):
        text_of(ranker)


def test_splits_on_categories_are_refused(data):
    X = np.asarray(data.X).copy()
    X[:, 0] = np.arange(len(X)) % 5
    grades = (X[:, 0] == 3) * 2.0
    with_categories = RankingData.from_arrays(X, grades, group_sizes=data.sizes)
    ranker = rankwright.ranker("gbdt", n_estimators=2, categorical_feature=[0], min_child_samples=1)
    with pytest.raises(UsageError, match="splits on categories"):
        text_of(ranker.fit(with_categories))
