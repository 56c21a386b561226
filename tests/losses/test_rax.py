"""Losses that Rax has too, against its values and gradients.

The numbers are those of Rax 0.4.0 with JAX 0.10.2 in double precision.
"""

import numpy as np
import pytest

from rankwright import losses
from rankwright.losses import loss

SCORES = np.array([0.3, -1.2, 2.0, 0.5, -0.4, 1.1])
GRADES = [1, 0, 2, 3, 1, 0]
DISTINCT = [1, 0, 2, 3, 5, 4]
RATES = [0.2, 0.0, 1.0, 0.5, 0.1, 0.9]
RAX = {
    "softmax_loss": (
        "softmax", GRADES, 13.25274241702087,
        [-0.34214276487344075, 0.1467877902285924, 1.6010758963498963, -2.196491358540797,
         -0.6733177650433008, 1.4640882018790502],
    ),
    "unique_softmax_loss": (
        "unique_softmax", GRADES, 19.79917893884719,
        [0.2663222586993895, 0.35831385173532954, 2.3445186067410435, -6.196491358540797,
         -0.34655109193057254, 3.573887733295607],
    ),
    "listmle_loss": (
        "listmle", DISTINCT, 6.853845809846574,
        [0.28574003682849325, 0.28688738032678973, 1.5627136495336371, -0.6105597630811247,
         -0.9533311092919001, -0.5714501943158955],
    ),
    "pointwise_sigmoid_loss": (
        "sigmoid_cross_entropy", GRADES, 3.718993284545021,
        [-0.4255574831883411, 0.23147521650098235, -0.11920292202211757, -0.3775406687981455,
         -0.598687660112452, 0.7502601055951177],
    ),
    "pointwise_sigmoid_loss of rates": (
        "sigmoid_cross_entropy", RATES, 2.8589932845450208,
        [0.37444251681165897, 0.23147521650098235, -0.11920292202211757, 0.12245933120185448,
         0.301312339887548, -0.14973989440488245],
    ),
}  # fmt: skip


@pytest.mark.parametrize("function", RAX)
def test_values_and_gradients_are_those_of_rax(function):
    name, labels, value, gradient = RAX[function]
    assert loss(name)(SCORES, labels) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(loss(name).gradient(SCORES, labels), gradient, rtol=1e-11)


def test_position_aware_listmle_has_the_factors_of_the_paper():
    """alpha(r) = 2^(n - r) - 1 at rank r: 3, 1 and 0 of three documents; divided by their sum."""
    s, labels = np.array([0.3, -0.2, 1.0]), [2, 0, 1]  # the order is 0, 2, 1
    first = np.log(np.exp(s).sum()) - s[0]
    second = np.log(np.exp(s[1:]).sum()) - s[2]
    value = losses.ListMLE(position_aware=True)(s, labels)
    assert value == pytest.approx((3 * first + second) / 4)


def test_tied_documents_share_the_factors_of_their_ranks():
    s, labels = np.array([0.3, -0.2, 1.0]), [1, 1, 0]
    each = np.log(np.exp(s).sum()) - s[:2]
    assert losses.ListMLE(position_aware=True)(s, labels) == pytest.approx(each.sum() * 2 / 4)
    long = losses.ListMLE(position_aware=True)(np.zeros(2_000), np.arange(2_000))
    assert long == pytest.approx(np.log(2_000), abs=1e-3)  # half the weight is on the first rank
