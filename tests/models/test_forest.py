"""Node arrays: joined, cut, scaled, restored; and refused where a row would be led astray."""

from dataclasses import replace

import numpy as np
import pytest
from forests import as_bytes, forest_of_splits
from small_data import small_data

from rankwright.errors import DataError
from rankwright.losses.squared import Squared
from rankwright.models.bagged_trees import mean_of
from rankwright.models.forest import Forest, node_means
from rankwright.models.forest_scoring import CATEGORY, EXACT_LEFT, NAN_LEFT
from rankwright.models.trees import Trees
from rankwright.rankers.fitting import last_model

DATA = small_data(queries=10, documents=20, features=3)
X = DATA.X


@pytest.fixture(scope="module")
def forest():
    category = np.arange(len(X)) % 4
    data = replace(DATA, X=np.column_stack([X[:, :2], category]), y=DATA.y + 2.0 * (category == 2))
    trees = Trees(n_estimators=6, num_leaves=5, min_child_samples=5, categorical_feature=[2])
    return last_model(trees.rounds(Squared(), data))


def test_trees_cut_and_joined_again_are_the_same(forest):
    assert forest.is_set.any()
    parts = [forest.select(0, 2), forest.select(2, 3), forest.select(3, 6)]
    joined = replace(parts[0].join(parts[1:]), n_rounds=6)
    assert as_bytes(joined) == as_bytes(forest)
    assert forest.select(0, 2).n_rounds == 2
    none = forest.select(0, 0)
    assert none.n_trees == 0
    assert (none.scores(X) == forest.offset).all()
    assert as_bytes(Forest.restore(none.arrays(), {}, 3)) == as_bytes(none)


def test_scaled_forests_and_means(forest):
    np.testing.assert_allclose(mean_of([forest] * 3).scores(X), forest.scores(X))
    odd = replace(forest, base=0.25, scale=3.0, is_mean=True)
    np.testing.assert_allclose(odd.as_sum().scores(X), odd.scores(X))
    np.testing.assert_allclose(odd.contributions(X).sum(1), odd.scores(X))


def test_the_running_scores_are_those_of_the_trees_one_by_one(forest):
    total = np.full(len(X), forest.offset)
    for number in range(forest.n_trees):
        total += replace(forest.select(number, number + 1), offset=0.0).scores(X)
    assert (forest.running_scores(X) == total).all()


def test_rules_score_by_hand():
    rules = Forest.of_rules(2, np.array([0, 1]), np.array([0.5, -np.inf]), np.array([2.0, -1.0]))
    rows = np.array([[0.0, 1.0], [1.0, np.nan], [np.nan, 0.0]])
    assert rules.scores(rows).tolist() == [-1.0, 2.0, -1.0]
    assert rules.is_rules
    assert rules.contributions(rows).tolist() == [[0, -1, 0], [2, 0, 0], [0, -1, 0]]
    assert rules.importance("gain").tolist() == [2.0, 1.0]


def test_what_lightgbm_has_no_rule_for_has_no_booster(forest):
    assert forest.booster.num_trees() == 6
    assert not hasattr(forest_of_splits([(0, 0.5, EXACT_LEFT, (1, 2))]), "booster")


def test_means_and_gains_by_node():
    left, right = np.array([1, -1, 3, -1, -1]), np.array([2, -1, 4, -1, -1])
    value, cover = np.array([0, 1.0, 0, 4.0, 7.0]), np.array([0, 3.0, 0, 1.0, 2.0])
    covers, means, gains = node_means(left, right, value, cover)
    assert covers.tolist() == [6, 3, 3, 1, 2]
    assert means.tolist() == [3.5, 1, 6, 4, 7]
    assert gains.tolist() == [1.5 * 25, 0, 2 / 3 * 9, 0, 0]


@pytest.mark.parametrize(
    ("left", "right", "sentence"),
    [
        ([1, 0, -1], [2, -1, -1], "without a child|cycle|parents"),
        ([1, -1, -1], [1, -1, -1], "two parents"),
        ([1, -1, -1], [9, -1, -1], "without a child"),
        ([1, -1], [2, -1, -1], "different lengths"),
    ],
)
def test_nodes_that_make_no_tree_are_refused(left, right, sentence):
    zeros = np.zeros(3)
    with pytest.raises(DataError, match=sentence):
        Forest.of_nodes(
            1,
            left=np.array(left),
            right=np.array(right),
            feature=np.zeros(3, int),
            threshold=zeros,
            rule=np.zeros(3, int),
            value=zeros,
            cover=zeros,
            gain=zeros,
        )


def test_a_split_on_a_set_that_is_not_there_is_refused():
    split = forest_of_splits([(0, 0.5, NAN_LEFT, (1, 2))])
    split.validate()
    with pytest.raises(DataError, match="damaged"):
        replace(split, rule=np.array([CATEGORY, 0, 0])).validate()
