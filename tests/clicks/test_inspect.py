import json

import numpy as np
import pytest
from scipy.stats import binomtest

from rankwright.clicks import ClickLog, inspect_log
from rankwright.clicks.inspect import wilson
from rankwright.errors import DataError


def findings(log):
    return " ".join(inspect_log(log).findings)


def shuffled(n=2000, length=6, examination=None, seed=0, queries=20):
    """Lists of ten documents in random order, clicked by a position-based model."""
    rng = np.random.default_rng(seed)
    shown = np.stack([rng.permutation(10)[:length] for _ in range(n)])
    query = rng.integers(0, queries, n)
    attractiveness = rng.permuted(np.tile(np.linspace(0.1, 0.6, 10), (queries, 1)), axis=1)
    looked = np.ones(length) if examination is None else np.array(examination)
    click = rng.random((n, length)) < attractiveness[query[:, None], shown] * looked
    return ClickLog.from_arrays(query, shown.ravel(), click.ravel(), session_sizes=[length] * n)


def test_numbers_of_a_log():
    log = ClickLog.from_arrays(
        ["a", "a", "b"], [1, 2, 2, 1, 1], [1, 0, 1, 0, 0], session_sizes=[2, 2, 1]
    )
    found = inspect_log(log)
    assert (found.sessions, found.impressions, found.clicks) == (3, 5, 2)
    assert (found.queries, found.documents, found.pairs) == (2, 2, 3)
    assert (found.shortest, found.longest) == (1, 2)
    assert found.without_click == pytest.approx(1 / 3)
    assert found.moved == pytest.approx(4 / 5)
    assert [one.impressions for one in found.positions] == [3, 2]
    assert [one.rate for one in found.positions] == [2 / 3, 0]
    assert json.loads(json.dumps(found.to_dict()))["queries"] == 2


def test_the_interval_is_wilsons():
    low, high = wilson(np.array([3.0]), np.array([40.0]))
    expected = binomtest(3, 40).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high))


def test_examination_is_found_whatever_the_documents():
    true = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.2])
    found = inspect_log(shuffled(6000, examination=true)).positions
    for one, value in zip(found, true, strict=True):
        assert one.examination_low <= value * 1.02
        assert value * 0.98 <= one.examination_high
        assert one.examination == pytest.approx(value, abs=0.06)


def test_the_interval_of_examination_holds_the_truth_about_as_often_as_it_says():
    true, inside = np.array([0.9, 0.6, 0.4, 0.3]), 0
    for seed in range(15):
        found = inspect_log(shuffled(1500, 4, true, seed)).positions[1:]
        held = [
            one.examination_low <= value / 0.9 <= one.examination_high
            for one, value in zip(found, true[1:], strict=True)
        ]
        inside += sum(held)
    assert 0.88 <= inside / 45 <= 1.0


def test_documents_that_were_seldom_shown_do_not_move_examination():
    true, rng, n = np.array([1.0, 0.5, 0.33, 0.25, 0.2]), np.random.default_rng(0), 40_000
    query = np.where(rng.random(n) < 0.5, rng.integers(0, 5, n), rng.integers(5, 8000, n))
    quality = rng.random((8000, 10)) ** 2
    shown = np.argsort(-(quality[query] + rng.random((n, 10))), axis=1)[:, :5]
    clicked = rng.random((n, 5)) < np.take_along_axis(quality[query], shown, axis=1) * true
    log = ClickLog.from_arrays(query, shown.ravel(), clicked.ravel(), session_sizes=[5] * n)
    for one, value in zip(inspect_log(log).positions, true, strict=True):
        assert one.examination_low * 0.99 <= value <= one.examination_high * 1.01


def test_the_plot_draws_examination_with_its_interval():
    profile = inspect_log(shuffled(500, 3, [1.0, 0.6, 0.4]))
    ax = profile.plot()
    (line,) = ax.get_lines()
    assert line.get_xdata().tolist() == [1, 2, 3]
    assert line.get_ydata().tolist() == [one.examination for one in profile.positions]
    (interval,) = ax.collections
    corners = interval.get_paths()[0].vertices[:, 1]
    assert corners.min() == min(one.examination_low for one in profile.positions)
    assert profile.plot(ax=ax) is ax
    fixed = ClickLog.from_arrays([0, 1], [1, 2, 3, 4], [1, 0, 1, 0], session_sizes=[2, 2])
    with pytest.raises(DataError, match="no document of a query was shown at several positions"):
        inspect_log(fixed).plot()


def test_what_misleads_is_said():
    assert "no click" in findings(ClickLog.from_arrays([0], [1], [0], session_sizes=[1]))
    one = ClickLog.from_arrays(np.zeros(5), np.arange(5), np.ones(5), session_sizes=[1] * 5)
    assert "shown at position 1: position bias can be neither seen" in findings(one)
    fixed = ClickLog.from_arrays([0, 1], [1, 2, 3, 4], [1, 0, 1, 0], session_sizes=[2, 2])
    assert "only 0.0% of impressions are of documents" in findings(fixed)
    assert "only 2 clicks" in findings(fixed)
    biased = shuffled(examination=[1.0, 0.7, 0.5, 0.3, 0.2, 0.1])
    assert inspect_log(biased).findings == ()
    bots = np.repeat(np.arange(biased.n_sessions) < 20, 6)
    assert "in 20 sessions every one" in findings(biased._replace(click=biased.click | bots))
    ignored = biased._replace(click=biased.click & (np.repeat(biased.query, 6) > 0))
    assert "1 query with 20 sessions or more" in findings(ignored)
    busy = np.where(np.arange(2000) < 900, "bot", [f"user {i}" for i in range(2000)])
    assert "1 user with more than 100 times" in findings(biased._replace(user=busy))
    alone = biased._replace(query=np.minimum(biased.query, 1).astype(np.int32))
    assert "query '1' has" in findings(alone)
    assert "would change little" in findings(shuffled())
    with pytest.raises(DataError, match="no impressions"):
        inspect_log(biased.select([]))
