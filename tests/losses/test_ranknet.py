from math import exp, log

import numpy as np
import pytest
from cases import each
from reference.losses import TWINS

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.ranknet import RankNet


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


@pytest.mark.parametrize("lead", [-0.7, 0.0, 1.2])
def test_a_pair_is_a_logistic_regression(lead):
    sigma = 0.8
    p = 1 / (1 + exp(sigma * lead))
    value, grad, curv = parts(RankNet(sigma=sigma), query([3, 1]), [lead, 0.0])
    assert value == pytest.approx(log(1 + exp(-sigma * lead)))
    assert grad == pytest.approx([-sigma * p, sigma * p])
    assert curv == pytest.approx([sigma**2 * p * (1 - p)] * 2)


@each("n", [*range(2, 19), 40])
def test_lists_of_any_length_are_those_of_the_twin(n):
    """Documents are computed eight at a time; none is forgotten or counted twice at the edges."""
    rng = np.random.default_rng(n)
    y, s, w = rng.integers(0, 3, n), rng.normal(size=n).round(1), rng.uniform(0.5, 2, n)
    y[0], y[1] = 1, 0
    value, grad, _ = parts(RankNet(), query(y, sample_weight=w), s)
    expected, gradients = TWINS["ranknet"](RankNet(), s, y, w)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grad, gradients, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("spread", [599.0, 601.0, 5000.0])
def test_scores_too_far_apart_for_one_exponential_are_computed_row_by_row(spread):
    y, w = np.array([0, 1, 2, 0, 1, 2]), np.ones(6)
    s = np.array([spread, spread - 0.5, 0.5, 0.0, spread / 2, spread / 2 + 1])
    value, grad, curv = parts(RankNet(), query(y), s)
    expected, gradients = TWINS["ranknet"](RankNet(), s, y, w)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grad, gradients, rtol=1e-10, atol=1e-12)
    assert np.isfinite(curv).all()


def test_normalised_it_is_the_mean_over_pairs():
    data = query([2, 1, 1, 0], sample_weight=[1, 2, 1, 1])
    pairs = 1 * 2 + 1 * 1 + 1 * 1 + 2 * 1 + 1 * 1
    s = [0.1, 0.5, -0.2, 0.3]
    total, mean = parts(RankNet(), data, s), parts(RankNet(normalize=True), data, s)
    for whole, share in zip(total, mean, strict=True):
        assert share == pytest.approx(whole / pairs)


def test_a_sigma_that_is_not_positive_is_refused():
    with pytest.raises(UsageError, match="sigma must be above 0, not 0"):
        RankNet(sigma=0.0).bind(query([1, 0]))
