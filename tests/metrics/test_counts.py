"""Numbers of documents, which are summed over queries."""

from small_data import lists

import rankwright as rw
from rankwright.metrics.evaluation import evaluate


def test_counts_are_summed():
    found = evaluate(lists([1, 0], [0, 1, 2]), [2, 1, 3, 2, 1], "num_ret,num_rel,num_rel_ret@2")
    assert list(found.values()) == [5, 3, 2]
    assert found.per_query["num_ret"].tolist() == [2, 3]


def test_a_run_has_not_retrieved_every_relevant_document():
    qrels = {"q": {"a": 1, "b": 0, "c": 2}, "r": {"a": 1}}
    run = {"q": {"a": 1, "x": 2}}
    found = rw.evaluate_run(run, qrels, "num_ret,num_rel,num_rel_ret", complete=True)
    assert list(found.values()) == [2, 3, 1]
