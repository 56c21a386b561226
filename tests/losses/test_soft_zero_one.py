"""The soft zero-one loss: by hand, and its limit."""

from math import exp

import numpy as np
import pytest

from rankwright.errors import UsageError
from rankwright.losses import SoftZeroOne


@pytest.mark.parametrize("lead", [-0.7, 0.0, 1.2])
def test_a_pair_by_hand(lead):
    wrong = 1 / (1 + exp(2.0 * lead))
    loss = SoftZeroOne(sigma=2.0)
    assert loss([lead, 0.0], [3, 1]) == pytest.approx(wrong)
    slope = 2.0 * wrong * (1 - wrong)
    assert loss.gradient([lead, 0.0], [3, 1]) == pytest.approx([-slope, slope])


def test_a_steep_loss_counts_the_pairs_in_the_wrong_order():
    s, y = np.array([5.0, 4.0, 3.0, 2.0, 1.0]), np.array([0, 2, 1, 1, 2])
    wrong = sum(y[i] > y[j] and s[i] < s[j] for i in range(5) for j in range(5))
    assert SoftZeroOne(sigma=100.0)(s, y) == pytest.approx(wrong)
    pairs = sum(y[i] > y[j] for i in range(5) for j in range(5))
    assert SoftZeroOne(sigma=100.0, normalize=True)(s, y) == pytest.approx(wrong / pairs)


def test_scores_far_apart_cost_at_most_one():
    for spread in (599.0, 601.0, 5000.0):
        assert SoftZeroOne()([0.0, spread], [1, 0]) == pytest.approx(1.0)
        assert SoftZeroOne()([spread, 0.0], [1, 0]) == pytest.approx(0.0)


def test_a_sigma_that_is_not_positive_is_refused():
    with pytest.raises(UsageError, match="sigma must be above 0, not 0"):
        SoftZeroOne(sigma=0.0)([1.0, 0.0], [1, 0])
