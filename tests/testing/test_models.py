"""`check_model` names the check that a model fails."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rankwright.errors import ContractError
from rankwright.models import Round
from rankwright.testing import check_model


@dataclass(frozen=True)
class FittedFeature:
    n_features: int
    weight: float = 1.0

    def scores(self, X, *, n_jobs=None):
        return self.weight * np.ascontiguousarray(X[:, 0], np.float64)


@dataclass(frozen=True)
class FirstFeature:
    """A model without parameters to learn; subclasses break one promise each."""

    def weights(self):
        return [1.0]

    def rounds(self, loss, data, valid=None, *, start=None, random_state=0, n_jobs=None):
        bound = loss.bind(data)
        for number, weight in enumerate(self.weights(), start=1):
            fitted = FittedFeature(data.n_features, weight)
            value = bound.value(fitted.scores(data.X))
            valid_scores = None if valid is None else fitted.scores(valid.X)
            yield Round(number, value, valid_scores, model=lambda fitted=fitted: fitted)


class WithoutRounds(FirstFeature):
    def weights(self):
        return []


class Reversed(FirstFeature):
    def weights(self):
        return [-1.0]


@dataclass(frozen=True)
class Unseeded(FirstFeature):
    rng: Any = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def weights(self):
        return [float(self.rng.uniform(1, 2))]


class WithoutScores(FirstFeature):
    def rounds(self, loss, data, valid=None, *, start=None, random_state=0, n_jobs=None):
        yield from super().rounds(loss, data)


class FromZero(FirstFeature):
    def rounds(self, loss, data, valid=None, *, start=None, random_state=0, n_jobs=None):
        for round_ in super().rounds(loss, data, valid):
            yield Round(0, round_.loss, round_.valid_scores, round_.model)


class LastModelOnly(FirstFeature):
    def weights(self):
        return [1.0, 2.0, 3.0]

    def rounds(self, loss, data, valid=None, *, start=None, random_state=0, n_jobs=None):
        latest = []
        for round_ in super().rounds(loss, data, valid):
            latest[:] = [round_.model()]
            yield Round(round_.number, round_.loss, round_.valid_scores, lambda: latest[0])


class ForgetsItsState(LastModelOnly):
    resumable = True

    def rounds(
        self, loss, data, valid=None, *, start=None, resume=None, random_state=0, n_jobs=None
    ):
        for round_ in FirstFeature.rounds(self, loss, data, valid):
            yield Round(round_.number, round_.loss, round_.valid_scores, round_.model, state=dict)
            if resume is not None:
                return


class TakesNoLoss(FirstFeature):
    def rounds(self, loss, data, valid=None, *, start=None, random_state=0, n_jobs=None):
        raise ContractError("no loss suits it.")


def test_an_own_model_passes():
    check_model(FirstFeature())
    check_model("linear")


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (object(), "it has no method rounds"),
        (TakesNoLoss(), "it refuses all of the losses ranknet, squared, .*: no loss suits it"),
        (Reversed(), "model 'Reversed' breaks the contract 'The model has rounds.* its NDCG@10"),
        (Unseeded(), "'The same random_state gives the same bits, .* the score of a second fit is"),
        (WithoutRounds(), "rounds yields no round"),
        (WithoutScores(), "'Rounds count from 1.*': round 1 has no scores of the validation data"),
        (FromZero(), r"the numbers of the rounds are \[0\], not 1, 2"),
        (LastModelOnly(), "'The model of a round, .* valid_scores of round 1"),
        (ForgetsItsState(), "'A run that is resumed .* the score of the resumed model"),
    ],
)
def test_check_model_names_the_check_that_fails(broken, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_model(broken)
