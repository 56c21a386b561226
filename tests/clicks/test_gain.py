"""Whether debiasing helps: seen where the logger misleads, and not where positions do nothing."""

import numpy as np
import pytest

import rankwright as rw
from rankwright import clicks
from rankwright.clicks.gain import DebiasingGain, Difference, debiasing_gain
from rankwright.errors import DataError


def log(eta, logger, queries=120):
    return clicks.simulate(
        rw.synthetic("mq2008", queries=queries, seed=4), logger, eta=eta, sessions=100
    )


def test_a_gain_is_seen_where_a_bad_logger_misleads():
    against = log(2.0, lambda data: -data.y + np.random.default_rng(0).normal(size=len(data.y)))
    found = debiasing_gain(
        rw.Ranker(loss="dual_softmax", model=rw.models.Linear(l2=0.1)), against, folds=3, repeats=1
    )
    assert found.positions_matter
    assert found.helps
    assert found.ndcg_corrected > found.ndcg_clicks
    assert str(found).endswith("So correcting position bias helps.")


def test_none_is_seen_where_all_positions_are_looked_at():
    found = debiasing_gain(rw.Ranker(loss="dual_softmax"), log(0.0, 1), folds=3, repeats=1)
    assert not found.positions_matter
    assert not found.helps


def test_sentences_say_what_was_found():
    same, up = Difference(0.0, -0.1, 0.1), Difference(0.2, 0.1, 0.3)
    down = Difference(-0.2, -0.3, -0.1)
    assert "So no gain is seen" in str(DebiasingGain(0.5, 0.5, same, up))
    assert "Positions are not seen to explain" in str(DebiasingGain(0.5, 0.5, up, same))
    assert "makes the ranking worse" in str(DebiasingGain(0.5, 0.3, down, up))
    assert str(up) == "+0.2000 (+0.1000 to +0.3000)"


def test_an_interval_is_that_of_the_mean():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    found = Difference.of(values)
    half = 1.96 * values.std(ddof=1) / 2
    assert (found.mean, found.high) == (2.5, pytest.approx(2.5 + half, rel=1e-4))


def test_too_few_queries_are_refused():
    with pytest.raises(DataError, match="queries have clicks"):
        debiasing_gain(rw.Ranker(), log(1.0, 1, queries=10))


def test_repeats_average_over_partitions_and_narrow_the_interval():
    against = log(2.0, 41, queries=24)
    made = rw.Ranker(loss="dual_softmax", model=rw.models.Linear(l2=1.0))
    once, often = (debiasing_gain(made, against, folds=2, repeats=repeats) for repeats in (1, 3))
    assert often.ranking.high - often.ranking.low < once.ranking.high - once.ranking.low
    assert often.likelihood == once.likelihood


def test_a_position_that_one_query_alone_reaches_is_no_obstacle():
    rows = log(1.0, 1, queries=22).to_ranking_data("query")
    last = rows.indptr[1] - 1
    rows.position[last] = 40
    found = debiasing_gain(rw.Ranker(loss="dual_softmax"), rows, folds=2, repeats=1)
    assert np.isfinite(found.ranking.mean)
