"""The bound on precision at n, against all sets of n documents."""

from itertools import combinations

import numpy as np
import pytest

from rankwright.losses import loss
from rankwright.metrics.evaluation import evaluate
from rankwright.rankers.base import ranker
from rankwright.testing.contract import graded


def test_it_is_the_worst_of_all_sets_of_n_documents():
    n, relevant = 2, np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    bound = loss("precision_svm", n=n).bind(graded([relevant]))
    for s in np.random.default_rng(0).normal(size=(20, 5)):
        best = s @ relevant  # as many relevant documents as ranks
        worst = max(
            s[list(T)].sum() - best + 1 - relevant[list(T)].sum() / n
            for T in combinations(range(5), n)
        )
        assert bound.value(s) == pytest.approx(worst)


def test_grades_below_the_lowest_relevant_one_are_alike():
    s = np.array([0.3, -0.2, 0.5])
    one, other = (
        loss("precision_svm", n=1, min_grade=2.0).bind(graded([grades])).value(s)
        for grades in ([2, 1, 0], [2, 0, 0])
    )
    assert one == other


def test_a_list_of_n_documents_or_fewer_counts_by_its_number_of_relevant_ones():
    lists = [[2, 0, 1, 0], [1, 0, 0]]
    s = np.array([0.3, -0.2, 0.5, 0.1, 0.2, 0.4, -0.3])
    bound = loss("precision_svm", n=15).bind(graded(lists))
    first, second = (
        loss("precision_svm", n=n).bind(graded([one])) for n, one in zip((2, 1), lists, strict=True)
    )
    assert bound.value(s) == pytest.approx(first.value(s[:4]) + second.value(s[4:]))
    assert bound.value(s) > 0.0


def test_the_ranker_learns_from_lists_shorter_than_n():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(400, 3)), np.repeat(np.arange(40), 10)
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0.8).astype(float)
    precision, pairs = (
        evaluate(y, ranker(name).fit(X, y, qid=qid).predict(X), "ndcg@10", qid=qid)["ndcg@10"]
        for name in ("svm_precision", "ranksvm")
    )
    assert precision > pairs - 0.02
