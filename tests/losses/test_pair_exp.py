"""Exponential loss on pairs: by hand, its tangent far out, and RankBoost's step."""

import math

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.losses import loss


def query(grades):
    return RankingData.from_arrays(np.zeros((len(grades), 1)), grades, group_sizes=[len(grades)])


def test_two_pairs_by_hand():
    bound = loss("pair_exp").bind(query([1, 0, 0]))
    s, grad = np.array([0.5, 0.0, 1.0]), np.empty(3)
    first, second = math.exp(0.0 - 0.5), math.exp(1.0 - 0.5)
    assert bound.grad(s, grad) == pytest.approx(first + second)
    assert grad == pytest.approx([-first - second, first, second])
    mean = loss("pair_exp", normalize=True).bind(query([1, 0, 0]))
    assert mean.value(s) == pytest.approx((first + second) / 2)


def test_far_out_the_loss_goes_on_along_its_tangent():
    bound = loss("pair_exp").bind(query([1, 0]))
    grad = np.empty(2)
    near, far = (bound.grad(np.array([0.0, gap]), grad) for gap in (600.0, 700.0))
    assert near == pytest.approx(math.exp(600.0))
    assert far == pytest.approx(math.exp(600.0) * (1 + 100))
    assert grad[1] == pytest.approx(math.exp(600.0))


def test_pair_by_pair_and_by_grade_agree():
    """A document far off, whose pairs are right, changes the way to add but not the others."""
    rng = np.random.default_rng(0)
    grades, s = rng.integers(0, 3, 20), rng.normal(size=20)
    bound = loss("pair_exp").bind(query([*grades, 3]))
    plain, apart = np.empty(21), np.empty(21)
    bound.grad(np.append(s, 500.0), plain)
    bound.grad(np.append(s, 1e4), apart)
    np.testing.assert_allclose(apart[:20], plain[:20], rtol=1e-12)


def test_rankboosts_step_is_half_the_log_odds_and_minimises_its_bound():
    step = loss("pair_exp").rule_step(8.0, -4.0)  # r = 1/2
    assert step == pytest.approx(0.5 * math.log(3.0))

    def bound(a):
        return 8.0 * ((1 - 0.5) / 2 * math.exp(a) + (1 + 0.5) / 2 * math.exp(-a))

    assert bound(step) == pytest.approx(8.0 * math.sqrt(1 - 0.25))
    assert bound(step) < min(bound(step - 0.01), bound(step + 0.01))
    assert loss("pair_exp").rule_step(8.0, 4.0) == -step
    assert math.isfinite(loss("pair_exp").rule_step(8.0, -8.0))
