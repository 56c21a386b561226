"""Cross entropy over the first k ranks, against all orders of them."""

from itertools import permutations

import numpy as np
import pytest

from rankwright.losses import loss
from rankwright.testing.contract import graded


def log_chances(x, order):
    """Logarithms of the chances with which softmax samples an order, rank after rank."""
    left, found = list(range(len(x))), []
    for i in order:
        found.append(x[i] - np.log(np.exp(x[left]).sum()))
        left.remove(i)
    return found


def test_it_is_the_mean_cross_entropy_over_the_orders_that_the_grades_sample():
    y, s = np.array([2.0, 0.0, 1.0, 0.0]), np.array([0.3, 1.0, -0.5, 0.2])
    for k in (1, 2, 3):
        expected = 0.0
        for order in permutations(range(4), k):
            chance = np.exp(sum(log_chances(y, order)))
            expected -= chance * sum(log_chances(s, order))
        value = loss("listnet", k=k).bind(graded([y])).value(s)
        assert value == pytest.approx(expected, rel=1e-10), k


def test_scores_that_sample_as_the_grades_do_have_no_gradient():
    y = np.array([2.0, 0.0, 1.0, 0.0])
    grad = np.empty(4)
    loss("listnet", k=2).bind(graded([y])).grad(y + 5.0, grad)
    assert grad == pytest.approx(np.zeros(4), abs=1e-12)
