"""Runs against judgments: what counts, how they may be given, and what is refused."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rankwright as rw
from rankwright.data.trec import judge_run, read_qrels, read_run
from rankwright.errors import DataError, UsageError

QRELS = {"q1": {"d1": 0, "d2": 2, "d7": 1}, "q2": {"d4": 1, "d5": 0}, "q4": {"d1": 1}}
RUN = {"q1": {"d1": 3, "d2": 2, "d3": 1}, "q2": {"d4": 2, "d5": 1}, "q3": {"d9": 1}}
SECOND = 1 / np.log2(3)
BOTH = {"ndcg@10": (2 * SECOND / (2 + SECOND) + 1) / 2, "map": (1 / 4 + 1) / 2}


def rows(by_query):
    return [(q, d, value) for q, documents in by_query.items() for d, value in documents.items()]


def text_of_run(run=RUN):
    return "".join(f"{q} Q0 {d} {n} {s} tag\n" for n, (q, d, s) in enumerate(rows(run)))


def text_of_qrels(qrels=QRELS):
    return "".join(f"{q} 0 {d} {g}\n" for q, d, g in rows(qrels))


def test_documents_that_were_not_retrieved_are_in_the_ideal_and_in_r():
    found = rw.evaluate_run(RUN, QRELS, "ndcg@10,map")
    assert dict(found) == pytest.approx(BOTH)
    assert [round(value, 4) for value in found.values()] == [0.7398, 0.6250]
    assert found.qid.tolist() == ["q1", "q2"]
    assert found.n_queries == 2
    assert found.left_out == {"q3": "has no judgments", "q4": "is not in the run"}
    assert found.per_query["map"].tolist() == [1 / 4, 1]
    assert "1 left out, as the query is not in the run: q4" in repr(found)
    assert found.to_frame()["qid"].tolist() == ["q1", "q2"]


def test_complete_counts_every_judged_query():
    found = rw.evaluate_run(RUN, QRELS, "ndcg@10,map,p", complete=True)
    assert found.qid.tolist() == ["q1", "q2", "q4"]
    assert found["ndcg@10"] == pytest.approx(BOTH["ndcg@10"] * 2 / 3)
    assert found.per_query["p"].tolist() == [1 / 3, 1 / 2, 0]
    assert found.left_out == {"q3": "has no judgments"}


def test_the_relevance_level_is_named_and_leaves_ndcg_as_it_is():
    found = rw.evaluate_run(RUN, QRELS, "ndcg@10,map", relevance_level=2)
    assert dict(found) == pytest.approx({"ndcg@10": BOTH["ndcg@10"], "map": (1 / 2 + 0) / 2})
    assert found.convention.name == "trec_eval(min_grade=2)"
    assert found.empty_queries == 1  # q2 has a document of grade 1 at best
    assert rw.evaluate_run(RUN, QRELS, relevance_level=1).convention.name == "trec_eval"


def test_bpref_passes_over_documents_without_a_judgment():
    qrels = {"q": {"bad": 0, "good": 1, "other": 0}}
    ranked = {"q": {"x": 4, "bad": 3, "y": 2, "good": 1}}
    assert rw.evaluate_run(ranked, qrels, "bpref")["bpref"] == 0  # one of min(2, 1) above
    assert rw.evaluate_run({"q": {"x": 4, "y": 3, "good": 1}}, qrels, "bpref")["bpref"] == 1


def test_scores_are_compared_in_single_precision_and_ties_go_by_name():
    qrels = {"q": {"a": 1, "b": 0}}
    close = {"q": {"a": 1 + 1e-9, "b": 1.0}}
    assert rw.evaluate_run(close, qrels, "mrr")["mrr"] == 1 / 2
    assert rw.evaluate_run(close, qrels, "mrr", convention="ranx")["mrr"] == 1
    ties = rw.evaluate_run(close, qrels, "mrr").tie_intervals()["mrr"]
    assert ties == (1 / 2, 3 / 4, 1)


def test_other_conventions_and_metrics_look_at_the_same_documents():
    second = (2**2 - 1) * SECOND / (2**2 - 1 + SECOND)
    assert rw.evaluate_run(RUN, QRELS, "ndcg", convention="standard")["ndcg"] == pytest.approx(
        (second + 1) / 2
    )
    # LETOR 4.0's mean of NDCG@1 to NDCG@3, ranks 1 and 2 undiscounted: 0, 3/4 and 3/4; and 1
    letor = rw.evaluate_run(RUN, QRELS, "ndcg", convention="letor4")
    assert letor["ndcg"] == pytest.approx(((0 + 3 / 4 + 3 / 4) / 3 + 1) / 2)

    def listed(scores, grades):
        return len(scores) + 10 * grades.sum()

    assert rw.evaluate_run(RUN, QRELS, listed).per_query["listed"].tolist() == [23, 12]
    assert rw.evaluate_run(RUN, QRELS, "wta")["wta"] == 1 / 2
    assert rw.evaluate_run(RUN, QRELS, "err@1").per_query["err@1"].tolist() == [0, 1 / 16]


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "docno", "numbers"])
def test_frames(frame):
    run = pd.DataFrame(rows(RUN), columns=["qid", "doc_id", "score"])
    qrels = pd.DataFrame(rows(QRELS), columns=["query_id", "docno", "relevance"])
    if frame == "polars":
        run, qrels = pl.from_pandas(run), pl.from_pandas(qrels)
    elif frame == "pyarrow":
        run, qrels = pl.from_pandas(run).to_arrow(), pl.from_pandas(qrels).to_arrow()
    elif frame == "docno":
        run = run.rename(columns={"doc_id": "docno"}).assign(rank=0)
        qrels = qrels.rename(columns={"relevance": "score"})
    elif frame == "numbers":  # integers in one, text in the other
        run = run.assign(qid=run["qid"].str[1:].astype(int))
        qrels = qrels.assign(query_id=qrels["query_id"].str[1:])
    assert dict(rw.evaluate_run(run, qrels)) == pytest.approx(BOTH)


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "csv", "tsv", "parquet"])
def test_files(tmp_path, suffix):
    paths = tmp_path / f"run.{suffix}", tmp_path / f"qrels.{suffix}"
    tables = (
        pd.DataFrame(rows(RUN), columns=["qid", "doc_id", "score"]),
        pd.DataFrame(rows(QRELS), columns=["query-id", "corpus-id", "score"]),
    )
    for path, table, text in zip(paths, tables, (text_of_run(), text_of_qrels()), strict=True):
        if suffix == "txt":
            path.write_text(text)
        elif suffix == "txt.gz":
            path.write_bytes(gzip.compress(text.encode()))
        elif suffix == "parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="," if suffix == "csv" else "\t")
    assert dict(rw.evaluate_run(*paths)) == pytest.approx(BOTH)
    assert read_run(str(paths[0])) == RUN
    assert read_qrels(paths[1]) == QRELS


def test_judgments_with_tabs_and_no_names_are_lines_of_trec(tmp_path):
    path = tmp_path / "qrels.dev.tsv"
    path.write_text(text_of_qrels().replace(" ", "\t"))
    assert read_qrels(path) == QRELS


def test_a_run_beside_its_judgments_in_arrays():
    both = judge_run(RUN, QRELS, complete=True)
    assert both.data.qid.tolist() == ["q1", "q2", "q4"]
    assert both.data.doc_id.tolist() == ["d1", "d2", "d3", "d7", "d4", "d5", "d1"]
    assert both.data.y.tolist() == [0, 2, 0, 1, 1, 0, 1]
    assert both.scores.tolist() == [3, 2, 1, -np.inf, 2, 1, -np.inf]
    assert both.retrieved.tolist() == [True, True, True, False, True, True, False]
    assert both.judged.tolist() == [True, True, False, True, True, True, True]


@pytest.mark.parametrize(
    ("run", "qrels", "sentence"),
    [
        ({"z": {"d": 1}}, QRELS, "no query in common: the run has z, the judgments q1, q2, q4"),
        ({}, QRELS, "run is empty; give a mapping"),
        ({"q1": ["d1"]}, QRELS, "query 'q1' of the run is of type list; give a mapping"),
        ({"q1": {"d1": None}}, QRELS, "the score of document 'd1' of query q1 is None"),
        ({"q1": {"d1": "3"}}, QRELS, "the score of document 'd1' of query q1 is '3'"),
        ({"q1": {"d1": np.nan}}, QRELS, "the score of document 'd1' of query q1 is nan"),
        (RUN, {"q1": {"d1": np.inf}}, "the grade of document 'd1' of query q1 is inf"),
        ({1: {"d": 1}, "1": {"d": 1}}, QRELS, "two query ids that read the same"),
        ({"q1": {1: 1, "1": 1}}, QRELS, "two documents of query 'q1' that read the same"),
        (None, QRELS, "run is None; give a file, a mapping"),
        (RUN, [1, 2], "qrels is of type list; give a file"),
        (pd.DataFrame({"qid": [1], "score": [1]}), QRELS, "no doc_id column found"),
        (
            pd.DataFrame({"qid": [1, 1], "doc": ["a", "a"], "score": [1, 2]}),
            QRELS,
            "the run: document 'a' of query 1 appears twice, the second time at row 1",
        ),
        (
            pd.DataFrame({"qid": [None], "doc": ["a"], "score": [1]}),
            QRELS,
            "the run: the query id is missing at row 0",
        ),
    ],
)
def test_what_is_no_run_is_answered_with_a_sentence(run, qrels, sentence):
    with pytest.raises((DataError, UsageError), match=sentence):
        rw.evaluate_run(run, qrels)


def test_a_score_that_is_no_number_names_the_line(tmp_path):
    (tmp_path / "run").write_text(text_of_run() + "q3 Q0 d4 2 nan tag\n")
    with pytest.raises(DataError, match="line 7: the score nan cannot be ranked"):
        rw.evaluate_run(tmp_path / "run", QRELS)


@pytest.mark.parametrize("name", ["auc", "kendall", "pair_error"])
def test_metrics_that_need_every_score_are_refused(name):
    with pytest.raises(UsageError, match=f"{name} compares the scores of all documents"):
        rw.evaluate_run(RUN, QRELS, name)


@pytest.mark.parametrize("level", [0, -1, "high", True])
def test_a_relevance_level_that_cannot_be_is_refused(level):
    with pytest.raises(UsageError, match="relevance_level must be a number above 0"):
        rw.evaluate_run(RUN, QRELS, relevance_level=level)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("ndcg_cut_10", "ndcg@10"), ("recip_rank", "mrr"), ("P_5", "p@5"), ("set_F", "f1")],
)
def test_names_of_trec_eval_are_answered_with_ours(theirs, ours):
    with pytest.raises(UsageError, match=f"there is no metric '{theirs}'.* {ours}"):
        rw.evaluate_run(RUN, QRELS, theirs)
