import sys

import numpy as np
import pytest
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.persist.model_file import load_model
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


def squared_gap(grades):
    """Cost of document i at rank j: how far it stands from its own place, times its grade."""
    places = np.arange(len(grades))
    return np.abs(places[:, None] - places) * grades[:, None] / len(grades) ** 2


def test_a_model_with_a_cost_of_the_callers_is_saved_without_it(tmp_path):
    fitted = ranker("dorm", cost=squared_gap).fit(PLAIN)
    fitted.save(tmp_path / "m.rw")
    again = load_model(tmp_path / "m.rw")
    assert (again.predict(PLAIN) == fitted.predict(PLAIN)).all()
    assert repr(again.cost) == f"<function {squared_gap.__module__}.squared_gap, not in the file>"
    again.save(tmp_path / "copy.rw")
    assert (tmp_path / "copy.rw").read_bytes() == (tmp_path / "m.rw").read_bytes()
    with pytest.raises(UsageError, match=r"squared_gap, which a model file does not hold.*again"):
        again.fit(PLAIN)
    again.set_params(cost=squared_gap).fit(PLAIN)
    assert (again.predict(PLAIN) == fitted.predict(PLAIN)).all()


def test_the_name_of_a_cost_is_never_imported(tmp_path, monkeypatch):
    def cost(grades):
        return squared_gap(grades)

    cost.__module__, cost.__qualname__ = "antigravity", "fly"
    ranker("dorm", cost=cost).fit(PLAIN).save(tmp_path / "m.rw")
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    load_model(tmp_path / "m.rw").predict(PLAIN)
    assert "antigravity" not in sys.modules
