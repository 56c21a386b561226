"""RankCosine by hand, against NumPy's correlation, and in the limit that the paper has."""

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses import loss


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[len(y)], **arrays)


def value(s, y, **params):
    return loss("rank_cosine", **params).bind(query(y)).value(np.array(s, float))


def test_scores_along_the_targets_cost_nothing_and_against_them_one():
    assert value([2, 4, 0], [1, 2, 0], softening=1e-9) == pytest.approx(0)
    assert value([-2, -4, 0], [1, 2, 0], softening=1e-9) == pytest.approx(1)
    assert value([0, 0, 5], [1, 2, 0], softening=1e-9) == pytest.approx(0.5)  # a right angle


def test_softening_is_the_other_side_of_a_right_angle():
    assert value([3, 0], [1, 0], softening=4.0) == pytest.approx((1 - 3 / 5) / 2)
    assert value([0, 0], [1, 0], softening=4.0) == 0.5


def test_centred_it_is_the_correlation():
    rng = np.random.default_rng(0)
    s, y = rng.normal(size=9), np.array([0, 1, 2, 0, 1, 2, 3, 0, 1])
    expected = (1 - np.corrcoef(s, 2.0**y - 1)[0, 1]) / 2
    assert value(s, y, centred=True, targets="gain", softening=1e-9) == pytest.approx(expected)


def test_longer_scores_of_one_direction_cost_the_same_in_the_limit():
    s, y = [0.3, -1.0, 2.0], [1, 0, 2]
    short, long = (value(np.multiply(k, s), y, softening=1e-8) for k in (1.0, 100.0))
    assert short == pytest.approx(long, rel=1e-9)


def test_softening_of_nothing_is_refused():
    with pytest.raises(UsageError, match="rank_cosine's softening must be above 0, not 0"):
        loss("rank_cosine", softening=0).bind(query([0, 1]))
