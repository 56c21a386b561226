"""Coordinate Ascent: it climbs, it repeats itself, and it gets as high as RankLib's."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from small_data import Onlooker, small_data

from rankwright import load, ranker
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics.along_line import MetricLine
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models.coordinate_ascent import REACH, Along, CoordinateAscent, LineSearch
from rankwright.models.linear import FittedLinear

DATA = small_data(queries=12, documents=12, features=5)


def climb(name="ndcg@5", data=DATA, callback=None, start=None, seed=0, **parameters):
    model = CoordinateAscent(**{"n_restarts": 1, **parameters})
    return model.fit(
        metric(name), data, callback=callback or Onlooker(), start=start, random_state=seed
    )


def reached(name, coef, data=DATA):
    return evaluate(data, data.X @ coef, name)[name]


@pytest.mark.parametrize("steps", ["exact", "ranklib"])
@pytest.mark.parametrize("name", ["ndcg@5", "map", "mrr", "err@5", "p@3", "kendall"])
def test_it_never_ends_below_its_start_and_no_pass_goes_down(name, steps):
    callback = Onlooker()
    start = np.array([0.1, -0.3, 0.2, 0.2, -0.2])
    model = climb(name, callback=callback, start=FittedLinear(start, None, 5), steps=steps)
    assert reached(name, model.coef) >= reached(name, start)
    assert (np.diff(callback.values) <= 0.0).all()
    assert -callback.values[-1] == pytest.approx(reached(name, model.coef), abs=1e-9)


def test_a_measure_that_falls_is_brought_down():
    callback = Onlooker()
    model = climb("pair_error", callback=callback)
    assert callback.values[-1] == pytest.approx(reached("pair_error", model.coef), abs=1e-9)
    assert callback.values[-1] < reached("pair_error", np.ones(5) / DATA.X.std(axis=0))


def test_one_feature_decides_where_it_alone_tells_the_grades():
    x = np.array([0.0, 1.0, 2.0, 3.0] * 3)
    noise = np.random.default_rng(0).normal(size=12)
    data = RankingData.from_arrays(np.column_stack([noise, -x]), x, group_sizes=[4, 4, 4])
    model = climb("ndcg", data, steps="exact")
    assert model.coef[1] < 0.0
    assert reached("ndcg", model.coef, data) == 1.0


def test_weights_are_normalised_for_features_of_unit_deviation():
    model = climb()
    assert np.abs(model.coef * DATA.X.std(axis=0)).sum() == pytest.approx(1.0)
    assert np.abs(climb(scale=False).coef).sum() == pytest.approx(1.0)


def test_without_valid_each_round_shows_the_best_so_far():
    callback = Onlooker()
    best = climb(callback=callback, n_restarts=4)
    assert (np.diff(callback.values) <= 0.0).all()
    assert reached("ndcg@5", best.coef) >= reached("ndcg@5", climb().coef)


def test_with_valid_every_pass_of_every_beginning_may_be_chosen():
    valid = small_data(queries=12, documents=12, features=5, seed=1)
    callback = Onlooker(valid=valid, keep=1)
    chosen = climb(callback=callback, n_restarts=3)
    assert valid.X @ chosen.coef == pytest.approx(callback.valid_scores[0])
    one = Onlooker(valid=valid)
    climb(callback=one, n_restarts=1)
    assert callback.values[: len(one.values)] == one.values
    assert len(callback.values) > len(one.values)


def test_ctrl_c_keeps_what_was_learnt_so_far():
    class Impatient(Onlooker):
        def on_iteration(self, t, value, train, valid):
            super().on_iteration(t, value, train, valid)
            raise KeyboardInterrupt

    callback = Impatient()
    model = climb(callback=callback)
    assert callback.interrupted
    assert DATA.X @ model.coef == pytest.approx(callback.train_scores[0])


def test_regularisation_keeps_the_weights_near_their_start():
    start = np.full(5, 0.2)
    far, near = (climb(reg=reg, scale=False).coef for reg in (0.0, 1.0))
    assert np.linalg.norm(near - start) < np.linalg.norm(far - start)
    assert climb(reg=100.0, scale=False).coef == pytest.approx(start)


def test_the_same_seed_gives_the_same_weights_and_another_seed_another_order():
    assert (climb(seed=1).coef == climb(seed=1).coef).all()
    assert (climb(seed=1).coef != climb(seed=2).coef).any()


def test_sparse_features_give_the_same_weights():
    X = np.where(np.abs(DATA.X) > 0.8, DATA.X, 0.0)
    args = (DATA.y,), {"group_sizes": DATA.sizes}
    dense = RankingData.from_arrays(X, *args[0], **args[1])
    thin = RankingData.from_arrays(sparse.csr_array(X), *args[0], **args[1])
    assert climb(data=thin).coef == pytest.approx(climb(data=dense).coef)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_restarts": 0}, "n_restarts must be 1 or more, not 0"),
        ({"n_passes": 0}, "n_passes must be 1 or more, not 0"),
        ({"reg": -1.0}, "reg must be 0 or more, not -1.0"),
        ({"steps": "fast"}, "steps must be 'auto', 'exact' or 'ranklib', not 'fast'"),
    ],
)
def test_wrong_parameters_are_reported(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        climb(**parameters)


@pytest.mark.parametrize("own", [{}, {"steps": "ranklib", "scale": False}])
def test_it_gets_as_high_as_the_model_that_ranklib_saved(golden_dir, own):
    folder = golden_dir / "ranklib"
    data = load(folder / "train.txt")
    log = (folder / "coordinate_ascent" / "train.log").read_text()
    saved = float(re.search(r"NDCG@10 on training data: ([\d.]+)", log)[1])
    fitted = ranker("coordinate_ascent", convention="ranklib", **own).fit(data)
    ours = evaluate(data, fitted.predict(data), "ndcg@10", convention="ranklib")["ndcg@10"]
    assert ours >= saved


def test_the_exact_search_gets_as_high_as_any_point_that_ranklib_visited(golden_dir):
    folder = golden_dir / "ranklib"
    data = load(folder / "train.txt")
    log = (folder / "coordinate_ascent" / "train.log").read_text()
    visited = [float(v) for v in re.findall(r"^\d+ +\| [-+][\d.]+ +\| ([\d.]+)", log, re.M)]
    patient = {"n_restarts": 8, "tol": 1e-4}
    fitted = ranker("coordinate_ascent", convention="ranklib", **patient).fit(data)
    ours = evaluate(data, fitted.predict(data), "ndcg@10", convention="ranklib")["ndcg@10"]
    assert ours >= max(visited) == 0.8154


# --- line search -----------------------------------------------------------------------------
# Steps along a feature: as good as any point of a dense grid; RankLib's by hand.


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


@pytest.mark.parametrize("name", ["map", "err@5", "mrr"])
def test_a_metric_that_is_not_a_sum_over_ranks_takes_ranklibs_steps(name):
    start = FittedLinear(np.array([0.1, -0.3, 0.2, 0.2, -0.2]), None, 5)
    ranklib = climb(name, start=start, steps="ranklib")
    for steps in ("auto", "exact"):
        assert (climb(name, start=start, steps=steps).coef == ranklib.coef).all()
    assert reached(name, ranklib.coef) > reached(name, start.coef)


class Recorder:
    """A metric of one weight that notes where it was looked at."""

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
    line = MetricLine(metric("p@1"), data)
    s, x = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    w = np.array([0.5, 0.5])
    here = Along(w, 0, line.value(s), w)
    assert LineSearch(reg=0.1).step(line, s, x, here)[0] > 1.0
    assert LineSearch(reg=10.0).step(line, s, x, here) == (0.0, here.value)


@pytest.mark.parametrize("steps", ["exact", "ranklib"])
def test_without_regularisation_the_distance_is_not_computed(steps):
    class Nowhere(Along):
        def distance(self, t):
            raise AssertionError("the distance from home costs a look at all weights")

    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], qid=[0, 0])
    line = MetricLine(metric("p@1"), data)
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


def test_an_unknown_kind_of_steps_is_reported():
    with pytest.raises(UsageError, match="steps must be 'auto', 'exact' or 'ranklib', not 'fast'"):
        LineSearch(steps="fast").check()
