"""What any ranker must beat: chance, and the best single feature in its direction."""

import numpy as np
from scipy import sparse
from small_data import lists

from rankwright.comparison.baselines import best_feature, feature_scores, random_scores
from rankwright.data.ranking_data import RankingData

GRADES = np.array([2.0, 1.0, 0.0, 0.0, 1.0])
X = np.column_stack([np.ones(5), -GRADES, [0.0, 1.0, 2.0, 0.0, 1.0]])
DATA = RankingData.from_arrays(X, GRADES, group_sizes=[3, 2])


def test_a_feature_may_rank_best_from_the_bottom_up():
    assert best_feature(DATA) == (1, -1)
    assert best_feature(RankingData.from_arrays(-X, GRADES, group_sizes=[3, 2])) == (1, 1)


def test_of_equally_good_features_the_first_is_taken():
    same = RankingData.from_arrays(np.column_stack([GRADES] * 3), GRADES, group_sizes=[3, 2])
    assert best_feature(same) == (0, 1)


def test_missing_values_count_as_zero_in_dense_and_sparse_data():
    dense = RankingData.from_arrays(np.array([[np.nan], [-1.0]]), [0, 1], group_sizes=[2])
    thin = RankingData.from_arrays(sparse.csr_array([[0.0], [-1.0]]), [0, 1], group_sizes=[2])
    for data in (dense, thin):
        assert feature_scores(data, 0).tolist() == [0.0, -1.0]


def test_random_scores_depend_on_the_seed_alone():
    data = lists([0] * 50)
    first, again, other = (random_scores(data, seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert len(np.unique(first)) == 50
