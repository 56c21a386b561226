"""Coordinate Ascent: passes never lose, runs repeat, and results are as good as RankLib's."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from small_data import small_data

from rankwright import load, ranker
from rankwright.core.parameters import check_parameters
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError
from rankwright.metrics.along_line import MetricLine
from rankwright.metrics.base import metric
from rankwright.metrics.evaluation import evaluate
from rankwright.models import coordinate_ascent
from rankwright.models.coordinate_ascent import (
    REACH,
    CoordinateAscent,
    distance,
    exact_step,
    ranklib_step,
)
from rankwright.models.linear import FittedLinear

DATA = small_data(queries=12, documents=12, features=5)


def rounds_of(name="ndcg@5", data=DATA, valid=None, start=None, resume=None, seed=0, **parameters):
    model = CoordinateAscent(**{"n_restarts": 1, **parameters})
    return list(
        model.rounds(metric(name), data, valid, start=start, resume=resume, random_state=seed)
    )


def climb(*arguments, **options):
    return rounds_of(*arguments, **options)[-1].model()


def losses_of(rounds):
    return [r.loss for r in rounds]


def reached(name, coef, data=DATA):
    return evaluate(data, data.X @ coef, name)[name]


@pytest.mark.parametrize("steps", ["exact", "ranklib"])
@pytest.mark.parametrize("name", ["ndcg@5", "map", "mrr", "err@5", "p@3", "kendall"])
def test_it_never_ends_below_its_start_and_no_pass_goes_down(name, steps):
    start = np.array([0.1, -0.3, 0.2, 0.2, -0.2])
    rounds = rounds_of(name, start=FittedLinear(start), steps=steps)
    coef = rounds[-1].model().coef
    assert reached(name, coef) >= reached(name, start)
    assert (np.diff(losses_of(rounds)) <= 0.0).all()
    assert -rounds[-1].loss == pytest.approx(reached(name, coef), abs=1e-9)


def test_a_measure_that_falls_is_brought_down():
    last = rounds_of("pair_error")[-1]
    assert last.loss == pytest.approx(reached("pair_error", last.model().coef), abs=1e-9)
    assert last.loss < reached("pair_error", np.ones(5) / DATA.X.std(axis=0))


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


def test_without_valid_each_round_has_the_best_weights_so_far():
    rounds = rounds_of(n_restarts=4)
    assert (np.diff(losses_of(rounds)) <= 0.0).all()
    assert reached("ndcg@5", rounds[-1].model().coef) >= reached("ndcg@5", climb().coef)


def test_with_valid_every_pass_of_every_search_is_a_round():
    valid = small_data(queries=12, documents=12, features=5, seed=1)
    rounds, single = rounds_of(valid=valid, n_restarts=3), rounds_of(valid=valid, n_restarts=1)
    for each in rounds:
        assert valid.X @ each.model().coef == pytest.approx(each.valid_scores)
    assert losses_of(rounds)[: len(single)] == losses_of(single)
    assert len(rounds) > len(single)


@pytest.mark.parametrize("with_valid", [False, True])
def test_a_resumed_run_rebuilds_its_rounds_and_continues_with_the_same_bytes(with_valid):
    valid = small_data(queries=12, documents=12, features=5, seed=1) if with_valid else None
    whole = rounds_of(valid=valid, n_restarts=3, n_passes=3)
    for number in (1, len(whole) // 2, len(whole)):
        state = whole[number - 1].state()
        again = rounds_of(valid=valid, n_restarts=3, n_passes=3, resume=state)
        assert [r.number for r in again] == [r.number for r in whole]
        for a, b in zip(again, whole, strict=True):
            np.testing.assert_array_equal(a.model().coef, b.model().coef)
        assert all(np.isnan(r.loss) and r.valid_scores is r.state is None for r in again[:number])
        assert losses_of(again[number:]) == losses_of(whole[number:])


def test_a_state_of_other_features_is_refused():
    state = rounds_of()[-1].state()
    with pytest.raises(DataError, match="the array 'w' has the shape"):
        rounds_of(data=small_data(features=4), resume=state)


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
        ({"steps": "fast"}, "steps must be auto, exact or ranklib, not 'fast'"),
    ],
)
def test_wrong_parameters_are_reported(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        check_parameters(CoordinateAscent(**parameters))


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


def free(_):
    """Return no penalty."""
    return 0.0


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_the_exact_step_is_as_good_as_any_point_of_a_grid(seed):
    rng = np.random.default_rng(seed)
    data = RankingData.from_arrays(
        rng.normal(size=(36, 2)), rng.integers(0, 3, 36), group_sizes=[6] * 6
    )
    s, x = data.X[:, 0].copy(), data.X[:, 1].copy()
    line = MetricLine(metric("ndcg@3"), data)
    before = line.value(s)
    t, value = exact_step(line, s, x, 0.0, before, free)
    assert value == line.value(s + t * x) >= before
    reach = REACH * np.linspace(-1, 1, 301) ** 3
    assert value >= max(line.value(s + far * x) for far in reach) - 1e-12


def test_of_equally_good_places_the_nearest_is_taken_and_none_if_nothing_is_better():
    data = RankingData.from_arrays(np.zeros((4, 1)), [1, 0, 1, 0], qid=[0, 0, 1, 1])
    line = MetricLine(metric("p@1"), data)
    s = np.array([0.0, 1.0, 1.0, 0.0])
    x = np.array([1.0, 0.0, 0.0, 0.0])  # the first overtakes at t = 1; the second query stays
    t, value = exact_step(line, s, x, 0.5, line.value(s), free)
    assert (value, t) == (1.0, pytest.approx(1.0 + 0.1))
    assert exact_step(line, s + t * x, x, 0.5, 1.0, free) == (0.0, 1.0)
    assert ranklib_step(line, s + t * x, x, 0.5, 1.0, free, n_steps=25) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["map", "err@5", "mrr"])
def test_a_metric_that_is_not_a_sum_over_ranks_takes_ranklibs_steps(name):
    start = FittedLinear(np.array([0.1, -0.3, 0.2, 0.2, -0.2]))
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
    line, x = Recorder(best=0.5), np.ones(1)
    assert ranklib_step(line, np.array([0.5]), x, 0.5, 0.0, free, n_steps=3) == (0.0, 0.0)
    steps = [0.001, 0.003, 0.007]
    assert line.seen == pytest.approx([0.5 + t for t in steps] + [0.5 - t for t in steps] + [0.0])
    line = Recorder(best=0.001)  # a first step of more than half the weight is 5 % of it
    ranklib_step(line, np.array([0.001]), x, 0.001, 0.0, free, n_steps=2)
    assert line.seen[:2] == pytest.approx([0.001 * 1.05, 0.001 * 1.15])


def test_ranklibs_steps_look_down_only_if_up_was_no_better():
    line = Recorder(best=0.504)
    t, value = ranklib_step(line, np.array([0.5]), np.ones(1), 0.5, -0.004, free, n_steps=3)
    assert (t, value) == (pytest.approx(0.003), pytest.approx(-0.001))
    assert len(line.seen) == 3


def test_the_distance_is_between_normalised_weights():
    w, home = np.array([0.25, -0.75]), np.array([0.5, 0.5])
    moved = np.array([0.25 + 1.0, -0.75]) / 2.0
    assert distance(w, 0, 1.0, home) == pytest.approx(np.linalg.norm(moved - home))
    assert distance(w, 0, np.array([0.0]), home) == pytest.approx([np.linalg.norm(w - home)])


def test_regularisation_forgoes_gains_below_the_penalty():
    data = RankingData.from_arrays(np.zeros((2, 1)), [1, 0], qid=[0, 0])
    line = MetricLine(metric("p@1"), data)
    s, x = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    w, before = np.array([0.5, 0.5]), line.value(s)

    def step(reg):
        return exact_step(line, s, x, 0.5, before, lambda t: reg * distance(w, 0, t, w))

    assert step(0.1)[0] > 1.0
    assert step(10.0) == (0.0, before)


@pytest.mark.parametrize("steps", ["exact", "ranklib"])
def test_without_regularisation_the_distance_is_not_computed(steps, monkeypatch):
    def unused(*_):
        raise AssertionError("the distance takes a pass over all weights")

    monkeypatch.setattr(coordinate_ascent, "distance", unused)
    assert len(rounds_of(steps=steps)) > 0


def test_auto_is_exact_for_first_ranks_and_takes_steps_for_long_lists():
    data = small_data(queries=1, documents=100, features=5)
    for name, own, other in (("ndcg@10", "exact", "ranklib"), ("ndcg", "ranklib", "exact")):
        automatic, same, different = (
            climb(name, data, steps=steps, n_passes=1).coef for steps in ("auto", own, other)
        )
        assert (automatic == same).all()
        assert (automatic != different).any()
