"""Gains given for each grade: LightGBM's own NDCG under ``label_gain``, and every way to say it."""

import lightgbm
import numpy as np
import pytest
from small_data import small_data

import rankwright as rw
from rankwright.errors import DataError, UsageError

GAINS = [0, 1, 5, 20]
DATA = small_data(queries=25, documents=12, grades=4)
SCORES = np.random.default_rng(3).normal(size=DATA.n_documents)


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
        DATA.X, DATA.y, group=DATA.sizes, init_score=SCORES, params=params, free_raw_data=False
    )
    theirs = {one[1]: one[2] for one in lightgbm.Booster(params, train).eval_train()}
    for k in (3, 10):
        ours = rw.metric(f"ndcg@{k}", convention="lightgbm", label_gain=gains)
        (value,) = rw.evaluate(DATA, SCORES, ours).values()
        assert value == pytest.approx(theirs[f"ndcg@{k}"], abs=1e-12)


def test_each_way_to_say_it_is_the_same():
    made = rw.metric("ndcg@5", label_gain=GAINS)
    assert repr(made) == "ndcg(gain=0:1:5:20)@5"
    assert rw.metric(repr(made)) == made
    assert rw.metric("ndcg(gain=0.5:2.25)") == rw.metric("ndcg", label_gain=(0.5, 2.25))
    found = [
        next(iter(rw.evaluate(DATA, SCORES, metric, convention=convention).values()))
        for metric, convention in (
            (made, "standard"),
            ("ndcg(gain=0:1:5:20)@5", "standard"),
            ("ndcg@5", rw.Convention(gain=GAINS)),
        )
    ]
    assert found[0] == found[1] == found[2]
    assert found[0] != rw.evaluate(DATA, SCORES, "ndcg@5")["ndcg@5"]


def test_the_usual_gains_written_out_change_nothing():
    both = rw.evaluate(DATA, SCORES, "dcg@5,dcg(gain=0:1:3:7)@5,ndcg,ndcg(gain=0:1:3:7)")
    values = list(both.values())
    assert values[0] == values[1]
    assert values[2] == values[3]


def test_ties_are_averaged_over_gains_by_hand():
    found = rw.evaluate([2, 0, 1], [1.0, 1.0, 0.0], "dcg(gain=0:2:10)@2", group_sizes=[3])
    assert found["dcg(gain=0:2:10)@2"] == pytest.approx(5.0 + 5.0 / np.log2(3))


def test_lambdamart_trains_and_selects_with_them():
    fitted = rw.LambdaMART(n_estimators=4, label_gain=GAINS).fit(DATA, eval_set=DATA)
    name = "ndcg(gain=0:1:5:20)@10"
    by_metric = rw.LambdaMART(n_estimators=4, metric=name).fit(DATA, eval_set=DATA)
    np.testing.assert_array_equal(fitted.predict(DATA), by_metric.predict(DATA))
    assert fitted.evals_result_ == by_metric.evals_result_
    expected = rw.evaluate(DATA, fitted.predict(DATA), name)[name]
    assert fitted.score(DATA) == pytest.approx(expected)
    plain = rw.LambdaMART(n_estimators=4).fit(DATA)
    assert (plain.predict(DATA) != fitted.predict(DATA)).any()


def test_a_selection_metric_without_gains_stays_as_it_is():
    fitted = rw.LambdaMART(n_estimators=2, label_gain=GAINS, select_metric="map")
    assert list(fitted.fit(DATA, eval_set=DATA).evals_result_["valid"]) == ["map"]


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
    with pytest.raises(DataError, match=r"grade 3 has no gain: 3 gains are given.*0 to 2"):
        rw.evaluate(DATA, SCORES, rw.metric("ndcg", label_gain=[0, 1, 3]))
    with pytest.raises(DataError, match=r"grade 0\.5 has no gain"):
        rw.evaluate([0.5, 1], [1, 0], rw.metric("ndcg", label_gain=[0, 1]), group_sizes=[2])
    with pytest.raises(UsageError, match="map has no gain of a grade"):
        rw.LambdaMART(metric="map", label_gain=GAINS).fit(DATA)
