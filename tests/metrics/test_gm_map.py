"""The geometric mean of average precision."""

import numpy as np
import pytest
from small_data import lists

from rankwright.metrics.evaluation import evaluate


def test_it_is_the_geometric_mean_with_a_lower_limit():
    found = evaluate(lists([1, 0], [0, 1], [0, 0], query_weight=[1, 2, 1]), [2, 1] * 3, "gm_map")
    assert found.per_query["gm_map"].tolist() == [1, 0.5, 0]
    logs = np.log([1, 0.5, 0.5, 1e-5])
    assert found["gm_map"] == pytest.approx(np.exp(logs.mean()))
