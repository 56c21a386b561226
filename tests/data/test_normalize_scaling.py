"""Scales learned on the training set, by hand and against scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.preprocessing import QuantileTransformer

from rankwright.data.normalize import GlobalZScore, Log, Quantile
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError

NAN = math.nan


def data_of(X, sizes):
    return RankingData.from_arrays(np.asarray(X, np.float64), None, group_sizes=sizes)


def test_global_zscore_uses_what_it_learned_on_train():
    train, test = data_of([[1.0, 5.0], [NAN, 5.0], [3.0, 5.0]], [2, 1]), data_of([[5.0, 6.0]], [1])
    fitted = GlobalZScore().fit(train)
    np.testing.assert_array_equal(fitted.mean, [2, 5])
    np.testing.assert_array_equal(fitted.scale, [math.sqrt(2), 1])
    np.testing.assert_allclose(fitted.transform(test).X, [[3 / math.sqrt(2), 1]])


def test_a_linear_model_on_global_zscores_folds_back_to_the_raw_features():
    rng = np.random.default_rng(0)
    data, w = data_of(rng.normal(3, 2, (20, 4)), [20]), rng.normal(size=4)
    fitted = GlobalZScore().fit(data)
    folded = data.X @ (w / fitted.scale) - (w / fitted.scale) @ fitted.mean
    np.testing.assert_allclose(folded, fitted.transform(data).X @ w)


@pytest.mark.parametrize("n_quantiles", [2, 7, 1000])
def test_quantile_agrees_with_scikit_learn(n_quantiles):
    rng = np.random.default_rng(1)
    train = np.column_stack([rng.normal(size=300), rng.poisson(1, 300), np.full(300, 2.0)])
    train[rng.random(train.shape) < 0.1] = NAN
    test = np.column_stack([rng.normal(0, 2, 50), rng.poisson(2, 50), np.full(50, 2.0)])
    peer = QuantileTransformer(n_quantiles=min(n_quantiles, 300), subsample=None).fit(train)
    fitted = Quantile(n_quantiles=n_quantiles).fit(data_of(train, [300]))
    ours = fitted.transform(data_of(test, [50])).X
    np.testing.assert_allclose(ours, peer.transform(test), atol=1e-12)


def test_quantile_sends_the_training_range_to_zero_and_one():
    train = data_of([[1.0], [2.0], [4.0]], [3])
    test = data_of([[-9.0], [1.0], [2.0], [3.0], [4.0], [9.0]], [6])
    ranks = Quantile().fit(train).transform(test).X
    np.testing.assert_array_equal(ranks.ravel(), [0, 0, 0.5, 0.75, 1, 1])


def test_log_is_odd_and_keeps_zero():
    data = data_of([[0.0], [math.e - 1], [1 - math.e], [NAN]], [4])
    np.testing.assert_allclose(Log().fit(data).transform(data).X.ravel(), [0, 1, -1, NAN])


@pytest.mark.parametrize("scale", [GlobalZScore(), Quantile()])
def test_data_of_another_width_is_refused(scale):
    fitted = scale.fit(data_of([[1.0, 2.0], [3.0, 4.0]], [2]))
    with pytest.raises(DataError, match="fitted on 2 features, but the data has 1"):
        fitted.transform(data_of([[1.0]], [1]))
