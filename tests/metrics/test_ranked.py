"""The best list of a query, found by counting or by sorting, and the weights of ranks."""

from math import log2

import numpy as np
import pytest

from rankwright import RankingData
from rankwright.metrics import ranked
from rankwright.metrics.ranked import Judged, rank_weights


@pytest.mark.parametrize("many", [0, 10**9])
def test_counting_and_sorting_find_the_same_best_list(many, monkeypatch):
    monkeypatch.setattr(ranked, "_MANY", many)
    y = np.random.default_rng(0).integers(0, 5, 60).astype(float)
    sizes = [1, 0, 39, 20]
    qid = np.repeat(np.arange(4), sizes)
    data = RankingData.from_arrays(np.zeros((60, 1)), y, qid=qid)
    best = [np.sort(y[a:b])[::-1] for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
    assert Judged(data).ideal.tolist() == np.concatenate(best).tolist()


# --- weights of ranks, by each rule for the discount ---------------------------------------------


def test_the_discounts_by_hand():
    assert rank_weights("log2", 3) == pytest.approx([1 / log2(2), 1 / log2(3), 1 / log2(4)])
    assert rank_weights("letor", 3) == pytest.approx([1, 1, 1 / log2(3)])
    assert rank_weights("reciprocal", 3) == pytest.approx([1, 1 / 2, 1 / 3])


def test_a_table_is_shared_and_cannot_be_changed():
    assert rank_weights("log2", 3) is rank_weights("log2", 3)
    with pytest.raises(ValueError, match="read-only"):
        rank_weights("log2", 3)[0] = 0.0
