"""Coverage error by hand, and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import coverage_error
from small_data import lists, value_of_ranking

from rankwright.metrics.evaluation import evaluate


def test_it_counts_documents_down_to_the_last_relevant_one():
    assert value_of_ranking("coverage_error", 1, 0, 2, 0) == 3
    assert value_of_ranking("coverage_error", 0, 1, 0, scores=[2, 1, 1]) == 3  # a tie counts
    assert value_of_ranking("coverage_error(ties=mean)", 0, 1, 0, scores=[2, 1, 1]) == 2.5


def test_it_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, (50, 6)), rng.integers(0, 5, (50, 6))
    found = evaluate(lists(*y), scores.ravel(), "coverage_error")["coverage_error"]
    assert found == pytest.approx(coverage_error(y, scores))
