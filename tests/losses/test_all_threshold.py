"""Every threshold between grades: the best thresholds against a fine grid."""

import numpy as np
import pytest

from rankwright.errors import UsageError
from rankwright.losses import loss
from rankwright.testing.contract import graded


def hinge(z, m):
    """(2) of the module."""
    return np.where(z < 0, m / 2 - z, np.where(z < m, (m - z) ** 2 / (2 * m), 0.0))


def test_each_threshold_is_the_best_there_is():
    y, s, m = np.array([0, 1, 2, 1, 0]), np.array([0.1, 0.0, 0.9, 1.2, -0.4]), 0.7
    grid = np.linspace(-3, 3, 60_001)[:, None]
    expected = sum(
        (hinge(s - grid, m) * (y > k) + hinge(grid - s, m) * (y <= k)).sum(axis=1).min()
        for k in (0, 1)
    )
    value = loss("all_threshold", margin=m).bind(graded([y])).value(s)
    assert value == pytest.approx(expected, abs=1e-7)


def test_scores_a_margin_apart_on_both_sides_of_a_threshold_cost_nothing():
    bound = loss("all_threshold", margin=1.0).bind(graded([[0, 1]]))
    assert bound.value(np.array([0.0, 2.0])) == pytest.approx(0.0, abs=1e-12)
    assert bound.value(np.array([0.0, 1.0])) > 0.0


def test_a_margin_must_be_positive():
    with pytest.raises(UsageError, match="margin must be above 0"):
        loss("all_threshold", margin=0.0).bind(graded([[0, 1]]))
