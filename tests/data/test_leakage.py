"""Features that look like outcomes: by words of their names, and by how well they tell grades."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from small_data import small_data

from rankwright.data import catalog
from rankwright.data.files import load
from rankwright.data.inspect import AGREEMENT, _agreements, inspect, outcome_word, warn_of_outcomes
from rankwright.data.ranking_data import RankingData
from rankwright.rankers.base import ranker


@pytest.mark.parametrize(
    "name", ["clicks", "n_clicks", "CTR", "totalClicks", "num-impressions", "DwellTime", "rating"]
)
def test_names_of_outcomes(name):
    assert outcome_word(name)


@pytest.mark.parametrize(
    "name",
    [
        *["bm25", "clickbait_title", "operating_margin", "electrical", "f12"],
        *["past_clicks", "ctr_last_30_days", "clicks_7d", "priorCTR", "overrated", "impressive"],
    ],
)
def test_names_that_are_none(name):
    assert outcome_word(name) is None


def named(data, column=None, name="extra"):
    X = data.X if column is None else np.column_stack([data.X, column])
    names = [f"x{number}" for number in range(data.n_features)] + [name] * (column is not None)
    return RankingData.from_arrays(X, data.y, qid=data.query_of_row(), feature_names=names)


def agreement_by_hand(data, column):
    values = data.X[:, column]
    won = pairs = 0.0
    for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        for i in range(begin, end):
            for j in range(begin, end):
                if data.y[i] > data.y[j]:
                    pairs += 1
                    won += 1.0 if values[i] > values[j] else 0.5 if values[i] == values[j] else 0.0
    return won / pairs


def test_the_agreement_of_sampled_pairs_is_near_that_of_all_pairs():
    data = small_data()
    found = _agreements(data)
    for column in range(data.n_features):
        assert found[column] == pytest.approx(agreement_by_hand(data, column), abs=0.05)
    wide = RankingData.from_arrays(sparse.csr_array(data.X), data.y, qid=data.query_of_row())
    assert _agreements(wide) == found


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_column_that_tells_the_grade_is_named(sign):
    data = small_data()
    noise = np.random.default_rng(1).normal(size=data.n_documents) * 0.3
    leaky = named(data, sign * (data.y + noise), "popularity")
    with pytest.warns(
        UserWarning, match=r"a feature looks like outcomes.*'popularity' \("
    ) as found:
        ranker("ranksvm").fit(leaky)
    assert "drop=['popularity']" in str(found[0].message)
    assert found[0].filename == __file__
    assert list(inspect(leaky).data[0].outcome_features) == ["popularity"]


def test_noise_missing_values_and_few_queries_are_no_leak():
    data = small_data()
    gaps = np.where(np.arange(data.n_documents) % 50 == 0, data.y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_outcomes(named(data))
        warn_of_outcomes(named(data, gaps))
        warn_of_outcomes(named(data, np.ones(data.n_documents)))
        few = small_data(queries=9)
        warn_of_outcomes(named(few, few.y))


def test_what_the_caller_names_as_a_feature_is_not_suspected_by_its_name():
    data = named(small_data(), np.ones(600), "clicks").to_frame()
    fitted = ranker("ranksvm").fit(data, "label", qid="qid", features=["x0", "clicks"])
    assert list(fitted.feature_names_in_) == ["x0", "clicks"]


def test_features_without_names_are_never_warned_of():
    data = small_data()
    ranker("ranksvm").fit(np.column_stack([data.X, data.y]), data.y, qid=data.query_of_row())


def test_the_digits_are_far_below_the_threshold():
    found = _agreements(load("digits"))
    assert max(max(share, 1 - share) for share in found.values()) < AGREEMENT - 0.2


@pytest.mark.parametrize("name", ["mq2008", "ohsumed", "ohsumed-raw", "pageblocks", "pendigits"])
def test_real_features_are_below_the_threshold(name, data_dir):
    assert name in catalog.descriptions()
    found = _agreements(load(name))
    assert max(max(share, 1 - share) for share in found.values()) < AGREEMENT - 0.05
