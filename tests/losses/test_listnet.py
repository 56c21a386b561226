from math import exp, log, log2

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.listnet import ListNet


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def test_cross_entropy_between_the_softmax_of_grades_and_of_scores():
    y, s = np.array([2.0, 0.0, 1.0]), np.array([0.3, -0.2, 1.0])
    value, grad, curv = parts(ListNet(), query(y), s)
    p = softmax(s)
    assert value == pytest.approx(-softmax(y) @ np.log(p))
    assert grad == pytest.approx(p - softmax(y))
    assert curv == pytest.approx(p * (1 - p))


def test_it_is_least_where_scores_are_grades():
    y = np.array([2.0, 0.0, 1.0])
    _, grad, _ = parts(ListNet(), query(y), y + 5)
    assert grad == pytest.approx([0, 0, 0])


def test_gain_shares_are_parts_of_the_ideal_dcg():
    # grades 2, 0, 1: gains 3, 0, 1; ideal DCG = 3/log2(2) + 1/log2(3)
    s, ideal = np.array([0.3, -0.2, 1.0]), 3 + 1 / log2(3)
    value, grad, curv = parts(ListNet(target="gain"), query([2, 0, 1]), s)
    shares, p = np.array([3, 0, 1]) / ideal, softmax(s)
    assert value == pytest.approx(-shares @ np.log(p))
    assert grad == pytest.approx(4 / ideal * p - shares)
    assert curv == pytest.approx(4 / ideal * p * (1 - p))


def test_a_document_of_weight_zero_is_no_document_even_far_above_the_others():
    with_it = query([1, 0, 1], sample_weight=[1, 1, 0])
    value = parts(ListNet(), with_it, [0.5, 0.0, 900.0])[0]
    t, whole = exp(1) / (exp(1) + 1), log(exp(0.5) + 1)
    assert value == pytest.approx(t * (whole - 0.5) + (1 - t) * whole)


def test_an_unknown_target_is_refused():
    with pytest.raises(UsageError, match="target must be softmax or gain, not 'gains'"):
        ListNet(target="gains").bind(query([1, 0]))
