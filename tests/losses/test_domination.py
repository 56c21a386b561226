"""The domination loss: values by hand, margins, tiers, and what it refuses."""

from math import exp, log

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses import loss
from rankwright.losses.domination import Domination


def query(y, **more):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[len(y)], **more)


def value(made, y, s, **more):
    return made.bind(query(y, **more)).value(np.array(s, float))


def test_two_good_documents_over_two_others():
    first = log(1 + exp(1.0 - 2.0) + exp(0.5 - 2.0))
    second = log(1 + exp(1.0 - 0.0) + exp(0.5 - 0.0))
    assert value(Domination(), [1, 0, 1, 0], [2.0, 1.0, 0.0, 0.5]) == pytest.approx(
        (first + second) / 2
    )


def test_at_equal_scores_it_counts_the_dominated():
    """Figure 1.1 starts with Z = m, the number of relevant documents; here it is the others."""
    assert value(Domination(), [1] * 2 + [0] * 7, np.zeros(9)) == pytest.approx(log(1 + 7))


def test_with_three_grades_the_middle_one_dominates_and_is_dominated():
    s = {2: 0.3, 1: -0.2, 0: 0.7}
    top = log(1 + exp(s[1] - s[2]) + exp(s[0] - s[2]))
    middle = log(1 + exp(s[0] - s[1]))
    assert value(Domination(), [2, 1, 0], [0.3, -0.2, 0.7]) == pytest.approx((top + middle) / 2)


def test_a_margin_asks_for_a_lead_of_the_scaled_difference_of_grades():
    made = Domination(margin="linear", margin_scale=0.1)
    lead = 0.1 * (30 - 4)
    assert value(made, [30, 4], [2.0, 1.0]) == pytest.approx(log(1 + exp(1.0 - 2.0 + lead)))


@pytest.mark.parametrize(
    ("margin", "lead"), [("gain", 2.0**3 - 2.0**1), ((0.0, 0.5, 1.0, 4.0), 4.0 - 0.5)]
)
def test_margins_by_gain_and_by_table(margin, lead):
    assert value(Domination(margin=margin), [3, 1], [0.0, 0.0]) == pytest.approx(log(1 + exp(lead)))


def test_tiers_group_grades_and_margins_still_see_the_grades():
    y, s = [12, 11, 3, 0], [0.0, 1.0, 2.0, 3.0]
    two = Domination(tiers=(10.0,))
    assert value(two, y, s) == pytest.approx(value(Domination(), [1, 1, 0, 0], s))
    by_count = Domination(tiers=(10.0,), margin="linear", margin_scale=0.2)
    lead = [0.2 * (12 - 3), 0.2 * 12, 0.2 * (11 - 3), 0.2 * 11]
    first = log(1 + exp(2.0 + lead[0]) + exp(3.0 + lead[1]))
    second = log(1 + exp(1.0 + lead[2]) + exp(2.0 + lead[3]))
    assert value(by_count, y, s) == pytest.approx((first + second) / 2)


def test_a_grade_at_a_threshold_is_in_the_upper_tier():
    assert value(Domination(tiers=(2.0,)), [2, 1], [0.0, 0.0]) == pytest.approx(log(2))


def test_gaps_far_beyond_the_range_of_exp_cost_their_size():
    found = value(Domination(), [2, 1, 0], [0.0, -2000.0, -1000.0])
    assert found == pytest.approx((0.0 + 1000.0) / 2)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"margin": "grade"}, "margin must be linear, gain, a value per grade or None"),
        ({"margin_scale": -1.0}, "margin_scale must be 0 or more"),
        ({"tiers": (3.0, 1.0)}, "tiers must be rising thresholds"),
        ({"tiers": ()}, "tiers must be rising thresholds"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params, sentence):
    with pytest.raises(UsageError, match=sentence):
        loss("domination", **params).bind(query([1, 0]))
