"""The verdict on debiasing: helps if the logger misleads, and hurts if there is no bias."""

import numpy as np
import pytest
from scipy import stats

import rankwright as rw
from rankwright import clicks
from rankwright.clicks import Propensity
from rankwright.clicks.gain import DebiasingGain, Difference, debiasing_gain
from rankwright.errors import DataError


def log(eta, logger, queries=120):
    return clicks.simulate(
        rw.synthetic("mq2008", queries=queries, seed=4), logger, eta=eta, sessions=100
    )


def test_a_gain_is_seen_if_a_poor_logger_misleads():
    gain = debiasing_gain(
        rw.Ranker(loss="dual_softmax", model=rw.models.Linear(l2=0.1)),
        log(1.0, 41),
        folds=3,
        repeats=1,
    )
    assert gain.positions_matter
    assert gain.helps
    assert not gain.hurts
    assert str(gain).endswith("Correcting position bias with this propensity helps.")


def test_no_gain_is_seen_if_users_look_at_all_positions():
    gain = debiasing_gain(rw.Ranker(loss="dual_softmax"), log(0.0, 1), folds=3, repeats=1)
    assert not gain.positions_matter
    assert not gain.helps


@pytest.mark.parametrize("ranker", [rw.LambdaMART(n_estimators=30), rw.Ranker(loss="dual_softmax")])
def test_a_propensity_does_not_judge_itself(ranker):
    """Without position bias and with a perfect logger, 1/k as propensity ruins the ranking."""
    data = log(0.0, lambda data: data.y)
    gain = debiasing_gain(ranker, data, Propensity.power(1.0, positions=10), folds=3, repeats=1)
    assert gain.hurts
    assert "makes the ranking worse" in gain.verdict


def test_sentences_show_the_result():
    same, up = Difference(0.0, -0.1, 0.1), Difference(0.2, 0.1, 0.3)
    down = Difference(-0.2, -0.3, -0.1)
    assert "This log cannot decide" in str(DebiasingGain(same, up))
    assert "Positions are not seen to explain" in str(DebiasingGain(up, same))
    assert "makes the ranking worse" in str(DebiasingGain(down, up))
    assert str(up) == "+0.2000 (+0.1000 to +0.3000)"


def test_an_interval_is_that_of_a_ratio_of_sums():
    """With one click per query it is the t interval of the mean."""
    values = np.array([1.0, 2.0, 3.0, 4.0])
    interval = stats.t.interval(0.95, 3, loc=2.5, scale=stats.sem(values))
    found = Difference.of(values, np.ones(4))
    assert (found.low, found.high) == pytest.approx(interval)
    rng = np.random.default_rng(0)
    clicks_of_query = rng.integers(1, 20, size=(4000, 100)).astype(float)
    sums = clicks_of_query * 0.1 + rng.normal(size=(4000, 100)) * np.sqrt(clicks_of_query)
    intervals = [Difference.of(*row) for row in zip(sums, clicks_of_query, strict=True)]
    assert np.mean([one.low < 0.1 < one.high for one in intervals]) == pytest.approx(0.95, abs=0.01)


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
