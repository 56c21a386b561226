"""Divergences from gains over the ideal DCG."""

from math import log2

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.fixed_targets import FixedTargets
from rankwright.losses.listnet import ListNet
from rankwright.losses.ndcg_glm import NDCGGLM


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, group_sizes=[len(y)], **arrays)


def test_scores_equal_to_gains_over_ideal_dcg_cost_nothing_at_any_level():
    ideal = 3 + 1 / log2(3)
    s = np.array([0.0, 3.0, 1.0]) / ideal
    assert NDCGGLM().bind(query([0, 2, 1])).value(s + 7.0) == pytest.approx(0.0, abs=1e-25)


def test_square_is_half_the_squared_error_up_to_a_constant():
    bound = NDCGGLM().bind(query([1, 0]))  # targets 1 and 0
    assert bound.value(np.array([0.0, 3.0])) == pytest.approx((2**2 + 2**2) / 2)


def test_kl_is_listnet_against_gains_up_to_a_constant():
    data = query([0, 2, 1, 0, 2])
    ours, other = NDCGGLM("kl").bind(data), ListNet(target="gain").bind(data)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5))
    assert ours.value(a) - ours.value(b) == pytest.approx(other.value(a) - other.value(b))
    assert ours.value(np.log([1e-300, 3, 1, 1e-300, 3])) == pytest.approx(0.0, abs=1e-12)


def test_a_wrong_divergence_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="must be square or kl, not 'kll'; did you mean kl"):
        NDCGGLM("kll").bind(query([0, 1]))


def by_definition(divergence, s, r, w, free, ridge):
    """(2) and (3) of one query, least over the offset where that is free."""

    def at(b):
        m = s + b
        if divergence == "square":
            return (w * (m - r) ** 2 / 2).sum()
        return (w * (r * (np.log(r) - m) - r + np.exp(m))).sum()

    centred = s - (w @ s) / w.sum() if free else s
    least = minimize_scalar(at, bounds=(-20, 20), options={"xatol": 1e-10}).fun if free else at(0.0)
    return least + ridge / 2 * (w * centred**2).sum()


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("divergence", ["square", "kl"])
def test_fixed_targets_are_those_of_the_definition(divergence, free, ridge):
    rng = np.random.default_rng(4)
    w, r, s = rng.uniform(0.5, 2.0, 6), rng.uniform(0.1, 1.0, 6), rng.normal(size=6)
    data = query([0, 2, 1, 0, 2, 1], sample_weight=w)
    bound = FixedTargets(data, r, divergence, free=free, ridge=ridge)

    assert bound.value(s) == pytest.approx(by_definition(divergence, s, r, w, free, ridge))
    grad, turned, above, below = np.empty((4, 6))
    for unit in np.eye(6):
        bound.grad(s, grad)
        bound.hess_vec(unit, turned)
        ends = [bound.grad(s + 1e-5 * unit, above), bound.grad(s - 1e-5 * unit, below)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(grad @ unit, abs=1e-7)
        np.testing.assert_allclose(turned, (above - below) / 2e-5, atol=1e-7)
