import numpy as np
import pytest
from small_data import small_data

from rankwright.losses.squared import Squared
from rankwright.solvers.boost import Boost

DATA = small_data(sample_weight=np.random.default_rng(0).random(600) + 0.1)
N = DATA.n_documents


def start(boost=None, **more):
    return (boost or Boost()).start(Squared(), DATA, **more)


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
    _, _, curvature = start(Boost(leaves="constant")).step(0, np.zeros(N))
    np.testing.assert_allclose(curvature, DATA.sample_weight, rtol=1e-6)


def test_rows_queries_and_columns_of_a_round_depend_on_seed_and_round_alone():
    boost = Boost(row_fraction=0.5, query_fraction=0.5, feature_fraction=0.5)
    scores = np.ones(N) * 9.0
    a, b = start(boost), start(boost)
    b.step(0, scores)
    for t in (0, 1):
        assert (a.step(t, scores)[1] == b.step(t, scores)[1]).all()
        assert (a.columns(t) == b.columns(t)).all()
    assert (a.step(0, scores)[1] != a.step(1, scores)[1]).any()
    assert (a.step(0, scores)[1] != start(boost, seed=1).step(0, scores)[1]).any()


def test_documents_that_are_not_drawn_have_neither_gradient_nor_curvature():
    _, gradient, curvature = start(Boost(row_fraction=0.3)).step(0, np.ones(N) * 9.0)
    assert ((gradient == 0) == (curvature == 0)).all()
    assert 0.2 < (gradient != 0).mean() < 0.4


def test_whole_queries_are_drawn():
    _, gradient, _ = start(Boost(query_fraction=0.5)).step(0, np.ones(N) * 9.0)
    drawn = (gradient != 0).reshape(DATA.n_queries, -1)
    assert (drawn.all(axis=1) | ~drawn.any(axis=1)).all()


def test_the_best_constant_of_squared_error_is_the_weighted_mean():
    mean = np.average(DATA.y, weights=DATA.sample_weight)
    assert start().best_constant() == pytest.approx(mean)


def test_the_lbfgs_direction_solves_a_quadratic_that_the_gradient_does_not():
    """Documents of weights 0.1 to 1.1 have curvatures as unequal; L-BFGS learns them."""
    run, plain = start(Boost(direction="lbfgs", leaves="constant")), start()
    quick, slow = np.zeros(N), np.zeros(N)
    for t in range(15):
        quick = quick - run.step(t, quick)[1]
        slow = slow - plain.step(t, slow)[1]
    assert run.step(15, quick)[0] < 0.01 * plain.step(15, slow)[0]
