"""The bound on the area above the ROC curve, pair by pair."""

import numpy as np
import pytest

from rankwright.losses import loss
from rankwright.testing.contract import graded


def test_it_is_the_mean_hinge_over_pairs():
    s = np.array([0.5, 0.0, 2.0])
    hinges = [1 - (s[0] - s[1]), 1 - (s[0] - s[2])]  # of the relevant document and each other
    value = loss("rocarea_svm").bind(graded([[1, 0, 0]])).value(s)
    assert value == pytest.approx(sum(max(0.0, h) for h in hinges) / 2)


def test_it_is_at_least_the_share_of_pairs_in_the_wrong_order():
    rng = np.random.default_rng(0)
    bound = loss("rocarea_svm").bind(graded([[1, 1, 0, 0, 0]]))
    for s in rng.normal(size=(50, 5)):
        assert bound.value(s) >= (s[:2, None] < s[None, 2:]).mean() - 1e-12
