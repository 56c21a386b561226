"""A second tree engine: scikit-learn's decision trees under the boosting of `Trees`."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from forests import as_bytes
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.models.forest import Forest
from rankwright.models.forest_scoring import EXACT_LEFT, EXACT_RIGHT
from rankwright.models.trees import Trees
from rankwright.rankers.base import Ranker
from rankwright.rankers.fitting import last_model
from rankwright.testing import model_checks


class DecisionTrees:
    """Grows trees on gradient / curvature, weighted by the curvature."""

    def __init__(self, model: Trees, data: RankingData) -> None:
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        self._X, self._model = np.asarray(X, np.float32), model

    def begin(self, scores):
        self._scores = scores.copy()

    def grow(self, gradients, columns):
        loss_before, gradient, curvature = gradients(self._scores)
        weight = curvature.astype(np.float64)
        at = weight > 0.0
        target = np.divide(-gradient, weight, out=np.zeros(len(weight)), where=at)
        columns = np.arange(self._X.shape[1]) if columns is None else columns
        regressor = DecisionTreeRegressor(
            max_leaf_nodes=self._model.num_leaves,
            min_samples_leaf=self._model.min_child_samples,
            random_state=0,
        )
        regressor.fit(self._X[at][:, columns], target[at], sample_weight=weight[at])
        if regressor.tree_.node_count == 1:
            return loss_before, None
        tree = _forest_of(regressor.tree_, columns, self._X.shape[1], self._model.learning_rate)
        self._scores += tree.scores(self._X)
        return loss_before, tree


def _forest_of(tree, columns, n_features, rate):
    is_split = tree.children_left >= 0
    return Forest.of_nodes(
        n_features,
        left=tree.children_left,
        right=tree.children_right,
        feature=columns[np.where(is_split, tree.feature, 0)],
        threshold=tree.threshold,
        rule=np.where(tree.missing_go_to_left == 1, EXACT_LEFT, EXACT_RIGHT),
        value=rate * tree.value[:, 0, 0],
        cover=tree.weighted_n_node_samples,
        gain=np.where(is_split, tree.impurity * tree.weighted_n_node_samples, 0.0),
        shrinkage=rate,
    )


@dataclass(frozen=True, slots=True, repr=False)
class SklearnTrees(Trees):
    """`Trees` on scikit-learn's decision trees."""

    def engine(self, data, *, seed, n_jobs):
        return DecisionTrees(self, data)

    def can_continue(self, fitted):
        return isinstance(fitted, Forest)


MODEL = SklearnTrees(n_estimators=5, min_child_samples=5, learning_rate=0.3)
DATA, VALID = small_data(), small_data(seed=1)


@pytest.mark.parametrize("check", model_checks(MODEL), ids=lambda check: check.__name__)
def test_trees_of_another_engine_keep_what_every_model_promises(check):
    check(MODEL)


def test_a_ranker_selects_explains_and_continues_with_them():
    fitted = Ranker("ranknet", model=replace(MODEL, n_estimators=20)).fit(DATA, eval_set=VALID)
    assert fitted.score(VALID) > 0.8
    forest = fitted.model_
    np.testing.assert_allclose(forest.contributions(VALID.X).sum(1), forest.scores(VALID.X))
    half = Ranker("ranknet", model=MODEL).fit(DATA)
    more = Ranker("ranknet", model=MODEL).fit(DATA, init_model=half)
    whole = Ranker("ranknet", model=replace(MODEL, n_estimators=10)).fit(DATA)
    np.testing.assert_allclose(more.predict(VALID), whole.predict(VALID), atol=1e-9)


def test_threads_and_a_resumed_run_change_no_byte():
    made, model = loss("squared"), replace(MODEL, subsample=0.7)
    whole = list(model.rounds(made, DATA, VALID, n_jobs=1))
    states = [one.state() for one in model.rounds(made, DATA, VALID)]
    again = last_model(model.rounds(made, DATA, VALID, resume=states[1], n_jobs=2))
    assert as_bytes(again) == as_bytes(whole[-1].model())
    restored = SklearnTrees.restore(again.arrays(), {}, again.n_features)
    assert (restored.scores(VALID.X) == again.scores(VALID.X)).all()
