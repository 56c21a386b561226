"""A loss from a function of one query: what it is asked, and what it may return."""

import numpy as np
import pytest

from rankwright.errors import DataError, UsageError
from rankwright.losses import from_function
from rankwright.testing.contract import graded

DATA = graded([[1, 0], [2, 2], [0, 1, 3]], query_weight=np.array([1.0, 1.0, 2.0]))
S = np.array([0.5, 0.0, 9.0, 9.0, 1.0, 2.0, 3.0])


def squared(scores, grades):
    return 0.5 * ((scores - grades) ** 2).sum(), scores - grades


def test_the_value_is_the_weighted_sum_over_queries_that_have_an_order():
    bound = from_function(squared, curvature=3.0).bind(DATA)
    grad, curv = np.empty(7), np.empty(7)
    weight = np.array([1, 1, 0, 0, 2, 2, 2])
    assert bound.grad_curv(S, grad, curv) == pytest.approx(0.5 * (weight * (S - DATA.y) ** 2).sum())
    assert grad == pytest.approx(weight * (S - DATA.y))
    assert curv == pytest.approx(weight * 3.0)
    alone = np.empty(7)
    assert bound.grad(S, alone) == bound.value(S) > 0.0
    assert alone.tolist() == grad.tolist()
    assert bound.per_query.tolist() == pytest.approx([0.125, 0.0, 2 * 0.5 * (1 + 1 + 0)])


def test_a_gradient_of_another_length_is_refused():
    bound = from_function(squared).bind(DATA)
    for s, out in ((S, np.empty(8)), (S[:6], np.empty(7))):
        with pytest.raises(DataError, match="bound to 7 documents"):
            bound.grad(s, out)


def test_a_function_cannot_change_what_it_is_given():
    def spoils(scores, grades):
        scores[:], grades[:] = 7.0, 7.0
        return 0.0, np.zeros(len(scores))

    s = S.copy()
    from_function(spoils).bind(DATA).value(s)
    assert (s == S).all()
    assert DATA.y.tolist() == [1, 0, 2, 2, 0, 1, 3]


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (lambda s, y: 1.0, UsageError, "must return its value and gradient, .* returned float"),
        (lambda s, y: (1.0, s[:1]), UsageError, r"arrays of 2 for query 0 of 2 documents"),
        (lambda s, y: (np.nan, s), DataError, "a number that is not finite for query 0"),
    ],
)
def test_what_is_no_loss_is_refused_with_the_query(answer, error, sentence):
    with pytest.raises(error, match=sentence):
        from_function(answer).bind(DATA).value(S)


def test_a_gradient_that_is_not_that_of_the_value_is_found():
    from_function(squared, check=True).bind(DATA)
    with pytest.raises(UsageError, match="the gradient of double is not that of its value"):
        from_function(lambda s, y: (squared(s, y)[0], 2 * (s - y)), name="double", check=True).bind(
            DATA
        )
