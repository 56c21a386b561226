"""`check_loss` names the property that a loss breaks."""

import numpy as np
import pytest

from rankwright.errors import ContractError
from rankwright.losses import Traits, from_function, loss
from rankwright.testing import check_loss
from rankwright.testing.losses import check_difference


def squared(scores, grades):
    return 0.5 * float(((scores - grades) ** 2).sum()), scores - grades


def test_check_loss_takes_an_object_a_function_and_a_name():
    check_loss(loss("listnet"))
    check_loss("squared")
    check_loss(from_function(squared, convex=True))


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            from_function(lambda s, y: (squared(s, y)[0], 2 * (s - y)), name="double"),
            "loss 'double' breaks the contract 'The gradient is the derivative of the value': the "
            r"gradient is .* at row 0, and the finite difference of the value is",
        ),
        (
            from_function(lambda s, y: (-squared(s, y)[0], y - s), smooth=False, convex=True),
            "A convex loss lies below its chords and above its tangents': between two points",
        ),
        (from_function(squared, shift_invariant=True), "Adding a constant to the scores of a"),
        (
            from_function(squared, curvature=0.5),
            "it is 0.5, and finite differences give 1, so .*third",
        ),
        (
            from_function(lambda s, y: (0.5 * (s**2).sum(), s), name="blind"),
            "loss 'blind' breaks the contract 'From equal scores a step down the gradient puts "
            "better grades higher': the mean gradient is 0 at grade 0 and 0 at grade 2",
        ),
        (
            from_function(
                lambda s, y: ((np.exp(s) - y * s).sum(), np.exp(s) - y, np.exp(s)), name="exp"
            ),
            "'Scores of ten thousand give finite values, gradients and curvatures': (Runtime|Data)",
        ),
        (
            from_function(
                lambda s, y: (squared(s, y)[0] + s[0], s - y + np.eye(len(s))[0]), name="first"
            ),
            "loss 'first' breaks the contract 'The order of documents within a query changes",
        ),
    ],
)
def test_check_loss_names_the_property_that_fails(made, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_loss(made)


def test_check_loss_misses_what_a_trait_claims():
    class Claims:
        traits = Traits(stochastic=True)

        def bind(self, data, *, n_jobs=None):
            return from_function(squared).bind(data)

    with pytest.raises(ContractError, match=r"traits.stochastic is true, but"):
        check_loss(Claims())
    with pytest.raises(AssertionError, match="it has no method bind"):
        check_loss(object())


class Difference:
    """Squares as twice themselves less themselves; ``value`` and ``gradient`` put it out."""

    def __init__(self, value=1.0, gradient=1.0):
        self.factors = value, gradient

    def bind(self, data):
        self.y = data.y
        return self

    def _times(self, factors, s, out):
        value, out[:] = squared(s, self.y)
        out *= factors[1]
        return factors[0] * value

    def grad(self, s, out):
        return self._times(self.factors, s, out)

    def convex_part(self, s, out):
        return self._times((2.0, 2.0), s, out)

    def concave_part(self, s, out):
        return self._times((1.0, 1.0), s, out)


def test_a_difference_must_be_that_of_the_value_and_of_the_gradient():
    check_difference(Difference())
    with pytest.raises(ContractError, match=r"the difference is .* and the value is"):
        check_difference(Difference(value=1.001))
    with pytest.raises(ContractError, match=r"the difference of gradients is .* the gradient is"):
        check_difference(Difference(gradient=1.001))
