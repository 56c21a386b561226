from math import exp, log2

import numpy as np
import pytest

from rankwright.data.ranking_data import RankingData
from rankwright.errors import UsageError
from rankwright.losses.approx_ndcg import ApproxNDCG
from rankwright.metrics.base import metric


def query(y):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)))


def parts(loss, y, s):
    grad, curv = np.empty(len(s)), np.empty(len(s))
    return loss.bind(query(y)).grad_curv(np.array(s, float), grad, curv), grad, curv


def ndcg(y, s):
    out = np.empty(1)
    metric("ndcg").per_query(np.array(s, float), query(y), out)
    return out[0]


def test_two_documents_by_hand():
    # the other is above the relevant one by 1/(1 + exp(0.5/0.4))
    rank = 1 + 1 / (1 + exp(0.5 / 0.4))
    value, grad, _ = parts(ApproxNDCG(temperature=0.4), [1, 0], [0.7, 0.2])
    assert value == pytest.approx(1 - 1 / log2(1 + rank))
    assert grad[0] == pytest.approx(-grad[1])
    assert grad[0] < 0


def test_it_tends_to_ndcg_as_the_temperature_falls():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, 30), rng.permutation(30) / 3
    gaps = [
        abs(parts(ApproxNDCG(temperature=T), y, s)[0] - (1 - ndcg(y, s)))
        for T in (0.3, 0.1, 0.03, 0.01)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.001
    assert gaps[-1] < 1e-12


def test_scores_too_far_apart_for_exponentials_are_counted_all_the_same():
    """Apart from the one far above, gradients are those of the others among themselves."""
    y, s = [0, 2, 1], np.array([500.0, 0.05, 0.0])
    value, grad, _ = parts(ApproxNDCG(), y, s)
    up = 1 / (1 + exp(-0.5))  # of the second above the third
    dcg = 3 / log2(2 + 1 + (1 - up)) + 1 / log2(2 + 1 + up)
    assert value == pytest.approx(1 - dcg / (3 + 1 / log2(3)))
    assert grad[1] < 0 < grad[2]
    assert grad[0] == 0.0


def test_a_newton_step_is_never_longer_than_the_temperature():
    rng = np.random.default_rng(4)
    y, s = rng.integers(0, 4, 40), 0.5 * rng.normal(size=40)
    _, grad, curv = parts(ApproxNDCG(temperature=0.3), y, s)
    assert (np.abs(grad) <= 0.3 * curv * (1 + 1e-12)).all()


def test_a_temperature_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="temperature must be above 0, not 0"):
        ApproxNDCG(temperature=0).bind(query([1, 0]))
