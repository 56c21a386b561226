"""Weights of ranks, by each rule for the discount."""

from math import log2

import pytest

from rankwright.metrics.position import rank_weights


def test_the_discounts_by_hand():
    assert rank_weights("log2", 3) == pytest.approx([1 / log2(2), 1 / log2(3), 1 / log2(4)])
    assert rank_weights("letor", 3) == pytest.approx([1, 1, 1 / log2(3)])
    assert rank_weights("reciprocal", 3) == pytest.approx([1, 1 / 2, 1 / 3])


def test_a_table_is_shared_and_cannot_be_changed():
    assert rank_weights("log2", 3) is rank_weights("log2", 3)
    with pytest.raises(ValueError, match="read-only"):
        rank_weights("log2", 3)[0] = 0.0
