"""Sums of features that climb a measure: their values, the turning of measures, and the scale."""

import numpy as np
import pytest
from small_data import Onlooker, small_data

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.names import metric
from rankwright.models.feature_sum import FeatureSum

DATA = small_data(queries=10, documents=8)
RULES = {"weights": "running", "enqueue": True, "tolerance": 0.002, "max_selections": 5}


def fit(data=DATA, name="ndcg@10", watch=None, **params):
    watch = watch or Onlooker()
    return FeatureSum(**{**RULES, **params}).fit(metric(name), data, watch=watch), watch


def test_the_first_feature_is_the_best_one_alone():
    made, watch = fit(n_rounds=1)
    alone = [evaluate(DATA, DATA.X[:, f], "map")["map"] for f in range(6)]
    made, watch = fit(name="map", n_rounds=1)
    assert np.flatnonzero(made.coef).tolist() == [int(np.argmax(alone))]
    mean = max(alone)
    assert made.coef.max() == pytest.approx(0.5 * np.log((1 + mean) / (1 - mean)))
    assert watch.values == pytest.approx([-mean])


@pytest.mark.parametrize("name", sorted(registry.METRICS))
def test_any_measure_can_be_climbed(name):
    made, watch = fit(name=name, n_rounds=20)
    assert np.isfinite(made.coef).all()
    found = evaluate(DATA, made.scores(DATA.X), f"{name}")[name]
    sign = -1 if metric(name).maximise else 1
    assert sign * found == pytest.approx(watch.values[-1], abs=1e-9)


def test_a_feature_that_is_best_downwards_is_found_where_falling_is_allowed():
    turned = RankingData.from_arrays(-DATA.X, DATA.y, qid=DATA.query_of_row())
    plain, _ = fit(name="map", n_rounds=1)
    made, _ = fit(turned, name="map", n_rounds=1, falling=True)
    assert made.coef == pytest.approx(-plain.coef)


def test_in_units_of_deviation_the_scale_of_a_feature_does_not_matter():
    factor = np.array([1.0, 100.0, 0.01, 1.0, 5.0, 1.0])
    other = RankingData.from_arrays(DATA.X * factor, DATA.y, qid=DATA.query_of_row())
    a, b = fit(scale=True)[0], fit(other, scale=True)[0]
    np.testing.assert_allclose(a.scores(DATA.X), b.scores(other.X), rtol=1e-9)


def test_tied_values_count_as_the_mean_over_their_orders():
    tied = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], group_sizes=[2])
    _, watch = fit(tied, name="p@1", n_rounds=1)
    assert watch.values == pytest.approx([-0.5])


def test_going_on_keeps_what_was_learnt():
    first, _ = fit(n_rounds=1)
    more = FeatureSum(n_rounds=2, weights="running").fit(
        metric("ndcg@10"), DATA, watch=Onlooker(), start=first
    )
    assert (more.coef >= first.coef - 1e-12).all()
    assert more.coef.sum() > first.coef.sum()


def test_missing_values_are_refused_or_filled():
    X = DATA.X.copy()
    X[0, 0] = np.nan
    gaps = RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row())
    with pytest.raises(DataError, match="feature column 0 has missing values"):
        fit(gaps)
    made, _ = fit(gaps, missing="mean")
    assert np.isfinite(made.scores(X)).all()
