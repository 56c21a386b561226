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


# --- top k -----------------------------------------------------------------------------------

GRADES = np.log([6.0, 4.0, 3.0])  # of A, B and C: their shares are proportional to 6, 4 and 3
F, H = np.log([4.0, 2.0, 3.0]), np.log([4.0, 6.0, 3.0])


@pytest.mark.filterwarnings("ignore:the highest grade is 200")
def test_the_probability_of_an_order_in_the_course_example():
    """P(ACB) = 4/9 x 3/5 = 0.27, where the grades leave no doubt that ACB is right."""
    sure = query([200.0, 0.0, 100.0])
    for k in (2, 3):  # the last document is no choice
        chance = exp(-parts(ListNet(k=k), sure, F)[0])
        assert chance == pytest.approx(4 / 9 * 3 / 5)
        assert round(chance, 2) == 0.27


def test_the_divergences_of_the_course_example():
    """D(P_y || P_f) = 0.10 and D(P_y || P_h) = 0.14, over all orders of three, in bits."""
    loss, data = ListNet(k=3), query(GRADES)
    own = parts(loss, data, GRADES)[0]
    assert round((parts(loss, data, F)[0] - own) / log(2), 2) == 0.10
    assert round((parts(loss, data, H)[0] - own) / log(2), 2) == 0.14


def test_the_first_of_k_ranks_is_top_one():
    y, s = np.array([2.0, 0.0, 1.0, 1.0]), np.array([0.3, -0.2, 1.0, 0.4])
    one = parts(ListNet(), query(y), s)[0]
    two = parts(ListNet(k=2), query(y), s)[0]
    after = 0.0  # top-one of the others, whoever came first
    for i in range(4):
        rest = np.arange(4) != i
        after -= softmax(y)[i] * softmax(y[rest]) @ np.log(softmax(s[rest]))
    assert two == pytest.approx(one + after)


def test_it_is_least_where_scores_are_grades_for_any_k():
    y = np.array([2.0, 0.0, 1.0, 0.0])
    for k in (2, 3, 9):
        assert parts(ListNet(k=k), query(y), y - 3)[1] == pytest.approx(np.zeros(4))


def test_many_drawn_orders_come_near_to_all():
    y, s = [2, 0, 1, 0, 1], np.array([0.5, 1.0, -0.4, 0.2, 0.9])
    exact = parts(ListNet(k=4), query(y), s)
    sampled = parts(ListNet(k=4, samples=20_000), query(y), s)
    assert sampled[0] == pytest.approx(exact[0], rel=0.005)
    np.testing.assert_allclose(sampled[1], exact[1], atol=0.02)


def test_each_round_draws_anew_and_comes_back():
    bound, s = ListNet(k=3, samples=2).bind(query([2, 0, 1, 0, 1, 1])), np.zeros(6)
    rounds = []
    for t in (4, 5, 4):
        bound.set_iteration(t)
        rounds.append(np.empty(6))
        bound.grad(s, rounds[-1])
    np.testing.assert_array_equal(rounds[0], rounds[2])
    assert (rounds[0] != rounds[1]).any()


@pytest.mark.filterwarnings("ignore:the highest grade is")
def test_a_document_far_above_leaves_the_others_exact():
    value = parts(ListNet(k=2), query([2000.0, 1.0, 0.0]), [2000.0, 0.5, 0.0])[0]
    t, whole = exp(1) / (exp(1) + 1), log(exp(0.5) + 1)
    assert value == pytest.approx(t * (whole - 0.5) + (1 - t) * whole)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (ListNet(k=0), "k must be 1 or more, not 0"),
        (ListNet(samples=-1), "samples must be 0 or more, not -1"),
        (ListNet(k=2, target="gain"), "k above 1 needs target='softmax'"),
        (ListNet(k=9), "k=9 visits too many orders of the 12 documents of query 0"),
    ],
)
def test_parameters_that_cannot_be_are_refused(loss, said):
    with pytest.raises(UsageError, match=said):
        loss.bind(query([1, 0] * 6))
