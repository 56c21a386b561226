"""What every model must keep; one added to the registry is tested without a line here."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rankwright import registry
from rankwright.errors import ContractError
from rankwright.testing import check_model, model_checks

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


@pytest.mark.parametrize("check", model_checks("linear"), ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", registry.MODELS)
def test_every_model_keeps_what_models_promise(name, check):
    if name == "network":
        pytest.importorskip("torch")  # make test-lowest has the core's dependencies alone
    check(make(name))


# --- check_model tells -------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedFeature:
    n_features: int
    weight: float = 1.0

    def scores(self, X, *, n_jobs=None):
        return self.weight * np.ascontiguousarray(X[:, 0], np.float64)


@dataclass(frozen=True)
class FirstFeature:
    """A model without parameters to learn, as short as one can be."""

    def fit(self, loss, data, *, callback, start=None, random_state=0, n_jobs=None):
        fitted = FittedFeature(data.n_features)
        return self.shown(fitted, loss.bind(data).value(fitted.scores(data.X)), data, callback)

    def shown(self, fitted, value, data, callback):
        valid = None if callback.valid is None else fitted.scores(callback.valid.X)
        callback.on_iteration(1, value, fitted.scores(data.X), valid)
        return fitted


class Silent(FirstFeature):
    def shown(self, fitted, value, data, callback):
        return fitted


class Worst(FirstFeature):
    def shown(self, fitted, value, data, callback):
        return super().shown(FittedFeature(data.n_features, -1.0), value, data, callback)


class KeepsLast(FirstFeature):
    def shown(self, fitted, value, data, callback):
        for t in range(1, 6):
            valid = None if callback.valid is None else t * fitted.scores(callback.valid.X)
            callback.on_iteration(t, value, None, valid)
        return FittedFeature(data.n_features, 5.0)


@dataclass(frozen=True)
class Restless(FirstFeature):
    rng: Any = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def shown(self, fitted, value, data, callback):
        one = FittedFeature(data.n_features, float(self.rng.uniform(1, 2)))
        return super().shown(one, value, data, callback)


class Choosy:
    def fit(self, loss, data, *, callback, start=None, random_state=0, n_jobs=None):
        raise ContractError("no loss suits it.")


def test_a_model_of_ones_own_passes():
    check_model(FirstFeature())
    check_model("linear")


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (object(), "it has no method fit"),
        (Choosy(), "it refuses all of the losses ranknet, squared, .*: no loss suits it"),
        (Worst(), "model 'Worst' breaks the contract 'The model has fit.* its NDCG@10 on the tra"),
        (Restless(), "'The same random_state gives the same bits, .* the score of a second fit is"),
        (Silent(), "'The callback is shown every iteration .*': on_iteration was never called"),
    ],
)
def test_check_model_names_the_property_that_fails(broken, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_model(broken)


def test_a_model_that_keeps_another_iteration_or_goes_on_is_found():
    checks = {check.__name__: check for check in model_checks(KeepsLast())}
    with pytest.raises(ContractError, match="that shown for iteration 1"):
        checks["check_best_iteration"](KeepsLast())
    with pytest.raises(ContractError, match="it went on to iteration 5"):
        checks["check_stop"](KeepsLast())
