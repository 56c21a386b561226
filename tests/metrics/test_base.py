"""Metrics that are the caller's own functions."""

import pickle
from functools import partial

import lightgbm
import numpy as np
import pytest
from reference import metrics as twins
from small_data import small_data

import rankwright as rw
from rankwright.errors import DataError, IncompatibleError, UsageError
from rankwright.losses.lambdarank import LambdaRank
from rankwright.losses.position_svm import PositionSVM
from rankwright.metrics.base import Metric, from_function, metric, named_metrics
from rankwright.metrics.evaluation import Evaluator, evaluate

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


# --- label gain ------------------------------------------------------------------------------
# Gains given for each grade: LightGBM's own NDCG under ``label_gain``, and every way to say it.


GAINS = [0, 1, 5, 20]
DATA = small_data(queries=25, documents=12, grades=4)
OTHER = small_data(queries=25, documents=12, grades=4, seed=1)
GAIN_SCORES = np.random.default_rng(3).normal(size=DATA.n_documents)


@pytest.mark.parametrize("gains", [GAINS, [0, 0.5, 0.5, 2.25], [1, 2, 3, 4]])
def test_ndcg_is_that_of_lightgbm(gains):
    params = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [3, 10],
        "label_gain": gains,
        "verbose": -1,
        "num_threads": 1,
    }
    train = lightgbm.Dataset(
        DATA.X, DATA.y, group=DATA.sizes, init_score=GAIN_SCORES, params=params, free_raw_data=False
    )
    theirs = {one[1]: one[2] for one in lightgbm.Booster(params, train).eval_train()}
    for k in (3, 10):
        ours = rw.metric(f"ndcg@{k}", convention="lightgbm", label_gain=gains)
        (value,) = rw.evaluate(DATA, GAIN_SCORES, ours).values()
        assert value == pytest.approx(theirs[f"ndcg@{k}"], abs=1e-12)


def test_each_way_to_say_it_is_the_same():
    made = rw.metric("ndcg@5", label_gain=GAINS)
    assert repr(made) == "ndcg(gain=0:1:5:20)@5"
    assert rw.metric(repr(made)) == made
    assert rw.metric("ndcg(gain=0.5:2.25)") == rw.metric("ndcg", label_gain=(0.5, 2.25))
    found = [
        next(iter(rw.evaluate(DATA, GAIN_SCORES, metric, convention=convention).values()))
        for metric, convention in (
            (made, "standard"),
            ("ndcg(gain=0:1:5:20)@5", "standard"),
            ("ndcg@5", rw.Convention(gain=GAINS)),
        )
    ]
    assert found[0] == found[1] == found[2]
    assert found[0] != rw.evaluate(DATA, GAIN_SCORES, "ndcg@5")["ndcg@5"]


def test_the_usual_gains_written_out_change_nothing():
    both = rw.evaluate(DATA, GAIN_SCORES, "dcg@5,dcg(gain=0:1:3:7)@5,ndcg,ndcg(gain=0:1:3:7)")
    values = list(both.values())
    assert values[0] == values[1]
    assert values[2] == values[3]


def test_ties_are_averaged_over_gains_by_hand():
    found = rw.evaluate([2, 0, 1], [1.0, 1.0, 0.0], "dcg(gain=0:2:10)@2", group_sizes=[3])
    assert found["dcg(gain=0:2:10)@2"] == pytest.approx(5.0 + 5.0 / np.log2(3))


def test_lambdamart_trains_and_selects_with_them():
    fitted = rw.LambdaMART(n_estimators=4, label_gain=GAINS).fit(DATA, eval_set=OTHER)
    name = "ndcg(gain=0:1:5:20)@10"
    by_metric = rw.LambdaMART(n_estimators=4, metric=name).fit(DATA, eval_set=OTHER)
    np.testing.assert_array_equal(fitted.predict(DATA), by_metric.predict(DATA))
    assert fitted.evals_result_ == by_metric.evals_result_
    expected = rw.evaluate(DATA, fitted.predict(DATA), name)[name]
    assert fitted.score(DATA) == pytest.approx(expected)
    plain = rw.LambdaMART(n_estimators=4).fit(DATA)
    assert (plain.predict(DATA) != fitted.predict(DATA)).any()


def test_a_selection_metric_without_gains_stays_as_it_is():
    fitted = rw.LambdaMART(n_estimators=2, label_gain=GAINS, select_metric="map")
    assert list(fitted.fit(DATA, eval_set=OTHER).evals_result_["valid"]) == ["map"]


def test_model_files_keep_them(tmp_path):
    rw.LambdaMART(n_estimators=2, label_gain=GAINS).fit(DATA).save(tmp_path / "model.rw")
    assert list(rw.load_model(tmp_path / "model.rw").label_gain) == GAINS


@pytest.mark.parametrize(
    ("gains", "says"),
    [
        ([0, 2, 1, 3], "not fall as grades rise"),
        ([-1, 0, 1, 2], "0 or more"),
        ([], "an empty list"),
        (7, "a number for each grade"),
        (["a", "b"], "a number for each grade"),
        ([0, 1, float("inf"), float("inf")], "0 or more"),
    ],
)
def test_gains_that_make_no_sense_are_refused(gains, says):
    with pytest.raises(UsageError, match=says):
        rw.metric("ndcg@10", label_gain=gains)


def test_a_grade_without_a_gain_and_a_metric_without_gains_are_refused():
    with pytest.raises(DataError, match=r"grade 3 has no gain: there are 3 gains.*0 to 2"):
        rw.evaluate(DATA, GAIN_SCORES, rw.metric("ndcg", label_gain=[0, 1, 3]))
    with pytest.raises(DataError, match=r"grade 0\.5 has no gain"):
        rw.evaluate([0.5, 1], [1, 0], rw.metric("ndcg", label_gain=[0, 1]), group_sizes=[2])
    with pytest.raises(UsageError, match="map has no gain of a grade"):
        rw.LambdaMART(metric="map", label_gain=GAINS).fit(DATA)
