"""Interpolated precision by hand; trec_eval: tests/differential/test_trec_eval.py."""

import pytest
from small_data import value_of_ranking

from rankwright.errors import UsageError
from rankwright.metrics.base import metric


def test_it_is_the_highest_precision_from_the_level_on():
    assert value_of_ranking("iprec@0.5", 0, 1, 1, 0) == 2 / 3
    assert value_of_ranking("iprec@0.5", 1, 0, 0, 1) == 1
    assert value_of_ranking("iprec@1", 1, 0, 0, 1) == 2 / 4


def test_without_a_level_it_is_the_mean_over_eleven():
    assert value_of_ranking("iprec", 1, 0, 0, 1) == pytest.approx((6 * 1 + 5 * 2 / 4) / 11)


@pytest.mark.parametrize("level", ["1.5", "-0.1"])
def test_a_level_that_is_no_share_is_refused(level):
    with pytest.raises(UsageError, match="recall must be a number from 0 to 1"):
        metric(f"iprec(recall={level})")
