"""The bound on precision at n, against all sets of n documents."""

from itertools import combinations

import numpy as np
import pytest

from rankwright.losses import loss
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
