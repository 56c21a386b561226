"""The share of documents with a judgment."""

import rankwright as rw

RUN = {"q": {"a": 3, "x": 2, "b": 1}, "r": {"y": 1}}
QRELS = {"q": {"a": 1, "b": 0, "c": 2}, "r": {"z": 1}}


def test_it_is_the_share_of_the_first_documents():
    found = rw.evaluate_run(RUN, QRELS, "judged@2,Judged@10,judged")
    assert found.per_query["judged@2"].tolist() == [1 / 2, 0]
    assert found.per_query["Judged@10"].tolist() == found.per_query["judged"].tolist() == [2 / 3, 0]


def test_a_negative_judgment_is_none_and_ties_are_averaged():
    found = rw.evaluate_run(
        {"q": {"a": 1, "b": 1}}, {"q": {"a": -1, "b": 0}}, "judged(ties=mean)@1"
    )
    assert found["judged(ties=mean)@1"] == 0.5
