from math import exp, log2

import numpy as np
import pytest
from reference.neural_ndcg import soft_sort

from rankwright.data.ranking_data import RankingData
from rankwright.errors import IncompatibleError, UsageError
from rankwright.losses.neural_ndcg import NeuralNDCG
from rankwright.metrics.base import metric


def query(y):
    return RankingData.from_arrays(np.zeros((len(y), 1)), y, qid=np.zeros(len(y)))


def parts(loss, y, s):
    grad = np.empty(len(s))
    return loss.bind(query(y)).grad(np.array(s, float), grad), grad


def value_of(name, y, s):
    out = np.empty(1)
    metric(name).per_query(np.array(s, float), query(y), out)
    return out[0]


def test_two_documents_by_hand():
    # z of rank 1: s - 0.5 each, 0.2 and -0.3; of rank 2: -s - 0.5, -1.2 and -0.7
    first = 1 / (1 + exp(-0.5 / 0.8))
    second = 1 / (1 + exp(0.5 / 0.8))
    value = parts(NeuralNDCG(temperature=0.8, sinkhorn=0), [1, 0], [0.7, 0.2])[0]
    assert value == pytest.approx(1 - first - second / log2(3))


def test_the_value_is_that_of_the_whole_matrix_on_a_long_list():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, 60).astype(float), rng.normal(size=60).round(1)
    discount = 1 / np.log2(np.arange(2, 62))
    best = np.sort(2**y - 1)[::-1] @ discount
    for temperature in (0.1, 5.0, 100.0):
        expected = 1 - discount @ soft_sort(s, temperature) @ (2**y - 1) / best
        value = parts(NeuralNDCG(temperature=temperature, sinkhorn=0), y, s)[0]
        assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["ndcg", "ndcg@5"])
def test_it_tends_to_the_measure_as_the_temperature_falls(name):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, 30), rng.permutation(30) / 3
    gaps = [
        abs(parts(NeuralNDCG(metric=name, temperature=T), y, s)[0] - (1 - value_of(name, y, s)))
        for T in (3.0, 0.3, 0.1, 0.01)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.001
    assert gaps[-1] < 1e-12


def test_a_hot_sort_knows_only_the_mean_gain():
    y = np.array([2.0, 0.0, 1.0])
    value = parts(NeuralNDCG(temperature=1e9), y, [3.0, 1.0, 2.0])[0]
    discounts = 1 + 1 / log2(3) + 1 / 2
    assert value == pytest.approx(1 - (4 / 3) * discounts / (3 + 1 / log2(3)))


def test_scaling_counts_every_document_at_one_rank_in_all():
    """With equal discounts NDCG cannot tell one order from another: nothing is lost or gained."""
    rng = np.random.default_rng(1)
    y, s = rng.integers(0, 2, 20), rng.normal(size=20)
    counted = [
        parts(NeuralNDCG(metric="p", temperature=5.0, sinkhorn=rounds), y, s)[0]
        for rounds in (0, 10, 300)
    ]
    assert abs(counted[0]) > 0.01
    assert counted[1] == pytest.approx(0.0, abs=0.003)
    assert counted[2] == pytest.approx(0.0, abs=1e-6)


def test_without_scaling_good_documents_are_drawn_to_the_middle_and_with_it_to_the_top():
    """Scores so close that every row is nearly even: where the one good document should move."""
    y, s = np.zeros(21), -np.arange(21) / 100
    y[5] = 1.0
    gradient = {
        rounds: parts(NeuralNDCG(metric="p", temperature=1.0, sinkhorn=rounds), y, s)[1][5]
        for rounds in (0, 50)
    }
    up = parts(NeuralNDCG(temperature=1.0, sinkhorn=50), y, s)[1][5]
    assert gradient[0] > 0.01  # downhill is down, where it counts at more ranks
    assert gradient[50] == pytest.approx(0.0, abs=1e-4)
    assert up < -0.01


def test_a_temperature_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="temperature must be above 0, not -1"):
        NeuralNDCG(temperature=-1).bind(query([1, 0]))
    with pytest.raises(UsageError, match="sinkhorn must be 0 or more, not -2"):
        NeuralNDCG(sinkhorn=-2).bind(query([1, 0]))


def test_a_measure_that_is_no_sum_over_ranks_is_refused():
    with pytest.raises(IncompatibleError, match="neural_ndcg needs a metric that is a sum"):
        NeuralNDCG(metric="map").bind(query([1, 0]))
