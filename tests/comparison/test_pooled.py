"""Test queries of several folds: each counts once, with its weight, where a metric has a value."""

import json
import re

import numpy as np
import pytest
from scipy import stats
from small_data import small_data

import rankwright as rw
from rankwright.comparison.compare import compare
from rankwright.comparison.report import report_content, write_report
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold, k_folds
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.significance import bootstrap_interval, paired_t, randomisation

COLUMNS = {"first": "column:1", "second": "column:2"}


def noise(seed, queries=20, documents=6, **columns):
    """Data whose two features are independent of the grades: rankings by them are equally good."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    return RankingData.from_arrays(
        rng.random((n, 2)), rng.integers(0, 3, n), qid=np.repeat(np.arange(queries), documents),
        **columns,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folds():
    """Five-fold cross-validation three times: every query is tested three times."""
    data = noise(0)
    return [fold for seed in range(3) for fold in k_folds(data, 5, seed=seed)]


@pytest.fixture(scope="module")
def found(folds, tmp_path_factory):
    return compare(folds, COLUMNS, cache=tmp_path_factory.mktemp("cache"), metrics="ndcg@10,map")


def test_a_query_of_several_folds_counts_once(folds, found):
    data = noise(0)
    by_hand = evaluate(data, data.X[:, 0], "map")
    assert sorted(found.qid.tolist()) == list(range(20))
    order = np.argsort(found.qid.astype(int))
    np.testing.assert_allclose(found.per_query["first"]["map"][order], by_hand.per_query["map"])
    assert found.intervals["first"]["map"].mean == pytest.approx(by_hand["map"])
    values = [found.per_query[label]["map"] for label in COLUMNS]
    test = found.test("second", "map")
    assert test.p_value == randomisation(values[1], values[0]).p_value
    assert test.wins + test.ties + test.losses == 20
    assert found.fold_of_query.tolist() == sorted(found.fold_of_query)
    assert set(found.fold_of_query) == set(range(5))  # the first fold that tests it
    said = "20 test queries of 15 folds, each averaged over the folds that test it"
    assert said in found.about()
    assert said in found.to_latex()
    assert found.as_json()["averaged_over_folds"]


def test_values_that_differ_between_folds_are_averaged(tmp_path):
    data, rng = noise(1), np.random.default_rng(0)
    folds = [fold for seed in range(2) for fold in k_folds(data, 5, seed=seed)]
    scores = rng.random(sum(fold.test.n_documents for fold in folds))
    found = compare(folds, {"a": scores, "b": "column:1"}, cache=tmp_path, metrics="map")
    values, first = {}, 0
    for fold in folds:
        end = first + fold.test.n_documents
        metrics = evaluate(fold.test, scores[first:end], "map").per_query["map"]
        for qid, value in zip(fold.test.qid.tolist(), metrics, strict=True):
            values.setdefault(qid, []).append(value)
        first = end
    expected = [np.mean(values[qid]) for qid in found.qid.tolist()]
    np.testing.assert_allclose(found.per_query["a"]["map"], expected)


def test_repeated_folds_do_not_reject_a_true_null_too_often(tmp_path):
    """Counting each of five tests of a query as an independent one rejects in 38 % of runs."""
    rejected = []
    for seed in range(200):
        data = noise(seed, queries=20)
        fold = Fold(data, None, data)
        found = compare([fold] * 5, COLUMNS, cache=tmp_path, metrics="map", test="t")
        rejected.append(found.tests[0].p_value <= 0.05)
    assert 0.015 <= np.mean(rejected) <= 0.09


def test_the_report_and_plots_of_repeated_folds_have_each_query_once(folds, found, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    content = report_content(found)
    assert sorted(map(int, content["qid"])) == list(range(20))
    assert content["profile"]["queries"] == 20
    assert content["profile"]["documents"] == 120
    data = noise(0)
    for number, query in content["opened"].items():
        qid = int(content["qid"][int(number)])
        grades = data.y[data.indptr[qid] : data.indptr[qid + 1]]
        assert query["grades"] == grades.tolist()
    means = found.plot("metric_at_k", ks=[1, 3], metric="p").get_lines()[0].get_ydata()
    by_hand = evaluate(data, data.X[:, 0], "p@1,p@3")
    assert list(means) == pytest.approx([by_hand["p@1"], by_hand["p@3"]])


def test_one_id_for_different_queries_is_reported(tmp_path):
    folds = [Fold(part, None, part) for part in (noise(0), noise(1))]
    with pytest.warns(UserWarning, match="query '0' has other documents or grades in fold 2"):
        compare(folds, COLUMNS, cache=tmp_path, metrics="map")


def test_cross_validation_averages_a_query_of_several_folds():
    data = small_data(queries=12, documents=8)
    rows = [split for seed in range(2) for split in _splits(data, seed)]
    found = rw.cross_validate(rw.RankSVM(), data, cv=rows, metrics="map")
    once = [
        rw.cross_validate(rw.RankSVM(), data, cv=rows[:3], metrics="map"),
        rw.cross_validate(rw.RankSVM(), data, cv=rows[3:], metrics="map"),
    ]
    assert found.qid.tolist() == once[0].qid.tolist() == list(range(12))
    np.testing.assert_allclose(
        found.per_query["map"], np.mean([one.per_query["map"] for one in once], axis=0)
    )
    assert found.fold_of_query.tolist() == once[0].fold_of_query.tolist()
    assert len(found.to_frame("query")) == 12
    assert "12 queries tested in several folds" in str(found)
    assert "several" not in str(once[0])


def _splits(data, seed):
    qid = np.repeat(data.qid, data.sizes)
    return rw.QueryFolds(3, random_state=seed).split(qid, groups=qid)


# --- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("convention", ["standard", "xgboost"])
def test_weights_of_queries_count_as_in_evaluate(convention, tmp_path):
    weight = np.random.default_rng(2).lognormal(0, 1, 20)
    weight[3] = 0.0
    data = noise(2, query_weight=weight)
    data.y[data.indptr[5] : data.indptr[6]] = 0.0
    names = "ndcg@10,map,auc"
    found = compare(
        Fold(data, None, data), COLUMNS, cache=tmp_path, metrics=names, convention=convention
    )
    for label, column in (("first", 0), ("second", 1)):
        expected = evaluate(data, data.X[:, column], names, convention=convention)
        for name in found.metrics:
            interval = found.intervals[label][name]
            assert interval.mean == pytest.approx(expected[name])
            assert interval.low < interval.mean < interval.high
    a, b = (found.per_query[label]["map"] for label in ("second", "first"))
    test = found.test("second", "map")
    means = [found.intervals[label]["map"].mean for label in ("second", "first")]
    assert test.difference == pytest.approx(means[0] - means[1])
    assert test.p_value == randomisation(a, b, weight).p_value
    interval = bootstrap_interval(a, query_weight=weight, bounds=(0, 1))
    assert found.intervals["second"]["map"].low == interval.low
    assert "weighted by query_weight" in found.about()
    assert "test of weighted differences" in found.about()
    assert found.as_json()["weighted"]
    assert "weighted" in found.to_markdown()


def test_weighted_tests_are_those_of_weighted_differences():
    rng = np.random.default_rng(0)
    a, b, weight = rng.random(30), rng.random(30), rng.lognormal(0, 1, 30)
    d = weight * (a - b) / weight.mean()
    found = paired_t(a, b, weight)
    assert found.difference == pytest.approx(
        np.average(a, weights=weight) - np.average(b, weights=weight)
    )
    assert found.p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert rw.metrics.significance.wilcoxon(a, b, weight).p_value == pytest.approx(
        stats.wilcoxon(d).pvalue
    )
    signs = rng.choice([-1.0, 1.0], (20_000, 30))
    expected = np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12)
    assert randomisation(a, b, weight).p_value == pytest.approx(expected, abs=0.02)
    assert paired_t(a, b, np.full(30, 2.0)).p_value == pytest.approx(paired_t(a, b).p_value)


# --- metrics without a value for some queries ------------------------------------------------


def test_the_caption_says_how_many_queries_a_mean_is_over(tmp_path):
    data = noise(4)
    data.y[:] = np.tile([0.0, 1.0], 60)
    data.y[: data.indptr[3]] = 0.0  # no two grades: AUC has no value
    found = compare(Fold(data, None, data), COLUMNS, cache=tmp_path, metrics="ndcg@10,auc")
    said = "20 test queries of one fold (auc over 17), convention standard"
    assert said in found.about()
    assert said in found.to_latex()
    assert said in found.to_markdown()
    reported = found.as_json()["metrics"]["first"]
    assert (reported["ndcg@10"]["queries"], reported["auc"]["queries"]) == (20, 17)
    write_report(found, tmp_path / "report.html")
    assert said in re.sub(r"\s+", " ", (tmp_path / "report.html").read_text())
    assert found.to_frame(long=True)["queries"].tolist() == [20, 17, 20, 17]


def test_evaluations_and_cross_validation_say_so_too():
    data = noise(4, queries=12)
    data.y[:] = np.tile([0.0, 1.0], 36)
    data.y[: data.indptr[3]] = 0.0
    found = evaluate(data, data.X[:, 0], "ndcg@10,auc")
    assert found.counts == {"ndcg@10": 12, "auc": 9}
    lines = str(found).splitlines()
    assert lines[1] == f"  ndcg@10  {found['ndcg@10']:.4f}"
    assert lines[2] == f"  auc      {found['auc']:.4f}  over 9 queries"
    validated = rw.cross_validate(rw.RankSVM(), data, cv=3, metrics="ndcg@10,auc")
    lines = str(validated).splitlines()
    assert lines[1].endswith(")")
    assert lines[2].endswith(")  over 9 queries")


def test_one_query_or_none_with_a_value_has_no_interval_and_no_test(tmp_path):
    data = noise(5, queries=2)
    data.y[:] = 0.0
    data.y[0] = 1.0
    found = compare(Fold(data, None, data), COLUMNS, cache=tmp_path, metrics="ndcg@10,auc")
    cell = found.as_json()["metrics"]["first"]["auc"]
    assert (cell["low"], cell["high"], cell["queries"]) == (None, None, 1)
    assert cell["mean"] is not None
    assert found.test("second", "auc").p_value != found.test("second", "auc").p_value
    assert not found.test("second", "auc").significant
    assert "nan" not in str(found)
    for name in ("t.html", "t.json", "t.tex", "t.csv"):
        found.write(tmp_path / name)
    assert json.loads((tmp_path / "t.json").read_text())["tests"][1]["p_value"] is None
    assert "no interval" in (tmp_path / "t.html").read_text()
