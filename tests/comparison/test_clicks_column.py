"""The off-policy column: the values of `evaluate_policy` on test queries, and disagreements."""

import json
from dataclasses import replace

import numpy as np
import pytest
from browser import opened
from cases import case
from small_data import small_data

from rankwright import clicks
from rankwright.comparison.clicks_column import log_of_tests
from rankwright.comparison.compare import compare
from rankwright.comparison.report import conclusion, write_report
from rankwright.data.split import k_folds
from rankwright.errors import DataError, UsageError

PROPENSITY = clicks.Propensity.power(1.0, positions=5)
OPTIONS = {
    "log_metric": "ctr@3",
    "log_estimator": "pbm",
    "log_options": {"propensity": PROPENSITY},
}


@pytest.fixture(scope="module")
def given():
    """Return data, and a log whose users like what the grades call worst."""
    data = small_data(queries=30, documents=8)
    upside_down = data._replace(y=data.y.max() - data.y)
    log = clicks.simulate(upside_down, 1, sessions=80, positions=5, temperature=2.0)
    return data, log._replace(features=data)


@pytest.fixture(scope="module")
def found(given, tmp_path_factory):
    data, log = given
    rankers = {"good": "ranksvm", "first": "column:1", "bad": -data.y}
    cache = tmp_path_factory.mktemp("cache")
    return compare(data, rankers, folds=3, cache=cache, jobs=1, log=log, **OPTIONS)


def test_values_are_those_of_the_scores_that_tested_each_query(given, found):
    data, log = given
    scores = np.empty(data.n_documents)
    number = {qid: q for q, qid in enumerate(data.qid.tolist())}
    for fold, run in zip(found.folds, found.runs["good"], strict=True):
        scores[data.rows_of(np.array([number[qid] for qid in fold.test.qid.tolist()]))] = run.scores
    expected = clicks.evaluate_policy(log, scores, "ctr@3", estimator="pbm", propensity=PROPENSITY)
    value = found.clicks.values["good"]
    assert value.value == pytest.approx(expected.value, rel=1e-12)
    assert value.interval == pytest.approx(expected.interval, rel=1e-12)


def test_it_says_where_clicks_and_grades_disagree(found):
    pairs = {(one.judged, one.logged) for one in found.clicks.disagreements(found)}
    assert ("good", "bad") in pairs
    text = str(found)
    assert "Disagreement: ndcg@10 puts good above bad (" in text
    assert "significantly), and ctr@3 from the log puts bad above good (" in text
    assert "ctr@3 (log)" in text.splitlines()[0]
    assert "Disagreement" in found.to_markdown()
    assert "ctr@3 (log)" in found.to_latex()
    assert "Disagreement" in found._repr_html_()
    row = found.to_frame().set_index("ranker").loc["bad"]
    assert row["ctr@3 (log) low"] < row["ctr@3 (log)"] < row["ctr@3 (log) high"]
    said = json.loads(json.dumps(found.as_json()["clicks"]))
    assert said["sentences"][0].startswith("Disagreement")
    assert any(one["significant"] for one in said["disagreements"])


def test_where_they_agree_it_says_so_and_small_differences_are_left_open(given, found, tmp_path):
    data, _ = given
    log = clicks.simulate(data, 1, sessions=80, positions=5, temperature=2.0)
    same = compare(
        data, {"good": data.y, "bad": -data.y}, folds=3, cache=tmp_path, log=log, **OPTIONS
    )
    assert "agree on the order of all 2 rankers" in str(same)
    assert "clicks disagree" not in " ".join(conclusion(same))
    values = dict(found.clicks.values)
    wide = replace(values["bad"], influence=values["bad"].influence * 1e4)
    few = replace(found.clicks, values={**values, "bad": wide})
    assert "too few clicks to say" in " ".join(few.sentences(found))


def test_a_ranker_that_the_log_says_nothing_about_has_the_reason(given, tmp_path):
    data, _ = given
    log = clicks.simulate(data, 1, sessions=10, positions=5)
    rankers = {"old": "column:1", "other": -data.X[:, 0]}
    made = compare(data, rankers, folds=3, cache=tmp_path, log=log, log_metric="ctr@3")
    assert list(made.clicks.values) == ["old"]
    assert "other: no ctr@3 from the log: the log has shown" in str(made)
    assert [line.split()[-4] for line in str(made).splitlines()[1:3]][1] == "–"
    assert "refused" in made.to_markdown(intervals=True)


def test_the_page_has_the_column_and_the_disagreements(found, tmp_path):
    write_report(found, tmp_path / "report.html")
    with opened(tmp_path / "report.html") as page:
        assert page.errors == []
        said = page.locator("section.conclusion").inner_text()
        assert "But clicks disagree: by ctr@3 from the log bad is better than good" in said
        button = page.locator("#table thead button", has_text="ctr@3 (log)")
        button.click()
        rows = page.locator("#table tbody tr")
        shown = [rows.nth(k).get_attribute("data-label") for k in range(rows.count())]
        values = {label: one.value for label, one in found.clicks.values.items()}
        assert shown == sorted(values, key=values.get, reverse=True)
        assert "Disagreement" in page.locator("section[aria-labelledby=clicks]").inner_text()
        first = page.locator("#clicks-table tbody tr").first.inner_text().split()
        assert first[:3] == ["1", "good", "bad"]


def test_documents_are_found_by_their_ids(given):
    data, log = given
    named = data._replace(doc_id=np.array([f"d{row}" for row in range(data.n_documents)]))
    with_ids = log._replace(document_ids=named.doc_id, document=log.row.astype(np.int32))
    bare = with_ids._replace(features=None, row=None)
    backwards = [named.select(np.arange(15, 30)), named.select(np.arange(15))]
    found = log_of_tests(bare, backwards)
    np.testing.assert_array_equal(found.features.doc_id[found.row], named.doc_id[log.row])
    part = log_of_tests(bare, backwards[:1])
    assert part.n_sessions == bare.n_sessions / 2


def test_what_does_not_fit_is_one_sentence(given, tmp_path, monkeypatch):
    data, log = given
    monkeypatch.delattr("rankwright.comparison.compare.Work.run")  # before any ranker is fitted
    with pytest.raises(UsageError, match="log must be a ClickLog"):
        compare(data, "ranksvm", log=3)
    with pytest.raises(DataError, match="no file"):
        compare(data, "ranksvm", log=tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_text("session,query\n1,2\n")
    for change, error, why in (
        ({"log": tmp_path / "bad.csv"}, DataError, "no column of the document"),
        ({"log_metric": "ctr"}, UsageError, "no metric of clicks"),
        ({"log_estimator": "drr"}, UsageError, "estimator must be"),
        ({"log_options": {"limits": 3}}, UsageError, "no parameter 'limits'"),
        ({"log_options": {"folds": 1}}, UsageError, "folds"),
        ({"log_estimator": "pbm"}, UsageError, "needs propensity"),
        ({"log": None, "log_metric": "ctr@3"}, UsageError, "--log"),
        ({"log": None, "log_options": {"limit": 3.0}}, UsageError, "--log"),
    ):
        with case(change), pytest.raises(error, match=why):
            compare(data, "ranksvm", **{"log": log, **change})
    others = log._replace(query_ids=np.arange(1000, 1030))
    fold = next(k_folds(data, 3, seed=0))
    for folds in (data, fold, [fold]):
        with pytest.raises(DataError, match="query ids must be the same"):
            compare(folds, "ranksvm", log=others)
    with pytest.raises(DataError, match="load the data with doc_id"):
        log_of_tests(log._replace(features=None, row=None), [data])
    with pytest.raises(DataError, match="other documents in the log"):
        log_of_tests(log, [data._replace(y=data.y + 1.0)])
    longer = small_data(queries=30, documents=9)
    kept = longer.indptr[:-1][:, None] + np.arange(8)
    longer.y[kept] = data.y.reshape(30, 8)
    with pytest.raises(DataError, match="other documents in the log"):
        log_of_tests(log, [longer])
