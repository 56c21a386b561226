"""`check_metric` names the property that a metric breaks."""

import pytest

from rankwright.errors import ContractError
from rankwright.metrics.base import metric
from rankwright.testing import check_metric


def first_is_best(scores, grades):
    return float(grades[scores.argmax()] == grades.max())


def test_check_metric_takes_a_name_an_object_and_a_function():
    check_metric("ndcg@5", convention="letor4")
    check_metric(metric("map"))
    check_metric(first_is_best)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            lambda s, y: -float(y[s.argmax()]),
            "'No order of the documents is better than that of their grades': grades in the order",
        ),
        (lambda s, y: float(y[0]), "better than that of their grades|order of rows changes"),
        (lambda s, y: "good", "DataError: the metric 'lambda' returned 'good' for query 0"),
    ],
)
def test_check_metric_names_the_property_that_fails(broken, sentence):
    with pytest.raises(ContractError, match=sentence):
        check_metric(broken)
