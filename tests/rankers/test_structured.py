import sys

import numpy as np
import pytest
from small_data import small_data

from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.models import Trees
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
    {"model": Trees(n_estimators=5)},
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


def test_a_limit_per_group_without_groups_is_reported():
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
    assert (
        repr(again.cost) == f"<the function {squared_gap.__module__}.squared_gap, not in the file>"
    )
    again.save(tmp_path / "copy.rw")
    assert (tmp_path / "copy.rw").read_bytes() == (tmp_path / "m.rw").read_bytes()
    with pytest.raises(UsageError, match=r"squared_gap, which is neither in the model file.*again"):
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


TOPICS = np.random.default_rng(3).random((PLAIN.n_documents, 4)) < 0.4


@pytest.mark.parametrize(
    "way", [{}, {"solver": "bundle"}, {"model": Trees(n_estimators=3)}], ids=str
)
def test_overlapping_topics_are_learned_and_limit_the_ranking(way):
    data = RankingData.from_arrays(PLAIN.X, PLAIN.y, qid=QID, group=TOPICS)
    limited = ranker("dorm", metric="ndcg@3", per_group=1, **way).fit(data)
    free = ranker("dorm", metric="ndcg@3", **way).fit(data)
    assert (limited.predict(data) != free.predict(data)).any()
    shown = limited.rank(data, per_group=1, top=3)
    again = limited.rank(PLAIN.X, qid=QID, group=TOPICS, per_group=1, top=3)
    np.testing.assert_array_equal(shown.order, again.order)
    for query in np.unique(QID):
        rows = shown[query].rows
        assert (QID[rows] == query).all()
        assert 1 <= len(rows) <= 3
        assert (TOPICS[rows].sum(axis=0) <= 1).all()


def test_metrics_with_a_limit_per_group_refuse_overlapping_topics():
    from rankwright.metrics.evaluation import evaluate

    data = RankingData.from_arrays(PLAIN.X, PLAIN.y, qid=QID, group=TOPICS)
    with pytest.raises(DataError, match="belong to several topics"):
        evaluate(data, np.zeros(data.n_documents), "ndcg(max_per_group=1)@3")


def test_topics_that_are_no_shares_are_refused():
    with pytest.raises(DataError, match="numbers from 0"):
        RankingData.from_arrays(PLAIN.X, PLAIN.y, qid=QID, group=-1.0 * TOPICS)
    with pytest.raises(DataError, match="group has 3 rows"):
        RankingData.from_arrays(PLAIN.X, PLAIN.y, qid=QID, group=TOPICS[:3])
