import numpy as np
import pytest
from small_data import small_data

from rankwright.losses.query_offset import QueryOffset
from rankwright.losses.ranknet import RankNet
from rankwright.losses.squared import Squared
from rankwright.models.boosting import Descent
from rankwright.models.trees import Trees

DATA = small_data(sample_weight=np.random.default_rng(0).random(600) + 0.1)
N = DATA.n_documents


def model(**parameters):
    return Trees(**{"colsample_bytree": 1.0, **parameters})


def start(trees=None, **more):
    return Descent(trees or model(), Squared(), DATA, **more)


def test_a_round_gives_the_loss_its_gradient_and_its_curvature():
    scores = np.random.default_rng(1).normal(size=N)
    value, gradient, curvature = start().step(0, scores)
    np.testing.assert_allclose(gradient, DATA.sample_weight * (scores - DATA.y), rtol=1e-6)
    np.testing.assert_allclose(curvature, DATA.sample_weight, rtol=1e-6)
    assert value == pytest.approx((DATA.sample_weight * (scores - DATA.y) ** 2).sum() / 2)


def test_sums_of_gradients_are_exact_in_any_order():
    wide = np.exp(np.random.default_rng(2).normal(size=N) * 8)
    _, gradient, _ = start().step(0, wide)
    g = gradient.astype(np.float64)
    forward, backward = np.cumsum(g)[-1], np.cumsum(g[::-1])[-1]
    assert forward == backward == np.cumsum(np.random.default_rng(3).permutation(g))[-1]


def test_constant_leaves_ignore_the_curvature_of_the_loss():
    _, _, curvature = start(model(leaves="constant")).step(0, np.zeros(N))
    np.testing.assert_allclose(curvature, DATA.sample_weight, rtol=1e-6)


def test_rows_queries_and_columns_of_a_round_depend_on_seed_and_round_alone():
    trees = model(subsample=0.5, query_fraction=0.5, colsample_bytree=0.5)
    scores = np.ones(N) * 9.0
    a, b = start(trees), start(trees)
    b.step(0, scores)
    for t in (0, 1):
        assert (a.step(t, scores)[1] == b.step(t, scores)[1]).all()
        assert (a.columns(t) == b.columns(t)).all()
    assert (a.step(0, scores)[1] != a.step(1, scores)[1]).any()
    assert (a.step(0, scores)[1] != start(trees, seed=1).step(0, scores)[1]).any()


def test_documents_that_are_not_drawn_have_neither_gradient_nor_curvature():
    _, gradient, curvature = start(model(subsample=0.3)).step(0, np.ones(N) * 9.0)
    assert ((gradient == 0) == (curvature == 0)).all()
    assert 0.2 < (gradient != 0).mean() < 0.4


def test_whole_queries_are_drawn():
    _, gradient, _ = start(model(query_fraction=0.5)).step(0, np.ones(N) * 9.0)
    sampled = (gradient != 0).reshape(DATA.n_queries, -1)
    assert (sampled.all(axis=1) | ~sampled.any(axis=1)).all()


def test_a_run_samples_if_any_share_is_below_1():
    assert not start().samples
    for name in ("subsample", "query_fraction", "colsample_bytree"):
        assert start(model(**{name: 0.5})).samples


def test_the_best_constant_of_squared_error_is_the_weighted_mean():
    mean = np.average(DATA.y, weights=DATA.sample_weight)
    assert start().best_constant() == pytest.approx(mean)


def descend(trees, loss, rounds, rate):
    """Values of the loss along steps that are followed to the letter."""
    run, scores, values = Descent(trees, loss, DATA), np.zeros(N), []
    for t in range(rounds):
        value, gradient, curvature = run.step(t, scores)
        scores = scores - rate * gradient / curvature
        values.append(value)
    return values


def test_the_lbfgs_direction_begins_as_the_gradient():
    plain = start(model(leaves="constant")).step(0, np.zeros(N))
    quasi = start(model(leaves="constant", direction="lbfgs")).step(0, np.zeros(N))
    for a, b in zip(plain, quasi, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_the_lbfgs_direction_is_the_gradient_where_the_curvature_is_exact():
    run = start(model(direction="lbfgs"))
    scores = -0.3 * run.step(0, np.zeros(N))[1].astype(float)
    np.testing.assert_allclose(run.step(1, scores)[1], start().step(1, scores)[1], rtol=1e-5)


def test_the_lbfgs_direction_goes_further_where_the_curvature_is_overstated():
    loss = RankNet(normalize=True)  # curves far less than the 1 of constant leaves
    quasi = descend(model(leaves="constant", direction="lbfgs"), loss, 20, 0.5)
    plain = descend(model(leaves="constant"), loss, 20, 0.5)
    assert (np.diff(quasi) < 0).all()
    assert quasi[-1] < 0.5 * plain[-1]


def test_a_shift_of_a_query_is_no_news_to_the_lbfgs_direction():
    """Squared error up to an offset does not see shifts, so neither may its pairs."""
    shifts = np.repeat(np.arange(DATA.n_queries), DATA.sizes) * 10.0
    directions = []
    for shift in (0.0, shifts):
        run = Descent(model(direction="lbfgs"), QueryOffset(), DATA)
        scores = -0.3 * run.step(0, np.zeros(N))[1].astype(float)
        directions.append(run.step(1, scores + shift)[1])
    np.testing.assert_allclose(directions[0], directions[1], atol=1e-5)
