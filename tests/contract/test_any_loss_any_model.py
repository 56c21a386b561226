"""The one idea: an algorithm is a loss x a model x a solver, and any loss goes with any model."""

import numpy as np
import pytest
from cases import each
from small_data import small_data

from rankwright import registry
from rankwright.losses import loss
from rankwright.metrics.evaluation import evaluate
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
