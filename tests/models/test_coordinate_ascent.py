"""Coordinate Ascent: it climbs, it repeats itself, and it gets as high as RankLib's."""

import re

import numpy as np
import pytest
from scipy import sparse
from small_data import Onlooker, small_data

from rankwright import load, ranker
from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.metrics.evaluation import evaluate
from rankwright.metrics.names import metric
from rankwright.models.coordinate_ascent import CoordinateAscent
from rankwright.models.linear import FittedLinear

DATA = small_data(queries=12, documents=12, features=5)


def climb(name="ndcg@5", data=DATA, watch=None, start=None, seed=0, **parameters):
    model = CoordinateAscent(**{"n_restarts": 1, **parameters})
    return model.fit(metric(name), data, watch=watch or Onlooker(), start=start, seed=seed)


def reached(name, coef, data=DATA):
    return evaluate(data, data.X @ coef, name)[name]


@pytest.mark.parametrize("steps", ["exact", "ranklib"])
@pytest.mark.parametrize("name", ["ndcg@5", "map", "mrr", "err@5", "p@3", "kendall"])
def test_it_never_ends_below_its_start_and_no_pass_goes_down(name, steps):
    watch = Onlooker()
    start = np.array([0.1, -0.3, 0.2, 0.2, -0.2])
    model = climb(name, watch=watch, start=FittedLinear(start, None, 5), steps=steps)
    assert reached(name, model.coef) >= reached(name, start)
    assert (np.diff(watch.values) <= 0.0).all()
    assert -watch.values[-1] == pytest.approx(reached(name, model.coef), abs=1e-9)


def test_a_measure_that_falls_is_brought_down():
    watch = Onlooker()
    model = climb("pair_error", watch=watch)
    assert watch.values[-1] == pytest.approx(reached("pair_error", model.coef), abs=1e-9)
    assert watch.values[-1] < reached("pair_error", np.ones(5) / DATA.X.std(axis=0))


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
    watch = Onlooker()
    best = climb(watch=watch, n_restarts=4)
    assert (np.diff(watch.values) <= 0.0).all()
    assert reached("ndcg@5", best.coef) >= reached("ndcg@5", climb().coef)


def test_with_valid_every_pass_of_every_beginning_may_be_chosen():
    valid = small_data(queries=12, documents=12, features=5, seed=1)
    watch = Onlooker(valid=valid, keep=1)
    chosen = climb(watch=watch, n_restarts=3)
    assert valid.X @ chosen.coef == pytest.approx(watch.valid_scores[0])
    one = Onlooker(valid=valid)
    climb(watch=one, n_restarts=1)
    assert watch.values[: len(one.values)] == one.values
    assert len(watch.values) > len(one.values)


def test_ctrl_c_keeps_what_was_learnt_so_far():
    class Impatient(Onlooker):
        def seen(self, t, value, train, valid):
            super().seen(t, value, train, valid)
            raise KeyboardInterrupt

    watch = Impatient()
    model = climb(watch=watch)
    assert watch.interrupted
    assert DATA.X @ model.coef == pytest.approx(watch.train_scores[0])


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
def test_wrong_parameters_are_told(parameters, sentence):
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
    patient = {"n_restarts": 8, "tolerance": 1e-4}
    fitted = ranker("coordinate_ascent", convention="ranklib", **patient).fit(data)
    ours = evaluate(data, fitted.predict(data), "ndcg@10", convention="ranklib")["ndcg@10"]
    assert ours >= max(visited) == 0.8154
