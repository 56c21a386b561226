"""What swapping two documents changes, where it has no value, and at products of 0."""

import numpy as np
import pytest
from reference import metrics as twins
from small_data import lists

from rankwright.errors import IncompatibleError
from rankwright.metrics.base import metric


def test_swaps_have_no_value_under_a_limit_per_group_or_for_a_mean_over_cut_offs():
    data = lists([1, 0], group=[0, 0])
    with pytest.raises(IncompatibleError, match="without max_per_group"):
        metric("ndcg(max_per_group=1)").swap_form(data)
    with pytest.raises(IncompatibleError, match="mean over all cut-offs"):
        metric("ndcg", convention="letor4").swap_form(data)


def test_swaps_of_a_list_that_scores_0_for_being_short_change_nothing():
    form = metric("ndcg@3", convention="letor4").swap_form(lists([1, 0], [1, 0, 0]))
    assert form.scale.tolist() == [0, 1]


def test_swaps_next_to_a_document_that_stops_every_reader():
    """ERR with a probability of 1, where the running products are 0."""
    data = lists([0.3, 1, 0.5, 0.2])
    measure = metric("err@3", convention="catboost")
    matrix = twins.changes_by_swaps(measure.swap_form(data), np.arange(4), 0)
    base = [0.3, 1, 0.5, 0.2]
    for i in range(4):
        for j in range(4):
            g = list(base)
            g[i], g[j] = g[j], g[i]
            assert matrix[i, j] == pytest.approx(abs(cascade(g) - cascade(base)), abs=1e-15)


def cascade(probabilities):
    total, alive = 0.0, 1.0
    for r, stop in enumerate(probabilities[:3], 1):
        total += alive * stop / r
        alive *= 1 - stop
    return total
