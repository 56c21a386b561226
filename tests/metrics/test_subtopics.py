"""alpha-nDCG, ERR-IA and P-IA by hand, with several topics, and against ndeval."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from reference import metrics as twins
from small_data import lists

import rankwright as rw
from rankwright.data.judgments import read_subtopics
from rankwright.errors import DataError
from rankwright.metrics.evaluation import evaluate

TOPICS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
NAMES = ["alpha_ndcg", "alpha_ndcg(alpha=0.3)@2", "err_ia@3", "err_ia(alpha=0.9)", "p_ia@2", "p_ia"]


def twin(name, J):
    measure = rw.metric(name)
    options = {"alpha": measure.alpha} if hasattr(measure, "alpha") else {}
    return getattr(twins, measure.key)(None, None, measure.k, subtopics=J, **options)


def data_of(order):
    """Return one query with the documents of TOPICS from the first row to the last."""
    order = list(order)
    return lists(TOPICS.any(axis=1)[order], group=TOPICS[order])


@pytest.mark.parametrize("name", NAMES)
def test_every_order_has_the_value_of_the_slow_twin(name):
    for order in permutations(range(5)):
        J = TOPICS[list(order)].tolist()
        best = twins.greedy(J[::-1], 0.3 if "0.3" in name else 0.5)  # of equal ones the last row
        expected = twin(name, J)
        if "ndcg" in name:
            k, alpha = rw.metric(name).k, rw.metric(name).alpha
            sums = [twins.novelty(part[:k], alpha, lambda r: np.log2(r + 1)) for part in (J, best)]
            expected = sums[0] / sums[1]
        found = evaluate(data_of(order), [5, 4, 3, 2, 1], name)
        assert found[name] == pytest.approx(expected, rel=1e-12), order


@pytest.mark.parametrize("name", NAMES)
def test_over_ties_it_is_the_mean_over_their_orders(name):
    orders = [order for order in permutations(range(5)) if {order[0], order[1]} == {0, 3}]
    data = data_of(range(5))
    scores = [[-order.index(i) for i in range(5)] for order in orders]
    values = [evaluate(data, s, name)[name] for s in scores]
    tied = evaluate(data, [1, 0, 0, 1, 0], name)[name]
    assert tied == pytest.approx(np.mean(values), rel=1e-12)


def test_without_topics_a_query_has_one_and_topics_count_only_for_relevant_documents():
    found = evaluate([1, 0, 1], [3, 2, 1], "p_ia@2,err_ia@1", group_sizes=[3])
    assert list(found.values()) == [0.5, 1.0]
    topics = [[1, 1], [1, 0], [0, 1]]
    found = evaluate([1, 0, 1], [3, 2, 1], "p_ia@2", group_sizes=[3], group=topics)
    assert found["p_ia@2"] == (1 + 1) / (2 * 2)  # the second document is not relevant


@pytest.mark.parametrize("name", NAMES)
def test_one_group_for_each_document_is_its_subtopic(name):
    rng = np.random.default_rng(0)
    y, host, scores = rng.integers(0, 2, 20), rng.integers(0, 4, 20), rng.permutation(20)
    by_host, by_matrix = (
        evaluate(y, scores, name, group_sizes=[9, 0, 4, 7], group=group).per_query[name]
        for group in (host, host[:, None] == np.arange(4))
    )
    np.testing.assert_allclose(by_host, by_matrix, rtol=1e-12)


# --- diversity judgments: values of ndeval, by pyndeval 0.0.8, computed once and copied ----------

QRELS = """\
q1 1 d1 1
q1 2 d1 2
q1 1 d2 1
q1 3 d3 1
q1 2 d4 0
q1 4 d4 0
q1 3 d7 2
q1 2 d8 1
q2 1 d1 0
q2 1 d5 1
q2 2 d6 2
q2 1 d6 1
q3 1 d1 0
"""
RUN = {
    query: {doc: -rank for rank, doc in enumerate(docs)}
    for query, docs in {
        "q1": ["d9", "d1", "d2", "d3", "d4", "d8"],
        "q2": ["d6", "d5", "d1"],
        "q3": ["d1", "d2"],
    }.items()
}
NDEVAL = {  # by relevance level, for q1, q2 and q3
    1: {
        "alpha_nDCG@3": [0.5247818019, 1.0, 0.0],
        "alpha_nDCG@10": [0.644631196, 1.0, 0.0],
        "ERR_IA@3": [0.2916666667, 0.84375, 0.0],
        "ERR_IA@10": [0.3607166022, 0.8116123549, 0.0],
        "P_IA@3": [0.3333333333, 0.5, 0.0],
        "P_IA@10": [0.1666666667, 0.15, 0.0],
    },
    2: {
        "alpha_nDCG@3": [0.3868528072, 1.0, 0.0],
        "alpha_nDCG@10": [0.3868528072, 1.0, 0.0],
        "ERR_IA@3": [0.1875, 0.75, 0.0],
        "ERR_IA@10": [0.1803583011, 0.7214332044, 0.0],
        "P_IA@3": [0.1666666667, 0.3333333333, 0.0],
        "P_IA@10": [0.05, 0.1, 0.0],
    },
}


@pytest.mark.parametrize("level", NDEVAL)
def test_runs_have_the_values_of_ndeval(level, tmp_path):
    path = tmp_path / "diversity.qrels"
    path.write_text("# topic subtopic document judgment\n" + QRELS)
    found = rw.evaluate_run(RUN, path, list(NDEVAL[level]), relevance_level=level)
    for name, values in NDEVAL[level].items():
        np.testing.assert_allclose(found.per_query[name], values, atol=1e-9, err_msg=name)


def test_diversity_judgments_are_read_from_files_frames_and_mappings(tmp_path):
    path = tmp_path / "diversity.qrels"
    path.write_text(QRELS)
    judgments = read_subtopics(path)
    assert judgments["q1"]["d1"] == {"1": 1.0, "2": 2.0}
    assert read_subtopics(judgments) == judgments
    rows = [line.split() for line in QRELS.splitlines()]
    frame = pd.DataFrame(rows, columns=["topic", "subtopic", "docno", "judgment"])
    assert read_subtopics(frame.astype({"judgment": float})) == judgments
    frame.astype({"judgment": int}).to_csv(tmp_path / "qrels.csv", index=False)
    assert read_subtopics(tmp_path / "qrels.csv") == judgments
    assert read_subtopics({"q": {"d": 1}}) == {"q": {"d": {"0": 1}}}


def test_other_metrics_take_the_highest_grade_of_a_document():
    judgments = {"q": {"a": {"1": 0, "2": 2}, "b": {"1": 1}}}
    found = rw.evaluate_run({"q": {"b": 2, "a": 1}}, judgments, "err_ia@2,ndcg")
    assert found["ndcg"] == pytest.approx((1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3)))


@pytest.mark.parametrize(
    ("judgments", "sentence"),
    [
        ("q1 1 d1\n", "lines are 'qid subtopic docid grade'"),
        ("q1 1 d1 high\n", "the grade"),
        ("q1 1 d1 1\nq1 1 d1 0\n", "for subtopic '1' is given twice, with different values"),
    ],
)
def test_wrong_judgments_are_answered_with_a_sentence(judgments, sentence, tmp_path):
    path = tmp_path / "diversity.qrels"
    path.write_text(judgments)
    with pytest.raises(DataError, match=sentence):
        rw.evaluate_run(RUN, path, "err_ia@10")


def test_what_is_no_judgment_is_refused():
    for judgments in (None, [1, 2], {"q1": ["d1"]}, {"q1": {"d1": {"1": "high"}}}):
        with pytest.raises((DataError, rw.errors.UsageError)):
            rw.evaluate_run(RUN, judgments, "err_ia@10")
