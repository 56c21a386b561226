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
    found = debiasing_gain(rw.Ranker(loss="dual_softmax", model=rw.models.Linear(l2=0.1)), against)
    assert found.positions_matter
    assert found.helps
    assert found.ndcg_corrected > found.ndcg_clicks
    assert str(found).endswith("So correcting position bias helps.")


def test_none_is_seen_where_all_positions_are_looked_at():
    found = debiasing_gain(rw.Ranker(loss="dual_softmax"), log(0.0, 1), folds=3)
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
