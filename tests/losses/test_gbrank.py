import numpy as np
import pytest
from reference.losses import TWINS

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.gbrank import GBRank


def query(y, **arrays):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)), **arrays)


def parts(loss, data, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(data).grad_curv(np.array(s, float), grad, curv), grad, curv


def test_a_pair_costs_the_square_of_what_its_margin_lacks():
    # grades 2 and 0 ask for a lead of 2; the lead is 0.5
    value, grad, curv = parts(GBRank(), query([2, 0]), [0.5, 0.0])
    assert value == pytest.approx((2 - 0.5) ** 2)
    assert grad == pytest.approx([-2 * 1.5, 2 * 1.5])
    assert curv == pytest.approx([4, 4])  # twice the diagonal of the Hessian, 2


def test_a_pair_that_keeps_its_margin_costs_nothing():
    value, grad, curv = parts(GBRank(), query([2, 0]), [3.0, 0.5])
    assert value == 0
    assert not grad.any()
    assert not curv.any()


def test_targets_set_the_margin():
    assert parts(GBRank(targets="gain"), query([2, 0]), [0, 0])[0] == pytest.approx(3.0**2)
    assert parts(GBRank(targets=(0, 1, 7)), query([2, 0]), [0, 0])[0] == pytest.approx(7.0**2)


def test_equal_grades_are_drawn_together_each_pair_in_both_orders():
    # the pair (1, 1) with scores 9 and 6; both lead grade 0 by more than 1
    value, grad, curv = parts(GBRank(lambda1=0.5), query([1, 1, 0]), [9.0, 6.0, 0.0])
    assert value == pytest.approx(0.5 * 2 * 3.0**2)
    assert grad == pytest.approx([0.5 * 4 * 3, -0.5 * 4 * 3, 0])
    assert curv == pytest.approx([0.5 * 4 * 2, 0.5 * 4 * 2, 0])


def test_calibration_adds_half_the_squared_error():
    value, grad, curv = parts(GBRank(calibration=0.2), query([2, 0]), [5.0, 1.0])
    assert value == pytest.approx(0.1 * (3.0**2 + 1.0**2))
    assert grad == pytest.approx([0.2 * 3, 0.2 * 1])
    assert curv == pytest.approx([0.2, 0.2])


def test_only_calibration_knows_the_level_of_the_scores():
    assert GBRank(lambda1=1.0).traits.shift_invariant
    assert not GBRank(calibration=0.1).traits.shift_invariant


def test_the_curvature_bounds_the_hessian_as_a_matrix():
    rng = np.random.default_rng(0)
    y, s, w = rng.integers(0, 4, 12), rng.normal(size=12), rng.uniform(0.5, 2, 12)
    bound = GBRank(lambda1=0.3).bind(query(y, sample_weight=w))

    def gradient(x):
        out = np.empty(12)
        bound.grad(x, out)
        return out

    eps = 1e-6
    columns = [(gradient(s + e) - gradient(s - e)) / (2 * eps) for e in eps * np.eye(12)]
    curv = np.empty(12)
    bound.grad_curv(s, np.empty(12), curv)
    assert np.linalg.eigvalsh(np.diag(curv) - np.array(columns)).min() > -1e-6


def test_real_valued_grades_of_a_long_list_are_those_of_the_twin():
    rng = np.random.default_rng(1)
    y, s, w = rng.uniform(0, 3, 150), rng.normal(size=150), rng.uniform(0.5, 2, 150)
    value, grad, _ = parts(GBRank(), query(y, sample_weight=w), s)
    expected, gradients = TWINS["gbrank"](GBRank(), s, y, w)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grad, gradients, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["lambda1", "calibration"])
def test_a_negative_strength_is_refused(name):
    with pytest.raises(UsageError, match=f"gbrank's {name} must be 0 or more, not -1"):
        GBRank(**{name: -1.0}).bind(query([1, 0]))
