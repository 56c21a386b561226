"""Steps along a feature: as good as any point of a dense grid; RankLib's by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics.along_line import MetricLine
from rankwright.metrics.names import metric
from rankwright.models.coordinate_ascent import REACH, Along, LineSearch


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_the_exact_step_is_as_good_as_any_point_of_a_grid(seed):
    rng = np.random.default_rng(seed)
    data = RankingData.from_arrays(
        rng.normal(size=(36, 2)), rng.integers(0, 3, 36), group_sizes=[6] * 6
    )
    s, x = data.X[:, 0].copy(), data.X[:, 1].copy()
    line = MetricLine(metric("ndcg@3"), data)
    here = Along(np.array([1.0, 0.0]), 1, line.value(s), np.array([1.0, 0.0]))
    t, value = LineSearch().step(line, s, x, here)
    assert value == line.value(s + t * x) >= here.value
    reach = REACH * np.linspace(-1, 1, 301) ** 3
    assert value >= max(line.value(s + far * x) for far in reach) - 1e-12


def test_of_equally_good_places_the_nearest_is_taken_and_none_if_nothing_is_better():
    data = RankingData.from_arrays(np.zeros((4, 1)), [1, 0, 1, 0], qid=[0, 0, 1, 1])
    line = MetricLine(metric("p@1"), data)
    s = np.array([0.0, 1.0, 1.0, 0.0])
    x = np.array([1.0, 0.0, 0.0, 0.0])  # the first overtakes at t = 1; the second query stays
    here = Along(np.array([0.5, 0.5]), 0, line.value(s), np.array([0.5, 0.5]))
    t, value = LineSearch().step(line, s, x, here)
    assert (value, t) == (1.0, pytest.approx(1.0 + 0.1))
    there = Along(here.w, 0, 1.0, here.home)
    assert LineSearch().step(line, s + t * x, x, there) == (0.0, 1.0)
    assert LineSearch(steps="ranklib").step(line, s + t * x, x, there) == (0.0, 1.0)


class Recorder:
    """A measure of one weight that notes where it was looked at."""

    exact, depth = False, np.inf

    def __init__(self, best):
        self.best, self.seen = best, []

    def value(self, s):
        self.seen.append(float(s[0]))
        return -abs(float(s[0]) - self.best)


def test_ranklibs_steps_double_up_then_down_then_to_zero():
    w = np.array([0.5, 0.5])
    line = Recorder(best=0.5)
    here = Along(w, 0, 0.0, w)
    assert LineSearch(steps="ranklib", n_steps=3).step(line, w[:1], np.ones(1), here) == (0.0, 0.0)
    steps = [0.001, 0.003, 0.007]
    assert line.seen == pytest.approx([0.5 + t for t in steps] + [0.5 - t for t in steps] + [0.0])
    small = np.array([0.001, 0.999])  # a first step of more than half the weight is 5 % of it
    line = Recorder(best=0.001)
    LineSearch(n_steps=2).step(line, small[:1], np.ones(1), Along(small, 0, 0.0, small))
    assert line.seen[:2] == pytest.approx([0.001 * 1.05, 0.001 * 1.15])


def test_ranklibs_steps_look_down_only_if_up_was_no_better():
    w = np.array([0.5, 0.5])
    line = Recorder(best=0.504)
    t, value = LineSearch(steps="ranklib", n_steps=3).step(
        line, w[:1], np.ones(1), Along(w, 0, -0.004, w)
    )
    assert (t, value) == (pytest.approx(0.003), pytest.approx(-0.001))
    assert len(line.seen) == 3


def test_the_distance_is_between_normalised_weights():
    w, home = np.array([0.25, -0.75]), np.array([0.5, 0.5])
    here = Along(w, 0, 0.0, home)
    moved = np.array([0.25 + 1.0, -0.75]) / 2.0
    assert here.distance(1.0) == pytest.approx(np.linalg.norm(moved - home))
    assert here.distance(np.array([0.0])) == pytest.approx([np.linalg.norm(w - home)])


def test_regularisation_forgoes_what_gains_less_than_its_distance():
    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], qid=[0, 0])
    line = MetricLine(metric("mrr"), data)
    s, x = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    w = np.array([0.5, 0.5])
    here = Along(w, 0, line.value(s), w)
    assert LineSearch(reg=0.1).step(line, s, x, here)[0] > 1.0
    assert LineSearch(reg=10.0).step(line, s, x, here) == (0.0, here.value)


@pytest.mark.parametrize("steps", ["exact", "ranklib"])
def test_without_regularisation_nobody_asks_for_the_distance(steps):
    class Nowhere(Along):
        def distance(self, t):
            raise AssertionError("the distance from home costs a look at all weights")

    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], qid=[0, 0])
    line = MetricLine(metric("mrr"), data)
    s, x, w = np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    t, value = LineSearch(steps=steps).step(line, s, x, Nowhere(w, 0, line.value(s), w))
    assert t > 1.0
    assert value == 1.0


def test_auto_is_exact_for_first_ranks_and_takes_steps_for_long_lists():
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(
        rng.normal(size=(100, 2)), rng.integers(0, 3, 100), qid=[0] * 100
    )
    s, x = data.X[:, 0].copy(), data.X[:, 1].copy()
    w = np.array([1.0, 0.0])
    for name, own, other in (("ndcg@10", "exact", "ranklib"), ("ndcg", "ranklib", "exact")):
        line = MetricLine(metric(name), data)
        here = Along(w, 1, line.value(s), w)
        chosen = LineSearch().step(line, s, x, here)
        assert chosen == LineSearch(steps=own).step(line, s, x, here)
        assert chosen != LineSearch(steps=other).step(line, s, x, here)


def test_an_unknown_kind_of_steps_is_told():
    with pytest.raises(UsageError, match="steps must be 'auto', 'exact' or 'ranklib', not 'fast'"):
        LineSearch(steps="fast").check()
