"""What every model must keep; one added to the registry is tested without a line here."""

import pytest
from cases import each

from rankwright import registry
from rankwright.testing import model_checks

QUICK = {
    "additive": {"n_rounds": 15},
    "coordinate_ascent": {"n_restarts": 1},
    "expression": {"n_generations": 3, "population": 30},
    "factorization": {"n_rounds": 3},
    "feature_sum": {"n_rounds": 8},
    "forest": {"n_bags": 5},
    "network": {"hidden_layer_sizes": (4,), "epochs": 8, "learning_rate": 0.1, "batch_size": 60},
    "trees": {"n_estimators": 8, "num_leaves": 5},
}


def make(name):
    return registry.resolve("models", name)(**QUICK.get(name, {}))


@pytest.mark.parametrize("name", registry.MODELS)
@each("check", model_checks("linear"))
def test_every_model_keeps_what_models_promise(name, check):
    if name == "network":
        pytest.importorskip("torch")  # make test-lowest has the core's dependencies alone
    check(make(name))
