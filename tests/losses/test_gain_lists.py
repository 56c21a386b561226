"""What losses that aim at a sum over ranks know of each query, by hand."""

from math import log2

import numpy as np
import pytest

from rankwright.errors import IncompatibleError
from rankwright.losses.gain_lists import gain_lists, total_discount
from rankwright.testing.contract import graded


def test_gains_discounts_and_the_best_sum():
    lists = gain_lists("a loss", "dcg@2", graded([[0, 2, 1], [1, 0]]))
    assert lists.gain == pytest.approx([0, 3, 1, 1, 0])
    assert lists.discount[:2] == pytest.approx([1 / log2(2), 1 / log2(3)])
    assert lists.cut.tolist() == [2, 2]
    assert lists.best == pytest.approx([3 + 1 / log2(3), 1])


def test_a_metric_that_is_no_sum_over_ranks_is_refused():
    with pytest.raises(IncompatibleError, match="map"):
        gain_lists("a loss", "map", graded([[0, 1]]))


def test_a_fraction_of_a_rank_counts_as_a_fraction_of_its_discount():
    found = total_discount(np.array([0.0, 1.0, 2.5]))
    assert found == pytest.approx([0.0, 1 / log2(2), 1 / log2(2) + 1 / log2(3) + 0.5 / log2(4)])
