import pytest

from rankwright.clicks import DCTR, GCTR, RCTR, ClickLog
from rankwright.errors import UsageError

LOG = ClickLog.from_arrays(
    ["a", "a", "b"],
    [1, 2, 1, 2, 1, 3],
    [1, 0, 1, 1, 0, 0],
    session_sizes=[2, 2, 2],
    weight=[1.0, 2.0, 4.0],
)


def test_rates_are_smoothed_clicks_of_impressions():
    assert GCTR().fit(LOG).parameters_["rate"].tolist() == [(5 + 1) / (14 + 2)]
    assert RCTR(smoothing=0.0).fit(LOG).parameters_["rate"].tolist() == [3 / 7, 2 / 7]
    model = DCTR().fit(LOG)
    frame = model.to_frame()
    assert list(zip(frame["query"], frame["document"], frame["rate"], strict=True)) == [
        ("a", 1, 4 / 5), ("a", 2, 3 / 5), ("b", 1, 1 / 6), ("b", 3, 1 / 6),
    ]  # fmt: skip


def test_what_was_not_in_the_log_has_a_rate_of_one_half():
    model = DCTR().fit(LOG)
    other = ClickLog.from_arrays(["a", "c"], [9, 1], [0, 0], session_sizes=[1, 1])
    assert model.click_probabilities(other).tolist() == [0.5, 0.5]
    deep = ClickLog.from_arrays(["a"], [1], [0], session_sizes=[1], position=[3])
    assert RCTR().fit(LOG).click_probabilities(deep).tolist() == [0.5]


def test_smoothing_is_checked():
    with pytest.raises(UsageError, match="smoothing must be 0 or more, not -1"):
        GCTR(smoothing=-1).fit(LOG)
