import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.experiments.peers import contender


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


def test_an_svm_of_all_grades_ranks_by_the_grade_it_gives_and_then_by_margin():
    data = line([0, 1, 2])
    svm = contender("classifier_svm", gamma=2.0, C=100.0).fit(data)
    scores, given = svm.predict(data), svm.svm_.predict(data.X)
    np.testing.assert_array_equal(given, data.y)
    np.testing.assert_array_equal(np.rint(scores), given)
    margin = svm.svm_.decision_function(data.X)[:, 2][data.y == 2]
    np.testing.assert_array_equal(np.argsort(scores[data.y == 2]), np.argsort(margin))


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
