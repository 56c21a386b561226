import numpy as np
import pytest
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError
from rankwright.rankers.base import ranker

PLAIN = small_data()
HOSTS = np.random.default_rng(0).integers(0, 5, PLAIN.n_documents)
QID = PLAIN.query_of_row()
DATA = RankingData.from_arrays(PLAIN.X, PLAIN.y, qid=QID, group=HOSTS)
WAYS = [
    {},
    {"solver": "bundle"},
    {"solver": "sgd"},
    {"model": "trees", "n_trees": 5},
    {"model": "kernel"},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_limit_per_group_is_learned_under_every_model_and_solver(way):
    limited = ranker("dorm", per_group=1, **way).fit(DATA)
    free = ranker("dorm", **way).fit(DATA)
    assert (limited.predict(DATA) != free.predict(DATA)).any()
    rows = np.random.default_rng(1).permutation(PLAIN.n_documents)
    shuffled = RankingData.from_arrays(
        PLAIN.X[rows], PLAIN.y[rows], qid=QID[rows], group=HOSTS[rows]
    )
    again = ranker("dorm", per_group=1, **way).fit(shuffled)
    if way != {"solver": "bundle"}:  # which stops at a gap, not at a point
        np.testing.assert_allclose(again.predict(DATA), limited.predict(DATA), atol=1e-5)


def test_a_limit_per_group_without_groups_is_told():
    with pytest.raises(DataError, match="a limit per group needs the group of each document"):
        ranker("dorm", per_group=1).fit(PLAIN)
