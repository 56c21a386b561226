"""bpref: non-relevant documents above each relevant one."""

from small_data import value_of_ranking

from rankwright.metrics.evaluation import evaluate_run


def test_each_relevant_document_loses_by_those_above_it():
    R, N = 2, 3
    by_hand = ((1 - 0 / min(R, N)) + (1 - 1 / min(R, N))) / R
    assert value_of_ranking("bpref", 1, 0, 1, 0, 0) == by_hand


def test_no_more_than_r_of_those_above_count():
    assert value_of_ranking("bpref", 0, 0, 0, 1) == 1 - 1 / 1


def test_documents_without_a_judgment_are_passed_over():
    run = {"q": {"unknown": 4.0, "good": 3.0, "bad": 2.0, "late": 1.0}}
    found = evaluate_run(run, {"q": {"good": 1, "bad": 0, "late": 1}}, "bpref")
    assert found["bpref"] == ((1 - 0 / 1) + (1 - 1 / 1)) / 2
