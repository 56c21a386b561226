"""The best list of a query: found by counting where documents are many, else by sorting."""

import numpy as np
import pytest

from rankwright import RankingData
from rankwright.metrics import ranked
from rankwright.metrics.ranked import Judged


@pytest.mark.parametrize("many", [0, 10**9])
def test_counting_and_sorting_find_the_same_best_list(many, monkeypatch):
    monkeypatch.setattr(ranked, "_MANY", many)
    y = np.random.default_rng(0).integers(0, 5, 60).astype(float)
    sizes = [1, 0, 39, 20]
    qid = np.repeat(np.arange(4), sizes)
    data = RankingData.from_arrays(np.zeros((60, 1)), y, qid=qid)
    best = [np.sort(y[a:b])[::-1] for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
    assert Judged(data).ideal.tolist() == np.concatenate(best).tolist()
