"""Squared error by hand: value, gradient and Hessian of a weighted query."""

import numpy as np
import pytest

from rankwright.losses import loss
from rankwright.testing.contract import graded


def test_value_gradient_and_curvature_are_those_of_a_weighted_sum():
    y, w, s = np.array([2.0, 0.0, 1.0]), np.array([1.0, 2.0, 0.5]), np.array([1.0, 1.0, 1.5])
    bound = loss("squared").bind(graded([y], sample_weight=w))
    grad, curv = np.empty(3), np.empty(3)
    assert bound.grad_curv(s, grad, curv) == pytest.approx(0.5 * (w * (s - y) ** 2).sum())
    assert grad == pytest.approx(w * (s - y))
    assert curv == pytest.approx(w)


def test_targets_take_the_place_of_grades():
    s, targets = np.zeros(3), np.array([0.0, 1.0, 5.0])
    bound = loss("squared", targets=tuple(targets)).bind(graded([[2, 0, 1]]))
    assert bound.value(s) == pytest.approx(0.5 * (5.0**2 + 0.0**2 + 1.0**2))
