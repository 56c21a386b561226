from math import exp, log

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.listmle import ListMLE


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


def test_without_ties_it_is_the_likelihood_of_the_one_right_order():
    a, b, c = 0.3, -0.2, 1.0  # of grades 2, 0 and 1, so the order is a, c, b
    first = exp(a) / (exp(a) + exp(b) + exp(c))
    then = exp(c) / (exp(b) + exp(c))
    value = parts(ListMLE(), query([2, 0, 1]), [a, b, c])[0]
    assert value == pytest.approx(-log(first * then))


def test_tied_documents_are_each_drawn_from_all_not_above_them():
    a, b, c = 0.3, -0.2, 1.0  # a and b of grade 1, c of grade 0
    everything = exp(a) + exp(b) + exp(c)
    value = parts(ListMLE(), query([1, 1, 0]), [a, b, c])[0]
    assert value == pytest.approx(-log(exp(a) / everything) - log(exp(b) / everything))


def test_low_grades_far_below_the_best_document_still_count():
    # grade 0 lies 2000 below the best score, where exp underflows; among themselves 0 and 1 matter
    value, grad, _ = parts(ListMLE(), query([1, 0, 0]), [2000.0, 1.0, 0.0])
    tied = 2 * log(exp(1) + exp(0)) - 1 - 0
    assert value == pytest.approx(tied)
    share = exp(1) / (exp(1) + exp(0))
    assert grad == pytest.approx([0, 2 * share - 1, 2 * (1 - share) - 1])


def test_a_document_of_weight_zero_is_no_document_even_far_above_the_others():
    with_it = query([1, 0, 1], sample_weight=[1, 1, 0])
    assert parts(ListMLE(), with_it, [0.5, 0.0, 900.0])[0] == pytest.approx(
        parts(ListMLE(), query([1, 0]), [0.5, 0.0])[0]
    )


def test_calibration_adds_half_the_squared_error():
    plain = parts(ListMLE(), query([2, 0]), [5.0, 1.0])[0]
    value = parts(ListMLE(calibration=0.2, targets="gain"), query([2, 0]), [5.0, 1.0])[0]
    assert value - plain == pytest.approx(0.1 * ((5 - 3) ** 2 + 1))
    with pytest.raises(UsageError, match="calibration must be 0 or more"):
        ListMLE(calibration=-1).bind(query([1, 0]))
