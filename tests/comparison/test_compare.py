"""Comparisons: the protocol, time, data, kills, tests against brute force."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module

import numpy as np
import pytest
from compared import QUICK, compare_module, count_fits, table
from scipy import stats
from small_data import small_data

import rankwright
from rankwright.comparison.auto import Candidate
from rankwright.comparison.compare import compare
from rankwright.data.files import save
from rankwright.data.ranking_data import RankingData
from rankwright.data.split import Fold, k_folds
from rankwright.errors import DataError, UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.significance import bootstrap_interval
from rankwright.rankers.base import Ranker, ranker

# --- what a comparison holds -------------------------------------------------------------------


def test_values_are_those_of_fitting_each_fold_by_hand(found, data):
    by_hand, qid = [], []
    for train, valid, test in k_folds(data, 3, seed=0):
        fitted = ranker("gbdt", n_estimators=5, metric="ndcg@10").fit(train, eval_set=valid)
        by_hand.append(evaluate(test, fitted.predict(test), "ndcg@10").per_query["ndcg@10"])
        qid.extend(test.qid)
    values = found.per_query["gbdt:n_estimators=5"]["ndcg@10"]
    np.testing.assert_array_equal(values, np.concatenate(by_hand))
    assert found.intervals["gbdt:n_estimators=5"]["ndcg@10"].mean == pytest.approx(values.mean())
    assert found.qid.tolist() == qid
    assert sorted(qid) == list(range(24))  # each query is tested once
    assert np.bincount(found.fold_of_query).tolist() == [8, 8, 8]


def first_grade(scores, grades):
    return grades[np.argmax(scores)]


def test_a_function_is_a_metric_too(data, tmp_path):
    found = rankwright.compare(
        data, "linear_regression,mr", metrics=["ndcg@10", first_grade], folds=3, cache=tmp_path
    )
    assert found.metrics == ("ndcg@10", "first_grade")
    for label in found.rankers:
        expected = [
            query.y[np.argmax(scores[query.rows])]
            for fold, scores in zip(found.folds, found.scores[label], strict=True)
            for query in fold.test.queries()
        ]
        np.testing.assert_array_equal(found.per_query[label]["first_grade"], expected)
    assert "first_grade" in str(found)


def test_rankers_of_parts_are_compared_and_kept_by_their_parameters(data, tmp_path, monkeypatch):
    parts = [
        rankwright.Ranker(
            loss=rankwright.losses.ListNet(k=k), model=rankwright.models.Linear(l2=l2)
        )
        for k, l2 in ((1, 0.1), (2, 0.1), (1, 0.2))
    ]
    first = compare(data, parts, folds=3, cache=tmp_path, jobs=1)
    assert (first.fits, first.failures) == (9, {})
    assert first.rankers[1] == "ranker:loss=ListNet(k=2):model=Linear(l2=0.1)"
    assert first.runs[first.rankers[1]][0].parameters["loss"] == rankwright.losses.ListNet(k=2)
    by_name = "named=ranker:loss=listnet:loss.k=2:model.l2=0.1"
    again = compare(data, [*parts, by_name], folds=3, cache=tmp_path, jobs=1)
    assert again.fits == 0
    np.testing.assert_array_equal(again.scores["named"][0], first.scores[first.rankers[1]][0])


def squared(scores, grades):
    return 0.5 * float(((scores - grades) ** 2).sum()), scores - grades


def test_what_holds_a_function_is_fitted_in_each_comparison(data, tmp_path):
    loss = rankwright.losses.from_function(squared, shift_invariant=False)
    given = ["squared=ranker:loss=squared:model=trees:model.n_estimators=3"]
    given.append(rankwright.Ranker(loss=loss, model=rankwright.models.Trees(n_estimators=3)))
    found = compare(data, given, select=first_grade, folds=3, cache=tmp_path)
    assert found.fits == 6
    for ours, own in zip(*found.scores.values(), strict=True):
        np.testing.assert_allclose(ours, own, rtol=1e-9)
    assert compare(data, given, folds=3, cache=tmp_path).fits == 6  # another metric selects
    assert compare(data, given, folds=3, cache=tmp_path).fits == 3  # the function's alone


def test_p_values_are_adjusted_by_holm_within_a_metric(found):
    def step_down(p):
        """Holm, in the words of the textbook: reject while p_(i) <= level / (m - i + 1)."""
        order = sorted(range(len(p)), key=lambda i: p[i])
        adjusted = [0.0] * len(p)
        for rank, i in enumerate(order):
            adjusted[i] = max(min(1.0, (len(p) - r) * p[order[r]]) for r in range(rank + 1))
        return adjusted

    for metric in found.metrics:
        tests = [test for test in found.tests if test.metric == metric]
        assert len(tests) == 2
        expected = step_down([test.p_value for test in tests])
        assert [test.adjusted for test in tests] == pytest.approx(expected)


def test_p_values_count_sign_flips_as_brute_force_does(cache):
    """Ten queries have 1,024 ways to swap sides; all are tried."""
    data = small_data(queries=10, documents=8, seed=3)
    found = compare(data, "ranksvm,gbdt:n_estimators=1:num_leaves=2:min_child_samples=1", folds=3,
                    cache=cache, metrics="map")  # fmt: skip
    (test,) = found.tests
    gain = found.per_query[test.ranker]["map"] - found.per_query[test.baseline]["map"]
    signs = np.array(np.meshgrid(*[[1, -1]] * 10)).reshape(10, -1)
    means = gain @ signs / 10
    beyond = min((means >= gain.mean() - 1e-14).mean(), (means <= gain.mean() + 1e-14).mean())
    assert test.p_value == pytest.approx(min(1.0, 2 * beyond))


def test_intervals_are_those_of_the_values(found):
    values = found.per_query["ranksvm"]["map"]
    interval = found.intervals["ranksvm"]["map"]
    expected = bootstrap_interval(values, bounds=(0, 1), seed=0)
    assert (interval.low, interval.high) == (expected.low, expected.high)
    assert interval.mean == pytest.approx(values.mean())


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("t", lambda a, b: stats.ttest_rel(a, b).pvalue),
        ("wilcoxon", lambda a, b: stats.wilcoxon(np.round(a - b, 12)).pvalue),
    ],
)
def test_t_and_wilcoxon_are_scipys(test, expected, data, cache):
    found = compare(data, QUICK, folds=3, cache=cache, test=test, correction=None)
    assert len(found.tests) == 2 * 4
    for one in found.tests:
        a, b = (found.per_query[label][one.metric] for label in (one.ranker, one.baseline))
        assert one.p_value == pytest.approx(expected(a, b))
        assert one.adjusted == one.p_value
    assert found.test_name == test
    assert "no correction" in found.about()


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_all_pairs_are_tested_and_corrected_together(correction, data, cache):
    found = compare(
        data, QUICK, folds=3, cache=cache, baseline="all", test="t", correction=correction,
        metrics="ndcg@10,map",
    )  # fmt: skip
    a, b, c = QUICK
    for metric in found.metrics:
        tests = [test for test in found.tests if test.metric == metric]
        assert [(test.ranker, test.baseline) for test in tests] == [(b, a), (c, a), (c, b)]
        p = [test.p_value for test in tests]
        if correction == "bh":
            expected = stats.false_discovery_control(p)
        else:
            order = np.argsort(p)
            steps = np.maximum.accumulate(np.array(p)[order] * [3, 2, 1])
            expected = np.minimum(1.0, steps[np.argsort(order)])
        assert [test.adjusted for test in tests] == pytest.approx(expected)
    there, back = found.test(c, "map", b), found.test(b, "map", c)
    assert there.difference == -back.difference
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert found.test(a, "map", a) is None
    assert found.baseline == a


# --- time --------------------------------------------------------------------------------------


def test_seconds_hold_no_warm_up(data, tmp_path, monkeypatch):
    """The first fit of a process takes 100 s longer by this clock, as if it had to compile."""
    clock = [0.0]
    original = Ranker.fit

    def slow_at_first(self, *args, **more):
        clock[0] += 1.0 if clock[0] else 101.0
        return original(self, *args, **more)

    monkeypatch.setattr(Ranker, "fit", slow_at_first)
    monkeypatch.setattr(compare_module, "_warm", set(), raising=False)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    found = compare(data, "gbdt:n_estimators=3", folds=3, cache=tmp_path, jobs=1)
    assert [run.seconds for run in found.runs["gbdt:n_estimators=3"]] == [1.0, 1.0, 1.0]


def test_a_warm_up_ends_after_two_rounds_and_changes_nothing(data, tmp_path, monkeypatch):
    rounds = []
    original = compare_module._end_soon

    def spy(t, text):
        rounds.append(t)
        original(t, text)

    monkeypatch.setattr(compare_module, "_warm", set())
    monkeypatch.setattr(compare_module, "_end_soon", spy)
    state = np.random.RandomState(3)
    given = {"a": ranker("gbdt", n_estimators=20, subsample=0.5, random_state=state)}
    warm = compare(data, given, folds=3, cache=tmp_path / "a", jobs=1)
    assert rounds == [1, 2]  # once for three folds
    monkeypatch.setattr(compare_module, "warm_up", lambda *_: None)
    given = {
        "a": ranker("gbdt", n_estimators=20, subsample=0.5, random_state=np.random.RandomState(3))
    }
    cold = compare(data, given, folds=3, cache=tmp_path / "b", jobs=1)
    for x, y in zip(warm.scores["a"], cold.scores["a"], strict=True):
        np.testing.assert_array_equal(x, y)


# --- data --------------------------------------------------------------------------------------


def test_letor_folds_are_used_as_they_are(tmp_path, cache):
    for fold in (1, 2, 3):
        folder = tmp_path / f"Fold{fold}"
        folder.mkdir()
        for part, queries in (("train", 12), ("vali", 5), ("test", 6)):
            rows = small_data(queries=queries, documents=10, seed=10 * fold + len(part))
            names = np.repeat(rows.qid + 100 * fold, rows.sizes)
            rows = RankingData.from_arrays(rows.X, rows.y, qid=names)
            save(rows, folder / f"{part}.txt")
    found = compare(tmp_path, "ranksvm", cache=cache)
    assert len(found.folds) == 3
    assert len(found.qid) == 3 * 6
    single = compare(tmp_path / "Fold2", "ranksvm", cache=cache)
    np.testing.assert_array_equal(single.scores["ranksvm"][0], found.scores["ranksvm"][1])
    assert single.fits == 0  # fold 2 was fitted before, whatever folder it was named by


def test_a_file_and_its_data_give_the_same(data, found, tmp_path, cache):
    save(data, tmp_path / "data.parquet")
    again = compare(tmp_path / "data.parquet", QUICK, folds=3, cache=cache)
    assert table(again) == table(found)


def test_valid_may_be_missing_unless_it_is_needed(data, cache):
    train, _, test = next(iter(k_folds(data, 3)))
    found = compare(Fold(train, None, test), "ranksvm", cache=cache)
    assert found.runs["ranksvm"][0].curve.keys() == {"loss"}
    with pytest.raises(DataError, match="fold 1 has no validation set to tune on"):
        compare(Fold(train, None, test), "ranksvm", tune=2, cache=cache)


def test_three_parts_are_a_fold(data, cache):
    fold = next(iter(k_folds(data, 3)))
    one, same = (compare(given, "ranksvm", cache=cache) for given in (fold, tuple(fold)))
    np.testing.assert_array_equal(one.scores["ranksvm"][0], same.scores["ranksvm"][0])
    with pytest.raises(
        UsageError, match=r"a fold is \(train, valid, test\), three parts and not 2"
    ):
        compare((fold.train, fold.test), "ranksvm", cache=cache)


def test_a_list_of_tuples_is_a_list_of_folds(data, cache):
    folds = list(k_folds(data, 3))
    one, same = (
        compare(given, "ranksvm", cache=cache) for given in (folds, [tuple(fold) for fold in folds])
    )
    for a, b in zip(one.scores["ranksvm"], same.scores["ranksvm"], strict=True):
        np.testing.assert_array_equal(a, b)
    without = compare([(fold.train, None, fold.test) for fold in folds], "ranksvm", cache=cache)
    assert without.runs["ranksvm"][0].curve.keys() == {"loss"}
    with pytest.raises(UsageError, match=r"three parts and not 2; .* write \(train, None, test\)"):
        compare([(fold.train, fold.test) for fold in folds], "ranksvm", cache=cache)


def test_auto_chooses_by_the_training_part_of_each_fold(data, tmp_path, monkeypatch):
    auto_module = import_module("rankwright.comparison.auto")
    suited = (Candidate("memr", "linear", ""), Candidate("linear_regression", "other", ""))
    monkeypatch.setattr(auto_module, "candidates", lambda _: suited)
    folds = list(k_folds(data, 3))
    found = compare(folds, "auto:ensemble=false,ranksvm", cache=tmp_path, select="map")
    label = "auto:ensemble=false"
    for fold, scores in zip(folds, found.scores[label], strict=True):
        by_hand = rankwright.auto(fold.train, metric="map", ensemble=False).ranker
        np.testing.assert_array_equal(scores, by_hand.predict(fold.test))
    assert found.notes[label].startswith("chose ")
    assert "fold" in found.notes[label]
    assert f"{label}: chose " in str(found)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("auto:n_estimators=5", "takes no parameters but time_limit and ensemble: leave n_estim"),
        ("auto:time_limit=0", "time_limit must be above 0, not 0"),
        ("auto:ensemble=some", "ensemble must be true or false"),
    ],
)
def test_what_auto_does_not_take_is_refused_before_a_fit(text, sentence, data, cache):
    with pytest.raises(UsageError, match=sentence):
        compare(data, text, cache=cache)


def test_data_that_is_no_data_is_refused(cache):
    with pytest.raises(UsageError, match="compare takes a file, a folder"):
        compare(3, "gbdt", cache=cache)


# --- the cache ---------------------------------------------------------------------------------


def test_processes_give_what_one_process_gives(data, found, tmp_path):
    again = compare(data, QUICK, folds=3, cache=tmp_path, jobs=2, n_jobs=2)
    assert again.fits == 9
    assert table(again) == table(found)


def test_a_column_is_compared_beside_rankers(data, cache):
    found = compare(data, "ranksvm,first=column:1", folds=3, cache=cache, metrics="ndcg@5")
    assert found.rankers == ("ranksvm", "first")
    scores = np.concatenate([run.scores for run in found.runs["first"]])
    tests = [fold.test for fold in k_folds(data, 3)]
    np.testing.assert_array_equal(scores, np.concatenate([part.X[:, 0] for part in tests]))


def test_processes_share_the_threads_and_each_has_one(data, cache, monkeypatch):
    seen, fitted = [], compare_module._fitted

    def spy(tasks, jobs, threads):
        seen.append((jobs, threads))
        return fitted(tasks, 1, threads)

    monkeypatch.setattr(compare_module, "_fitted", spy)
    for number, (n_jobs, jobs) in enumerate([(1, 2), (4, 2), (2, None)]):
        ranksvm = f"ranksvm:l2={number + 1}"  # not in the cache
        compare(data, ranksvm, folds=3, cache=cache, n_jobs=n_jobs, jobs=jobs)
    assert seen == [(2, 1), (2, 2), (2, 1)]


def test_killed_at_any_moment_and_started_again_the_table_is_the_same(tmp_path):
    file = tmp_path / "data.txt"
    save(small_data(queries=24, documents=30), file)
    rankers = "gbdt:n_estimators=150,ranksvm,lambdamart:n_estimators=150,listnet"
    program = [sys.executable, "-m", "rankwright"]
    command = [*program, "compare", str(file), "--json", "--rankers", rankers, "--folds", "3"]

    def finish(folder):
        done = subprocess.run(
            [*command, "--cache", str(folder)], capture_output=True, check=True, timeout=1800
        )
        reported = json.loads(done.stdout)
        return {name: reported[name] for name in ("metrics", "tests", "bytes")}, reported["fits"]

    whole, fits = finish(tmp_path / "whole")
    assert fits == 12
    folder = tmp_path / "killed"
    run = subprocess.Popen(
        [*command, "--cache", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while run.poll() is None and len(list(folder.glob("*/run.json"))) < 5:
        time.sleep(0.002)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    again, fits = finish(folder)
    assert again == whole
    assert 0 < fits < 12


# --- tuning, failures, wrong names -------------------------------------------------------------


def test_tuning_looks_at_train_and_valid_alone_and_is_kept(data, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(compare_module, "warm_up", lambda *_: None)
    original = Ranker.fit

    def spy(self, X, *args, eval_set=None, **more):
        seen.append((sorted(X.qid), sorted(eval_set.qid)))
        return original(self, X, *args, eval_set=eval_set, **more)

    monkeypatch.setattr(Ranker, "fit", spy)
    found = compare(data, "ranksvm", folds=3, tune=3, cache=tmp_path)
    parts = [(sorted(fold.train.qid), sorted(fold.valid.qid)) for fold in found.folds]
    assert seen == [part for part in parts for _ in range(3)]
    assert {tuple(sorted(run.tuned)) for run in found.runs["ranksvm"]} == {("l2", "pairs")}
    seen.clear()
    again = compare(data, "ranksvm", folds=3, tune=3, cache=tmp_path)
    assert seen == []
    assert table(again) == table(found)


def test_what_the_user_sets_is_not_tuned(data, tmp_path):
    found = compare(data, "ranksvm:pairs=query", folds=3, tune=2, cache=tmp_path)
    assert [sorted(run.tuned) for run in found.runs["ranksvm:pairs=query"]] == [["l2"]] * 3


@pytest.fixture
def with_a_hole():
    data = small_data(queries=12, documents=8)
    data.X[3, 0] = np.nan
    return data


def test_a_ranker_that_cannot_take_the_data_is_named_and_the_others_go_on(with_a_hole, tmp_path):
    found = compare(with_a_hole, "ranksvm,gbdt:min_child_samples=2", folds=3, cache=tmp_path)
    assert found.rankers == ("gbdt:min_child_samples=2",)
    assert found.baseline == "gbdt:min_child_samples=2"
    assert "missing" in found.failures["ranksvm"]
    assert "ranksvm" in repr(found)
    assert found.failures["ranksvm"] in found.as_json()["failures"]["ranksvm"]
    assert "ranksvm" in found._repr_html_()


def test_if_all_fail_or_the_named_baseline_does_that_is_an_error(with_a_hole, tmp_path):
    with pytest.raises(DataError, match="no ranker could be run; ranksvm: "):
        compare(with_a_hole, "ranksvm", folds=3, cache=tmp_path)
    with pytest.raises(DataError, match="the baseline ranksvm could not be run: "):
        compare(
            with_a_hole,
            "gbdt:min_child_samples=2,ranksvm",
            folds=3,
            cache=tmp_path,
            baseline="ranksvm",
        )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rankers": "gbdt", "baseline": "gbdtt"}, "called 'gbdtt'; did you mean gbdt"),
        ({"rankers": "gbdt", "tune": -1}, "0 or more, not -1"),
        ({"rankers": "gbdt", "jobs": 0}, "jobs must be 1 or more"),
        ({"rankers": "gbdt", "metrics": "ncdg@3"}, "no metric 'ncdg'"),
        ({"rankers": "gbdtt"}, "no ranker 'gbdtt'"),
        ({"rankers": "gbdt", "test": "anova"}, "no test called 'anova'; known: randomisation, t"),
        ({"rankers": "gbdt", "correction": "bonferroni"}, "no correction called 'bonferroni'"),
        ({"rankers": "all=gbdt", "baseline": "all"}, "give the ranker 'all' another name"),
        ({"rankers": "gbdt", "folds": 2}, "folds must be 3 or more, for train, valid and test"),
    ],
)
def test_wrong_options_are_reported_before_any_fit(options, sentence, data, tmp_path, monkeypatch):
    fitted = count_fits(monkeypatch)
    with pytest.raises(UsageError, match=sentence):
        compare(data, **options, cache=tmp_path)
    assert fitted == []


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("part", ["valid", "test"])
def test_a_part_that_is_the_training_part_is_reported_once(part, jobs, data, tmp_path):
    folds = [fold._replace(**{part: fold.train}) for fold in k_folds(data, 3, seed=0)][:2]
    with pytest.warns(UserWarning, match="holds the same queries") as warned:
        compare(folds, "ranksvm,memr", cache=tmp_path, jobs=jobs)
    told = [str(one.message).partition(" holds the same")[0] for one in warned]
    assert told == [f"{part} of fold 1", f"{part} of fold 2"]
