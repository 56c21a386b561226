"""`rankwright explain FILE DATA --query Q`: parts that sum, as text and as JSON."""

import json

import pandas as pd
import pytest
from command import run, run_json, sentence
from small_data import small_data

from rankwright.data.files import save
from rankwright.rankers.base import ranker

DATA = small_data()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("explain")
    save(DATA, place / "data.txt")
    ranker("ranksvm").fit(DATA).save(place / "a.rw")
    ranker("gbdt", n_estimators=5).fit(DATA).save(place / "b.rw")
    return place


def test_two_documents(files):
    asked = ("explain", files / "a.rw", files / "data.txt", "--query", "1", "--docs", "2", "5")
    found = run_json(*asked, alone=True)
    total = sum(part["part"] for part in found["parts"]) + found["rest"]
    assert total == pytest.approx(found["lead"], abs=1e-6)
    assert {found["upper"]["document"], found["lower"]["document"]} == {"2", "5"}
    text = run(*asked).stdout
    assert "ranks above" in text
    assert "they swap when" in text


def test_a_document_under_two_models_and_a_whole_query(files):
    base = ("explain", files / "b.rw", files / "data.txt", "--query", "1")
    moved = run_json(*base, "--doc", "3", "--against", files / "a.rw")
    assert moved["before"]["document"] == moved["after"]["document"] == "3"
    whole = run_json(*base)
    assert [d["place"]["rank"] for d in whole["documents"]] == list(range(1, 21))
    assert "scores against the mean of the query" in run(*base).stdout


def test_what_is_not_there_is_reported(files):
    base = ("explain", files / "a.rw", files / "data.txt", "--query")
    assert "there is no query '99'" in sentence(*base, "99")
    assert "query 1 has no document 'x'" in sentence(*base, "1", "--docs", "x", "2")


def test_a_ranklib_model_is_taken_like_ours(files, tmp_path):
    from rankwright.ranklib.conversion import save_ranklib

    fitted = ranker("gbdt", n_estimators=5).fit(DATA)
    save_ranklib(fitted, tmp_path / "b.txt")
    asked, same = (tmp_path / "b.txt", files / "data.txt"), (files / "b.rw", files / "data.txt")
    found, ours = (
        run_json("explain", *which, "--query", "1", "--docs", "2", "5") for which in (asked, same)
    )
    assert found["lead"] == pytest.approx(ours["lead"], abs=1e-5)
    assert run_json("inspect", tmp_path / "b.txt")["ranker"] == "gbdt"
    scored = run_json("evaluate", files / "data.txt", "--load", tmp_path / "b.txt")
    assert scored["metrics"] == pytest.approx(
        run_json("evaluate", files / "data.txt", "--load", files / "b.rw")["metrics"]
    )
    lines = (run("rank", *which).stdout.splitlines() for which in (asked, same))
    orders = [[line.split()[:4] for line in some] for some in lines]
    assert orders[0] == orders[1]


def test_documents_need_no_grades(files, tmp_path):
    save(DATA, tmp_path / "graded.csv")
    rows = [line.split(",") for line in (tmp_path / "graded.csv").read_text().splitlines()]
    grade = rows[0].index('"label"')
    rest = [",".join(row[:grade] + row[grade + 1 :]) for row in rows]
    (tmp_path / "plain.csv").write_text("\n".join(rest) + "\n")
    base = ("explain", files / "a.rw")
    with_grades = run_json(*base, tmp_path / "graded.csv", "--query", "1")
    without = run_json(*base, tmp_path / "plain.csv", "--query", "1")
    for one, same in zip(without["documents"], with_grades["documents"], strict=True):
        assert one["place"].pop("grade") is None
        same["place"].pop("grade")
        assert one == same
    assert "grade" not in run(*base, tmp_path / "plain.csv", "--query", "1").stdout
    assert "grade" in run(*base, tmp_path / "graded.csv", "--query", "1").stdout
    asked = (*base, tmp_path / "plain.csv", "--query", "1", "--docs", "2", "5")
    assert "grade" not in run(*asked).stdout


def test_a_feature_log_needs_no_judgments(tmp_path):
    names = ["bm25", "visits"]
    rows = DATA.X[:6, :2]
    frame = pd.DataFrame(DATA.X[:, :2], columns=names)
    made = ranker("ranksvm").fit(frame, DATA.y, qid=DATA.query_of_row())
    made.save(tmp_path / "m.rw")
    hits = [
        {
            "_id": f"doc-{row}",
            "fields": {
                "_ltrlog": [
                    {"log": [{"name": n, "value": v} for n, v in zip(names, values, strict=True)]}
                ]
            },
        }
        for row, values in enumerate(rows.tolist())
    ]
    (tmp_path / "log.jsonl").write_text(json.dumps({"qid": "q", "hits": {"hits": hits}}))
    asked = ("explain", tmp_path / "m.rw", tmp_path / "log.jsonl", "--query", "q")
    by_name = run_json(*asked, "--doc", "doc-0")
    assert by_name["documents"][0]["place"]["grade"] is None
    assert run_json(*asked, "--doc", "1") == by_name
    assert run_json(*asked, "--docs", "1", "3")["upper"]["document"] in ("doc-0", "doc-2")
    for number in ("0", "7"):
        assert f"query q has no document '{number}'" in sentence(*asked, "--doc", number)
    assert "judgments" in sentence("explain", tmp_path / "m.rw", tmp_path / "log.jsonl",
                                   "--query", "q", "--read", "judgements=none.txt")  # fmt: skip


def test_a_document_is_named_to_see_why_it_moved(files):
    asked = ("explain", files / "a.rw", files / "data.txt", "--query", "1")
    both = (*asked, "--against", files / "b.rw")
    for words in (both, (*both, "--docs", "1", "2")):
        assert "name one document (docs=[...], --doc) to see why it moved" in sentence(*words)


def test_a_file_that_cannot_be_read_either_way_is_refused_as_with_grades(files, tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    error = sentence("explain", files / "a.rw", tmp_path / "bad.csv", "--query", "1")
    assert "no query id column found" in error
