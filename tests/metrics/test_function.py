"""Metrics that are the caller's own functions."""

import pickle
from functools import partial

import numpy as np
import pytest
from reference import metrics as twins
from small_data import small_data

from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.lambdarank import LambdaRank
from rankwright.losses.position_svm import PositionSVM
from rankwright.metrics.base import Metric
from rankwright.metrics.evaluation import Evaluator, evaluate
from rankwright.metrics.function import from_function
from rankwright.metrics.names import metric, named_metrics

Y = [2, 0, 1, 0, 3, 0]
SCORES = [0.9, 0.1, 0.2, 0.8, 0.4, 0.3]
QID = ["b", "a", "b", "a", "b", "c"]


def first_grade(scores, grades):
    return grades[np.argmax(scores)]


def ndcg_by_hand(scores, grades):
    value = twins.ndcg(grades[np.argsort(-scores, kind="stable")].tolist(), None)
    return 0.0 if value is None else value


def inversions(scores, grades):
    return sum(
        (scores[i] - scores[j]) * (grades[i] - grades[j]) < 0
        for i in range(len(scores))
        for j in range(i)
    )


def test_a_function_is_called_with_the_scores_and_grades_of_each_query():
    seen = []

    def remember(scores, grades):
        seen.append((scores.tolist(), grades.tolist()))
        return 0.0

    evaluate(Y, SCORES, remember, qid=QID)
    assert seen == [([0.9, 0.2, 0.4], [2, 1, 3]), ([0.1, 0.8], [0, 0]), ([0.3], [0])]


@pytest.mark.parametrize("give", [lambda f: f, from_function, lambda f: [f], metric])
def test_a_function_is_taken_wherever_a_metric_is(give):
    found = evaluate(Y, SCORES, give(first_grade), qid=QID)
    assert list(found) == ["first_grade"]
    assert found.per_query["first_grade"].tolist() == [2, 0, 0]
    assert found["first_grade"] == 2 / 3


def test_it_agrees_with_the_metric_that_it_writes_out():
    data = small_data(queries=30, documents=9, query_weight=np.arange(1, 31))
    scores = np.random.default_rng(0).normal(size=data.n_documents)
    bound = Evaluator(data, ["ndcg", ndcg_by_hand])
    found = bound(scores)
    np.testing.assert_allclose(*found.per_query.values(), rtol=1e-12)
    assert found["ndcg"] == pytest.approx(found["ndcg_by_hand"])
    assert bound.means(scores)["ndcg_by_hand"] == found["ndcg_by_hand"]


def test_a_mapping_names_its_metrics():
    found = evaluate(Y, SCORES, {"mine": first_grade, "theirs": "p@1"}, qid=QID)
    assert dict(found) == {"mine": 2 / 3, "theirs": 1 / 3}
    with pytest.raises(UsageError, match="there is no metric to compute"):
        named_metrics({})


def test_nan_leaves_a_query_out_and_queries_without_documents_are_never_asked():
    def graded_only(scores, grades):
        return first_grade(scores, grades) if grades.any() else np.nan

    found = evaluate(Y, SCORES, graded_only, qid=QID)
    np.testing.assert_array_equal(found.per_query["graded_only"], [2, np.nan, np.nan])
    assert found["graded_only"] == 2
    sized = evaluate(Y, SCORES, first_grade, group_sizes=[3, 0, 3])
    np.testing.assert_array_equal(sized.per_query["first_grade"], [2, np.nan, 0])


def test_no_convention_changes_it():
    one, other = (
        evaluate([0.9, 1.9], [1, 2], first_grade, group_sizes=[2], convention=name)
        for name in ("standard", "ranklib")  # which cuts grades to whole numbers
    )
    assert one["first_grade"] == other["first_grade"] == 1.9


def test_ties_are_the_functions_own_business():
    found = evaluate([0, 1, 2], [1, 1, 1], [first_grade], group_sizes=[3], convention="sklearn")
    assert found["first_grade"] == 0
    assert found.tie_intervals()["first_grade"] == (0, 0, 0)


def test_names_and_directions():
    error = from_function(inversions, maximise=False)
    assert (repr(error), error.maximise) == ("inversions", False)
    assert repr(from_function(inversions, name="wrong pairs")) == "wrong pairs"
    assert repr(from_function(lambda s, g: 0.0)) == "lambda"
    assert repr(from_function(partial(inversions))) == "partial"
    assert from_function(inversions) == from_function(inversions)
    assert isinstance(error, Metric)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert again == error


def test_names_are_mixed_and_two_of_one_name_are_refused():
    found = named_metrics(["ndcg@5,map", first_grade, metric("mrr")])
    assert list(found) == ["ndcg@5", "map", "first_grade", "mrr"]
    assert list(named_metrics([first_grade, first_grade])) == ["first_grade"]
    with pytest.raises(
        UsageError, match="two metrics are called 'lambda'; give a function another"
    ):
        named_metrics([lambda s, g: 0.0, lambda s, g: 1.0])
    with pytest.raises(UsageError, match="two metrics are called 'map'"):
        named_metrics(["map", from_function(first_grade, name="map")])


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            np.ones(2),
            r"the metric 'f' returned array\(\[1., 1.\]\) for query b; it must return one",
        ),
        (None, "returned None for query b"),
        ("0.5", "returned '0.5' for query b"),
    ],
)
def test_what_is_no_number_is_refused_with_the_query(value, sentence):
    with pytest.raises(DataError, match=sentence):
        evaluate(Y, SCORES, from_function(lambda s, g: value, name="f"), qid=QID)


def test_a_function_cannot_change_what_others_measure():
    def vandal(scores, grades):
        scores[:] = 0
        return 0.0

    with pytest.raises(ValueError, match="read-only"):
        evaluate(Y, SCORES, vandal, qid=QID)
    scores = np.array(SCORES)
    evaluate(Y, scores, first_grade, qid=QID)
    scores[0] = 1.0  # the caller's own stay writable


def test_what_is_no_metric_is_refused():
    with pytest.raises(UsageError, match="from_function takes a function, not 'ndcg'"):
        from_function("ndcg")
    with pytest.raises(UsageError, match="the name of a metric is a text, not ''"):
        from_function(first_grade, name="")
    with pytest.raises(UsageError, match="not the class NDCG"):
        from rankwright.metrics.ndcg import NDCG

        metric(NDCG)


@pytest.mark.parametrize("given", [first_grade, from_function(first_grade)])
def test_losses_that_ask_what_a_swap_changes_refuse_it(given):
    data = small_data(queries=3)
    with pytest.raises(
        IncompatibleError, match="swap of two documents changes; 'first_grade' does"
    ):
        LambdaRank(metric=given).bind(data)
    with pytest.raises(IncompatibleError, match="sum over ranks; 'first_grade' is not one"):
        PositionSVM(metric=given).bind(data)
