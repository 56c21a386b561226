import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from reproducibility.peers import contender


def line(grades):
    """One feature that rises with the grade."""
    y = np.repeat(np.array(grades, float), 4)
    X = np.column_stack(
        [y + np.tile([0.0, 0.1, 0.2, 0.3], len(grades)), np.tile([0.0, 1.0], 2 * len(grades))]
    )
    return RankingData.from_arrays(X, y, group_sizes=[len(y)])


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_a_binary_svm_ranks_by_its_margin(gamma):
    data = line([0, 1, 2])
    scores = contender("classifier_svm", min_grade=2.0, gamma=gamma, C=10.0).fit(data).predict(data)
    assert scores[data.y == 2].min() > 0.0 > scores[data.y < 2].max()


@pytest.mark.parametrize(("gamma", "sharpness"), [(None, 1.0), (0.1, 1.0), (None, 4.0)])
def test_an_svm_of_all_grades_ranks_by_the_expected_grade(gamma, sharpness):
    data = line([0, 1, 3])
    svm = contender("classifier_svm", gamma=gamma, C=10.0, sharpness=sharpness).fit(data)
    f = sharpness * svm.svm_.decision_function(data.X)
    p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(svm.predict(data), p @ [0.0, 1.0, 3.0])


def test_a_document_surely_of_the_lowest_grade_ranks_below_a_doubtful_one():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 2.0], 40)
    X = np.column_stack([y + rng.normal(0.0, 0.3, 120), rng.normal(size=120)])
    svm = contender("classifier_svm").fit(RankingData.from_arrays(X, y, group_sizes=[120]))
    asked = np.column_stack([[-1.0, -0.5, 0.0, 0.2], np.zeros(4)])
    assert (svm.svm_.predict(asked) == 0.0).all()
    scores = svm.predict(RankingData.from_arrays(asked, np.zeros(4), group_sizes=[4]))
    assert (np.diff(scores) > 0.0).all()


def test_where_training_has_one_class_all_scores_are_alike():
    data = line([0, 1])
    scores = contender("classifier_svm", min_grade=5.0).fit(data).predict(data)
    np.testing.assert_array_equal(scores, np.zeros(8))


def test_the_best_feature_of_train_ranks_test_in_its_own_direction():
    data = line([0, 1, 2])
    X = np.column_stack([np.ones(12), -data.X[:, 0]])
    train = RankingData.from_arrays(X, data.y, group_sizes=[12])
    found = contender("best_feature", metric="ndcg@5").fit(train)
    assert (found.feature_, found.sign_) == (1, -1)
    np.testing.assert_array_equal(found.predict(train), data.X[:, 0])
