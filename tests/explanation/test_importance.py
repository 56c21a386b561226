import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.explanation import explain
from rankwright.explanation.importance import importance
from rankwright.rankers.base import ranker

DATA = small_data(feature_names=["good", "fine", "c", "d", "e", "f"])
TREES = ranker("gbdt", n_estimators=20).fit(DATA)
LINEAR = ranker("listmle").fit(DATA)


@pytest.mark.parametrize("kind", ["gain", "split", "shap", "permutation"])
def test_trees_rely_on_the_features_that_made_the_grades(kind):
    found = importance(TREES, kind, data=DATA)
    assert set(list(found)[:2]) == {"good", "fine"}
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.parametrize("kind", ["shap", "permutation"])
def test_linear_models_too(kind):
    assert set(list(importance(LINEAR, kind, data=DATA))[:2]) == {"good", "fine"}


def test_a_feature_that_the_model_does_not_use_loses_nothing():
    fitted = ranker("gbdt", n_estimators=1, num_leaves=2).fit(DATA)
    used = max(importance(fitted, "split"), key=importance(fitted, "split").get)
    found = importance(fitted, "permutation", data=DATA)
    assert found.pop(used) > 0
    assert set(found.values()) == {0.0}


def test_sparse_data_lose_what_dense_data_lose():
    X = np.where(DATA.X > 0, DATA.X, 0.0)
    dense = RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row())
    thin = RankingData.from_arrays(sparse.csr_array(X), DATA.y, qid=DATA.query_of_row())
    fitted = ranker("gbdt", n_estimators=5).fit(dense)
    assert importance(fitted, data=thin, repeats=1) == importance(fitted, data=dense, repeats=1)


@pytest.mark.parametrize("kind", ["shap", "permutation"])
def test_columns_in_another_order_are_found_by_their_names(kind):
    names = [*reversed(DATA.feature_names), "more"]
    X = np.column_stack([DATA.X[:, ::-1], np.zeros(DATA.n_documents)])
    turned = RankingData.from_arrays(X, DATA.y, qid=DATA.query_of_row(), feature_names=names)
    assert importance(LINEAR, kind, data=turned) == importance(LINEAR, kind, data=DATA)


def test_an_error_metric_counts_what_it_gains():
    found = importance(LINEAR, "permutation", data=DATA, metric="pair_error")
    assert next(iter(found.values())) > 0.05


def test_a_function_is_a_metric_too():
    def top_grade(scores, grades):
        return grades[np.argmax(scores)]

    found = importance(LINEAR, "permutation", data=DATA, metric=top_grade)
    assert next(iter(found.values())) > 0.05
    own = ranker("listmle", metric=top_grade).fit(DATA)
    assert importance(own, "permutation", data=DATA) == found


@pytest.mark.parametrize(
    ("fitted", "kind", "sentence"),
    [
        (LINEAR, "gain", "only trees have importance by gain"),
        (TREES, "shap", "pass data="),
        (TREES, "chance", "one of gain, split, shap, permutation"),
    ],
)
def test_mistakes_are_reported(fitted, kind, sentence):
    with pytest.raises(UsageError, match=sentence):
        importance(fitted, kind)


def test_permutation_needs_grades():
    frame = pd.DataFrame(DATA.X, columns=DATA.feature_names)
    frame["qid"] = DATA.query_of_row()
    fitted = ranker("ranksvm").fit(frame.drop(columns="qid"), DATA.y, qid=frame["qid"])
    with pytest.raises(DataError, match="by permutation needs grades"):
        importance(fitted, "permutation", data=frame)
    assert len(importance(fitted, "shap", data=frame)) == DATA.n_features
    assert "grade" not in str(explain(fitted, frame, query=0))
