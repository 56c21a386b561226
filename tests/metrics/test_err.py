"""ERR by hand, and grades above the highest."""

import pytest
from small_data import lists, value_of_ranking

from rankwright.errors import DataError
from rankwright.metrics.evaluation import evaluate


def test_a_reader_goes_on_where_the_documents_above_were_not_enough():
    stop = {grade: (2**grade - 1) / 2**2 for grade in (0, 1, 2)}
    by_hand = stop[1] / 1 + (1 - stop[1]) * (1 - stop[0]) * stop[2] / 3
    assert value_of_ranking("err(max=2)", 1, 0, 2) == pytest.approx(by_hand)
    assert value_of_ranking("err(max=2)@2", 1, 0, 2) == pytest.approx(stop[1])


def test_err_refuses_a_grade_above_the_highest_and_ranklib_lets_it_pass():
    data = lists([1, 0], [5, 0])
    with pytest.raises(
        DataError, match=r"query 1 has .* grade 5, above .* 4 .* write err\(max=5\)"
    ):
        evaluate(data, [1, 0, 1, 0], "err@10")
    assert evaluate(data, [1, 0, 1, 0], "err(max=5)@10")["err(max=5)@10"] == (1 + 31) / 32 / 2
    found = evaluate(data, [1, 0, 1, 0], "err@10", convention="ranklib")
    assert found["err@10"] == (1 + 31) / 16 / 2


def test_catboost_err_takes_the_grade_for_a_probability():
    found = evaluate(lists([0.8, 0.4]), [2, 1], "err", convention="catboost")
    assert found["err"] == pytest.approx(0.8 + 0.2 * 0.4 / 2)


def test_a_highest_grade_of_err_beyond_all_numbers_is_refused():
    with pytest.raises(DataError, match=r"grade 2000 has a gain of 2\^2000 - 1"):
        evaluate(lists([2, 0, 1]), [1, 2, 3], "err(max=2000)")
