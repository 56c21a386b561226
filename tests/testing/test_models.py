"""`check_model` names the property that a model breaks."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rankwright.errors import ContractError
from rankwright.testing import check_model, model_checks


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
        (object(), "it has no method rounds"),
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
