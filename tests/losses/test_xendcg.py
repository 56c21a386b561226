from math import exp, log

import numpy as np
import pytest
from reference.lightgbm_tree import leaf_values
from reference.losses import noise

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.xendcg import XENDCG


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


def test_without_noise_it_is_the_cross_entropy_to_the_mean_gains():
    s = [0.3, -0.2]
    phi = np.array([4 - 0.5, 1 - 0.5]) / 4
    rho = np.exp(s) / np.exp(s).sum()
    value, grad, curv = parts(XENDCG(sampled=False), query([2, 0]), s)
    assert value == pytest.approx(-phi @ np.log(rho))
    assert grad == pytest.approx(rho - phi)
    assert curv == pytest.approx(rho * (1 - rho))


def test_each_round_query_and_position_has_its_own_noise():
    data = RankingData.from_arrays(np.zeros((4, 1)), [1, 0, 1, 0], group_sizes=[2, 2])
    bound = XENDCG(random_state=3).bind(data)
    for t in (0, 7):
        bound.set_iteration(t)
        for q in range(2):
            phi = [2, 1] - noise(3, (t, q), 2)
            bound.value(np.zeros(4))
            expected = log(2)  # at equal scores the noise does not show in the value
            assert bound.per_query[q] == pytest.approx(expected)
            grad = np.empty(4)
            bound.grad(np.zeros(4), grad)
            assert grad[2 * q : 2 * q + 2] == pytest.approx(0.5 - phi / phi.sum())


def test_going_back_to_a_round_brings_its_noise_back():
    bound, s = XENDCG().bind(query([2, 0, 1])), np.zeros(3)
    rounds = []
    for t in (4, 5, 4):
        bound.set_iteration(t)
        rounds.append(np.empty(3))
        bound.grad(s, rounds[-1])
    np.testing.assert_array_equal(rounds[0], rounds[2])
    assert (rounds[0] != rounds[1]).all()


def test_another_seed_is_another_noise_and_any_whole_number_will_do():
    grads = [
        parts(XENDCG(random_state=seed), query([2, 0, 1]), [0, 0, 0])[1]
        for seed in (0, 1, -1, 2**70)
    ]
    assert len({tuple(grad) for grad in grads[:3]}) == 3


def test_noise_fills_the_unit_interval_evenly():
    sampled = np.concatenate([noise(0, (t, q), 50) for t in range(20) for q in range(20)])
    counts = np.histogram(sampled, 10, (0, 1))[0]
    assert np.abs(counts - 2000).max() < 200


@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_three_newton_terms_are_what_lightgbm_boosts(l2):
    """From grade 22 on the noise is lost beside 2^grade, so LightGBM's own need not be known."""
    rng = np.random.default_rng(0)
    y, s = rng.integers(22, 29, 72), rng.normal(size=72)
    data = RankingData.from_arrays(np.zeros((72, 1)), y, group_sizes=[12] * 6)
    _, grad, curv = parts(XENDCG(newton_terms=3), data, s)
    leaf, output = leaf_values("rank_xendcg", data, s, l2)
    newton = -np.bincount(leaf, grad) / (np.bincount(leaf, curv) + l2)
    assert len(newton) > 3
    np.testing.assert_allclose(output, newton[leaf], atol=3e-6)


def test_more_terms_come_closer_to_the_newton_step():
    y, s = np.array([0.0, 2.0, 1.0]), np.array([0.5, 0.0, 0.0])
    rho = np.exp(s) / np.exp(s).sum()
    hessian = np.diag(rho) - np.outer(rho, rho)
    _, gradient, _ = parts(XENDCG(sampled=False), query(y), s)
    newton = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
    gaps = []
    for terms in (1, 3, 9, 61):
        _, grad, curv = parts(XENDCG(sampled=False, newton_terms=terms), query(y), s)
        gaps.append(np.ptp(grad / curv - newton))  # up to a constant, which the loss ignores
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6


def test_one_document_that_takes_everything_leaves_the_series_finite():
    _, grad, curv = parts(XENDCG(newton_terms=3), query([0, 2, 1]), [800.0, 0.0, 1.0])
    assert np.isfinite(grad).all()
    assert np.isfinite(curv).all()
    assert grad[0] > 0 > grad[1]


def test_only_one_term_is_the_gradient_of_the_value():
    assert XENDCG().traits.integrable
    assert not XENDCG(newton_terms=3).traits.integrable
    with pytest.raises(UsageError, match="newton_terms must be 1 or more, not 0"):
        XENDCG(newton_terms=0).bind(query([1, 0]))


def test_the_noise_softens_the_shares_of_the_grades():
    _, grad, _ = parts(XENDCG(random_state=5), query([1, 0]), [0.0, 0.0])
    gamma = noise(5, (0, 0), 2)
    share = (2 - gamma[0]) / (3 - gamma.sum())
    assert grad[0] == pytest.approx(1 / (1 + exp(0)) - share)
