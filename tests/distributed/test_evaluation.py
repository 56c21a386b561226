"""Metrics and rankings over partitions are those over the whole, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest
from small_data import small_data

import rankwright
from rankwright.data.rankings import Ranking
from rankwright.distributed import evaluate, predict, rank, write_run
from rankwright.distributed.partitions import Partitions
from rankwright.errors import DataError, UsageError
from rankwright.rankers.base import ranker

RNG = np.random.default_rng(0)
DATA = replace(
    small_data(queries=30, documents=7, features=4),
    query_weight=RNG.random(30),
    group=RNG.integers(0, 3, 210),
)
METRICS = "ndcg@1:5,map,err@10,mrr,p@3,pair_error"


@pytest.fixture(scope="module")
def fitted():
    return ranker("ranksvm").fit(small_data(queries=10, documents=7, features=4, seed=2))


@pytest.mark.parametrize("convention", ["standard", "letor4", "lightgbm", "trec_eval"])
def test_means_are_those_of_the_whole_to_the_last_bit(fitted, client, convention):
    found = evaluate(fitted, DATA, METRICS, convention=convention, client=client, n_parts=4)
    whole = rankwright.evaluate(DATA, fitted.predict(DATA), METRICS, convention=convention)
    assert dict(found) == dict(whole)
    for name in whole:
        np.testing.assert_array_equal(found.per_query[name], whole.per_query[name])
    assert (found.n_queries, found.empty_queries) == (whole.n_queries, whole.empty_queries)
    assert found.tie_queries == whole.tie_queries
    assert found.qid.tolist() == whole.qid.tolist()


def test_scores_may_be_given(client):
    scores = DATA.X[:, 0]
    found = evaluate(scores, DATA, "ndcg@10", client=client, n_parts=3)
    assert dict(found) == dict(rankwright.evaluate(DATA, scores, "ndcg@10"))
    with pytest.raises(DataError, match="210 documents, but scores of shape"):
        evaluate(scores[:-1], DATA, "ndcg@10", client=client, n_parts=3)


def test_scores_and_rankings_are_those_of_the_whole(fitted, client):
    parts = Partitions.of(DATA, n_parts=4, client=client)
    np.testing.assert_array_equal(predict(fitted, parts), fitted.predict(DATA))
    for limits in ({}, {"per_group": 1, "top": 2}):
        found = rank(fitted, parts, **limits)
        whole = Ranking.of(DATA, fitted.predict(DATA), **limits)
        for name in ("order", "indptr", "scores", "qid", "place"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
        assert found.doc_id is None
        np.testing.assert_array_equal(found, fitted.rank(DATA, **limits))
    named = replace(DATA, doc_id=np.arange(210))
    assert rank(fitted, named, client=client, n_parts=3).to_trec() == (
        Ranking.of(named, fitted.predict(named)).to_trec()
    )
    with pytest.raises(UsageError, match="top must be 1 or more, not 0"):
        rank(fitted, parts, top=0)


@pytest.mark.parametrize("limits", [{}, {"per_group": 1, "top": 2}])
def test_a_run_has_the_bytes_of_one_process(fitted, client, tmp_path, limits):
    path = tmp_path / "run.txt"
    write_run(fitted, DATA, path, client=client, n_parts=4, tag="mine", **limits)
    assert path.read_text() == fitted.rank(DATA, **limits).to_trec(tag="mine")


def test_a_run_that_cannot_be_is_not_begun(fitted, client, tmp_path):
    named = replace(DATA, doc_id=np.full(210, "the same"))
    with pytest.raises(DataError, match="two documents named 'the_same'"):
        write_run(fitted, named, tmp_path / "run.txt", client=client, n_parts=2)
    assert list(tmp_path.iterdir()) == []


def test_tie_intervals_are_found_in_one_process(fitted, client):
    with pytest.raises(UsageError, match="in one process"):
        evaluate(fitted, DATA, "map", client=client, n_parts=2).tie_intervals()
