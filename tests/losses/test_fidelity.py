"""The fidelity loss: by hand, between 0 and 1 for a pair, and what it refuses."""

import math

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses import loss


def pair(**params):
    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], group_sizes=[2])
    return loss("fidelity", **params).bind(data)


def test_a_pair_by_hand():
    assert pair().value(np.zeros(2)) == pytest.approx(1 - math.sqrt(1 / 2))
    lead = math.log(3.0)  # p = 3/4
    assert pair().value(np.array([lead, 0.0])) == pytest.approx(1 - math.sqrt(3 / 4))
    half = math.sqrt(0.75 * 0.9) + math.sqrt(0.25 * 0.1)
    assert pair(confidence=0.9).value(np.array([lead, 0.0])) == pytest.approx(1 - half)


def test_a_pair_costs_at_most_one_and_nothing_at_its_confidence():
    assert pair().value(np.array([-1e4, 1e4])) == pytest.approx(1.0)
    assert pair().value(np.array([1e4, -1e4])) == pytest.approx(0.0)
    grad = np.empty(2)
    sure = pair(confidence=0.75).grad(np.array([math.log(3.0), 0.0]), grad)
    assert sure == pytest.approx(0.0, abs=1e-15)
    assert grad == pytest.approx([0.0, 0.0], abs=1e-15)


def test_a_confidence_that_says_nothing_is_refused():
    with pytest.raises(UsageError, match=r"confidence must be above 0.5 and at most 1, not 0.5"):
        pair(confidence=0.5)
