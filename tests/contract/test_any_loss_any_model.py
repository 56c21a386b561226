"""The one idea: an algorithm is a loss x a model x a solver, and any loss goes with any model."""

import numpy as np
import pytest
from cases import each
from small_data import small_data

from rankwright import registry
from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss
from rankwright.metrics.evaluation import evaluate
from rankwright.models import Kernel, Linear
from rankwright.rankers.base import Ranker

DATA, VALID = small_data(), small_data(seed=1)
QUICK = {
    "additive": {"n_rounds": 30},
    "trees": {"n_estimators": 20},
    "forest": {"n_bags": 15},
    "linear": {},
    "kernel": {"l2": 0.1},
    "network": {"hidden_layer_sizes": (4,), "epochs": 8, "learning_rate": 0.1, "batch_size": 150},
}


def solver_for(name):
    """L-BFGS where the loss has a gradient of its own value; steps over queries elsewhere."""
    traits = loss(name).traits
    exact = traits.smooth and traits.integrable and not traits.stochastic
    return "lbfgs" if exact else "sgd"


@pytest.mark.parametrize("name", registry.LOSSES)
@each("model", QUICK)
def test_any_loss_goes_with_any_model(name, model):
    solver = {"solver": solver_for(name)} if model in ("linear", "kernel") else {}
    chosen = registry.resolve("models", model)(**QUICK[model])
    made = Ranker(loss=name, model=chosen, **solver).fit(DATA)
    chance = np.random.default_rng(0).random(VALID.n_documents)
    found, by_chance = (
        evaluate(VALID, scores, "ndcg@10")["ndcg@10"] for scores in (made.predict(VALID), chance)
    )
    assert found > by_chance + 0.1


# --- intercepts ------------------------------------------------------------------------------

LEVELLED = [
    ("squared", {}),
    *((name, {"calibration": 1.0}) for name in ("gbrank", "interval", "listmle")),
]


def of_two_features(seed, level):
    """Grades 2 + x1 + noise from 0 to 4, beside a feature x2 of mean ``level`` without effect."""
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(1000, 2)), np.repeat(np.arange(100), 10)
    y = np.clip(np.round(2 + X[:, 0] + 0.3 * rng.normal(size=1000)), 0, 4)
    return RankingData.from_arrays(X + np.array([0.0, level]), y, qid=qid)


@pytest.mark.parametrize("model", [Linear(), Kernel(kernel="linear", l2=1e-3)], ids=str)
@pytest.mark.parametrize(("name", "params"), LEVELLED)
def test_the_level_of_a_feature_does_not_change_the_ranking(name, params, model):
    chosen, train, test = loss(name, **params), of_two_features(0, 1.0), of_two_features(1, 1.0)
    assert not chosen.traits.shift_invariant
    scores = Ranker(chosen, model).fit(train).predict(test)
    level = Ranker(chosen, model).fit(of_two_features(0, 0.0)).predict(of_two_features(1, 0.0))
    apart = scores - level
    np.testing.assert_allclose(apart, apart.mean(), atol=0.02 * level.std())
    assert evaluate(test, scores, "ndcg@10")["ndcg@10"] > 0.985


@pytest.mark.parametrize("model", [Linear(), Kernel(l2=1e-3)], ids=["linear", "kernel"])
def test_the_level_of_the_grades_does_not_change_the_ranking(model):
    train, test = of_two_features(0, 0.5), of_two_features(1, 0.5)
    scores = Ranker("squared", model).fit(train).predict(test)
    higher = Ranker("squared", model).fit(train._replace(y=train.y + 5.0)).predict(test)
    apart = higher - scores
    np.testing.assert_allclose(apart, apart.mean(), atol=0.02 * scores.std())
